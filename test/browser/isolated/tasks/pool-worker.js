// @ts-check
// Functions that a page calls by name.
import { currentCall, move, proxy, serve } from "pamir/pool";

let stopped = 0;
/** @type {number[]} */
const order = [];

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
  /** @param {Uint8Array} bytes */
  back: (bytes) => move(bytes.fill(5)),
  size: (/** @type {Uint8Array} */ bytes) => bytes.length,
  /** A picture of a canvas, which is filled with a color. @param {OffscreenCanvas} canvas @param {string} color */
  draw: (canvas, color) => {
    const context = /** @type {OffscreenCanvasRenderingContext2D} */ (canvas.getContext("2d"));
    context.fillStyle = color;
    context.fillRect(0, 0, canvas.width, canvas.height);
    return move(canvas.transferToImageBitmap());
  },
  /** Answers by a port. @param {{ port: MessagePort, text: string }} given */
  speak: ({ port, text }) => port.postMessage(`${text}!`),
  *frames(/** @type {number} */ count, /** @type {number} */ bytes) {
    for (let i = 0; i < count; i++) yield i % 3 === 2 ? i : move(new Uint8Array(bytes).fill(i));
  },
  /** @param {(bytes: Uint8Array) => Promise<Uint8Array>} call */
  callback: async (call) => {
    const bytes = new Uint8Array(1000);
    return [(await call(move(bytes)))[0], bytes.length];
  },
  note: (/** @type {number} */ number, /** @type {unknown} */ _moved) => void order.push(number),
  order: () => order.splice(0),
  /** @param {number} milliseconds */
  late: async (milliseconds) => {
    await new Promise((resolve) => setTimeout(resolve, milliseconds));
    return move(new ArrayBuffer(milliseconds));
  },
  spin: () => {
    for (;;);
  },
});
