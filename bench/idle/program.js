// @ts-check
// A program with idle workers: node program.js pool|thread COUNT SECONDS. It prints bytes, and ns of processor time.
import { setTimeout as sleep } from "node:timers/promises";
import { isMainThread, Worker } from "node:worker_threads";

const [, , kind, count, seconds] = process.argv;
/** Milliseconds until workers that have started are quiet. */
const QUIET = 1000;

if (!isMainThread) {
  if (kind === "pool") (await import("pamir/pool")).serve({ square: (/** @type {number} */ n) => n * n });
  else setInterval(() => {}, 2 ** 30);
} else {
  const argv = process.argv.slice(2);
  if (kind === "pool") {
    const { pool } = await import("pamir/pool");
    const workers = await pool(new URL(import.meta.url), { workers: Number(count), workerOptions: { argv } });
    await workers.all.square(7);
  } else {
    const started = Array.from({ length: Number(count) }, () => new Worker(new URL(import.meta.url), { argv }));
    await Promise.all(started.map((worker) => new Promise((resolve) => worker.once("online", resolve))));
  }
  await sleep(QUIET * Math.min(1, Number(seconds)));
  const before = process.cpuUsage();
  await sleep(1000 * Number(seconds));
  const { user, system } = process.cpuUsage(before);
  console.log(JSON.stringify({ rss: process.memoryUsage.rss(), processor: (user + system) * 1000 }));
  process.exit();
}
