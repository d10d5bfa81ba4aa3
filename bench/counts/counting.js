// @ts-check
// Counts the work of this thread between begin() and end(): imported before pamir, since the kernel calls are counted by wrapping
// what an instance exports.
import { createHook } from "node:async_hooks";
import { Session } from "node:inspector";

/**
 * @typedef {object} Counts
 * @property {number} entered functions of pamir, each as often as it was entered
 * @property {number} kernel calls into a kernel
 * @property {number} promises
 * @property {Record<string, number>} functions entered ones of pamir by name, each as often as it was entered
 */

let kernel = 0;
let promises = 0;
/** What each operation so far has counted, if they are counted one by one. @type {Counts[]} */
let laps = [];

const Native = WebAssembly.Instance;
WebAssembly.Instance = /** @type {typeof WebAssembly.Instance} */ (
  /** @type {unknown} */ (
    class {
      /** @param {WebAssembly.Module} module @param {WebAssembly.Imports} [imports] */
      constructor(module, imports) {
        const { exports } = new Native(module, imports);
        /** @type {Record<string, unknown>} */
        const counted = {};
        for (const [name, value] of Object.entries(exports))
          counted[name] = typeof value === "function" ? wrapped(value) : value;
        this.exports = counted;
      }
    }
  )
);

/** @param {Function} call */
function wrapped(call) {
  return (/** @type {unknown[]} */ ...given) => {
    kernel++;
    return call(...given);
  };
}

const hook = createHook({
  init(_, type) {
    if (type === "PROMISE") promises++;
  },
});
const session = new Session();

/** The inspector answers within the call. @param {string} method @param {object} [parameters] */
function ask(method, parameters) {
  /** @type {any} */
  let answer;
  session.post(method, parameters, (error, result) => {
    if (error) throw error;
    answer = result;
  });
  return answer;
}

/** From now on the work of this thread is counted. */
export function begin() {
  session.connect();
  ask("Profiler.enable");
  ask("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
  ask("Profiler.takePreciseCoverage");
  hook.enable();
  kernel = 0;
  promises = 0;
  laps = [];
}

/**
 * An operation is over, which is counted by itself. Where the other thread is late, a side looks and sleeps once more; the median
 * of the operations has none of this while less than half of them are so disturbed.
 */
export function lap() {
  laps.push(taken());
}

/** What was counted since begin() or lap(). @returns {Counts} */
function taken() {
  const counts = { entered: 0, kernel, promises };
  kernel = 0;
  promises = 0;
  /** @type {Record<string, number>} */
  const functions = {};
  for (const { url, functions: all } of ask("Profiler.takePreciseCoverage").result) {
    for (const { functionName, ranges } of all) {
      const { count } = ranges[0];
      if (count === 0 || !url.includes("/dist/")) continue;
      counts.entered += count;
      const name = functionName || `(at ${ranges[0].startOffset})`;
      functions[name] = (functions[name] ?? 0) + count;
    }
  }
  return { ...counts, functions };
}

/** @param {number} times that the operation was done @returns {Counts} for one of them: the mean, or the median of all laps */
export function end(times) {
  hook.disable();
  const rest = taken();
  session.disconnect();
  if (laps.length > 0) {
    const middle = (/** @type {"entered" | "kernel" | "promises"} */ kind) =>
      laps.map((one) => one[kind]).sort((a, b) => a - b)[laps.length >> 1] ?? 0;
    const entered = middle("entered");
    const { functions = {} } = laps.find((one) => one.entered === entered) ?? {};
    return { entered, kernel: middle("kernel"), promises: middle("promises"), functions };
  }
  const functions = Object.fromEntries(Object.entries(rest.functions).map(([name, count]) => [name, count / times]));
  return { entered: rest.entered / times, kernel: rest.kernel / times, promises: rest.promises / times, functions };
}
