// Time, in one place: code that needs it gets a Clock, so that a simulation can own it.
import { clockOrigin } from "./host.js";

export interface Clock {
  /** Milliseconds, monotonic, from an arbitrary start. */
  now(): number;
  /** What makes it a time that all threads of the machine share: milliseconds, to be added. */
  readonly origin: number;
}

let origin: number | undefined;

export const systemClock: Clock = {
  now: () => performance.now(),
  get origin() {
    origin ??= clockOrigin();
    return origin;
  },
};

/** A time stamp, which other threads understand: milliseconds, modulo 2^32. `now` is the clock's. */
export function stampOf(clock: Clock, now: number): number {
  return (clock.origin + now) >>> 0;
}
