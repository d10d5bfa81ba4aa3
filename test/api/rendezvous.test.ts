// Payloads that stay where they are until their target says where they go. The names begin with the element of the
// mechanism that they prove.
import {
  CANCELED,
  type Callback,
  type Client,
  type Context,
  type ContextOptions,
  EAGAIN,
  type Endpoint,
  ERROR,
  type Job,
  RECV_IMMEDIATE_MAX,
  type Received,
  type Result,
  type SendParameters,
  SHUTDOWN,
  SUCCESS,
} from "pamir";
import { describe, expect, it, vi } from "vitest";
import { PAGE_SIZE } from "../../assembly/layout.js";
import {
  awaitFlag,
  countedSignal,
  DATA,
  ENGINE_VARIANTS,
  fillHeap,
  OTHER,
  openGate,
  PATIENCE,
  pattern,
  progress,
  QUIT,
  RESULT,
  sameBytes,
  thrownBy,
  until,
  type Variant,
  withJob,
} from "./support.js";
import { exchange } from "./tasks/exchange.js";

const module = "offers.js";
const pause = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));
const KIB = 1024;
const MIB = 1024 * KIB;

interface Pair {
  readonly job: Job;
  readonly client: Client;
  readonly origin: Context;
  readonly target: Context;
}

/** Two contexts of one thread, so that a test decides who makes a step, and when. */
function pair<T>(variant: Variant, options: ContextOptions, body: (pair: Pair) => T | Promise<T>): Promise<T> {
  return withJob(variant, { tasks: 1, contexts: 3, heapBytes: 16 * MIB }, ({ job, client, context }) =>
    body({ job, client, origin: context, target: client.createContext(options) }),
  );
}

/** A header that asks a task in `take` for something. */
function asked(order: { number: number; [what: string]: unknown }): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(order));
}

/** What tasks in `take` tell of what they received. */
function results(context: Context): unknown[] {
  const came: unknown[] = [];
  context.dispatch(RESULT, ({ payload }) => void came.push(JSON.parse(new TextDecoder().decode(payload.slice()))));
  return came;
}

/** What callbacks were told. */
function listener(): { readonly told: [unknown, Result][]; readonly hear: Callback } {
  const told: [unknown, Result][] = [];
  return { told, hear: (cookie, result) => void told.push([cookie, result]) };
}

/** Steps in which nothing happens before a nap: an engine thread may have but this core. */
const IDLE_STEPS = 1000;

/** Advances these in turn, one step each, until the condition holds. Returns how many steps that took. */
function step(contexts: readonly Context[], condition: () => boolean): number {
  const end = performance.now() + PATIENCE;
  for (let [steps, idle] = [0, 0]; ; steps++) {
    if (condition()) return steps;
    let events = 0;
    for (const context of contexts) if (!context.closed) events += context.advance();
    idle = events === 0 ? idle + 1 : 0;
    if (idle > IDLE_STEPS) nap();
    if (performance.now() > end) throw new Error(`after ${steps} steps not yet: ${condition}`);
  }
}

/** Waits until something is so that others do, while nobody here advances. */
function watch(condition: () => boolean): void {
  for (const end = performance.now() + PATIENCE; !condition(); nap()) {
    if (performance.now() > end) throw new Error(`not yet: ${condition}`);
  }
}

const NAP = new Int32Array(new SharedArrayBuffer(4));

function nap(): void {
  Atomics.wait(NAP, 0, 0, 1);
}

interface Way {
  readonly name: string;
  /** Whether payload and destination lie in regions. */
  readonly fromRegion: boolean;
  readonly intoRegion: boolean;
}
/** What moves a payload: the engines, or the thread that receives it, out of where it lies or out of a ring. */
const WAYS: readonly Way[] = [
  { name: "region to region", fromRegion: true, intoRegion: true },
  { name: "region to ordinary memory", fromRegion: true, intoRegion: false },
  { name: "ordinary memory to region", fromRegion: false, intoRegion: true },
  { name: "ordinary memory to ordinary memory", fromRegion: false, intoRegion: false },
];

/** A payload and a destination of the test's own, and what their regions are. */
function ends({ client }: Pick<Pair, "client">, { fromRegion, intoRegion }: Way, bytes: number) {
  const [from, into] = [fromRegion, intoRegion].map((inRegion) => (inRegion ? client.createRegion(bytes) : undefined));
  const payload = from?.bytes ?? new Uint8Array(bytes);
  const destination = into?.bytes ?? new Uint8Array(bytes);
  payload.set(pattern(bytes, 3));
  destination.fill(0);
  const close = () => {
    from?.close();
    into?.close();
  };
  return { from, into, payload, destination, close };
}

/**
 * Free bytes of the heap, once no context uses a region any more that the caller has closed: these are all its contexts.
 */
function freeOf({ job, client }: Pick<Pair, "job" | "client">, ...contexts: readonly Context[]): number {
  const { bytes } = job.dump().heap;
  step(contexts, () => thrownBy(() => client.createRegion(bytes)).text.includes("; 0 of closed regions wait"));
  return job.dump().heap.free;
}

