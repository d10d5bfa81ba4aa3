// The work queue: functions from post(). Each runs once a round. A function that returns EAGAIN stays, and delays no other.
import { Activity } from "./progress.js";
import { EAGAIN } from "./result.js";

/** A posted function. It returns EAGAIN to run again in the next advance(). */
export type Work = () => number | undefined | void;

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
    this.#activity.busy++;
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
        if (work() === EAGAIN) again.push(work);
      } catch (error) {
        errors.push(error);
      }
    }
    // Functions that stay keep their place before those posted meanwhile.
    if (again.length > 0) this.#waiting = [...again, ...this.#waiting];
    const done = round.length - again.length;
    this.#activity.busy -= done;
    return done;
  }
}
