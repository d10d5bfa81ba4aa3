// For a thread that must not block, where Atomics.waitAsync is missing: a worker sleeps on the bell in its place, and
// posts a message when it rings.
import { doorbellSource } from "../kernel/atomics.js";

export class Doorbell {
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

  /** Resolves once the bell reads something else than `seen`. One at a time. */
  wait(seen: number): Promise<void> {
    this.#worker.postMessage(seen);
    return new Promise((resolve) => {
      this.#rung = resolve;
    });
  }

  /** Who still waits is told. */
  close(): void {
    this.#worker.terminate();
    this.#rung?.();
  }
}