describe.each(ENGINE_VARIANTS)("$name", (variant) => {
  /** Whether a thread is the engine: then what is to be moved is so whether or not anybody advances. */
  const hasThread = variant.engine === "thread";

  describe("what comes", () => {
    const SIZES = [1, 7, 64, 65, 1000, RECV_IMMEDIATE_MAX, RECV_IMMEDIATE_MAX + 1, 262_144, 262_145, 1_000_003, 5e6];
    const FRAGMENTS = [undefined, 64, 1000, 65_536];

    it.each(WAYS)("P1 P6 is what was sent, whatever the sizes and the pacing: $name", ({ fromRegion, intoRegion }) =>
      withJob(
        variant,
        { module, scenario: "take", heapBytes: 32 * MIB, args: { regionBytes: 6e6 } },
        ({ client, context }) => {
          const came = results(context);
          const local = listener();
          const most = 5e6 + 100;
          const pool = pattern(most);
          const memory = fromRegion ? client.createRegion(most).bytes : new Uint8Array(most);
          const expected: unknown[] = [];
          for (const bytes of SIZES) {
            for (const depth of [1, 2, 4]) {
              for (const fragment of bytes > 262_145 && depth > 1 ? [undefined] : FRAGMENTS) {
                const number = expected.length;
                // From an odd place, into another.
                const seed = (number * 5) % 61;
                const place = (number * 11) % 39;
                const payload = memory.subarray(place, place + bytes);
                payload.set(pool.subarray(seed, seed + bytes));
                const header = asked({ number, seed, inRegion: intoRegion, at: (number * 7) % 13, fragment, depth });
                const to = client.endpoint(1);
                const onLocal: Callback = (cookie, result) => {
                  local.hear(cookie, result);
                  payload.fill(0);
                };
                context.send({ to, dispatch: DATA, header, payload, rendezvous: true, onLocal, cookie: number });
                expected.push({ number, result: SUCCESS, isRight: true, immediate: false });
                until(context, () => local.told.length > number && came.length > number);
              }
            }
          }
          expect(came).toEqual(expected);
          expect(local.told).toEqual(expected.map((_, number) => [number, SUCCESS]));
          context.sendImmediate(client.endpoint(1), QUIT);
        },
      ),
    );

    it("P9 more than a target has to take at once wait in the pending queue, in order, also among small ones", () =>
      withJob(
        variant,
        { module, scenario: "take", tasks: 3, heapBytes: 32 * MIB, args: { regionBytes: 8 * MIB, gates: [0, 0] } },
        ({ job, client, context, flags }) => {
          const told: number[] = [];
          const order = new Map<number, number[]>();
          let wrong = 0;
          context.dispatch(RESULT, ({ payload, origin }) => {
            const { number, isRight, result } = JSON.parse(new TextDecoder().decode(payload.slice()));
            const numbers = order.get(origin) ?? [];
            numbers.push(number);
            order.set(origin, numbers);
            if (!isRight || result !== SUCCESS) wrong++;
          });
          const payload = client.createRegion(200_000).bytes;
          payload.set(pattern(payload.length));
          awaitFlag(flags, 12, 2);
          const targets = [client.endpoint(1), client.endpoint(2)];
          for (let number = 0; number < 30; number++) {
            for (const to of targets) {
              // Each third is small, and goes by itself.
              const part = number % 3 === 0 ? payload.slice(0, 100) : payload;
              const header = asked({ number, inRegion: number % 2 === 0, fragment: 20_000 });
              const onLocal = () => told.push(number);
              const rendezvous = part === payload;
              expect(context.send({ to, dispatch: DATA, header, payload: part, rendezvous, onLocal })).toBe(SUCCESS);
            }
          }
          for (let i = 0; i < 50; i++) context.advance();
          // Eight of each are offered, and the five small ones between them are out.
          const pending = () => job.dump().tasks[0]?.contexts[0]?.pending.messages;
          expect(pending()).toBe(2 * (30 - 13));
          openGate(flags, 0);
          until(context, () => told.length === 60 && [...order.values()].flat().length === 60);
          expect([wrong, pending(), context.drained]).toEqual([0, 0, true]);
          for (const to of targets) {
            expect((order.get(to) as number[]).toSorted((a, b) => a - b)).toEqual(
              Array.from({ length: 30 }, (_, i) => i),
            );
            context.sendImmediate(to, QUIT);
          }
        },
      ));

    it("P5 four tasks offer to each other and to themselves, through the smallest lanes: nobody hangs", () =>
      withJob(
        variant,
        {
          module,
          scenario: "exchange",
          tasks: 4,
          laneBytes: 64,
          slots: 4,
          heapBytes: 48 * MIB,
          args: { seed: 11, count: 60, most: 300_000 },
        },
        ({ client, context }) => {
          const all: unknown[] = [];
          context.dispatch(RESULT, (message) => void all.push(JSON.parse(new TextDecoder().decode(message.payload))));
          const { seen, isOver } = exchange(client, context, { seed: 11, count: 60, most: 300_000 });
          until(context, () => isOver() && all.length === 3);
          const sums = [seen, ...(all as (typeof seen)[])].reduce((sum, each) => ({
            sent: sum.sent + each.sent,
            local: sum.local + each.local,
            remote: sum.remote + each.remote,
            came: sum.came + each.came,
            received: sum.received + each.received,
            wrong: sum.wrong + each.wrong,
          }));
          expect(sums).toEqual({ sent: 240, local: 240, remote: 240, came: 240, received: 240, wrong: 0 });
        },
      ));

    it.each(WAYS)("P1 has its header, of any size; to itself too: $name", (way) =>
      pair(variant, {}, (given) => {
        const { origin, target } = given;
        const seen: unknown[] = [];
        for (const bytes of [1, 200_000]) {
          const { payload, destination, close } = ends(given, way, bytes);
          for (const [index, to] of [origin, target].entries()) {
            const dispatch = 100 + 2 * seen.length + index;
            const headers = [0, 1, 7, 8, 4096, 65_535].map((length) => pattern(length, length));
            const came: boolean[] = [];
            to.dispatch(dispatch, (message) => {
              const header = message.header.slice();
              const isRight = message.origin === origin.endpoint && !message.immediate && message.payload.length === 0;
              message.receive(destination, () => {
                const expected = headers[came.length] as Uint8Array;
                came.push(isRight && sameBytes(header, expected) && sameBytes(destination, payload));
                destination.fill(0);
              });
            });
            for (const header of headers) {
              const before = came.length;
              origin.send({ to: to.endpoint, dispatch, header, payload, rendezvous: true, onLocal: () => {} });
              step([origin, target], () => came.length > before && origin.drained);
            }
            expect(came).toEqual(headers.map(() => true));
          }
          seen.push(bytes);
          close();
        }
      }),
    );

    it("P1 comes without a handler: the announcement alone is kept, and the payload stays with its origin", () =>
      pair(variant, { unexpectedBytes: 1000 }, ({ job, client, origin, target }) => {
        const kept = () => job.dump().tasks[0]?.contexts[1]?.unexpectedBytes;
        const region = client.createRegion(4 * MIB);
        region.bytes.set(pattern(4 * MIB));
        const { told, hear } = listener();
        const header = new Uint8Array(99);
        for (let i = 0; i < 4; i++) {
          const payload = region.bytes.subarray(i * MIB, (i + 1) * MIB);
          const parameters = { to: target.endpoint, dispatch: DATA, header, payload, rendezvous: true };
          origin.send({ ...parameters, onLocal: hear, cookie: i });
        }
        for (let i = 0; i < 50; i++) for (const context of [origin, target]) context.advance();
        expect([kept(), told, origin.drained]).toEqual([4 * 104, [], false]);
        const came: Uint8Array[] = [];
        target.dispatch(DATA, (message) => {
          expect([message.headerBytes, message.payloadBytes, message.immediate]).toEqual([99, MIB, false]);
          const bytes = new Uint8Array(MIB);
          message.receive(bytes, () => came.push(bytes));
        });
        step([origin, target], () => came.length === 4 && told.length === 4);
        expect(kept()).toBe(0);
        expect(told.map(([cookie, result]) => [cookie, result])).toEqual([0, 1, 2, 3].map((i) => [i, SUCCESS]));
        expect(sameBytes(Buffer.concat(came), region.bytes)).toBe(true);
      }));

    it("P1 comes whole out of messages(), which asks for one at a time", () =>
      pair(variant, { unexpectedBytes: 1000 }, async ({ client, origin, target }) => {
        const region = client.createRegion(MIB);
        region.bytes.set(pattern(MIB));
        const { told, hear } = listener();
        for (let i = 0; i < 3; i++) {
          const parameters = {
            to: target.endpoint,
            dispatch: DATA,
            header: Uint8Array.of(i),
            onLocal: hear,
            cookie: i,
          };
          origin.send({ ...parameters, payload: i === 1 ? Uint8Array.of(7) : region.bytes.subarray(i) });
        }
        const work = setInterval(() => origin.advance(), 1);
        const came: unknown[] = [];
        for await (const { header, payload, reply, origin: from } of target.messages(DATA, { timeout: PATIENCE })) {
          const [number] = header as Uint8Array & [number];
          const expected = number === 1 ? Uint8Array.of(7) : region.bytes.subarray(number);
          came.push([number, sameBytes(payload, expected), reply, from]);
          if (came.length === 3) break;
        }
        clearInterval(work);
        expect(came).toEqual([0, 1, 2].map((i) => [i, true, undefined, origin.endpoint]));
        step([origin, target], () => told.length === 3);
        expect(told.map(([, result]) => result)).toEqual([SUCCESS, SUCCESS, SUCCESS]);
      }));

    it("P10 a message of a stream whose origin closes is not given, and those behind it are", () =>
      pair(variant, {}, async ({ client, origin, target }) => {
        const third = client.createContext();
        const payload = client.createRegion(MIB).bytes;
        origin.send({ to: target.endpoint, dispatch: DATA, payload, rendezvous: true, onLocal: () => {} });
        target.advance();
        third.sendImmediate(target.endpoint, DATA, null, Uint8Array.of(9));
        origin.close();
        const stream = target.messages(DATA, { timeout: PATIENCE });
        const value = (await stream.next()).value as Received<Uint8Array>;
        expect([value.origin, [...value.payload]]).toEqual([third.endpoint, [9]]);
        await stream.return(undefined as never);
      }));

    it("hints: whoever takes whole messages only gets none, and its origin ERROR", () =>
      pair(variant, {}, ({ client, origin, target }) => {
        const payload = client.createRegion(MIB).bytes;
        const { told, hear } = listener();
        const handled: number[] = [];
        target.dispatch(DATA, () => handled.push(DATA), { recvImmediate: "enable" });
        target.dispatch(OTHER, (message) => message.receive(new Uint8Array(MIB), () => handled.push(OTHER)), {
          recvImmediate: "disable",
        });
        const parameters = { to: target.endpoint, payload, rendezvous: true, onLocal: hear };
        origin.send({ ...parameters, dispatch: DATA, cookie: DATA });
        expect(thrownBy(() => target.advance()).code).toBe("PAMIR_TOO_LARGE");
        origin.send({ ...parameters, dispatch: OTHER, cookie: OTHER });
        step([origin, target], () => told.length === 2 && handled.length === 1);
        expect([told, handled]).toEqual([
          [
            [DATA, ERROR],
            [OTHER, SUCCESS],
          ],
          [OTHER],
        ]);
        // Where both sides set the same, it is refused at once.
        origin.dispatch(DATA, () => {}, { recvImmediate: "enable" });
        const refused = thrownBy(() => origin.send({ to: target.endpoint, dispatch: DATA, payload, onLocal: hear }));
        expect(refused.code).toBe("PAMIR_TOO_LARGE");
      }));
  });

  describe("what is offered", () => {
    it("P1 stays where it is until it is taken: what is sent so, and nothing else", () =>
      pair(variant, {}, ({ client, origin, target }) => {
        const region = client.createRegion(200_000).bytes;
        const header = new Uint8Array(9); // 16 with its padding
        const most = RECV_IMMEDIATE_MAX - 16;
        const ordinary = new Uint8Array(200_000);
        const cases: [boolean, Partial<SendParameters>][] = [
          [false, { payload: region }],
          [true, { payload: region, rendezvous: true }],
          [false, { payload: region.subarray(0, most + 1) }],
          [false, { payload: region.subarray(0, most) }],
          [true, { payload: region.subarray(0, most), rendezvous: true }],
          [false, { payload: region, rendezvous: false }],
          [false, { payload: region, onLocal: undefined }],
          [false, { payload: ordinary }],
          [true, { payload: ordinary, rendezvous: true }],
          [true, { payload: ordinary.subarray(0, 1), rendezvous: true }],
          [false, { payload: ordinary.subarray(0, 0), rendezvous: true }],
        ];
        let received = 0;
        target.dispatch(DATA, (message) => {
          if (message.immediate) received++;
          else message.receive(new Uint8Array(message.payloadBytes), () => received++);
        });
        // The first message makes its lane large.
        origin.send({ to: target.endpoint, dispatch: DATA, payload: ordinary, onLocal: () => {} });
        step([origin, target], () => received === 1 && origin.drained);
        for (const [number, [isOffered, parameters]] of cases.entries()) {
          let isDone = false;
          const onLocal = () => {
            isDone = true;
          };
          origin.send({ to: target.endpoint, dispatch: DATA, header, onLocal, ...parameters });
          // Until its target has advanced: what goes in packets finds room for all.
          for (let i = 0; i < 5; i++) origin.advance();
          expect([number, !origin.drained]).toEqual([number, isOffered]);
          if (isOffered) expect(isDone).toBe(false);
          step([origin, target], () => received === number + 2 && origin.drained);
          expect(isDone).toBe(!("onLocal" in parameters));
        }
      }));

    it.each(WAYS)("P7 P8 tells each callback once, with its cookie, when it is due: $name", (way) =>
      pair(variant, {}, (given) => {
        const { origin, target } = given;
        const { payload, destination } = ends(given, way, 700_000);
        const expected = payload.slice();
        const log: unknown[] = [];
        target.dispatch(DATA, (message) => {
          log.push("asked");
          message.receive(
            destination,
            (cookie, result) => log.push([cookie, result, sameBytes(destination, expected)]),
            "there",
          );
        });
        const parameters = { to: target.endpoint, dispatch: DATA, payload, rendezvous: true, cookie: "here" };
        origin.send({
          ...parameters,
          onLocal: (cookie, result) => {
            payload.fill(1);
            log.push(["onLocal", cookie, result]);
          },
          onRemote: (cookie, result) => log.push(["onRemote", cookie, result]),
        });
        for (let i = 0; i < 50; i++) origin.advance();
        expect(log).toEqual([]);
        step([origin, target], () => log.length === 4);
        for (let i = 0; i < 50; i++) for (const context of [origin, target]) context.advance();
        expect(log[0]).toBe("asked");
        expect(log.slice(1).toSorted()).toEqual(
          [
            ["onLocal", "here", SUCCESS],
            ["onRemote", "here", SUCCESS],
            ["there", SUCCESS, true],
          ].toSorted(),
        );
      }),
    );

    it.each(WAYS)("P8 is waited for by drained, drain() and close({ drain: true }): $name", (way) =>
      pair(variant, {}, async (given) => {
        const { client, origin, target } = given;
        const { payload, destination } = ends(given, way, 700_000);
        const expected = payload.slice();
        let received = 0;
        target.dispatch(DATA, (message) =>
          message.receive(destination, () => {
            if (sameBytes(destination, expected)) received++;
          }),
        );
        const parameters = { to: target.endpoint, dispatch: DATA, payload, rendezvous: true };
        origin.send({ ...parameters, onLocal: () => {} });
        for (let i = 0; i < 10; i++) origin.advance();
        expect(origin.drained).toBe(false);
        step([origin, target], () => origin.drained);
        step([origin, target], () => received === 1);

        let isDrained = false;
        origin.send({ ...parameters, onLocal: () => {} });
        const drained = origin.drain({ timeout: PATIENCE }).then(() => {
          isDrained = true;
        });
        await pause(20);
        expect(isDrained).toBe(false);
        const work = setInterval(() => target.advance(), 1);
        await drained;
        clearInterval(work);
        step([target], () => received === 2);

        destination.fill(0);
        origin.send({ ...parameters, onLocal: () => {} });
        const more = setInterval(() => !target.closed && target.advance(), 1);
        await client.close({ drain: true, timeout: PATIENCE });
        clearInterval(more);
        expect([client.closed, sameBytes(destination, expected)]).toEqual([true, true]);
      }),
    );

    it("P9 is refused with EAGAIN where it may not wait, and its callbacks are not called", () =>
      pair(variant, {}, ({ client, origin, target }) => {
        const { told, hear } = listener();
        const payload = client.createRegion(1000).bytes;
        const parameters = {
          to: target.endpoint,
          dispatch: DATA,
          payload,
          rendezvous: true,
          onLocal: hear,
          queue: false,
        };
        const accepted = Array.from({ length: 12 }, (_, cookie) => origin.send({ ...parameters, cookie }));
        expect(accepted).toEqual(accepted.map((_, i) => (i < 8 ? SUCCESS : EAGAIN)));
        target.dispatch(DATA, (message) => message.discard());
        step([origin, target], () => told.length === 8);
        expect(origin.send({ ...parameters, cookie: 8 })).toBe(SUCCESS);
        step([origin, target], () => told.length === 9);
        expect(told).toEqual(told.map((_, i) => [i, SUCCESS]));
      }));

    it("P9 who was refused is told of room once one more may be offered, not before; smaller ones are, at once", () =>
      pair(variant, {}, async ({ client, origin, target }) => {
        const { told, hear } = listener();
        const payload = client.createRegion(1000).bytes;
        const to = target.endpoint;
        const offer = (): Result =>
          origin.send({ to, dispatch: DATA, payload, rendezvous: true, onLocal: hear, queue: false });
        for (let i = 0; i < 8; i++) expect(offer()).toBe(SUCCESS);
        expect(offer()).toBe(EAGAIN);
        const rooms: string[] = [];
        origin.whenRoom(to, 64, () => rooms.push("offer"));
        origin.whenRoom(to, 64, () => rooms.push("message"));
        for (let i = 0; i < 20; i++) origin.advance();
        expect(rooms).toEqual(["message"]);
        // Asleep meanwhile: there is nothing to do until the target has taken one.
        const advance = vi.spyOn(origin, "advance");
        expect(origin.advanceUntil(() => rooms.length > 1, { timeout: 100 })).not.toBe(SUCCESS);
        expect(advance.mock.calls.length).toBeLessThan(1000);
        advance.mockRestore();
        expect(origin.sendImmediate(to, OTHER)).toBe(SUCCESS);
        target.dispatch(DATA, (message) => message.discard());
        target.dispatch(OTHER, () => {});
        step([origin, target], () => rooms.length === 2);
        expect([told.length > 0, offer()]).toEqual([true, SUCCESS]);
        // A loop of those who try again and wait gets all away, and waits no more often than that.
        let [sent, waits] = [0, 0];
        const work = setInterval(() => target.advance(), 1);
        for (const end = performance.now() + PATIENCE; sent < 50 && performance.now() < end; ) {
          if (offer() === SUCCESS) sent++;
          else {
            waits++;
            await origin.whenRoom(to, 64, { timeout: PATIENCE });
          }
        }
        clearInterval(work);
        expect(sent).toBe(50);
        expect(waits).toBeLessThanOrEqual(50);
        step([origin, target], () => told.length === 59);
      }));

    it("P9 a target that ends tells who waits to offer something", () =>
      pair(variant, {}, ({ client, origin, target }) => {
        const payload = client.createRegion(1000).bytes;
        const parameters = { to: target.endpoint, dispatch: DATA, payload, rendezvous: true, queue: false };
        while (origin.send({ ...parameters, onLocal: () => {} }) === SUCCESS);
        const { told, hear } = listener();
        origin.whenRoom(target.endpoint, 64, hear, 7);
        target.close();
        step([origin], () => told.length > 0);
        expect(told).toEqual([[7, SHUTDOWN]]);
      }));

    it.each([
      [1, 1],
      [5000, 2],
      [65_536, 16],
      [100_000, 25],
      [262_144, 64],
      [262_145, 64],
      [MIB, 64],
    ])("P9 what is staged takes a ring of four fragments, and no more than it is: %i bytes, %i pages", (bytes, pages) =>
      pair(variant, {}, ({ job, client, origin, target }) => {
        const region = client.createRegion(1);
        // The block of rget FIFOs, and the lane, are there.
        const { told, hear } = listener();
        target.dispatch(DATA, (message) => message.receive(new Uint8Array(message.payloadBytes)));
        const send = (payload: Uint8Array): void => {
          const count = told.length;
          origin.send({ to: target.endpoint, dispatch: DATA, payload, rendezvous: true, onLocal: hear });
          step([origin, target], () => told.length > count);
        };
        send(region.bytes);
        const { free } = job.dump().heap;
        const left: number[] = [];
        for (let i = 0; i < 3; i++) {
          send(pattern(bytes, i));
          left.push(job.dump().heap.free);
        }
        expect(left).toEqual(left.map(() => free - pages * PAGE_SIZE));
        expect(told.every(([, result]) => result === SUCCESS)).toBe(true);
      }),
    );

    it("P9 what is staged takes the smallest ring that holds it, of those that there are", () =>
      pair(variant, {}, ({ job, origin, target }) => {
        const { told, hear } = listener();
        const came: Uint8Array[] = [];
        target.dispatch(DATA, (message) => {
          const bytes = new Uint8Array(message.payloadBytes);
          message.receive(bytes, () => came.push(bytes));
        });
        const sizes = [10_000, 5000, 300_000, 5000, 70_000, 9000];
        const sendAll = (): void => {
          const payloads = sizes.map((bytes, i) => pattern(bytes, i));
          for (const payload of payloads)
            origin.send({ to: target.endpoint, dispatch: DATA, payload, rendezvous: true, onLocal: hear });
          step([origin, target], () => came.length === sizes.length && told.length === sizes.length);
          for (const bytes of came.splice(0)) {
            const sent = payloads.find(
              ({ length }, i) => length === bytes.length && sameBytes(bytes, payloads[i] as Uint8Array),
            );
            expect(sent?.length).toBe(bytes.length);
          }
          told.splice(0);
        };
        sendAll();
        const { free } = job.dump().heap;
        for (let round = 0; round < 20; round++) {
          sendAll();
          expect(job.dump().heap.free).toBe(free);
        }
      }));
  });

  describe("pace", () => {
    /** Counts fragments that are in the destination. */
    const fragmentsIn = (destination: Uint8Array, payload: Uint8Array, fragment: number) => {
      let count = 0;
      for (let at = 0; at < payload.length; at += fragment) {
        if (sameBytes(destination.subarray(at, at + fragment), payload.subarray(at, at + fragment))) count++;
      }
      return count;
    };

    it.each([1, 2, 3, 4])(
      "P2 P3 P4 P5 P9 P11 whose thread paces it, where %i fragments are asked for at a time",
      (depth) =>
        pair(variant, {}, (given) => {
          const { origin, target } = given;
          const { payload, destination } = ends(given, WAYS[0] as Way, 20_000);
          const { told, hear } = listener();
          const moved = () => fragmentsIn(destination, payload, 1000);
          target.dispatch(DATA, (message) => message.receive(destination, hear, undefined, { fragment: 1000, depth }));
          origin.send({ to: target.endpoint, dispatch: DATA, payload, rendezvous: true, onLocal: () => {} });
          target.advance();
          // An engine thread asks, and moves, for both of them.
          if (hasThread) watch(() => moved() === 20);
          // Else no more move while the target stands still, and all that it has asked for in one step of its origin.
          for (let asked = depth; !hasThread && asked < 20; asked += depth) {
            target.advance();
            expect(moved()).toBe(asked - depth);
            for (let i = 0; i < 10; i++) {
              origin.advance();
              expect(moved()).toBe(asked);
            }
          }
          expect(told).toEqual([]);
          step([origin, target], () => told.length === 1);
          expect(moved()).toBe(20);
        }),
    );

    it.skipIf(hasThread)(
      "P9 one step of an origin moves a slice of what was asked for, also of several transfers",
      () =>
        pair(variant, { fragment: 100_000, depth: 4 }, (given) => {
          const { origin, target } = given;
          const both = [0, 1].map(() => ends(given, WAYS[0] as Way, 800_000));
          const moved = () => both.map(({ payload, destination }) => fragmentsIn(destination, payload, 100_000));
          const { told, hear } = listener();
          let asked = 0;
          target.dispatch(DATA, (message) => message.receive(both[asked++]?.destination as Uint8Array, hear));
          for (const { payload } of both) {
            origin.send({ to: target.endpoint, dispatch: DATA, payload, rendezvous: true, onLocal: () => {} });
          }
          for (let i = 0; i < 2; i++) target.advance();
          const steps = Array.from({ length: 6 }, () => {
            origin.advance();
            return moved();
          });
          // Two fragments of 100,000 fit in a slice of 262,144; who has moved some is last the next time.
          expect(steps.map(([a = 0, b = 0]) => a + b)).toEqual([2, 4, 6, 8, 8, 8]);
          expect(steps[3]).toEqual([4, 4]);
          step([origin, target], () => told.length === 2);
          expect(moved()).toEqual([8, 8]);
        }),
    );

    it.skipIf(hasThread)("P9 the context's fragment and depth hold where receive() says nothing", () =>
      pair(variant, { fragment: 2000, depth: 1 }, (given) => {
        const { origin, target } = given;
        const { payload, destination } = ends(given, WAYS[0] as Way, 20_000);
        const counts = [
          [{}, 2000],
          [{ depth: 3 }, 6000],
          [{ fragment: 64 }, 64],
          [{ fragment: 100, depth: 2 }, 200],
        ] as const;
        const { told, hear } = listener();
        target.dispatch(DATA, (message) => message.receive(destination, hear, undefined, counts[told.length]?.[0]));
        for (const [number, [, bytes]] of counts.entries()) {
          origin.send({ to: target.endpoint, dispatch: DATA, payload, rendezvous: true, onLocal: () => {} });
          for (let i = 0; i < 2; i++) target.advance();
          for (let i = 0; i < 10; i++) origin.advance();
          expect(sameBytes(destination.subarray(0, bytes), payload.subarray(0, bytes))).toBe(true);
          expect(destination.subarray(bytes).every((byte) => byte === 0)).toBe(true);
          step([origin, target], () => told.length > number && origin.drained);
          expect(sameBytes(destination, payload)).toBe(true);
          destination.fill(0);
        }
      }),
    );

    it("P9 a fragment or a depth that can't be is refused", () =>
      pair(variant, {}, ({ client }) => {
        for (const options of [{ fragment: 63 }, { depth: 5 }]) {
          expect(thrownBy(() => client.createContext(options)).code).toBe("PAMIR_INVAL");
        }
        // What was refused took no place.
        expect(client.createContext().index).toBe(2);
      }));

    it("P11 events do not count fragments", () =>
      pair(variant, {}, (given) => {
        const { origin, target } = given;
        const { payload, destination } = ends(given, WAYS[0] as Way, 512_000);
        const { told, hear } = listener();
        let fragment = 0;
        target.dispatch(DATA, (message) => message.receive(destination, hear, undefined, { fragment }));
        const runs = [256_000, 512].map((bytes) => {
          fragment = bytes;
          const before = told.length;
          origin.send({ to: target.endpoint, dispatch: DATA, payload, rendezvous: true, onLocal: () => {} });
          let events = 0;
          const steps = step([], () => {
            events += origin.advance() + target.advance();
            return told.length > before && origin.drained;
          });
          return { events, steps };
        });
        expect(runs[1]?.events).toBe(runs[0]?.events);
        if (hasThread) return;
        // Two fragments are asked for at a time.
        expect(runs[1]?.steps).toBeGreaterThanOrEqual(1000 / 2);
        expect(runs[0]?.steps).toBeLessThan(20);
      }));

    it("P9 a target that does not advance holds its origin up, with memory that does not grow, and nobody else", () =>
      withJob(
        variant,
        { module, scenario: "take", tasks: 3, heapBytes: 32 * MIB, args: { regionBytes: MIB, gates: [0, undefined] } },
        ({ job, client, context, flags }) => {
          const came = results(context);
          const { told, hear } = listener();
          const payload = pattern(300_000);
          const [slow, quick] = [client.endpoint(1), client.endpoint(2)];
          const offer = (to: Endpoint, number: number) =>
            context.send({ to, dispatch: DATA, header: asked({ number }), payload, rendezvous: true, onLocal: hear });
          let number = 0;
          awaitFlag(flags, 12, 2);
          // Both have their lanes, and what is there for transfers.
          for (let i = 0; i < 12; i++) offer(slow, number++);
          for (let i = 0; i < 4; i++) offer(quick, number++);
          until(context, () => told.length === 4 && came.length === 4);
          const free = job.dump().heap.free;
          for (let round = 0; round < 10; round++) {
            for (let i = 0; i < 10; i++) offer(slow, number++);
            offer(quick, number++);
            until(context, () => told.length === 5 + round && came.length === 5 + round);
            expect(job.dump().heap.free).toBe(free);
          }
          openGate(flags, 0);
          until(context, () => told.length === number && came.length === number);
          expect(came.every((each) => (each as { isRight: boolean }).isRight)).toBe(true);
          for (const to of [slow, quick]) context.sendImmediate(to, QUIT);
        },
      ));
  });

  describe("ends that are close to each other", () => {
    it("P7 P10 all is there, then its origin closes: the target gets SUCCESS, and nothing of the next one is taken for done", () =>
      pair(variant, {}, ({ client, origin, target }) => {
        const third = client.createContext();
        const [from, into] = [client.createRegion(MIB), client.createRegion(MIB)];
        from.bytes.set(pattern(MIB));
        into.bytes.fill(0);
        const received = listener();
        target.dispatch(DATA, (message) => {
          message.receive(into.bytes.subarray(0, message.payloadBytes), received.hear, "first");
        });
        const payload = from.bytes.subarray(0, 100_000);
        const sent = listener();
        origin.sendImmediate(target.endpoint, OTHER);
        origin.send({ to: target.endpoint, dispatch: DATA, payload, rendezvous: true, onLocal: sent.hear });
        // The request is taken, the one link is shipped.
        for (let i = 0; i < 2; i++) target.advance();
        // Called between the target's look at what is over and its look at who has ended.
        target.dispatch(OTHER, () => {
          step([origin], () => sent.told.length === 1);
          origin.close();
        });
        target.advance();
        step([target], () => received.told.length === 1);
        expect(received.told).toEqual([["first", SUCCESS]]);
        expect(sameBytes(into.bytes.subarray(0, 100_000), payload)).toBe(true);

        const seen: boolean[] = [];
        into.bytes.fill(0);
        third.dispatch(DATA, () => {});
        target.dispatch(20, (message) =>
          message.receive(into.bytes, () => seen.push(sameBytes(into.bytes, from.bytes))),
        );
        third.send({ to: target.endpoint, dispatch: 20, payload: from.bytes, onLocal: () => {} });
        step([target, third], () => seen.length === 1);
        expect(seen).toEqual([true]);
      }));

    it("P10 its target closes, with the last link shipped: SHUTDOWN, once", () =>
      pair(variant, {}, ({ client, origin, target }) => {
        const [from, into] = [client.createRegion(MIB), client.createRegion(MIB)];
        const local = listener();
        target.dispatch(DATA, (message) => message.receive(into.bytes));
        // An engine thread can't be through with what its origin has not staged.
        const payload = hasThread ? new Uint8Array(MIB) : from.bytes.subarray(0, 100_000);
        const parameters = { to: target.endpoint, dispatch: DATA, payload, rendezvous: true };
        origin.send({ ...parameters, onLocal: local.hear, cookie: 5 });
        for (let i = 0; i < 2; i++) target.advance();
        target.close();
        step([origin], () => local.told.length > 0);
        for (let i = 0; i < 20; i++) origin.advance();
        expect(local.told).toEqual([[5, SHUTDOWN]]);
      }));

    it("P10 an offer that nobody took while its origin lived is nobody's memory any more", () =>
      withJob(variant, { module, scenario: "offer", args: { bytes: 8 } }, async ({ job, client, context, flags }) => {
        awaitFlag(flags, 10, 1);
        until(context, () => (job.dump().tasks[0]?.contexts[0]?.unexpectedBytes ?? 0) > 0);
        await job.terminate(1);
        await context.whenEnded(client.endpoint(1), { timeout: PATIENCE });
        // What was the dead one's is ours now, with what it had written there.
        const regions = fillHeap(client);
        const before = regions.map(({ bytes }) => bytes.slice());
        let isAsked = false;
        context.dispatch(DATA, (message) => {
          isAsked = true;
          message.discard();
        });
        until(context, () => isAsked);
        for (const [i, { bytes }] of regions.entries()) expect(sameBytes(bytes, before[i] as Uint8Array)).toBe(true);
      }));
  });

  it("P10 a peer that ends, again and again, leaves no rget FIFO and no memory behind", () =>
    withJob(variant, { tasks: 1, contexts: 40, heapBytes: 16 * MIB }, ({ job, client, context }) => {
      const region = client.createRegion(MIB);
      const { told, hear } = listener();
      context.dispatch(DATA, (message) => message.receive(new Uint8Array(message.payloadBytes), hear));
      const all: number[] = [];
      for (let round = 0; round < 30; round++) {
        const peer = client.createContext();
        peer.dispatch(DATA, (message) => message.receive(region.bytes, () => {}));
        const offer = (from: Context, to: Context, payload: Uint8Array): void => {
          const parameters = { to: to.endpoint, dispatch: DATA, payload, rendezvous: true };
          for (let i = 0; i < 8; i++) expect(from.send({ ...parameters, onLocal: hear })).toBe(SUCCESS);
        };
        offer(context, peer, new Uint8Array(MIB));
        offer(peer, context, region.bytes);
        for (let i = 0; i < 2 + (round % 3); i++) for (const each of [peer, context]) each.advance();
        peer.close();
        step([context], () => context.drained);
        all.push(freeOf({ job, client }, context));
      }
      expect(told.length).toBeGreaterThanOrEqual(30 * 8);
      expect(all.slice(3)).toEqual(all.slice(3).map(() => all[2]));
    }));

  describe("refused", () => {
    it.each([
      ["it is discarded", "discard", SUCCESS, ""],
      ["the handler throws", "throw", ERROR, "thrown in the handler"],
      ["the destination is too small", "short", ERROR, "PAMIR_TOO_LARGE"],
      ["the handler says nothing", "nothing", ERROR, "PAMIR_NO_DESTINATION"],
      ["the handler throws behind its receive()", "late", ERROR, "thrown behind"],
    ] as const)("P10 where %s, its origin is told, and nothing is moved", (_, answer, expected, why) =>
      pair(variant, {}, (given) => {
        const { origin, target } = given;
        for (const way of WAYS) {
          const { payload, destination, close } = ends(given, way, 100_000);
          const dispatch = 30 + WAYS.indexOf(way);
          let received = 0;
          target.dispatch(dispatch, (message) => {
            if (answer === "discard") message.discard();
            else if (answer === "throw") throw new RangeError("thrown in the handler");
            else if (answer === "short") message.receive(destination.subarray(1));
            else if (answer === "late") {
              message.receive(destination, () => received++);
              throw new RangeError("thrown behind");
            }
          });
          // More than there are rget FIFOs in a block: each is free again.
          for (let round = 0; round < 50; round++) {
            const { told, hear } = listener();
            const parameters = { to: target.endpoint, dispatch, payload, rendezvous: true, cookie: round };
            origin.send({ ...parameters, onLocal: hear, onRemote: hear });
            let thrown = "";
            try {
              target.advance();
            } catch (error) {
              thrown = `${(error as { code?: string }).code ?? ""} ${error}`;
            }
            expect(thrown).toContain(why);
            expect(thrown === "").toBe(why === "");
            step([origin, target], () => told.length === 2);
            for (let i = 0; i < 3; i++) for (const context of [origin, target]) context.advance();
            expect(told).toEqual([
              [round, expected],
              [round, expected],
            ]);
          }
          expect([received, destination.every((byte) => byte === 0)]).toEqual([0, true]);
          close();
        }
      }),
    );

    it.each([
      { end: "payload", way: WAYS[0] as Way },
      { end: "payload", way: WAYS[1] as Way },
      { end: "destination", way: WAYS[0] as Way },
      { end: "destination", way: WAYS[2] as Way },
    ])(
      "P10 the region of its $end closes, in the midst of it: both are told ERROR, and go on; $way.name",
      ({ end, way }) =>
        pair(variant, { fragment: 10_000 }, (given) => {
          const { origin, target } = given;
          const [there, here] = [listener(), listener()];
          let destination: Uint8Array = new Uint8Array();
          const isRight: boolean[] = [];
          target.dispatch(DATA, (message) =>
            message.receive(destination, (cookie, result) => {
              there.hear(cookie, result);
              isRight.push(sameBytes(destination, pattern(600_000, 3)));
            }),
          );
          const offer = (payload: Uint8Array) => {
            const parameters = { to: target.endpoint, dispatch: DATA, payload, rendezvous: true };
            origin.send({ ...parameters, onLocal: here.hear, onRemote: here.hear });
          };
          let free: number | undefined;
          for (let round = 0; round < 50; round++) {
            const lasting = ends(given, way, 600_000);
            ({ destination } = lasting);
            offer(lasting.payload);
            // A destination is one once it is named.
            const steps = (end === "payload" ? 0 : 1) + (round % 3);
            for (let i = 0; i < steps; i++) for (const context of [target, origin]) context.advance();
            (end === "payload" ? lasting.from : lasting.into)?.close();
            step([origin, target], () => here.told.length === 2 * (round + 1) && there.told.length === round + 1);
            lasting.close();
            const now = freeOf(given, origin, target);
            if (round > 7) free ??= now;
            expect(now).toBe(free ?? now);
          }
          const results = there.told.map(([, result]) => result);
          expect(here.told.map(([, result]) => result)).toEqual(results.flatMap((result) => [result, result]));
          expect(results).toContain(ERROR);
          // An engine thread may have been quicker.
          if (hasThread) expect(results.map((result) => result === SUCCESS)).toEqual(isRight);
          else expect(new Set(results)).toEqual(new Set([ERROR]));
          const { payload, ...last } = ends(given, way, 600_000);
          ({ destination } = last);
          offer(payload);
          step([origin, target], () => here.told.length === 102 && there.told.length === 51);
          expect([here.told.at(-1)?.[1], there.told.at(-1)?.[1]]).toEqual([SUCCESS, SUCCESS]);
          expect(sameBytes(destination, payload)).toBe(true);
        }),
    );
  });

  describe("cancel", () => {
    it("P10 the origin's signal wakes a target that waits for more of what is staged", () =>
      withJob(variant, { module, scenario: "take" }, async ({ client, context, flags }) => {
        const controller = new AbortController();
        const { told, hear } = listener();
        const came = results(context);
        const parameters = { to: client.endpoint(1), dispatch: DATA, header: asked({ number: 0 }) };
        const payload = pattern(MIB);
        context.send({ ...parameters, payload, rendezvous: true, onLocal: hear, signal: controller.signal });
        awaitFlag(flags, 10, 1);
        // It takes what is staged, and falls asleep.
        await pause(100);
        controller.abort();
        until(context, () => told.length === 1 && came.length === 1);
        expect([told, came]).toEqual([
          [[undefined, CANCELED]],
          [{ number: 0, result: CANCELED, isRight: true, immediate: false }],
        ]);
        context.sendImmediate(client.endpoint(1), QUIT);
      }));

    /** When a transfer is given up, and by whom. */
    const STAGES = [
      { name: "by its origin, before it is sent", by: "origin", before: true, steps: 0 },
      { name: "by its origin, once it is offered", by: "origin", before: false, steps: 0 },
      { name: "by its origin, in the midst of it", by: "origin", before: false, steps: 4 },
      { name: "by its target, before it says where it goes", by: "target", before: true, steps: 0 },
      { name: "by its target, at once", by: "target", before: false, steps: 1 },
      { name: "by its target, in the midst of it", by: "target", before: false, steps: 4 },
    ];
    const CASES = WAYS.flatMap((way) => STAGES.map((stage) => ({ ...way, ...stage, way: way.name })));

    it.each(CASES)("P10 $way, $name: both are told CANCELED, once, and go on", ({ by, before, steps, ...way }) =>
      pair(variant, { fragment: 20_000 }, (given) => {
        const { job, origin, target } = given;
        const { payload, destination } = ends(given, way, 1_500_000);
        const [there, here] = [listener(), listener()];
        let signals: { readonly signal: AbortSignal; listeners(): number }[] = [];
        let asked = 0;
        const isRight: boolean[] = [];
        const onComplete: Callback = (cookie, result) => {
          there.hear(cookie, result);
          isRight.push(sameBytes(destination, payload));
          if (result === SUCCESS) destination.fill(0);
        };
        target.dispatch(DATA, (message) => {
          asked++;
          const options = by === "target" ? { signal: signals.at(-1)?.signal } : {};
          message.receive(destination, onComplete, undefined, options);
        });
        const offer = () => {
          const parameters = { to: target.endpoint, dispatch: DATA, payload, rendezvous: true, onLocal: here.hear };
          const signal = by === "origin" ? signals.at(-1)?.signal : undefined;
          origin.send({ ...parameters, onRemote: here.hear, signal });
        };
        let free: number | undefined;
        for (let round = 0; round < 50; round++) {
          const controller = new AbortController();
          signals = [...signals, countedSignal(controller)];
          const isBefore = before && by === "origin";
          if (before) controller.abort();
          offer();
          for (let i = 0; i < steps; i++) for (const context of [target, origin]) context.advance();
          if (!before) controller.abort();
          step([origin, target], () => origin.drained && (isBefore || there.told.length > round));
          for (let i = 0; i < 3; i++) for (const context of [origin, target]) context.advance();
          expect(here.told.length).toBe(2 * (round + 1));
          // Rounds and rounds take no more than the first.
          free ??= job.dump().heap.free;
          expect(job.dump().heap.free).toBe(free);
          expect(asked).toBe(isBefore ? 0 : round + 1);
        }
        const results = there.told.map(([, result]) => result);
        const expected = asked === 0 ? Array.from({ length: 50 }, () => CANCELED) : results;
        expect(here.told.map(([, result]) => result)).toEqual(expected.flatMap((result) => [result, result]));
        expect(expected).toContain(CANCELED);
        // An engine thread may have been quicker.
        if (hasThread && steps > 0) expect(results.map((result) => result === SUCCESS)).toEqual(isRight);
        else expect([new Set(expected), isRight.includes(true)]).toEqual([new Set([CANCELED]), false]);
        expect(signals.map(({ listeners }) => listeners())).toEqual(signals.map(() => 0));
        signals = [];
        offer();
        step([origin, target], () => here.told.length === 102);
        step([origin, target], () => there.told.at(-1)?.[1] === SUCCESS);
        expect(here.told.slice(100).map(([, result]) => result)).toEqual([SUCCESS, SUCCESS]);
        expect(isRight.at(-1)).toBe(true);
      }),
    );

    it.each(WAYS)("P10 comes too late where all is there: $name", (way) =>
      pair(variant, {}, (given) => {
        const { origin, target } = given;
        const { payload, destination } = ends(given, way, 100_000);
        const [there, here] = [listener(), listener()];
        const controllers = [new AbortController(), new AbortController()] as const;
        const [sent, received] = controllers.map(countedSignal);
        target.dispatch(DATA, (message) =>
          message.receive(destination, there.hear, undefined, { signal: received?.signal }),
        );
        const parameters = { to: target.endpoint, dispatch: DATA, payload, rendezvous: true };
        origin.send({ ...parameters, onLocal: here.hear, signal: sent?.signal });
        expect(sent?.listeners()).toBe(1);
        step([origin, target], () => there.told.length === 1 && here.told.length === 1);
        for (const controller of controllers) controller.abort();
        for (let i = 0; i < 10; i++) for (const context of [origin, target]) context.advance();
        expect([here.told, there.told]).toEqual([[[undefined, SUCCESS]], [[undefined, SUCCESS]]]);
        expect([sent?.listeners(), received?.listeners()]).toEqual([0, 0]);
      }),
    );

    it("P10 what waits behind others comes to CANCELED in its turn, and those behind it go on", () =>
      pair(variant, {}, (given) => {
        const { origin, target } = given;
        const { payload } = ends(given, WAYS[0] as Way, 1000);
        const { told, hear } = listener();
        const controller = new AbortController();
        const { signal, listeners } = countedSignal(controller);
        const parameters = { to: target.endpoint, dispatch: DATA, payload, rendezvous: true, onLocal: hear };
        for (let cookie = 0; cookie < 12; cookie++) {
          origin.send({ ...parameters, cookie, signal: cookie === 9 ? signal : undefined });
        }
        controller.abort();
        const asked: number[] = [];
        target.dispatch(DATA, (message) => {
          asked.push(message.payloadBytes);
          message.discard();
        });
        step([origin, target], () => told.length === 12);
        expect(told.toSorted((a, b) => (a[0] as number) - (b[0] as number))).toEqual(
          told.map((_, i) => [i, i === 9 ? CANCELED : SUCCESS]),
        );
        expect([asked.length, listeners()]).toEqual([11, 0]);
      }));

    it("P10 a context that closes takes no notice of signals any more", () =>
      pair(variant, {}, (given) => {
        const { origin, target } = given;
        const controllers = [new AbortController(), new AbortController(), new AbortController()] as const;
        const [sent, moved, pulled] = controllers.map(countedSignal);
        // Staged by an origin that stands still: nobody gets through with it.
        const { payload, destination } = ends(given, WAYS[2] as Way, 1_500_000);
        let isFirst = true;
        target.dispatch(DATA, (message) => {
          const bytes = isFirst ? destination : new Uint8Array(message.payloadBytes);
          message.receive(bytes, () => {}, undefined, { signal: isFirst ? moved?.signal : pulled?.signal });
          isFirst = false;
        });
        const parameters = { to: target.endpoint, dispatch: DATA, payload, rendezvous: true, onLocal: () => {} };
        for (let i = 0; i < 2; i++) origin.send({ ...parameters, signal: sent?.signal });
        for (let i = 0; i < 2; i++) target.advance();
        // The two offers of one signal share its listener.
        expect([sent, moved, pulled].map((each) => each?.listeners())).toEqual([1, 1, 1]);
        origin.close();
        target.close();
        expect([sent, moved, pulled].map((each) => each?.listeners())).toEqual([0, 0, 0]);
        for (const controller of controllers) controller.abort();
      }));

    it("P10 the receiver's signal wakes itself, where it waits for an origin that stands still", () =>
      withJob(variant, { module, scenario: "offer", args: { bytes: MIB } }, async ({ context, flags }) => {
        const controller = new AbortController();
        const { told, hear } = listener();
        let report: unknown;
        context.dispatch(RESULT, ({ payload }) => {
          report = JSON.parse(new TextDecoder().decode(payload.slice()));
        });
        context.dispatch(DATA, (message) => {
          message.receive(new Uint8Array(MIB), hear, 7, { signal: controller.signal });
        });
        setTimeout(() => controller.abort(), 100);
        while (told.length === 0) await progress(context);
        expect(told).toEqual([[7, CANCELED]]);
        openGate(flags, 0);
        until(context, () => report !== undefined);
        expect(report).toEqual([[0, CANCELED]]);
      }));
  });

  describe("no memory", () => {
    it.each(WAYS)(
      "P1 where there is none for rget FIFOs and rings it goes in packets, and is what was sent: $name",
      (way) =>
        withJob(variant, { tasks: 1, contexts: 2, heapBytes: 2 * MIB }, ({ job, client, context: origin }) => {
          const target = client.createContext();
          const { payload, destination } = ends({ client }, way, 300_000);
          const here = listener();
          const there = listener();
          target.dispatch(DATA, (message) => message.receive(destination, there.hear));
          const offer = () => {
            const controller = new AbortController();
            const parameters = { to: target.endpoint, dispatch: DATA, payload, rendezvous: true };
            const before = there.told.length;
            destination.fill(0);
            expect(origin.send({ ...parameters, onLocal: here.hear, signal: controller.signal })).toBe(SUCCESS);
            // What is offered is given up by this, what goes in packets is not.
            controller.abort();
            step([origin, target], () => origin.drained && there.told.length > before);
            const [sent, received] = [here, there].map(({ told }) => told.at(-1)?.[1]);
            expect(sent).toBe(received);
            expect(sameBytes(destination, payload)).toBe(sent === SUCCESS);
            return sent;
          };
          const regions = fillHeap(client);
          const results = [offer()];
          // Enough for the one and not for the other, then for all.
          for (const region of regions.toReversed()) {
            region.close();
            freeOf({ job, client }, origin, target);
            results.push(offer());
          }
          expect([results[0], results.at(-1)]).toEqual([SUCCESS, CANCELED]);
          expect(here.told.length).toBe(results.length);
        }),
    );
  });

  describe("ends in the midst of it", () => {
    // More than is copied in all those steps.
    const bytes = 4 * MIB;
    /** How many steps each task makes before it ends. */
    const steps = [0, 1, 3, 9];
    const ENDS = ["exit", "throw", "terminate", "leave", "close"];

    it.each(ENDS.flatMap((how) => ["target", "origin"].map((role) => ({ how, role }))))(
      "P10 of the $role, by $how: the other one is told SHUTDOWN, once, and all memory comes back",
      ({ how, role }) =>
        withJob(
          variant,
          {
            module,
            scenario: "mortal",
            tasks: 5,
            onError: "ignore",
            heapBytes: 64 * MIB,
            args: { role, how, steps, bytes },
          },
          async ({ job, client, context, flags }) => {
            const { told, hear } = listener();
            const controllers: ReturnType<typeof countedSignal>[] = [];
            const signal = () => {
              const counted = countedSignal(new AbortController());
              controllers.push(counted);
              return counted.signal;
            };
            const region = client.createRegion(4 * bytes);
            region.bytes.fill(0);
            const expected = pattern(bytes);
            const endpoints = steps.map((_, i) => client.endpoint(i + 1));
            const ended = new Set<Endpoint>();
            for (const endpoint of endpoints) context.whenEnded(endpoint, () => ended.add(endpoint));
            // Of each origin the first is moved by the engines, so that it gets nowhere after that one's end, and may be
            // over where they are no part of that; the other is copied here, and may be over.
            let asked = 0;
            let whole = 0;
            context.dispatch(DATA, (message) => {
              const place = endpoints.indexOf(message.origin) * bytes;
              const inRegion = region.bytes[place] === 0;
              const destination = inRegion ? region.bytes.subarray(place, place + bytes) : new Uint8Array(bytes);
              destination[0] = 1;
              asked++;
              const onComplete: Callback = (cookie, result) => {
                hear(cookie, result);
                if (result === SUCCESS && (!inRegion || hasThread) && sameBytes(destination, expected)) whole++;
              };
              const options = { fragment: 64, signal: signal() };
              message.receive(destination, onComplete, `${message.origin} ${inRegion}`, options);
            });
            awaitFlag(flags, 12, steps.length);
            if (role === "target") {
              for (const to of endpoints) {
                for (const payload of [region.bytes.subarray(0, bytes), expected]) {
                  const parameters = { to, dispatch: DATA, payload, rendezvous: true, signal: signal() };
                  // The first goes into a region: an engine thread may have been through with it.
                  const cookie = hasThread && payload !== expected;
                  context.send({ ...parameters, onLocal: hear, onRemote: hear, cookie });
                }
              }
            }
            openGate(flags, 0);
            const isOver = () => ended.size === steps.length && told.length === (role === "target" ? 16 : asked);
            if (how === "terminate") {
              awaitFlag(flags, 13, steps.length);
              for (const task of steps.keys()) void job.terminate(task + 1);
            }
            for (const end = performance.now() + PATIENCE; !isOver() && performance.now() < end; )
              await progress(context);
            for (let i = 0; i < 20; i++) context.advance();
            expect(isOver()).toBe(true);
            const results = told.map(([, result]) => result);
            if (role === "target") {
              const others = told.filter(([mayBeOver, result]) => !mayBeOver || result !== SUCCESS);
              expect(others.map(([, result]) => result)).toEqual(others.map(() => SHUTDOWN));
            } else {
              expect(results.filter((result) => result !== SHUTDOWN)).toEqual(
                Array.from({ length: whole }, () => SUCCESS),
              );
              expect(new Set(told.map(([cookie]) => cookie)).size).toBe(told.length);
            }
            expect(controllers.map(({ listeners }) => listeners())).toEqual(controllers.map(() => 0));
            // A context that closes leaves its task behind.
            if (how === "close")
              for (const task of steps.keys()) context.sendImmediate(client.endpoint(task + 1, 1), QUIT);
            await job.exited;
            region.close();
            const last = client.createContext();
            for (let i = 0; i < 10; i++) for (const each of [context, last]) each.advance();
            context.close();
            const heap = () => job.dump().heap;
            const all = heap().bytes;
            // Closed regions give their memory to new ones, once every context has passed an advance(). All
            // of the heap is given to no region: small ones, closed again, would be too many while an engine thread has no
            // core.
            for (const end = performance.now() + PATIENCE; performance.now() < end; ) {
              last.advance();
              expect(thrownBy(() => client.createRegion(all)).code).toBe("PAMIR_NO_MEMORY");
              if (heap().free === all) break;
            }
            expect(heap().free).toBe(all);
          },
        ),
    );
  });
});
