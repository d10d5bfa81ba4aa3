// @ts-check
// The measurements that need a page; what they give is read by browser.bench.mjs.
import { launch } from "pamir";
import { median, start } from "./measure.js";

/** From a worker to the page by postMessage, in ns. @param {number} count */
async function postMessageDelay(count) {
  const worker = new Worker(new URL("./post-message.mjs", import.meta.url), { type: "module" });
  /** @type {number[]} */
  const delays = [];
  await new Promise((resolve) => {
    worker.onmessage = ({ data }) => {
      delays.push((performance.timeOrigin + performance.now() - data) * 1e6);
      if (delays.length === count) resolve(undefined);
    };
    worker.postMessage({ count });
  });
  worker.terminate();
  return median(delays);
}

/** Milliseconds until two tasks have exchanged a first message. */
async function firstOfPamir() {
  const begin = performance.now();
  const flags = new Int32Array(new SharedArrayBuffer(4));
  const job = await launch(new URL("./first.mjs", import.meta.url), { tasks: 2, args: { flags } });
  for (let came = 0; came < 2; came = Atomics.load(flags, 0)) await Atomics.waitAsync(flags, 0, came).value;
  const time = performance.now() - begin;
  await job.exited;
  return time;
}

/** The same of two bare workers. */
async function firstOfWorkers() {
  const begin = performance.now();
  const { port1, port2 } = new MessageChannel();
  const workers = [port1, port2].map((port) => {
    const worker = new Worker(new URL("./first-bare.mjs", import.meta.url), { type: "module" });
    worker.postMessage(port, [port]);
    return worker;
  });
  await Promise.all(workers.map((worker) => new Promise((resolve) => worker.addEventListener("message", resolve))));
  return performance.now() - begin;
}

Object.assign(globalThis, { measurements: { start, postMessageDelay, firstOfPamir, firstOfWorkers } });
