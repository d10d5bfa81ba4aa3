// Active messages between workers, and of a task to itself: sizes, views, order, back-pressure, reception.
import {
  type Context,
  EAGAIN,
  type Endpoint,
  type Message,
  type PamiError,
  RECV_IMMEDIATE_MAX,
  type Result,
  SEND_IMMEDIATE_MAX,
  type SendParameters,
  SUCCESS,
} from "pamir";
import { describe, expect, it, vi } from "vitest";
import {
  awaitFlag,
  chooseSeed,
  DATA,
  ECHO,
  kernelsOf,
  LINKED_VARIANTS,
  OTHER,
  openGate,
  PATIENCE,
  pattern,
  progress,
  QUIT,
  REPLY_PARTS,
  REPLY_WHOLE,
  RESULT,
  randomFrom,
  sameBytes,
  thrownBy,
  until,
  type Variant,
  withJob,
} from "./support.js";

const MIB = 1024 ** 2;
/** A handler that says by receive() where a large payload goes. */
const EARLY = { delivery: "early" } as const;

interface Reply {
  readonly whole: boolean;
  readonly origin: number;
  readonly header: Uint8Array;
  readonly payload: Uint8Array;
}

/** Takes replies of an echo peer. */
function takeReplies(context: Context): Reply[] {
  const replies: Reply[] = [];
  for (const dispatch of [REPLY_WHOLE, REPLY_PARTS]) {
    context.dispatch(dispatch, (message) => {
      const { origin } = message;
      const take = (payload: Uint8Array) =>
        replies.push({ whole: dispatch === REPLY_WHOLE, origin, header: message.header.slice(), payload });
      if (message.immediate) take(message.payload.slice());
      else {
        const header = message.header.slice();
        const payload = new Uint8Array(message.payloadBytes);
        message.receive(payload, () => replies.push({ whole: false, origin, header, payload }));
      }
    });
  }
  return replies;
}

/** Takes the JSON value that a task reports. */
function takeReport(context: Context): { value: unknown } {
  const taken: { value: unknown } = { value: undefined };
  context.dispatch(RESULT, ({ payload }) => {
    taken.value = JSON.parse(new TextDecoder().decode(payload.slice()));
  });
  return taken;
}

/** A header with a number, for `collect` and `hold`. */
function numbered(number: number): Int32Array {
  return Int32Array.of(number);
}

/** sendImmediate until it is refused; how many were taken. */
function fill(context: Context, to: Endpoint, bytes: number, queue: boolean): number {
  const payload = new Uint8Array(bytes);
  for (let count = 0; ; count++) {
    const result = context.sendImmediate(to, DATA, numbered(0), payload, queue);
    if (result === EAGAIN) return count;
    expect(result).toBe(SUCCESS);
    expect(count).toBeLessThan(1e6);
  }
}

const VIEWS: readonly (readonly [string, (buffer: ArrayBuffer | SharedArrayBuffer) => ArrayBufferView])[] = [
  ["Int8Array", (buffer) => new Int8Array(buffer)],
  ["Uint8Array", (buffer) => new Uint8Array(buffer)],
  ["Uint8ClampedArray", (buffer) => new Uint8ClampedArray(buffer)],
  ["Int16Array", (buffer) => new Int16Array(buffer)],
  ["Uint16Array", (buffer) => new Uint16Array(buffer)],
  ["Int32Array", (buffer) => new Int32Array(buffer)],
  ["Uint32Array", (buffer) => new Uint32Array(buffer)],
  ["Float32Array", (buffer) => new Float32Array(buffer)],
  ["Float64Array", (buffer) => new Float64Array(buffer)],
  ["BigInt64Array", (buffer) => new BigInt64Array(buffer)],
  ["BigUint64Array", (buffer) => new BigUint64Array(buffer)],
  ["DataView", (buffer) => new DataView(buffer)],
  ["Buffer", (buffer) => Buffer.from(buffer as ArrayBuffer)],
  ["subarray with an odd offset", (buffer) => new Uint8Array(buffer).subarray(3, 60)],
  ["eight bytes at an odd offset", (buffer) => new Uint8Array(buffer).subarray(5, 13)],
  ["DataView with an odd offset", (buffer) => new DataView(buffer, 7, 41)],
  ["Float64Array in the middle", (buffer) => new Float64Array(buffer, 16, 3)],
];

function bytesOf(view: ArrayBufferView): Uint8Array {
  return new Uint8Array(view.buffer, view.byteOffset, view.byteLength).slice();
}

function alone(variant: Variant, body: (context: Context, self: Endpoint) => void | Promise<void>): Promise<void> {
  return withJob(variant, { tasks: 1 }, ({ context }) => body(context, context.endpoint));
}

