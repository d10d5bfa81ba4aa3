// @ts-check
// The tasks of loops.bench.mjs: an allreduce of 1 MiB of f64, by turns with memory copies of (n + 1)/n of the bytes, which each
// task makes at the same time. Rank 0 prints one line of JSON: microseconds of either, the least of nine medians.
import { attach } from "pamir";

const BYTES = 1024 ** 2;
const ROUNDS = Number(process.env.PAMIR_BENCH ?? "9");
const CALLS = 51;

const client = await attach();
const world = await client.world();
const { rank, size } = world;
const send = vector(BYTES).fill(rank);
const receive = vector(BYTES);
const copied = (BYTES * (size + 1)) / size;
const { buffer, byteOffset } = vector(2 * copied).fill(1);
const bytes = new Uint8Array(buffer, byteOffset, 2 * copied);

/** The arguments of a task that repeats a call are the same object. */
const parameters = { send, receive, operation: /** @type {const} */ ("sum") };
const reduces = () => world.allreduceSync(parameters);
const copies = () => bytes.copyWithin(0, copied, 2 * copied);
const least = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
for (let round = 0; round < ROUNDS; round++) {
  for (const [which, call] of [reduces, copies].entries()) {
    world.barrierSync();
    least[which] = Math.min(/** @type {number} */ (least[which]), medianOf(call));
  }
}
if (rank === 0) console.log(`RESULT ${JSON.stringify({ allreduce: least[0], copy: least[1], copied })}`);
await world.barrier();
client.close();

/** Elements in a region. @param {number} length in bytes */
function vector(length) {
  const region = client.createRegion(length).bytes;
  return new Float64Array(region.buffer, region.byteOffset, length / 8);
}

/** Microseconds of a call. @param {() => unknown} call */
function medianOf(call) {
  const times = Array.from({ length: CALLS }, () => {
    const start = performance.now();
    call();
    return (performance.now() - start) * 1000;
  });
  return /** @type {number} */ (times.sort((a, b) => a - b)[CALLS >> 1]);
}
