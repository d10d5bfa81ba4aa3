// @ts-check
// Functions that a page calls by name.
import { currentCall, proxy, serve } from "pamir/pool";

let stopped = 0;

export const api = serve({
  same: (/** @type {unknown} */ value) => value,
  square: (/** @type {number} */ number) => number ** 2,
  fail: () => {
    throw Object.assign(new RangeError("on purpose"), { detail: 7 });
  },
  *numbers(/** @type {number} */ count) {
    try {
      for (let i = 0; i < count; i++) yield i;
    } finally {
      stopped++;
    }
  },
  stopped: () => stopped,
  /** @param {number} count @param {(i: number) => Promise<number>} call */
  sumOf: async (count, call) => {
    let sum = 0;
    for (let i = 0; i < count; i++) sum += await call(i);
    return sum;
  },
  counter: (/** @type {number} */ value) => proxy({ add: (/** @type {number} */ by) => (value += by) }),
  untilAborted: () => {
    const { signal } = currentCall();
    return new Promise((resolve) => signal.addEventListener("abort", () => resolve(stopped++)));
  },
  /** @param {AbortSignal} signal */
  reasonOf: (signal) =>
    new Promise((resolve) => {
      if (signal.aborted) resolve(signal.reason);
      else signal.addEventListener("abort", () => resolve(signal.reason));
    }),
  spin: () => {
    for (;;);
  },
});
