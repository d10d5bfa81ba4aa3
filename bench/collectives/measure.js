// @ts-check
// The task of collectives.bench.mjs: the time of each algorithm of each type, by bytes. Rank 0 prints one line of JSON. Members
// that share a memory have their buffers there, and block: what is measured takes less time than a promise.
import { attach, SUCCESS } from "pamir";

/** @type {{ type: import("pamir").CollectiveType, algorithms: string[], bytes: number[] }[]} */
const plan = JSON.parse(process.env.PAMIR_BENCH ?? "[]");
const ROUNDS = 5;

const client = await attach();
const world = await client.world();
const { rank, size } = world;
const isShared = world.algorithms("barrier").some(({ name }) => name === "flags");
const CALLS = isShared ? 100 : 30;
/** Of the buffers of one call. @type {import("pamir").MemRegion[]} */
const regions = [];
/** @type {{ type: string, algorithm: string, bytes: number, microseconds: number }[]} */
const measured = [];
for (const { type, algorithms, bytes } of plan) {
  for (const length of bytes) {
    /** @type {Map<string, number[]>} */
    const times = new Map(algorithms.map((name) => [name, []]));
    for (let round = 0; round < ROUNDS; round++) {
      for (const algorithm of algorithms) {
        const parameters = parametersOf(type, length, algorithm);
        await call(type, parameters);
        await world.barrier();
        const start = performance.now();
        if (isShared) for (let i = 0; i < CALLS; i++) callSync(type, parameters);
        else for (let i = 0; i < CALLS; i++) await call(type, parameters);
        await world.barrier();
        times.get(algorithm)?.push(((performance.now() - start) * 1000) / CALLS);
        for (const region of regions.splice(0)) region.close();
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

/** @type {(type: string, parameters: object) => Promise<unknown>} */
function call(type, parameters) {
  return /** @type {any} */ (world)[type](parameters);
}

/** @type {(type: string, parameters: object) => void} */
function callSync(type, parameters) {
  const result = /** @type {any} */ (world)[`${type}Sync`](parameters);
  if (result !== SUCCESS) throw world.lastError;
}

/** Cells that are all this member's rank. @param {number} length */
function cells(length) {
  if (!isShared) return new Float64Array(length).fill(rank);
  const region = client.createRegion(8 * length);
  regions.push(region);
  return new Float64Array(region.bytes.buffer, region.bytes.byteOffset, length).fill(rank);
}

/**
 * @param {import("pamir").CollectiveType} type
 * @param {number} bytes of a block, or of the vector
 * @param {string} algorithm
 * @returns {object}
 */
function parametersOf(type, bytes, algorithm) {
  const length = Math.max(1, bytes / 8);
  const own = cells(length);
  const operation = "sum";
  if (type === "broadcast") return { buffer: own, algorithm };
  if (type === "reduce" || type === "allreduce") return { send: own, receive: cells(length), operation, algorithm };
  if (type === "gather" || type === "allgather") return { send: own, receive: cells(length * size), algorithm };
  if (type === "alltoall") return { send: cells(length * size), receive: cells(length * size), algorithm };
  if (type === "reduceScatter") return { send: cells(length * size), receive: own, operation, algorithm };
  throw new Error(`no bench of ${type}`);
}
