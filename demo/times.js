// @ts-check
// Times: the step of this thread's clock, and what they are called.

/** The step of this thread's clock in ms, as far as it can be seen in a moment. */
export function tickOf() {
  let least = Number.POSITIVE_INFINITY;
  let last = performance.now();
  for (let ticks = 0, end = last + 3; last < end && ticks < 8; ) {
    const now = performance.now();
    if (now > last) {
      least = Math.min(least, now - last);
      ticks++;
    }
    last = now;
  }
  return Number.isFinite(least) ? least : 1;
}

/** To three digits. @param {number} nanoseconds */
export function timeText(nanoseconds) {
  if (nanoseconds < 1000) return `${nanoseconds.toPrecision(3)} ns`;
  return nanoseconds < 1e6 ? `${(nanoseconds / 1000).toPrecision(3)} µs` : `${(nanoseconds / 1e6).toPrecision(3)} ms`;
}
