// @ts-check
// Tasks 1 and 2 of the measurements in a browser, and of the same in Node: it runs in both.
import { attach, SUCCESS } from "pamir";
import { ANSWER, BALL, LATENCY, PING, STAMP } from "./ids.js";

const client = await attach();
const context = client.createContext();
const peer = client.endpoint(3 - client.task);
const eight = new Uint8Array(8);
let balls = 0;
/** @type {(() => void) | undefined} */
let next;

context.dispatch(BALL, () => {
  balls++;
  if (client.task === 2) context.sendImmediate(peer, BALL, null, eight);
});
context.dispatch(PING, ({ origin }) => void context.sendImmediate(origin, PING, null, eight));
// Half a round trip between two workers, in ns: the median of `batches`, each of 1,000.
context.dispatch(LATENCY, (message) => {
  const batches = message.getInt32(0);
  const { origin } = message;
  next = () => {
    const samples = new Float64Array(batches);
    for (let batch = 0; batch < batches; batch++) {
      const start = performance.now();
      for (let i = 0; i < 1000; i++) {
        const wanted = balls + 1;
        context.sendImmediate(peer, BALL, null, eight);
        while (balls < wanted) context.advance(64);
      }
      samples[batch] = ((performance.now() - start) * 1e6) / 2000;
    }
    samples.sort();
    context.sendImmediate(origin, ANSWER, null, Float64Array.of(/** @type {number} */ (samples[batches >> 1])));
  };
});
// Sends its clock, again and again, with pauses in which whoever gets it falls asleep.
context.dispatch(STAMP, (message) => {
  const count = message.getInt32(0);
  const { origin } = message;
  next = () => {
    for (let i = 0; i < count; i++) {
      const end = performance.now() + 5 + (i % 7);
      while (performance.now() < end);
      const sent = context.sendImmediate(
        origin,
        STAMP,
        null,
        Float64Array.of(performance.timeOrigin + performance.now()),
      );
      if (sent !== SUCCESS) throw new Error(`came to ${sent}`);
    }
  };
});
// Until it is terminated.
for (;;) {
  context.advanceUntil(() => next !== undefined);
  const run = next;
  next = undefined;
  run?.();
}
