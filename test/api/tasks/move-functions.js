// @ts-check
// Functions that get and give what is moved, for tests.
import { MessageChannel } from "node:worker_threads";
import { currentCall, move } from "pamir/pool";

/** @type {string[]} */
const order = [];
/** @type {ArrayBuffer | undefined} */
let kept;

/** @param {number} milliseconds */
const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

export const api = {
  /** Moves its argument back, and says how many bytes it had. @param {Uint8Array} bytes */
  back: (bytes) => {
    bytes[0] = (bytes[0] ?? 0) + 1;
    return move(bytes);
  },
  same: (/** @type {unknown} */ value) => value,
  pass: (/** @type {object} */ value) => move(value),
  /** What each argument is. @param {unknown[]} args */
  kinds: (...args) => args.map((arg) => Object.prototype.toString.call(arg).slice(8, -1)),
  /** Answers by a port that it was given. @param {{ port: import("node:worker_threads").MessagePort, text: string }} given */
  speak: ({ port, text }) => {
    port.postMessage(`${text}!`);
    port.close();
  },
  /** A port whose other end answers in the worker. */
  openPort: () => {
    const { port1, port2 } = new MessageChannel();
    port1.on("message", (text) => port1.postMessage(`${text}?`));
    port1.unref();
    return move(port2);
  },
  *frames(/** @type {number} */ count, /** @type {number} */ bytes) {
    for (let i = 0; i < count; i++) yield i % 3 === 2 ? { i } : move(new Uint8Array(bytes).fill(i));
  },
  /** @param {(bytes: Uint8Array) => Promise<Uint8Array>} call @param {number} count */
  callback: async (call, count) => {
    const bytes = new Uint8Array(count).fill(3);
    const given = await call(move(bytes));
    return [bytes.length, given[0], given.length];
  },
  /** @param {string} name @param {unknown} _bytes */
  note: (name, _bytes) => void order.push(name),
  order: () => order.splice(0),
  nested: () => ({ inner: move(new ArrayBuffer(8)) }),
  twice: () => {
    kept ??= new ArrayBuffer(8);
    return move(kept);
  },
  notTransferable: () => move({ a: 1 }),
  /** @param {number} milliseconds @param {number} bytes */
  late: async (milliseconds, bytes) => {
    await sleep(milliseconds);
    return move(new ArrayBuffer(bytes));
  },
  /** Moves bytes once its call was given up. @param {number} bytes */
  givenUp: async (bytes) => {
    const { signal } = currentCall();
    await new Promise((resolve) => {
      if (signal.aborted) resolve(undefined);
      else signal.addEventListener("abort", resolve);
    });
    return move(new ArrayBuffer(bytes));
  },
  /** @param {unknown} _bytes */
  die: (_bytes) => process.exit(1),
  pid: () => process.pid,
};
