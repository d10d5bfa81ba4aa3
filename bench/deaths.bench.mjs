// How soon those who are left learn that a task has ended: from the last thing that it did (terminate(): from the call) to
// the callback of whenEnded(); beside a plain worker that ends in the same way, and its "exit" event. Its caller must not
// block to hear of it, and a promise of a reply by postMessage never settles. Usage: node bench/deaths.bench.mjs [--quick]
import { Worker } from "node:worker_threads";
import { Table } from "console-table-printer";
import { launch } from "pamir";
import { END, now, READY, SHARED_BYTES, STAMP, TAKEN } from "./deaths/ends.js";

const quick = process.argv.includes("--quick");
const ROUNDS = quick ? 1 : 21;
/** Milliseconds in which a victim comes to be as busy, parked or asleep as it will be. */
const PAUSE = 5;
/** Milliseconds that are hoped for. */
const HOPED = 100;
/** Milliseconds that no end takes. */
const PATIENCE = 20_000;

/** @typedef {"throw" | "exit" | "terminate" | "memory"} How */
/** @typedef {"busy" | "parked" | "asleep"} State */
/** @typedef {"blocked" | "awaiting"} Survivor */

const workerOptions = { resourceLimits: { maxOldGenerationSizeMb: 24 } };
const file = (/** @type {string} */ name) => new URL(`deaths/${name}.js`, import.meta.url);
const pause = () => new Promise((resolve) => setTimeout(resolve, PAUSE));
/** @param {number[]} list */
const median = (list) => list.toSorted((a, b) => a - b)[list.length >> 1] ?? Number.NaN;
/** @param {number} value */
const ms = (value) => `${value.toPrecision(3)} ms`;

/** Calls of pamir, and promises of a reply by postMessage: how many were made, and how many settled. */
const settled = { calls: 0, ofCalls: 0, replies: 0, ofReplies: 0 };

/** @param {Int32Array} words */
async function ready(words) {
  while (Atomics.load(words, READY) === 0) await pause();
  await pause();
}

/**
 * Ends one task.
 * @param {import("pamir").Job} job
 * @param {import("pamir").Context} context
 * @param {How} how @param {State} state @param {Survivor} survivor
 * @returns {Promise<number>} milliseconds
 */
async function endTask(job, context, how, state, survivor) {
  const shared = new SharedArrayBuffer(SHARED_BYTES);
  const words = new Int32Array(shared);
  const task = job.spawn({ args: { how, state, shared }, workerOptions });
  const to = job.client.endpoint(task);
  await ready(words);
  let told = Number.NaN;
  context.whenEnded(to, () => {
    told = now();
  });
  settled.ofCalls++;
  const call = context.call(to, 2).catch(({ code }) => {
    if (code === "PAMIR_SHUTDOWN") settled.calls++;
  });
  await pause();
  const start = now();
  if (how === "terminate") void job.terminate(task);
  else if (state === "busy") Atomics.store(words, END, 1);
  else context.sendImmediate(to, 1);
  const isTold = () => !Number.isNaN(told);
  if (survivor === "blocked") context.advanceUntil(isTold, { timeout: PATIENCE });
  else while (!isTold()) await context.progress({ timeout: PATIENCE });
  await call;
  if (!isTold()) throw new Error(`${how}, ${state}: nobody was told in ${PATIENCE} ms`);
  return told - (how === "terminate" ? start : /** @type {number} */ (new Float64Array(shared, STAMP, 1)[0]));
}

/**
 * Ends one plain worker.
 * @param {How} how @param {State} state
 * @returns {Promise<number>} milliseconds
 */
async function endWorker(how, state) {
  const shared = new SharedArrayBuffer(SHARED_BYTES);
  const words = new Int32Array(shared);
  const worker = new Worker(file("worker"), { ...workerOptions, workerData: { how, state, shared } });
  worker.on("error", () => {});
  worker.on("message", () => Atomics.add(words, TAKEN, 1));
  await ready(words);
  /** @type {Promise<number>} */
  const exited = new Promise((resolve) => worker.on("exit", () => resolve(now())));
  settled.ofReplies++;
  const reply = new Promise((resolve) => worker.on("message", (message) => message === "reply" && resolve(message)));
  void reply.then(() => settled.replies++);
  worker.postMessage("ask");
  await pause();
  const start = now();
  if (how === "terminate") void worker.terminate();
  else if (state === "asleep") worker.postMessage("end");
  else {
    Atomics.store(words, END, 1);
    Atomics.notify(words, END);
  }
  const told = await exited;
  return told - (how === "terminate" ? start : /** @type {number} */ (new Float64Array(shared, STAMP, 1)[0]));
}

const cells = /** @type {How[]} */ (["throw", "exit", "terminate", "memory"]).flatMap((how) =>
  /** @type {State[]} */ (["busy", "parked", "asleep"]).flatMap((state) =>
    /** @type {Survivor[]} */ (["blocked", "awaiting"]).map((survivor) => ({ how, state, survivor })),
  ),
);
const table = new Table();
let isMet = true;
// The quick ones: each way to end, each state, each survivor once.
for (const { how, state, survivor } of quick ? cells.filter((_, i) => i % 5 === 0) : cells) {
  const job = await launch(file("task"), {
    tasks: 1,
    join: true,
    maxTasks: ROUNDS + 2,
    contexts: 1,
    heapBytes: 2 ** 24,
    onError: "ignore",
  });
  const context = job.client.createContext();
  context.dispatch(1, () => {});
  const ours = /** @type {number[]} */ ([]);
  const theirs = /** @type {number[]} */ ([]);
  for (let round = quick ? 0 : -1; round < ROUNDS; round++) {
    const [own, other] = [await endTask(job, context, how, state, survivor), await endWorker(how, state)];
    if (round < 0) continue; // warm
    ours.push(own);
    theirs.push(other);
  }
  await job.terminate();
  isMet &&= median(ours) < HOPED;
  table.addRow({
    end: how,
    victim: state,
    survivor,
    "pamir, median": ms(median(ours)),
    worst: ms(Math.max(...ours)),
    '"exit", median': ms(median(theirs)),
    "its worst": ms(Math.max(...theirs)),
    ratio: median(ours.map((own, i) => own / /** @type {number} */ (theirs[i]))).toPrecision(3),
    [`< ${HOPED} ms`]: median(ours) < HOPED ? "yes" : "NO",
  });
}
console.log(`Node ${process.version}, ${ROUNDS} ends each; ratio: pamir to the "exit" event, to which nobody blocks`);
table.printTable();
console.log(`calls that were pending: ${settled.calls} of ${settled.ofCalls} came to PAMIR_SHUTDOWN`);
console.log(`replies awaited by postMessage: ${settled.replies} of ${settled.ofReplies} promises settled`);
if (settled.calls !== settled.ofCalls) throw new Error("a call was not told of its target's end");
process.exitCode = isMet ? 0 : 3;