function messageSuite(variant: Variant): void {
  describe("sendImmediate", () => {
    const sizes = [0, 1, 3, 4, 7, 8, 9, 15, 16, 17, 24, 31, 32, 33, 64, 65, 255, 1000, 2048, 4088, 4095, 4096];
    const pairs = sizes.flatMap((header) =>
      sizes
        .filter((payload) => (payload === 0 ? header : Math.ceil(header / 8) * 8 + payload) <= SEND_IMMEDIATE_MAX)
        .map((payload) => [header, payload] as const),
    );

    it("delivers every size of header and payload whole, to itself", () =>
      alone(variant, (context, self) => {
        const seen: { header: Uint8Array; payload: Uint8Array; whole: boolean; aligned: boolean }[] = [];
        context.dispatch(DATA, (message) => {
          seen.push({
            header: message.header.slice(),
            payload: message.payload.slice(),
            whole: message.immediate,
            aligned: message.payloadOffset % 8 === 0 && message.headerOffset % 8 === 0,
          });
          expect([message.origin, message.dispatch]).toEqual([self, DATA]);
          expect([message.headerBytes, message.payloadBytes]).toEqual([message.header.length, message.payload.length]);
        });
        for (const [header, payload] of pairs) {
          const [h, p] = [pattern(header, header + 1), pattern(payload, payload + 2)];
          expect(context.sendImmediate(self, DATA, h, p)).toBe(SUCCESS);
          until(context, () => seen.length > 0);
          const got = seen.pop() as (typeof seen)[0];
          expect({ header, payload, same: sameBytes(got.header, h) && sameBytes(got.payload, p) }).toEqual({
            header,
            payload,
            same: true,
          });
          expect([got.whole, got.aligned]).toEqual([true, true]);
        }
      }));

    it("delivers every size to another task, in order", () =>
      withJob(variant, { scenario: "echo" }, ({ client, context }) => {
        const replies = takeReplies(context);
        const to = client.endpoint(1);
        for (const [header, payload] of pairs) {
          expect(context.sendImmediate(to, ECHO, pattern(header, header + 1), pattern(payload, payload + 2))).toBe(
            SUCCESS,
          );
        }
        until(context, () => replies.length === pairs.length);
        const wrong = pairs.filter(([header, payload], i) => {
          const reply = replies[i] as Reply;
          return (
            !sameBytes(reply.header, pattern(header, header + 1)) ||
            !sameBytes(reply.payload, pattern(payload, payload + 2))
          );
        });
        expect(wrong).toEqual([]);
        expect(replies.every(({ whole, origin }) => whole && origin === to)).toBe(true);
      }));

    for (const shared of [false, true]) {
      it(`takes every kind of view into ${shared ? "shared" : "ordinary"} memory, as header and as payload`, () =>
        alone(variant, (context, self) => {
          const seen: Uint8Array[] = [];
          context.dispatch(DATA, (message) => seen.push(message.header.slice(), message.payload.slice()));
          for (const [name, make] of VIEWS) {
            const buffer = shared ? new SharedArrayBuffer(64) : new ArrayBuffer(64);
            new Uint8Array(buffer).set(pattern(64, 5));
            const view = make(buffer);
            const expected = bytesOf(view);
            // Twice with one view: the second goes the direct way, and by then the bytes have changed.
            context.sendImmediate(self, DATA, view, view);
            new Uint8Array(buffer).reverse();
            const reversed = bytesOf(view);
            context.sendImmediate(self, DATA, view, view);
            context.send({ to: self, dispatch: DATA, header: view, payload: view });
            until(context, () => seen.length === 6);
            const [h1, p1, h2, p2, h3, p3] = seen.splice(0);
            expect({ name, bytes: [h1, p1] }).toEqual({ name, bytes: [expected, expected] });
            expect({ name, bytes: [h2, p2, h3, p3] }).toEqual({
              name,
              bytes: [reversed, reversed, reversed, reversed],
            });
          }
        }));
    }

    it("takes bytes out of the job's memory itself", () =>
      alone(variant, (context, self) => {
        const forwarded: Uint8Array[] = [];
        context.dispatch(DATA, (message) => {
          if (message.origin !== self) throw new Error("from nowhere");
          context.sendImmediate(self, OTHER, message.header, message.payload);
        });
        context.dispatch(OTHER, (message) => forwarded.push(message.header.slice(), message.payload.slice()));
        const [header, payload] = [pattern(100, 1), pattern(3000, 2)];
        context.sendImmediate(self, DATA, header, payload);
        until(context, () => forwarded.length > 0);
        expect(forwarded).toEqual([header, payload]);
      }));

    it("leaves the buffers to the caller on return, also while the message is still pending", () =>
      withJob(variant, { scenario: "echo", laneBytes: 256 }, ({ client, context }) => {
        const replies = takeReplies(context);
        const buffer = new Uint8Array(100);
        for (let i = 0; i < 200; i++) {
          buffer.fill(i);
          expect(context.sendImmediate(client.endpoint(1), ECHO, buffer.subarray(0, 8), buffer)).toBe(SUCCESS);
        }
        buffer.fill(255);
        until(context, () => replies.length === 200);
        expect(replies.map(({ header }) => header[0])).toEqual(Array.from({ length: 200 }, (_, i) => i));
        expect(replies.map(({ payload }) => payload[99])).toEqual(Array.from({ length: 200 }, (_, i) => i));
      }));

    it("reads values in place, within the payload only", () =>
      alone(variant, (context, self) => {
        const seen: unknown[] = [];
        context.dispatch(DATA, (message) => {
          const copy = new Uint8Array(12);
          message.copyTo(copy);
          seen.push(message.getInt32(0), message.getInt32(4), message.getUint8(0), [...copy]);
          for (const offset of [-4, 2, 8]) seen.push(thrownBy(() => message.getInt32(offset)).code);
          for (const offset of [-1, 8]) seen.push(thrownBy(() => message.getUint8(offset)).text);
          message.copyTo(copy, 4);
          seen.push([...copy], thrownBy(() => message.copyTo(copy, 5)).text);
        });
        context.sendImmediate(self, DATA, new Uint8Array(3), Int32Array.of(-2, 7));
        context.advance();
        expect(seen).toEqual([
          -2,
          7,
          254,
          [254, 255, 255, 255, 7, 0, 0, 0, 0, 0, 0, 0],
          "PAMIR_INVAL",
          "PAMIR_INVAL",
          "PAMIR_INVAL",
          "offset -1 for 1 bytes is not an aligned place in a payload of 8 bytes",
          "offset 8 for 1 bytes is not an aligned place in a payload of 8 bytes",
          [254, 255, 255, 255, 254, 255, 255, 255, 7, 0, 0, 0],
          "the payload has 8 bytes, the target 12 from 5 on",
        ]);
      }));
  });

  describe("send", () => {
    // In one record of the first lane, at the edge of it, in a grown lane, at the edge of that, in several packets.
    const sizes = [
      0,
      1,
      4096,
      4104,
      7672,
      7673,
      65536,
      RECV_IMMEDIATE_MAX,
      RECV_IMMEDIATE_MAX + 1,
      131_073,
      MIB,
      3 * MIB,
    ];

    it("replaces a lane that is full again and again by a larger one, and keeps the order", () =>
      withJob(variant, { scenario: "echo" }, ({ job, client, context }) => {
        const self = client.endpoint(0);
        const lane = () => job.dump().tasks[0]?.contexts[0]?.lanes[0]?.bytes;
        const numbers: number[] = [];
        context.dispatch(DATA, (message) => numbers.push(message.getInt32(0)));
        const payload = new Int32Array(250);
        const before: unknown[] = [];
        let sent = 0;
        for (let fulls = 0; fulls < 40; ) {
          payload[0] = sent;
          if (context.sendImmediate(self, DATA, null, payload, false) === SUCCESS) sent++;
          else {
            if (fulls++ === 0) before.push(lane());
            context.advance();
          }
        }
        until(context, () => numbers.length === sent);
        expect([...before, lane()]).toEqual([16384, 262144]);
        expect(numbers).toEqual(Array.from({ length: sent }, (_, i) => i));
      }));

    for (const headerBytes of [0, 13]) {
      it(`carries 0 B to 3 MiB to another task and back, with a header of ${headerBytes} bytes`, () =>
        withJob(variant, { scenario: "echo" }, ({ client, context }) => {
          const replies = takeReplies(context);
          for (const size of sizes) {
            const payload = pattern(size, size + 1);
            const done: Result[] = [];
            const onLocal = (_: unknown, result: Result) => done.push(result);
            const header = pattern(headerBytes, 3);
            expect(context.send({ to: client.endpoint(1), dispatch: ECHO, header, payload, onLocal })).toBe(SUCCESS);
            until(context, () => replies.length === 1 && done.length === 1);
            const reply = replies.pop() as Reply;
            expect({
              size,
              same: sameBytes(reply.payload, payload),
              header: [...reply.header],
              whole: reply.whole,
            }).toEqual({
              size,
              same: true,
              header: [...header],
              whole: true,
            });
            expect(done).toEqual([SUCCESS]);
          }
        }));
    }

    it("carries 3 MiB to itself", () =>
      alone(variant, (context, self) => {
        const payload = pattern(3 * MIB);
        const target = new Uint8Array(3 * MIB);
        let received = 0;
        context.dispatch(DATA, (message) => message.receive(target, () => received++), EARLY);
        expect(context.send({ to: self, dispatch: DATA, payload, onLocal: () => {} })).toBe(SUCCESS);
        until(context, () => received === 1);
        expect(sameBytes(target, payload)).toBe(true);
      }));

    for (const bytes of [8, 5000, 2 * MIB]) {
      it(`calls onLocal and onRemote with the cookie, later and once each, for ${bytes} bytes`, () =>
        withJob(variant, { scenario: "echo" }, ({ client, context }) => {
          const replies = takeReplies(context);
          const calls: unknown[] = [];
          let inside = true;
          const cookie = { any: "thing" };
          for (let round = 0; round < 3; round++) {
            inside = true;
            const result = context.send({
              to: client.endpoint(1),
              dispatch: ECHO,
              payload: new Uint8Array(bytes),
              onLocal: (given, value) => calls.push(["local", given === cookie, value, inside]),
              onRemote: (given, value) => calls.push(["remote", given === cookie, value, inside]),
              cookie,
            });
            inside = false;
            expect([result, calls]).toEqual([SUCCESS, []]);
            until(context, () => replies.length > round && calls.length >= 2);
            const expected = [
              ["local", true, SUCCESS, false],
              ["remote", true, SUCCESS, false],
            ];
            expect(calls.splice(0)).toEqual(expected);
          }
        }));
    }

    it("reads the parameter object before it returns, also when there is no room", () =>
      withJob(variant, { scenario: "echo", laneBytes: 1024 }, ({ client, context }) => {
        const replies = takeReplies(context);
        const cookies: unknown[] = [];
        const header = new Uint8Array(4);
        const payload = new Uint8Array(300);
        const parameters: SendParameters = { to: client.endpoint(1), dispatch: ECHO, header, payload };
        for (let i = 0; i < 100; i++) {
          header.fill(i);
          payload.fill(i);
          parameters.cookie = i;
          parameters.onRemote = (cookie) => cookies.push(cookie);
          expect(context.send(parameters)).toBe(SUCCESS);
        }
        parameters.dispatch = QUIT;
        parameters.cookie = "none";
        payload.fill(255);
        until(context, () => replies.length === 100 && cookies.length === 100);
        const expected = Array.from({ length: 100 }, (_, i) => i);
        expect(replies.map((reply) => reply.header[3])).toEqual(expected);
        expect(replies.map((reply) => reply.payload[299])).toEqual(expected);
        expect(cookies).toEqual(expected);
      }));
  });

  describe("order", () => {
    it("is kept from each endpoint to another, whatever the sizes and calls", () => {
      const seed = chooseSeed();
      const random = randomFrom(seed);
      const count = 400;
      return withJob(
        variant,
        { scenario: "collect", laneBytes: 1024, args: { count } },
        ({ client, context, flags }) => {
          const report = takeReport(context);
          const to = client.endpoint(1);
          for (let i = 0; i < count; i++) {
            if (i === count / 2) openGate(flags, 0);
            const bytes = random.below(10) === 0 ? random.below(200_000) : random.below(600);
            const payload = new Uint8Array(bytes).fill(i);
            if (bytes <= 600 && random.below(2) === 0)
              expect(context.sendImmediate(to, DATA, numbered(i), payload)).toBe(SUCCESS);
            else
              expect(context.send({ to, dispatch: DATA, header: numbered(i), payload, onLocal: () => {} })).toBe(
                SUCCESS,
              );
            if (random.below(4) === 0) context.advance();
          }
          until(context, () => report.value !== undefined);
          expect({ seed, order: report.value }).toEqual({ seed, order: Array.from({ length: count }, (_, i) => i) });
        },
      );
    });
  });

  describe("back-pressure", () => {
    // An agent takes what its target does not read.
    it.skipIf(variant.isLinked)(
      "refuses with EAGAIN what may not be queued, takes it again when there is room, and loses nothing",
      () =>
        withJob(variant, { scenario: "hold", laneBytes: 4096 }, async ({ client, context, flags }) => {
          const report = takeReport(context);
          const to = client.endpoint(1);
          let sent = fill(context, to, 100, false);
          expect(sent).toBeGreaterThan(4096 / 256);
          expect(context.room(to)).toBeLessThan(108);
          expect(context.send({ to, dispatch: DATA, payload: new Uint8Array(108), queue: false })).toBe(EAGAIN);
          const told: [unknown, Result][] = [];
          context.whenRoom(to, 2000, (cookie, result) => told.push([cookie, result]), "cookie");
          const promised = context.whenRoom(to, 1000);
          for (let i = 0; i < 10; i++) context.advance();
          expect(told).toEqual([]);
          openGate(flags, 0);
          until(context, () => told.length > 0);
          expect(told).toEqual([["cookie", SUCCESS]]);
          while (context.room(to) < 2000) context.advance();
          expect(context.sendImmediate(to, DATA, null, new Uint8Array(2000), false)).toBe(SUCCESS);
          sent++;
          while (context.advance() > 0);
          await promised;
          while (context.sendImmediate(to, QUIT) !== SUCCESS) context.advance();
          until(context, () => report.value !== undefined);
          expect(report.value).toBe(sent);
        }),
    );

    it.skipIf(variant.isLinked)("says in room() what would be accepted, neither more nor less", () =>
      withJob(variant, { scenario: "hold", laneBytes: 4096, args: {} }, ({ client, context, flags }) => {
        const report = takeReport(context);
        const to = client.endpoint(1);
        let sent = 0;
        const rooms: number[] = [];
        for (let room = context.room(to); room > 0; room = context.room(to)) {
          rooms.push(room);
          const most = Math.min(room, SEND_IMMEDIATE_MAX);
          // An empty lane would be replaced by a larger one for a message that is larger than all of it.
          if (sent > 0) {
            expect(context.sendImmediate(to, DATA, null, new Uint8Array(room + 1), false)).toBe(EAGAIN);
          }
          const bytes = Math.min(most, 500);
          expect(context.sendImmediate(to, DATA, null, new Uint8Array(bytes), false)).toBe(SUCCESS);
          sent++;
        }
        expect(rooms.length).toBeGreaterThan(4);
        expect(context.sendImmediate(to, DATA, null, null, false)).toBe(EAGAIN);
        openGate(flags, 0);
        while (context.sendImmediate(to, QUIT) !== SUCCESS) context.advance();
        until(context, () => report.value !== undefined);
        expect(report.value).toBe(sent);
      }),
    );

    it.skipIf(variant.isLinked)("queues up to pendingBytes of copies, then EAGAIN; onLocal saves the copy", () =>
      withJob(
        variant,
        { scenario: "hold", laneBytes: 1024, context: { pendingBytes: 10_000 } },
        ({ client, context, flags }) => {
          const report = takeReport(context);
          const to = client.endpoint(1);
          const direct = fill(context, to, 0, false);
          const queued = fill(context, to, 992, true);
          expect(queued).toBe(10);
          expect(context.send({ to, dispatch: DATA, payload: new Uint8Array(1) })).toBe(EAGAIN);
          let local = 0;
          const payload = new Uint8Array(500_000);
          // Nothing of it is copied, so it does not count; its packets go when it is its turn.
          expect(context.send({ to, dispatch: OTHER, payload, onLocal: () => local++ })).toBe(SUCCESS);
          // Behind what is pending it can't go in a buffer at once, and the queue does not copy so much.
          expect(context.send({ to, dispatch: OTHER, payload })).toBe(EAGAIN);
          const tooLarge = new Uint8Array(9 * MIB);
          expect(thrownBy(() => context.send({ to, dispatch: DATA, payload: tooLarge }))).toEqual({
            code: "PAMIR_TOO_LARGE",
            text: `a send of ${tooLarge.length} bytes without onLocal: the pending queue copies at most 10000`,
          });
          openGate(flags, 0);
          until(context, () => local === 1);
          while (context.sendImmediate(to, QUIT) !== SUCCESS) context.advance();
          until(context, () => report.value !== undefined);
          expect(report.value).toBe(direct + queued);
        },
      ),
    );

    it("does not hold up other targets", () =>
      withJob(variant, { tasks: 3, scenario: "hold", laneBytes: 1024 }, ({ client, context, flags }) => {
        const reports: unknown[] = [];
        context.dispatch(RESULT, ({ payload }) => reports.push(JSON.parse(new TextDecoder().decode(payload.slice()))));
        fill(context, client.endpoint(1), 900, true);
        expect(context.sendImmediate(client.endpoint(2), DATA, numbered(0), null, false)).toBe(SUCCESS);
        openGate(flags, 0);
        for (const task of [1, 2])
          while (context.sendImmediate(client.endpoint(task), QUIT) !== SUCCESS) context.advance();
        until(context, () => reports.length === 2);
        expect(reports).toContain(1);
      }));
  });

  describe("the unexpected queue", () => {
    it("keeps messages of every size and delivers them first, in order, once the handler is set", () =>
      alone(variant, (context, self) => {
        const seen: string[] = [];
        const sizes = [5, 0, 3000, 100_000, 8];
        const take = (name: string) => (message: Message) => {
          const number = message.header[0];
          const done = (bytes: Uint8Array) =>
            seen.push(`${name} ${number} ${sameBytes(bytes, pattern(bytes.length, 9)) ? bytes.length : "wrong"}`);
          if (message.immediate) done(message.payload.slice());
          else {
            const bytes = new Uint8Array(message.payloadBytes);
            message.receive(bytes, () => done(bytes));
          }
        };
        const send = (dispatch: number, number: number, bytes: number) =>
          expect(context.send({ to: self, dispatch, header: numbered(number), payload: pattern(bytes, 9) })).toBe(
            SUCCESS,
          );
        for (const [i, bytes] of sizes.entries()) send(DATA, i, bytes);
        send(OTHER, 0, 1);
        for (let i = 0; i < 20; i++) context.advance();
        expect(seen).toEqual([]);
        context.dispatch(DATA, take("data"));
        send(DATA, 5, 4);
        until(context, () => seen.length === 6);
        // A payload that goes to a destination is there when its callback comes, after the handlers of its round.
        expect([...seen].sort()).toEqual([
          "data 0 5",
          "data 1 0",
          "data 2 3000",
          "data 3 100000",
          "data 4 8",
          "data 5 4",
        ]);
        expect(seen.filter((line) => !line.includes("100000"))).toEqual([
          "data 0 5",
          "data 1 0",
          "data 2 3000",
          "data 4 8",
          "data 5 4",
        ]);
        for (let i = 0; i < 5; i++) context.advance();
        expect(seen.length).toBe(6);
        context.dispatch(OTHER, take("other"));
        context.advance();
        expect(seen[6]).toBe("other 0 1");
      }));

    it("at its limit holds that origin back and nobody else, and loses nothing", () =>
      withJob(
        variant,
        {
          tasks: 3,
          scenario: "flood",
          laneBytes: 1024,
          args: { count: 60, bytes: 500 },
          context: { unexpectedBytes: 4000 },
        },
        ({ job, client, context, flags }) => {
          const others: number[] = [];
          context.dispatch(OTHER, (message) => others.push(message.header[0] as number));
          until(context, () => others.length === 60);
          expect(others).toEqual(Array.from({ length: 60 }, (_, i) => i));
          const isPaused = () =>
            job.dump().tasks[0]?.contexts[0]?.lanes.some(({ origin, paused }) => origin[0] === 1 && paused) === true;
          for (const end = Date.now() + PATIENCE; !isPaused() && Date.now() < end; ) context.advance();
          const paused = /^lane 1\.0 → 0\.0: not read for \d+\.\d s, the unexpected queue of 0\.0 is full$/;
          expect(job.dump().stuck).toContainEqual(expect.stringMatching(paused));
          // Asleep, too: what is held back must not keep the task busy.
          expect(context.advanceUntil(() => false, { timeout: 50 })).not.toBe(SUCCESS);
          const data: number[] = [];
          context.dispatch(DATA, (message) => {
            expect([...message.payload]).toEqual(new Array(500).fill(message.header[0]));
            data.push(message.header[0] as number);
          });
          until(context, () => data.length === 60);
          expect(data).toEqual(Array.from({ length: 60 }, (_, i) => i));
          // The origin takes its wish for room back once it has sent all.
          awaitFlag(flags, 3, 2);
          expect([client.size, job.dump().stuck]).toEqual([3, []]);
        },
      ));

    it("keeps nothing of a message that is larger than its limit: that waits for its handler, and those behind it", () =>
      withJob(variant, { tasks: 1, contexts: 2, context: { unexpectedBytes: 1000 } }, ({ job, client, context }) => {
        const other = client.createContext();
        const seen = () => job.dump().tasks[0]?.contexts[0];
        const sizes: number[] = [];
        const take = (message: Message): void => {
          expect(message.payload.length).toBe(message.payloadBytes);
          sizes.push(message.payloadBytes);
        };
        for (const bytes of [3 * MIB, 2000, 1]) {
          context.send({ to: context.endpoint, dispatch: DATA, payload: new Uint8Array(bytes), onLocal: () => {} });
        }
        for (let i = 0; i < 5; i++) context.advance();
        expect(seen()?.unexpectedBytes).toBe(0);
        expect(seen()?.lanes).toMatchObject([{ paused: true }]);
        // Nobody else is held up.
        other.sendImmediate(context.endpoint, OTHER, null, new Uint8Array(992));
        for (let i = 0; i < 5; i++) context.advance();
        expect(seen()?.unexpectedBytes).toBe(992);
        context.dispatch(DATA, take);
        context.dispatch(OTHER, take);
        until(context, () => sizes.length === 4);
        expect(sizes.filter((bytes) => bytes !== 992)).toEqual([3 * MIB, 2000, 1]);
      }));

    it("counts a message of nothing as the 16 bytes of its record", () =>
      withJob(variant, { tasks: 1, context: { unexpectedBytes: 1600 } }, ({ job, context }) => {
        for (let i = 0; i < 1000; i++) expect(context.sendImmediate(context.endpoint, DATA)).toBe(SUCCESS);
        for (let i = 0; i < 10; i++) context.advance();
        expect(job.dump().tasks[0]?.contexts[0]).toMatchObject({ unexpectedBytes: 1600, lanes: [{ paused: true }] });
        let count = 0;
        context.dispatch(DATA, () => count++);
        until(context, () => count === 1000);
        expect(job.dump().tasks[0]?.contexts[0]?.unexpectedBytes).toBe(0);
      }));

    it.each([0, 10, 5000])(
      "gives whoever reads messages() the next one, however long, whatever else waits: %i",
      (limit) =>
        withJob(
          variant,
          { tasks: 1, contexts: 2, context: { unexpectedBytes: limit } },
          async ({ client, context }) => {
            const other = client.createContext();
            other.sendImmediate(context.endpoint, OTHER, null, new Uint8Array(8));
            const sizes = [3 * MIB, 0, 6000, 70_000, 1];
            for (const [i, bytes] of sizes.entries()) {
              const parameters = { to: context.endpoint, dispatch: DATA, header: Uint8Array.of(i), onLocal: () => {} };
              context.send({ ...parameters, payload: pattern(bytes, i) });
            }
            for (let i = 0; i < 5; i++) context.advance();
            let taken = 0;
            for await (const { header, payload } of context.messages(DATA, { timeout: PATIENCE })) {
              expect([...header]).toEqual([taken]);
              expect(sameBytes(payload, pattern(sizes[taken] as number, taken))).toBe(true);
              if (++taken === sizes.length) break;
            }
            let others = 0;
            context.dispatch(OTHER, () => others++);
            until(context, () => others === 1);
          },
        ),
    );

    it("lets a handler set the handler of what follows in the same batch", () =>
      alone(variant, (context, self) => {
        const seen: string[] = [];
        context.dispatch(DATA, () => {
          seen.push("data");
          context.dispatch(OTHER, () => seen.push("other"));
        });
        context.sendImmediate(self, OTHER);
        context.sendImmediate(self, DATA);
        context.sendImmediate(self, OTHER);
        until(context, () => seen.length === 3);
        expect(seen).toEqual(["data", "other", "other"]);
      }));
  });

  describe("reception", () => {
    const large = RECV_IMMEDIATE_MAX + 1000;

    it("receives into any view, and discards", () =>
      alone(variant, (context, self) => {
        const payload = pattern(large);
        const targets = [
          new Uint8Array(large + 10),
          new DataView(new ArrayBuffer(large + 3), 3),
          new Float64Array(new SharedArrayBuffer(Math.ceil(large / 8) * 8)),
        ];
        const done: unknown[] = [];
        let handled = 0;
        context.dispatch(
          DATA,
          (message) => {
            expect([message.immediate, message.payloadBytes, message.payload.length]).toEqual([false, large, 0]);
            const target = targets[handled++];
            if (target === undefined) message.discard();
            else message.receive(target, (cookie, result) => done.push([cookie, result]), handled);
          },
          EARLY,
        );
        for (let i = 0; i < 4; i++) context.send({ to: self, dispatch: DATA, payload, onLocal: () => {} });
        until(context, () => handled === 4 && done.length === 3);
        expect(done).toEqual([
          [1, SUCCESS],
          [2, SUCCESS],
          [3, SUCCESS],
        ]);
        for (const target of targets) {
          expect(sameBytes(new Uint8Array(target.buffer, target.byteOffset, large), payload)).toBe(true);
        }
        expect([...(targets[0] as Uint8Array).subarray(large)]).toEqual(new Array(10).fill(0));
      }));

    const refusals: readonly [string, (message: Message) => void, string, string][] = [
      [
        "a destination that is too small",
        (message) => message.receive(new Uint8Array(10)),
        "PAMIR_TOO_LARGE",
        `the payload has ${large} bytes, the destination 10`,
      ],
      ["a destination that is none", (message) => message.receive(null as never), "PAMIR_INVAL", "destination is null"],
      [
        "a second receive()",
        (message) => {
          message.receive(new Uint8Array(large));
          message.receive(new Uint8Array(large));
        },
        "PAMIR_INVAL",
        "receive() twice",
      ],
      ["neither receive() nor discard()", () => {}, "PAMIR_NO_DESTINATION", `${large} bytes`],
    ];
    for (const [name, answer, code, text] of refusals) {
      it(`drops a large message, and no other, for ${name}`, () =>
        alone(variant, (context, self) => {
          let after = 0;
          context.dispatch(DATA, answer, EARLY);
          context.dispatch(OTHER, () => after++);
          context.send({ to: self, dispatch: DATA, payload: pattern(large) });
          context.sendImmediate(self, OTHER);
          const errors: PamiError[] = [];
          for (let i = 0; i < 20; i++) {
            try {
              context.advance();
            } catch (error) {
              errors.push(error as PamiError);
            }
          }
          expect(errors.map((error) => error.code)).toEqual([code]);
          expect(errors[0]?.message).toContain(text);
          expect(after).toBe(1);
        }));
    }

    it("recvImmediate disabled: nothing comes whole, not even 0 bytes", () =>
      alone(variant, (context, self) => {
        const done: string[] = [];
        context.dispatch(
          DATA,
          (message) => {
            const bytes = new Uint8Array(message.payloadBytes);
            const was = `${message.immediate} ${message.payload.length}`;
            message.receive(bytes, (_, result) =>
              done.push(`${was} ${result} ${sameBytes(bytes, pattern(bytes.length))}`),
            );
            expect(done.length).toBeLessThan(4);
          },
          { recvImmediate: "disable" },
        );
        for (const bytes of [0, 8, 5000, 100_000]) context.send({ to: self, dispatch: DATA, payload: pattern(bytes) });
        until(context, () => done.length === 4);
        expect(done).toEqual(new Array(4).fill("false 0 0 true"));
      }));

    it("recvImmediate enabled: whole up to the limit, a larger send is refused at the call", () =>
      alone(variant, (context, self) => {
        const seen: unknown[] = [];
        context.dispatch(DATA, (message) => seen.push([message.immediate, message.payloadBytes]), {
          recvImmediate: "enable",
        });
        const most = new Uint8Array(RECV_IMMEDIATE_MAX);
        expect(context.send({ to: self, dispatch: DATA, payload: most })).toBe(SUCCESS);
        until(context, () => seen.length === 1);
        expect(seen).toEqual([[true, RECV_IMMEDIATE_MAX]]);
        const { code, text } = thrownBy(() =>
          context.send({ to: self, dispatch: DATA, payload: new Uint8Array(large) }),
        );
        expect(code).toBe("PAMIR_TOO_LARGE");
        expect(text).toContain(`${RECV_IMMEDIATE_MAX} bytes, not ${large}`);
        // The header is padded to 8: one byte of it costs eight.
        const header = new Uint8Array(1);
        expect(thrownBy(() => context.send({ to: self, dispatch: DATA, header, payload: most })).code).toBe(
          "PAMIR_TOO_LARGE",
        );
        const atLimit = most.subarray(8 - 1);
        expect(thrownBy(() => context.send({ to: self, dispatch: DATA, header, payload: atLimit })).code).toBe(
          "PAMIR_TOO_LARGE",
        );
      }));

    it("is not starved by a large message whose rest is still to come", () =>
      withJob(variant, { scenario: "stall", args: { bytes: 3 * MIB } }, async ({ context, flags }) => {
        awaitFlag(flags, 1, 1);
        for (let i = 0; i < 20; i++) context.advance();
        const target = new Uint8Array(3 * MIB);
        let done = 0;
        context.dispatch(DATA, (message) => message.receive(target, () => done++), EARLY);
        // The origin sends nothing before this timer has run.
        setTimeout(() => openGate(flags, 0), 20);
        while (done === 0) await progress(context);
        expect(sameBytes(target, new Uint8Array(3 * MIB).fill(7))).toBe(true);
      }));
  });

  it("who waits for much room sleeps where there is some, as somebody else wants it", () =>
    withJob(variant, { tasks: 1, contexts: 2 }, ({ client, context: origin }) => {
      const target = client.createContext({ unexpectedBytes: 3000 });
      const to = target.endpoint;
      for (const bytes of [1000, 8, 0]) {
        while (origin.sendImmediate(to, DATA, null, new Uint8Array(bytes), false) === SUCCESS);
      }
      let told = 0;
      origin.whenRoom(to, 7000, () => told++);
      // Takes what it may keep; nobody reads the rest.
      expect(origin.sendImmediate(to, DATA, null, new Uint8Array(8), false)).toBe(EAGAIN);
      for (let i = 0; i < 5; i++) target.advance();
      expect(origin.room(to)).toBeGreaterThan(8);
      const advance = vi.spyOn(origin, "advance");
      expect(origin.advanceUntil(() => told > 0, { timeout: 100 })).not.toBe(SUCCESS);
      expect(advance.mock.calls.length).toBeLessThan(1000);
      target.dispatch(DATA, () => {});
      for (let i = 0; i < 5; i++) for (const context of [target, origin]) context.advance();
      expect(told).toBe(1);
    }));

  describe("reserve, commit, abort", () => {
    it("writes in place; fewer bytes may be committed", () =>
      withJob(variant, { scenario: "echo" }, ({ client, context }) => {
        const replies = takeReplies(context);
        const to = client.endpoint(1);
        const cases: readonly [header: number, reserved: number, committed: number | undefined][] = [
          [0, 0, undefined],
          [0, 8, undefined],
          [0, 100, 0],
          [5, 100, 33],
          [16, 7000, 1],
          [9, 60_000, 59_999],
          [0, RECV_IMMEDIATE_MAX, undefined],
        ];
        for (const [header, reserved, committed] of cases) {
          const offset = context.reserve(to, ECHO, reserved, header);
          expect(offset).toBeGreaterThan(0);
          expect(offset % 8).toBe(0);
          client.bytes.set(pattern(header, 3), offset);
          client.bytes.set(pattern(reserved, 4), offset + Math.ceil(header / 8) * 8);
          context.commit(to, committed);
        }
        context.sendImmediate(to, ECHO, numbered(1));
        until(context, () => replies.length === cases.length + 1);
        for (const [i, [header, reserved, committed]] of cases.entries()) {
          const reply = replies[i] as Reply;
          const bytes = committed ?? reserved;
          expect({ i, header: [...reply.header], length: reply.payload.length }).toEqual({
            i,
            header: [...pattern(header, 3)],
            length: bytes,
          });
          expect(sameBytes(reply.payload, pattern(reserved, 4).subarray(0, bytes))).toBe(true);
        }
      }));

    it("holds up what goes to that endpoint, in order, and nothing else; dump() says so", () =>
      withJob(variant, { tasks: 3, scenario: "echo" }, ({ job, client, context }) => {
        const replies = takeReplies(context);
        const [first, second] = [client.endpoint(1), client.endpoint(2)];
        context.sendImmediate(first, ECHO, numbered(0));
        until(context, () => replies.length === 1);
        const offset = context.reserve(first, ECHO, 100);
        expect(context.sendImmediate(first, ECHO, numbered(2), null, false)).toBe(EAGAIN);
        expect(context.sendImmediate(first, ECHO, numbered(2))).toBe(SUCCESS);
        expect(context.sendImmediate(second, ECHO, numbered(9))).toBe(SUCCESS);
        until(context, () => replies.length === 2);
        expect(replies[1]?.origin).toBe(second);
        expect(context.room(first)).toBe(0);
        const line = "lane 0.0 → 1.0: a reservation of 112 bytes is neither committed nor aborted";
        expect(job.dump().stuck).toContain(line);
        expect(String(job.dump())).toContain(`stuck: ${line}`);
        expect(thrownBy(() => context.reserve(first, ECHO, 8)).code).toBe("PAMIR_INVAL");
        client.bytes.fill(1, offset, offset + 100);
        context.commit(first);
        until(context, () => replies.length === 4);
        expect(replies.slice(2).map(({ payload }) => payload.length)).toEqual([100, 0]);
        expect(job.dump().stuck).toEqual([]);
      }));

    it("abort gives the space back and sends nothing", () =>
      withJob(variant, { scenario: "echo" }, ({ job, client, context }) => {
        const replies = takeReplies(context);
        const to = client.endpoint(1);
        // More than a lane's worth, so that the space is used again and again.
        for (let i = 0; i < 100; i++) {
          const offset = context.reserve(to, ECHO, 1000, 8);
          client.bytes.fill(255, offset, offset + 1008);
          context.abort(to);
          if (i % 10 === 0) expect(context.sendImmediate(to, ECHO, numbered(i))).toBe(SUCCESS);
        }
        until(context, () => replies.length === 10);
        expect(replies.map(({ header }) => header[0])).toEqual([0, 10, 20, 30, 40, 50, 60, 70, 80, 90]);
        expect(job.dump().stuck).toEqual([]);
        for (const call of [() => context.commit(to), () => context.abort(to)]) {
          expect(thrownBy(call)).toEqual({
            code: "PAMIR_INVAL",
            text: `commit() or abort() without a reservation to endpoint ${to}`,
          });
        }
        context.reserve(to, ECHO, 10);
        expect(thrownBy(() => context.commit(to, 11)).text).toBe("payloadBytes is 11, not an integer from 0 to 10");
        context.commit(to, 10);
        until(context, () => replies.length === 11);
        expect(replies[10]?.payload.length).toBe(10);
      }));

    it("says EAGAIN when there is no room", () =>
      withJob(variant, { scenario: "hold", laneBytes: 1024 }, ({ client, context, flags }) => {
        const report = takeReport(context);
        const to = client.endpoint(1);
        let count = 0;
        for (; ; count++) {
          const offset = context.reserve(to, DATA, 100);
          if (offset < 0) {
            expect(offset).toBe(-EAGAIN);
            break;
          }
          context.commit(to);
        }
        openGate(flags, 0);
        while (context.sendImmediate(to, QUIT) !== SUCCESS) context.advance();
        until(context, () => report.value !== undefined);
        expect(report.value).toBe(count);
      }));
  });

  describe("advance", () => {
    it("post: at the next advance, and again while EAGAIN, others not held up", () =>
      alone(variant, (context) => {
        const calls: string[] = [];
        let left = 2;
        context.post(() => {
          calls.push("a");
          return left-- > 0 ? EAGAIN : SUCCESS;
        });
        context.post(() => {
          calls.push("b");
          context.post(() => {
            calls.push("c");
          });
        });
        expect(calls).toEqual([]);
        expect(context.advance()).toBe(1);
        expect(calls.splice(0)).toEqual(["a", "b"]);
        expect(context.advance()).toBe(1);
        expect(calls.splice(0)).toEqual(["a", "c"]);
        expect(context.advance()).toBe(1);
        expect(calls.splice(0)).toEqual(["a"]);
        expect(context.advance(10)).toBe(0);
        expect(calls).toEqual([]);
      }));

    it("counts the events of one round, 0 for idle rounds; client.advance takes several contexts", () =>
      withJob(variant, { tasks: 1 }, ({ client, context }) => {
        const other = client.createContext();
        const seen: string[] = [];
        context.dispatch(DATA, () => seen.push("first"));
        other.dispatch(DATA, () => seen.push("second"));
        expect([context.advance(), context.advance(5), client.advance(), client.advance([other], 3)]).toEqual([
          0, 0, 0, 0,
        ]);
        for (let i = 0; i < 3; i++) context.sendImmediate(context.endpoint, DATA);
        context.sendImmediate(other.endpoint, DATA);
        expect(context.advance(1000)).toBe(3);
        expect(context.advance()).toBe(0);
        expect(client.advance([context, other])).toBe(1);
        for (const target of [context, other]) other.sendImmediate(target.endpoint, DATA);
        expect(client.advance()).toBe(2);
        expect(seen).toEqual(["first", "first", "first", "second", "first", "second"]);
      }));

    it("finishes the round when handlers and callbacks throw, then throws: one error itself, several in order", () =>
      alone(variant, (context, self) => {
        const seen: number[] = [];
        context.dispatch(DATA, (message) => {
          const number = message.getInt32(0);
          seen.push(number);
          if (number % 2 === 1) throw new Error(`message ${number}`);
        });
        const send = (number: number) => context.sendImmediate(self, DATA, null, Int32Array.of(number));
        for (const number of [0, 1, 2]) send(number);
        expect(() => context.advance()).toThrow("message 1");
        expect(seen.splice(0)).toEqual([0, 1, 2]);
        expect(context.advance()).toBe(0);
        const fail = (text: string) => () => {
          throw new Error(text);
        };
        context.send({
          to: self,
          dispatch: DATA,
          payload: Int32Array.of(3),
          onLocal: fail("local"),
          onRemote: fail("remote"),
        });
        for (const number of [4, 5]) send(number);
        context.post(fail("work"));
        let posted = 0;
        context.post(() => {
          posted++;
        });
        let error: unknown;
        try {
          context.advance();
        } catch (thrown) {
          error = thrown;
        }
        expect(error).toBeInstanceOf(AggregateError);
        expect((error as AggregateError).errors.map((each: Error) => each.message)).toEqual([
          "local",
          "remote",
          "message 3",
          "message 5",
          "work",
        ]);
        expect((error as Error).message).toBe("5 errors, the first: Error: local");
        expect([seen, posted]).toEqual([[3, 4, 5], 1]);
        expect(context.advance()).toBe(0);
        expect(send(6)).toBe(SUCCESS);
        until(context, () => seen.length === 4);
      }));

    it("is refused within a handler, a callback and posted work, which go on", () =>
      withJob(variant, { tasks: 1 }, ({ client, context }) => {
        const codes: string[] = [];
        const attempt = () => {
          codes.push(thrownBy(() => context.advance()).code);
          codes.push(thrownBy(() => context.advanceUntil(() => true)).code);
          codes.push(thrownBy(() => client.advance()).code);
        };
        context.dispatch(DATA, attempt);
        context.send({ to: context.endpoint, dispatch: DATA, onLocal: attempt });
        context.post(attempt);
        while (context.advance() > 0);
        expect(codes).toEqual(new Array(9).fill("PAMIR_REENTRANT"));
        expect(context.advance()).toBe(0);
      }));
  });

  describe("a job", () => {
    it("gives each task its number, its kernel and what the launcher sends along", () => {
      const tasks = 4;
      const args = { text: "…", list: [1, { two: 2 }] };
      const workerOptions = { workerData: { user: "data" }, argv: ["--flag"] };
      return withJob(
        variant,
        { tasks, scenario: "describe", args, workerOptions },
        async ({ job, client, context }) => {
          const reports: Record<string, unknown>[] = [];
          context.dispatch(RESULT, ({ payload }) =>
            reports.push(JSON.parse(new TextDecoder().decode(payload.slice()))),
          );
          until(context, () => reports.length === 3);
          const kernels = kernelsOf(variant, tasks);
          const sharing = (task: number): number[] => (variant.isLinked ? [task] : [0, 1, 2, 3]);
          expect(job.tasks).toBe(tasks);
          expect([client.task, client.size, client.kernel, client.localTasks]).toEqual([
            0,
            tasks,
            kernels[0],
            sharing(0),
          ]);
          reports.sort((a, b) => (a.task as number) - (b.task as number));
          for (const [i, report] of reports.entries()) {
            expect(report).toMatchObject({
              task: i + 1,
              size: tasks,
              localTasks: sharing(i + 1),
              kernel: kernels[i + 1],
              contexts: [0, 1],
              args: { scenario: "describe", ...args },
              shared: true,
              user: "data",
              argv: ["--flag"],
              sameClient: true,
            });
          }
          const exits = await job.exited;
          expect(exits.map(({ task, code, cause }) => [task, code, cause])).toEqual([
            [1, 0, "exit"],
            [2, 0, "exit"],
            [3, 0, "exit"],
          ]);
        },
      );
    });

    it("has several contexts in each task, each with its own handlers and order", () =>
      withJob(variant, { scenario: "echo", args: { contexts: 3 } }, ({ client, context }) => {
        const contexts = [context, client.createContext(), client.createContext()];
        const all = contexts.map(takeReplies);
        for (let i = 0; i < 50; i++) {
          for (const [from, origin] of contexts.entries()) {
            for (let to = 0; to < 3; to++)
              origin.sendImmediate(client.endpoint(1, to), ECHO, Int32Array.of(from, to, i));
          }
        }
        while (all.some((replies) => replies.length < 150)) client.advance();
        for (const [from, replies] of all.entries()) {
          for (let to = 0; to < 3; to++) {
            const mine = replies.filter(({ origin }) => origin === client.endpoint(1, to));
            const numbers = mine.map(({ header }) => [...new Int32Array(header.buffer)]);
            expect(numbers).toEqual(Array.from({ length: 50 }, (_, i) => [from, to, i]));
          }
        }
      }));

    it("lets endpoints be sent in messages", () =>
      withJob(variant, { scenario: "introduced" }, ({ client, context }) => {
        const other = client.createContext();
        const seen: number[][] = [];
        other.dispatch(OTHER, (message) => seen.push([message.origin, message.getInt32(0)]));
        context.sendImmediate(client.endpoint(1), DATA, null, Uint32Array.of(other.endpoint));
        until(other, () => seen.length === 1);
        expect(seen).toEqual([[client.endpoint(1), 1]]);
      }));
  });
}

for (const variant of LINKED_VARIANTS) describe(`messages: ${variant.name}`, () => messageSuite(variant));
