// @ts-check
// The same with bare workers: the main thread gets a message of each. For a barrier, it answers all, and gets another one.
//   node bench/launch/workers.js message|barrier WORKERS
import { isMainThread, parentPort, Worker } from "node:worker_threads";
import { report, rss } from "./report.js";

if (isMainThread) {
  const [, , first, workers] = process.argv;
  const before = rss();
  const start = performance.now();
  const all = Array.from({ length: Number(workers) }, () => new Worker(new URL(import.meta.url)));
  const come = () => Promise.all(all.map((worker) => new Promise((resolve) => worker.once("message", resolve))));
  await come();
  if (first === "barrier") {
    for (const worker of all) worker.postMessage("all are here");
    await come();
  }
  report(start, before);
} else {
  parentPort?.on("message", () => parentPort?.postMessage("so it is"));
  parentPort?.postMessage("here");
}
