// Time as a node's sessions see it. Clocks are set, and machines sleep: neither is a sign that others say nothing.

/** Microseconds by which a node may be late for what is due; beyond, it was not there at all. */
const LATE_MAX = 1_000_000;

/** A clock that never goes back, and for which the time stands still while a node does not do what is due. */
export class Time {
  readonly #clock: () => number;
  #last: number;
  #now: number;
  /** When something has to be done, by this clock. */
  #due = Number.POSITIVE_INFINITY;

  constructor(clock: () => number) {
    this.#clock = clock;
    this.#last = clock();
    this.#now = this.#last;
  }

  /** Microseconds. */
  now(): number {
    const read = this.#clock();
    const now = this.#now + Math.max(0, read - this.#last);
    this.#last = read;
    this.#now = now > this.#due + LATE_MAX ? Math.max(this.#now, this.#due) : now;
    return this.#now;
  }

  /** Something is due next. @returns when that is by the clock that it was given */
  next(due: number): number {
    this.#due = due;
    return due - this.#now + this.#last;
  }
}
