// @ts-check
// The other side of the tests of waiting.
import { DATA, ECHO, OTHER, PATIENCE, progress, REPLY_WHOLE, raise, runScenario, until, waitGate } from "./support.js";

/** @param {import("pamir").Context} context */
function answer(context) {
  const seen = { count: 0 };
  context.dispatch(ECHO, (message) => {
    seen.count++;
    context.sendImmediate(message.origin, REPLY_WHOLE, null, message.payload);
  });
  return seen;
}

await runScenario({
  "pong-blocking"(client, { count }) {
    const context = client.createContext({ spin: 0 });
    const seen = answer(context);
    until(context, () => seen.count === count, 2 ** 31);
  },

  async "pong-async"(client, { count }) {
    const context = client.createContext({ spin: 0 });
    const seen = answer(context);
    while (seen.count < count) await progress(context);
  },

  /** Sleeps without advancing until the test raises flag 0, then takes all there is. */
  slow(client, { flags }) {
    const context = client.createContext();
    context.dispatch(DATA, () => {});
    for (let round = 0; ; round++) {
      Atomics.wait(flags, 0, round);
      for (let i = 0; i < 100; i++) context.advance();
    }
  },

  /** Sends to the first context of task 0 at gates 2 and 4, to the second in between. */
  later(client, { flags }) {
    const context = client.createContext();
    for (const [gate, index, dispatch] of /** @type {const} */ ([
      [2, 0, DATA],
      [3, 1, OTHER],
      [4, 0, DATA],
    ])) {
      waitGate(flags, gate);
      // Long enough for the other side to be asleep again.
      Atomics.wait(flags, 63, 0, 50);
      context.sendImmediate(client.endpoint(0, index), dispatch);
    }
  },

  interrupted(client, { flags }) {
    const context = client.createContext();
    for (let round = 0; round < 20; round++) {
      raise(flags, 1);
      const result = context.advanceUntil(() => false, { timeout: PATIENCE });
      context.sendImmediate(client.endpoint(0), REPLY_WHOLE, null, Int32Array.of(result));
    }
  },
});
