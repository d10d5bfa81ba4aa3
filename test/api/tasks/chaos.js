// @ts-check
// Every kind of operation to everybody, at random. Tasks that are killed in the midst of it do this, others that go on, and
// the test in its own thread.
import { EAGAIN, ENOMEM, ERROR, SHUTDOWN, SUCCESS } from "pamir";
import { randomFrom } from "./random.js";

const DATA = 1;
const HELLO = 2;
const ECHO = 3;
export const STOP = 4;
const REGION_BYTES = 8192;
const SIZES = [0, 8, 8, 8, 100, 500, 5000, 80_000];
/** What an operation may come to, besides SUCCESS. */
const REFUSALS = new Set([EAGAIN, ENOMEM, SHUTDOWN]);
/** Errors that a call to a task that ends may give. */
const CODES = new Set(["PAMIR_STALE", "PAMIR_SHUTDOWN", "PAMIR_TIMEDOUT", "PAMIR_NO_MEMORY"]);

/**
 * @param {import("pamir").Client} client
 * @param {import("pamir").Context} context
 * @param {number} seed
 */
export function chaos(client, context, seed) {
  const random = randomFrom(seed);
  const region = client.createRegion(REGION_BYTES);
  /** Numbers of the next message to and from each endpoint, handles of its region, and whether it has ours. */
  const [sent, expected, handles, greeted] = [new Map(), new Map(), new Map(), new Set()];
  /** Reservations that are open, by target. */
  const open = new Map();
  const seen = { messages: 0, operations: 0, wrong: 0, broken: 0, pending: 0, calls: 0, why: "" };

  /** @param {string} why */
  const wrong = (why) => {
    seen.wrong++;
    if (seen.why === "") seen.why = why;
  };
  /** @param {unknown} error */
  const expect = (error) => {
    const { code } = /** @type {{ code?: string }} */ (error);
    if (code === undefined || !CODES.has(code)) wrong(String(error));
  };
  /** @param {number} result */
  const accepted = (result) => {
    if (result !== SUCCESS && !REFUSALS.has(result)) wrong(`result ${result}`);
    return result === SUCCESS;
  };
  const begun = () => {
    seen.pending++;
    return (/** @type {unknown} */ _, /** @type {number} */ result) => {
      seen.pending--;
      // ERROR: of a transfer whose region was closed meanwhile, as its owner ended.
      if (result !== SUCCESS && result !== SHUTDOWN && result !== ERROR) wrong(`callback ${result}`);
    };
  };

  context.dispatch(DATA, (message) => {
    const { origin } = message;
    const number = new DataView(message.header.slice().buffer).getInt32(0, true);
    const next = expected.get(origin) ?? 0;
    if (number !== next) wrong(`message ${number} of endpoint ${origin}, not ${next}`);
    expected.set(origin, number + 1);
    seen.messages++;
    const check = (/** @type {Uint8Array} */ bytes) => {
      if (!bytes.every((byte) => byte === (number & 255))) wrong(`message ${number} of endpoint ${origin} is torn`);
    };
    if (message.immediate) check(message.payload);
    else {
      const bytes = new Uint8Array(message.payloadBytes);
      message.receive(bytes, (_, result) => (result === SUCCESS ? check(bytes) : seen.broken++));
    }
  });
  context.dispatch(HELLO, (message) => {
    handles.set(message.origin, new DataView(message.header.slice().buffer).getFloat64(0, true));
  });
  context.dispatch(ECHO, (message) => {
    if (message.immediate) return message.payload.slice();
    const bytes = new Uint8Array(message.payloadBytes);
    return new Promise((resolve) => message.receive(bytes, () => resolve(bytes)));
  });

  /** @param {import("pamir").Endpoint} to */
  function message(to) {
    const number = sent.get(to) ?? 0;
    const payload = new Uint8Array(/** @type {number} */ (SIZES[random.below(SIZES.length)])).fill(number & 255);
    return { number, header: Int32Array.of(number), payload };
  }

  /** @type {((to: import("pamir").Endpoint) => void)[]} */
  const operations = [
    (to) => {
      const { number, header, payload } = message(to);
      if (payload.length > 4000) return;
      if (accepted(context.sendImmediate(to, DATA, header, payload))) sent.set(to, number + 1);
    },
    (to) => {
      const { number, header, payload } = message(to);
      const callbacks = random.below(2) === 0 ? { onRemote: begun() } : { onLocal: begun(), onRemote: begun() };
      const result = context.send({ to, dispatch: DATA, header, payload, ...callbacks });
      if (accepted(result)) sent.set(to, number + 1);
      // Callbacks of what was refused for want of room are not called.
      else if (result !== SHUTDOWN) seen.pending -= Object.keys(callbacks).length;
    },
    (to) => {
      if (open.has(to)) return;
      const { number, payload } = message(to);
      const bytes = Math.min(payload.length, 4000);
      const place = context.reserve(to, DATA, bytes, 4);
      if (place < 0) return void accepted(-place);
      client.bytes.set(new Uint8Array(Int32Array.of(number).buffer), place);
      client.bytes.fill(number & 255, place + 8, place + 8 + bytes);
      open.set(to, number);
      sent.set(to, number + 1);
    },
    (to) => end(to),
    (to) => {
      const remote = handles.get(to);
      if (remote === undefined) return;
      const place = { remoteOffset: random.below(64), localOffset: random.below(64), bytes: random.below(8000) };
      const onRemote = begun();
      const result = context.put({ to, local: region, remote, ...place, onRemote });
      if (!accepted(result)) seen.pending--;
    },
    (to) => {
      const remote = handles.get(to);
      if (remote === undefined) return;
      const onLocal = begun();
      if (!accepted(context.get({ to, local: region, remote, bytes: random.below(REGION_BYTES), onLocal })))
        seen.pending--;
    },
    (to) => {
      const remote = handles.get(to);
      if (remote === undefined) return;
      const onDone = begun();
      if (!accepted(context.rmw({ to, remote, remoteOffset: 8, operation: "add", value: 1, onDone }))) seen.pending--;
    },
    (to) => {
      const done = begun();
      if (!accepted(context.fence(to, done))) seen.pending--;
    },
    (to) => {
      if (seen.calls > 20) return;
      seen.calls++;
      const { payload } = message(to);
      context.call(to, ECHO, payload, { timeout: 5000 }).then(
        (reply) => {
          seen.calls--;
          if (reply.length !== payload.length) wrong("a reply to something else");
        },
        (error) => {
          seen.calls--;
          expect(error);
        },
      );
    },
    (to) => context.whenRoom(to, random.below(4000), begun()),
    (to) => {
      if (to !== context.endpoint && random.below(10) === 0) context.purge([to]);
    },
  ];

  /** Commits or aborts the reservation to an endpoint, if there is one. @param {import("pamir").Endpoint} to */
  function end(to) {
    const number = open.get(to);
    if (number === undefined) return;
    open.delete(to);
    // What was sent since waits behind it, and counts on its number.
    if (sent.get(to) === number + 1 && random.below(2) === 0) {
      context.abort(to);
      sent.set(to, number);
    } else context.commit(to);
  }

  return {
    seen,
    /** One operation, to one of the tasks up to `last`. @param {number} last */
    step(last) {
      // Mostly to those who have come last: they live.
      const task = random.below(2) === 0 ? last - random.below(Math.min(last + 1, 2)) : random.below(last + 1);
      const to = client.endpoint(task);
      seen.operations++;
      try {
        if (!greeted.has(to) && accepted(context.sendImmediate(to, HELLO, Float64Array.of(region.handle))))
          greeted.add(to);
        /** @type {(to: import("pamir").Endpoint) => void} */ (operations[random.below(operations.length)])(to);
      } catch (error) {
        const { code, message: text } = /** @type {{ code: string, message: string }} */ (error);
        // A purge while something is under way, or a reservation whose lane is gone; a handle of one that has ended.
        if (code !== "PAMIR_STALE" && !/under way/.test(text)) wrong(`${error}`);
        else if (code === "PAMIR_STALE") seen.pending--;
      }
    },
    /** Nothing new is begun: until all that was begun has ended. */
    async finish() {
      for (const to of [...open.keys()]) end(to);
      const deadline = performance.now() + 20_000;
      while ((seen.pending > 0 || seen.calls > 0 || !context.drained) && performance.now() < deadline) {
        await context.progress({ timeout: 20 }).catch(() => {});
      }
      if (!context.drained) wrong("not drained");
    },
    /** Gives back all that it holds of the heap. */
    async leave() {
      region.close();
      const others = Array.from({ length: client.size }, (_, task) => client.endpoint(task));
      while (context.purge(others.filter((to) => to !== context.endpoint)) === EAGAIN) {
        await context.progress({ timeout: 20 }).catch(() => {});
      }
    },
  };
}
