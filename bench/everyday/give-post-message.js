// @ts-check
// The same by postMessage, which transfers the buffer.
import { isMainThread, parentPort, Worker } from "node:worker_threads";
import { fill, repeat, sumOf } from "./meter.js";

/** @param {{ bytes: number, seconds: number }} options @returns bytes per second, each way counted */
export async function run({ bytes, seconds }) {
  const worker = new Worker(new URL(import.meta.url));
  let buffer = new ArrayBuffer(bytes);
  let sum = 0;
  let back = () => {};
  worker.on("message", (came) => {
    buffer = came;
    sum = sumOf(new Uint8Array(buffer));
    back();
  });
  let value = 0;
  const time = await repeat(seconds, () => {
    fill(new Uint8Array(buffer), ++value & 127);
    worker.postMessage(buffer, [buffer]);
    return new Promise((/** @type {(_: void) => void} */ resolve) => {
      back = resolve;
    });
  });
  await worker.terminate();
  if (sum === 0) throw new Error("the sum is 0");
  return { figure: (2 * bytes) / time };
}

if (!isMainThread) {
  parentPort?.on("message", (buffer) => {
    const bytes = new Uint8Array(buffer);
    fill(bytes, (sumOf(bytes) & 127) | 1);
    parentPort?.postMessage(buffer, [buffer]);
  });
}
