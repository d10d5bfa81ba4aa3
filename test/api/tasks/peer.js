// @ts-check
// The other side of the tests of messages.
import { workerData } from "node:worker_threads";
import { attach, CANCELED, codecs, dispatchId, SUCCESS } from "pamir";
import {
  ASK,
  DATA,
  ECHO,
  OTHER,
  QUIT,
  REPLY_PARTS,
  REPLY_WHOLE,
  RESULT,
  raise,
  report,
  runScenario,
  until,
  waitGate,
} from "./support.js";

const nothing = () => {};

await runScenario({
  /** Sends everything back, from each of its contexts; the dispatch id says how it came. */
  echo(client, { contexts = 1 }) {
    let running = true;
    const list = Array.from({ length: contexts }, () => client.createContext());
    for (const context of list) {
      /** @type {(to: import("pamir").Endpoint, dispatch: number, header: Uint8Array, payload: Uint8Array) => void} */
      const reply = (to, dispatch, header, payload) => {
        const result = context.send({ to, dispatch, header, payload, onLocal: nothing });
        if (result !== SUCCESS) throw new Error(`reply came to ${result}`);
      };
      context.dispatch(ECHO, (message) => {
        const { origin } = message;
        const header = message.header.slice();
        if (message.immediate) {
          reply(origin, REPLY_WHOLE, header, message.payload.slice());
          return;
        }
        const bytes = new Uint8Array(message.payloadBytes);
        message.receive(
          bytes,
          (cookie, result) => {
            if (result !== SUCCESS || cookie !== bytes) throw new Error(`receive came to ${result}`);
            reply(origin, REPLY_PARTS, header, bytes);
          },
          bytes,
        );
      });
      context.dispatch(QUIT, () => {
        running = false;
      });
    }
    if (list.length === 1) until(/** @type {import("pamir").Context} */ (list[0]), () => !running, 2 ** 31);
    else while (running) client.advance(list, 64);
  },

  /** Tells what its client says of itself. */
  async describe(client, args) {
    const context = client.createContext();
    const again = client.createContext();
    report(client, context, {
      task: client.task,
      size: client.size,
      localTasks: client.localTasks,
      kernel: client.kernel,
      contexts: [context.index, again.index],
      args: { ...args, flags: undefined },
      shared: args.flags.buffer instanceof SharedArrayBuffer,
      user: workerData.user,
      argv: process.argv.slice(2),
      sameClient: (await attach()) === client,
    });
  },

  /** Waits at the gate, then takes `count` messages and tells the number in each header. */
  collect(client, { flags, count, gate = 0 }) {
    const context = client.createContext();
    /** @type {number[]} */
    const seen = [];
    let arriving = 0;
    /** @param {import("pamir").Message} message */
    const take = (message) => {
      const number = new DataView(message.header.slice().buffer).getInt32(0, true);
      const expected = number & 255;
      /** @param {Uint8Array} bytes */
      const check = (bytes) => {
        if (!bytes.every((byte) => byte === expected)) throw new Error(`message ${number}: wrong bytes`);
      };
      seen.push(number);
      if (message.immediate) check(message.payload);
      else {
        const bytes = new Uint8Array(message.payloadBytes);
        arriving++;
        message.receive(bytes, () => {
          arriving--;
          check(bytes);
        });
      }
    };
    context.dispatch(DATA, take);
    waitGate(flags, gate);
    until(context, () => seen.length === count && arriving === 0);
    report(client, context, seen);
  },

  /** Does not advance before the gate opens, then counts what comes until the test says quit. */
  hold(client, { flags }) {
    const context = client.createContext();
    let count = 0;
    let running = true;
    context.dispatch(DATA, () => {
      count++;
    });
    context.dispatch(QUIT, () => {
      running = false;
    });
    waitGate(flags, 0);
    until(context, () => !running);
    report(client, context, count);
  },

  /** Sends `count` numbered messages: task 1 to DATA, the others to OTHER. */
  flood(client, { count, bytes, flags }) {
    const context = client.createContext();
    const to = client.endpoint(0);
    let done = 0;
    for (let i = 0; i < count; i++) {
      const payload = new Uint8Array(bytes).fill(i);
      const dispatch = client.task === 1 ? DATA : OTHER;
      const result = context.send({ to, dispatch, header: Int32Array.of(i), payload, onLocal: () => done++ });
      if (result !== SUCCESS) throw new Error(`send came to ${result}`);
    }
    until(context, () => done === count);
    raise(flags, 3);
  },

  /** Answers calls, blocked in between, and leaves with an answer. */
  answer(client) {
    const context = client.createContext();
    context.dispatch(DATA, ({ payload }) => Uint8Array.of(payload[0] ?? 0, client.task));
    context.dispatch(OTHER, () => {
      client.close();
      return Uint8Array.of(99);
    });
    context.advanceUntil(() => false);
  },

  /** Tells task 0 why its callers gave up. Later tasks call it once, and leave. */
  async hear(client) {
    const context = client.createContext();
    if (client.task > 1) {
      context.call(client.endpoint(1), DATA).catch(() => {});
      await context.drain();
      client.close();
      return;
    }
    const hear = (/** @type {AbortSignal} */ signal) =>
      new Promise((resolve) => {
        const over = () => {
          context.send({
            to: client.endpoint(0),
            dispatch: RESULT,
            payload: new TextEncoder().encode(signal.reason.code),
          });
          resolve(undefined);
        };
        if (signal.aborted) over();
        else signal.addEventListener("abort", over);
      });
    context.dispatch(DATA, (message) => hear(message.signal));
    context.dispatch(dispatchId(OTHER, codecs.text, codecs.text), async (_, origin, call) => {
      context.sendImmediate(origin, ASK);
      // It may be aborted before it is read.
      await new Promise((resolve) => setImmediate(resolve));
      await hear(call.signal);
      return "late";
    });
    context.dispatch(QUIT, () => client.close());
    while (!context.closed)
      await context.progress().catch((error) => error.code === "PAMIR_CLOSED" || Promise.reject(error));
  },

  /** Throws what the first byte of a request names, and answers 4. */
  async throw(client) {
    const context = client.createContext();
    const thrown = [
      () => ({ status: 500 }),
      () => {
        const cause = Object.assign(new Error("inner"), { retry: { after: 5 } });
        return Object.assign(new TypeError("outer", { cause }), { code: "E_OUTER" });
      },
      () => new AggregateError([new RangeError("first"), "second"]),
      () => Object.create(null),
    ];
    context.dispatch(DATA, ({ payload }) => {
      const make = thrown[payload[0]];
      if (make !== undefined) throw make();
      return payload.slice();
    });
    context.dispatch(OTHER, () => client.close());
    while (!context.closed)
      await context.progress().catch((error) => error.code === "PAMIR_CLOSED" || Promise.reject(error));
  },

  /** Sends more than there is room for, and leaves: drained, or not. */
  async leave(client, { count, drain, flags }) {
    const context = client.createContext();
    const to = client.endpoint(0);
    for (let i = 0; i < count; i++) {
      if (context.sendImmediate(to, DATA, null, Int32Array.of(i)) !== SUCCESS)
        throw new Error(`message ${i} has no room`);
    }
    if (context.drained) throw new Error("all of them had room");
    raise(flags, 1);
    if (drain === "blocking") {
      until(context, () => context.drained);
      client.close();
    } else if (drain) {
      await client.close({ drain: true, timeout: 60_000 });
      if (!context.closed) throw new Error("the client is closed, its context is not");
    } else client.close();
  },

  /** Sends to a context of task 0 by the endpoints that a message names. */
  introduced(client) {
    const context = client.createContext();
    let heard = false;
    context.dispatch(DATA, (message) => {
      heard = true;
      const to = /** @type {import("pamir").Endpoint} */ (message.getInt32(0) >>> 0);
      context.sendImmediate(to, OTHER, null, Int32Array.of(client.task));
    });
    until(context, () => heard);
  },

  /** Starts a large message that it cannot finish, and does not advance until the gate opens. */
  stall(client, { bytes, flags }) {
    const context = client.createContext();
    let result = CANCELED;
    context.send({
      to: client.endpoint(0),
      dispatch: DATA,
      payload: new Uint8Array(bytes).fill(7),
      onLocal: (_, value) => {
        result = /** @type {typeof result} */ (value);
      },
    });
    raise(flags, 1);
    waitGate(flags, 0);
    until(context, () => result === /** @type {number} */ (SUCCESS));
  },
});
