// What an origin keeps of a target that it has nothing for.
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { Pipe } from "./pipe.js";

/**
 * Bytes of JavaScript's heap that an origin keeps for each target that it has nothing for. Each target is there only while it
 * is talked to, so that what grows is the origin's.
 */
export function idleBytes(targets: number): number {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const used = (): number => {
    collect();
    const { heapUsed, arrayBuffers } = process.memoryUsage();
    return heapUsed + arrayBuffers;
  };
  const pipe = new Pipe(2 * targets + 1);
  const origin = pipe.start(0, () => {});
  const talk = (first: number, last: number): void => {
    for (let to = first; to <= last; to++) {
      let given = 0;
      pipe.start(to, () => given++);
      origin.submit(to, 0, to, 1, Uint8Array.of(1));
      pipe.run();
      pipe.end(to);
      if (given !== 1) throw new Error(`target ${to} was given ${given} segments`);
    }
  };
  talk(1, targets);
  const before = used();
  talk(targets + 1, 2 * targets);
  const bytes = (used() - before) / targets;
  if (origin.inUse.backlogs + origin.inUse.initiators > 0) throw new Error("the targets are not idle");
  return bytes;
}
