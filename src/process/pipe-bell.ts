// How a thread that must not block sleeps where processes share the memory: its event loop reads a pipe of its own. A thread
// that rings finds the pipe in the task slot, and opens it by way of /proc. A hand-off by pipes takes 8.3 µs, by
// Atomics.waitAsync() 10.2, by a worker that sleeps on the futex and posts a message 50.8 (Node 20, both sides asleep, Zen 5).
import { TASK_PARKED_OFFSET, TASK_PIPE_DESCRIPTOR_OFFSET, TASK_PIPE_INODE_OFFSET } from "../../assembly/layout.js";
import type { Bell, Futex } from "../kernel/kernel.js";
import { nodeModule } from "../support/host.js";
import { every } from "../support/timers.js";
import type { Ffi } from "./ffi.js";
import { type FutexSetup, futexOf } from "./futex.js";
import { pipeAwake, pipeSleep, type SharedWords } from "./pipe-words.js";

type Net = typeof import("node:net");
const fs = (): typeof import("node:fs") => nodeModule("fs") as typeof import("node:fs");

/**
 * Milliseconds between two looks whether the flag of a sleeper is down, see LONG_SLEEP_MS. A turn of an idle event loop takes
 * 1 ms of a core, cold: with 2,000, 8 idle processes took 43 ms in 10 s.
 */
const LOOK_MS = 10_000;
/** Bytes that one read takes out of the pipe. Each ring writes one. */
const READ_BYTES = 64;

/** futexOf() for a thread that also sleeps without blocking. */
export function futexWithBells(setup: FutexSetup, shared: WebAssembly.Memory, sleepMs?: number): Futex {
  return futexOf(setup, shared, sleepMs, (ffi, words, slot) => new PipeBell(ffi, words, slot));
}

/** The bell of one thread. Between two waits it uses no time. */
export class PipeBell implements Bell {
  readonly #words: SharedWords;
  readonly #slot: number;
  readonly #pipe: InstanceType<Net["Socket"]>;
  readonly #stopLooking: () => void;
  #rung: (() => void) | undefined;

  /** @param slot of the task @throws PAMIR_NO_PROCESSES if no descriptor is left */
  constructor(ffi: Ffi, words: SharedWords, slot: number) {
    this.#words = words;
    this.#slot = slot;
    const { Socket } = nodeModule("net") as Net;
    const fd = ffi.makePipe();
    words.storeWord(slot + TASK_PIPE_DESCRIPTOR_OFFSET, fd);
    words.storeWord(slot + TASK_PIPE_INODE_OFFSET, fs().fstatSync(fd).ino);
    const onread = {
      buffer: new Uint8Array(READ_BYTES),
      callback: (): boolean => {
        this.#wake();
        return true;
      },
    };
    // The socket owns the descriptor: it closes it also if the thread is terminated.
    const options = { fd, readable: true, writable: false, onread } as ConstructorParameters<Net["Socket"]>[0];
    this.#pipe = new Socket(options);
    this.#pipe.unref();
    this.#stopLooking = every(LOOK_MS, () => {
      if (words.loadWord(slot + TASK_PARKED_OFFSET) === 0) this.#wake();
    });
  }

  wait(seen: number): Promise<void> {
    const isRung = pipeSleep(this.#words, this.#slot, seen, process.pid);
    return new Promise((resolve) => {
      this.#rung = resolve;
      if (isRung) this.#wake();
    });
  }

  #wake(): void {
    if (this.#rung === undefined) return;
    pipeAwake(this.#words, this.#slot);
    const rung = this.#rung;
    this.#rung = undefined;
    rung();
  }

  close(): void {
    this.#stopLooking();
    this.#wake();
    this.#pipe.destroy();
  }
}
