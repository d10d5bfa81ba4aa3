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
}

/** @param {number} times that the operation was done @returns {Counts} for one of them */
export function end(times) {
  hook.disable();
  const counts = { entered: 0, kernel: kernel / times, promises: promises / times };
  /** @type {Record<string, number>} */
  const functions = {};
  for (const { url, functions: all } of ask("Profiler.takePreciseCoverage").result) {
    for (const { functionName, ranges } of all) {
      const count = ranges[0].count / times;
      if (count === 0) continue;
      if (!url.includes("/dist/")) continue;
      counts.entered += count;
      const name = functionName || `(at ${ranges[0].startOffset})`;
      functions[name] = (functions[name] ?? 0) + count;
    }
  }
  session.disconnect();
  return { ...counts, functions };
}
