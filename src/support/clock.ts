// Time, in one place: whoever needs it is handed a Clock, so that a simulation can own it.

export interface Clock {
  /** Milliseconds, monotonic, from an arbitrary start. */
  now(): number;
}

export const systemClock: Clock = { now: () => performance.now() };
