// Two workers, called by name, and an array that all threads see: the first program to read, and to change.
import { isMainThread } from "node:worker_threads";
import { attach } from "pamir";
import { pool, serve } from "pamir/pool";

if (isMainThread) {
  const shared = new Int32Array(new SharedArrayBuffer(4 * 4));
  const workers = await pool(new URL(import.meta.url), { workers: 2, args: shared });
  console.log(`12 squared is ${await workers.square(12)}, says a worker`);
  const halves = await Promise.all([workers.primes(2, 300_000), workers.primes(300_000, 500_000)]);
  console.log(`${halves[0] + halves[1]} primes below 500,000, counted by two workers at once`);
  await Promise.all([0, 1, 2, 3].map((i) => workers.fill(i)));
  console.log(`the shared array, filled by both of them: ${shared.join(", ")}`);
  await workers.close();
} else {
  const { args } = await attach();
  const shared = /** @type {Int32Array} */ (args);
  serve({
    square: (/** @type {number} */ n) => n ** 2,
    primes: (/** @type {number} */ from, /** @type {number} */ to) => {
      let count = 0;
      for (let n = from; n < to; n++) {
        let divisor = 2;
        while (divisor ** 2 <= n && n % divisor !== 0) divisor++;
        if (divisor ** 2 > n) count++;
      }
      return count;
    },
    fill: (/** @type {number} */ i) => {
      shared[i] = 7 * (i + 1);
    },
  });
}
