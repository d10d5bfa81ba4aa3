// @ts-check
// The triad a += b + scalar · c, after Nstream of the Parallel Research Kernels: each task has a piece of the vectors and
// needs no other, but for a common beginning and end, and for the checksum. Shows: a barrier, a reduction.
//   node examples/nstream.js [tasks]
//   npx pamir run --hosts a:4,b:4 examples/nstream.js
import { attach, launch } from "pamir";

const LENGTH = 2_000_000;
const ITERATIONS = 20; // after one that warms up
const SCALAR = 3;

/** @param {import("pamir").Client} client */
async function triad(client) {
  const world = await client.world();
  const { rank, size } = world;
  const length = Math.floor(((rank + 1) * LENGTH) / size) - Math.floor((rank * LENGTH) / size);
  const a = new Float64Array(length);
  const b = new Float64Array(length).fill(2);
  const c = new Float64Array(length).fill(2);
  let start = 0;
  for (let iteration = 0; iteration <= ITERATIONS; iteration++) {
    if (iteration === 1) {
      await world.barrier();
      start = client.now();
    }
    for (let i = 0; i < length; i++) a[i] += b[i] + SCALAR * c[i];
  }
  await world.barrier();
  const seconds = (client.now() - start) / ITERATIONS;

  const own = a.reduce((total, element) => total + element, 0);
  const [sum] = await world.allreduce({ send: Float64Array.of(own), operation: "sum" });
  const expected = (ITERATIONS + 1) * (2 + SCALAR * 2) * LENGTH;
  if (!(Math.abs(sum - expected) / expected <= 1e-8)) {
    throw new Error(`the checksum is ${sum}, but must be ${expected}`);
  }
  const rate = (4 * 8 * LENGTH) / seconds / 1e6;
  if (rank === 0) console.log(`tasks: ${size}, checksum: ${sum} as it must be, ${rate.toFixed(0)} MB/s`);
}

async function start() {
  const counts = process.argv[2] === undefined ? [1, 2, 4] : [Number(process.argv[2])];
  for (const tasks of counts) {
    const job = await launch(new URL(import.meta.url), { tasks });
    for (const { task, code, cause, error = cause } of await job.exited) {
      if (code === 0) continue;
      console.error(`task ${task} of ${tasks}: ${error}`);
      process.exitCode = 1;
    }
  }
}

// A task gets its client: a thread that start() launched, or a process of `pamir run`, mpiexec, mpirun, srun.
const client = await attach().catch((error) => {
  if (error.code !== "PAMIR_NOT_IN_JOB") throw error;
});
await (client === undefined ? start() : triad(client));
