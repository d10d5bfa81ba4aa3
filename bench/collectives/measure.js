// @ts-check
// The task of collectives.bench.mjs: the time of each algorithm of each type, by bytes. Rank 0 prints one line of JSON.
import { attach } from "pamir";

/** @type {{ type: import("pamir").CollectiveType, algorithms: string[], bytes: number[] }[]} */
const plan = JSON.parse(process.env.PAMIR_BENCH ?? "[]");
const CALLS = 30;
const ROUNDS = 5;

const client = await attach();
const world = await client.world();
const { rank, size } = world;
/** @type {{ type: string, algorithm: string, bytes: number, microseconds: number }[]} */
const measured = [];
for (const { type, algorithms, bytes } of plan) {
  for (const length of bytes) {
    /** @type {Map<string, number[]>} */
    const times = new Map(algorithms.map((name) => [name, []]));
    for (let round = 0; round < ROUNDS; round++) {
      for (const algorithm of algorithms) {
        const call = callOf(type, length, algorithm);
        await call();
        await world.barrier();
        const start = performance.now();
        for (let i = 0; i < CALLS; i++) await call();
        await world.barrier();
        times.get(algorithm)?.push(((performance.now() - start) * 1000) / CALLS);
      }
    }
    for (const [algorithm, list] of times) {
      measured.push({ type, algorithm, bytes: length, microseconds: Math.min(...list) });
    }
  }
}
if (rank === 0) console.log(`RESULT ${JSON.stringify(measured)}`);
await world.barrier();
client.close();

/**
 * @param {import("pamir").CollectiveType} type
 * @param {number} bytes of a block, or of the vector
 * @param {string} algorithm
 * @returns {() => Promise<unknown>}
 */
function callOf(type, bytes, algorithm) {
  const length = Math.max(1, bytes / 8);
  const own = new Float64Array(length).fill(rank);
  const all = new Float64Array(length * size).fill(rank);
  const operation = "sum";
  if (type === "broadcast") return () => world.broadcast({ buffer: own, algorithm });
  if (type === "reduce")
    return () => world.reduce({ send: own, receive: all.subarray(0, length), operation, algorithm });
  if (type === "allreduce") {
    return () => world.allreduce({ send: own, receive: all.subarray(0, length), operation, algorithm });
  }
  if (type === "gather") return () => world.gather({ send: own, receive: all, algorithm });
  if (type === "allgather") return () => world.allgather({ send: own, receive: all, algorithm });
  if (type === "alltoall") return () => world.alltoall({ send: all, receive: all.slice(), algorithm });
  if (type === "reduceScatter") {
    const whole = new Float64Array(length * size);
    return () => world.reduceScatter({ send: whole, receive: own, operation, algorithm });
  }
  throw new Error(`no bench of ${type}`);
}
