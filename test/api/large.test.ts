// Large messages: whole and in place at any size, one copy into a buffer, kept or given away, and bounded.
import {
  type Client,
  type Context,
  EAGAIN,
  type Job,
  type MemRegion,
  type Message,
  type Result,
  SHUTDOWN,
  SUCCESS,
} from "pamir";
import { describe, expect, it } from "vitest";
import { BUFFER_PAYLOAD_MIN, POOL_UNREAD_MAX } from "../../assembly/layout.js";
import {
  DATA,
  fillHeap,
  LINKED_VARIANTS,
  OTHER,
  PATIENCE,
  pattern,
  sameBytes,
  thrownBy,
  until,
  type Variant,
  withJob,
} from "./support.js";

const KIB = 1024;
const MIB = 1024 * KIB;
const nothing = () => {};

interface Pair {
  readonly job: Job;
  readonly client: Client;
  readonly origin: Context;
  readonly target: Context;
}

/** Two contexts of one thread, so that a test decides which makes a step, and when. */
function pair<T>(variant: Variant, heapBytes: number, body: (pair: Pair) => T | Promise<T>): Promise<T> {
  return withJob(variant, { tasks: 1, contexts: 2, heapBytes }, ({ job, client, context }) =>
    body({ job, client, origin: context, target: client.createContext() }),
  );
}

function step(contexts: readonly Context[], rounds = 20): void {
  for (let round = 0; round < rounds; round++) for (const context of contexts) context.advance();
}

