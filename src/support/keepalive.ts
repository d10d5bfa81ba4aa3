// Keeps a Node process or worker running while something is awaited: a pending Atomics.waitAsync alone does not.

import { isNode } from "./host.js";
import { hold } from "./timers.js";

/** Counts the waits in progress; while there are any, and unless `unref`ed, the event loop has something to wait for. */
export class Keepalive {
  /** Elsewhere nothing ends while something is awaited, and a timer costs microseconds. */
  readonly #isNeeded = isNode();
  #waits = 0;
  #referenced = true;
  #isHeld = false;
  #timer: ReturnType<typeof hold> | undefined;

  begin(): void {
    this.#waits++;
    if (!this.#isHeld) this.#update();
  }

  end(): void {
    this.#waits--;
    if (this.#isHeld) this.#update();
  }

  /** Whether waits keep the thread running from now on. */
  set referenced(value: boolean) {
    this.#referenced = value;
    this.#update();
  }

  #update(): void {
    const needed = this.#isNeeded && this.#waits > 0 && this.#referenced;
    if (needed === this.#isHeld) return;
    this.#isHeld = needed;
    // One timer, referenced or not: to make one for each sleep and clear it again is slow where caches are cold (a call
    // while both sides sleep, neither blocking: 225 → 165 µs in a process that does nothing else).
    this.#timer ??= hold();
    if (needed) this.#timer.ref();
    else this.#timer.unref();
  }
}
