// The work queue: functions from post(). Each runs once a round. A function that returns EAGAIN stays, and delays no other.
import { promised } from "../support/promise.js";
import { Activity } from "./progress.js";
import { EAGAIN } from "./result.js";

/** A posted function. It returns EAGAIN, or a promise of EAGAIN, to run again in the next advance(). */
export type Work = () => number | undefined | void | PromiseLike<number | undefined | void>;

export class WorkQueue {
  #waiting: Work[] = [];
  #fresh = false;
  readonly #activity: Activity;

  constructor(activity = new Activity()) {
    this.#activity = activity;
  }

  /** Whether some work has not run yet. The rest has returned EAGAIN. */
  get fresh(): boolean {
    return this.#fresh;
  }

  get length(): number {
    return this.#waiting.length;
  }

  push(work: Work): void {
    this.#waiting.push(work);
    this.#activity.add(1);
    this.#fresh = true;
  }

  /** Runs each function once, in the order posted. Returns how many are done. */
  run(errors: unknown[]): number {
    const round = this.#waiting;
    this.#waiting = [];
    this.#fresh = false;
    const again: Work[] = [];
    for (const work of round) {
      try {
        const returned = work();
        if (returned === EAGAIN) again.push(work);
        else if (returned !== undefined) this.#await(returned, work);
      } catch (error) {
        errors.push(error);
      }
    }
    // Functions that stay keep their place before those posted meanwhile.
    if (again.length > 0) this.#waiting = [...again, ...this.#waiting];
    const done = round.length - again.length;
    this.#activity.add(-done);
    return done;
  }

  /** Takes what a function has returned, which may be a promise. Its rejection is an unhandled rejection. */
  #await(returned: unknown, work: Work): void {
    void promised(returned)?.then((settled) => {
      if (settled === EAGAIN) this.push(work);
    });
  }
}
