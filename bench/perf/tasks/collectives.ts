// The task of `pamir perf` for collective operations: the work of bench/peers/collectives.c, as a user of the package would
// write it. Vectors of more than INLINE_BYTES lie in regions, which all members read in place; with `plain`, in ordinary arrays.
import { attach, type Client, type Geometry, type Result, SUCCESS } from "pamir";
import { now, percentiles, pinThread, timerCost } from "../measure.js";
import { BATCH, meet, type PerfWork, SAMPLES_MAX, writeResults } from "../work.js";

/** Operations that are timed together if they are as short as this. */
const BATCH_BYTES = 4096;
/**
 * Seconds: a shorter run begins with one batch. Beside threads that compute, an alltoall of five tasks with the lowest priority took
 * 47 ms on two cores, and 20 batches to begin with 15 s. A run is ended after a minute.
 */
const SHORT_SECONDS = 0.05;

function vector(client: Client, bytes: number, plain: boolean): Float64Array {
  const length = Math.max(1, Math.floor(bytes / 8));
  if (plain) return new Float64Array(length).fill(1);
  const { buffer, byteOffset } = client.createRegion(8 * length).bytes;
  return new Float64Array(buffer, byteOffset, length).fill(1);
}

/** What one operation is; `turn` counts them. */
function operationOf(
  client: Client,
  world: Geometry,
  { test, bytes, plain = false }: PerfWork,
): (turn: number) => Result {
  const { size } = world;
  if (test === "barrier") return () => world.barrierSync();
  if (test === "broadcast") {
    const buffer = vector(client, bytes, plain);
    const byRoot = Array.from({ length: size }, (_, root) => ({ buffer, root }));
    return (turn) => world.broadcastSync(byRoot[turn % size] as { buffer: Float64Array; root: number });
  }
  const wide = test === "allgather" || test === "alltoall" ? size : 1;
  // Of a vector that is scattered, each member gets as many elements.
  const part = 8 * Math.max(1, Math.floor(bytes / 8 / size));
  const isScattered = test === "reduce_scatter";
  const send = vector(client, isScattered ? part * size : test === "alltoall" ? bytes * size : bytes, plain);
  const receive = vector(client, isScattered ? part : bytes * wide, plain);
  const moved = { send, receive };
  const reduced = { send, receive, operation: "sum" as const };
  if (test === "allgather") return () => world.allgatherSync(moved);
  if (test === "alltoall") return () => world.alltoallSync(moved);
  if (test === "reduce_scatter") return () => world.reduceScatterSync(reduced);
  return () => world.allreduceSync(reduced);
}

async function main(): Promise<void> {
  const client = await attach();
  const work = client.args as PerfWork;
  pinThread(work.cpus, client.task);
  const world = await client.world();
  const operate = operationOf(client, world, work);
  const each = work.bytes <= BATCH_BYTES ? BATCH : 1;
  const samples = new Float64Array(SAMPLES_MAX);
  const counts = new Float64Array(1);
  const cost = timerCost();
  meet(work.barrier, client.size);
  // More than two tasks may take turns on the cores.
  const isShort = work.seconds < SHORT_SECONDS;
  let batches = isShort ? 1 : work.bytes > 65536 ? 10 : client.size > 2 ? 20 : 200;
  let turn = 0;
  // As in C: to warm up, to find out how many batches take so long, and to count. V8 needs longer to warm up.
  const phases = ["warm", "warm", "length", "count"];
  for (const phase of phases) {
    world.barrierSync();
    const begin = now();
    for (let batch = 0; batch < batches; batch++) {
      const start = now();
      for (let k = 0; k < each; k++) {
        if (operate(turn++) !== SUCCESS) throw new Error(`${work.test} has failed`);
      }
      samples[batch] = (now() - start - cost) / each;
    }
    if (phase !== "count") {
      const seconds = phase === "warm" ? work.warmUp : work.seconds;
      counts[0] = Math.min(SAMPLES_MAX, Math.ceil((seconds * 1e9) / ((now() - begin) / batches)));
    }
    world.broadcastSync({ buffer: counts });
    if (phase !== "count") batches = counts[0] as number;
  }
  if (world.rank === 0) writeResults(work.results, 0, percentiles(samples.subarray(0, batches)));
  await world.barrier();
  client.close();
}

await main();
