// @ts-check
// The functions of a pool's worker, for tests.
import { stat } from "node:fs/promises";
import { currentCall, proxy, serve } from "pamir/pool";

/** @param {number} milliseconds */
const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
/** Resolves once a call was given up. @param {{ signal: AbortSignal }} call */
const abortOf = ({ signal }) =>
  new Promise((resolve) => {
    if (signal.aborted) resolve(undefined);
    else signal.addEventListener("abort", resolve);
  });
let calls = 0;
/** Milliseconds of the last chain(); 0: it runs. */
let chained = 0;
const STEPS = {
  timers: () => sleep(1),
  reads: () => stat(new URL(import.meta.url)),
  microtasks: () => Promise.resolve(),
};
let stopped = 0;
const badEnd = () => {
  throw new Error("a finally's own");
};
/** @type {string | undefined} */
let lastError;
/** @type {(() => unknown) | undefined} */
let kept;

export const api = serve({
  echo: (/** @type {unknown[]} */ ...values) => values,
  same: (/** @type {unknown} */ value) => value,
  square: (/** @type {number} */ number) => number ** 2,
  count: () => ++calls,
  stopped: () => stopped,
  /** Goes on behind its answer, by one step after the other. @param {keyof typeof STEPS} kind @param {number} count */
  chain: (kind, count) => {
    chained = 0;
    const start = performance.now();
    void (async () => {
      for (let i = 0; i < count; i++) await STEPS[kind]();
      chained = performance.now() - start;
    })();
  },
  chained: () => chained,
  /** Milliseconds of some steps on other threads, which Node does not list. @param {number} count */
  hash: async (count) => {
    const start = performance.now();
    for (let i = 0; i < count; i++) await crypto.subtle.digest("SHA-256", new Uint8Array(8));
    return performance.now() - start;
  },
  pid: () => process.pid,
  fail: () => {
    throw Object.assign(new RangeError("on purpose"), { detail: { seven: 7 } });
  },
  /** @param {() => unknown} call */
  dieAfter: async (call) => {
    await call();
    process.exit(1);
  },
  exit: (/** @type {number} */ code) => process.exit(code),
  *numbers(/** @type {number} */ count) {
    try {
      for (let i = 0; i < count; i++) yield i;
    } finally {
      stopped++;
    }
  },
  async *slowly(/** @type {number} */ count) {
    for (let i = 0; i < count; i++) {
      await sleep(i === 0 ? 0 : 5);
      yield i;
    }
  },
  *frames(/** @type {number} */ count, /** @type {number} */ bytes) {
    for (let i = 0; i < count; i++) yield new Uint8Array(bytes).fill(i);
  },
  /** Gives bytes that change afterwards. */
  changing: (/** @type {number} */ count, /** @type {number} */ byte) => {
    const bytes = new Uint8Array(count).fill(byte);
    queueMicrotask(() => bytes.fill(255));
    return bytes;
  },
  /** Promises of a sync generator, the last of which rejects. @param {number} count */
  *promises(count) {
    try {
      for (let i = 0; i < count; i++) yield i % 2 === 0 ? Promise.resolve(i) : sleep(1).then(() => i);
      yield Promise.reject(new Error("a promise's own"));
    } finally {
      stopped++;
    }
  },
  /** Numbers, of which one is a function instead. */
  *refused(/** @type {number} */ count, /** @type {number} */ place) {
    for (let i = 0; i < count; i++) yield i === place ? () => i : i;
  },
  /** An iterator whose second result is no object. @returns {AsyncIterable<number>} */
  malformed: () => {
    let count = 0;
    const next = async () => /** @type {any} */ (count++ === 0 ? { done: false, value: 0 } : 5);
    return { [Symbol.asyncIterator]: () => ({ next }) };
  },
  /** A generator whose end fails. @param {number} count */
  *endsBadly(count) {
    try {
      for (let i = 0; i < count; i++) yield i;
    } finally {
      stopped++;
      badEnd();
    }
  },
  /** The same, at a later time. */
  async *endsBadlyLater() {
    try {
      for (let i = 0; ; i++) yield i;
    } finally {
      await sleep(1);
      stopped++;
      badEnd();
    }
  },
  *failing() {
    yield 1;
    throw new Error("in mid-stream");
  },
  /** @param {number} milliseconds @returns {Promise<string>} how it ended */
  untilAborted: (milliseconds) => {
    const { signal } = currentCall();
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve("late"), milliseconds);
      signal.addEventListener("abort", () => {
        stopped++;
        clearTimeout(timer);
        resolve("aborted");
      });
    });
  },
  spin: (/** @type {number} */ milliseconds) => {
    const end = Date.now() + milliseconds;
    while (Date.now() < end);
    return "spun";
  },
  /** @param {number} count @param {(i: number) => Promise<number>} call */
  sumOf: async (count, call) => {
    let sum = 0;
    for (let i = 0; i < count; i++) sum += await call(i);
    return sum;
  },
  /** @param {number} count @param {(i: number) => unknown} call @param {AbortSignal} signal */
  async *told(count, call, signal) {
    for (let i = 0; i < count && !signal.aborted; i++) yield await call(i);
    yield signal.aborted ? `aborted: ${signal.reason}` : "over";
  },
  /** A generator's signal, and how long it goes on once its reader has left. @param {number} milliseconds */
  async *lingering(milliseconds) {
    const { signal } = currentCall();
    try {
      for (let i = 0; ; i++) {
        yield i;
        await sleep(1);
      }
    } finally {
      if (signal.aborted) stopped++;
      await sleep(milliseconds);
    }
  },
  /** Begins once its reader has left. */
  async *startsLate() {
    await abortOf(currentCall());
    yield 1;
  },
  /** Gives an iterator once its reader has left. @returns {Promise<Iterable<number>>} */
  givesLate: async () => {
    await abortOf(currentCall());
    return api.numbers(1);
  },
  sleep,
  throwCode: (/** @type {string} */ code) => {
    throw Object.assign(new Error("a function's own"), { code });
  },
  /** @param {unknown[]} args */
  isAborted: (...args) =>
    new Promise((resolve) => {
      const signal = /** @type {AbortSignal} */ (args.at(-1));
      const answer = () => resolve(String(signal.reason?.message ?? signal.reason));
      if (signal.aborted) answer();
      else signal.addEventListener("abort", answer);
    }),
  /** @param {{ add(by: number): unknown }} object */
  use: async (object) => [await object.add(1), object],
  /** @param {() => unknown} call */
  keep: (call) => {
    kept = call;
  },
  kept: () => kept,
  callKept: () => kept?.(),
  /** Calls, and awaits nothing. */
  tellKept: () => void kept?.(),
  /** Calls back, again once its caller has given it up, and awaits nothing then. @param {(text: string) => unknown} call */
  tellsLate: async (call) => {
    const aborted = abortOf(currentCall());
    await call("begun");
    await aborted;
    call("late");
  },
  /** Calls back, awaits nothing of that, and ends later. @param {() => unknown} call */
  tellsOften: async (call) => {
    for (let i = 0; i < 3; i++) call();
    await sleep(100);
  },
  /** Awaits a callback, and keeps how that has ended. @param {() => unknown} call */
  awaits: async (call) => {
    try {
      await call();
    } catch (thrown) {
      const error = /** @type {{ code: string, message: string, cause: { code: string, cause: Error } }} */ (thrown);
      lastError = `${error.code} ${error.message} ${error.cause?.code} ${error.cause?.cause?.message}`;
    }
  },
  /** Awaits a callback between its values. @param {() => unknown} call */
  async *awaiting(call) {
    for (;;) {
      yield 1;
      await call();
    }
  },
  /** Lends a function that throws. @param {(back: () => Promise<unknown>) => unknown} call */
  lends: (call) =>
    call(() => {
      throw new Error("a callback's own");
    }),
  /** @param {(text: string) => unknown} call */
  later: (call) => {
    setTimeout(() => void Promise.resolve(call("too late")).catch((error) => (lastError = error.message)), 20);
  },
  lastError: () => lastError,
  /** @param {((...args: unknown[]) => unknown) | { add(...args: unknown[]): unknown }} call */
  tellsWrong: (call) => (typeof call === "function" ? call : call.add)(1, { a: [Symbol("s")] }),
  unclonable: () => ({ run: () => 1 }),
  *unclonables() {
    yield { run: () => 1 };
  },
  /** @param {AbortSignal} signal */
  reasonOf: (signal) =>
    new Promise((resolve) => {
      if (signal.aborted) resolve(String(signal.reason));
      else signal.addEventListener("abort", () => resolve(String(signal.reason)));
    }),
  counter: () => {
    let value = 0;
    return proxy({ add: (/** @type {number} */ by) => (value += by) });
  },
  /** @param {{ run: (n: number) => Promise<number> }} object */
  callObject: (object) => object.run(20),
});
