// The stress test, in two sizes: random messages of every size and call between workers; what comes is counted.
import { type KernelName, launch } from "pamir";
import { describe, expect, it } from "vitest";
import { chooseSeed } from "./support.js";

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
}

const ROWS: readonly Row[] = [
  { tasks: 3, kernel: ["wasm", "wasm", "wasm"], laneBytes: 64, spin: 0 },
  { tasks: 3, kernel: ["ts", "ts", "ts"], laneBytes: 64, spin: 0.05 },
  { tasks: 4, kernel: ["wasm", "ts", "wasm", "ts"], laneBytes: 256, spin: 0 },
  { tasks: 3, kernel: ["ts", "wasm", "wasm"], laneBytes: 16_384, spin: 0.05 },
  { tasks: 3, kernel: ["wasm", "ts", "ts"], laneBytes: 256, spin: 0.05, memoryBase: 2 ** 31 - 1024 ** 2 },
];

/** PAMIR_SEED=… runs the same again, as far as the threads' timing lets it. */
export function stressSuite({ count, largest, rounds, timeout }: StressOptions): void {
  describe("stress: nothing is lost, repeated, reordered or changed", () => {
    for (let round = 0; round < rounds; round++) {
      const seed = chooseSeed() + round;
      for (const { tasks, kernel, laneBytes, spin, memoryBase } of ROWS) {
        const where = memoryBase === undefined ? "" : ", straddling 2^31";
        it(`${tasks} tasks, ${kernel}, lanes of ${laneBytes} bytes${where} (PAMIR_SEED=${seed})`, {
          timeout,
        }, async () => {
          const outcome = new Int32Array(new SharedArrayBuffer(64));
          const options = {
            tasks,
            kernel,
            laneBytes,
            heapBytes: 2 ** 25,
            ...(memoryBase === undefined ? {} : { memoryBase }),
            args: { scenario: "stress", seed, count, largest, outcome, spin, patience: timeout - 10_000 },
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
