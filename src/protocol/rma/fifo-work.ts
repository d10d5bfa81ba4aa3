// Counts the operations of one injection FIFO that are not over: pending, left or waiting.
import type { Activity } from "../../core/progress.js";

export class FifoWork {
  /** At 0 there is nothing to look after. Hot paths read the field. */
  busy = 0;
  readonly #all: { busy: number };
  readonly #activity: Activity;

  /** @param all the sum of the context's FIFOs */
  constructor(all: { busy: number }, activity: Activity) {
    this.#all = all;
    this.#activity = activity;
  }

  /** There is more to do, or less, by `change`. */
  add(change: number): void {
    this.busy += change;
    this.#all.busy += change;
    this.#activity.add(change);
  }
}
