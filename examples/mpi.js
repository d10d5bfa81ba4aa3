// @ts-check
// The game of life on four ranks, as a code that comes from MPI would have it: each rank has a band of rows, and gets the rows
// beyond its borders from its neighbors in every generation. The caller joins as rank 0, and compares with one rank alone.
// Shows: pamir/mpi (irecv, send, PROC_NULL, allreduce, gather), and a region whose parts are sent from where they are.
import { isMainThread } from "node:worker_threads";
import { attach, launch } from "pamir";
import { init, PROC_NULL, waitallSync } from "pamir/mpi";

const RANKS = 4;
const WIDTH = 256;
const HEIGHT = 256;
const GENERATIONS = 200;

/** @param {number} row @param {number} column */
const first = (row, column) => Number(Math.imul(row * WIDTH + column + 1, 0x9e3779b1) >>> 28 < 5);

/** One generation of rows 1 … height, between two rows of others. @param {Uint8Array} now @param {Uint8Array} next */
function step(now, next) {
  const end = now.length - WIDTH;
  for (let cell = WIDTH; cell < end; cell++) {
    let around = -(now[cell] ?? 0);
    const column = cell % WIDTH;
    for (let row = cell - WIDTH; row <= cell + WIDTH; row += WIDTH) {
      around += now[row] ?? 0;
      if (column > 0) around += now[row - 1] ?? 0;
      if (column < WIDTH - 1) around += now[row + 1] ?? 0;
    }
    next[cell] = Number(around === 3 || (around === 2 && now[cell] === 1));
  }
}

/** A band of the board. Rank 0 gets the whole. @param {import("pamir").Client} client */
async function band(client) {
  const mpi = await init(client);
  const { world } = mpi;
  const rows = HEIGHT / world.size;
  const above = world.rank > 0 ? world.rank - 1 : PROC_NULL;
  const below = world.rank < world.size - 1 ? world.rank + 1 : PROC_NULL;
  const bytes = (rows + 2) * WIDTH;
  const region = client.createRegion(2 * bytes);
  region.bytes.fill(0);
  let now = region.bytes.subarray(0, bytes);
  let next = region.bytes.subarray(bytes);
  for (let cell = WIDTH; cell < bytes - WIDTH; cell++)
    now[cell] = first(world.rank * rows + Math.floor(cell / WIDTH) - 1, cell % WIDTH);
  /** @param {Uint8Array} cells @param {number} row */
  const rowOf = (cells, row) => cells.subarray(row * WIDTH, (row + 1) * WIDTH);
  for (let generation = 0; generation < GENERATIONS; generation++) {
    const halo = [world.irecv(rowOf(now, 0), above), world.irecv(rowOf(now, rows + 1), below)];
    world.sendSync(rowOf(now, 1), above);
    world.sendSync(rowOf(now, rows), below);
    waitallSync(halo);
    step(now, next);
    [now, next] = [next, now];
  }
  const own = now.subarray(WIDTH, bytes - WIDTH);
  const alive = new Int32Array(1);
  await world.allreduce(Int32Array.of(own.reduce((sum, cell) => sum + cell, 0)), alive);
  const board = world.rank === 0 ? new Uint8Array(HEIGHT * WIDTH) : null;
  await world.gather(own, board);
  await mpi.finalize();
  return { board, alive: alive[0] };
}

async function compare() {
  const job = await launch(new URL(import.meta.url), { tasks: RANKS, join: true });
  const { board, alive } = await band(job.client);
  job.client.close();
  await job.exited;

  let now = new Uint8Array((HEIGHT + 2) * WIDTH);
  let next = now.slice();
  for (let cell = WIDTH; cell < now.length - WIDTH; cell++)
    now[cell] = first(Math.floor(cell / WIDTH) - 1, cell % WIDTH);
  for (let generation = 0; generation < GENERATIONS; generation++) {
    step(now, next);
    [now, next] = [next, now];
  }
  const alone = now.subarray(WIDTH, now.length - WIDTH);
  const different = board?.filter((cell, i) => cell !== alone[i]).length;
  const count = alone.reduce((sum, cell) => sum + cell, 0);
  console.log(
    `${GENERATIONS} generations on ${RANKS} ranks: ${different} cells differ, ${alive} of ${count} are alive`,
  );
  process.exitCode = different === 0 && alive === count ? 0 : 1;
}

await (isMainThread ? compare() : band(await attach()));
