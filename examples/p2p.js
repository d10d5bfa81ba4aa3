// @ts-check
// A pipeline, after Synch_p2p of the Parallel Research Kernels: a grid is split by columns, each cell needs the ones to
// the left of it and below it, so each row passes through the tasks one after the other. The last cell of all goes back
// to the first one, negated, and holds the next iteration up. Shows: small messages that go straight to their place,
// and whose number says what has arrived.
//   node examples/p2p.js [tasks]
//   npx pamir run --hosts a:4,b:4 examples/p2p.js
import { attach, errorText, launch, SUCCESS } from "pamir";

const M = 1_000; // columns
const N = 1_000; // rows
const ITERATIONS = 20; // after one that warms up
const CELL = 1; // to the right neighbour; payload: f64 last cell of the next row
const CORNER = 2; // last task → first task; payload: f64 last cell of the last row, negated

/** Calls of pamir return what they came to; here all but success is the end. @param {number} result */
function check(result) {
  if (result !== SUCCESS) throw new Error(errorText(result));
}

/** @param {import("pamir").Client} client */
async function pipeline(client) {
  const context = client.createContext();
  const { task, size } = client;
  const isLast = task === size - 1;
  const root = client.endpoint(0);
  const right = isLast ? undefined : client.endpoint(task + 1);

  // A task that has failed must not be waited for in vain: its neighbours give up too.
  const wait = (/** @type {() => boolean} */ condition) => check(context.advanceUntil(condition, { timeout: 20_000 }));

  // Cell (i, j) of this task stands at i + 1 + j * width; in front of it the last cell of the left neighbour's row.
  const first = Math.floor((task * M) / size);
  const columns = Math.floor(((task + 1) * M) / size) - first;
  const width = columns + 1;
  const grid = new Float64Array(width * N);
  for (let i = 0; i < width; i++) grid[i] = first + i - 1;
  if (task === 0) for (let j = 0; j < N; j++) grid[1 + j * width] = j;

  // Messages of one task come in the order sent: the nth is of row n. The left neighbour may be many rows ahead, but not
  // an iteration: what begins the next one, the corner, comes from behind the last row of every task.
  const bytes = new Uint8Array(grid.buffer);
  let row = 0;
  let corners = 0;
  context.dispatch(CELL, (message) => {
    row++;
    message.copyTo(bytes, row * width * grid.BYTES_PER_ELEMENT);
  });
  context.dispatch(CORNER, (message) => {
    corners++;
    message.copyTo(bytes, grid.BYTES_PER_ELEMENT);
  });

  let start = 0;
  for (let iteration = 0; iteration <= ITERATIONS; iteration++) {
    if (iteration === 1) start = client.now();
    row = 0;
    for (let j = 1; j < N; j++) {
      if (task > 0) wait(() => row >= j);
      const end = (j + 1) * width;
      for (let at = j * width + (task === 0 ? 2 : 1); at < end; at++) {
        grid[at] = grid[at - 1] + grid[at - width] - grid[at - width - 1];
      }
      if (right !== undefined) check(context.sendImmediate(right, CELL, null, grid.subarray(end - 1, end)));
    }
    if (isLast) check(context.sendImmediate(root, CORNER, null, Float64Array.of(-grid[width * N - 1])));
    if (task === 0) wait(() => corners > iteration);
  }
  // What has found no room yet would end with its task.
  if (!isLast) return await client.close({ drain: true, timeout: 20_000 });

  // A(i, j) = A(i, 0) + A(0, j) - A(0, 0): the corner is m - 1 + n - 1, and its own value before is added each time.
  const seconds = (client.now() - start) / ITERATIONS;
  const corner = grid[width * N - 1];
  const expected = (ITERATIONS + 1) * (M + N - 2);
  if (corner !== expected) throw new Error(`the corner is ${corner}, but must be ${expected}`);
  const rate = (2 * (M - 1) * (N - 1)) / seconds / 1e6;
  console.log(`tasks: ${size}, corner: ${corner} as it must be, ${rate.toFixed(0)} MFlop/s`);
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
await (client === undefined ? start() : pipeline(client));
