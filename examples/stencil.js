// @ts-check
// A star-shaped stencil on a square grid, after Stencil of the Parallel Research Kernels: each task has a block of the grid,
// and gets its neighbors' border cells in every iteration. Shows: a grid whose halo is exchanged, a reduction.
//   node examples/stencil.js [tasks]
//   npx pamir run --hosts a:4,b:4 examples/stencil.js
import { attach, errorText, launch, SUCCESS } from "pamir";

const N = 1_000;
const RADIUS = 2;
const ITERATIONS = 20; // after one that warms up

/** @param {import("pamir").Client} client */
async function block(client) {
  const world = await client.world();
  const grid = await world.createGrid({ size: [N, N], halo: RADIUS });
  const { cells } = grid;
  const [firstRow = 0, firstColumn = 0] = grid.first;
  const [rows = 0, columns = 0] = grid.count;
  const [width = 0] = grid.strides;
  const out = new Float64Array(cells.length);
  for (let row = 0; row < rows; row++) {
    const at = grid.index(row, 0);
    for (let column = 0; column < columns; column++) cells[at + column] = firstRow + row + firstColumn + column;
  }

  const weights = Array.from({ length: RADIUS + 1 }, (_, distance) => 1 / (2 * distance * RADIUS));
  /** The own cells that have neighbors everywhere. @param {number} first @param {number} count */
  const inner = (first, count) => [Math.max(first, RADIUS) - first, Math.min(first + count, N - RADIUS) - first];
  const [top = 0, bottom = 0] = inner(firstRow, rows);
  const [left = 0, right = 0] = inner(firstColumn, columns);

  function apply() {
    for (let row = top; row < bottom; row++) {
      const end = grid.index(row, right);
      for (let at = grid.index(row, left); at < end; at++) {
        let sum = 0;
        for (let d = 1; d <= RADIUS; d++) {
          sum += weights[d] * (cells[at + d] - cells[at - d] + cells[at + d * width] - cells[at - d * width]);
        }
        out[at] += sum;
      }
    }
  }

  let start = 0;
  for (let iteration = 0; iteration <= ITERATIONS; iteration++) {
    if (iteration === 1) start = client.now();
    const result = grid.exchangeSync();
    if (result !== SUCCESS) throw new Error(errorText(result));
    apply();
    // Own cells only: a task that does not get its neighbors' new cells comes to another norm.
    for (let row = 0; row < rows; row++) {
      const end = grid.index(row, columns);
      for (let at = grid.index(row, 0); at < end; at++) cells[at]++;
    }
  }
  const own = out.reduce((total, value) => total + Math.abs(value), 0);
  const [sum] = await world.allreduce({ send: Float64Array.of(own), operation: "sum" });

  // The weights ±1 / (2 · d · radius) of two points that are 2 · d apart make 1 / radius of i + j, and of what is the same
  // everywhere nothing: the pairs of one axis make 1, and an iteration 2.
  const seconds = (client.now() - start) / ITERATIONS;
  const points = (N - 2 * RADIUS) ** 2;
  const norm = sum / points;
  const expected = 2 * (ITERATIONS + 1);
  if (!(Math.abs(norm - expected) <= 1e-8)) throw new Error(`the norm is ${norm}, but must be ${expected}`);
  const rate = ((2 * (4 * RADIUS + 1) + 1) * points) / seconds / 1e6;
  if (world.rank === 0) {
    console.log(`tasks: ${world.size}, norm: ${norm} as it must be, ${rate.toFixed(0)} MFlop/s`);
  }
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
await (client === undefined ? start() : block(client));
