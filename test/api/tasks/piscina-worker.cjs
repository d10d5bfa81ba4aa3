// A file of piscina's users: nothing in it names either pool.
const { parentPort, threadId, workerData } = require("node:worker_threads");

let count = 0;

module.exports = Object.assign(async (/** @type {{ a: number, b: number }} */ { a, b }) => a + b, {
  same: (/** @type {unknown} */ value) => value,
  later: (/** @type {unknown} */ value) => new Promise((resolve) => setTimeout(resolve, 2, value)),
  fail: () => {
    throw new RangeError("on purpose");
  },
  reject: async (/** @type {string} */ text) => {
    throw new TypeError(text, { cause: new Error("inner") });
  },
  throwValue: (/** @type {unknown} */ value) => {
    throw value;
  },
  throwError: (/** @type {object} */ fields) => {
    throw Object.assign(new Error("with fields"), fields);
  },
  never: () => new Promise(() => {}),
  /** Waits, and blocks its thread, until a word is no longer 0. */
  wait: (/** @type {Int32Array} */ word) => Atomics.wait(word, 0, 0),
  tell: (/** @type {Int32Array} */ word) => {
    Atomics.store(word, 0, 1);
    Atomics.notify(word, 0);
  },
  exit: (code = 3) => process.exit(code),
  exitLater: (/** @type {Int32Array} */ word) => {
    setImmediate(() => {
      Atomics.wait(word, 0, 0);
      process.exit(4);
    });
    return "before the exit";
  },
  uncaught: () => {
    setImmediate(() => {
      throw new SyntaxError("uncaught");
    });
    return new Promise(() => {});
  },
  unhandled: () => {
    void Promise.reject(new URIError("unhandled"));
    return new Promise(() => {});
  },
  aFunction: () => () => {},
  aSymbol: async () => Symbol("s"),
  // biome-ignore lint/suspicious/noThenProperty: it is awaited.
  thenable: () => ({ then: (/** @type {(value: number) => void} */ resolve) => resolve(7) }),
  count: () => ++count,
  thread: () => threadId,
  shared: () => new Int32Array(new SharedArrayBuffer(4)),
  post: (/** @type {unknown} */ value) => parentPort?.postMessage(value),
  postBy: (/** @type {import("node:worker_threads").MessagePort} */ port) => {
    port.postMessage("by the port");
    port.close();
  },
  data: () => workerData,
  where: () => ({ argv: process.argv.slice(2), execArgv: process.execArgv, env: process.env.PISCINA_TEST }),
  print: (/** @type {string} */ text) => console.log(text),
  number: 7,
  promised: Promise.resolve((/** @type {number} */ n) => n * 2),
});
