// Figures of a pool: how many calls there were, and how long they took, in powers of two.

/** How long things took, in milliseconds. */
export interface Times {
  /** How many there were. */
  readonly count: number;
  /** Their mean. */
  readonly mean: number;
  /** The longest one. */
  readonly max: number;
  /** Half of them took at most this long: a power of two of a microsecond, as the next two. */
  readonly p50: number;
  /** 99 of 100 took at most this long. */
  readonly p99: number;
  /** 999 of 1,000 took at most this long. */
  readonly p999: number;
}

const BUCKETS = 48;

/** Counts times by the power of two of their microseconds. */
export class Timer {
  readonly #buckets = new Float64Array(BUCKETS);
  #count = 0;
  #sum = 0;
  #max = 0;

  add(milliseconds: number): void {
    const bucket = Math.min(BUCKETS - 1, 32 - Math.clz32(Math.min(2 ** 31, milliseconds * 1000)));
    this.#buckets[bucket] = (this.#buckets[bucket] as number) + 1;
    this.#count++;
    this.#sum += milliseconds;
    if (milliseconds > this.#max) this.#max = milliseconds;
  }

  get times(): Times {
    const below = (part: number): number => {
      let left = part * this.#count;
      for (let bucket = 0; bucket < BUCKETS; bucket++) {
        left -= this.#buckets[bucket] as number;
        if (left <= 0 && this.#count > 0) return Math.min(this.#max, 2 ** bucket / 1000);
      }
      return this.#max;
    };
    const mean = this.#count === 0 ? 0 : this.#sum / this.#count;
    return { count: this.#count, mean, max: this.#max, p50: below(0.5), p99: below(0.99), p999: below(0.999) };
  }
}

/** What a pool does and has done. */
export interface PoolStats {
  /** Workers that serve. */
  readonly workers: number;
  /** Those of them that have nothing to do. */
  readonly idle: number;
  /** Calls that wait for a worker. */
  readonly queued: number;
  /** Calls that workers work on, also those that were given up. */
  readonly running: number;
  /** Calls that are over: each that was not refused at once, by PAMIR_CLOSED or PAMIR_QUEUE_FULL. */
  readonly completed: number;
  /** Those of them that were rejected. */
  readonly failed: number;
  /** Times from a call to its begin on a worker. */
  readonly waitTime: Times;
  /** Times from that begin to the call's end. */
  readonly runTime: Times;
}

/** Counts the calls of a pool. */
export class Tally {
  /** Calls that are not over. */
  open = 0;
  /** Calls that workers work on. */
  running = 0;
  completed = 0;
  failed = 0;
  readonly waitTime = new Timer();
  readonly runTime = new Timer();

  /** A call is over. @returns whether none is open */
  over(hasFailed: boolean): boolean {
    this.completed++;
    if (hasFailed) this.failed++;
    return --this.open === 0;
  }
}
