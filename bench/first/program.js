// @ts-check
// A program of its own whose first collective operations are timed, one by one: two threads, one operation behind the other.
//   node bench/first/program.js OPERATION FORM [FOLDER OF ANOTHER BUILD]
import { isMainThread } from "node:worker_threads";

const OPERATIONS = 10_050;
/** Of the clock, so that it is compiled when the first operation is timed. */
const READINGS = 20_000;

const [, , operation, form, folder] = process.argv;
const { attach, launch } = await import(folder ? `${folder}/dist/index.js` : "pamir");

/** @type {import("pamir").Client} */
const client = isMainThread
  ? (
      await launch(new URL(import.meta.url), {
        tasks: 2,
        join: true,
        contexts: 1,
        workerOptions: { argv: process.argv.slice(2) },
      })
    ).client
  : await attach();
const world = await client.world();
const stamps = new Float64Array(Math.max(READINGS, OPERATIONS + 1));
const read = (/** @type {number} */ at) => {
  stamps[at] = performance.now();
};
for (let i = 0; i < READINGS; i++) read(i);

const send = new Float64Array(1);
const receive = new Float64Array(1);
const given = { send, receive, operation: /** @type {const} */ ("sum") };

/** @type {Record<string, Record<string, () => unknown>>} */
const FORMS = {
  barrier: { blocking: () => world.barrierSync(), promise: () => world.barrier() },
  allreduce: {
    blocking: () => world.allreduceSync(given),
    promise: () => world.allreduce(given),
    "new arrays": () => world.allreduce({ send: Float64Array.of(1), operation: "sum" }),
  },
};
const operate = /** @type {() => unknown} */ (FORMS[operation ?? ""]?.[form ?? ""]);
read(0);
if (form === "blocking") {
  for (let i = 1; i <= OPERATIONS; i++) {
    operate();
    read(i);
  }
} else {
  for (let i = 1; i <= OPERATIONS; i++) {
    await operate();
    read(i);
  }
}
const times = Array.from(
  stamps.subarray(1, OPERATIONS + 1),
  (stamp, i) => (stamp - /** @type {number} */ (stamps[i])) * 1e6,
);
if (isMainThread) process.stdout.write(JSON.stringify(times), () => process.exit());
else await new Promise((resolve) => setTimeout(resolve, 60_000));
