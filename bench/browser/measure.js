// @ts-check
// What is measured from task 0: a page's own thread, or Node's main thread.
import { launch } from "pamir";
import { ANSWER, LATENCY, PING, STAMP } from "./ids.js";

/** @param {number[]} list */
export function median(list) {
  return list.toSorted((a, b) => a - b)[list.length >> 1] ?? Number.NaN;
}

/** @param {import("pamir").Message} message */
function float({ payload }) {
  return /** @type {number} */ (new Float64Array(payload.slice().buffer)[0]);
}

/** A job of this thread and two workers. */
export async function start() {
  const job = await launch(new URL("./task.mjs", import.meta.url), { tasks: 3, join: true, heapBytes: 2 ** 24 });
  const context = job.client.createContext();
  /** @type {number[]} */
  const answers = [];
  /** @type {number[]} */
  const delays = [];
  let pongs = 0;
  context.dispatch(ANSWER, (message) => void answers.push(float(message)));
  context.dispatch(STAMP, (message) => {
    delays.push((performance.timeOrigin + performance.now() - float(message)) * 1e6);
  });
  context.dispatch(PING, () => void pongs++);
  const worker = job.client.endpoint(1);
  return {
    job,
    /** am_lat between the two workers, in ns. @param {number} batches */
    async latency(batches) {
      answers.length = 0;
      context.sendImmediate(worker, LATENCY, null, Int32Array.of(batches));
      while (answers.length === 0) await context.progress({ timeout: 60_000 });
      return /** @type {number} */ (answers[0]);
    },
    /** From a worker to this thread, asleep in progress(), in ns. @param {number} count */
    async parked(count) {
      delays.length = 0;
      context.sendImmediate(worker, STAMP, null, Int32Array.of(count));
      while (delays.length < count) await context.progress({ timeout: 60_000 });
      return median(delays);
    },
    /** Half a round trip between this thread, which polls, and a worker, in ns. @param {number} count */
    polled(count) {
      const eight = new Uint8Array(8);
      const begin = performance.now();
      for (let i = 0; i < count; i++) {
        const wanted = pongs + 1;
        context.sendImmediate(worker, PING, null, eight);
        while (pongs < wanted) context.advance(64);
      }
      return ((performance.now() - begin) * 1e6) / (2 * count);
    },
  };
}
