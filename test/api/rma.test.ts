// One-sided operations through the public API: regions, put, get, rmw, completions, fences. The names begin with the
// element of the mechanism that they prove.
import {
  type Client,
  type Context,
  EAGAIN,
  type Job,
  type MemRegion,
  SHUTDOWN,
  SUCCESS,
  type TransferParameters,
} from "pamir";
import { describe, expect, it } from "vitest";
import { JOB_HEAP_LOCK_OFFSET, MAP_BASE } from "../../assembly/layout.js";
import {
  DATA,
  ENGINE_VARIANTS,
  OTHER,
  PATIENCE,
  pattern,
  QUIT,
  RESULT,
  rejectionOf,
  sameBytes,
  thrownBy,
  until,
  VARIANTS,
  type Variant,
  withJob,
} from "./support.js";

const KIB = 1024;
const SLICE = 256 * KIB;

interface Own {
  readonly client: Client;
  readonly context: Context;
  readonly from: MemRegion;
  readonly into: MemRegion;
  /** A put of the first `bytes` from one to the other, with what is given besides. */
  put(bytes: number, more?: Partial<TransferParameters>): number;
}

/** Two regions of a task that talks to itself. */
async function alone<T>(
  variant: Variant,
  options: { bytes?: number; slots?: number; fifos?: number; pendingBytes?: number },
  body: (own: Own) => T | Promise<T>,
): Promise<T> {
  const { bytes = KIB, pendingBytes = 1024 ** 2, ...limits } = options;
  return withJob(
    variant,
    // The other task says nothing: no event is anybody else's.
    { tasks: 2, module: "sleeper.js", context: { pendingBytes }, ...limits },
    ({ client, context }) => {
      const from = client.createRegion(bytes);
      const into = client.createRegion(bytes);
      from.bytes.set(pattern(bytes));
      into.bytes.fill(0);
      const to = client.endpoint(0);
      const put = (length: number, more = {}) =>
        context.put({ to, local: from, remote: into.handle, bytes: length, ...more });
      return body({ client, context, from, into, put });
    },
  );
}

interface Peer {
  readonly job: Job;
  readonly client: Client;
  readonly context: Context;
  readonly from: MemRegion;
  readonly handle: number;
  /** Asks the other task: 1 close, 2 close and open another, 3 what it holds. */
  ask(order: number): unknown;
}

/** A region of this task, and one of task 1. */
async function withPeer<T>(
  variant: Variant,
  bytes: number,
  body: (peer: Peer) => T | Promise<T>,
  { fill = 0, pendingBytes = 1024 ** 2 } = {},
): Promise<T> {
  const request = { module: "region.js", scenario: "own", args: { bytes, fill }, context: { pendingBytes } };
  return withJob(variant, request, ({ job, client, context }) => {
    const told: unknown[] = [];
    context.dispatch(RESULT, (message) => {
      const take = (payload: Uint8Array) => void told.push(JSON.parse(new TextDecoder().decode(payload)));
      if (message.immediate) take(message.payload.slice());
      else {
        const whole = new Uint8Array(message.payloadBytes);
        message.receive(whole, () => take(whole));
      }
    });
    until(context, () => told.length === 1);
    const ask = (order: number): unknown => {
      context.sendImmediate(client.endpoint(1), OTHER, null, Uint8Array.of(order));
      const before = told.length;
      until(context, () => told.length > before);
      return told.at(-1);
    };
    const from = client.createRegion(bytes);
    from.bytes.set(pattern(bytes, 7));
    return body({ job, client, context, from, handle: told[0] as number, ask });
  });
}

