// A node that was suspended beyond the silence has been given up, and learns it from the other one, also where a probe takes
// long: an answer must come before this node takes the other one for silent.
import { expect, it } from "vitest";
import { NetworkedJob } from "../support/networked.js";
import { SEED } from "../support/seed.js";

const LIMITS = { tasks: 2, contexts: 1, laneBytes: 16_384, heapBytes: 2 ** 24, regions: 64, fifos: 2, slots: 8 };
const SILENCE = 3_000_000;
/** Microseconds of a hop, and the key of the job if there is one. */
const CASES = [20, 100_000, 200_000].flatMap((hop) =>
  ([undefined, 7] as const).map((key) => [hop, key === undefined ? "no" : "a", key] as const),
);

it.each(CASES)("hops of %d µs, %s key", async (hopMicroseconds, _, byte) => {
  const key = byte === undefined ? undefined : new Uint8Array(32).fill(byte);
  const job = new NetworkedJob({
    seed: SEED,
    limits: LIMITS,
    kernels: ["wasm", "ts"],
    key,
    silence: SILENCE,
    hopMicroseconds,
  });
  const contexts = job.tasks.map(({ client }) => client.createContext());
  for (const context of contexts) context.dispatch(1, () => {});
  const turn = async (microseconds: number): Promise<void> => {
    for (const context of contexts) context.advance();
    await job.turn();
    job.run(microseconds);
  };
  const say = (task: number): unknown => contexts[task]?.sendImmediate(contexts[1 - task]?.endpoint as number, 1);
  for (let round = 0; round < 4; round++) {
    say(0);
    say(1);
    await turn(10 * hopMicroseconds);
  }
  const { node } = job.tasks[1] as (typeof job.tasks)[0];
  node.isDown = true;
  say(0);
  for (let time = 0; time < 4; time++) await turn(SILENCE);
  expect(job.lost).toEqual([[0, 1, "silent"]]);
  node.isDown = false;
  say(1);
  node.pipe.flush(); // its alarm, which is late
  for (let time = 0; time < 20; time++) await turn(SILENCE / 10);
  expect(job.lost.slice(1)).toEqual([[1, 0, "givenUp"]]);
});
