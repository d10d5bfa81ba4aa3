// @ts-check
// The least that there and back takes while both sides sleep in Atomics.waitAsync: adds one to a word for each that came.
import { workerData } from "node:worker_threads";
import { CAME, WENT } from "./ids.js";

/** @type {Int32Array<SharedArrayBuffer>} */
const words = workerData;
setInterval(() => {}, 2 ** 30);
for (let seen = 0; ; ) {
  const { async, value } = Atomics.waitAsync(words, WENT, seen);
  if (async) await value;
  seen = Atomics.load(words, WENT);
  Atomics.add(words, CAME, 1);
  Atomics.notify(words, CAME);
}
