// @ts-check
// The same by Atomics.wait: a count and a generation in shared memory.
import { isMainThread, Worker, workerData } from "node:worker_threads";
import { repeatBlocking } from "./meter.js";

const TASKS = 4;
const COUNT = 0;
const GENERATION = 32;

/** @param {Int32Array} words */
function pass(words) {
  const generation = Atomics.load(words, GENERATION);
  if (Atomics.add(words, COUNT, 1) === TASKS - 1) {
    Atomics.store(words, COUNT, 0);
    Atomics.add(words, GENERATION, 1);
    Atomics.notify(words, GENERATION);
  } else while (Atomics.load(words, GENERATION) === generation) Atomics.wait(words, GENERATION, generation);
}

/** @param {{ seconds: number }} options @returns µs of a barrier */
export async function run({ seconds }) {
  const words = new Int32Array(new SharedArrayBuffer(256));
  const workers = Array.from({ length: TASKS - 1 }, () => new Worker(new URL(import.meta.url), { workerData: words }));
  const time = repeatBlocking(seconds, () => pass(words));
  for (const worker of workers) await worker.terminate();
  return { figure: time * 1e6 };
}

if (!isMainThread) for (;;) pass(workerData);
