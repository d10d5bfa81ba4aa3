// The origin's side of eager messages without a client: what is under way to one target (PeerSet, Peer), and the Sender above
// them. Both tasks are this thread's; the target reads only when a test has it advance.
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  CONTEXT_PENDING_BYTES_OFFSET,
  CONTEXT_PENDING_COUNT_OFFSET,
  DISPATCH_ID_CALL,
  DISPATCH_ID_MAX,
  HEADER_BYTES_MAX,
  RECV_IMMEDIATE_MAX,
  SEND_IMMEDIATE_MAX,
} from "../../assembly/layout.js";
import { CANCELED, type Callback, EAGAIN, type Result, SHUTDOWN, SUCCESS } from "../../src/core/result.js";
import type { ContextCore } from "../../src/protocol/context-core.js";
import { Peer } from "../../src/protocol/eager/peer.js";
import { PeerSet } from "../../src/protocol/eager/peer-set.js";
import type { SendRequest } from "../../src/protocol/eager/pending.js";
import { Sender } from "../../src/protocol/eager/sender.js";
import { baseOf, CoresJob, fillHeap, type PartsBase } from "../support/cores.js";

const ID = 5;
const PENDING_MAX = 1000;
/** Bytes of a payload that no first lane takes as one record: it goes in a larger one, in a buffer, or in packets. */
const LARGE = 90_000;

interface Told {
  readonly name: unknown;
  readonly result: Result;
}

