// The doorbell of a thread that must not block, on hosts without Atomics.waitAsync. A worker sleeps on the bell instead, and
// posts a message when the bell rings.
import { doorbellSource } from "../kernel/atomics.js";
import type { Bell } from "../kernel/kernel.js";

export class Doorbell implements Bell {
  readonly #worker: Worker;
  #rung: (() => void) | undefined;

  /** @param index of the bell in the memory's words */
  constructor(words: Int32Array, index: number) {
    const url = URL.createObjectURL(new Blob([doorbellSource], { type: "text/javascript" }));
    this.#worker = new Worker(url, { name: "pamir doorbell" });
    URL.revokeObjectURL(url);
    this.#worker.onmessage = () => this.#rung?.();
    this.#worker.postMessage({ words, index });
  }

  /** Resolves once the bell no longer reads `seen`. One wait at a time. */
  wait(seen: number): Promise<void> {
    this.#worker.postMessage(seen);
    return new Promise((resolve) => {
      this.#rung = resolve;
    });
  }

  /** Ends the worker, and resolves a wait that is under way. */
  close(): void {
    this.#worker.terminate();
    this.#rung?.();
  }
}
