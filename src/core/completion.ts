// Queue of due callbacks. They run in the next advance(), never inside the call that made them due.
import { promised } from "../support/promise.js";
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
  readonly #entries: Due[] = [];
  /** Number of entries that are in use, at the front: the due ones, and in a round those that have run in it. */
  length = 0;
  /** Entries that have run in this round. */
  #ran = 0;
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
    this.#activity.add(1);
    if (place === this.#entries.length) this.#entries.push({ callback: undefined, cookie: undefined, result: SUCCESS });
    const entry = this.#entries[place] as Due;
    entry.callback = callback;
    entry.cookie = cookie;
    entry.result = result;
  }

  /** An operation was done at once: its callbacks are due (C7). */
  pushDone(onLocal: Callback | undefined, onRemote: Callback | undefined, cookie: unknown): void {
    if (onLocal !== undefined) this.push(onLocal, cookie, SUCCESS);
    if (onRemote !== undefined) this.push(onRemote, cookie, SUCCESS);
  }

  /** Number of callbacks that are due; one that runs is not. */
  get due(): number {
    return this.length - this.#ran;
  }

  /** Runs the due callbacks in order. Callbacks that become due meanwhile wait for the next round. Returns how many ran. */
  run(errors: unknown[]): number {
    const count = this.length;
    for (let place = 0; place < count && !this.#stopped; place++) {
      this.#ran = place + 1;
      const entry = this.#entries[place] as Due;
      const { cookie, result } = entry;
      const callback = entry.callback as Callback;
      entry.callback = undefined;
      entry.cookie = undefined;
      try {
        const returned: unknown = callback(cookie, result);
        if (returned !== undefined) promised(returned);
      } catch (error) {
        errors.push(error);
      }
    }
    const rest = this.length - count;
    // Move the remaining entries to the front, in exchange for empty ones.
    for (let place = 0; place < rest; place++) {
      const entry = this.#entries[place] as Due;
      this.#entries[place] = this.#entries[place + count] as Due;
      this.#entries[place + count] = entry;
    }
    this.#ran = 0;
    this.length = rest;
    this.#activity.add(-count);
    return count;
  }
}
