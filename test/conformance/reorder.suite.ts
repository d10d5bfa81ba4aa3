// What every implementation of the FIFO message queue does (S1–S9): `producer` stands for the second thread, whose socket
// it is, `consumer` for the first.
import fc from "fast-check";
import { beforeEach, describe, expect, it } from "vitest";
import {
  INSERT_DONE,
  INSERT_DUPLICATE,
  INSERT_OUTSIDE,
  QUEUE_LOCKED,
  QUEUE_RESET,
  QUEUE_WINDOW_MAX,
  QUEUE_WINDOW_MIN,
} from "../../assembly/layout.js";
import { makeRig, type Rig, type RigOptions } from "../support/kernels.js";
import { makeQueue, type Queue, QueueModel } from "../support/queues.js";
import { randomOf } from "../support/random.js";
import { assertProperty } from "../support/seed.js";

/** Order numbers of the first packet: among them those at which they wrap, and where they turn negative as i32. */
const FIRSTS = [0, 1, 0x7ffffffd, 0x80000000, 0xfffffffd, 0xffffffff];

export function reorderSuite(name: string, options: RigOptions): void {
  describe(`FIFO message queue: ${name}`, () => {
    let rig: Rig;
    beforeEach(() => {
      rig = makeRig({ ...options, heapBytes: 512 * 4096 });
    });

    const queueOf = (window = 8, first = 0, shared = true): Queue => makeQueue(rig, window, first, shared);

    it("S1 packets are inserted at tail, as they arrive", () => {
      const queue = queueOf();
      expect([3, 0, 2].map((at) => queue.insert(at))).toEqual([INSERT_DONE, INSERT_DONE, INSERT_DONE]);
      expect(queue.pointers).toEqual([0, 0, 0, 3]);
    });

    it("S1 a sender is held back at the window, and nothing that was accepted is lost", () => {
      const queue = queueOf(4);
      for (const at of [3, 2, 1]) expect(queue.insert(at)).toBe(INSERT_DONE);
      expect(queue.insert(4)).toBe(INSERT_OUTSIDE);
      expect(queue.insert(0)).toBe(INSERT_DONE);
      expect(queue.takeAll()).toEqual([0, 1, 2, 3]);
      expect(queue.insert(4)).toBe(INSERT_DONE);
      expect(queue.takeAll()).toEqual([4]);
    });

    it("S1 the worst order of arrival finds a slot for each packet of the window", () => {
      // The last of the window stands at head until all others are consumed, and their successors are there.
      const queue = queueOf(8);
      expect(queue.insert(7)).toBe(INSERT_DONE);
      const taken: number[] = [];
      for (let at = 0; at < 7; at++) {
        expect(queue.insert(at)).toBe(INSERT_DONE);
        taken.push(...queue.takeAll());
        if (at < 6) expect(queue.insert(at + 8)).toBe(INSERT_DONE);
      }
      taken.push(...queue.takeAll());
      expect(taken).toEqual(Array.from({ length: 14 }, (_, i) => i));
      expect(queue.held).toBeLessThan(2 * 8);
      expect(queue.held).toBeGreaterThan(8);
    });

    it("S2 sub-tail goes up to the first packet that is out of sequence", () => {
      const queue = queueOf();
      for (const at of [0, 1, 2, 5, 3]) queue.insert(at);
      expect(queue.reset()).toBe(true);
      expect(queue.take()).toBe(0);
      expect(queue.pointers).toEqual([0, 1, 3, 5]);
    });

    it("S2 the run begins at the next expected number: equal neighbours prove nothing", () => {
      const queue = queueOf();
      for (const at of [3, 4, 5]) queue.insert(at);
      expect(queue.reset()).toBe(false);
      expect(queue.take()).toBeUndefined();
      expect(queue.pointers.slice(1, 3)).toEqual([3, 3]);
    });

    it("S3 the run is consumed, sub-head with each packet, until it is sub-tail", () => {
      const queue = queueOf();
      for (const at of [0, 1, 2, 7]) queue.insert(at);
      queue.reset();
      for (const at of [0, 1, 2]) {
        expect(queue.take()).toBe(at);
        expect(queue.pointers.slice(1, 3)).toEqual([at + 1, 3]);
      }
      expect(queue.take()).toBeUndefined();
      expect(queue.next).toBe(3);
    });

    it("S4 where head points at the next in sequence, both sub-pointers are reset to it", () => {
      const queue = queueOf();
      for (const at of [1, 0, 2]) queue.insert(at);
      queue.reset();
      expect(queue.takeRun()).toEqual([0]);
      expect(queue.reset()).toBe(true);
      expect(queue.pointers).toEqual([0, 0, 0, 3]);
      expect(queue.takeRun()).toEqual([1]);
      expect(queue.takeAll()).toEqual([2]);
    });

    it("S5 else they are reset to where the next in sequence is in the queue", () => {
      const queue = queueOf();
      for (const at of [4, 2, 0, 1]) queue.insert(at);
      expect(queue.reset()).toBe(true);
      expect(queue.pointers).toEqual([0, 2, 2, 4]);
      expect(queue.takeRun()).toEqual([0, 1]);
      expect(queue.reset()).toBe(true);
      expect(queue.pointers).toEqual([0, 1, 1, 4]);
    });

    it("S5 where it is nowhere, they stay equal, and the next insertion tests again", () => {
      const queue = queueOf();
      queue.insert(2);
      expect(queue.reset()).toBe(false);
      expect(queue.turn).toBe(QUEUE_LOCKED);
      queue.insert(1);
      expect(queue.reset()).toBe(false);
      queue.insert(0);
      expect(queue.reset()).toBe(true);
      expect(queue.takeRun()).toEqual([0]);
      expect(queue.takeAll()).toEqual([1, 2]);
    });

    it("S6 head moves on over what is consumed, and no further", () => {
      const queue = queueOf();
      for (const at of [0, 3, 1, 2]) queue.insert(at);
      queue.reset();
      expect(queue.takeRun()).toEqual([0]);
      queue.reset();
      expect(queue.pointers[0]).toBe(1);
      expect(queue.takeRun()).toEqual([1, 2]);
      queue.reset();
      // 1 and 2 are consumed behind 3, which is not.
      expect(queue.pointers[0]).toBe(1);
      expect(queue.takeRun()).toEqual([3]);
      queue.reset();
      expect(queue.pointers[0]).toBe(4);
    });

    it("S6 the space becomes available for insertion: thousands of packets through a few slots", () => {
      const queue = queueOf(4);
      for (let at = 0; at < 4000; at += 4) {
        for (const i of [2, 3, 1, 0]) expect(queue.insert(at + i)).toBe(INSERT_DONE);
        expect(queue.takeAll()).toEqual([at, at + 1, at + 2, at + 3]);
      }
    });

    it("S7 the sub-pointers are locked for the first thread until the second has reset them", () => {
      const queue = queueOf();
      queue.insert(0);
      expect(queue.turn).toBe(QUEUE_LOCKED);
      expect(queue.take()).toBeUndefined();
      expect(queue.reset()).toBe(true);
      expect(queue.turn).toBe(QUEUE_RESET);
      // As long as the first thread is at its run, the second touches nothing of it.
      queue.insert(1);
      const before = queue.pointers;
      expect(queue.reset()).toBe(false);
      expect(queue.pointers).toEqual(before);
      expect(queue.takeRun()).toEqual([0, 1]);
      expect(queue.turn).toBe(QUEUE_LOCKED);
    });

    it("S8 each stream is consumed once and in order, whatever the order of arrival", () => {
      for (const shared of [true, false]) {
        for (const first of FIRSTS) {
          const queue = queueOf(16, first, shared);
          const random = randomOf(first + 1);
          const taken: number[] = [];
          let at = 0;
          // 16 packets at a time, in any order.
          for (let round = 0; round < 20; round++, at += 16) {
            const left = Array.from({ length: 16 }, (_, i) => at + i);
            while (left.length > 0) {
              const [packet] = left.splice(random(left.length), 1);
              expect(queue.insert(packet as number)).toBe(INSERT_DONE);
              taken.push(...queue.takeAll());
            }
          }
          expect(taken).toEqual(Array.from({ length: at }, (_, i) => i));
        }
      }
    });

    it("S8 the next packet is found at once in the largest window, wherever it is", () => {
      const queue = queueOf(QUEUE_WINDOW_MAX, 5, false);
      for (let at = QUEUE_WINDOW_MAX - 1; at >= 0; at--) queue.insert(at);
      // From the last slot to the first: 65,536 runs of one packet. Looked for slot by slot it would take 2^31 steps.
      expect(queue.takeAll()).toEqual(Array.from({ length: QUEUE_WINDOW_MAX }, (_, i) => i));
      expect(queue.pointers[0]).toBe(QUEUE_WINDOW_MAX);
    });

    it("S9 what was there before is dropped and counted: in the queue, in the run, consumed, and long gone", () => {
      const queue = queueOf();
      for (const at of [0, 1, 4]) queue.insert(at);
      expect(queue.insert(4)).toBe(INSERT_DUPLICATE);
      queue.reset();
      expect(queue.take()).toBe(0);
      expect(queue.insert(1)).toBe(INSERT_DUPLICATE);
      expect(queue.insert(0)).toBe(INSERT_DUPLICATE);
      expect(queue.takeAll()).toEqual([1]);
      queue.reset();
      expect(queue.insert(0)).toBe(INSERT_DUPLICATE);
      expect(queue.duplicates).toBe(4);
      expect(queue.pointers[3]).toBe(3);
    });

    it("S9 what lies outside of the window is dropped and counted, on either side of the wrap", () => {
      for (const first of FIRSTS) {
        const queue = queueOf(8, first);
        expect(queue.insert(8)).toBe(INSERT_OUTSIDE);
        expect(queue.insert(0x7fffffff)).toBe(INSERT_OUTSIDE);
        expect(queue.insert(-1)).toBe(INSERT_DUPLICATE);
        expect(queue.insert(-0x80000000)).toBe(INSERT_DUPLICATE);
        expect([queue.outside, queue.duplicates]).toEqual([2, 2]);
        expect(queue.insert(7)).toBe(INSERT_DONE);
      }
    });

    it("S9 no order number is a duplicate before it was there, whatever it is", () => {
      for (const first of [...FIRSTS, 7, 8, 9]) {
        for (const window of [QUEUE_WINDOW_MIN, 4]) {
          const queue = queueOf(window, first);
          for (let at = 0; at < 3 * window; at++) {
            expect(queue.insert(at)).toBe(INSERT_DONE);
            expect(queue.takeAll()).toEqual([at]);
          }
        }
      }
    });

    it("S1, S8, S9: any arrivals, repeats and strays, against a model", () => {
      const arrival = fc.record({ ahead: fc.integer({ min: -4, max: 20 }), take: fc.boolean() });
      assertProperty(
        fc.property(
          fc.constantFrom(2, 4, 16),
          fc.constantFrom(...FIRSTS),
          fc.boolean(),
          fc.array(arrival, { maxLength: 200 }),
          (window, first, shared, arrivals) => {
            rig = makeRig({ ...options, heapBytes: 512 * 4096 });
            const queue = queueOf(window, first, shared);
            const model = new QueueModel(window);
            for (const { ahead, take } of arrivals) {
              const at = model.next + ahead;
              expect(queue.insert(at)).toBe(model.insert(at));
              if (!take) continue;
              expect(queue.takeAll()).toEqual(model.takeAll());
              expect(queue.low).toBe(model.low);
            }
            expect(queue.takeAll()).toEqual(model.takeAll());
            expect([queue.duplicates, queue.outside]).toEqual([model.duplicates, model.outside]);
            expect(queue.held).toBeLessThan(2 * window);
          },
        ),
        30,
      );
    });
  });
}
