// @ts-check
// The other side of the tests of waiting.
import { LOOK_MS } from "./flags.js";
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

const BYTES = 300 * 1024;

/** The handles that the test sends. @param {import("pamir").Context} context @returns {number[]} */
function handles(context) {
  /** @type {number[]} */
  let given = [];
  context.dispatch(DATA, (message) => {
    given = [...new Float64Array(message.payload.slice().buffer)];
  });
  until(context, () => given.length > 0);
  return given;
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
      while (Atomics.load(flags, 0) === round) Atomics.wait(flags, 0, round, LOOK_MS);
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

  /** Puts at each gate as much as its number says, and changes a word behind the bytes. */
  putter(client, { flags }) {
    const context = client.createContext();
    const [data = -1, word = -1] = handles(context);
    const local = client.createRegion(BYTES);
    const to = client.endpoint(0);
    for (let round = 1; round <= 30; round++) {
      waitGate(flags, round);
      local.bytes.fill(round);
      const notify = { remote: word, offset: 4, operation: /** @type {const} */ ("add"), value: 1 };
      context.put({ to, local, remote: data, bytes: round % 2 === 0 ? BYTES : 100, notify });
      until(context, () => context.drained);
    }
  },

  /** Puts long and short parts, one behind the other, and has the target told of each. */
  async teller(client) {
    const context = client.createContext();
    const [remote = -1] = handles(context);
    const to = client.endpoint(0);
    const parts = [
      [0, 16],
      [16, BYTES - 64],
      [0, 16],
      [16, 16],
      [BYTES - 32, 32],
    ];
    for (const [i, [remoteOffset, bytes]] of parts.entries()) {
      const local = client.createRegion(BYTES);
      local.bytes.fill(i + 1);
      // Small parts of the long one are overwritten only once it has been told of.
      if (i === 2) await context.flush();
      if (i > 0) await new Promise((resolve) => setTimeout(resolve, 20));
      context.put({ to, local, remote, remoteOffset, bytes, notify: OTHER });
    }
    context.rmw({ to, remote, remoteOffset: BYTES - 8, operation: "set", value: 6, notify: OTHER });
    await context.drain();
  },

  /** Changes a word, and wakes its owner, when it is told to. */
  adder(client) {
    const context = client.createContext({ spin: 0 });
    const [remote = -1] = handles(context);
    let value = 1;
    let asked = true;
    context.dispatch(OTHER, (message) => {
      value = message.getInt32(0);
      asked = true;
    });
    for (;;) {
      until(context, () => asked);
      asked = false;
      context.rmw({ to: client.endpoint(0), remote, operation: "set", value, notify: true });
    }
  },

  /** Takes a lock, by compare-set in a condition, and adds 1 to a word that it guards. */
  lock(client, { count }) {
    const context = client.createContext();
    const [handle = -1] = handles(context);
    context.dispatch(OTHER, () => {});
    context.sendImmediate(client.endpoint(0), OTHER, null, Int32Array.of(1));
    const own = client.createRegion(4);
    const old = new Int32Array(own.bytes.buffer, own.bytes.byteOffset, 1);
    const to = client.endpoint(0);
    for (let i = 0; i < count; i++) {
      until(context, () => {
        context.rmw({ to, remote: handle, operation: "fetch-compare-set", test: 0, value: 1, result: own });
        return old[0] === 0;
      });
      const one = { to, local: own, remote: handle, remoteOffset: 4 };
      context.get(one);
      old[0] = Number(old[0]) + 1;
      context.put(one);
      context.rmw({ to, remote: handle, operation: "set", value: 0, notify: true });
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
