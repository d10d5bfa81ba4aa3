// @ts-check
// The part of the time axis that is seen: it is scrubbed and zoomed within what is there. Times are microseconds.

/** The least that a picture shows: 100 ns. */
export const SPAN_MIN = 0.1;

export class TimeRange {
  from = 0;
  to = 1000;
  /** What there is. */
  begin = 0;
  end = 1000;

  get span() {
    return this.to - this.from;
  }

  /** @param {number} begin @param {number} end */
  limit(begin, end) {
    this.begin = begin;
    this.end = Math.max(end, begin + SPAN_MIN);
    this.show(this.from, this.to);
  }

  /** Shows a range, moved and cut so that it lies within what there is. @param {number} from @param {number} to */
  show(from, to) {
    const span = Math.min(Math.max(to - from, SPAN_MIN), this.end - this.begin);
    this.from = Math.min(Math.max(from, this.begin), this.end - span);
    this.to = this.from + span;
  }

  /** Moves it by a share of its span; to the left by a negative one. @param {number} share */
  scrub(share) {
    const by = share * this.span;
    this.show(this.from + by, this.to + by);
  }

  /** Makes the span `factor` times as long, around a place in the picture from 0 to 1. @param {number} factor @param {number} [at] */
  zoom(factor, at = 0.5) {
    const fixed = this.from + at * this.span;
    const span = Math.min(Math.max(this.span * factor, SPAN_MIN), this.end - this.begin);
    this.show(fixed - at * span, fixed + (1 - at) * span);
  }

  fit() {
    this.show(this.begin, this.end);
  }
}

/** A round number of 1, 2 or 5 times a power of ten, at least as large as a value. @param {number} least */
export function roundUp(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((times) => times * power).find((value) => value >= least * 0.999999) ?? 10 * power;
}

/** Times of the axis' labels. @param {TimeRange} range @param {number} most labels */
export function ticksOf({ from, to }, most) {
  const step = roundUp((to - from) / Math.max(1, most));
  const first = Math.ceil(from / step);
  const count = Math.max(0, Math.floor(to / step) - first + 1);
  return { step, times: Array.from({ length: count }, (_, place) => (first + place) * step) };
}

const UNITS = /** @type {const} */ ([
  [1e6, "s"],
  [1e3, "ms"],
  [1, "µs"],
  [1e-3, "ns"],
]);

/** A time of the axis, to the digits that a step needs. @param {number} time @param {number} step */
export function timeText(time, step) {
  const [size, unit] = UNITS.slice(0, 3).find(([size]) => step * 1000 >= size) ?? UNITS[2];
  const digits = Math.max(0, Math.ceil(-Math.log10(step / size) - 1e-9));
  return `${(time / size).toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits })} ${unit}`;
}

/** A duration, to three digits. @param {number} duration */
export function durationText(duration) {
  const [size, unit] = UNITS.find(([size]) => duration >= size) ?? UNITS[3];
  return `${Number((duration / size).toPrecision(3)).toLocaleString("en")} ${unit}`;
}
