// @ts-check
// The same by postMessage.
import { isMainThread, parentPort, Worker } from "node:worker_threads";
import { repeat } from "./meter.js";

/** @param {{ seconds: number }} options @returns µs of a message and its answer */
export async function run({ seconds }) {
  const worker = new Worker(new URL(import.meta.url));
  const request = new Uint8Array(8);
  let answered = () => {};
  worker.on("message", () => answered());
  const time = await repeat(seconds, () => {
    worker.postMessage(request);
    return new Promise((/** @type {(_: void) => void} */ resolve) => {
      answered = resolve;
    });
  });
  await worker.terminate();
  return { figure: time * 1e6 };
}

if (!isMainThread) {
  const reply = new Uint8Array(8);
  parentPort?.on("message", () => parentPort?.postMessage(reply));
}
