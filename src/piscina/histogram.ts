// Times of tasks, as piscina sums them up.
import { createHistogram, type RecordableHistogram } from "node:perf_hooks";

/** Times in milliseconds: their mean, spread and ends, and how long a part of the tasks took at most (`p99`: 99 %). */
export type HistogramSummary = {
  readonly [Name in
    | "average"
    | "mean"
    | "stddev"
    | "min"
    | "max"
    | "p0_001"
    | "p0_01"
    | "p0_1"
    | "p1"
    | "p2_5"
    | "p10"
    | "p25"
    | "p50"
    | "p75"
    | "p90"
    | "p97_5"
    | "p99"
    | "p99_9"
    | "p99_99"
    | "p99_999"]: number;
};

const PERCENTS = [0.001, 0.01, 0.1, 1, 2.5, 10, 25, 50, 75, 90, 97.5, 99, 99.9, 99.99, 99.999];

/** Histogram of times, in microseconds. */
export class TaskTimes {
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
