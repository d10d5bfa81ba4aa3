// What only Node shows of calls: listeners that are left, errors of others, a worker that blocks.
import { AsyncLocalStorage, AsyncResource } from "node:async_hooks";
import { getEventListeners } from "node:events";
import {
  attach,
  type Codec,
  codecs,
  type DispatchId,
  dispatchId,
  EAGAIN,
  type InPlaceCodec,
  type Received,
  RemoteError,
  type Result,
  SUCCESS,
} from "pamir";
import { describe, expect, it } from "vitest";
import type { Endpoint } from "../../src/core/endpoint.js";
import { HandlerTable } from "../../src/core/message/dispatch.js";
import type { Memory } from "../../src/kernel/kernel.js";
import { Calls } from "../../src/protocol/call.js";
import {
  ASK,
  DATA,
  fillHeap,
  LINKED_VARIANTS,
  OTHER,
  PATIENCE,
  pattern,
  progress,
  QUIT,
  RESULT,
  rejectionOf,
  sameBytes,
  thrownBy,
  until,
  withJob,
} from "./support.js";

/** The key of a thenable: as a plain property, the linter takes it for a mistake. */
const THEN = "then";

/** Calls of a context whose sends do as `sendOwn` says. */
const callsOver = (sendOwn: () => Result): Calls => {
  const host = {
    sender: { sendOwn },
    memory: { words: new Int32Array(1) } as unknown as Memory,
    countWord: 0,
    checkJson: undefined,
    owner: { advanceSoon: () => {} },
    keepsCall: () => false,
    isGone: () => false,
    rejectEnded: () => {},
  };
  return new Calls(host, new HandlerTable((_, handler) => handler));
};

it("once no call is pending, no wait makes a timer for the deadline of one that is over", () => {
  const calls = callsOver(() => SUCCESS);
  const call = { to: 5 as Endpoint, inPlace: false, blocks: false, resolve: () => {}, reject: () => {} };
  const [first, second] = [9, 4].map((deadline) => calls.begin(1, undefined, undefined, { ...call, deadline }));
  expect([calls.size, calls.soonest]).toEqual([2, 4]);
  calls.giveUp(first as number, new Error("over"));
  expect([calls.size, calls.soonest]).toEqual([1, 4]);
  calls.giveUp(second as number, new Error("over"));
  expect([calls.size, calls.soonest]).toEqual([0, Number.POSITIVE_INFINITY]);
});

it("a call that is refused before it is sent is not pending: nobody would wait for it", () => {
  const calls = callsOver(() => {
    throw new RangeError("no such endpoint");
  });
  const call = { to: 5 as Endpoint, inPlace: false, blocks: false, deadline: 1, resolve: () => {}, reject: () => {} };
  expect(() => calls.begin(1, undefined, undefined, call)).toThrow("no such endpoint");
  expect([calls.size, calls.soonest]).toEqual([0, Number.POSITIVE_INFINITY]);
});

