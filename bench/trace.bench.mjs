// @ts-check
// What a trace and debug mode cost: the same traffic between two tasks with and without, alternating, in one run.
//   node bench/trace.bench.mjs [--quick] [--json]
import { isMainThread } from "node:worker_threads";
import { attach, launch } from "pamir";

const DATA = 1;
const DONE = 2;
const quick = process.argv.includes("--quick");
const MESSAGES = quick ? 20_000 : 2_000_000;
const HOPS = quick ? 2_000 : 200_000;
const ROUNDS = quick ? 1 : 7;

/** @param {number[]} values */
const median = (values) => /** @type {number} */ (values.toSorted((a, b) => a - b)[values.length >> 1]);

/**
 * Nanoseconds a message in one stream, and a hop of ping-pong.
 * @param {{ trace?: boolean, debug?: boolean }} options
 */
async function measure(options) {
  const job = await launch(new URL(import.meta.url), { tasks: 2, join: true, ...options });
  const context = job.client.createContext();
  const to = job.client.endpoint(1);
  const bytes = new Uint8Array(8);
  let replies = 0;
  context.dispatch(DONE, () => {
    replies++;
  });
  /** @type {(count: number, window: number) => number} */
  const exchange = (count, window) => {
    const start = performance.now();
    for (let sent = 0; sent < count; ) {
      const before = replies;
      for (let i = 0; i < window; i++) context.sendImmediate(to, i === window - 1 ? DONE : DATA, null, bytes);
      sent += window;
      context.advanceUntil(() => replies > before);
    }
    return ((performance.now() - start) * 1e6) / count;
  };
  exchange(MESSAGES / 4, 64);
  const stream = exchange(MESSAGES, 64);
  exchange(HOPS / 4, 1);
  const hop = exchange(HOPS, 1) / 2;
  await job.terminate();
  return { stream, hop };
}

if (isMainThread) {
  const off = [];
  const on = [];
  const debugged = [];
  for (let round = 0; round < ROUNDS; round++) {
    off.push(await measure({}));
    on.push(await measure({ trace: true }));
    debugged.push(await measure({ debug: true }));
  }
  /** @type {(runs: { stream: number, hop: number }[], name: "stream" | "hop") => number} */
  const of = (runs, name) => median(runs.map((run) => run[name]));
  const [streamOff, streamOn] = [of(off, "stream"), of(on, "stream")];
  const [hopOff, hopOn] = [of(off, "hop"), of(on, "hop")];
  const start = performance.now();
  for (let i = 0; i < 1e6; i++) performance.now();
  const clock = performance.now() - start;
  // One on each side, and the two take turns.
  const event = (streamOn - streamOff) / 2;
  const debug = of(debugged, "stream") - streamOff;
  /** @param {number} value */
  const number = (value) => value.toFixed(1).padStart(8);
  if (process.argv.includes("--json")) console.log(JSON.stringify({ clock, event, debug }));
  else {
    console.log(`one reading of the clock${number(clock)} ns`);
    console.log(`                              off      on   more, ns`);
    console.log(
      `64 messages, one answer ${number(streamOff)}${number(streamOn)}${number(streamOn - streamOff)} a message`,
    );
    console.log(`ping-pong, one way      ${number(hopOff)}${number(hopOn)}${number(hopOn - hopOff)} a hop`);
    console.log(`an event, in the stream ${number(event)} ns`);
    console.log(`a message in debug mode ${number(debug)} ns more`);
  }
} else {
  const client = await attach();
  const context = client.createContext();
  const bytes = new Uint8Array(8);
  context.dispatch(DATA, () => {});
  context.dispatch(DONE, (message) => context.sendImmediate(message.origin, DONE, null, bytes));
  context.advanceUntil(() => false);
}
