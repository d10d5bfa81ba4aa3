// Callbacks that wait for the next advance: they never run inside the call that made them due.
import type { Callback, Result } from "./result.js";

/** A queue in three parallel arrays, so that a message with callbacks makes no garbage. */
export class CompletionQueue {
  readonly #callbacks: (Callback | undefined)[] = [];
  readonly #cookies: unknown[] = [];
  readonly #results: Result[] = [];
  #length = 0;

  get length(): number {
    return this.#length;
  }

  push(callback: Callback, cookie: unknown, result: Result): void {
    const place = this.#length++;
    this.#callbacks[place] = callback;
    this.#cookies[place] = cookie;
    this.#results[place] = result;
  }

  /** Calls what is due now, in order; what these callbacks make due waits for the next round. Returns how many. */
  run(errors: unknown[]): number {
    const due = this.#length;
    for (let place = 0; place < due; place++) {
      const callback = this.#callbacks[place] as Callback;
      const cookie = this.#cookies[place];
      this.#callbacks[place] = undefined;
      this.#cookies[place] = undefined;
      try {
        callback(cookie, this.#results[place] as Result);
      } catch (error) {
        errors.push(error);
      }
    }
    const rest = this.#length - due;
    this.#callbacks.copyWithin(0, due, this.#length);
    this.#cookies.copyWithin(0, due, this.#length);
    this.#results.copyWithin(0, due, this.#length);
    this.#length = rest;
    return due;
  }
}
