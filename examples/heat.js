// @ts-check
// Heat in a rod, on four tasks: each has a quarter of the rod and sends its border cells to its neighbours in every
// step, as a code that comes from MPI would. The caller joins as task 0, collects the rod, and compares it with what it
// computes alone. Shows: neighbours, messages that run ahead, a result of any size.
import { isMainThread } from "node:worker_threads";
import { attach, launch } from "pamir";

const QUARTERS = 4;
const CELLS = 4_000;
const STEPS = 2_000;
const HALO = 1; // header: i32 step parity, i32 side; payload: f64 border cell
const RESULT = 2; // header: i32 first cell; payload: f64 cells

/** One step from `now` to `next`; the first and the last cell are halo cells. @param {Float64Array} now @param {Float64Array} next */
function step(now, next) {
  for (let i = 1; i < now.length - 1; i++) {
    const [left, here, right] = [now[i - 1] ?? 0, now[i] ?? 0, now[i + 1] ?? 0];
    next[i] = here + 0.25 * (left - 2 * here + right);
  }
}

/** @param {number} cell */
const initial = (cell) => Math.sin((Math.PI * cell) / CELLS) + (cell % 97) / 97;

async function quarter() {
  const client = await attach();
  const { task } = client; // 1 … QUARTERS
  const context = client.createContext();
  const mine = CELLS / QUARTERS;
  const first = (task - 1) * mine;
  let now = new Float64Array(mine + 2);
  let next = new Float64Array(mine + 2);
  for (let i = 0; i < mine; i++) now[i + 1] = initial(first + i);

  // A neighbour may be one step ahead, not two: halo cells for two steps, told apart by the parity of the step.
  const halo = [new Float64Array(2), new Float64Array(2)];
  const arrived = [0, 0];
  context.dispatch(HALO, (message) => {
    const [parity = 0, side = 0] = new Int32Array(message.header.slice().buffer);
    const cells = halo[parity] ?? new Float64Array(2);
    cells[side] = new Float64Array(message.payload.slice().buffer)[0] ?? 0;
    arrived[parity] = (arrived[parity] ?? 0) + 1;
  });

  const left = task > 1 ? client.endpoint(task - 1) : undefined;
  const right = task < QUARTERS ? client.endpoint(task + 1) : undefined;
  const neighbours = (left === undefined ? 0 : 1) + (right === undefined ? 0 : 1);
  for (let s = 0; s < STEPS; s++) {
    const parity = s & 1;
    // My first cell is my left neighbour's right halo (side 1), my last one my right neighbour's left halo.
    if (left !== undefined) context.sendImmediate(left, HALO, new Int32Array([parity, 1]), now.subarray(1, 2));
    if (right !== undefined)
      context.sendImmediate(right, HALO, new Int32Array([parity, 0]), now.subarray(mine, mine + 1));
    context.advanceUntil(() => arrived[parity] === neighbours);
    arrived[parity] = 0;
    [now[0], now[mine + 1]] = [halo[parity]?.[0] ?? 0, halo[parity]?.[1] ?? 0];
    step(now, next);
    [now, next] = [next, now];
  }
  context.send({
    to: client.endpoint(0),
    dispatch: RESULT,
    header: new Int32Array([first]),
    payload: now.subarray(1, mine + 1),
  });
}

async function collect() {
  const job = await launch(new URL(import.meta.url), { tasks: QUARTERS + 1, join: true });
  const { client } = job;
  const context = client.createContext();
  const rod = new Float64Array(CELLS);
  let quarters = 0;
  context.dispatch(RESULT, (message) => {
    const [first = 0] = new Int32Array(message.header.slice().buffer);
    rod.set(new Float64Array(message.payload.slice().buffer), first);
    quarters++;
  });
  context.advanceUntil(() => quarters === QUARTERS, { timeout: 60_000 });
  client.close();
  await job.exited;

  let now = new Float64Array(CELLS + 2);
  let next = new Float64Array(CELLS + 2);
  for (let i = 0; i < CELLS; i++) now[i + 1] = initial(i);
  for (let s = 0; s < STEPS; s++) {
    step(now, next);
    [now, next] = [next, now];
  }
  const different = rod.filter((value, cell) => value !== now[cell + 1]).length;
  console.log(`${CELLS} cells, ${STEPS} steps on ${QUARTERS} tasks: ${different} cells differ from those of one task`);
  process.exitCode = different === 0 ? 0 : 1;
}

await (isMainThread ? collect() : quarter());
