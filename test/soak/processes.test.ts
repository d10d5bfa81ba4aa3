// The soak over processes that share a memory, some of which are killed.
import { expect, it } from "vitest";
import { byEffort, SEED } from "../support/effort.js";
import { drawRound } from "./draw.js";
import { expectClean } from "./support.js";

const LIMITS = {
  kernels: ["wasm", "ts"],
  tasks: [2, 4],
  processes: true,
  milliseconds: 2000,
  patience: 60_000,
} as const;
const seed = SEED >>> 1;
/** Rounds of the seed with deaths: at least every second one is by SIGKILL. */
const rounds = Array.from({ length: 100 }, (_, number) => number)
  .filter((number) => drawRound(seed, number, LIMITS).kills > 0)
  .slice(0, byEffort({ quick: 1, normal: 2, deep: 20 }));

it.skipIf(process.platform !== "linux")(
  `npm run soak -- --processes --seed ${seed}: nothing is lost before a death, repeated or out of order`,
  { timeout: 600_000 },
  () => {
    let all = 0;
    for (const round of rounds) {
      const options = ["--processes", "--seed", `${seed}`, "--round", `${round}`, "--seconds", "2"];
      const { operations, kills } = expectClean(options);
      expect(kills).toBeGreaterThan(0);
      all += operations;
    }
    expect(all).toBeGreaterThan(100);
  },
);
