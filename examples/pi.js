// @ts-check
// π as the integral of 4 / (1 + x²), by tasks that take their next piece of work when they have time. The caller joins as task
// 0, and gets the sum. Shows: join, a counter that all tasks share, a reduction.
import { isMainThread } from "node:worker_threads";
import { attach, launch } from "pamir";

const STEPS = 20_000_000;
const PIECE_STEPS = 250_000;

/** Task 0 gets the sum of all. @param {import("pamir").Client} client */
async function work(client) {
  const world = await client.world();
  const pieces = await world.createCounter({ limit: STEPS / PIECE_STEPS });
  let sum = 0;
  for (let piece = pieces.nextSync(); piece !== undefined; piece = pieces.nextSync()) {
    const first = piece * PIECE_STEPS;
    for (let i = first; i < first + PIECE_STEPS; i++) sum += 4 / (1 + ((i + 0.5) / STEPS) ** 2);
  }
  return world.reduce({ send: Float64Array.of(sum), operation: "sum" });
}

async function start() {
  const job = await launch(new URL(import.meta.url), { tasks: 4, join: true });
  const [sum = Number.NaN] = (await work(job.client)) ?? [];
  job.client.close();
  await job.exited;
  const pi = sum / STEPS;
  console.log(`π ≈ ${pi.toFixed(12)}, off by ${Math.abs(pi - Math.PI).toExponential(1)}`);
  process.exitCode = Math.abs(pi - Math.PI) < 1e-10 ? 0 : 1;
}

await (isMainThread ? start() : work(await attach()));
