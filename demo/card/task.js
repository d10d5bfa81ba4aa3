// @ts-check
// A task of the race: 1 leads, 2 answers. The page is task 0.
import { attach } from "pamir";
import { KILL, LATENCIES, RATE } from "./ids.js";
import { pingPong } from "./ping-pong.js";
import { stream } from "./stream.js";

const client = await attach();
const context = client.createContext();
const page = client.endpoint(0);
const peer = client.endpoint(3 - client.task);
const ping = pingPong(client, context, peer);
const rate = stream(client, context, peer);
let isKilled = false;
context.dispatch(KILL, () => {
  isKilled = true;
});

/** Milliseconds for each of the two, and between two reports: a frame or more. */
const { milliseconds } = /** @type {{ milliseconds: number }} */ (client.args);
const REPORT_MS = 40;
const { blockingWaits } = client.capabilities;
/** The clock of a page moves in steps of 5 µs: so many hops that one is seen to 10 ns. */
const TURNS = blockingWaits ? 256 : 1;

if (client.task === 1) {
  for (let warm = 0; warm < 20; warm++) await ping(TURNS);
  const end = performance.now() + milliseconds;
  while (performance.now() < end) {
    /** @type {number[]} */
    const latencies = [];
    const report = performance.now() + REPORT_MS;
    while (performance.now() < report && latencies.length < 500) latencies.push(await ping(TURNS));
    context.sendImmediate(page, LATENCIES, null, Float32Array.from(latencies));
  }
  for (let part = 0; part < 5; part++) {
    context.sendImmediate(page, RATE, null, Float64Array.of(await rate(milliseconds / 5)));
  }
  await client.close({ drain: true });
} else if (blockingWaits) {
  context.advanceUntil(() => isKilled);
  self.close();
} else {
  while (!isKilled) await context.progress();
  self.close();
}
