// The time of a node's sessions. Clocks are set, and machines are suspended: neither means that other nodes are silent.

/** Microseconds by which a node may miss a deadline. Beyond that, the node itself was suspended. */
const OVERDUE_MAX = 1_000_000;

/** A monotonic clock that stops while the node misses a deadline: suspension does not count as silence of other nodes. */
export class Time {
  readonly #clock: () => number;
  #lastReading: number;
  #now: number;
  /** The next deadline, by this clock. */
  #deadline = Number.POSITIVE_INFINITY;

  /** @param clock returns microseconds, and may jump in both directions */
  constructor(clock: () => number) {
    this.#clock = clock;
    this.#lastReading = clock();
    this.#now = this.#lastReading;
  }

  /** Microseconds. */
  now(): number {
    const reading = this.#clock();
    const now = this.#now + Math.max(0, reading - this.#lastReading);
    this.#lastReading = reading;
    this.#now = now > this.#deadline + OVERDUE_MAX ? Math.max(this.#now, this.#deadline) : now;
    return this.#now;
  }

  /** Sets the next deadline. @returns that deadline by the underlying clock */
  next(deadline: number): number {
    this.#deadline = deadline;
    return this.at(deadline);
  }

  /** A time of this clock by the underlying clock. */
  at(time: number): number {
    return time - this.#now + this.#lastReading;
  }
}
