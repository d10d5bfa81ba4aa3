// @ts-check
// The triad a += b + scalar · c, after Nstream of the Parallel Research Kernels: each task has a piece of the vectors and
// needs nobody, but for a common beginning and for the checksum, which all of them add up in one word of task 0. Shows:
// rmw on 64-bit words, a barrier of messages.
//   node examples/nstream.js [tasks]
//   npx pamir run --hosts a:4,b:4 examples/nstream.js
import { attach, errorText, launch, SUCCESS } from "pamir";

const LENGTH = 2_000_000;
const ITERATIONS = 20; // after one that warms up
const SCALAR = 3;
const BARRIER = 0;
const HANDLE = 1; // task 0 → all; payload: f64 handle of the checksum's region

/** Calls of pamir return what they came to; here all but success is the end. @param {number} result */
function check(result) {
  if (result !== SUCCESS) throw new Error(errorText(result));
}

/** @param {import("pamir").Client} client */
async function triad(client) {
  const context = client.createContext();
  const { task, size } = client;
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

  // Only the word that everybody changes lies in a region; the vectors are this task's alone.
  const region = client.createRegion(BigInt64Array.BYTES_PER_ELEMENT);
  const checksum = new BigInt64Array(region.bytes.buffer, region.bytes.byteOffset, 1);
  let remote = Number.NaN;
  context.dispatch(HANDLE, (message) => {
    [remote] = new Float64Array(message.payload.slice().buffer);
  });
  if (task === 0) {
    checksum[0] = 0n; // a new region may hold anything
    for (let other = 0; other < size; other++) {
      check(context.sendImmediate(client.endpoint(other), HANDLE, null, Float64Array.of(region.handle)));
    }
  }
  wait(() => !Number.isNaN(remote));

  const length = Math.floor(((task + 1) * LENGTH) / size) - Math.floor((task * LENGTH) / size);
  const a = new Float64Array(length);
  const b = new Float64Array(length).fill(2);
  const c = new Float64Array(length).fill(2);
  let start = 0;
  for (let iteration = 0; iteration <= ITERATIONS; iteration++) {
    if (iteration === 1) {
      barrier();
      start = client.now();
    }
    for (let i = 0; i < length; i++) a[i] += b[i] + SCALAR * c[i];
  }
  barrier();
  const seconds = (client.now() - start) / ITERATIONS;

  // An rmw adds whole numbers, which these sums are.
  const value = Math.round(a.reduce((total, element) => total + element, 0));
  let isAdded = false;
  check(
    context.rmw({
      to: root,
      remote,
      operation: "add",
      type: "i64",
      value,
      onDone: (_cookie, result) => {
        check(result);
        isAdded = true;
      },
    }),
  );
  wait(() => isAdded);
  barrier();
  if (task > 0) return;

  const sum = Number(checksum[0]);
  const expected = (ITERATIONS + 1) * (2 + SCALAR * 2) * LENGTH;
  if (!(Math.abs(sum - expected) / expected <= 1e-8)) {
    throw new Error(`the checksum is ${sum}, but must be ${expected}`);
  }
  const rate = (4 * 8 * LENGTH) / seconds / 1e6;
  console.log(`tasks: ${size}, checksum: ${sum} as it must be, ${rate.toFixed(0)} MB/s`);
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
await (client === undefined ? start() : triad(client));