describe.each(LINKED_VARIANTS)("calls: $name", (variant) => {
  it("leave no listener behind, however they end", () =>
    withJob(variant, { tasks: 1 }, async ({ context }) => {
      const controller = new AbortController();
      const { signal } = controller;
      const listeners = () => getEventListeners(signal, "abort").length;
      context.dispatch(DATA, () => Uint8Array.of(1));
      context.dispatch(OTHER, () => {
        throw new TypeError("no");
      });
      const options = { timeout: PATIENCE, signal };
      const calls = [
        context.call(context.endpoint, DATA, null, options),
        rejectionOf(context.call(context.endpoint, OTHER, null, options)),
        rejectionOf(context.call(context.endpoint, 77, null, { ...options, timeout: 5 })),
      ];
      expect(listeners()).toBe(1);
      await Promise.all(calls);
      expect(listeners()).toBe(0);
      const reason = new Error("enough");
      const canceled = rejectionOf(context.call(context.endpoint, 77, null, options));
      controller.abort(reason);
      expect(await canceled).toMatchObject({ code: "PAMIR_CANCELED", cause: reason });
      expect(listeners()).toBe(0);
    }));

  it("end by their own timeouts, whatever calls with longer ones, or with none, began before", () =>
    withJob(variant, { tasks: 1 }, async ({ context }) => {
      const ended: number[] = [];
      const call = async (timeout: number | undefined): Promise<unknown> => {
        const { code } = await rejectionOf(context.call(context.endpoint, 77, null, { timeout }));
        ended.push(timeout ?? Number.POSITIVE_INFINITY);
        return code;
      };
      // The task is asleep when the next one begins.
      const turns = (): Promise<unknown> => new Promise((resolve) => setTimeout(resolve, 5));
      const longer = [call(undefined)];
      await turns();
      longer.push(call(PATIENCE));
      for (const timeout of [1, 0, 2]) {
        await turns();
        expect(await call(timeout)).toBe("PAMIR_TIMEDOUT");
      }
      expect(ended).toEqual([1, 0, 2]);
      context.close();
      expect(await Promise.all(longer)).toEqual(["PAMIR_CLOSED", "PAMIR_CLOSED"]);
    }));

  it("take a large ArrayBuffer apart from the rest, where both sides have codecs for that, and are refused elsewhere", () =>
    withJob(variant, { tasks: 1 }, async ({ context }) => {
      const apart = (): InPlaceCodec<unknown> => ({ ...codecs.clone(), hasParts: true });
      const whole = (): InPlaceCodec<unknown> => codecs.clone();
      const value = { name: "large", bytes: pattern(100_000), again: [1, "2"] };
      const to = context.endpoint;
      const same = (given: unknown): unknown => given;
      context.dispatch(dispatchId(DATA, apart(), apart()), same);
      context.dispatch(dispatchId(OTHER, apart(), apart()), same, { delivery: "early" });
      context.dispatch(dispatchId(40, whole(), apart()), same);
      for (const id of [DATA, OTHER]) {
        const back = (await context.call(to, dispatchId(id, apart(), apart()), value)) as typeof value;
        expect(sameBytes(back.bytes, value.bytes)).toBe(true);
        expect({ ...back, bytes: 0 }).toEqual({ ...value, bytes: 0 });
      }
      const refused = [
        // The handler's codec takes none; the caller's does not; the caller has no codec.
        context.call(to, dispatchId(40, apart(), apart()), value),
        context.call(to, dispatchId(DATA, apart(), whole()), value),
        context.call(to, DATA, whole().encode(value).slice()),
      ];
      for (const error of await Promise.all(refused.map((call) => call.catch((why: unknown) => why))))
        expect(error).toMatchObject({ code: "PAMIR_INVAL", message: expect.stringMatching(/a value in two parts/) });
    }));

  it("have one listener on a signal, as have all waits, however many there are", () =>
    withJob(variant, { tasks: 1 }, async ({ client, context }) => {
      const warnings: Error[] = [];
      const hear = (warning: Error): void => void warnings.push(warning);
      process.on("warning", hear);
      const controller = new AbortController();
      const { signal } = controller;
      const listeners = () => getEventListeners(signal, "abort").length;
      const other = client.createContext();
      const begin = (): Promise<unknown>[] => [
        context.call(context.endpoint, 77, null, { signal }),
        other.call(context.endpoint, 77, null, { signal }),
        context.whenEnded(other.endpoint, { signal }),
        context.progress({ signal }),
        context.waitWord(region, 0, (value) => value === 1, { signal }),
      ];
      const region = client.createRegion(8);
      const all = Array.from({ length: 400 }, begin).flat();
      const stream = context.messages(78, { signal }).next();
      await context.progress({ timeout: 0 }).catch(() => {});
      expect([all.length, listeners()]).toEqual([2000, 1]);
      controller.abort();
      const settled = await Promise.allSettled([...all, stream]);
      const codes = settled.map((each) => (each.status === "rejected" ? each.reason.code : "an event"));
      // A call of the other context may come first, which is an event for each progress().
      expect(codes.filter((code) => code !== "PAMIR_CANCELED" && code !== "an event")).toEqual([]);
      expect(codes.filter((code) => code === "PAMIR_CANCELED").length).toBeGreaterThanOrEqual(1601);
      expect(listeners()).toBe(0);
      await new Promise((resolve) => setImmediate(resolve));
      process.off("warning", hear);
      expect(warnings).toEqual([]);
    }));

  it("tell the handler that the caller gave up, by its signal, its timeout, its end", () =>
    withJob(variant, { tasks: 3, scenario: "hear" }, async ({ client, context }) => {
      const to = client.endpoint(1);
      const typed = dispatchId(OTHER, codecs.text, codecs.text);
      const told: string[] = [];
      let begun = 0;
      context.dispatch(RESULT, ({ payload }) => void told.push(new TextDecoder().decode(payload.slice())));
      context.dispatch(ASK, () => void begun++);
      // Of task 2, which has left.
      while (told.length < 1) await progress(context);
      expect(told.splice(0)).toEqual(["PAMIR_SHUTDOWN"]);
      const controller = new AbortController();
      const { signal } = controller;
      const calls = [context.call(to, DATA, null, { signal }), context.call(to, typed, "", { signal })].map(
        rejectionOf,
      );
      while (begun < 1) await progress(context);
      controller.abort();
      expect((await Promise.all(calls)).map(({ code }) => code)).toEqual(["PAMIR_CANCELED", "PAMIR_CANCELED"]);
      while (told.length < 2) await progress(context);
      expect(told.splice(0)).toEqual(["PAMIR_CANCELED", "PAMIR_CANCELED"]);
      expect((await rejectionOf(context.call(to, typed, "", { timeout: 1 }))).code).toBe("PAMIR_TIMEDOUT");
      while (told.length < 1) await progress(context);
      expect(told.splice(0)).toEqual(["PAMIR_TIMEDOUT"]);
      const other = client.createContext();
      const last = rejectionOf(other.call(to, DATA));
      await other.drain({ timeout: PATIENCE });
      other.close();
      expect((await last).code).toBe("PAMIR_CLOSED");
      while (told.length < 1) await progress(context);
      expect(told).toEqual(["PAMIR_SHUTDOWN"]);
      context.sendImmediate(to, QUIT);
    }));

  it("tell a handler that comes later, and a stream, and none that has answered", () =>
    withJob(variant, { tasks: 1 }, async ({ client, context }) => {
      const caller = client.createContext();
      const to = context.endpoint;
      const controller = new AbortController();
      const { signal } = controller;
      const [kept, streamed] = [DATA, OTHER].map((id) => rejectionOf(caller.call(to, id, null, { signal })));
      const answered = caller.call(to, ASK, null, { signal, timeout: PATIENCE });
      const signals: AbortSignal[] = [];
      context.dispatch(ASK, (message) => void signals.push(message.signal));
      until(context, () => signals.length === 1);
      await answered;
      controller.abort();
      expect([(await kept)?.code, (await streamed)?.code]).toEqual(["PAMIR_CANCELED", "PAMIR_CANCELED"]);
      for (let round = 0; round < 8; round++) for (const each of [caller, context]) each.advance();
      context.dispatch(DATA, (message) => void signals.push(message.signal));
      const { value } = await context.messages(OTHER, { timeout: PATIENCE }).next();
      signals.push((value as Received<Uint8Array>).signal as AbortSignal);
      until(context, () => signals.length === 3);
      expect(signals[0]?.aborted).toBe(false);
      expect(signals.slice(1).map(({ reason }) => reason?.code)).toEqual(["PAMIR_CANCELED", "PAMIR_CANCELED"]);
      context.dispatch(RESULT, (message) => void signals.push(message.signal));
      context.sendImmediate(to, RESULT);
      until(context, () => signals.length === 4);
      expect(signals[3]?.aborted).toBe(false);
    }));

  it("keep the store of their caller, and handlers and callbacks that are bound keep theirs", () =>
    withJob(variant, { tasks: 1 }, async ({ context }) => {
      const storage = new AsyncLocalStorage<string>();
      const to = context.endpoint;
      const stores: (string | undefined)[] = [];
      storage.run("handler", () =>
        context.dispatch(
          DATA,
          AsyncResource.bind(() => void stores.push(storage.getStore())),
        ),
      );
      const call = (name: string): Promise<string | undefined> =>
        storage.run(name, async () => {
          await context.call(to, DATA, null, { timeout: PATIENCE });
          return storage.getStore();
        });
      const names = Array.from({ length: 20 }, (_, i) => `caller ${i}`);
      expect(await Promise.all(names.map(call))).toEqual(names);
      const thrown = storage.run("thrown", () =>
        context.call(to, 77, null, { timeout: 1 }).catch(() => storage.getStore()),
      );
      expect(await thrown).toBe("thrown");
      storage.run("sender", () => {
        const onLocal = AsyncResource.bind(() => void stores.push(storage.getStore()));
        context.send({ to, dispatch: DATA, onLocal });
      });
      while (stores.length < 22) await progress(context);
      expect(new Set(stores)).toEqual(new Set(["handler", "sender"]));
    }));

  it("another handler's error is none of the caller's: nobody handles it", () =>
    withJob(variant, { tasks: 1 }, async ({ context }) => {
      const uncaught: unknown[] = [];
      const before = process.listeners("uncaughtException");
      process.removeAllListeners("uncaughtException");
      process.on("uncaughtException", (error) => void uncaught.push(error));
      try {
        context.dispatch(DATA, () => Uint8Array.of(1));
        context.dispatch(OTHER, () => {
          throw new Error("of a message");
        });
        context.sendImmediate(context.endpoint, OTHER);
        expect(await context.call(context.endpoint, DATA, null, { timeout: PATIENCE })).toEqual(Uint8Array.of(1));
        expect(uncaught).toEqual([new Error("of a message")]);
      } finally {
        process.removeAllListeners("uncaughtException");
        for (const listener of before) process.on("uncaughtException", listener);
      }
    }));

  it("what a handler may give back: bytes of any view, or nothing; all else is an error that says so", () =>
    withJob(variant, { tasks: 1 }, async ({ context }) => {
      const values = [undefined, null, Uint16Array.of(258), new DataView(Uint8Array.of(7, 8, 9).buffer, 1, 1)];
      context.dispatch(DATA, ({ header }) => [...values, 5, "text"][header[0] as number]);
      const call = (number: number) =>
        context.call(context.endpoint, DATA, null, { timeout: PATIENCE, header: Uint8Array.of(number) });
      expect(await Promise.all(values.map((_, i) => call(i)))).toEqual(
        [[], [], [2, 1], [8]].map((bytes) => Uint8Array.from(bytes)),
      );
      for (const number of [4, 5])
        expect((await rejectionOf(call(number))).text).toContain("give back a view of bytes");
    }));

  it("a handler's thenable is awaited: of a call, a message, a stream, a callback, posted work", () =>
    withJob(variant, { tasks: 1 }, async ({ context }) => {
      const to = context.endpoint;
      const begun: string[] = [];
      const query = (name: string, value?: unknown): PromiseLike<never> => {
        const call = (resolve: (value: unknown) => void): void => {
          begun.push(name);
          queueMicrotask(() => resolve(value));
        };
        return { [THEN]: call } as unknown as PromiseLike<never>;
      };
      const typed = dispatchId(1, codecs.json(), codecs.json());
      context.dispatch(typed, (name) => query(name as string, [{ id: 7 }]));
      expect(await context.call(to, typed, "typed", { timeout: PATIENCE })).toEqual([{ id: 7 }]);
      context.dispatch(DATA, () => query("plain", Uint8Array.of(5)));
      expect(await context.call(to, DATA, null, { timeout: PATIENCE })).toEqual(Uint8Array.of(5));
      expect(context.sendImmediate(to, DATA)).toBe(SUCCESS);
      expect(context.send({ to, dispatch: typed, payload: "message" })).toBe(SUCCESS);
      expect(context.send({ to, dispatch: DATA, onLocal: () => query("callback") })).toBe(SUCCESS);
      let works = 0;
      context.post(() => query("work", ++works < 3 ? EAGAIN : undefined));
      const answer = context.call(to, OTHER, null, { timeout: PATIENCE });
      for await (const { reply } of context.messages(OTHER, { timeout: PATIENCE })) {
        reply?.(query("stream", Uint8Array.of(6)));
        break;
      }
      expect(await answer).toEqual(Uint8Array.of(6));
      const expected = ["typed", "plain", "plain", "plain", "message", "callback", "work", "work", "work", "stream"];
      while (begun.length < expected.length) await progress(context);
      expect(begun.sort()).toEqual(expected.sort());
    }));

  it("a codec that gives a promise is refused, wherever it is one, and so is a condition", () =>
    withJob(variant, { tasks: 1 }, async ({ context }) => {
      const to = context.endpoint;
      const options = { timeout: PATIENCE };
      const late = { encode: async () => new Uint8Array(), decode: async () => 1 } as unknown as Codec<unknown>;
      const [json, is] = [codecs.json(), "PAMIR_INVAL"];
      const [encodes, decodes, replies] = [dispatchId(1, late), dispatchId(2, json, json), dispatchId(3, json, late)];
      expect(await rejectionOf(context.call(to, encodes, 1, options))).toMatchObject({
        code: is,
        text: expect.stringContaining(
          "encode() of a codec gave Promise, not a Uint8Array: a codec gives its bytes at once",
        ),
      });
      expect(thrownBy(() => context.send({ to, dispatch: encodes, payload: 1 })).code).toBe(is);
      let calls = 0;
      context.dispatch(dispatchId(2, late, json), () => calls++);
      expect(await rejectionOf(context.call(to, decodes, 1, options))).toMatchObject({
        code: is,
        text: expect.stringContaining("decode() of a codec gave Promise"),
      });
      context.dispatch(replies, () => 1);
      expect((await rejectionOf(context.call(to, replies, 1, options))).code).toBe(is);
      context.dispatch(dispatchId(4, json, json), () => 1);
      expect((await rejectionOf(context.call(to, dispatchId(4, json, late), 1, options))).code).toBe(is);
      const streamed = rejectionOf(context.call(to, dispatchId(5, json, json), 1, options));
      const wait = context.messages(dispatchId(5, late), options).next();
      expect((await streamed).code).toBe(is);
      expect(calls).toBe(0);
      expect(thrownBy(() => context.advanceUntil((async () => false) as never, { timeout: 0 })).code).toBe(is);
      context.close();
      await wait.catch(() => {});
    }));

  it("what can't be read rejects its call alone, whether it is thrown, rejected or returned", () =>
    withJob(variant, { tasks: 1 }, async ({ context }) => {
      const fail = (): never => {
        throw new Error("of its own code");
      };
      const revoked = Proxy.revocable({}, {});
      revoked.revoke();
      const values: unknown[] = [
        Object.assign(Object.create(null), { status: 500 }),
        Object.defineProperty(new Error("x"), "message", { get: fail }),
        new Proxy({}, { get: fail, getPrototypeOf: fail, ownKeys: fail }),
        revoked.proxy,
        Symbol("sign"),
        Object.assign(new Error("x"), { message: 10n }),
        { toString: fail, toJSON: fail },
        Object.defineProperty({}, THEN, { get: fail }),
      ];
      const json = codecs.json<number>();
      const [thrown, rejected, returned] = [1, 2, 3].map((id) => dispatchId(id, json, codecs.json()));
      context.dispatch(thrown as DispatchId<number, unknown>, (i) => {
        throw values[i];
      });
      context.dispatch(rejected as DispatchId<number, unknown>, (i) => Promise.reject(values[i]));
      context.dispatch(4, ({ header }) => values[header[0] as number]);
      context.dispatch(returned as DispatchId<number, unknown>, () => "fine");
      const options = { timeout: PATIENCE };
      for (const i of values.keys()) {
        const calls = [thrown, rejected].map((id) =>
          context.call(context.endpoint, id as DispatchId<number, unknown>, i, options),
        );
        calls.push(context.call(context.endpoint, 4, null, { ...options, header: Uint8Array.of(i) }));
        for (const { reason } of (await Promise.allSettled(calls)) as PromiseRejectedResult[]) {
          expect(reason).toBeInstanceOf(RemoteError);
          expect(reason.message).not.toBe("");
        }
        expect(await context.call(context.endpoint, returned as DispatchId<number, unknown>, i, options)).toBe("fine");
      }
    }));

  it("an error arrives with its fields, its cause and its errors", () =>
    withJob(variant, { scenario: "throw" }, async ({ client, context }) => {
      const error = (kind: number) =>
        context.call(client.endpoint(1), DATA, Uint8Array.of(kind), { timeout: PATIENCE }).catch((thrown) => thrown);
      expect(await error(0)).toMatchObject({ name: "Error", status: 500 });
      const chain = await error(1);
      expect(chain).toBeInstanceOf(RemoteError);
      expect(chain).toMatchObject({
        name: "TypeError",
        code: "E_OUTER",
        cause: { message: "inner", retry: { after: 5 } },
      });
      expect(chain.cause).toBeInstanceOf(RemoteError);
      expect(await error(2)).toMatchObject({ errors: [{ name: "RangeError", message: "first" }, "second"] });
      expect(await error(3)).toMatchObject({ message: "a thrown object" });
      expect(await context.call(client.endpoint(1), DATA, Uint8Array.of(4), { timeout: PATIENCE })).toEqual(
        Uint8Array.of(4),
      );
      expect(context.sendImmediate(client.endpoint(1), OTHER)).toBe(SUCCESS);
    }));

  it("is answered by a thread that blocks, and by one that closes with its last word", () =>
    withJob(variant, { scenario: "answer" }, async ({ client, context }) => {
      const to = client.endpoint(1);
      for (let i = 0; i < 100; i++) {
        expect(await context.call(to, DATA, Uint8Array.of(i), { timeout: PATIENCE })).toEqual(Uint8Array.of(i, 1));
      }
      expect(await context.call(to, OTHER, null, { timeout: PATIENCE })).toEqual(Uint8Array.of(99));
      expect((await rejectionOf(context.call(to, DATA, null, { timeout: PATIENCE }))).code).toBe("PAMIR_SHUTDOWN");
    }));

  it("keeps its place among messages where there is no room for it", () =>
    withJob(variant, { tasks: 1, laneBytes: 64, context: { pendingBytes: 64 } }, async ({ context }) => {
      const came: string[] = [];
      const to = context.endpoint;
      context.dispatch(OTHER, ({ header }) => void came.push(`message ${header[0]}`));
      context.dispatch(DATA, ({ header }) => void came.push(`call ${header[0]}`));
      const sent: string[] = [];
      const send = (): boolean => {
        if (context.sendImmediate(to, OTHER, Uint8Array.of(sent.length)) !== SUCCESS) return false;
        sent.push(`message ${sent.length}`);
        return true;
      };
      while (send());
      const calls: Promise<unknown>[] = [];
      for (let call = 0; call < 20; call++) {
        calls.push(context.call(to, DATA, null, { header: Uint8Array.of(sent.length), timeout: PATIENCE }));
        sent.push(`call ${sent.length}`);
        // As soon as there is room again, or a place in the queue.
        while (!send()) context.advance();
      }
      await Promise.all(calls);
      await context.drain();
      while (came.length < sent.length) await progress(context);
      expect(came).toEqual(sent);
    }));

  it("has sent or copied its request when it returns, also one that is larger than a lane", () =>
    withJob(variant, { tasks: 1 }, async ({ context }) => {
      context.dispatch(DATA, (message) => {
        if (message.immediate) return message.payload.slice();
        const bytes = new Uint8Array(message.payloadBytes);
        return new Promise((resolve) => message.receive(bytes, () => resolve(bytes)));
      });
      const calls = [0, 1000, 69_620, 69_632, 300_000].map((bytes) => {
        const request = pattern(bytes);
        const call = context.call(context.endpoint, DATA, request, { timeout: PATIENCE });
        request.fill(0);
        return call;
      });
      const same = (await Promise.all(calls)).map((reply) => sameBytes(reply, pattern(reply.length)));
      expect(same).toEqual([true, true, true, true, true]);
    }));

  it("a reply that comes after its context was closed goes nowhere, and takes no memory", () =>
    withJob(variant, { tasks: 1 }, async ({ job, client, context }) => {
      const other = client.createContext();
      let answer = (_: Uint8Array): void => {};
      let isAsked = false;
      other.dispatch(DATA, () => {
        isAsked = true;
        return new Promise<Uint8Array>((resolve) => {
          answer = resolve;
        });
      });
      const call = rejectionOf(context.call(other.endpoint, DATA, null, { timeout: PATIENCE }));
      until(other, () => isAsked);
      other.close();
      answer(Uint8Array.of(1));
      expect((await call).code).toBe("PAMIR_SHUTDOWN");
      expect(job.dump().tasks[0]?.contexts[0]?.lanes).toEqual([]);
    }));

  it("bad input is refused, by the promise", () =>
    withJob(variant, { tasks: 1 }, async ({ context }) => {
      const call = (...given: unknown[]) =>
        rejectionOf((context.call as (...given: unknown[]) => Promise<unknown>)(...given));
      const to = context.endpoint;
      expect(await call(to, 4096)).toMatchObject({
        code: "PAMIR_INVAL",
        text: expect.stringMatching(/4096, not an integer from 0 to 4095/),
      });
      expect(await call(12_345, DATA)).toMatchObject({
        code: "PAMIR_INVAL",
        text: expect.stringMatching(/the job has 1 tasks/),
      });
      expect(await call(to, DATA, "text")).toMatchObject({
        code: "PAMIR_INVAL",
        text: expect.stringMatching(/request is "text"/),
      });
      expect(await call(to, DATA, null, { header: 5 })).toMatchObject({ text: expect.stringMatching(/header is 5/) });
      expect(await call(to, DATA, null, { header: new Uint8Array(65_528) })).toMatchObject({ code: "PAMIR_TOO_LARGE" });
      expect(await call(to, DATA, null, { timeout: -1 })).toMatchObject({ code: "PAMIR_INVAL" });
      expect(() => dispatchId(-1, codecs.text)).toThrow("-1, not an integer");
      expect(() => dispatchId(1, {} as never)).toThrow("without encode() and decode()");
      expect(() => dispatchId(1, codecs.text, { encode() {} } as never)).toThrow("without encode()");
      const cyclic: { self?: unknown } = {};
      cyclic.self = cyclic;
      expect((await rejectionOf(context.call(to, dispatchId(1, codecs.json()), cyclic))).text).toContain("circular");
      expect(await rejectionOf(attach(5 as never))).toMatchObject({
        code: "PAMIR_INVAL",
        text: expect.stringMatching(/port of attach\(\) is 5/),
      });
    }));

  it("a reply that finds no memory for a lane waits for it", () =>
    withJob(variant, { tasks: 1, contexts: 127, heapBytes: 2 ** 19 }, async ({ client, context }) => {
      const [callee, other] = [client.createContext(), client.createContext()];
      callee.dispatch(DATA, () => Uint8Array.of(7));
      for (let i = 1; context.resume([client.endpoint(0, i)]) === SUCCESS; ) i++;
      const reply = context.call(callee.endpoint, DATA, null, { timeout: PATIENCE });
      let isOver = false;
      void reply.finally(() => {
        isOver = true;
      });
      await callee.progress({ timeout: PATIENCE });
      expect(callee.drained).toBe(false);
      for (let round = 0; round < 20; round++) for (const each of [context, callee]) each.advance();
      expect([isOver, callee.drained]).toEqual([false, false]);
      expect(context.purge([other.endpoint])).toBe(SUCCESS);
      other.advance();
      await callee.drain({ timeout: PATIENCE });
      expect(await reply).toEqual(Uint8Array.of(7));
      const { code, text } = await rejectionOf(context.call(client.endpoint(0, 126), DATA));
      expect([code, text]).toEqual(["PAMIR_NO_MEMORY", "call(): no memory for a lane to context 126 of task 0"]);
    }));

  it("where there is no memory for a larger lane, requests, replies and errors come in packets", () =>
    withJob(variant, { tasks: 1, contexts: 2, laneBytes: 512, heapBytes: 2 ** 20 }, async ({ client, context }) => {
      const callee = client.createContext();
      callee.dispatch(DATA, ({ payload }) => payload.map((byte) => ~byte));
      callee.dispatch(OTHER, () => {
        throw new Error("x".repeat(2000));
      });
      fillHeap(client);
      const request = pattern(20_000);
      const options = { timeout: PATIENCE };
      const reply = context.call(callee.endpoint, DATA, request, options);
      const error = rejectionOf(context.call(callee.endpoint, OTHER, null, options));
      let isOver = false;
      void Promise.all([reply, error]).then(() => {
        isOver = true;
      });
      while (!isOver) await callee.progress({ timeout: 10 }).catch(() => {});
      expect(
        sameBytes(
          await reply,
          request.map((byte) => ~byte),
        ),
      ).toBe(true);
      expect((await error).text).toBe("x".repeat(2000));
    }));

  it("a large reply goes out where the pending queue may copy nothing", () =>
    withJob(variant, { tasks: 1 }, async ({ client, context }) => {
      const callee = client.createContext({ pendingBytes: 0 });
      const bytes = pattern(5_000_000); // more than the pool may have: it comes in packets
      callee.dispatch(DATA, () => bytes);
      const reply = context.call(callee.endpoint, DATA, null, { timeout: PATIENCE });
      while (callee.sendImmediate(context.endpoint, OTHER, null, new Uint8Array(4000)) === SUCCESS);
      callee.advance();
      expect(callee.drained).toBe(false);
      context.dispatch(OTHER, () => {});
      await callee.drain({ timeout: PATIENCE });
      callee.close();
      expect(sameBytes(await reply, bytes)).toBe(true);
    }));

  it("many, while others advance the context", () =>
    withJob(variant, { scenario: "answer" }, async ({ client, context }) => {
      const to = client.endpoint(1);
      const calls = Array.from({ length: 50 }, (_, i) => context.call(to, DATA, Uint8Array.of(i)));
      let came = 0;
      for (const call of calls) void call.then(() => came++);
      until(context, () => context.drained);
      while (came < 50) await context.progress({ timeout: PATIENCE }).catch(() => {});
      expect(context.sendImmediate(to, OTHER)).toBe(SUCCESS);
    }));
});
