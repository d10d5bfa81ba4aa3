// @ts-check
// What idle workers of a pool take: memory, beside bare threads of Node, and processor time, beside a program without any.
//   node bench/idle.bench.mjs [--quick] [--json]
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

const quick = process.argv.includes("--quick");
const ROUNDS = quick ? 1 : 5;
const SECONDS = quick ? 0.2 : 5;
const MANY = 5;
const program = fileURLToPath(new URL("idle/program.js", import.meta.url));

/** @param {number[]} list */
const median = (list) => list.toSorted((a, b) => a - b)[list.length >> 1] ?? Number.NaN;

/**
 * A process of its own with so many idle workers or threads.
 * @param {"pool" | "thread"} kind @param {number} count
 * @returns {{ rss: number, processor: number }} bytes, and ns of processor time while they are idle
 */
function run(kind, count) {
  const { status, stdout } = spawnSync(process.execPath, [program, kind, String(count), String(SECONDS)], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
  });
  if (status !== 0) throw new Error(`${kind} ${count} ended with ${status}`);
  return JSON.parse(stdout);
}

/** @type {Record<"worker" | "thread" | "first" | "processor" | "without", number[]>} */
const found = { worker: [], thread: [], first: [], processor: [], without: [] };
for (let round = 0; round < ROUNDS; round++) {
  const [none, one, many] = [run("thread", 0), run("pool", 1), run("pool", MANY)];
  const [thread, threads] = [run("thread", 1), run("thread", MANY)];
  const worker = (many.rss - one.rss) / (MANY - 1);
  found.worker.push(worker);
  found.thread.push((threads.rss - thread.rss) / (MANY - 1));
  found.first.push(one.rss - none.rss - worker);
  found.processor.push(run("pool", 4).processor);
  found.without.push(none.processor);
}
const { worker, thread, first, processor, without } = Object.fromEntries(
  Object.entries(found).map(([name, list]) => [name, median(list)]),
);
if (process.argv.includes("--json")) console.log(JSON.stringify({ worker, thread, first, processor, without }));
else {
  const mb = (/** @type {number | undefined} */ bytes) => `${((bytes ?? Number.NaN) / 1e6).toFixed(1)} MB`;
  const ms = (/** @type {number | undefined} */ ns) => `${((ns ?? Number.NaN) / 1e6).toFixed(2)} ms`;
  console.log(`a worker of a pool: ${mb(worker)}; a bare thread: ${mb(thread)}; the first worker, more: ${mb(first)}`);
  console.log(
    `processor time in ${SECONDS} s: four idle workers ${ms(processor)}, a program without any ${ms(without)}`,
  );
}
