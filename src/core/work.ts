// The work queue: functions from post(). Each runs once a round; one that returns EAGAIN stays and holds up no other.
import { EAGAIN } from "./result.js";

/** A posted function; `EAGAIN` means: again at the next advance. */
export type Work = () => number | undefined | void;

export class WorkQueue {
  #waiting: Work[] = [];
  #fresh = false;

  /** Whether there is work that has not run yet; the rest returned EAGAIN and waits for something. */
  get fresh(): boolean {
    return this.#fresh;
  }

  get length(): number {
    return this.#waiting.length;
  }

  push(work: Work): void {
    this.#waiting.push(work);
    this.#fresh = true;
  }

  /** Runs each once, in the order posted. Returns how many of them are done. */
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
    // Those that stay keep their places before what was posted meanwhile.
    if (again.length > 0) this.#waiting = [...again, ...this.#waiting];
    return round.length - again.length;
  }
}
