// @ts-check
// B += A^T of a square matrix, after Transpose of the Parallel Research Kernels: each task has a block of columns of both
// and gets from every other one the square that it needs, while that one does nothing for it. Shows: large gets and
// their callbacks, a barrier of messages.
//   node examples/transpose.js [tasks]; their number divides ORDER
//   npx pamir run --hosts a:4,b:4 examples/transpose.js
import { attach, errorText, launch, SUCCESS } from "pamir";

const ORDER = 960;
const ITERATIONS = 10; // after one that warms up
const BARRIER = 0;
const HANDLE = 1; // to everybody; payload: f64 handle of my block of A
const ERRORS = 2; // to task 0; payload: f64 sum of my deviations

/** @param {import("pamir").Message} message */
const numberOf = (message) => new Float64Array(message.payload.slice().buffer)[0];

/** Calls of pamir return what they came to; here all but success is the end. @param {number} result */
function check(result) {
  if (result !== SUCCESS) throw new Error(errorText(result));
}

/** @param {import("pamir").Client} client */
async function columns(client) {
  const context = client.createContext();
  const { task, size } = client;
  if (ORDER % size !== 0) throw new Error(`${size} tasks do not divide a matrix of order ${ORDER}`);
  const root = client.endpoint(0);

  // A task that has failed must not be waited for in vain: its neighbours give up too.
  const wait = (/** @type {() => boolean} */ condition) => check(context.advanceUntil(condition, { timeout: 20_000 }));

  // The first that leaves has heard from all. Others may hear of its next barrier before they have heard from all in this
  // one: so the messages are counted.
  let arrived = 0;
  context.dispatch(BARRIER, () => {
    arrived++;
  });
  function barrier() {
    for (let other = 0; other < size; other++) check(context.sendImmediate(client.endpoint(other), BARRIER));
    wait(() => arrived >= size);
    arrived -= size;
  }

  // A block of columns is a row of squares, one for each task, each in one piece: element (i, j) of square s of this task
  // is (s * side + i, task * side + j) of the matrix, and stands at s * square + i + j * side.
  const side = ORDER / size;
  const square = side ** 2;
  const squareBytes = square * Float64Array.BYTES_PER_ELEMENT;
  const [regionA, regionIn] = [client.createRegion(size * squareBytes), client.createRegion(size * squareBytes)];
  const [a, incoming] = [regionA, regionIn].map(
    ({ bytes }) => new Float64Array(bytes.buffer, bytes.byteOffset, size * square),
  );
  const b = new Float64Array(size * square);
  for (let s = 0; s < size; s++) {
    for (let j = 0; j < side; j++) {
      for (let i = 0; i < side; i++) a[s * square + i + j * side] = ORDER * (task * side + j) + s * side + i;
    }
  }

  /** @type {Map<number, number>} */
  const handles = new Map();
  const errors = { count: 0, total: 0 };
  context.dispatch(HANDLE, (message) => {
    handles.set(message.origin, numberOf(message));
  });
  context.dispatch(ERRORS, (message) => {
    errors.total += numberOf(message);
    errors.count++;
  });
  for (let other = 0; other < size; other++) {
    check(context.sendImmediate(client.endpoint(other), HANDLE, null, Float64Array.of(regionA.handle)));
  }
  wait(() => handles.size === size);

  /** Adds what stands in `from`, transposed, to square s of B. @param {Float64Array} from @param {number} s */
  function addTransposed(from, s) {
    for (let j = 0; j < side; j++) {
      for (let i = 0; i < side; i++) b[s * square + i + j * side] += from[j + i * side];
    }
  }

  let start = 0;
  for (let iteration = 0; iteration <= ITERATIONS; iteration++) {
    barrier(); // everybody's A is as this iteration needs it
    if (iteration === 1) start = client.now();
    let added = 0;
    for (let step = 1; step < size; step++) {
      const s = (task + step) % size; // each begins with another one
      const to = client.endpoint(s);
      check(
        context.get({
          to,
          local: regionIn,
          localOffset: s * squareBytes,
          remote: handles.get(to) ?? Number.NaN,
          remoteOffset: task * squareBytes,
          bytes: squareBytes,
          onLocal: (_cookie, result) => {
            check(result);
            addTransposed(incoming.subarray(s * square, (s + 1) * square), s);
            added++;
          },
        }),
      );
    }
    addTransposed(a.subarray(task * square, (task + 1) * square), task);
    wait(() => added === size - 1);
    barrier(); // nobody reads my A any more
    for (let at = 0; at < a.length; at++) a[at]++;
  }
  const seconds = (client.now() - start) / ITERATIONS;

  // B(i, j) is the sum of A(j, i) + iteration over the iterations.
  let deviation = 0;
  for (let s = 0; s < size; s++) {
    for (let j = 0; j < side; j++) {
      for (let i = 0; i < side; i++) {
        const initial = ORDER * (s * side + i) + task * side + j;
        const expected = (ITERATIONS + 1) * initial + (ITERATIONS * (ITERATIONS + 1)) / 2;
        deviation += Math.abs(b[s * square + i + j * side] - expected);
      }
    }
  }
  check(context.sendImmediate(root, ERRORS, null, Float64Array.of(deviation)));
  if (task > 0) return;

  wait(() => errors.count === size);
  if (!(errors.total < 1e-8)) throw new Error(`the errors sum up to ${errors.total}, but must be below 1e-8`);
  const rate = (2 * 8 * ORDER ** 2) / seconds / 1e6;
  console.log(`tasks: ${size}, sum of errors: ${errors.total} as it must be, ${rate.toFixed(0)} MB/s`);
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
await (client === undefined ? start() : columns(client));
