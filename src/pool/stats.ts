// Times in powers of two: what a pool says of waiting and running.

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
