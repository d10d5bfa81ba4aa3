// The explorer: threads that run the kernels that ship under the schedules that it chooses, one scenario at a time.
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import { bundle } from "../support/bundle.js";
import { byEffort } from "../support/effort.js";
import { MEMORY_PAGES, THREADS_MAX } from "./control.js";
import { instrument, instrumentSources } from "./instrument.js";
import type { Exploration, Task } from "./runner.js";
import type { Orders } from "./thread.js";

export type { Exploration, Task } from "./runner.js";

/**
 * Looks at the turn before a thread sleeps: some 80 µs, longer than another one's part of a run. In test:deep the explorer has
 * both cores. Elsewhere other tests want them.
 */
const SPINS = byEffort({ quick: 0, normal: 0, deep: 10_000 });

const here = (name: string): URL => new URL(name, import.meta.url);

/** The sources that touch the job's memory: instrumented in the threads' code, where a mutant may change them. */
export const TOUCHING =
  /src[\\/]((kernel[\\/]twin|core|protocol|transport|observe|pami)[\\/].*|kernel[\\/]atomics|memory[\\/]regions|collective[\\/]shared[\\/]shared-(members|operation|steps)|node[\\/](address|bell|engine|liveness|park|serve)|process[\\/]pipe-words)\.ts$/;

/** What becomes of the text of a source before it is instrumented. */
export type Change = (path: string, text: string) => string;

function bundleOf(change?: Change): Promise<URL> {
  return bundle(here("runner.ts"), [instrumentSources(TOUCHING, fileURLToPath(here("thread.ts")), change)]);
}

let bundled: Promise<URL> | undefined;

export class Explorer {
  readonly #workers: readonly Worker[];
  readonly #patience: number;

  private constructor(workers: readonly Worker[], patience: number) {
    this.#workers = workers;
    this.#patience = patience;
  }

  /**
   * @param wasm another module than the one that ships
   * @param patience milliseconds that one exploration may take: after that, it hangs
   * @param change other sources than those that ship
   */
  static async start(kernel: "wasm" | "ts", wasm?: Uint8Array, patience = 500_000, change?: Change): Promise<Explorer> {
    bundled ??= bundleOf();
    const url = await (change === undefined ? bundled : bundleOf(change));
    const module = wasm ?? readFileSync(new URL("../../dist/pamir.wasm", import.meta.url));
    const instrumented = new WebAssembly.Module(instrument(module) as BufferSource);
    const memory = new WebAssembly.Memory({ initial: MEMORY_PAGES, maximum: MEMORY_PAGES, shared: true });
    const workers = Array.from({ length: THREADS_MAX }, (_, me) => {
      const workerData: Orders = { kernel, instrumented, memory, me, spins: SPINS };
      return new Worker(url, { workerData });
    });
    return new Explorer(workers, patience);
  }

  /** Runs a scenario under the schedules that the task asks for, or until one goes wrong. */
  async explore(task: Task): Promise<Exploration> {
    const ended = new AbortController();
    try {
      return await new Promise((resolve, reject) => {
        const late = (): void => reject(new Error(`${task.scenario}: no end after ${this.#patience} ms`));
        const timer = setTimeout(late, this.#patience);
        ended.signal.addEventListener("abort", () => clearTimeout(timer));
        for (const worker of this.#workers) {
          worker.on("error", reject);
          ended.signal.addEventListener("abort", () => worker.off("error", reject));
        }
        this.#workers[0]?.once("message", resolve);
        this.#workers[0]?.postMessage(task);
      });
    } finally {
      ended.abort();
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.#workers.map((worker) => worker.terminate()));
  }
}

/** What a person needs of a failure: what is wrong, each step, and how to see it again. */
export function describeFailure(kernel: string, task: Task, { failure }: Exploration): string {
  if (failure === undefined) return "no failure";
  const again = JSON.stringify({ kernel, ...task, replay: failure.replay });
  return `${task.scenario}: ${failure.text}\n${failure.trace.join("\n")}\nto see it again: PAMIR_REPLAY='${again}'`;
}
