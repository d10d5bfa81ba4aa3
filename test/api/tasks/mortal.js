// @ts-check
// Tasks that end in every way, and one that looks on.
import { Script } from "node:vm";
import { SUCCESS } from "pamir";
import { DATA, OTHER, QUIT, raise, report, runScenario, until, waitGate } from "./support.js";

/** @type {Record<string, (client: import("pamir").Client) => void>} */
const DEATHS = {
  throw() {
    throw new RangeError("thrown in a handler");
  },
  exit() {
    process.exit(3);
  },
  rejection() {
    void Promise.reject(new Error("nobody handled this"));
  },
  memory() {
    const hoard = [];
    for (;;) hoard.push(new Array(10_000).fill(hoard.length));
  },
  return() {},
  close(client) {
    client.close();
  },
};

/** Checks that what comes from each origin is numbered 0, 1, 2, …: a message that is missing, late or double shows. */
function sequenceChecker() {
  /** @type {Map<number, number>} */
  const next = new Map();
  const seen = { messages: 0, wrong: 0, broken: 0 };
  /** @param {import("pamir").Message} message */
  const handler = (message) => {
    const { origin } = message;
    const number = new DataView(message.header.slice().buffer).getInt32(0, true);
    const expected = next.get(origin) ?? 0;
    if (number !== expected) seen.wrong++;
    next.set(origin, number + 1);
    seen.messages++;
    /** @param {Uint8Array} bytes */
    const check = (bytes) => {
      if (!bytes.every((byte) => byte === (number & 255))) seen.wrong++;
    };
    if (message.immediate) check(message.payload);
    else {
      const bytes = new Uint8Array(message.payloadBytes);
      message.receive(bytes, (_, result) => {
        if (result === SUCCESS) check(bytes);
        else seen.broken++;
      });
    }
  };
  return { seen, handler };
}

await runScenario({
  /**
   * Task 1 sends three messages and ends as `how` says, when it is told to; the others look on until QUIT.
   * `reserves`: it has written a fourth one then, and not committed it.
   */
  async mortal(client, { how, reserves, flags }) {
    const context = client.createContext();
    let told = false;
    let running = true;
    const { seen, handler } = sequenceChecker();
    context.dispatch(DATA, handler);
    context.dispatch(QUIT, () => {
      running = false;
    });
    context.dispatch(OTHER, (message) => {
      told = true;
      if (client.task !== 1) {
        context.sendImmediate(message.origin, OTHER);
        return;
      }
      for (let i = 0; i < 3; i++)
        context.sendImmediate(message.origin, DATA, Int32Array.of(i), new Uint8Array(50).fill(i));
      if (reserves) {
        const at = context.reserve(message.origin, DATA, 400);
        client.bytes.fill(3, at, at + 400);
      }
      DEATHS[how]?.(client);
    });
    if (client.task === 1) {
      while (!told) {
        until(context, () => told, 2 ** 31);
        // Leaves the job, once the handler is done; its thread goes on for a while.
        if (how === "leave") {
          client.close();
          waitGate(flags, 5);
        }
        // Nothing else keeps this thread running.
        if (how === "rejection") await new Promise((resolve) => setTimeout(resolve, 60_000));
      }
      return;
    }
    until(context, () => !running, 2 ** 31);
    report(client, context, seen);
  },

  /** Leaves many messages and the beginning of a large one behind. */
  testament(client, { flags, small, bytes, lingers }) {
    const context = client.createContext();
    waitGate(flags, 0);
    const to = client.endpoint(0);
    for (let i = 0; i < small; i++) context.sendImmediate(to, DATA, Int32Array.of(i), new Uint8Array(8).fill(i));
    context.send({ to, dispatch: OTHER, payload: new Uint8Array(bytes), onLocal: () => {} });
    if (lingers) waitGate(flags, 1);
    process.exit(0);
  },

  /** Leaves messages and an open region behind, and ends as it is told to. */
  hoard(client, { flags, count, how }) {
    const context = client.createContext();
    client.createRegion(100_000);
    waitGate(flags, 0);
    const to = client.endpoint(0);
    for (let i = 0; i < count; i++) context.sendImmediate(to, DATA, Int32Array.of(i), new Uint8Array(100));
    if (how === "close") client.close();
    else process.exit(0);
  },

  /** Sends to everybody until it is killed in the midst of it, whatever it is doing then. */
  traffic(client, { flags, lifetimes, sizes }) {
    const context = client.createContext();
    let running = true;
    const { seen, handler } = sequenceChecker();
    context.dispatch(DATA, handler);
    context.dispatch(QUIT, () => {
      running = false;
    });
    if (client.task === 1) {
      context.dispatch(OTHER, (message) => context.sendImmediate(message.origin, OTHER));
      until(context, () => !running, 2 ** 31);
      report(client, context, seen);
      return;
    }
    const targets = [0, 1].map((task) => ({ to: client.endpoint(task), number: 0 }));
    const forever = () => {
      for (let i = 0; ; i++) {
        const target = /** @type {(typeof targets)[0]} */ (targets[i & 1]);
        const payload = new Uint8Array(sizes[i % sizes.length]).fill(target.number);
        const result = context.send({
          to: target.to,
          dispatch: DATA,
          header: Int32Array.of(target.number),
          payload,
          onLocal: payload.length > 4096 ? () => {} : undefined,
        });
        if (result === SUCCESS) target.number++;
        context.advance();
      }
    };
    raise(flags, 2);
    waitGate(flags, 0);
    Object.assign(globalThis, { forever });
    // A timeout of the vm ends this thread's execution between any two steps of JavaScript, inside of pamir too.
    try {
      new Script("forever()").runInThisContext({ timeout: lifetimes[client.task] });
    } finally {
      process.exit(9);
    }
  },
});
