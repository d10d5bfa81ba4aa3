// A thread that sleeps on a bell for a thread that must not block.
import type { Bell, BellWord, Futex } from "../kernel/kernel.js";
import { type NodeWorker, nodeModule } from "../support/host.js";
import type { Ffi } from "./ffi.js";
import { type FutexSetup, futexOf, LONG_SLEEP_MS, SLEEP_MS } from "./futex.js";

/** Longest sleep in milliseconds of a bell thread whose owner the program or Node may end. */
const BELL_SLEEP_MS = 250;

/** futexOf() for a thread that also sleeps without blocking. @param isOurs whether only pamir ends the thread */
export function futexWithBells(setup: FutexSetup, isOurs: boolean): Futex {
  const [sleepMs, bellMs] = isOurs ? [LONG_SLEEP_MS, LONG_SLEEP_MS] : [SLEEP_MS, BELL_SLEEP_MS];
  return futexOf(setup, sleepMs, (ffi, address, word) => new BellThread(ffi, address, bellMs, word));
}

/** The data that a bell thread gets at its start: path of koffi, number of futex(), address of the bell, index of the flag. */
type BellSetup = readonly [
  ffi: string,
  futex: number,
  address: number,
  sleepMs: number,
  words: Int32Array,
  flag: number,
];

/**
 * Source of a bell thread. For each value that it gets, it sleeps until the bell reads something else (EAGAIN, 11), and
 * answers. After a sleep of the full length (ETIMEDOUT, 110) it also answers if the flag is down: the process that has taken
 * it down may be stopped before it rings, and then no other process rings.
 */
const bellSource = `
const { workerData: [ffi, futex, address, sleepMs, words, flag], parentPort } = process.getBuiltinModule("node:worker_threads");
const koffi = process.getBuiltinModule("node:module").createRequire(ffi)(ffi);
const syscall = koffi.load(null).func("syscall", "int64_t", ["int64_t", "uintptr_t", "int64_t", "int64_t", "void *"]);
const limit = new BigInt64Array([BigInt(Math.floor(sleepMs / 1000)), BigInt((sleepMs % 1000) * 1e6)]);
parentPort.on("message", (seen) => {
  for (let error = 0; error !== 11 && !(error === 110 && words[flag] === 0); )
    error = syscall(futex, address, 0, seen, limit) < 0 ? koffi.errno() : 0;
  parentPort.postMessage(0);
});`;

/** A thread that sleeps on a bell for a thread that must not block. Between two waits it uses no time. */
class BellThread implements Bell {
  readonly #worker: NodeWorker;
  readonly #ring: () => void;
  /** Node waits for the end of each of its threads when it exits. */
  readonly #atExit = (): void => this.close();
  #rung: (() => void) | undefined;

  constructor(ffi: Ffi, address: number, sleepMs: number, { words, flag, ring }: BellWord) {
    const { Worker } = nodeModule("worker_threads") as typeof import("node:worker_threads");
    const workerData: BellSetup = [ffi.path, ffi.futex, address, sleepMs, words, flag >>> 2];
    this.#worker = new Worker(bellSource, { eval: true, workerData, name: "pamir bell", execArgv: [] });
    this.#worker.on("message", () => this.#rung?.());
    this.#worker.unref();
    this.#ring = ring;
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
    // V8 can't terminate a thread in a foreign call. A thread that is about to fall asleep finds that the bell has changed.
    this.#ring();
    this.#rung?.();
  }
}
