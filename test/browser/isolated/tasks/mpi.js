// @ts-check
// A rank of pamir/mpi in a worker: ping-pong with its neighbor, then an allreduce with all, and what comes of abort().
import { attach } from "pamir";
import { init } from "pamir/mpi";

export const ROUNDS = 200;
export const LONG = 40_000;

/** Messages of one length go there and back; each side adds 1. @param {import("pamir/mpi").Comm} world */
function pingPong(world, /** @type {number} */ length) {
  const view = new Int32Array(length);
  const other = 3 - world.rank;
  for (let round = 0; round < ROUNDS; round++) {
    if (world.rank === 1) world.sendSync(view, other, round);
    const { source, tag, bytes } = world.recvSync(view, other);
    if (source !== other || tag !== round || bytes !== 4 * length) throw new Error(`${source}, ${tag}, ${bytes}`);
    view.fill(view[0] + 1);
    if (world.rank === 2) world.sendSync(view, other, round);
  }
  return [view[0], view[length - 1]];
}

// The test imports this file too, for the numbers.
if (typeof document === "undefined") {
  const client = await attach();
  const mpi = await init(client);
  const { world } = mpi;
  const counted = [pingPong(world, 1), pingPong(world, LONG)].flat();
  const sum = new Float64Array(5);
  await world.allreduce(Float64Array.of(world.rank + 0.5, ...counted), sum);
  if (client.args === "abort" && world.rank === 1) world.abort(3);
  await mpi.finalize();
  client.close();
}