describe.each(["wasm", "ts"] as const)("%s", (kernel) => {
  let job: CoresJob;
  let parts: PartsBase;
  let reader: ContextCore;
  let came: Uint8Array[];
  let told: Told[];

  beforeEach(() => {
    job = CoresJob.shared([kernel]);
    parts = baseOf(job.task(0), 0);
    reader = job.open(1);
    came = [];
    told = [];
    reader.receiver.dispatch(ID, (message) => void came.push(message.payload.slice()), {});
  });

  afterEach(() => job.close());

  const tell: Callback = (name, result) => void told.push({ name, result });
  const run = (): void => {
    const errors: unknown[] = [];
    parts.base.completions.run(errors);
    expect(errors).toEqual([]);
  };
  const word = (offset: number): number => parts.base.memory.words[(parts.base.block + offset) >>> 2] as number;

  describe("a target", () => {
    let peerSet: PeerSet;
    let target: Peer;

    beforeEach(() => {
      peerSet = new PeerSet(parts.base, parts.rendezvous.sender, PENDING_MAX);
      target = new Peer(peerSet, reader.ordinal);
    });

    const direct = (): number => peerSet.direct[reader.ordinal] as number;
    const lane = (): number => parts.base.lanes.open[reader.ordinal] as number;

    /** The two counters agree with each other, and with what the memory says. */
    const expectBusy = (busy: number): void => {
      expect([peerSet.busy, parts.base.activity.busy - parts.base.completions.length]).toEqual([busy, busy]);
      expect(word(CONTEXT_PENDING_BYTES_OFFSET)).toBe(peerSet.pendingBytes);
    };

    const submit = (payload: Uint8Array, queue = true, name?: string, isOwn = false): Result => {
      const instruction: SendRequest = {
        dispatch: ID,
        header: undefined,
        payload,
        payloadBytes: payload.length,
        region: undefined,
        onLocal: name === undefined ? undefined : tell,
        onRemote: undefined,
        cookie: name,
        held: 0,
        sent: -1,
        offer: undefined,
        gift: undefined,
      };
      return target.submit(instruction, payload.length, true, queue, isOwn);
    };
    /** Fills the lane, so that the next message has to wait. Returns how many messages it holds. */
    const fill = (): number => {
      let count = 0;
      while (submit(new Uint8Array(8).fill(count), false) === SUCCESS) count++;
      return count;
    };
    /** The target reads all, and the sender sends what waits, until nothing does. */
    const drain = (): void => {
      for (let turns = 0; turns < 20; turns++) {
        job.advance();
        target.flush();
      }
      job.advance();
    };

    it("has its direct path open once there is a lane, and nothing is pending", () => {
      expect(direct()).toBe(0);
      expect(submit(new Uint8Array(8))).toBe(SUCCESS);
      expect(direct()).toBe(lane());
      fill();
      expect(direct()).toBe(0);
      expectBusy(0);
      expect(submit(new Uint8Array(8))).toBe(SUCCESS);
      expect(target.isBusy).toBe(true);
      expect(direct()).toBe(0);
      expectBusy(1);
      drain();
      expect(direct()).toBe(lane());
      expectBusy(0);
    });

    it("counts once however much is pending and however many wait for room", () => {
      fill();
      for (let i = 0; i < 3; i++) {
        expect(submit(new Uint8Array(100))).toBe(SUCCESS);
        target.whenRoom(50, tell, i);
        expectBusy(1);
      }
      expect(peerSet.pendingBytes).toBe(300);
      expect(word(CONTEXT_PENDING_COUNT_OFFSET)).toBe(3);
      drain();
      expectBusy(0);
      expect(peerSet.pendingBytes).toBe(0);
      expect(word(CONTEXT_PENDING_COUNT_OFFSET)).toBe(0);
      run();
      expect(told).toEqual([0, 1, 2].map((name) => ({ name, result: SUCCESS })));
      expect(parts.base.activity.busy).toBe(0);
    });

    it.each([
      ["one below the limit", PENDING_MAX - 1, SUCCESS],
      ["at the limit", PENDING_MAX, SUCCESS],
      ["one above it", PENDING_MAX + 1, EAGAIN],
    ])("%s of the pending queue: %i bytes", (_, bytes, result) => {
      const before = fill();
      expect(submit(new Uint8Array(bytes))).toBe(result);
      expect(peerSet.pendingBytes).toBe(result === SUCCESS ? bytes : 0);
      expectBusy(result === SUCCESS ? 1 : 0);
      drain();
      expect(came.length).toBe(before + (result === SUCCESS ? 1 : 0));
      expect(submit(new Uint8Array(bytes))).toBe(SUCCESS);
    });

    it("the limit holds for all targets of a context together, to the byte", () => {
      const other = new Peer(peerSet, job.open(1).ordinal);
      fill();
      expect(submit(new Uint8Array(600))).toBe(SUCCESS);
      expect(submit(new Uint8Array(401))).toBe(EAGAIN);
      expect(other.isBusy).toBe(false);
      expect(submit(new Uint8Array(400))).toBe(SUCCESS);
      expect(submit(new Uint8Array(0))).toBe(SUCCESS);
      expect(submit(new Uint8Array(1))).toBe(EAGAIN);
      expect(submit(new Uint8Array(1), true, undefined, true)).toBe(SUCCESS);
      expect(peerSet.pendingBytes).toBe(1001);
      drain();
      expect(peerSet.pendingBytes).toBe(0);
      expect(came.slice(-4).map(({ length }) => length)).toEqual([600, 400, 0, 1]);
    });

    it("keeps the order of direct messages, pending ones, and those in packets", () => {
      expect(submit(new Uint8Array(8))).toBe(SUCCESS);
      const giveBack = fillHeap(job.task(0));
      const count = fill() + 1;
      const expected = Array.from({ length: count }, () => 8);
      // In packets: there is no memory for a larger lane, nor for a buffer. Its bytes are the caller's, and do not count.
      const large = new Uint8Array(LARGE).map((_, i) => i * 7);
      const instruction = { dispatch: ID, header: undefined, payload: large, payloadBytes: LARGE, onLocal: tell };
      const none = { region: undefined, onRemote: undefined, offer: undefined, gift: undefined };
      expect(
        target.submit({ ...instruction, ...none, cookie: "large", held: 0, sent: -1 }, 0, false, true, false),
      ).toBe(SUCCESS);
      for (let i = 1; i <= 5; i++) {
        expect(submit(new Uint8Array(i).fill(i))).toBe(SUCCESS);
        expected.push(i);
      }
      expected.splice(count, 0, LARGE);
      for (let turns = 0; came.length < expected.length && turns < 200; turns++) {
        job.advance();
        target.flush();
      }
      expect(came.map(({ length }) => length)).toEqual(expected);
      expect(Buffer.compare(came[count] as Uint8Array, large)).toBe(0);
      run();
      expect(told).toEqual([{ name: "large", result: SUCCESS }]);
      expectBusy(0);
      expect(direct()).toBe(lane());
      giveBack();
    });

    it("refuses without the queue, and says at once that it is still full until there is room", () => {
      fill();
      expect(target.isStillFull(8, 0)).toBe(true);
      expect(submit(new Uint8Array(8), false)).toBe(EAGAIN);
      expectBusy(0);
      job.advance();
      expect(target.isStillFull(8, 0)).toBe(false);
      expect(submit(new Uint8Array(8), false)).toBe(SUCCESS);
      expect(direct()).toBe(lane());
    });

    it("opens its direct path by hasRoom(), after a refusal, once the target has read", () => {
      fill();
      expect(target.hasRoom()).toBe(false);
      expect(direct()).toBe(0);
      job.advance();
      expect(target.hasRoom()).toBe(true);
      expect(direct()).toBe(lane());
      expect(target.hasRoom()).toBe(false);
    });

    it("room() is exactly what is accepted, and 0 while something is before it", () => {
      for (const bytes of [0, 100, 900]) {
        submit(new Uint8Array(bytes));
        const room = target.room();
        expect(room).toBeGreaterThan(0);
      }
      for (let room = target.room(); room < 200 ? room > 0 : true; room = target.room()) {
        expect(submit(new Uint8Array(Math.min(room, 500)), false)).toBe(SUCCESS);
      }
      drain();
      const room = target.room();
      expect(target.reserve(reader.endpoint, ID, 0, 8)).toBeGreaterThan(0);
      expect(target.room()).toBe(0);
      target.endReservation(undefined);
      expect(target.room()).toBe(room);
      fill();
      submit(new Uint8Array(8));
      expect(target.room()).toBe(0);
    });

    it("forgets a wish: the counter is 0 again, the direct path open, and nothing is told", () => {
      expect(submit(new Uint8Array(8))).toBe(SUCCESS);
      target.whenRoom(3000, tell, "a");
      expectBusy(1);
      expect(direct()).toBe(0);
      target.forgetRoom(() => {});
      expectBusy(1);
      target.forgetRoom(tell);
      expectBusy(0);
      expect(direct()).toBe(lane());
      expect(target.flush()).toBe(0);
      run();
      expect(told).toEqual([]);
    });

    it("ends: all that waits gets SHUTDOWN in order, its counters are 0, and nothing is accepted", () => {
      fill();
      for (const name of ["a", "b"]) expect(submit(new Uint8Array(10), true, name)).toBe(SUCCESS);
      target.whenRoom(8, tell, "room");
      expectBusy(1);
      job.die(1);
      parts.base.lanes.reclaim(reader.ordinal);
      target.end();
      expectBusy(0);
      expect(peerSet.pendingBytes).toBe(0);
      expect([direct(), target.room(), target.isBusy]).toEqual([0, 0, false]);
      run();
      expect(told).toEqual(["a", "b", "room"].map((name) => ({ name, result: SHUTDOWN })));
      expect(submit(new Uint8Array(8), true, "late")).toBe(SHUTDOWN);
      target.whenRoom(8, tell, "late room");
      expect(target.reserve(reader.endpoint, ID, 0, 8)).toBe(-SHUTDOWN);
      target.end();
      expectBusy(0);
      run();
      expect(told.slice(3)).toEqual(["late", "late room"].map((name) => ({ name, result: SHUTDOWN })));
      expect(parts.base.activity.busy).toBe(0);
    });

    it("finds by itself that the target has ended, where it has no lane yet", () => {
      job.die(1);
      expect(submit(new Uint8Array(8), true, "a")).toBe(SHUTDOWN);
      expect(target.resume()).toBe(SHUTDOWN);
      expectBusy(0);
    });

    it("purges its lane and opens another one: the direct path follows", () => {
      expect(target.resume()).toBe(SUCCESS);
      expect(direct()).toBe(lane());
      expect(target.purge()).toBe(true);
      expect(direct()).toBe(0);
      expect(target.resume()).toBe(EAGAIN);
      job.advance();
      expect(target.resume()).toBe(SUCCESS);
      expect(direct()).toBe(lane());
      fill();
      expect(target.purge()).toBe(false);
      expect(lane()).not.toBe(0);
    });

    describe("a reservation", () => {
      const reserve = (bytes = 100): number => target.reserve(reader.endpoint, ID, 0, bytes);
      const write = (body: number, bytes: number): void => void parts.base.memory.bytes.fill(9, body, body + bytes);

      it.each([100, 99, 1, 0])("of 100 bytes comes with %i, and what is sent meanwhile comes behind it", (bytes) => {
        const body = reserve();
        expect(body).toBeGreaterThan(0);
        expect([target.isReserved, target.reservedBytes(reader.endpoint), direct()]).toEqual([true, 100, 0]);
        write(body, 100);
        for (let i = 1; i < 4; i++) expect(submit(new Uint8Array(i))).toBe(SUCCESS);
        expectBusy(1);
        target.flush();
        job.advance();
        expect(came).toEqual([]);
        target.endReservation(bytes);
        expect(target.isReserved).toBe(false);
        expect(direct()).toBe(0);
        drain();
        expect(came.map(({ length }) => length)).toEqual([bytes, 1, 2, 3]);
        expect(came[0]).toEqual(new Uint8Array(bytes).fill(9));
        expect(direct()).toBe(lane());
        expectBusy(0);
      });

      it("that is aborted leaves nothing, and its place is used again", () => {
        expect(submit(new Uint8Array(1))).toBe(SUCCESS);
        const body = reserve();
        write(body, 100);
        target.endReservation(undefined);
        expect(direct()).toBe(lane());
        expect(reserve(50)).toBe(body);
        write(body, 50);
        target.endReservation(50);
        job.advance();
        expect(came.map(({ length }) => length)).toEqual([1, 50]);
      });

      it("is refused a second time, behind pending messages, and without room", () => {
        reserve();
        expect(() => reserve()).toThrow(expect.objectContaining({ code: "PAMIR_INVAL" }));
        target.endReservation(undefined);
        target.endReservation(undefined);
        expect(() => target.reservedBytes(reader.endpoint)).toThrow(expect.objectContaining({ code: "PAMIR_INVAL" }));
        fill();
        expect(reserve()).toBe(-EAGAIN);
        submit(new Uint8Array(4));
        expect(reserve(0)).toBe(-EAGAIN);
        drain();
        expect(reserve()).toBeGreaterThan(0);
      });

      it("whose target ends meanwhile goes nowhere, and the lane's memory comes back behind it", () => {
        const free = job.free(0);
        const body = reserve();
        write(body, 100);
        for (let i = 0; i < 3; i++) submit(new Uint8Array(8), true, `${i}`);
        job.die(1);
        target.end();
        expect(target.isReserved).toBe(true);
        expect(lane()).not.toBe(0);
        write(body, 100);
        target.endReservation(100);
        expect([target.isReserved, lane(), direct()]).toEqual([false, 0, 0]);
        run();
        expect(told.map(({ result }) => result)).toEqual([SHUTDOWN, SHUTDOWN, SHUTDOWN]);
        expectBusy(0);
        expect(job.free(0)).toBeGreaterThanOrEqual(free);
        expect(reserve()).toBe(-SHUTDOWN);
      });

      it("is aborted when its context closes", () => {
        write(reserve(), 100);
        target.close();
        expect(target.isReserved).toBe(false);
        expect([direct(), lane()]).toEqual([0, 0]);
        job.advance();
        expect(came).toEqual([]);
      });
    });
  });

  describe("a sender", () => {
    let sender: Sender;

    beforeEach(() => {
      sender = new Sender(parts.base, parts.rendezvous.sender, job.task(0).regions, PENDING_MAX);
    });

    const immediate = (bytes: number, header = 0, queue = true, id = ID): Result =>
      sender.sendImmediate(
        reader.endpoint,
        id,
        header === 0 ? null : new Uint8Array(header),
        new Uint8Array(bytes),
        queue,
      );
    const drain = (): void => {
      for (let turns = 0; turns < 30; turns++) {
        job.advance();
        sender.flush();
      }
      job.advance();
    };

    it.each([
      [SEND_IMMEDIATE_MAX, 0],
      [SEND_IMMEDIATE_MAX - 8, 1],
      [SEND_IMMEDIATE_MAX - 8, 8],
      [0, SEND_IMMEDIATE_MAX],
    ])("sendImmediate() takes %i bytes behind a header of %i, and not one more", (bytes, header) => {
      expect(immediate(bytes, header)).toBe(SUCCESS);
      drain();
      expect(came.map(({ length }) => length)).toEqual([bytes]);
      const more = bytes === 0 ? [0, header + 1] : [bytes + 1, header];
      for (let i = 0; i < 2; i++) {
        expect(() => immediate(...(more as [number, number]))).toThrow(
          expect.objectContaining({ code: "PAMIR_TOO_LARGE" }),
        );
      }
      expect(sender.busy).toBe(0);
    });

    it("refuses what is no id, endpoint or view before and behind the first lane, and nothing is left of it", () => {
      for (let round = 0; round < 2; round++) {
        for (const id of [-1, DISPATCH_ID_MAX + 1, 1.5, Number.NaN]) {
          expect(() => immediate(8, 0, true, id)).toThrow(expect.objectContaining({ code: "PAMIR_INVAL" }));
          expect(() => immediate(9, 3, true, id)).toThrow(expect.objectContaining({ code: "PAMIR_INVAL" }));
        }
        for (const to of [2, -1, 0.5, 5 * 2 ** 24]) {
          expect(() => sender.sendImmediate(to, ID, null, new Uint8Array(8), true)).toThrow(
            expect.objectContaining({ code: "PAMIR_INVAL" }),
          );
        }
        const none = { byteLength: 8 } as unknown as Uint8Array;
        expect(() => sender.sendImmediate(reader.endpoint, ID, none, new Uint8Array(8), true)).toThrow(
          expect.objectContaining({ code: "PAMIR_INVAL" }),
        );
        expect(immediate(8)).toBe(SUCCESS);
        expect([sender.busy, parts.base.activity.busy]).toEqual([0, 0]);
      }
      drain();
      expect(came.length).toBe(2);
    });

    it.each([HEADER_BYTES_MAX, HEADER_BYTES_MAX + 1])("send() with a header of %i bytes", (bytes) => {
      const send = () =>
        sender.send({ to: reader.endpoint, dispatch: ID, header: new Uint8Array(bytes), onLocal: tell, cookie: 1 });
      if (bytes > HEADER_BYTES_MAX) {
        expect(send).toThrow(expect.objectContaining({ code: "PAMIR_TOO_LARGE" }));
        return;
      }
      expect(send()).toBe(SUCCESS);
      drain();
      run();
      expect(came.length).toBe(1);
      expect(told).toEqual([{ name: 1, result: SUCCESS }]);
    });

    it("send() without onLocal of more than the pending queue copies is refused where no buffer may take it", () => {
      const { share } = parts.base.buffers;
      const large = new Uint8Array(share + 1);
      const to = { to: reader.endpoint, dispatch: ID, payload: large };
      expect(large.length).toBeGreaterThan(RECV_IMMEDIATE_MAX);
      expect(() => sender.send(to)).toThrow(expect.objectContaining({ code: "PAMIR_TOO_LARGE" }));
      expect(sender.send({ ...to, onLocal: tell, cookie: "a" })).toBe(SUCCESS);
      expect(sender.send({ ...to, payload: large.subarray(0, LARGE) })).toBe(EAGAIN);
      for (let i = 0; i < 40; i++) drain();
      run();
      expect(came.map(({ length }) => length)).toEqual([share + 1]);
      expect(told).toEqual([{ name: "a", result: SUCCESS }]);
      expect(parts.base.activity.busy).toBe(0);
    });

    it("has both callbacks run once, in the order sent, whichever way the message goes", () => {
      const sizes = [0, 8, 5000, 20_000, LARGE, 12];
      for (const [i, bytes] of sizes.entries()) {
        const callbacks = { onLocal: tell, onRemote: tell, cookie: i };
        expect(sender.send({ to: reader.endpoint, dispatch: ID, payload: new Uint8Array(bytes), ...callbacks })).toBe(
          SUCCESS,
        );
      }
      drain();
      run();
      expect(came.map(({ length }) => length)).toEqual(sizes);
      expect(told.map(({ name }) => name)).toEqual(sizes.flatMap((_, i) => [i, i]));
      expect(told.every(({ result }) => result === SUCCESS)).toBe(true);
      expect([sender.busy, parts.base.activity.busy]).toEqual([0, 0]);
    });

    it("queues messages of its own however full the queue is, and drops them once it is closed", () => {
      while (immediate(8, 0, false) === SUCCESS);
      expect(immediate(PENDING_MAX)).toBe(SUCCESS);
      expect(immediate(1)).toBe(EAGAIN);
      for (let i = 0; i < 3; i++) {
        expect(sender.sendOwn(reader.endpoint, ID, new Uint8Array(8), new Uint8Array(50), tell)).toBe(SUCCESS);
      }
      expect(sender.sendOwn(reader.endpoint, DISPATCH_ID_CALL, new Uint8Array(8), undefined, tell)).toBe(SUCCESS);
      expect([sender.busy, parts.base.activity.busy]).toEqual([1, 1]);
      sender.close();
      expect(sender.sendOwn(reader.endpoint, ID, new Uint8Array(8), undefined, tell)).toBe(SHUTDOWN);
      job.advance();
      run();
      expect(told).toEqual([]);
    });

    it("has one reservation to a target at a time, and keeps a target that ended until they are ended", () => {
      const other = job.open(1);
      const [first, second] = [reader.endpoint, other.endpoint];
      /** reserve() throws while a reservation to the target is open. */
      const expectOpen = (...targets: number[]): void => {
        for (const to of targets)
          expect(() => sender.reserve(to, ID, 10, 8)).toThrow(expect.objectContaining({ code: "PAMIR_INVAL" }));
      };
      expect(sender.reserve(first, ID, 10, 8)).toBeGreaterThan(0);
      expect(sender.reserve(second, ID, 10, 8)).toBeGreaterThan(0);
      expectOpen(first, second);
      for (const bytes of [-1, 11, 1.5]) {
        expect(() => sender.commit(first, bytes)).toThrow(expect.objectContaining({ code: "PAMIR_INVAL" }));
      }
      expectOpen(first, second);
      sender.commit(first, 3);
      job.advance();
      expect(came.map(({ length }) => length)).toEqual([3]);
      other.close();
      sender.targetEnded(other.ordinal);
      expectOpen(second);
      sender.abort(second);
      expect(() => sender.abort(second)).toThrow(expect.objectContaining({ code: "PAMIR_INVAL" }));
      expect(sender.reserve(second, ID, 10, 8)).toBe(-SHUTDOWN);
    });

    it("does not purge a target to which something is under way", () => {
      while (immediate(8, 0, false) === SUCCESS);
      immediate(8);
      const purge = () => sender.purge([reader.endpoint], 0);
      expect(purge).toThrow(expect.objectContaining({ code: "PAMIR_INVAL" }));
      drain();
      sender.reserve(reader.endpoint, ID, 8, 0);
      expect(purge).toThrow(expect.objectContaining({ code: "PAMIR_INVAL" }));
      sender.abort(reader.endpoint);
      expect(purge()).toBe(SUCCESS);
      expect(immediate(8, 0, false)).toBe(EAGAIN);
      job.advance();
      expect(immediate(8, 0, false)).toBe(SUCCESS);
    });

    it("an offer whose signal was given before it could be made is canceled, in its turn", () => {
      const controller = new AbortController();
      while (immediate(8, 0, false) === SUCCESS);
      const offer = { rendezvous: true, signal: controller.signal, onLocal: tell };
      const payload = new Uint8Array(LARGE);
      expect(sender.send({ to: reader.endpoint, dispatch: ID, payload, ...offer, cookie: "offer" })).toBe(SUCCESS);
      expect(sender.send({ to: reader.endpoint, dispatch: ID, onLocal: tell, cookie: "behind" })).toBe(SUCCESS);
      controller.abort();
      run();
      expect(told).toEqual([]);
      drain();
      run();
      expect(told).toEqual([
        { name: "offer", result: CANCELED },
        { name: "behind", result: SUCCESS },
      ]);
      expect([sender.busy, parts.base.activity.busy]).toEqual([0, 0]);
    });
  });
});
