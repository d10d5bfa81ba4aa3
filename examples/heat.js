// @ts-check
// Heat in a rod, on four tasks: each has a quarter of the rod and gets the border cells of its neighbors in every step, as a
// code that comes from MPI would. The caller joins as task 0, gathers the rod, and compares it with what it computes alone.
// Shows: a grid whose halo is exchanged, gather, join.
import { isMainThread } from "node:worker_threads";
import { attach, errorText, launch, SUCCESS } from "pamir";

const QUARTERS = 4;
const CELLS = 4_000;
const STEPS = 2_000;

/** One step from `now` to `next`; the first and the last cell are halo cells. @param {Float64Array} now @param {Float64Array} next */
function step(now, next) {
  for (let i = 1; i < now.length - 1; i++) {
    const [left, here, right] = [now[i - 1] ?? 0, now[i] ?? 0, now[i + 1] ?? 0];
    next[i] = here + 0.25 * (left - 2 * here + right);
  }
}

/** @param {number} cell */
const initial = (cell) => Math.sin((Math.PI * cell) / CELLS) + (cell % 97) / 97;

/** A quarter of the rod. Task 0 gets the whole. @param {import("pamir").Client} client */
async function quarter(client) {
  const world = await client.world();
  const grid = await world.createGrid({ size: [CELLS], fields: 2 });
  const [first = 0] = grid.first;
  const [count = 0] = grid.count;
  for (let i = 0; i < count; i++) grid.cells[grid.index(i)] = initial(first + i);
  for (let s = 0; s < STEPS; s++) {
    const result = grid.exchangeSync(s % 2);
    if (result !== SUCCESS) throw new Error(errorText(result));
    const [now = grid.cells, next = grid.cells] = s % 2 === 0 ? grid.fields : [grid.fields[1], grid.cells];
    step(now, next);
  }
  return world.gather({ send: grid.cells.subarray(grid.index(0), grid.index(count)) });
}

async function compare() {
  const job = await launch(new URL(import.meta.url), { tasks: QUARTERS, join: true });
  const rod = await quarter(job.client);
  job.client.close();
  await job.exited;

  let now = new Float64Array(CELLS + 2);
  let next = new Float64Array(CELLS + 2);
  for (let i = 0; i < CELLS; i++) now[i + 1] = initial(i);
  for (let s = 0; s < STEPS; s++) {
    step(now, next);
    [now, next] = [next, now];
  }
  const different = rod?.filter((value, cell) => value !== now[cell + 1]).length;
  console.log(`${CELLS} cells, ${STEPS} steps on ${QUARTERS} tasks: ${different} cells differ from those of one task`);
  process.exitCode = different === 0 ? 0 : 1;
}

await (isMainThread ? compare() : quarter(await attach()));
