// How threads of several processes sleep on words of the memory that they share: by futex(2). V8's lists of waiters, those of
// Atomics.wait(), are each process's own.
import type { Bell, Futex } from "../kernel/kernel.js";
import { type NodeWorker, nodeModule } from "../support/host.js";
import { type Ffi, openFfi } from "./ffi.js";

/** What a thread needs to sleep on its process's mapping. */
export interface FutexSetup {
  /** Path of koffi. */
  readonly ffi: string;
  /** Address of the memory in this process. */
  readonly address: number;
}

/**
 * Longest sleep in milliseconds, after which the caller looks again. V8 can't terminate a thread in a foreign call. And a
 * process may die between the store that takes a sleeper's flag down and the call that wakes the sleeper.
 */
const SLEEP_MS = 100;

/** @throws PAMIR_NO_PROCESSES */
export function futexOf({ ffi: path, address }: FutexSetup): Futex {
  const ffi = openFfi(path);
  return {
    wait: (pointer, seen, milliseconds) => ffi.futexWait(address + pointer, seen, Math.min(milliseconds, SLEEP_MS)),
    wake: (pointer) => ffi.futexWake(address + pointer),
    doorbell: (pointer) => new BellThread(ffi, address + pointer),
  };
}

/** The data that a bell thread gets at its start: path of koffi, number of futex(), address of the bell. */
type BellSetup = readonly [ffi: string, futex: number, address: number];

/**
 * Source of a bell thread. For each value that it gets, it sleeps until the bell reads something else (EAGAIN, 11), and
 * answers. Its sleep lasts 250 ms at most, in case that a thread that ends it rings just before it falls asleep.
 */
const bellSource = `
const { workerData: [ffi, futex, address], parentPort } = process.getBuiltinModule("node:worker_threads");
const koffi = process.getBuiltinModule("node:module").createRequire(ffi)(ffi);
const syscall = koffi.load(null).func("syscall", "int64_t", ["int64_t", "uintptr_t", "int64_t", "int64_t", "void *"]);
const limit = new BigInt64Array([0n, 250000000n]);
parentPort.on("message", (seen) => {
  while (syscall(futex, address, 0, seen, limit) >= 0 || koffi.errno() !== 11);
  parentPort.postMessage(0);
});`;

/** A thread that sleeps on a bell for a thread that must not block. Between two waits it uses no time. */
class BellThread implements Bell {
  readonly #worker: NodeWorker;
  readonly #ring: () => void;
  #rung: (() => void) | undefined;
  readonly #atExit = () => this.close();

  constructor(ffi: Ffi, address: number) {
    const { Worker } = nodeModule("worker_threads") as typeof import("node:worker_threads");
    const workerData: BellSetup = [ffi.path, ffi.futex, address];
    this.#worker = new Worker(bellSource, { eval: true, workerData, name: "pamir bell", execArgv: [] });
    this.#worker.on("message", () => this.#rung?.());
    this.#worker.unref();
    this.#ring = () => ffi.futexWake(address);
    // Node waits for the end of each of its threads when it exits.
    process.once("exit", this.#atExit);
  }

  wait(seen: number): Promise<void> {
    this.#worker.postMessage(seen);
    return new Promise((resolve) => {
      this.#rung = resolve;
    });
  }

  close(): void {
    process.off("exit", this.#atExit);
    void this.#worker.terminate();
    this.#ring();
    this.#rung?.();
  }
}
