// The same function by postMessage(), as a program without a library calls it.
import { parentPort } from "node:worker_threads";

parentPort?.on("message", ({ call, n }: { call: number; n: number }) =>
  parentPort?.postMessage({ call, result: n ** 2 }),
);
