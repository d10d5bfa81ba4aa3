// What every transport does: the contract of src/transport/transport.ts. The origin's lanes and buffers are the raw ones of
// its task; at the target, the core of a context reads them. A rig says what its tasks share, and a test asks for that.
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  BUFFER_BYTES_OFFSET,
  BUFFER_EXTENT_OFFSET,
  BUFFER_GIVEN_OFFSET,
  BUFFER_PLACE_OFFSET,
  BUFFER_SIZE,
  BUFFER_SLOT_OFFSET,
  KIND_BUFFER,
  META_HEADER_SHIFT,
  PAGE_SIZE,
  RECV_IMMEDIATE_MAX,
  SEND_IMMEDIATE_MAX,
  TASK_BELL_OFFSET,
} from "../../assembly/layout.js";
import { SUCCESS } from "../../src/core/result.js";
import { taskSlot } from "../../src/memory/map.js";
import type { ContextCore } from "../../src/protocol/context-core.js";
import type { Task } from "../../src/protocol/task.js";
import {
  LANE_ENDED,
  LANE_FULL,
  LANE_LATER,
  LANE_NO_MEMORY,
  LANE_READY,
  type Lanes,
  TAKE_LATER,
  TAKE_NO_MEMORY,
  type UnreadBuffers,
} from "../../src/transport/transport.js";
import { bytesFrom } from "../support/bytes.js";
import { at, type CoresJob, fillHeap } from "../support/cores.js";
import { scaled } from "../support/effort.js";
import { randomOf } from "../support/random.js";
import { replayNote, SEED } from "../support/seed.js";

/** Three tasks: the origin, the target, and one that watches. Each may have three contexts. */
export const TRANSPORT_LIMITS = {
  tasks: 3,
  contexts: 3,
  laneBytes: 4096,
  heapBytes: 4 * 1024 ** 2,
  regions: 32,
  fifos: 1,
  slots: 16,
};

export interface TransportRig {
  readonly job: CoresJob;
  /** Whether every task hears of a task that dies, also if it has nothing to say to that. */
  readonly failureDetection: boolean;
  /** Numbers of the origin, the target and the one that watches (default: 0, 1, 2). */
  readonly places?: readonly [origin: number, target: number, other: number];
  /** Lets so much time go by that a task that says nothing is given up. */
  elapse?(): void;
}

/** Context of the origin whose lanes and buffers are tested: no core stands for it. */
const RAW = 2;
const DATA = 7;
/** Turns after which nothing is under way any more. */
const QUIET = 40;

/** Body `number` of a sequence: its length and bytes follow from the number. */
function body(number: number, length: number): Uint8Array {
  return bytesFrom(length, (i) => (number * 37 + i * 11 + (i >>> 8)) & 255);
}

