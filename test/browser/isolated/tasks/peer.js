// @ts-check
// The other side of the tests in a browser: does what it is told by dispatch ids.
import { attach, SUCCESS } from "pamir";

/** Dispatch ids: answer twice the number; end; throw; reject; close the worker; loop for ever; open a region; send for ever. */
export const [TWICE, ANSWER, QUIT, THROW, REJECT, CLOSE, LOOP, REGION, FLOOD] = [1, 2, 3, 4, 5, 6, 7, 8, 9];

// The tests import this file too, for the ids.
if (typeof document === "undefined") await serve();

async function serve() {
  const client = await attach();
  const context = client.createContext();
  let running = true;
  context.dispatch(TWICE, (message) => {
    const answer = new Int32Array([2 * message.getInt32(0)]);
    if (context.sendImmediate(message.origin, ANSWER, null, answer) !== SUCCESS) throw new Error("no room");
  });
  context.dispatch(QUIT, () => {
    running = false;
  });
  context.dispatch(THROW, () => {
    throw new RangeError("thrown in a task");
  });
  context.dispatch(REJECT, () => {
    void Promise.reject(new TypeError("rejected in a task"));
    running = false;
  });
  context.dispatch(CLOSE, () => {
    self.close();
    running = false;
  });
  context.dispatch(LOOP, () => {
    for (;;);
  });
  /** @type {import("pamir").Endpoint | undefined} */
  let flooded;
  context.dispatch(FLOOD, ({ origin }) => {
    flooded = origin;
  });
  context.dispatch(REGION, (message) => {
    const region = client.createRegion(message.getInt32(0));
    region.bytes.fill(7);
    context.sendImmediate(message.origin, ANSWER, null, new Float64Array([region.handle]));
  });
  context.advanceUntil(() => !running || flooded !== undefined);
  for (const payload = new Uint8Array(1000).fill(0xee); flooded !== undefined; context.advance()) {
    for (let i = 0; i < 100; i++) context.sendImmediate(flooded, ANSWER, null, payload);
  }
  // A worker that rejects or closes itself is to end as that, not as one that has left.
  await new Promise((resolve) => setTimeout(resolve, 100));
  client.close();
}
