// Times of tasks, as piscina sums them up.
import { createHistogram, type RecordableHistogram } from "node:perf_hooks";

/** Times in milliseconds: their mean, spread and ends, and how long a part of the tasks took at most (`p99`: 99 %). */
export interface HistogramSummary {
  readonly average: number;
  readonly mean: number;
  readonly stddev: number;
  readonly min: number;
  readonly max: number;
  readonly p0_001: number;
  readonly p0_01: number;
  readonly p0_1: number;
  readonly p1: number;
  readonly p2_5: number;
  readonly p10: number;
  readonly p25: number;
  readonly p50: number;
  readonly p75: number;
  readonly p90: number;
  readonly p97_5: number;
  readonly p99: number;
  readonly p99_9: number;
  readonly p99_99: number;
  readonly p99_999: number;
}

const PERCENTS = [0.001, 0.01, 0.1, 1, 2.5, 10, 25, 50, 75, 90, 97.5, 99, 99.9, 99.99, 99.999];

/** Histogram of times, in microseconds. */
export class Times {
  readonly #histogram: RecordableHistogram = createHistogram();

  add(milliseconds: number): void {
    this.#histogram.record(Math.max(1, Math.trunc(milliseconds * 1000)));
  }

  get count(): number {
    return this.#histogram.count;
  }

  get summary(): HistogramSummary {
    const { mean, stddev, min, max } = this.#histogram;
    const percentiles = PERCENTS.map((percent) => [
      `p${String(percent).replace(".", "_")}`,
      this.#histogram.percentile(percent) / 1000,
    ]);
    const ends = { stddev: stddev / 1000, min: min / 1000, max: max / 1000 };
    return { average: mean / 1000, mean: mean / 1000, ...ends, ...Object.fromEntries(percentiles) } as HistogramSummary;
  }

  reset(): void {
    this.#histogram.reset();
  }
}
