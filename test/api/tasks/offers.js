// @ts-check
// The other side of the tests of payloads that stay where they are until their target says where they go.
import { SUCCESS } from "pamir";
import { exchange } from "./exchange.js";
import { pattern } from "./random.js";
import { DATA, QUIT, RESULT, raise, report, runScenario, until, waitGate } from "./support.js";

/** Around each destination: nothing is written there. */
const GUARD_BYTES = 64;
const GUARD = 0xee;

/**
 * What a header asks of the handler.
 * @typedef {object} Order
 * @property {number} number of the message
 * @property {number} [seed] of its payload: what comes is compared with that
 * @property {boolean} [inRegion] of its destination
 * @property {number} [at] where that begins in what it is part of
 * @property {"receive" | "discard" | "throw" | "short"} [answer]
 * @property {number} [fragment]
 * @property {number} [depth]
 */

/** @param {Uint8Array} header @returns {Order} */
const orderIn = (header) => JSON.parse(new TextDecoder().decode(header.slice()));

/**
 * Destinations, one behind the other in a region, or each in memory of its own.
 * @param {import("pamir").MemRegion} region
 */
function destinations(region) {
  let place = 0;
  let inUse = 0;
  return {
    /** @param {boolean} inRegion @param {number} at @param {number} bytes */
    take(inRegion, at, bytes) {
      const whole = bytes + 2 * GUARD_BYTES + at;
      if (inUse === 0) place = 0;
      const from = inRegion ? region.bytes.subarray(place, place + whole) : new Uint8Array(whole);
      if (from.length !== whole) throw new Error(`no ${whole} bytes at ${place} of ${region.length}`);
      if (inRegion) {
        place += whole;
        inUse++;
      }
      from.fill(GUARD);
      const [begin, end] = [GUARD_BYTES + at, GUARD_BYTES + at + bytes];
      return {
        bytes: from.subarray(begin, end),
        /** Whether nothing beside it was written. */
        isGuarded: () => [from.subarray(0, begin), from.subarray(end)].every((part) => part.every((b) => b === GUARD)),
        free: () => {
          if (inRegion) inUse--;
        },
      };
    },
  };
}

/**
 * Ends a task, or one of its contexts.
 * @type {Record<string, (client: import("pamir").Client, context: import("pamir").Context, flags: Int32Array) => void>}
 */
const ENDS = {
  exit: () => process.exit(3),
  throw() {
    throw new RangeError("dies");
  },
  /** Somebody else ends it. */
  terminate(_, __, flags) {
    raise(/** @type {Int32Array<SharedArrayBuffer>} */ (flags), 13);
    Atomics.wait(flags, 14, 0);
  },
  leave: (client) => client.close(),
  close: (_, context) => context.close(),
};

/** @param {Uint8Array} a @param {Uint8Array} b */
const isSame = (a, b) => Buffer.compare(a, b) === 0;

await runScenario({
  /** Takes what is offered as each header asks, and tells task 0 what became of it. */
  take(client, { options, regionBytes = 2 ** 20, flags, gates = [] }) {
    const context = client.createContext(options);
    const places = destinations(client.createRegion(regionBytes));
    let running = true;
    let largest = pattern(0);
    /** @type {import("pamir").Handler} */
    const take = (message) => {
      const order = orderIn(message.header);
      const { number, seed = 0, inRegion = false, at = 0, answer = "receive", fragment, depth } = order;
      const { origin, immediate, payloadBytes } = message;
      raise(flags, 10);
      /** @param {number} result @param {boolean} isRight */
      const tell = (result, isRight) => {
        const said = JSON.stringify({ number, result, isRight, immediate });
        context.sendImmediate(origin, RESULT, null, new TextEncoder().encode(said));
      };
      if (immediate) return tell(SUCCESS, isSame(message.payload, pattern(payloadBytes + seed).subarray(seed)));
      if (answer === "discard") return message.discard();
      if (answer === "throw") throw new RangeError("thrown in the handler");
      if (answer === "short") return message.receive(new Uint8Array(payloadBytes - 1));
      const { bytes, isGuarded, free } = places.take(inRegion, at, payloadBytes);
      message.receive(
        bytes,
        (cookie, result) => {
          if (largest.length < payloadBytes + seed) largest = pattern(payloadBytes + seed);
          const awaited = largest.subarray(seed, seed + payloadBytes);
          tell(result, cookie === order && isGuarded() && (result !== SUCCESS || isSame(bytes, awaited)));
          free();
        },
        order,
        { fragment, depth },
      );
    };
    context.dispatch(DATA, take);
    context.dispatch(QUIT, () => {
      running = false;
    });
    const gate = gates[client.task - 1];
    raise(flags, 12);
    if (gate !== undefined) waitGate(flags, gate);
    while (running) {
      try {
        until(context, () => !running, 2 ** 31);
      } catch (error) {
        // Of what is thrown in a handler only the kind that was asked for.
        if (!(error instanceof RangeError) && !/PAMIR_TOO_LARGE/.test(/** @type {any} */ (error).code)) throw error;
        raise(flags, 11);
      }
    }
  },

  /** RendezvousSender so many payloads to task 0, then stands still until the gate opens; tells what their callbacks got. */
  offer(client, { flags, bytes, count = 1, inRegion = false }) {
    const context = client.createContext();
    const region = inRegion ? client.createRegion(bytes) : undefined;
    const payload = region?.bytes ?? new Uint8Array(bytes);
    payload.set(pattern(bytes));
    /** @type {[number, number][]} */
    const told = [];
    for (let i = 0; i < count; i++) {
      const header = Int32Array.of(i);
      const onLocal = (/** @type {unknown} */ _, /** @type {number} */ result) => void told.push([i, result]);
      context.send({ to: client.endpoint(0), dispatch: DATA, header, payload, rendezvous: true, onLocal });
    }
    raise(flags, 10);
    waitGate(flags, 0);
    until(context, () => told.length === count);
    report(client, context, told);
  },

  /** Takes, or offers, a payload of each kind, and ends so many steps later, as `how` says. */
  mortal(client, { role, how, steps, bytes, flags }) {
    const context = client.createContext({ fragment: 64 });
    const other = client.createContext();
    const region = client.createRegion(bytes);
    let running = true;
    let asked = 0;
    other.dispatch(QUIT, () => {
      running = false;
    });
    context.dispatch(DATA, (message) => {
      message.receive(asked++ % 2 === 0 ? region.bytes : new Uint8Array(message.payloadBytes));
    });
    raise(flags, 12);
    if (role === "target") {
      // Both are there when it begins.
      waitGate(flags, 0);
      until(context, () => asked === 2);
    } else {
      for (const payload of [region.bytes, new Uint8Array(bytes)]) {
        payload.set(pattern(bytes));
        context.send({ to: client.endpoint(0), dispatch: DATA, payload, rendezvous: true, onLocal: () => {} });
      }
    }
    for (let left = steps[client.task - 1]; left > 0; left--) context.advance();
    const end = /** @type {(typeof ENDS)[string]} */ (ENDS[how]);
    end(client, context, flags);
    if (how === "close") until(other, () => !running, 2 ** 31);
  },

  /** RendezvousSender payloads to everybody, while everybody does; tells what came of it. */
  exchange(client, { options, ...what }) {
    const context = client.createContext(options);
    const { seen, isOver } = exchange(client, context, /** @type {any} */ (what));
    until(context, isOver, 60_000);
    report(client, context, seen);
  },
});
