// @ts-check
// The same by postMessage, which clones: one after the other, each answered; or as a stream, of which the worker
// acknowledges every eighth message.
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import { repeat, touch } from "./meter.js";

const WINDOW = 16;
const ACKNOWLEDGE = 8;

/** @param {{ by: "call" | "send", bytes: number, seconds: number }} options @returns bytes per second */
export async function run({ by, bytes, seconds }) {
  const worker = new Worker(new URL(import.meta.url), { workerData: by });
  const payload = new Uint8Array(bytes).fill(1);
  let room = by === "call" ? 0 : WINDOW;
  let answered = () => {};
  worker.on("message", (count) => {
    room += count;
    answered();
  });
  const round = () => {
    if (by === "send") room--;
    worker.postMessage(payload);
    if (room > 0) return;
    return new Promise((/** @type {(_: void) => void} */ resolve) => {
      answered = resolve;
    });
  };
  const time = await repeat(seconds, round);
  await worker.terminate();
  return { figure: bytes / time };
}

if (!isMainThread) {
  let got = 0;
  parentPort?.on("message", (payload) => {
    touch(payload);
    if (workerData === "call") parentPort?.postMessage(0);
    else if (++got % ACKNOWLEDGE === 0) parentPort?.postMessage(ACKNOWLEDGE);
  });
}
