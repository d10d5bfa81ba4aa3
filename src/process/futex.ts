// How threads of several processes sleep on words of the memory that they share: by futex(2). V8's lists of waiters, those of
// Atomics.wait(), are each process's own.
import { TASK_BELL_OFFSET } from "../../assembly/layout.js";
import { sharedAtomics } from "../kernel/atomics.js";
import { type Bell, type Futex, memoryOf } from "../kernel/kernel.js";
import { type Ffi, openFfi } from "./ffi.js";
import type { SharedWords } from "./pipe-words.js";
import { Pipes } from "./pipes.js";

/** What a thread needs to sleep on its process's mapping, and to have pages for it. */
export interface FutexSetup {
  /** Path of koffi. */
  readonly ffi: string;
  /** Address of the memory in this process. */
  readonly address: number;
  /** The memory in this process, where the system provides pages by that alone; undefined: it does so by the address. */
  readonly descriptor?: number | undefined;
}

/** Longest sleep in milliseconds of a thread that the program or Node may end: V8 can't terminate it in a foreign call. */
export const SLEEP_MS = 100;
/**
 * Longest sleep in milliseconds of a thread that pamir ends: it rings until the thread is gone. Another process may be
 * stopped between the store that takes a sleeper's flag down and the call that wakes the sleeper, so the sleeper looks again
 * by itself. A wake takes up to 0.3 ms of a core (virtual machine, cold caches), 1.7 ms if others use the cores, and an idle
 * task's must be rare.
 */
export const LONG_SLEEP_MS = 5000;

/** Makes what sleeps on the bell of a task slot. */
type MakeBell = (ffi: Ffi, words: SharedWords, slot: number) => Bell;

/**
 * @param makeBell for a thread that also sleeps without blocking
 * @param sleepMs longest sleep of this thread in milliseconds
 * @throws PAMIR_NO_PROCESSES
 */
export function futexOf(
  { ffi: path, address, descriptor }: FutexSetup,
  shared: WebAssembly.Memory,
  sleepMs = SLEEP_MS,
  makeBell?: MakeBell,
): Futex {
  const ffi = openFfi(path);
  const words = sharedAtomics(memoryOf(shared.buffer as unknown as SharedArrayBuffer));
  const pipes = new Pipes(ffi, words);
  return {
    wait(pointer, seen, milliseconds) {
      const most = Math.min(milliseconds, sleepMs);
      return ffi.futexWait(address + pointer, seen, most) ? most : 0;
    },
    wake(bell) {
      ffi.futexWake(address + bell);
      pipes.ring(bell - TASK_BELL_OFFSET);
    },
    reserve: (pointer, bytes) =>
      descriptor === undefined ? ffi.populate(address + pointer, bytes) : ffi.allocate(descriptor, pointer, bytes),
    doorbell: makeBell && ((slot) => makeBell(ffi, words, slot)),
    close: () => pipes.close(),
  };
}