describe.each(ENGINE_VARIANTS)("$name", (variant) => {
  /** Whether a thread is the engine: then what is long goes on whether or not this one advances. */
  const hasThread = variant.engine === "thread";

  describe("regions", () => {
    it("are of any size, page-aligned, and apart from each other", () =>
      withJob(variant, {}, ({ client }) => {
        const regions = [1, 8, 4095, 4096, 4097, 100_000].map((bytes) => client.createRegion(bytes));
        regions.forEach((region, i) => void region.bytes.fill(i + 1));
        regions.forEach((region, i) => {
          expect(region.bytes.byteOffset % 4096).toBe(0);
          expect(region.bytes.every((byte) => byte === i + 1)).toBe(true);
          expect(region.length).toBe(region.bytes.length);
        });
        expect(new Set(regions.map(({ handle }) => handle)).size).toBe(regions.length);
      }));

    it("fill() of their bytes does what that of ordinary bytes does, and stays within the region", () =>
      withJob(variant, {}, ({ client }) => {
        const regions = [4096, 4000, 4096].map((bytes) => client.createRegion(bytes));
        const [before, { bytes }, after] = regions as [MemRegion, MemRegion, MemRegion];
        before.bytes.fill(1);
        after.bytes.fill(2);
        const ranges: [start?: number, end?: number][] = [
          [],
          [0, 4000],
          [3, 258],
          [3, 259],
          [17, 3001],
          [-300],
          [5, -5],
          [0, 9999],
          [3000, 20],
          [4001],
          [0.5, 999.5],
          [Number.NaN, Number.POSITIVE_INFINITY],
        ];
        const ordinary = new Uint8Array(4000);
        bytes.fill(0);
        let value = 0;
        for (const range of ranges) {
          value++;
          for (const given of [value, -value, value + 0.75, 2 ** 40 + value, Number.NaN]) {
            expect(bytes.fill(given, ...range)).toBe(bytes);
            ordinary.fill(given, ...range);
            expect(sameBytes(bytes, ordinary)).toBe(true);
          }
        }
        expect(() => bytes.fill(1n as unknown as number)).toThrow(TypeError);
        expect(Object.keys(bytes)).toEqual(Object.keys(ordinary));
        expect(before.bytes.every((byte) => byte === 1)).toBe(true);
        expect(after.bytes.every((byte) => byte === 2)).toBe(true);
      }));

    it("close once, by hand or by `using`; their bytes are used again once every context has advanced", () =>
      withPeer(variant, 8, ({ client, context, ask }) => {
        const free = 1024 ** 2;
        let handle: number;
        let offset: number;
        {
          using region = client.createRegion(free);
          handle = region.handle;
          offset = region.bytes.byteOffset;
        }
        // Not yet: no context has advanced since. Each does, and then the place and the entry are free.
        const second = client.createRegion(free);
        expect(second.bytes.byteOffset).not.toBe(offset);
        context.advance();
        ask(3);
        context.advance();
        // An engine thread is to have seen it too, and says so.
        const isWaitedFor = () =>
          !thrownBy(() => client.createRegion(2 ** 23)).text.includes("; 0 of closed regions wait");
        if (hasThread) until(context, () => !isWaitedFor());
        const third = client.createRegion(free);
        expect(third.bytes.byteOffset).toBe(offset);
        expect(third.handle).not.toBe(handle);
        second.close();
        second.close();
        expect(second.closed).toBe(true);
      }));

    it("of a task that has ended are free for the others", () =>
      withJob(
        variant,
        { module: "region.js", scenario: "die", args: { bytes: 6 * 1024 ** 2 } },
        async ({ client, context, job }) => {
          let handle: number | undefined;
          context.dispatch(RESULT, (message) => {
            handle = JSON.parse(new TextDecoder().decode(message.payload.slice()));
          });
          until(context, () => handle !== undefined);
          await job.exited;
          const local = client.createRegion(8);
          until(context, () => context.put({ to: client.endpoint(1), local, remote: handle as number }) === SHUTDOWN);
          // An engine thread is to have seen it too, and says so.
          const held = () => job.dump().heap.owners.some(({ task }) => task === 1);
          if (hasThread) until(context, () => !held());
          expect(held()).toBe(false);
          expect(client.createRegion(6 * 1024 ** 2).length).toBe(6 * 1024 ** 2);
        },
      ));
  });

  describe("put and get", () => {
    it.each([0, 1, 3, 4, 7, 8, 15, 16, 31, 32, 63, 64, 65, 130, 4097])("move %i bytes, and no others", (bytes) =>
      alone(variant, {}, ({ client, context, from, into }) => {
        // From an odd place to another odd one.
        const length = Math.min(bytes, KIB - 8);
        const parameters = { to: client.endpoint(0), local: from, remote: into.handle, bytes: length };
        expect(context.put({ ...parameters, localOffset: 3, remoteOffset: 5 })).toBe(SUCCESS);
        expect(sameBytes(into.bytes.slice(5, 5 + length), from.bytes.slice(3, 3 + length))).toBe(true);
        expect(into.bytes.slice(0, 5).every((byte) => byte === 0)).toBe(true);
        expect(into.bytes.slice(5 + length).every((byte) => byte === 0)).toBe(true);
        from.bytes.fill(0);
        expect(context.get({ ...parameters, localOffset: 7, remoteOffset: 5 })).toBe(SUCCESS);
        expect(sameBytes(from.bytes.slice(7, 7 + length), into.bytes.slice(5, 5 + length))).toBe(true);
        expect(from.bytes.slice(0, 7).every((byte) => byte === 0)).toBe(true);
      }),
    );

    it("reach another task's memory, which sees every byte", () =>
      withPeer(variant, 3000, ({ client, context, from, handle, ask }) => {
        const to = client.endpoint(1);
        let isThere = false;
        context.put({
          to,
          local: from,
          remote: handle,
          onRemote: () => {
            isThere = true;
          },
        });
        until(context, () => isThere);
        expect(ask(3)).toEqual([...from.bytes]);
        from.bytes.fill(0);
        context.get({ to, local: from, remote: handle });
        expect(sameBytes(from.bytes, pattern(3000, 7))).toBe(true);
      }));
  });

  describe("rmw", () => {
    it("adds up what two tasks add at once, to words of 32 and 64 bits", () =>
      withJob(
        variant,
        { tasks: 3, module: "region.js", scenario: "add", args: { rounds: 3000 } },
        ({ client, context }) => {
          let done = 0;
          context.dispatch(RESULT, () => done++);
          const region = client.createRegion(24);
          region.bytes.fill(0);
          for (const task of [1, 2]) {
            context.sendImmediate(client.endpoint(task), DATA, null, new Float64Array([region.handle]));
          }
          until(context, () => done === 2);
          const view = new DataView(region.bytes.buffer, region.bytes.byteOffset);
          expect(view.getInt32(0, true)).toBe(6000);
          expect(view.getBigInt64(8, true)).toBe(6000n * 2n ** 31n);
          expect(view.getInt32(16, true)).toBe(0); // each bit an even number of times
        },
      ));
  });

  describe("completions", () => {
    it("C1 a call returns at once, and its callback runs in advance() only", () =>
      alone(variant, { bytes: 3 * SLICE }, ({ context, into, put, from }) => {
        const log: string[] = [];
        put(3 * SLICE, { onRemote: () => log.push("large") });
        put(8, { onLocal: () => log.push("small") });
        expect(log).toEqual([]);
        // Not all of it moved in the call.
        if (!hasThread) expect(into.bytes[3 * SLICE - 1]).not.toBe(from.bytes[3 * SLICE - 1]);
        until(context, () => log.length === 2);
        expect(log).toEqual(["large", "small"]);
        expect(sameBytes(into.bytes, from.bytes)).toBe(true);
      }));

    it("C2 a put without callbacks is done when the call returns, unless something is before it", () =>
      alone(variant, { bytes: 2 * SLICE, fifos: 1 }, ({ context, into, put, from }) => {
        put(8);
        expect(sameBytes(into.bytes.slice(0, 8), from.bytes.slice(0, 8))).toBe(true);
        put(2 * SLICE);
        from.bytes.fill(9, 8, 16);
        put(8, { localOffset: 8, remoteOffset: 0 });
        if (!hasThread) expect(into.bytes[0]).not.toBe(9); // it waits its turn
        until(context, () => into.bytes[0] === 9);
      }));

    it("C4a F1 a long put to one endpoint does not delay a short one to another, of the same task too", () =>
      alone(variant, { bytes: 8 * SLICE, fifos: 4 }, ({ client, context, put, into, from }) => {
        const log: string[] = [];
        put(8 * SLICE, { onLocal: () => log.push("long") });
        put(8, { to: client.endpoint(0, 1), remoteOffset: 8 * SLICE - 8, onLocal: () => log.push("short") });
        context.advance();
        expect(log[0]).toBe("short");
        if (!hasThread) {
          expect(log).toEqual(["short"]);
          expect(into.bytes[8 * SLICE - 8]).toBe(from.bytes[0]);
        }
        until(context, () => log.length === 2);
      }));

    // What is short is done at once and its callbacks are counted (C7), unless something is before it.
    const PLACES = [["at once"], ["behind a long one"]] as const;

    it.each(PLACES)("C3 C5 callbacks run in the order of the calls, each once, with its cookie: %s", (place) =>
      alone(variant, { slots: 16, bytes: 2 * SLICE }, ({ context, put }) => {
        const log: unknown[] = [];
        const long = place === "at once" ? 0 : put(2 * SLICE, { onRemote: () => log.push(-1, SUCCESS) });
        expect(long).toBe(SUCCESS);
        for (let i = 0; i < 100; i++) {
          put(i & 7, { onLocal: (cookie: unknown, result: number) => log.push(cookie, result), cookie: i });
          if (i % 3 === 0) put(8); // slots without a callback in between
        }
        const all = Array.from({ length: 100 }, (_, i) => i);
        if (place !== "at once") all.unshift(-1);
        until(context, () => log.length >= 2 * all.length);
        expect(log).toEqual(all.flatMap((i) => [i, SUCCESS]));
        expect(context.advance()).toBe(0);
      }),
    );

    it.each([4, 8, 64])(
      "C6 C8 a full FIFO of %i slots is back-pressure: nothing is lost, repeated or reordered",
      (slots) =>
        alone(variant, { slots, fifos: 1, pendingBytes: 10 * 64 }, ({ context, put }) => {
          const log: number[] = [];
          let next = 0;
          let refused = 0;
          for (let round = 0; round < 800; round++) {
            for (let i = 0; i < 5; i++) {
              const number = next;
              const result = put(8, { onLocal: () => log.push(number), onRemote: () => log.push(number) });
              if (result === SUCCESS) next++;
              else {
                expect(result).toBe(EAGAIN);
                refused++;
              }
            }
            // Seldom enough for as many as may be counted, and as many again as there are slots.
            if (round % 40 === 0) context.advance();
          }
          until(context, () => log.length === 2 * next);
          expect(refused).toBeGreaterThan(0);
          expect(log).toEqual(Array.from({ length: next }, (_, i) => [i, i]).flat());
        }),
    );

    it("C7 with nothing pending an advance() is an idle one: no event", () =>
      alone(variant, {}, ({ context, put }) => {
        put(8, { onLocal: () => {} });
        expect(context.advance()).toBe(1);
        expect(context.advance()).toBe(0);
      }));

    it("C7 in the last callback nothing is under way: the context is drained, and what is short is done at once", () =>
      alone(variant, { bytes: 2 * SLICE, fifos: 1 }, ({ context, put, from, into }) => {
        const seen: unknown[] = [];
        const wanted: unknown[] = [];
        const isThere = (): boolean => {
          from.bytes[0] = seen.length + 1;
          put(8);
          return into.bytes[0] === seen.length + 1;
        };
        // Many: an engine thread says how far it is only some ns behind what it tells of.
        for (let round = 0; round < 100; round++) {
          const onLocal = () => seen.push(context.drained && isThere());
          put(2 * SLICE - 8, { localOffset: 8, remoteOffset: 8, onLocal });
          wanted.push(true);
          until(context, () => seen.length === wanted.length);
        }
        expect(seen).toEqual(wanted);
      }));

    it.each(PLACES)("C9 a callback may issue operations, which a later round completes, and may throw: %s", (place) =>
      alone(variant, { bytes: 2 * SLICE }, ({ context, put }) => {
        const log: string[] = [];
        if (place !== "at once") put(2 * SLICE, { onLocal: () => {} });
        put(8, {
          onLocal: () => {
            log.push("first");
            put(8, { onLocal: () => log.push("second") });
            throw new Error("one");
          },
        });
        put(8, {
          onLocal: () => {
            throw new Error("two");
          },
        });
        put(8, { onLocal: () => log.push("third") });
        const thrown: unknown[] = [];
        const advance = () => {
          try {
            context.advance();
          } catch (error) {
            thrown.push(error);
          }
        };
        // What an engine thread processes comes to its end in the same round, or in two.
        if (hasThread)
          for (const end = performance.now() + PATIENCE; log.length < 3 && performance.now() < end; ) advance();
        else {
          advance();
          expect(log).toEqual(["first", "third"]);
          expect(thrown[0]).toBeInstanceOf(AggregateError);
          until(context, () => log.length === 3);
        }
        expect(log).toEqual(["first", "third", "second"]);
        const errors = thrown.flatMap((error) => (error instanceof AggregateError ? error.errors : [error]));
        expect(errors.map(({ message }) => message)).toEqual(["one", "two"]);
      }),
    );

    it.each(PLACES)("C10 onLocal and onRemote are two completions, in this order: %s", (place) =>
      alone(variant, { bytes: 2 * SLICE }, ({ context, into, from, put }) => {
        const log: string[] = [];
        if (place !== "at once") put(2 * SLICE, { onLocal: () => {} });
        put(KIB, { onRemote: () => log.push("remote"), onLocal: () => log.push("local") });
        until(context, () => log.length === 2);
        expect(log).toEqual(["local", "remote"]);
        expect(sameBytes(into.bytes.slice(0, KIB), from.bytes.slice(0, KIB))).toBe(true);
      }),
    );

    it.each(PLACES)("close() in a callback: the context is closed, and none is called after it: %s", (place) =>
      alone(variant, { bytes: 2 * SLICE, fifos: 1 }, ({ context, put }) => {
        const log: number[] = [];
        if (place !== "at once") put(2 * SLICE, { onLocal: () => log.push(-1) });
        for (let i = 0; i < 4; i++) {
          const onLocal = () => {
            log.push(i);
            if (i === 1) context.close();
          };
          expect(put(4, { onLocal })).toBe(SUCCESS);
        }
        const end = performance.now() + PATIENCE;
        const isLate = () => hasThread && performance.now() < end;
        for (let round = 0; (round < 10 || isLate()) && !context.closed; round++) context.advance();
        expect(context.closed).toBe(true);
        expect(log.filter((i) => i >= 0)).toEqual([0, 1]);
      }),
    );

    it("C5 what callbacks issue is called back in its order too, whichever way it goes", () =>
      alone(variant, { slots: 4, fifos: 1, bytes: 2 * SLICE }, ({ context, put }) => {
        const log: number[] = [];
        const issue = (i: number, bytes: number) => expect(put(bytes, { onLocal: () => log.push(i) })).toBe(SUCCESS);
        put(8, {
          onLocal: () => {
            for (let i = 0; i < 8; i++) issue(i, i === 3 ? SLICE + 1 : 8);
          },
        });
        until(context, () => log.length === 8);
        expect(log).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
      }));

    it("an rmw without a callback is done when it returns, whatever waits", () =>
      alone(variant, { slots: 4, fifos: 1, bytes: 4 * SLICE, pendingBytes: 256 }, ({ context, into, put }) => {
        put(4 * SLICE);
        while (put(8, { onLocal: () => {} }) === SUCCESS);
        const rmw = {
          to: context.endpoint,
          remote: into.handle,
          remoteOffset: 4 * SLICE - 8,
          operation: "set" as const,
        };
        expect(context.rmw({ ...rmw, value: 77 })).toBe(SUCCESS);
        expect(into.bytes[4 * SLICE - 8]).toBe(77);
      }));

    it("a task ends with 300,000 puts waiting for it: what is not begun comes to SHUTDOWN, in order, as does the fence", () =>
      withPeer(
        variant,
        4 * SLICE,
        async ({ job, client, context, from, handle }) => {
          const to = client.endpoint(1);
          const log: (readonly [number, number])[] = [];
          const called = (cookie: unknown, result: number) => void log.push([cookie as number, result]);
          const put = (bytes: number, cookie: number) =>
            context.put({ to, local: from, remote: handle, bytes, onLocal: called, cookie });
          expect(put(4 * SLICE, 0)).toBe(SUCCESS);
          const count = 300_000;
          let wrong = 0;
          for (let i = 1; i < count; i++) if (put(8, i) !== SUCCESS) wrong++;
          context.fence(to, called, count);
          context.sendImmediate(to, QUIT);
          while (job.dump().tasks[1]?.state === "up") await new Promise((resolve) => setTimeout(resolve, 1));
          until(context, () => log.length > count);
          log.forEach(([cookie], i) => {
            if (cookie !== i) wrong++;
          });
          expect(wrong).toBe(0);
          const dropped = log.findIndex(([, result]) => result === SHUTDOWN);
          // An engine thread may have come to none of them while the target was there.
          expect(dropped).toBeGreaterThanOrEqual(variant.engine === undefined ? 1 : 0);
          expect(log.slice(0, dropped).every(([, result]) => result === SUCCESS)).toBe(true);
          expect(log.slice(dropped).every(([, result]) => result === SHUTDOWN)).toBe(true);
          context.fence(to, called, -1);
          until(context, () => log.length > count + 1);
          expect(log.at(-1)).toEqual([-1, SUCCESS]);
          expect(context.advance()).toBe(0);
        },
        { pendingBytes: 2 ** 25 },
      ));

    it("flush() rejects where a task ended before a put to it was begun", () =>
      withPeer(
        variant,
        4 * SLICE,
        async ({ job, client, context, from, handle }) => {
          const to = client.endpoint(1);
          let wrong = 0;
          for (let i = 0; i < 100_000; i++) {
            const bytes = i === 0 ? 4 * SLICE : 8;
            if (context.put({ to, local: from, remote: handle, bytes, onRemote: () => {} }) !== SUCCESS) wrong++;
          }
          expect(wrong).toBe(0);
          context.sendImmediate(to, QUIT);
          while (job.dump().tasks[1]?.state === "up") await new Promise((resolve) => setTimeout(resolve, 1));
          expect((await rejectionOf(context.flush({ timeout: PATIENCE }))).code).toBe("PAMIR_SHUTDOWN");
          await context.flush({ timeout: PATIENCE });
        },
        { pendingBytes: 2 ** 24 },
      ));

    it("C7 those that are counted stay in order with those behind that are not", () =>
      alone(variant, { bytes: 2 * SLICE, slots: 8, fifos: 1 }, ({ context, put }) => {
        const log: number[] = [];
        let next = 0;
        for (let turn = 0; turn < 50; turn++) {
          for (const bytes of [8, 2 * SLICE, 8, 8]) {
            const number = next++;
            expect(put(bytes, { onLocal: () => log.push(number) })).toBe(SUCCESS);
            if (turn % 3 === 1) context.advance();
          }
        }
        until(context, () => log.length === next);
        expect(log).toEqual(Array.from({ length: next }, (_, i) => i));
      }));
  });

  describe("fences", () => {
    it("F2 F3 F4 tell that the puts before them are complete, and wait for none behind", () =>
      alone(variant, { bytes: 4 * SLICE, fifos: 1 }, ({ client, context, into, from, put }) => {
        const to = client.endpoint(0);
        const log: string[] = [];
        put(4 * SLICE);
        context.fence(to, () => {
          log.push("fence");
          expect(into.bytes[4 * SLICE - 1]).toBe(from.bytes[4 * SLICE - 1]);
        });
        put(4 * SLICE, { onLocal: () => log.push("behind") });
        expect(log).toEqual([]);
        until(context, () => log.length > 0);
        if (!hasThread) expect(log).toEqual(["fence"]);
        until(context, () => log.length === 2);
        expect(log).toEqual(["fence", "behind"]);
      }));

    it("F5 what goes to one endpoint lands in the order of the calls, long or short", () =>
      alone(variant, { bytes: 3 * SLICE, slots: 8 }, ({ context, put, from, into }) => {
        let done = 0;
        for (let i = 0; i < 20; i++) put(i % 3 === 0 ? 3 * SLICE : 8, { localOffset: 0, onLocal: () => done++ });
        from.bytes.fill(5, 8, 16);
        put(8, { localOffset: 8, onLocal: () => done++ });
        until(context, () => done === 21);
        expect(into.bytes.slice(0, 8).every((byte) => byte === 5)).toBe(true);
      }));

    it("F4a two are in flight at once, one on an empty queue completes, one to self is valid", () =>
      alone(variant, {}, ({ client, context }) => {
        const log: unknown[] = [];
        const to = client.endpoint(0);
        context.fence(to, (cookie) => log.push(cookie), 1);
        context.fence(to, (cookie) => log.push(cookie), 2);
        expect(log).toEqual([]);
        context.advance();
        expect(log).toEqual([1, 2]);
      }));

    it("F4a F6 fenceAll waits for every target, a fence for its own only", () =>
      alone(variant, { bytes: 4 * SLICE, fifos: 4 }, ({ client, context, put }) => {
        const log: string[] = [];
        put(4 * SLICE);
        context.fence(client.endpoint(1), () => log.push("other"));
        context.fenceAll((cookie) => log.push(String(cookie)), "all");
        context.advance();
        if (!hasThread) expect(log).toEqual(["other"]);
        until(context, () => log.length === 2);
        expect(log).toEqual(["other", "all"]);
      }));

    it("F6 after it, a get sees every byte that was put; flush() is the same for whoever can await", () =>
      alone(variant, { bytes: 2 * SLICE }, async ({ client, context, into, from, put }) => {
        put(2 * SLICE);
        await context.flush({ timeout: PATIENCE });
        expect(sameBytes(into.bytes, from.bytes)).toBe(true);
        from.bytes.fill(0);
        context.get({ to: client.endpoint(0), local: from, remote: into.handle });
        await context.flush();
        expect(sameBytes(into.bytes, from.bytes)).toBe(true);
      }));

    it("F6 flush() ends when its fence is called in somebody else's advance()", () =>
      alone(variant, { bytes: 4 * SLICE, fifos: 1 }, async ({ context, put }) => {
        for (let i = 0; i < 10; i++) put(4 * SLICE);
        const both = [context.flush({ timeout: PATIENCE }), context.flush({ timeout: PATIENCE })];
        await Promise.all(both);
        for (let i = 0; i < 10; i++) put(4 * SLICE);
        const flushed = context.flush({ timeout: PATIENCE });
        let isFenced = false;
        context.fenceAll(() => {
          isFenced = true;
        });
        until(context, () => isFenced);
        await flushed;
        put(4 * SLICE);
        expect((await rejectionOf(context.flush({ signal: AbortSignal.abort("enough") }))).code).toBe("PAMIR_CANCELED");
      }));

    it("flush() lets timers have their turn while there is always something to do", () =>
      alone(variant, { bytes: 4 * SLICE, fifos: 1 }, async ({ context, put }) => {
        let ticks = 0;
        const timer = setInterval(() => ticks++, 1);
        for (let i = 0; i < 2000; i++) put(4 * SLICE);
        await context.flush();
        clearInterval(timer);
        expect(ticks).toBeGreaterThan(2);
      }));

    it("F4 hand on that something before them was refused, once; flush() rejects", () =>
      alone(variant, { bytes: 4 * SLICE, fifos: 1 }, async ({ client, context, from, put }) => {
        const to = client.endpoint(0);
        /** Puts into a region that is closed at once; whether all of it went there, once that can be told. */
        const putInto = (behind: () => void) => {
          const gone = client.createRegion(4 * SLICE);
          gone.bytes.fill(0);
          // An engine thread is to be kept from it until the region is closed.
          for (let i = 0; hasThread && i < 50; i++) put(4 * SLICE);
          put(4 * SLICE, { remote: gone.handle });
          behind();
          gone.close();
          return () => sameBytes(gone.bytes, from.bytes);
        };
        // It may be there all the same, where this thread had no core for so long: then nothing is refused, and once more.
        const end = performance.now() + PATIENCE;
        const mayTry = (isWhole: boolean) => hasThread && isWhole && performance.now() < end;
        for (let isWhole = true; isWhole; ) {
          const log: number[] = [];
          const isThere = putInto(() => put(8));
          for (let i = 0; i < 2; i++) context.fence(to, (_, result) => log.push(result));
          until(context, () => log.length === 2);
          isWhole = mayTry(isThere());
          expect(log).toEqual([isWhole ? SUCCESS : 1, SUCCESS]);
        }
        for (let isWhole = true; isWhole; ) {
          const isThere = putInto(() => {});
          const code = await context.flush().then(
            () => "",
            (error: { code: string }) => error.code,
          );
          isWhole = mayTry(isThere());
          expect(code).toBe(isWhole ? "" : "PAMIR_STALE");
        }
        await context.flush();
      }));

    it("F6 fence regions do not nest", () =>
      alone(variant, {}, ({ context }) => {
        expect(thrownBy(() => context.fenceEnd()).code).toBe("PAMIR_FENCE");
        context.fenceBegin();
        expect(thrownBy(() => context.fenceBegin()).code).toBe("PAMIR_FENCE");
        context.fenceEnd();
        context.fenceBegin();
      }));
  });
});

