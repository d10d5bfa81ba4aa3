// @ts-check
// A star-shaped stencil on a square grid, after Stencil of the Parallel Research Kernels: each task has a strip of rows
// and puts its border rows straight into its neighbours' grids, in every iteration. Shows: put and fence, and the two
// messages that one-sided codes need: my halo may be written (MPI_Win_post), your halo is written (MPI_Win_complete).
//   node examples/stencil.js [tasks]
//   npx pamir run --hosts a:4,b:4 examples/stencil.js
import { attach, errorText, launch, SUCCESS } from "pamir";

const N = 1_000;
const RADIUS = 2;
const ITERATIONS = 20; // after one that warms up
const ROW_BYTES = N * Float64Array.BYTES_PER_ELEMENT;
const READY = 1; // my halo may be written; payload: f64 handle of my grid
const FILLED = 2; // your halo is written
const SUM = 3; // to task 0; payload: f64 sum over my inner points

/** The first row of a task. @param {number} task @param {number} size */
const firstRow = (task, size) => Math.floor((task * N) / size);

/** @param {import("pamir").Message} message */
const numberOf = (message) => new Float64Array(message.payload.slice().buffer)[0];

/** Calls of pamir return what they came to; here all but success is the end. @param {number} result */
function check(result) {
  if (result !== SUCCESS) throw new Error(errorText(result));
}

/** @param {import("pamir").Client} client */
async function strip(client) {
  const context = client.createContext();
  const { task, size } = client;
  const root = client.endpoint(0);

  // A task that has failed must not be waited for in vain: its neighbours give up too.
  const wait = (/** @type {() => boolean} */ condition) => check(context.advanceUntil(condition, { timeout: 20_000 }));

  // Grid: halo rows from above, own rows, halo rows from below. Others write into it, so it lies in a region.
  const first = firstRow(task, size);
  const rows = firstRow(task + 1, size) - first;
  const region = client.createRegion((rows + 2 * RADIUS) * ROW_BYTES);
  const grid = new Float64Array(region.bytes.buffer, region.bytes.byteOffset, (rows + 2 * RADIUS) * N);
  const out = new Float64Array(grid.length);
  for (let at = 0; at < grid.length; at++) grid[at] = first - RADIUS + Math.floor(at / N) + (at % N);

  /** My border rows next to a neighbour, and where they go in its grid. */
  const neighbours = [
    { other: task - 1, from: RADIUS, to: RADIUS + first - firstRow(task - 1, size) },
    { other: task + 1, from: rows, to: 0 },
  ]
    .filter(({ other }) => other >= 0 && other < size)
    .map(({ other, from, to }) => ({ endpoint: client.endpoint(other), from: from * ROW_BYTES, to: to * ROW_BYTES }));

  /** @type {Map<number, number>} */
  const handles = new Map();
  const sums = { count: 0, total: 0 };
  let [ready, filled, fenced] = [0, 0, 0];
  context.dispatch(READY, (message) => {
    handles.set(message.origin, numberOf(message));
    ready++;
  });
  context.dispatch(FILLED, () => {
    filled++;
  });
  context.dispatch(SUM, (message) => {
    sums.total += numberOf(message);
    sums.count++;
  });

  // A neighbour's next READY needs my FILLED, and its next FILLED my next READY: neither comes before it is counted for.
  function exchange() {
    const handle = Float64Array.of(region.handle);
    for (const { endpoint } of neighbours) check(context.sendImmediate(endpoint, READY, null, handle));
    wait(() => ready === neighbours.length);
    ready = 0;
    for (const { endpoint, from, to } of neighbours) {
      const remote = handles.get(endpoint) ?? Number.NaN;
      const bytes = RADIUS * ROW_BYTES;
      check(context.put({ to: endpoint, local: region, localOffset: from, remote, remoteOffset: to, bytes }));
      // Messages are not ordered with puts: this one is sent once the rows are there.
      const done = (/** @type {unknown} */ _cookie, /** @type {number} */ result) => {
        check(result);
        check(context.sendImmediate(endpoint, FILLED));
        fenced++;
      };
      check(context.fence(endpoint, done));
    }
    wait(() => filled === neighbours.length && fenced === neighbours.length);
    [filled, fenced] = [0, 0];
  }

  const weights = Array.from({ length: RADIUS + 1 }, (_, distance) => 1 / (2 * distance * RADIUS));
  const top = Math.max(first, RADIUS) - first + RADIUS;
  const bottom = Math.min(first + rows, N - RADIUS) - first + RADIUS;

  function apply() {
    for (let row = top; row < bottom; row++) {
      for (let at = row * N + RADIUS; at < (row + 1) * N - RADIUS; at++) {
        let sum = 0;
        for (let d = 1; d <= RADIUS; d++) {
          sum += weights[d] * (grid[at + d] - grid[at - d] + grid[at + d * N] - grid[at - d * N]);
        }
        out[at] += sum;
      }
    }
  }

  let start = 0;
  for (let iteration = 0; iteration <= ITERATIONS; iteration++) {
    if (iteration === 1) start = client.now();
    exchange();
    apply();
    // Own rows only: who does not get its neighbours' new rows comes to another norm.
    for (let at = RADIUS * N; at < (RADIUS + rows) * N; at++) grid[at]++;
  }
  const sum = out.reduce((total, value) => total + Math.abs(value), 0);
  check(context.sendImmediate(root, SUM, null, Float64Array.of(sum)));
  if (task > 0) return;

  // The weights ±1 / (2 · d · radius) of two points that are 2 · d apart make 1 / radius of i + j, and of what is the same
  // everywhere nothing: the pairs of one axis make 1, and an iteration 2.
  wait(() => sums.count === size);
  const seconds = (client.now() - start) / ITERATIONS;
  const points = (N - 2 * RADIUS) ** 2;
  const norm = sums.total / points;
  const expected = 2 * (ITERATIONS + 1);
  if (!(Math.abs(norm - expected) <= 1e-8)) throw new Error(`the norm is ${norm}, but must be ${expected}`);
  const rate = ((2 * (4 * RADIUS + 1) + 1) * points) / seconds / 1e6;
  console.log(`tasks: ${size}, norm: ${norm} as it must be, ${rate.toFixed(0)} MFlop/s`);
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
await (client === undefined ? start() : strip(client));
