// @ts-check
// B += A^T of a square matrix, after Transpose of the Parallel Research Kernels: each task has a block of columns of both
// and gets from every other one the square that it needs, while that one does nothing for it. Shows: a region of each task,
// large gets and their callbacks, barriers.
//   node examples/transpose.js [tasks]; their number divides ORDER
//   npx pamir run --hosts a:4,b:4 examples/transpose.js
import { attach, errorText, launch, SUCCESS } from "pamir";

const ORDER = 960;
const ITERATIONS = 10; // after one that warms up

/** Calls of pamir return what they came to; here all but success is the end. @param {number} result */
function check(result) {
  if (result !== SUCCESS) throw new Error(errorText(result));
}

/** @param {import("pamir").Client} client */
async function columns(client) {
  const context = client.createContext();
  const world = await client.world();
  const { rank, size } = world;
  if (ORDER % size !== 0) throw new Error(`${size} tasks do not divide a matrix of order ${ORDER}`);

  // A block of columns is a row of squares, one for each task, each in one piece: element (i, j) of square s of this task
  // is (s * side + i, rank * side + j) of the matrix, and stands at s * square + i + j * side.
  const side = ORDER / size;
  const square = side ** 2;
  const squareBytes = square * Float64Array.BYTES_PER_ELEMENT;
  const shared = await world.shareRegion(size * squareBytes);
  const a = shared.view(Float64Array);
  const local = client.createRegion(size * squareBytes);
  const incoming = new Float64Array(local.bytes.buffer, local.bytes.byteOffset, size * square);
  const b = new Float64Array(size * square);
  for (let s = 0; s < size; s++) {
    for (let j = 0; j < side; j++) {
      for (let i = 0; i < side; i++) a[s * square + i + j * side] = ORDER * (rank * side + j) + s * side + i;
    }
  }

  /** Adds what stands in `from`, transposed, to square s of B. @param {Float64Array} from @param {number} s */
  function addTransposed(from, s) {
    for (let j = 0; j < side; j++) {
      for (let i = 0; i < side; i++) b[s * square + i + j * side] += from[j + i * side];
    }
  }

  let start = 0;
  for (let iteration = 0; iteration <= ITERATIONS; iteration++) {
    check(world.barrierSync()); // each task's A is as this iteration needs it
    if (iteration === 1) start = client.now();
    let added = 0;
    for (let step = 1; step < size; step++) {
      const s = (rank + step) % size; // each begins with another one
      check(
        context.get({
          to: world.endpoint(s),
          local,
          localOffset: s * squareBytes,
          remote: shared.handles[s] ?? Number.NaN,
          remoteOffset: rank * squareBytes,
          bytes: squareBytes,
          onLocal: (_cookie, result) => {
            check(result);
            addTransposed(incoming.subarray(s * square, (s + 1) * square), s);
            added++;
          },
        }),
      );
    }
    addTransposed(a.subarray(rank * square, (rank + 1) * square), rank);
    check(context.advanceUntil(() => added === size - 1));
    check(world.barrierSync()); // no task reads this one's A any more
    for (let at = 0; at < a.length; at++) a[at]++;
  }
  const seconds = (client.now() - start) / ITERATIONS;

  // B(i, j) is the sum of A(j, i) + iteration over the iterations.
  let deviation = 0;
  for (let s = 0; s < size; s++) {
    for (let j = 0; j < side; j++) {
      for (let i = 0; i < side; i++) {
        const initial = ORDER * (s * side + i) + rank * side + j;
        const expected = (ITERATIONS + 1) * initial + (ITERATIONS * (ITERATIONS + 1)) / 2;
        deviation += Math.abs(b[s * square + i + j * side] - expected);
      }
    }
  }
  const [errors] = await world.allreduce({ send: Float64Array.of(deviation), operation: "sum" });
  if (!(errors < 1e-8)) throw new Error(`the errors sum up to ${errors}, but must be below 1e-8`);
  const rate = (2 * 8 * ORDER ** 2) / seconds / 1e6;
  if (rank === 0) console.log(`tasks: ${size}, sum of errors: ${errors} as it must be, ${rate.toFixed(0)} MB/s`);
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