/** What is looked at in the call that it is said to: no engine is a part of it. */
describe.each(VARIANTS)("$name", (variant) => {
  describe("rmw", () => {
    const model: Record<string, (old: bigint, value: bigint) => bigint> = {
      set: (_, value) => value,
      add: (old, value) => old + value,
      or: (old, value) => old | value,
      and: (old, value) => old & value,
      xor: (old, value) => old ^ value,
    };
    const operations = Object.keys(model).flatMap((name) =>
      ["", "fetch-", "compare-", "fetch-compare-"].map((prefix) => `${prefix}${name}`),
    );
    it.each(operations)(
      "%s does what it says, to each type, at once and with a callback, from regions too",
      (operation) =>
        alone(variant, {}, ({ client, context, from, into }) => {
          const operands = client.createRegion(64);
          const given = new DataView(operands.bytes.buffer, operands.bytes.byteOffset);
          /** An operand as it is, or as a word of a region. */
          const place = (inRegion: boolean, offset: number, bits: number, operand: bigint) => {
            if (!inRegion) return operand;
            if (bits === 64) given.setBigInt64(offset, BigInt.asIntN(64, operand), true);
            else given.setInt32(offset, Number(BigInt.asIntN(32, operand)), true);
            return { region: operands, offset };
          };
          const view = new DataView(into.bytes.buffer, into.bytes.byteOffset);
          const results = new DataView(from.bytes.buffer, from.bytes.byteOffset);
          const change = model[operation.split("-").at(-1) as string] as (old: bigint, value: bigint) => bigint;
          for (const type of ["i32", "u32", "i64", "u64"] as const) {
            const bits = type.endsWith("64") ? 64 : 32;
            const read = (where: DataView): bigint =>
              bits === 64 ? where.getBigInt64(8, true) : BigInt(where.getInt32(8, true));
            for (const [old, value, test] of [
              [5n, 3n, 5n],
              [5n, 3n, 4n],
              [-1n, 2n ** 31n - 7n, -1n],
              [2n ** 40n + 1n, -(2n ** 33n), 2n ** 40n + 1n],
            ].map((operands) =>
              operands.map((operand) =>
                type.startsWith("i") ? BigInt.asIntN(bits, operand) : BigInt.asUintN(bits, operand),
              ),
            ) as [bigint, bigint, bigint][]) {
              for (const [onDone, inRegion] of [
                [undefined, false],
                [() => {}, true],
              ] as const) {
                if (bits === 64) view.setBigInt64(8, BigInt.asIntN(64, old), true);
                else view.setInt32(8, Number(BigInt.asIntN(32, old)), true);
                const before = BigInt.asIntN(bits, old);
                context.rmw({
                  to: client.endpoint(0),
                  remote: into.handle,
                  remoteOffset: 8,
                  operation: operation as "add",
                  type,
                  value: place(inRegion, 16, bits, value),
                  test: place(inRegion, 40, bits, test),
                  ...(operation.includes("fetch") ? { result: from, resultOffset: 8 } : {}),
                  onDone,
                });
                if (onDone !== undefined) context.advance();
                const happens = !operation.includes("compare") || before === BigInt.asIntN(bits, test);
                expect(read(view)).toBe(happens ? BigInt.asIntN(bits, change(before, value)) : before);
                if (operation.includes("fetch")) expect(read(results)).toBe(before);
              }
            }
          }
        }),
    );
  });

  describe("bad input", () => {
    it.each([0, -1, 1.5, 2 ** 40, Number.NaN, "8", null, undefined])("a region of %s bytes", (bytes) =>
      withJob(variant, {}, ({ client }) => {
        const { code, text } = thrownBy(() => client.createRegion(bytes as number));
        expect(code).toBe("PAMIR_INVAL");
        expect(text).toMatch(/bytes of a region is .*, not an integer from 1 to \d+/);
      }),
    );

    it("is told so where somebody holds the lock of the heap all the time", () =>
      withJob(variant, { regions: 2 }, ({ client }) => {
        const lock = ((variant.memoryBase ?? MAP_BASE) + JOB_HEAP_LOCK_OFFSET) >>> 2;
        const words = new Int32Array(client.bytes.buffer);
        // As if this task held it: the lock of one that ends is freed.
        expect(Atomics.exchange(words, lock, client.task + 1)).toBe(0);
        for (let i = 0; i < 3; i++) {
          const { code, text } = thrownBy(() => client.createRegion(1));
          expect([code, text]).toEqual([
            "PAMIR_BUSY",
            expect.stringMatching(/locked at each of \d+ attempts: try again/),
          ]);
        }
        Atomics.store(words, lock, 0);
        // No attempt has used up one of its regions.
        for (const region of [client.createRegion(1), client.createRegion(1)]) region.close();
      }));

    it("more than there is, and more regions than there may be: what is free is named", () =>
      withJob(variant, { regions: 3 }, ({ client }) => {
        // One of which no other task can know is free at once.
        client.createRegion(5 * 1024 ** 2).close();
        const known = client.createRegion(5 * 1024 ** 2);
        expect(known.handle).toBeGreaterThan(0);
        known.close();
        const memory = thrownBy(() => client.createRegion(5 * 1024 ** 2));
        expect(memory.code).toBe("PAMIR_NO_MEMORY");
        expect(memory.text).toMatch(
          /no 5242880 bytes in one piece: \d+ are free, of which \d+ are kept for lanes; 5242880 of closed regions wait/,
        );
        for (let i = 0; i < 2; i++) client.createRegion(1);
        const entries = thrownBy(() => client.createRegion(1));
        expect(entries.code).toBe("PAMIR_NO_MEMORY");
        expect(entries.text).toMatch(/at most 3 regions; 1 closed ones wait/);
      }));

    it.each([
      [{ bytes: KIB + 1 }, "PAMIR_BOUNDS", /1025 bytes at offset 0 of a local region of 1024/],
      [{ localOffset: 1, bytes: KIB }, "PAMIR_BOUNDS", /1024 bytes at offset 1 of a local region/],
      [{ remoteOffset: 1, bytes: KIB }, "PAMIR_BOUNDS", /1024 bytes at offset 1 of the remote region/],
      [{ remoteOffset: 2 ** 32 - 1, bytes: 2 }, "PAMIR_BOUNDS", /2 bytes at offset 4294967295 of the remote region/],
      [{ localOffset: 2 ** 32 - 8, bytes: 16 }, "PAMIR_BOUNDS", /at offset 4294967288 of a local region of 1024/],
      [{ localOffset: 2 ** 32 }, "PAMIR_INVAL", /localOffset of a put is 4294967296/],
      [{ bytes: -1 }, "PAMIR_INVAL", /bytes of a put is -1, not an integer from 0/],
      [{ bytes: 0.5 }, "PAMIR_INVAL", /bytes of a put is 0.5/],
      [{ remote: 2 ** 20 * 77 }, "PAMIR_STALE", /handle 80740352 names no open region/],
      [{ remote: 1023 }, "PAMIR_STALE", /handle 1023/],
      [{ remote: 2 ** 19 }, "PAMIR_INVAL", /region of task 512, not of task 0/],
      [{ remote: "it" }, "PAMIR_INVAL", /remote is "it", not a region's handle/],
      [{ remote: -5 }, "PAMIR_INVAL", /remote is -5/],
      [{ to: 1 }, "PAMIR_INVAL", /a region of task 0, not of task 1/],
      [{ to: 99 }, "PAMIR_INVAL", /endpoint 99 is context 0 of task 99: the job has 2 tasks/],
      [{ local: { bytes: new Uint8Array(8) } }, "PAMIR_INVAL", /local is Object, not a MemRegion/],
      [{ local: undefined }, "PAMIR_INVAL", /local is undefined, not a MemRegion/],
      [{ local: null, bytes: 8 }, "PAMIR_INVAL", /local is null, not a MemRegion/],
      [{ remote: 2 ** 52 + 2 ** 20 }, "PAMIR_INVAL", /remote is 4503599628419072, not a region's handle/],
      [{ localOffset: 4n }, "PAMIR_INVAL", /localOffset of a put is 4/],
      [{ remoteOffset: "4" }, "PAMIR_INVAL", /remoteOffset of a put is "4"/],
      [{ bytes: 4n }, "PAMIR_INVAL", /bytes of a put is 4/],
      [{ to: 0n }, "PAMIR_INVAL", /endpoint is 0n, not a number/],
    ])("%o", (more, code, text) =>
      alone(variant, {}, ({ client, context, put }) => {
        for (const callback of [undefined, () => {}]) {
          // What another call has left staged must not be taken for what this one lacks.
          expect(put(8, { remote: client.createRegion(8).handle })).toBe(SUCCESS);
          const thrown = thrownBy(() => put(8, { ...(more as object), onLocal: callback }));
          expect(thrown.code).toBe(code);
          expect(thrown.text).toMatch(text);
        }
        expect(context.advance()).toBe(0);
      }),
    );

    it("a region of another job in the same thread", () =>
      alone(variant, {}, ({ put }) =>
        alone(variant, {}, ({ from, into, context }) => {
          const other = { code: "PAMIR_INVAL", text: "local is a region of another job" };
          expect(thrownBy(() => put(8, { local: from }))).toEqual(other);
          expect(put(8)).toBe(SUCCESS);
          const rmw = { to: context.endpoint, remote: into.handle, operation: "add" as const };
          expect(context.rmw({ ...rmw, value: { region: from } })).toBe(SUCCESS);
        }),
      ));

    it("callbacks that are none: said at once, and nothing is injected", () =>
      alone(variant, {}, ({ client, context, put }) => {
        for (const bad of [null, 5, "f", {}]) {
          expect(thrownBy(() => put(8, { onLocal: bad as never })).text).toMatch(
            /onLocal, or onDone, is .*, not a function/,
          );
          expect(thrownBy(() => put(8, { onRemote: bad as never })).text).toMatch(/onRemote is .*, not a function/);
          expect(thrownBy(() => context.fence(client.endpoint(0), bad as never)).text).toMatch(
            /done is .*, not a function/,
          );
        }
        expect(context.advance()).toBe(0);
      }));

    it("a region that is closed, here or there", () =>
      withPeer(variant, 64, ({ client, context, from, handle, ask }) => {
        const parameters = { to: client.endpoint(1), local: from, remote: handle };
        expect(context.put(parameters)).toBe(SUCCESS);
        const fresh = ask(2) as number;
        expect(thrownBy(() => context.put(parameters)).code).toBe("PAMIR_STALE");
        expect(context.put({ ...parameters, remote: fresh })).toBe(SUCCESS);
        from.close();
        expect(thrownBy(() => context.put({ ...parameters, remote: fresh, bytes: 1 })).code).toBe("PAMIR_CLOSED");
      }));

    it.each([
      [{ operation: "nand" }, /no operation "nand" on type "i32"/],
      [{ operation: "constructor" }, /no operation "constructor" on type "i32"/],
      [{ type: "toString" }, /no operation "add" on type "toString"/],
      [{ type: "f64" }, /no operation "add" on type "f64"/],
      [{ value: 0.5 }, /value of an rmw on i32 is 0.5/],
      [{ value: "1" }, /value of an rmw on i32 is "1"/],
      [{ value: 2 ** 31 }, /value of an rmw on i32 is 2147483648, not an integer from -2147483648 to 2147483647/],
      [{ value: -1, type: "u32" }, /value of an rmw on u32 is -1/],
      [{ value: -1, type: "u64" }, /value of an rmw on u64 is -1, not an integer from 0 to 18446744073709551615/],
      [{ test: 1.5 }, /test of an rmw on i32 is 1.5/],
      [{ operation: "compare-set" }, /rmw compare-set needs a test/],
      [{ remoteOffset: -4 }, /remoteOffset of a rmw is -4/],
      [{ remoteOffset: 2 }, /a word of 4 bytes at offset 2, result at 0: not multiples of 4/],
      [{ remoteOffset: 4, type: "u64" }, /a word of 8 bytes at offset 4, result at 0: not multiples of 8/],
      [{ operation: "fetch-add" }, /needs a result/],
    ])("rmw of %j", (more, text) =>
      alone(variant, {}, ({ client, context, into }) => {
        const rmw = {
          to: client.endpoint(0),
          remote: into.handle,
          operation: "add" as const,
          value: 1,
          ...(more as object),
        };
        const thrown = thrownBy(() => context.rmw(rmw));
        expect(thrown.code).toBe("PAMIR_INVAL");
        expect(thrown.text).toMatch(text);
      }),
    );

    it("after close(): each call says so; flush() rejects", () =>
      alone(variant, {}, async ({ client, context, put }) => {
        context.close();
        expect(thrownBy(() => put(8)).code).toBe("PAMIR_CLOSED");
        expect(thrownBy(() => context.fence(client.endpoint(0), () => {})).code).toBe("PAMIR_CLOSED");
        expect((await rejectionOf(context.flush())).code).toBe("PAMIR_CLOSED");
      }));

    it("an operand from a region that is none, closed, out of bounds or not aligned", () =>
      alone(variant, {}, ({ client, context, from, into }) => {
        const rmw = (value: object | null, type: "i32" | "u64" = "i32", name: "value" | "test" = "value") =>
          thrownBy(() =>
            context.rmw({
              to: client.endpoint(0),
              remote: into.handle,
              operation: "compare-set",
              type,
              value: 1,
              test: 1,
              [name]: value as never,
            }),
          );
        for (const name of ["value", "test"] as const) {
          expect(rmw(null, "i32", name).text).toMatch(`${name} of an rmw on i32 is null, not an integer`);
          expect(rmw({}, "i32", name).text).toMatch(`${name}.region of an rmw is undefined, not a MemRegion`);
          expect(rmw({ region: from, offset: 2 }, "i32", name).text).toBe(
            `${name}.offset of an rmw is 2, not a multiple of 4`,
          );
        }
        expect(rmw({ region: from, offset: 4 }, "u64").text).toBe("value.offset of an rmw is 4, not a multiple of 8");
        expect(rmw({ region: from, offset: -4 }).text).toMatch(/value.offset of a rmw is -4/);
        expect(rmw({ region: from, offset: KIB })).toEqual({
          code: "PAMIR_BOUNDS",
          text: `rmw: a value of 4 bytes at offset ${KIB} of a local region of ${KIB}`,
        });
        from.close();
        expect(rmw({ region: from }).code).toBe("PAMIR_CLOSED");
        expect(into.bytes.slice(0, 8).every((byte) => byte === 0)).toBe(true);
      }));
  });
});