export function transportSuite(name: string, make: () => TransportRig): void {
  describe(name, () => {
    let rig: TransportRig;
    let job: CoresJob;
    /** Numbers of the origin, the target and the one that watches. */
    let own: number;
    let its: number;
    let third: number;
    /** Whether origin and target share a memory. */
    let isNear: boolean;
    let origin: Task;
    let lanes: Lanes;
    /** The core that reads at the target, and its ordinal. */
    let reader: ContextCore;
    let target: number;
    /** Payloads that the handler has read. */
    let came: Uint8Array[];
    /** Free pages of all heaps before the first lane. */
    let before: number[];

    const listen = (core: ContextCore, into = came): void =>
      core.receiver.dispatch(DATA, (message) => void into.push(message.payload.slice()), {});
    const free = (): number[] => [0, 1, 2].map((task) => job.free(task));

    beforeEach(() => {
      rig = make();
      job = rig.job;
      [own, its, third] = rig.places ?? [0, 1, 2];
      isNear = job.task(own).memory.buffer === job.task(its).memory.buffer;
      origin = job.task(own);
      came = [];
      job.open(own);
      reader = job.open(its);
      target = job.ordinal(own, its, 0);
      listen(reader);
      job.open(third);
      before = free();
      lanes = origin.transport.lanes(job.ordinal(own, own, RAW));
    });

    afterEach(() => job.close());

    const laneTo = (to = target): number => lanes.open[to] as number;

    /** Provides a lane that takes so much, which there is memory for. */
    async function have(bytes: number, to = target): Promise<number> {
      for (let turns = 0; turns < QUIET; turns++) {
        const state = lanes.ensure(to, bytes);
        if (state === LANE_READY) return laneTo(to);
        expect([LANE_LATER, LANE_FULL]).toContain(state);
        await job.turn();
      }
      throw new Error("the lane does not come about");
    }

    /** Sends a payload without a header; false: the lane has no room. */
    const send = (payload: Uint8Array, to = target): boolean =>
      lanes.send(laneTo(to), DATA, undefined, payload, payload.length);

    /** Turns until the target has read so many messages. */
    async function until(count: number, from = came): Promise<void> {
      for (let turns = 0; from.length < count && turns < 50 * QUIET; turns++) await job.turn();
      expect(from.length).toBe(count);
    }

    /** Fills the lane with the smallest records. */
    function fill(number = 0): Uint8Array[] {
      const sent: Uint8Array[] = [];
      for (let next = body(number, 8); send(next); next = body(++number, 8)) sent.push(next);
      return sent;
    }

    async function untilEnded(ordinal: number): Promise<void> {
      for (let turns = 0; !lanes.hasEnded(ordinal) && turns < 5 * QUIET; turns++) await job.turn();
      if (!lanes.hasEnded(ordinal)) rig.elapse?.();
      await job.turn();
      expect(lanes.hasEnded(ordinal)).toBe(true);
    }

    describe("lanes", () => {
      it("belong to one context, and none is open before ensure()", () => {
        expect(lanes.origin).toBe(job.ordinal(own, own, RAW));
        expect(lanes.open.length).toBe(9);
        expect([...lanes.open]).toEqual(Array(9).fill(0));
        expect(lanes.ensure(target, 0)).toBe(LANE_READY);
        expect(laneTo()).not.toBe(0);
        expect(lanes.open.filter((lane) => lane !== 0).length).toBe(1);
      });

      it("take every body up to the size that ensure() was asked for", async () => {
        let most = 0;
        for (const bytes of [0, 1, lanes.smallBodyMax, lanes.smallBodyMax + 1, 30_000, RECV_IMMEDIATE_MAX, 5]) {
          const lane = await have(bytes);
          most = Math.max(most, bytes);
          expect(lanes.recordBodyMax(lane)).toBeGreaterThanOrEqual(most);
          expect(lanes.recordBodyMax(lane)).toBeGreaterThanOrEqual(lanes.smallBodyMax);
          const payload = body(bytes, bytes);
          for (let turns = 0; !send(payload) && turns < QUIET; turns++) await job.turn();
          await until(came.length + 1);
          expect(came.pop()).toEqual(payload);
        }
      });

      it("are the same where ensure() is asked for less, and others stay as they are", () => {
        const other = job.ordinal(own, third, 0);
        expect(lanes.ensure(other, 8)).toBe(LANE_READY);
        expect(lanes.ensure(target, RECV_IMMEDIATE_MAX)).toBe(LANE_READY);
        const [first, second] = [laneTo(), laneTo(other)];
        for (const bytes of [RECV_IMMEDIATE_MAX, 4096, 0]) expect(lanes.ensure(target, bytes)).toBe(LANE_READY);
        expect([laneTo(), laneTo(other)]).toEqual([first, second]);
      });

      it("take header and payload, which are the caller's again once send() returns", async () => {
        await have(1000);
        const region = origin.regions.create(200);
        region.bytes.set(body(99, 200));
        const sources = [
          body(1, 7),
          body(2, 8),
          body(3, 9),
          body(4, 64),
          body(5, 65),
          body(6, 500).subarray(3, 400),
          region.bytes.subarray(5, 12),
          region.bytes.subarray(20, 150),
        ];
        const headers: Uint8Array[] = [];
        reader.receiver.dispatch(
          1,
          (message) => void headers.push(message.header.slice(), message.payload.slice()),
          {},
        );
        const expected: Uint8Array[] = [];
        for (const [i, payload] of sources.entries()) {
          const header = body(50 + i, i * 3);
          expected.push(header.slice(), payload.slice());
          const total = ((header.length + 7) & ~7) + payload.length;
          expect(lanes.send(laneTo(), (header.length << META_HEADER_SHIFT) | 1, header, payload, total)).toBe(true);
          header.fill(0xff);
          payload.fill(0xff);
        }
        await until(expected.length, headers);
        expect(headers).toEqual(expected);
        region.close();
      });

      it("copy in where they are told to, and nothing beside it", () => {
        const region = origin.regions.create(300);
        for (const length of [0, 1, 8, 9, 64, 65, 200]) {
          region.bytes.fill(0xee);
          lanes.copyIn(body(length, length), region.bytes.byteOffset + 16);
          expect([...region.bytes.subarray(16, 16 + length)]).toEqual([...body(length, length)]);
          expect(region.bytes.subarray(0, 16).every((byte) => byte === 0xee)).toBe(true);
          expect(region.bytes.subarray(16 + length).every((byte) => byte === 0xee)).toBe(true);
        }
        region.close();
      });

      it("refuse a record that has no room, and nothing of it comes", async () => {
        await have(8);
        let sent = 0;
        for (let round = 0; round < 5; round++) {
          const all = fill(sent);
          expect(all.length).toBeGreaterThan(0);
          expect(send(body(0, 1))).toBe(false);
          sent += all.length;
          await until(sent);
        }
        await job.turn(QUIET);
        expect(came).toEqual(Array.from({ length: sent }, (_, number) => body(number, 8)));
      });

      it("LANE_FULL: a larger lane waits until the target has freed space in this one", async () => {
        await have(8);
        const sent = fill();
        expect(lanes.ensure(target, RECV_IMMEDIATE_MAX)).toBe(LANE_FULL);
        expect(send(body(0, 8))).toBe(false);
        await until(sent.length);
        await job.turn();
        expect(lanes.ensure(target, RECV_IMMEDIATE_MAX)).toBe(LANE_READY);
        expect(send(body(1, 60_000))).toBe(true);
        await until(sent.length + 1);
        expect(came).toEqual([...sent, body(1, 60_000)]);
      });

      it("a larger lane comes behind a smaller one, also where the target has read nothing yet", async () => {
        await have(8);
        const sent: Uint8Array[] = [];
        const all = (count: number, length: number): void => {
          for (let i = 0; i < count; i++) {
            const payload = body(sent.length, length);
            if (send(payload)) sent.push(payload);
          }
        };
        all(20, 100);
        expect(lanes.ensure(target, 40_000)).toBe(LANE_READY);
        all(2, 40_000);
        all(20, 8);
        expect(sent.length).toBe(42);
        await until(42);
        expect(came).toEqual(sent);
      });

      it("close() ends a lane behind what was sent; LANE_LATER until it is given back, then another one follows", async () => {
        const sent: Uint8Array[] = [];
        for (let round = 0; round < 4; round++) {
          await have(round * 10_000);
          for (let i = 0; i < 5; i++) {
            const payload = body(sent.length, 700);
            expect(send(payload)).toBe(true);
            sent.push(payload);
          }
          expect(lanes.close(target)).toBe(true);
          expect(laneTo()).toBe(0);
          expect(lanes.ensure(target, 8)).toBe(LANE_LATER);
          expect(laneTo()).toBe(0);
        }
        await until(sent.length);
        expect(came).toEqual(sent);
      });

      it("close() of no lane does nothing, and of one without room it has to be called again", async () => {
        expect(lanes.close(target)).toBe(true);
        await have(8);
        const lane = laneTo();
        const sent = fill();
        expect(lanes.close(target)).toBe(false);
        expect(laneTo()).toBe(lane);
        await until(sent.length);
        await job.turn();
        expect(lanes.close(target)).toBe(true);
        expect(laneTo()).toBe(0);
      });

      it("close() gives all memory back, of every lane that stood there, at both sides", async () => {
        for (let round = 0; round < 6; round++) {
          await have(8);
          send(body(1, 8));
          if (round % 2 === 1) {
            await have(RECV_IMMEDIATE_MAX);
            send(body(2, 50_000));
          }
          expect(lanes.close(target)).toBe(true);
          await job.turn(QUIET);
          expect(free()).toEqual(before);
        }
        expect(came.length).toBe(9);
      });

      it("LANE_NO_MEMORY: without a piece of the heap there is no lane, and one is once there is", async () => {
        const giveBack = fillHeap(origin);
        expect(lanes.ensure(target, 8)).toBe(LANE_NO_MEMORY);
        expect(lanes.ensure(target, RECV_IMMEDIATE_MAX)).toBe(LANE_NO_MEMORY);
        expect(laneTo()).toBe(0);
        giveBack();
        await have(8);
        expect(send(body(3, 8))).toBe(true);
        await until(1);
      });

      it("LANE_NO_MEMORY: the smaller lane that is there goes on as before", async () => {
        await have(8);
        const lane = laneTo();
        const giveBack = fillHeap(origin);
        expect(send(body(0, 200))).toBe(true);
        await until(1);
        await job.turn();
        expect(lanes.ensure(target, lanes.smallBodyMax)).toBe(LANE_READY);
        expect(lanes.ensure(target, lanes.smallBodyMax + 1)).toBe(LANE_NO_MEMORY);
        expect(laneTo()).toBe(lane);
        expect(send(body(1, lanes.smallBodyMax))).toBe(true);
        await until(2);
        giveBack();
        await have(RECV_IMMEDIATE_MAX);
        expect(send(body(2, 60_000))).toBe(true);
        await until(3);
        expect(came).toEqual([body(0, 200), body(1, lanes.smallBodyMax), body(2, 60_000)]);
      });

      it("LANE_NO_MEMORY is no matter of another memory: there, records wait for a piece", async () => {
        const giveBack = fillHeap(job.task(its));
        expect(lanes.ensure(target, 8)).toBe(isNear ? LANE_NO_MEMORY : LANE_READY);
        if (isNear) giveBack();
        const sent = [body(0, 8), body(1, 60_000), body(2, 3000)];
        await have(RECV_IMMEDIATE_MAX);
        for (const payload of sent) expect(send(payload)).toBe(true);
        await job.turn(QUIET);
        if (!isNear) expect(came).toEqual([]);
        giveBack();
        // What comes next has the target look again.
        await have(8);
        expect(send(body(3, 8))).toBe(true);
        await until(4);
        expect(came).toEqual([...sent, body(3, 8)]);
      });

      it("what is sent to a context before that is there comes once it is", async () => {
        const late = job.ordinal(own, its, 1);
        await have(8, late);
        for (let i = 0; i < 10; i++) expect(send(body(i, 30), late)).toBe(true);
        await job.turn(QUIET);
        expect(lanes.hasEnded(late)).toBe(false);
        const core = job.open(its);
        const into: Uint8Array[] = [];
        expect(core.endpoint).toBe(at(its, 1));
        listen(core, into);
        await until(10, into);
        expect(into).toEqual(Array.from({ length: 10 }, (_, i) => body(i, 30)));
      });

      it.each([1, 2, 3])(
        `lose and reorder nothing over many fills, growths, closes and two targets, draw %i (${replayNote()})`,
        async (draw) => {
          const random = randomOf(SEED ^ (draw * 7919));
          const other = job.open(its);
          const into: Uint8Array[] = [];
          listen(other, into);
          const targets = [
            { to: target, came, sent: [] as Uint8Array[] },
            { to: job.ordinal(own, its, 1), came: into, sent: [] as Uint8Array[] },
          ];
          for (let steps = scaled(200); steps > 0; steps--) {
            const { to, sent } = targets[random(2)] as (typeof targets)[number];
            const state = lanes.ensure(to, [0, 8, 300, SEND_IMMEDIATE_MAX, RECV_IMMEDIATE_MAX][random(5)] as number);
            expect([LANE_READY, LANE_LATER, LANE_FULL]).toContain(state);
            for (let count = random(30); count > 0 && laneTo(to) !== 0; count--) {
              const most = Math.min(
                [16, 700, RECV_IMMEDIATE_MAX][random(3)] as number,
                lanes.recordBodyMax(laneTo(to)),
              );
              const payload = body(sent.length, random(most + 1));
              if (!send(payload, to)) break;
              sent.push(payload);
            }
            if (random(6) === 0) lanes.close(to);
            if (random(3) === 0) await job.turn(random(3));
          }
          for (const { came: all, sent } of targets) {
            await until(sent.length, all);
            for (const [i, payload] of sent.entries()) expect(Buffer.compare(payload, all[i] as Uint8Array)).toBe(0);
          }
          for (const { to } of targets) {
            for (let turns = 0; !lanes.close(to) && turns < QUIET; turns++) await job.turn();
          }
          await job.turn(QUIET);
          expect(free()).toEqual(before);
        },
      );
    });

    describe("a target that ends", () => {
      it.each(["closes its context", "leaves", "dies"])(
        "%s: LANE_ENDED for what has no lane, and reclaim() gives the memory back",
        async (how) => {
          const sibling = job.ordinal(own, its, 1);
          await have(RECV_IMMEDIATE_MAX);
          expect(send(body(0, 8))).toBe(true);
          await until(1);
          expect(send(body(1, 60_000))).toBe(true);
          expect(lanes.hasEnded(target)).toBe(false);
          if (how === "closes its context") reader.close();
          else if (how === "leaves") job.leave(its);
          else job.die(its);
          await untilEnded(target);
          expect(lanes.hasEnded(sibling)).toBe(how !== "closes its context");
          lanes.reclaim(target);
          expect(laneTo()).toBe(0);
          for (const bytes of [0, 8, RECV_IMMEDIATE_MAX]) expect(lanes.ensure(target, bytes)).toBe(LANE_ENDED);
          expect(laneTo()).toBe(0);
          await job.turn(QUIET);
          expect(job.free(own)).toBeGreaterThanOrEqual(before[own] as number);
          expect(lanes.close(target)).toBe(true);
        },
      );

      it("LANE_ENDED also where a lane is there, once a larger one is wanted", async () => {
        await have(8);
        reader.close();
        await untilEnded(target);
        expect(lanes.ensure(target, RECV_IMMEDIATE_MAX)).toBe(LANE_ENDED);
        lanes.reclaim(target);
        await job.turn(QUIET);
        expect(job.free(own)).toBe(before[own]);
      });

      it("its last word is still in the lane, or was read: what came before is neither lost nor reordered", async () => {
        await have(8);
        for (let i = 0; i < 10; i++) expect(send(body(i, 16))).toBe(true);
        await until(10);
        for (let i = 10; i < 20; i++) expect(send(body(i, 16))).toBe(true);
        reader.close();
        await untilEnded(target);
        expect(came).toEqual(Array.from({ length: came.length }, (_, i) => body(i, 16)));
      });

      it("its sibling goes on", async () => {
        const sibling = job.open(its);
        const into: Uint8Array[] = [];
        listen(sibling, into);
        const beside = job.ordinal(own, its, 1);
        await have(8, beside);
        await have(8);
        reader.close();
        await untilEnded(target);
        lanes.reclaim(target);
        expect(send(body(4, 8), beside)).toBe(true);
        await until(1, into);
      });
    });

    describe("an origin that ends", () => {
      /** A context of the origin, with what it has sent to the reader. */
      async function speaker(): Promise<ContextCore> {
        const core = job.open(own);
        for (let i = 0; i < 5; i++) {
          expect(core.sender.sendImmediate(reader.endpoint, DATA, null, body(i, 24), true)).toBe(SUCCESS);
        }
        return core;
      }

      it.each(["closes its context", "leaves"])("%s: what it sent comes before its end is told", async (how) => {
        const core = await speaker();
        const seen: (string | number)[] = [];
        reader.receiver.dispatch(1, () => void seen.push("message"), {});
        core.sender.sendImmediate(reader.endpoint, 1, null, null, true);
        reader.watch(core.endpoint, (_, result) => void seen.push(result), undefined);
        if (how === "leaves") job.leave(own);
        else core.close();
        for (let turns = 0; seen.length < 2 && turns < 50 * QUIET; turns++) await job.turn();
        expect(came.length).toBe(5);
        expect(seen[0]).toBe("message");
        expect(seen.length).toBe(2);
      });

      it.each(["closes its context", "leaves"])("%s: the target's memory comes back", async (how) => {
        const core = await speaker();
        await until(5);
        if (how === "leaves") job.leave(own);
        else core.close();
        await job.turn(QUIET);
        expect(job.free(its)).toBeGreaterThanOrEqual(before[its] as number);
      });
    });

    describe("buffers", () => {
      /** A context that shares the origin's memory, its ordinal, and what it has read. */
      let near: ContextCore;
      let read: Uint8Array[];
      let flight: UnreadBuffers;
      let buffers: Task["transport"]["buffers"];
      let empty: number;

      beforeEach(() => {
        near = isNear ? reader : job.open(own);
        read = isNear ? came : [];
        if (!isNear) listen(near, read);
        buffers = origin.transport.buffers;
        flight = buffers.flight();
        expect(lanes.ensure(near.ordinal, 1024)).toBe(LANE_READY);
        empty = job.free(own);
      });

      /** Writes a payload into a slot's buffer, and sends its record. */
      function sendSlot(slot: number, payload: Uint8Array, of = flight): void {
        const { kernel, memory } = origin;
        const lane = laneTo(near.ordinal);
        const record = kernel.laneReserve(lane, BUFFER_SIZE);
        expect(record).not.toBe(0);
        const extent = buffers.extentOf(slot);
        lanes.copyIn(payload, extent);
        for (const [offset, value] of [
          [BUFFER_SLOT_OFFSET, buffers.pointerOf(slot)],
          [BUFFER_EXTENT_OFFSET, extent],
          [BUFFER_PLACE_OFFSET, extent],
          [BUFFER_BYTES_OFFSET, payload.length],
          [BUFFER_GIVEN_OFFSET, 0],
        ] as const) {
          memory.words[(record + offset) >>> 2] = value;
        }
        buffers.send(of, slot);
        kernel.laneCommit(lane, KIND_BUFFER, BUFFER_SIZE, DATA);
      }

      /** Sends payloads of so many bytes until there is no buffer; what take() says then. */
      function sendAll(bytes: number, of = flight): { sent: number; state: number } {
        for (let sent = 0; ; sent++) {
          const slot = buffers.take(of, bytes);
          if (slot < 0) return { sent, state: slot };
          sendSlot(slot, body(sent, bytes), of);
        }
      }

      const readAll = (): Promise<void> => job.turn(3);

      it("fits() is a bound: what is smaller fits too, and nothing larger than the share", () => {
        let didFit = true;
        for (let bytes = 1; bytes < 2 * buffers.share; bytes += 10_007) {
          const fits = buffers.fits(bytes);
          if (!didFit) expect(fits).toBe(false);
          if (fits) expect(bytes).toBeLessThanOrEqual(buffers.share);
          didFit = fits;
        }
        expect(buffers.fits(buffers.share + 1)).toBe(false);
        expect(buffers.take(flight, buffers.share + 1)).toBe(TAKE_NO_MEMORY);
        expect(buffers.hasMemory(flight, buffers.share + 1)).toBe(false);
      });

      it("carry a payload that is the caller's again, and are used again once it is read", async () => {
        for (let round = 0; round < 10; round++) {
          const slot = buffers.take(flight, 50_000);
          expect(slot).toBeGreaterThanOrEqual(0);
          expect(buffers.extentOf(slot) % PAGE_SIZE).toBe(0);
          const payload = body(round, 50_000);
          sendSlot(slot, payload);
          expect(flight.unread).toBeGreaterThanOrEqual(50_000);
          payload.fill(0);
          await readAll();
          expect(read.length).toBe(round + 1);
          expect(Buffer.compare(read[round] as Uint8Array, body(round, 50_000))).toBe(0);
          expect(buffers.mayTake(flight, 50_000)).toBe(true);
          expect(flight.unread).toBe(0);
        }
        expect(buffers.trim()).toBe(true);
        expect(buffers.trim()).toBe(false);
        await job.turn(3);
        origin.reclaim();
        expect(job.free(own)).toBe(empty);
      });

      it("giveBack() of what was not sent makes it idle: the next one of its size costs nothing", () => {
        const first = buffers.take(flight, 30_000);
        buffers.giveBack(first);
        const pages = job.free(own);
        // The pool grows up to a footprint, so that its buffers are used in turn.
        const all = Array.from({ length: 3 }, () => buffers.take(flight, 30_000));
        expect(new Set(all).size).toBe(3);
        expect(pages - job.free(own)).toBeGreaterThan(0);
        for (const slot of all) buffers.giveBack(slot);
        expect(flight.unread).toBe(0);
        expect(buffers.trim()).toBe(true);
      });

      it("TAKE_LATER while buffers are in flight and the share is used up; reading makes room", async () => {
        const bytes = 100_000;
        const { sent, state } = sendAll(bytes);
        expect(sent).toBeGreaterThan(1);
        expect(state).toBe(TAKE_LATER);
        expect(sent * bytes).toBeLessThanOrEqual(buffers.share);
        expect((empty - job.free(own)) * PAGE_SIZE).toBeLessThanOrEqual(buffers.share + PAGE_SIZE);
        expect(buffers.mayTake(flight, bytes)).toBe(false);
        expect(buffers.room(flight)).toBeLessThan(bytes);
        await readAll();
        expect(read.length).toBe(sent);
        expect(buffers.mayTake(flight, bytes)).toBe(true);
        expect(buffers.take(flight, bytes)).toBeGreaterThanOrEqual(0);
      });

      it("TAKE_NO_MEMORY where nothing is in flight and the heap has none; then mayTake() says yes, hasMemory() no", () => {
        const giveBack = fillHeap(origin);
        expect(buffers.take(flight, 20_000)).toBe(TAKE_NO_MEMORY);
        expect(buffers.mayTake(flight, 20_000)).toBe(true);
        expect(buffers.hasMemory(flight, 20_000)).toBe(false);
        expect(buffers.room(flight)).toBe(0);
        giveBack();
        expect(buffers.hasMemory(flight, 20_000)).toBe(true);
        expect(buffers.take(flight, 20_000)).toBeGreaterThanOrEqual(0);
      });

      it("another size takes the place of what is idle, where there is no memory for both", async () => {
        sendAll(100_000);
        await readAll();
        const large = Math.floor(buffers.share / 2);
        expect(buffers.fits(large)).toBe(true);
        expect(buffers.take(flight, large)).toBeGreaterThanOrEqual(0);
      });

      it("room() is what take() gives then", async () => {
        for (let round = 0; round < 20; round++) {
          const room = buffers.room(flight);
          if (room === 0) {
            await readAll();
            continue;
          }
          const bytes = Math.max(1, Math.floor(room / (1 + (round % 5))));
          const slot = buffers.take(flight, round % 3 === 0 ? room : bytes);
          expect(slot).toBeGreaterThanOrEqual(0);
          if (round % 4 === 3) buffers.giveBack(slot);
          else sendSlot(slot, body(round, 100));
        }
      });

      it("end(): what an ended target has not read is used again, and all memory comes back", async () => {
        const { sent } = sendAll(100_000);
        if (isNear) job.die(its);
        else near.close();
        await job.turn(3);
        lanes.reclaim(near.ordinal);
        buffers.end(flight);
        expect(flight.unread).toBe(0);
        const other = buffers.flight();
        const again = Array.from({ length: sent }, () => buffers.take(other, 100_000));
        expect(again.every((slot) => slot >= 0)).toBe(true);
        expect(new Set(again).size).toBe(sent);
        for (const slot of again) buffers.giveBack(slot);
        expect(buffers.trim()).toBe(true);
        await job.turn(3);
        origin.reclaim();
        expect(job.free(own)).toBeGreaterThanOrEqual(empty);
      });

      it("close(): buffers of a closed context come back as the target reads them", async () => {
        const { sent } = sendAll(100_000);
        buffers.close(flight);
        const other = buffers.flight();
        expect(buffers.take(other, 100_000)).toBe(TAKE_NO_MEMORY);
        await readAll();
        expect(read.length).toBe(sent);
        const slot = buffers.take(other, 100_000);
        expect(slot).toBeGreaterThanOrEqual(0);
        buffers.giveBack(slot);
        buffers.trim();
        await job.turn(3);
        origin.reclaim();
        expect(job.free(own)).toBe(empty);
      });

      it("trim() leaves what is in flight where it is", async () => {
        const slot = buffers.take(flight, 40_000);
        sendSlot(slot, body(9, 40_000));
        buffers.giveBack(buffers.take(flight, 40_000));
        expect(buffers.trim()).toBe(true);
        expect(flight.unread).toBeGreaterThanOrEqual(40_000);
        await readAll();
        expect(Buffer.compare(read[0] as Uint8Array, body(9, 40_000))).toBe(0);
      });

      it("want(): a target that reads rings the origin's bell, while somebody waits, and only then", async () => {
        const { kernel, map } = origin;
        const slot = taskSlot(map, origin.slot);
        const isRung = (change: 1 | -1 | 0): boolean => {
          if (change !== 0) buffers.want(change);
          sendSlot(buffers.take(flight, 20_000), body(1, 20_000));
          const bell = kernel.bellArm(slot);
          near.advance(1);
          const after = kernel.loadWord(slot + TASK_BELL_OFFSET);
          kernel.bellDisarm(slot);
          return after !== bell;
        };
        expect(isRung(0)).toBe(false);
        expect(isRung(1)).toBe(true);
        expect(isRung(1)).toBe(true);
        expect(isRung(-1)).toBe(true);
        expect(isRung(-1)).toBe(false);
        expect(read.length).toBe(5);
      });

      it("give(): an extent of the task goes to the target, which frees it once it is read", async () => {
        const { kernel, map, memory } = origin;
        const region = origin.regions.create(30_000);
        region.bytes.set(body(8, 30_000));
        const gift = origin.regions.give(region.bytes);
        const slot = buffers.give(gift.extent);
        expect(slot).toBeGreaterThanOrEqual(0);
        expect(buffers.extentOf(slot)).toBe(gift.extent);
        gift.accept();
        gift.pass();
        const record = kernel.laneReserve(laneTo(near.ordinal), BUFFER_SIZE);
        for (const [offset, value] of [
          [BUFFER_SLOT_OFFSET, buffers.pointerOf(slot)],
          [BUFFER_EXTENT_OFFSET, gift.extent],
          [BUFFER_PLACE_OFFSET, gift.extent],
          [BUFFER_BYTES_OFFSET, 30_000],
          [BUFFER_GIVEN_OFFSET, 1],
        ] as const) {
          memory.words[(record + offset) >>> 2] = value;
        }
        buffers.send(flight, slot);
        // What is given away is no buffer of the pool.
        expect(flight.unread).toBe(0);
        kernel.laneCommit(laneTo(near.ordinal), KIND_BUFFER, BUFFER_SIZE, DATA);
        await readAll();
        expect(Buffer.compare(read[0] as Uint8Array, body(8, 30_000))).toBe(0);
        buffers.trim();
        await job.turn(3);
        origin.reclaim();
        expect(kernel.heapFreePages(map.job)).toBe(empty);
      });

      it.each([1, 2, 3])(`no byte is in two buffers, whatever is done, draw %i (${replayNote()})`, async (draw) => {
        const random = randomOf(SEED ^ (draw * 104_729));
        const flights = [flight, buffers.flight()];
        /** Slots that were taken, and those in flight that are not read yet, with their bytes. */
        const taken = new Map<number, number>();
        let under: { slot: number; bytes: number; number: number }[] = [];
        let sent = 0;
        const expected: [number, number][] = [];
        for (let steps = scaled(400); steps > 0; steps--) {
          const of = flights[random(2)] as UnreadBuffers;
          const step = random(10);
          if (step < 5) {
            const bytes = 1 + random([20_000, 100_000, buffers.share][random(3)] as number);
            const slot = buffers.take(of, bytes);
            if (slot < 0) {
              expect([TAKE_LATER, TAKE_NO_MEMORY]).toContain(slot);
              if (slot === TAKE_LATER) expect(under.length).toBeGreaterThan(0);
            } else {
              expect(taken.has(slot)).toBe(false);
              taken.set(slot, bytes);
            }
          } else if (step < 8 && taken.size > 0) {
            const [slot, bytes] = [...taken][random(taken.size)] as [number, number];
            taken.delete(slot);
            if (step === 5 || origin.kernel.laneRoom(laneTo(near.ordinal)) < 2 * BUFFER_SIZE) buffers.giveBack(slot);
            else {
              sendSlot(slot, body(sent, bytes), of);
              under.push({ slot, bytes, number: sent });
              expected.push([sent++, bytes]);
            }
          } else if (step === 8) {
            await readAll();
            under = [];
            expect(read.length).toBe(sent);
          } else if (taken.size === 0) buffers.trim();
          const spans = [...taken, ...under.map(({ slot, bytes }) => [slot, bytes] as const)]
            .map(([slot, bytes]) => ({ slot, from: buffers.extentOf(slot), to: buffers.extentOf(slot) + bytes }))
            .sort((a, b) => a.from - b.from);
          expect(new Set(spans.map(({ slot }) => slot)).size).toBe(spans.length);
          for (const [i, { from }] of spans.entries()) if (i > 0) expect(from).toBeGreaterThanOrEqual(spans[i - 1]!.to);
          expect(spans.reduce((sum, { from, to }) => sum + to - from, 0)).toBeLessThanOrEqual(buffers.share);
        }
        await readAll();
        for (const [number, bytes] of expected)
          expect(Buffer.compare(read[number] as Uint8Array, body(number, bytes))).toBe(0);
        for (const slot of taken.keys()) buffers.giveBack(slot);
        buffers.trim();
        await job.turn(3);
        origin.reclaim();
        expect(job.free(own)).toBe(empty);
      });
    });

    describe("what stands for tasks of other memories", () => {
      it("is there where tasks share none", () => {
        for (const task of [0, 1, 2]) expect(job.task(task).transport.remote !== undefined).toBe(!job.isShared);
        expect(origin.transport.remote?.failureDetection ?? true).toBe(rig.failureDetection);
      });

      it("every other task is told that a context has closed, also one that it never spoke to", async () => {
        reader.close();
        for (const task of [own, third]) {
          const own = job.task(task).transport.lanes(job.ordinal(task, task, RAW));
          const closed = job.ordinal(task, its, 0);
          for (let turns = 0; !own.hasEnded(closed) && turns < 50 * QUIET; turns++) await job.turn();
          expect(own.hasEnded(closed)).toBe(true);
          expect(own.hasEnded(job.ordinal(task, its, 1))).toBe(false);
        }
      });

      it("close(): those that have spoken with a task hear of its end, with all its contexts", async () => {
        await have(8);
        expect(send(body(0, 8))).toBe(true);
        await until(1);
        job.leave(its);
        for (const context of [0, 1, 2]) await untilEnded(job.ordinal(own, its, context));
        expect(lanes.hasEnded(job.ordinal(own, third, 0))).toBe(false);
      });

      it("failureDetection: a task that dies is told of to one that has nothing to say to it", async () => {
        const silent = job.task(third).transport.lanes(job.ordinal(third, third, RAW));
        const there = job.ordinal(third, its, 0);
        job.die(its);
        for (let turns = 0; !silent.hasEnded(there) && turns < QUIET; turns++) await job.turn();
        if (!rig.failureDetection) rig.elapse?.();
        await job.turn();
        expect(silent.hasEnded(there)).toBe(true);
      });

      it("without failureDetection, one that has something to say to a dead task hears of its end", async () => {
        await have(8);
        expect(send(body(0, 8))).toBe(true);
        await until(1);
        job.die(its);
        send(body(1, 8));
        await untilEnded(target);
      });
    });
  });
}
