// @ts-check
// One worker whose functions are called by name: with a result, an error, a callback, a stream that is left, a result without
// await. Checks each of them, and prints how many calls a second there are, awaited one after the other.
// Shows: pool, serve, stream, sync, with.
//   node examples/rpc.js [wasm | ts]
import { performance } from "node:perf_hooks";
import { isMainThread } from "node:worker_threads";
import { pool, serve } from "pamir/pool";

const CALLS = 5000;
let isLeft = false;

const functions = {
  square: (/** @type {number} */ number) => number ** 2,
  fail() {
    throw Object.assign(new RangeError("on purpose"), { status: 400 });
  },
  /** @param {number[]} numbers @param {(sum: number) => unknown} onSum */
  async sum(numbers, onSum) {
    let sum = 0;
    for (const number of numbers) {
      sum += number;
      await onSum(sum);
    }
    return sum;
  },
  *count() {
    try {
      for (let number = 1; ; number++) yield number;
    } finally {
      isLeft = true;
    }
  },
  isLeft: () => isLeft,
};

/** What is wrong. @param {import("pamir/pool").Pool<typeof functions>} worker */
async function check(worker) {
  const wrong = [];
  if ((await worker.square(12)) !== 144) wrong.push("a result");
  const error = await worker.fail().then(
    () => undefined,
    (thrown) => thrown,
  );
  if (error?.name !== "RangeError" || error.status !== 400) wrong.push("an error");
  /** @type {number[]} */
  const sums = [];
  if ((await worker.sum([1, 2, 3], (sum) => sums.push(sum))) !== 6 || sums.join() !== "1,3,6") wrong.push("a callback");
  let total = 0;
  for await (const number of worker.count.stream()) {
    total += number;
    if (number === 1000) break;
  }
  if (total !== 500_500 || !(await worker.isLeft())) wrong.push("a stream");
  if (worker.sync.square(7) !== 49) wrong.push("a result without await");
  return wrong;
}

async function start() {
  const kernel = /** @type {import("pamir").KernelName | undefined} */ (process.argv[2]);
  /** @type {import("pamir/pool").Pool<typeof functions>} */
  const worker = await pool(new URL(import.meta.url), { workers: 1, kernel });
  const wrong = await check(worker);
  const begin = performance.now();
  let sum = 0;
  for (let i = 0; i < CALLS; i++) sum += await worker.square(i);
  const rate = CALLS / (performance.now() - begin);
  if (sum !== ((CALLS - 1) * CALLS * (2 * CALLS - 1)) / 6) wrong.push("a sum of results");
  await worker.close();
  console.log(
    `${wrong.length === 0 ? "all as it must be" : `wrong: ${wrong.join(", ")}`}, ${Math.round(rate)} thousand calls/s`,
  );
  process.exitCode = wrong.length === 0 ? 0 : 1;
}

if (isMainThread) await start();
else serve(functions);