describe.each(LINKED_VARIANTS)("large messages: $name", (variant) => {
  const SIZES = [BUFFER_PAYLOAD_MIN - 1, BUFFER_PAYLOAD_MIN, 69_632, 69_633, 262_144, MIB + 1, 3 * MIB];

  describe("a handler runs once the whole message is there", () => {
    for (const [name, spare] of [
      ["in a buffer", Number.POSITIVE_INFINITY],
      ["in packets, where the heap has no room for one", 0],
    ] as const) {
      it(`and reads it in place: ${name}`, () =>
        pair(variant, 16 * MIB, ({ client, origin, target }) => {
          // The lanes are there before the heap is full.
          target.dispatch(OTHER, nothing);
          origin.sendImmediate(target.endpoint, OTHER);
          step([origin, target]);
          if (spare === 0) fillHeap(client);
          const came: unknown[] = [];
          let expected = new Uint8Array();
          target.dispatch(DATA, (message) => {
            const { immediate, payloadBytes, header, payload } = message;
            came.push([immediate, payloadBytes, [...header], sameBytes(payload, expected), message.getUint8(3)]);
          });
          for (const [number, bytes] of SIZES.entries()) {
            expected = pattern(bytes, number);
            const header = pattern(number * 5, 1);
            const sent = origin.send({
              to: target.endpoint,
              dispatch: DATA,
              header,
              payload: expected,
              onLocal: nothing,
            });
            expect(sent).toBe(SUCCESS);
            step([origin, target], 1500);
            expect(came).toEqual([[true, bytes, [...header], true, expected[3]]]);
            came.length = 0;
          }
        }));
    }

    it("and its bytes are the sender's again when send() returns, also without onLocal", () =>
      pair(variant, 16 * MIB, ({ origin, target }) => {
        const payload = pattern(MIB);
        const sums: boolean[] = [];
        target.dispatch(DATA, (message) => sums.push(sameBytes(message.payload, pattern(MIB))));
        expect(origin.send({ to: target.endpoint, dispatch: DATA, payload })).toBe(SUCCESS);
        payload.fill(0);
        step([origin, target]);
        expect(sums).toEqual([true]);
      }));

    it("also the handler of a call, and its caller", () =>
      withJob(variant, { scenario: "callee", module: "large.js", heapBytes: 16 * MIB }, async ({ client, context }) => {
        for (const bytes of SIZES) {
          const request = pattern(bytes, 7);
          const reply = await context.call(client.endpoint(1), DATA, request);
          expect([bytes, sameBytes(reply, request)]).toEqual([bytes, true]);
        }
      }));

    it("in the order sent, among small messages and of every size", () =>
      pair(variant, 16 * MIB, ({ origin, target }) => {
        const numbers: number[] = [];
        target.dispatch(DATA, (message) => numbers.push(message.getInt32(0)));
        for (let number = 0; number < 200; number++) {
          const payload = new Uint8Array([8, 100, 20_000, 100_000, 500_000][number % 5] as number);
          new DataView(payload.buffer).setInt32(0, number, true);
          expect(origin.send({ to: target.endpoint, dispatch: DATA, payload, onLocal: nothing })).toBe(SUCCESS);
          if (number % 7 === 0) step([target], 1);
        }
        step([origin, target], 400);
        expect(numbers).toEqual(Array.from({ length: 200 }, (_, i) => i));
      }));

    it("early: it says by receive() where a large payload goes; a small one is there", () =>
      pair(variant, 16 * MIB, ({ origin, target }) => {
        const came: unknown[] = [];
        target.dispatch(
          DATA,
          (message) => {
            const { immediate, payloadBytes } = message;
            const place = new Uint8Array(payloadBytes);
            message.receive(place, (_, result) =>
              came.push([immediate, payloadBytes, result, sameBytes(place, pattern(payloadBytes))]),
            );
          },
          { delivery: "early" },
        );
        for (const bytes of [100, 30_000, 69_633, MIB]) {
          origin.send({ to: target.endpoint, dispatch: DATA, payload: pattern(bytes), onLocal: nothing });
        }
        step([origin, target], 100);
        expect(came).toEqual([
          [true, 100, SUCCESS, true],
          [true, 30_000, SUCCESS, true],
          [false, 69_633, SUCCESS, true],
          [false, MIB, SUCCESS, true],
        ]);
      }));

    it("a handler that throws loses no other message, and its buffer comes back", () =>
      pair(variant, 16 * MIB, ({ origin, target }) => {
        let handled = 0;
        target.dispatch(DATA, () => {
          handled++;
          throw new Error("no");
        });
        for (let i = 0; i < 40; i++) {
          expect(origin.send({ to: target.endpoint, dispatch: DATA, payload: new Uint8Array(MIB), queue: false })).toBe(
            SUCCESS,
          );
          expect(() => target.advance()).toThrow("no");
        }
        expect(handled).toBe(40);
      }));
  });

  describe("bounds", () => {
    it("a target that reads nothing gets so many bytes in buffers, then EAGAIN, and is told of in room()", () =>
      pair(variant, 64 * MIB, ({ origin, target }) => {
        const to = target.endpoint;
        const payload = new Uint8Array(256 * KIB);
        const told: Result[] = [];
        target.dispatch(OTHER, nothing);
        // A grown lane, whose room is more than the least payload of a buffer.
        origin.send({ to, dispatch: OTHER, payload: new Uint8Array(BUFFER_PAYLOAD_MIN - 1) });
        step([origin, target]);
        expect(origin.room(to)).toBeGreaterThanOrEqual(256 * KIB);
        let sent = 0;
        while (origin.send({ to, dispatch: DATA, payload, queue: false }) === SUCCESS) sent++;
        expect(sent).toBe(POOL_UNREAD_MAX / (256 * KIB));
        expect(origin.room(to)).toBe(BUFFER_PAYLOAD_MIN - 1);
        // What is small goes on.
        expect(origin.send({ to, dispatch: DATA, payload: new Uint8Array(100), queue: false })).toBe(SUCCESS);
        origin.whenRoom(to, 256 * KIB, (_, result) => told.push(result));
        step([origin]);
        expect(told).toEqual([]);
        let handled = 0;
        target.dispatch(DATA, () => handled++);
        step([target, origin]);
        expect([handled, told]).toEqual([sent + 1, [SUCCESS]]);
        expect(origin.send({ to, dispatch: DATA, payload, queue: false })).toBe(SUCCESS);
      }));

    it("two buffers go to a target, however large", () =>
      pair(variant, 64 * MIB, ({ origin, target }) => {
        const payload = new Uint8Array(6 * MIB);
        let sent = 0;
        while (origin.send({ to: target.endpoint, dispatch: DATA, payload, queue: false }) === SUCCESS) sent++;
        expect(sent).toBe(2);
      }));

    it("a target that is slow starves no other: the pool has buffers for that, or its messages go in packets", () =>
      withJob(variant, { tasks: 1, contexts: 3, heapBytes: 16 * MIB }, ({ client, context: origin }) => {
        const [slow, fast] = [client.createContext(), client.createContext()];
        const payload = pattern(MIB);
        while (origin.send({ to: slow.endpoint, dispatch: DATA, payload, queue: false }) === SUCCESS);
        let right = 0;
        fast.dispatch(DATA, (message) => {
          if (sameBytes(message.payload, payload)) right++;
        });
        for (let i = 0; i < 20; i++) {
          while (
            origin.send({ to: fast.endpoint, dispatch: DATA, payload, onLocal: nothing, queue: false }) === EAGAIN
          ) {
            step([fast, origin], 1);
          }
        }
        step([fast, origin], 100);
        expect(right).toBe(20);
      }));

    it("a pool has no more than its share of half of the heap, and gives it back where a region needs it", () =>
      withJob(variant, { tasks: 1, contexts: 2, heapBytes: 16 * MIB }, ({ job, client, context: origin }) => {
        const target = client.createContext();
        target.dispatch(DATA, nothing);
        for (let round = 0; round < 30; round++) {
          for (const bytes of [MIB, 300 * KIB, 20 * KIB, 2 * MIB]) {
            origin.send({ to: target.endpoint, dispatch: DATA, payload: new Uint8Array(bytes), onLocal: nothing });
          }
          step([origin, target], 2);
        }
        step([origin, target]);
        const { pooled } = job.dump().heap;
        expect(pooled).toBeGreaterThan(MIB);
        expect(pooled).toBeLessThanOrEqual(8 * MIB);
        const region = client.createRegion(12 * MIB);
        expect(job.dump().heap.pooled).toBeLessThan(2 * MIB);
        region.close();
      }));

    it("waits in the pending queue for a buffer, is woken, and keeps the order", () =>
      withJob(variant, { scenario: "slow", module: "large.js", heapBytes: 32 * MIB }, ({ client, context }) => {
        const numbers: number[] = [];
        let done = 0;
        context.dispatch(OTHER, (message) => numbers.push(message.getInt32(0)));
        const payload = new Int32Array(MIB / 4);
        for (let number = 0; number < 30; number++) {
          const own = payload.slice();
          own[0] = number;
          expect(context.send({ to: client.endpoint(1), dispatch: DATA, payload: own, onLocal: () => done++ })).toBe(
            SUCCESS,
          );
        }
        until(context, () => done === 30 && numbers.length === 30);
        expect(numbers).toEqual(Array.from({ length: 30 }, (_, i) => i));
      }));
  });

  describe("keep()", () => {
    it("is a region of its task, without a copy, until it is closed; the pool goes on", () =>
      pair(variant, 32 * MIB, ({ job, origin, target }) => {
        const kept: MemRegion[] = [];
        const places: number[] = [];
        target.dispatch(DATA, (message) => {
          places.push(message.payloadOffset);
          const region = message.keep();
          expect(message.keep()).toBe(region);
          kept.push(region);
        });
        for (let i = 0; i < 6; i++) {
          origin.send({ to: target.endpoint, dispatch: DATA, payload: pattern(300_000, i), onLocal: nothing });
          step([origin, target]);
        }
        expect(kept.map(({ bytes }) => bytes.byteOffset)).toEqual(places);
        expect(kept.every(({ bytes }, i) => sameBytes(bytes, pattern(300_000, i)))).toBe(true);
        expect(job.dump().heap.kept).toBeGreaterThanOrEqual(6 * 300_000);
        for (const region of kept) region.close();
        expect(job.dump().heap.kept).toBe(0);
      }));

    it("copies what came in no buffer, in a region of its own", () =>
      pair(variant, 32 * MIB, ({ origin, target }) => {
        const kept: MemRegion[] = [];
        target.dispatch(DATA, (message) => kept.push(message.keep()));
        for (const bytes of [1, 100, 5000]) {
          origin.send({ to: target.endpoint, dispatch: DATA, header: pattern(3), payload: pattern(bytes) });
        }
        step([origin, target]);
        origin.send({ to: target.endpoint, dispatch: OTHER, payload: pattern(5000, 9) });
        step([origin, target]);
        expect(kept.map(({ bytes }) => sameBytes(bytes, pattern(bytes.length)))).toEqual([true, true, true]);
      }));

    it("is refused beyond the share of its task, with the numbers; the payload can be read, and the others go on", () =>
      withJob(variant, { tasks: 1, contexts: 2, heapBytes: 8 * MIB }, ({ client, context: origin }) => {
        const target = client.createContext();
        const kept: MemRegion[] = [];
        const errors: string[] = [];
        target.dispatch(DATA, (message) => {
          try {
            kept.push(message.keep());
          } catch (error) {
            errors.push((error as Error).message);
            expect(sameBytes(message.payload, pattern(MIB))).toBe(true);
          }
        });
        for (let i = 0; i < 8; i++) {
          origin.send({ to: target.endpoint, dispatch: DATA, payload: pattern(MIB), onLocal: nothing });
          step([origin, target], 40);
        }
        expect(kept.length).toBeGreaterThan(0);
        expect(kept.length).toBeLessThanOrEqual(4);
        expect(kept.length + errors.length).toBe(8);
        for (const region of kept) region.close();
        origin.send({ to: target.endpoint, dispatch: DATA, payload: pattern(MIB), onLocal: nothing });
        step([origin, target], 40);
        expect(kept.length + errors.length).toBe(9);
        expect(kept.at(-1)?.closed).toBe(false);
      }));

    it("outside of the handler, of nothing, and of what is not here is PAMIR_INVAL", () =>
      pair(variant, 16 * MIB, ({ origin, target }) => {
        let seen: Message | undefined;
        const codes: string[] = [];
        target.dispatch(DATA, (message) => {
          seen = message;
          if (message.payloadBytes === 0) codes.push(thrownBy(() => message.keep()).code);
        });
        target.dispatch(
          OTHER,
          (message) => {
            codes.push(thrownBy(() => message.keep()).code);
            message.discard();
          },
          { delivery: "early" },
        );
        origin.send({ to: target.endpoint, dispatch: DATA });
        origin.send({ to: target.endpoint, dispatch: OTHER, payload: new Uint8Array(MIB), onLocal: nothing });
        origin.send({ to: target.endpoint, dispatch: DATA, payload: new Uint8Array(MIB), onLocal: nothing });
        step([origin, target], 40);
        expect(codes).toEqual(["PAMIR_INVAL", "PAMIR_INVAL"]);
        expect(thrownBy(() => seen?.keep())).toEqual({
          code: "PAMIR_INVAL",
          text: "keep() outside of the message's handler",
        });
      }));
  });

  describe("transfer", () => {
    it("gives a region away without a copy: it is closed here, and read, kept or freed over there", () =>
      pair(variant, 32 * MIB, ({ job, client, origin, target }) => {
        const kept: MemRegion[] = [];
        let place = 0;
        target.dispatch(DATA, (message) => {
          place = message.payloadOffset;
          if (message.headerBytes > 0) kept.push(message.keep());
        });
        step([origin, target]);
        for (const header of [undefined, Uint8Array.of(1)]) {
          const region = client.createRegion(500_000);
          const { byteOffset } = region.bytes;
          region.bytes.set(pattern(500_000));
          const sent = origin.send({
            to: target.endpoint,
            dispatch: DATA,
            header,
            payload: region.bytes,
            transfer: true,
          });
          expect([sent, region.closed]).toEqual([SUCCESS, true]);
          step([origin, target]);
          expect(place).toBe(byteOffset);
        }
        expect(sameBytes((kept[0] as MemRegion).bytes, pattern(500_000))).toBe(true);
        // Back and forth: what is kept may be given away again.
        const again = kept.pop() as MemRegion;
        origin.dispatch(DATA, (message) => kept.push(message.keep()));
        expect(target.send({ to: origin.endpoint, dispatch: DATA, payload: again.bytes, transfer: true })).toBe(
          SUCCESS,
        );
        step([origin, target]);
        expect(sameBytes((kept[0] as MemRegion).bytes, pattern(500_000))).toBe(true);
        kept.pop()?.close();
        expect(job.dump().heap.kept).toBe(0);
      }));

    it("of a part of a region gives all of it, and the message is that part", () =>
      pair(variant, 32 * MIB, ({ client, origin, target }) => {
        const region = client.createRegion(100_000);
        region.bytes.set(pattern(100_000));
        const came: boolean[] = [];
        target.dispatch(DATA, (message) => {
          const kept = message.keep();
          came.push(sameBytes(kept.bytes, pattern(100_000).subarray(3, 777)));
          kept.close();
        });
        origin.send({ to: target.endpoint, dispatch: DATA, payload: region.bytes.subarray(3, 777), transfer: true });
        step([origin, target]);
        expect(came).toEqual([true]);
      }));

    it("waits in the pending queue behind others; a refused one stays the caller's", () =>
      pair(variant, 32 * MIB, ({ client, origin, target }) => {
        const to = target.endpoint;
        for (const bytes of [1000, 0]) {
          const payload = new Uint8Array(bytes);
          while (origin.send({ to, dispatch: OTHER, payload, queue: false }) === SUCCESS);
        }
        const region = client.createRegion(100_000);
        region.bytes.fill(5);
        expect(origin.send({ to, dispatch: DATA, payload: region.bytes, transfer: true, queue: false })).toBe(EAGAIN);
        expect(region.closed).toBe(false);
        expect(origin.send({ to, dispatch: DATA, payload: region.bytes, transfer: true })).toBe(SUCCESS);
        expect(region.closed).toBe(true);
        let right = false;
        target.dispatch(OTHER, nothing);
        target.dispatch(DATA, (message) => {
          right = message.payload.every((byte) => byte === 5);
        });
        step([target, origin], 50);
        expect(right).toBe(true);
      }));

    const refusals: [string, (client: Client) => object][] = [
      [
        "a handle that was read",
        (client) => {
          const region = client.createRegion(10);
          void region.handle;
          return { payload: region.bytes };
        },
      ],
      ["ordinary memory", () => ({ payload: new Uint8Array(10) })],
      [
        "a closed region",
        (client) => {
          const region = client.createRegion(10);
          region.close();
          return { payload: region.bytes };
        },
      ],
      ["no payload", () => ({})],
      ["rendezvous too", (client) => ({ payload: client.createRegion(10).bytes, rendezvous: true, onLocal: nothing })],
      ["what is no boolean", (client) => ({ payload: client.createRegion(10).bytes, transfer: 3 })],
    ];
    it.each(refusals)("is PAMIR_INVAL for %s", (_, parameters) =>
      pair(variant, 16 * MIB, ({ client, origin, target }) => {
        const given = { to: target.endpoint, dispatch: DATA, transfer: true, ...parameters(client) };
        expect(thrownBy(() => origin.send(given as never)).code).toBe("PAMIR_INVAL");
      }),
    );

    it("a region that a put names is not given away", () =>
      pair(variant, 16 * MIB, ({ client, origin, target }) => {
        const [local, remote] = [client.createRegion(100), client.createRegion(100)];
        origin.put({ to: target.endpoint, local, remote: remote.handle });
        const given = { to: target.endpoint, dispatch: DATA, payload: local.bytes, transfer: true };
        expect(thrownBy(() => origin.send(given)).code).toBe("PAMIR_INVAL");
      }));
  });

  describe("ends", () => {
    it("the target's: nothing that was sent to it is lost to the heap", () =>
      pair(variant, 32 * MIB, ({ job, client, origin, target }) => {
        const to = target.endpoint;
        const kept: MemRegion[] = [];
        target.dispatch(DATA, (message) => void (kept.length < 1 && kept.push(message.keep())));
        for (let i = 0; i < 2; i++) origin.send({ to, dispatch: DATA, payload: new Uint8Array(MIB), onLocal: nothing });
        step([target], 1);
        const region = client.createRegion(MIB);
        expect(origin.send({ to, dispatch: OTHER, payload: region.bytes, transfer: true })).toBe(SUCCESS);
        for (let i = 0; i < 2; i++)
          origin.send({ to, dispatch: OTHER, payload: new Uint8Array(MIB), onLocal: nothing });
        const told: Result[] = [];
        for (let i = 0; i < 9; i++) {
          origin.send({ to, dispatch: OTHER, payload: new Uint8Array(MIB), onLocal: (_, result) => told.push(result) });
        }
        target.close();
        step([origin], 50);
        expect(told.at(-1)).toBe(SHUTDOWN);
        expect(origin.send({ to, dispatch: DATA, payload: new Uint8Array(MIB) })).toBe(SHUTDOWN);
        kept[0]?.close();
        origin.close();
        const { free, bytes, pooled } = job.dump().heap;
        // But for the page of the pool's slots.
        expect(bytes - free - pooled).toBeLessThanOrEqual(4096);
      }));

    it("the origin's context: what it sent is delivered, and its buffers are used again", () =>
      withJob(variant, { tasks: 1, contexts: 3, heapBytes: 32 * MIB }, ({ job, client, context: origin }) => {
        const target = client.createContext();
        for (let i = 0; i < 3; i++) {
          origin.send({ to: target.endpoint, dispatch: DATA, payload: pattern(MIB, i), onLocal: nothing });
        }
        origin.close();
        const came: boolean[] = [];
        target.dispatch(DATA, (message) => came.push(sameBytes(message.payload, pattern(MIB, came.length))));
        step([target], 50);
        expect(came).toEqual([true, true, true]);
        const before = job.dump().heap.pooled;
        const third = client.createContext();
        for (let i = 0; i < 20; i++) {
          third.send({ to: target.endpoint, dispatch: DATA, payload: pattern(MIB, i), onLocal: nothing });
          step([target, third], 5);
        }
        expect(job.dump().heap.pooled).toBeLessThanOrEqual(Math.max(before, 5 * MIB));
      }));

    for (const dies of ["origin", "target"] as const) {
      // Between nodes, a task's last messages may be lost with it.
      it.skipIf(variant.isLinked && dies === "origin")(
        `a task that dies as the ${dies}: all that was committed comes, and all memory comes back`,
        () =>
          withJob(
            variant,
            { tasks: 2, scenario: `dying ${dies}`, module: "large.js", heapBytes: 32 * MIB, onExit: nothing },
            async ({ job, client, context }) => {
              const to = client.endpoint(1);
              let came = 0;
              const kept: MemRegion[] = [];
              context.dispatch(DATA, (message) => {
                if (sameBytes(message.payload, pattern(MIB))) came++;
                if (came === 2) kept.push(message.keep());
              });
              if (dies === "target") {
                const results: Result[] = [];
                for (let i = 0; i < 10; i++) {
                  context.send({
                    to,
                    dispatch: DATA,
                    payload: pattern(MIB),
                    onLocal: (_, result) => results.push(result),
                  });
                }
                await context.whenEnded(to, { timeout: PATIENCE });
                until(context, () => results.length === 10);
              } else {
                await context.whenEnded(to, { timeout: PATIENCE });
                expect(came).toBe(3);
                expect(sameBytes((kept[0] as MemRegion).bytes, pattern(MIB))).toBe(true);
              }
              kept[0]?.close();
              until(context, () => {
                context.advance();
                const { free, bytes, pooled } = job.dump().heap;
                return bytes - free - pooled <= 64 * KIB;
              });
            },
          ),
      );
    }
  });
});
