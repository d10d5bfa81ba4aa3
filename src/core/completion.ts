// Queue of due callbacks. They run in the next advance(), never inside the call that made them due.
import { Activity } from "./progress.js";
import { type Callback, type Result, SUCCESS } from "./result.js";

/** A callback that is due. */
interface Due {
  callback: Callback | undefined;
  cookie: unknown;
  result: Result;
}

/** A queue that reuses its entries, so that an operation with callbacks makes no garbage. */
export class CompletionQueue {
  readonly #due: Due[] = [];
  /** Number of due entries. They stand at the front; the entries behind them are empty. */
  length = 0;
  #stopped = false;
  readonly #activity: Activity;

  constructor(activity = new Activity()) {
    this.#activity = activity;
  }

  /** Stops all callbacks: the context closes. */
  stop(): void {
    this.#stopped = true;
  }

  push(callback: Callback, cookie: unknown, result: Result): void {
    const place = this.length++;
    this.#activity.busy++;
    if (place === this.#due.length) this.#due.push({ callback: undefined, cookie: undefined, result: SUCCESS });
    const entry = this.#due[place] as Due;
    entry.callback = callback;
    entry.cookie = cookie;
    entry.result = result;
  }

  /** Runs the due callbacks in order. Callbacks that become due meanwhile wait for the next round. Returns how many ran. */
  run(errors: unknown[]): number {
    const count = this.length;
    for (let place = 0; place < count && !this.#stopped; place++) {
      const entry = this.#due[place] as Due;
      const { cookie, result } = entry;
      const callback = entry.callback as Callback;
      entry.callback = undefined;
      entry.cookie = undefined;
      try {
        callback(cookie, result);
      } catch (error) {
        errors.push(error);
      }
    }
    const rest = this.length - count;
    // Move the remaining entries to the front, in exchange for empty ones.
    for (let place = 0; place < rest; place++) {
      const entry = this.#due[place] as Due;
      this.#due[place] = this.#due[place + count] as Due;
      this.#due[place + count] = entry;
    }
    this.length = rest;
    this.#activity.busy -= count;
    return count;
  }
}
