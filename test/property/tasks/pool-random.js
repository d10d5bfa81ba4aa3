// @ts-check
// What random calls of a pool ask of its workers.
import { currentCall, proxy, serve } from "pamir/pool";

/** @param {number} milliseconds */
const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

export const api = serve({
  pid: () => process.pid,
  same: (/** @type {unknown} */ value) => value,
  list: (/** @type {unknown[]} */ ...values) => values.reverse(),
  /** @param {unknown} value @param {number} milliseconds */
  late: async (value, milliseconds) => {
    await sleep(milliseconds);
    return value;
  },
  fail: (/** @type {number} */ number) => {
    throw Object.assign(new RangeError(`failed ${number}`), { number, code: "PAMIR_SHUTDOWN" });
  },
  unclonable: (/** @type {number} */ number) => ({ number, inner: [() => number] }),
  /** @param {unknown[]} values @param {number} milliseconds */
  async *stream(values, milliseconds) {
    for (const value of values) {
      if (milliseconds > 0) await sleep(milliseconds);
      yield value;
    }
  },
  *count() {
    for (let i = 0; ; i++) yield i;
  },
  *failing(/** @type {number} */ after) {
    for (let i = 0; i < after; i++) yield i;
    throw new TypeError(`after ${after}`);
  },
  /** @param {number} count @param {(i: number) => unknown} call */
  sum: async (count, call) => {
    let sum = 0;
    for (let i = 0; i < count; i++) sum += Number(await call(i));
    return sum;
  },
  /** @param {AbortSignal} signal */
  aborted: (signal) =>
    new Promise((resolve) => {
      if (signal.aborted) resolve(signal.reason);
      else signal.addEventListener("abort", () => resolve(signal.reason));
    }),
  counter: (/** @type {number} */ value) => proxy({ add: (/** @type {number} */ by) => (value += by) }),
  untilAborted: () => {
    const { signal } = currentCall();
    return new Promise((resolve) => signal.addEventListener("abort", () => resolve(undefined)));
  },
  /** @param {number} milliseconds */
  spin: (milliseconds) => {
    const end = Date.now() + milliseconds;
    while (Date.now() < end);
  },
  /** @param {string} how @param {() => unknown} begun */
  die: async (how, begun) => {
    await begun();
    if (how === "exit") process.exit(3);
    if (how === "throw")
      setImmediate(() => {
        throw new Error("outside of a call");
      });
    return new Promise(() => {});
  },
});
