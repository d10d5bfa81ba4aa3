// How a thread measures: the clock and its cost, percentiles of batches, binding to a processor, garbage collections.
import { execFileSync } from "node:child_process";
import { readlinkSync } from "node:fs";
import { PerformanceObserver } from "node:perf_hooks";
import { needPath } from "../../src/cli/commands.js";
import { pause } from "../../src/support/timers.js";
import { CACHE_LINE, type Figures, type PerfWork, SAMPLES_MAX, WINDOW } from "./work.js";

/** Nanoseconds, monotonic. */
export function now(): number {
  return performance.now() * 1e6;
}

/** What reading the clock once costs: median of 1001. */
export function timerCost(): number {
  const samples = new Float64Array(1001);
  for (let round = 0; round < 20; round++) {
    let last = now();
    for (let i = 0; i < samples.length; i++) {
      const next = now();
      samples[i] = next - last;
      last = next;
    }
  }
  return samples.sort()[500] as number;
}

/** Binds this thread to its processor; without a list it stays free. */
export function pinThread(cpus: readonly number[], thread: number): void {
  const cpu = cpus[thread];
  if (cpu === undefined) return;
  const id = readlinkSync("/proc/thread-self").split("/").pop() as string;
  execFileSync(needPath("taskset"), ["-pc", String(cpu), id], { stdio: "ignore" });
}

/** Takes the time of batches one behind the other, so that no stall falls between two of them. */
export class Stopwatch {
  readonly #samples: Float64Array;
  readonly #each: number;
  readonly #cost: number;
  readonly #warm: number;
  readonly #end: number;
  readonly #begin: number;
  #start: number;
  #taken = 0;

  /** @param each what one batch is divided by: a round trip counts twice */
  constructor({ seconds, warmUp }: Pick<PerfWork, "seconds" | "warmUp">, each: number) {
    this.#samples = new Float64Array(SAMPLES_MAX);
    this.#each = each;
    this.#cost = timerCost();
    this.#begin = now();
    this.#warm = this.#begin + warmUp * 1e9;
    this.#end = this.#begin + (warmUp + seconds) * 1e9;
    this.#start = now();
  }

  /** Ends a batch and begins the next; false: that was the last. */
  lap(): boolean {
    const over = now();
    if (over >= this.#warm) this.#samples[this.#taken++] = (over - this.#start - this.#cost) / this.#each;
    this.#start = over;
    return (over < this.#end || this.#taken === 0) && this.#taken < SAMPLES_MAX;
  }

  figures(): Figures {
    return percentiles(this.#samples.subarray(0, this.#taken));
  }
}

/** The percentiles of samples, which it sorts. */
export function percentiles(samples: Float64Array): Figures {
  const sorted = samples.sort();
  const rank = (part: number): number => sorted[Math.round(part * (sorted.length - 1))] as number;
  return { p50_ns: rank(0.5), p90_ns: rank(0.9), p99_ns: rank(0.99), p999_ns: rank(0.999) };
}

/** Mean of the middle half: finer than the clock, whose steps are 10 ns here and there, and deaf to stalls. */
export function midmean(samples: number[]): number {
  const sorted = samples.toSorted((a, b) => a - b);
  const middle = sorted.slice(sorted.length >>> 2, sorted.length - (sorted.length >>> 2));
  return middle.reduce((sum, sample) => sum + sample, 0) / middle.length;
}

/** Nanoseconds from one look at the clock to the next: reading it costs two messages, and makes a number on the heap. */
const LOOK_EVERY = 500_000;

/** Counts windows, and looks at the clock now and then. */
export class RateMeter {
  readonly #seconds: number;
  readonly #least: number;
  readonly #warm: number;
  /** Windows between two looks, and since the last. */
  #stride = 1;
  #windows = 0;
  #start = 0;
  #counted = 0;
  #over = 0;
  /** Called once, when the warm-up is over. */
  onWarm: (() => void) | undefined;

  constructor({ seconds, warmUp, leastMessages }: PerfWork) {
    this.#seconds = seconds;
    this.#least = leastMessages;
    this.#over = now();
    this.#warm = this.#over + warmUp * 1e9;
  }

  /** After a window; false: that was the last. */
  window(messages = WINDOW): boolean {
    if (++this.#windows < this.#stride) return true;
    const last = this.#over;
    this.#over = now();
    const windows = this.#windows;
    this.#windows = 0;
    if (this.#start !== 0) {
      this.#counted += windows * messages;
      return this.#over < this.#start + this.#seconds * 1e9 || this.#counted < this.#least;
    }
    if (this.#over >= this.#warm) {
      this.onWarm?.();
      this.#start = now();
    } else if (this.#over - last < LOOK_EVERY) {
      this.#stride *= 2;
    }
    return true;
  }

  figures(): Figures {
    return { messages_per_s: (this.#counted / (this.#over - this.#start)) * 1e9, messages: this.#counted };
  }
}

/** Reads one byte of every cache line, so that the data has arrived here. Four at a time: as many are under way then as
 *  in the loop in C. One at a time costs 0.55 ns a line by itself, and a fifth of the bandwidth at 64 KiB. */
export function touch(bytes: Uint8Array, offset: number, length: number): number {
  const end = offset + length;
  let a = 0;
  let b = 0;
  let c = 0;
  let d = 0;
  let at = offset;
  for (; at < end - 3 * CACHE_LINE; at += 4 * CACHE_LINE) {
    a += bytes[at] as number;
    b += bytes[at + CACHE_LINE] as number;
    c += bytes[at + 2 * CACHE_LINE] as number;
    d += bytes[at + 3 * CACHE_LINE] as number;
  }
  for (; at < end; at += CACHE_LINE) a += bytes[at] as number;
  return a + b + c + d;
}

/** Counts the garbage collections of this thread between begin() and end(). */
export class CollectionCounter {
  readonly #times: number[] = [];
  readonly #observer = new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) this.#times.push(entry.startTime);
  });
  #begin = Number.POSITIVE_INFINITY;
  #end = Number.POSITIVE_INFINITY;

  constructor() {
    this.#observer.observe({ entryTypes: ["gc"] });
  }

  begin(): void {
    this.#begin = performance.now();
  }

  end(): void {
    this.#end = performance.now();
  }

  /** The entries come through the event loop, which stands still while the thread measures. */
  async count(): Promise<number> {
    await pause(20);
    this.#observer.disconnect();
    return this.#times.filter((time) => time >= this.#begin && time <= this.#end).length;
  }
}
