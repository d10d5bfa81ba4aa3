// @ts-check
// Latencies counted in steps of a logarithmic scale: percentiles without keeping the samples.

/** ns at both ends of the scale. */
const [LEAST, MOST] = [10, 1e7];
const STEPS = 240;
const PER_STEP = STEPS / Math.log(MOST / LEAST);

export class Histogram {
  counts = new Uint32Array(STEPS);
  total = 0;

  /** @param {number} nanoseconds */
  add(nanoseconds) {
    const step = Math.floor(Math.log(nanoseconds / LEAST) * PER_STEP);
    const place = Math.max(0, Math.min(STEPS - 1, step));
    this.counts[place] = /** @type {number} */ (this.counts[place]) + 1;
    this.total++;
  }

  /** Latency in ns below which this part of the samples lies, to 6 %. @param {number} part */
  percentile(part) {
    let left = part * this.total;
    for (let step = 0; step < STEPS; step++) {
      left -= /** @type {number} */ (this.counts[step]);
      if (left <= 0) return LEAST * Math.exp((step + 0.5) / PER_STEP);
    }
    return MOST;
  }

  /** Counts of `bars` equal parts of the scale. @param {number} bars */
  bars(bars) {
    const each = STEPS / bars;
    return Array.from({ length: bars }, (_, bar) =>
      this.counts.subarray(bar * each, (bar + 1) * each).reduce((sum, count) => sum + count, 0),
    );
  }
}
