// The stress test, in two sizes: random messages of every size and call between workers; what comes is counted.
import { type KernelName, launch } from "pamir";
import { describe, expect, it } from "vitest";
import { chooseSeed } from "./support.js";
import { makeFlags } from "./tasks/flags.js";

export interface StressOptions {
  readonly count: number;
  readonly largest: number;
  readonly rounds: number;
  readonly timeout: number;
}

interface Row {
  readonly tasks: number;
  readonly kernel: readonly KernelName[];
  readonly laneBytes: number;
  readonly spin: number;
  readonly memoryBase?: number;
  readonly processes?: number;
}

const ALL_ROWS: readonly Row[] = [
  { tasks: 3, kernel: ["wasm", "wasm", "wasm"], laneBytes: 64, spin: 0 },
  { tasks: 3, kernel: ["ts", "ts", "ts"], laneBytes: 64, spin: 0.05 },
  { tasks: 4, kernel: ["wasm", "ts", "wasm", "ts"], laneBytes: 256, spin: 0 },
  { tasks: 3, kernel: ["ts", "wasm", "wasm"], laneBytes: 16_384, spin: 0.05 },
  { tasks: 3, kernel: ["wasm", "ts", "ts"], laneBytes: 256, spin: 0.05, memoryBase: 2 ** 31 - 1024 ** 2 },
  { tasks: 3, kernel: ["wasm", "ts", "wasm"], laneBytes: 256, spin: 0.05, processes: 3 },
  { tasks: 4, kernel: ["ts", "wasm", "wasm", "ts"], laneBytes: 4096, spin: 0, processes: 2 },
];
const ROWS = ALL_ROWS.filter(({ processes }) => processes === undefined || process.platform === "linux");

/** PAMIR_SEED=… runs the same again, as far as the threads' timing lets it. */
export function stressSuite({ count, largest, rounds, timeout }: StressOptions): void {
  describe("stress: nothing is lost, repeated, reordered or changed", () => {
    for (let round = 0; round < rounds; round++) {
      const seed = chooseSeed() + round;
      for (const { tasks, kernel, laneBytes, spin, memoryBase, processes } of ROWS) {
        const straddles = memoryBase === undefined ? "" : ", straddling 2^31";
        const where = processes === undefined ? straddles : `, ${processes} processes`;
        it(`${tasks} tasks, ${kernel}, lanes of ${laneBytes} bytes${where} (PAMIR_SEED=${seed})`, {
          timeout,
        }, async () => {
          const { flags: outcome, place } = await makeFlags(processes !== undefined);
          const options = {
            tasks,
            kernel,
            laneBytes,
            heapBytes: 2 ** 25,
            ...(memoryBase === undefined ? {} : { memoryBase }),
            ...(processes === undefined ? {} : { processes }),
            args: { scenario: "stress", seed, count, largest, flags: place, spin, patience: timeout - 10_000 },
          };
          const job = await launch(new URL("tasks/stress.js", import.meta.url), options);
          // A task that gives up by itself says why; one that does not is ended.
          const ended = setTimeout(() => void job.terminate(), timeout - 5000);
          const exits = await job.exited;
          clearTimeout(ended);
          const [sent, received, lost, repeated, reordered, broken] = outcome;
          expect({
            seed,
            sent,
            received,
            lost,
            repeated,
            reordered,
            broken,
            errors: exits.map(({ error }) => error),
          }).toEqual({
            seed,
            sent: tasks * count,
            received: tasks * count,
            lost: 0,
            repeated: 0,
            reordered: 0,
            broken: 0,
            errors: exits.map(() => undefined),
          });
        });
      }
    }
  });
}
