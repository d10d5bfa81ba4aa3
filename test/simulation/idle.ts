// What an origin keeps for an idle target.
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { Sessions } from "../../src/session/sessions.js";
import { submit } from "../support/submit.js";
import { Pipe } from "./pipe.js";

const STRETCHES = 5;

/**
 * Bytes of JavaScript's heap that an origin keeps for each idle target. Each target exists only while the origin sends to
 * it, so only the origin's state grows.
 * @param stride between the numbers of the targets
 */
export function idleBytes(targets: number, stride = 1): number {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const used = (): number => {
    // The second collection frees what the first one finalized. On Node 24, one leaves 70 bytes a target, two leave 14.
    collect();
    collect();
    return process.memoryUsage().heapUsed;
  };
  const pipe = new Pipe((STRETCHES + 1) * targets * stride + 1);
  const origin = pipe.start(0, () => {});
  const talk = (first: number, last: number): void => {
    for (let to = first * stride; to <= last * stride; to += stride) {
      let given = 0;
      pipe.start(to, () => given++);
      submit(origin, to, 0, to, 1, Uint8Array.of(1));
      pipe.run();
      pipe.end(to);
      if (given !== 1) throw new Error(`target ${to} was given ${given} segments`);
    }
  };
  // Typed arrays are counted by their lengths, since it is unknown when the buffers of old ones are freed. Of the heap, the
  // median of several stretches counts, since code comes and goes, too.
  const words = ({ kept }: Sessions): number => kept.epochs + kept.orders;
  talk(1, targets);
  const wordsBefore = words(origin);
  const stretches = Array.from({ length: STRETCHES }, (_, i) => {
    const before = used();
    talk((i + 1) * targets + 1, (i + 2) * targets);
    return (used() - before) / targets;
  });
  const onHeap = stretches.sort((a, b) => a - b)[STRETCHES >> 1] as number;
  const bytes = onHeap + (4 * (words(origin) - wordsBefore)) / (STRETCHES * targets);
  if (origin.inUse.txQueues + origin.inUse.initiators > 0) throw new Error("the targets are not idle");
  return bytes;
}
