// What every implementation of the kernels does: one suite, run over the wasm module, its debug build, the twin, and
// both of them on one memory. The single-threaded half of the contract; order and structure only, never a time.
import { Worker } from "node:worker_threads";
import { beforeEach, describe, expect, it } from "vitest";
import {
  ADVANCE_NOTICE,
  ATTENDED_IDLE_MAX,
  ATTENDED_KEEP,
  BUFFER_FREE,
  BUFFER_GONE,
  BUFFER_SENT,
  CONTEXT_ATTENDING_OFFSET,
  CONTEXT_BATCHES_OFFSET,
  CONTEXT_EVENT_COUNT_OFFSET,
  CONTEXT_MESSAGES_OFFSET,
  CONTEXT_NOTICE_SEEN_OFFSET,
  CONTEXT_READY_OFFSET,
  EVENT_COUNT_MAX,
  EVENT_LANE_MAX,
  EXTENT_LANE,
  EXTENT_OWNER_MASK,
  EXTENT_OWNER_SHIFT,
  EXTENT_PAGES_MASK,
  EXTENT_STATE_SHIFT,
  JOB_HEAP_LOCK_OFFSET,
  JOB_SPINNING_OFFSET,
  KIND_FIRST,
  KIND_MESSAGE,
  KIND_MORE,
  KIND_SWITCH,
  LANE_BYTES_MIN,
  LANE_CAPACITY_OFFSET,
  LANE_CONTROL_SIZE,
  LANE_FULLS_OFFSET,
  LANE_HEAD_OFFSET,
  LANE_ORIGIN_OFFSET,
  LANE_RECORD_MAX_OFFSET,
  LANE_RESERVED_OFFSET,
  LANE_ROOM_WANTED_OFFSET,
  LANE_TAIL_OFFSET,
  LANE_TARGET_OFFSET,
  NONE,
  OPEN_BUSY,
  OPEN_NO_MEMORY,
  PAGE_SIZE,
  POOL_SLOTS_OFFSET,
  POOL_TASK_OFFSET,
  POOL_WANTED_OFFSET,
  RETAKE_MAX,
  TASK_BELL_OFFSET,
  TASK_NOTICE_OFFSET,
  TASK_PARKED_OFFSET,
  WAIT_NOT_EQUAL,
  WAIT_OK,
  WAIT_TIMED_OUT,
} from "../../assembly/layout.js";
import type { Kernel } from "../../src/kernel/kernel.js";
import { makeRig, type Rig, type RigOptions } from "../support/kernels.js";
import { numbered, Verifier } from "../support/sequence.js";

const range = (count: number): number[] => Array.from({ length: count }, (_, i) => i);
const wordsOf = (...words: number[]): number[] => [...new Uint8Array(new Uint32Array(words).buffer)];

/** The conformance suite for the kernels that `options` choose. */
export function kernelSuite(name: string, options: RigOptions): void {
  describe(`kernels: ${name}`, () => {
    let rig: Rig;
    let producer: Kernel;
    let consumer: Kernel;
    let job: number;

    function use(more: RigOptions = {}): void {
      rig = makeRig({ ...options, ...more });
      ({ producer, consumer } = rig);
      ({ job } = rig.map);
    }

    beforeEach(() => use());

    describe("words", () => {
      it("loads, stores, exchanges, adds and clears, all 32 bits of them", () => {
        const pointer = rig.map.heapBase;
        for (const kernel of [producer, consumer]) {
          kernel.storeWord(pointer, 0xfffffffe);
          expect(kernel.loadWord(pointer) >>> 0).toBe(0xfffffffe);
          expect(kernel.addWord(pointer, 3) >>> 0).toBe(0xfffffffe);
          expect(rig.word(pointer)).toBe(1);
          expect(kernel.exchangeIf(pointer, 2, 9) >>> 0).toBe(1);
          expect(rig.word(pointer)).toBe(1);
          expect(kernel.exchangeIf(pointer, 1, 0x80000001) >>> 0).toBe(1);
          expect(kernel.exchangeIf(pointer, 0x80000001, 0xf0f0f0f0) >>> 0).toBe(0x80000001);
          kernel.clearBits(pointer, 0x80f00000);
          expect(rig.word(pointer)).toBe(0x7000f0f0);
        }
      });

      it("copies bytes, overlapping ones too, both ways", () => {
        const pointer = rig.map.heapBase;
        for (const kernel of [producer, consumer]) {
          rig.write(pointer, range(32));
          kernel.copyBytes(pointer + 4, pointer, 16);
          expect(rig.read(pointer, 32)).toEqual([0, 1, 2, 3, ...range(16), ...range(32).slice(20)]);
          rig.write(pointer, range(32));
          kernel.copyBytes(pointer, pointer + 3, 16);
          expect(rig.read(pointer, 32)).toEqual([...range(19).slice(3), ...range(32).slice(16)]);
          kernel.copyBytes(pointer + 1, pointer + 9, 0);
          expect(rig.read(pointer, 4)).toEqual([3, 4, 5, 6]);
        }
      });

      it("fills bytes, at any place and of any number", () => {
        const pointer = rig.map.heapBase;
        for (const kernel of [producer, consumer]) {
          for (let from = 0; from < 8; from++) {
            for (let bytes = 0; bytes < 12; bytes++) {
              rig.write(pointer, range(24));
              kernel.fillBytes(pointer + from, 0x1ff, bytes);
              expect(rig.read(pointer, 24)).toEqual(range(24).fill(0xff, from, from + bytes));
            }
          }
        }
      });
    });

    describe("bells", () => {
      it("ring() rings an armed bell only, and once", () => {
        const task = rig.task(1);
        producer.ring(task);
        expect(rig.word(task + TASK_BELL_OFFSET)).toBe(0);
        expect(consumer.bellArm(task)).toBe(0);
        expect(rig.word(task + TASK_PARKED_OFFSET)).toBe(1);
        producer.ring(task);
        expect(rig.word(task + TASK_PARKED_OFFSET)).toBe(0);
        producer.ring(task);
        expect(rig.word(task + TASK_BELL_OFFSET)).toBe(1);
        expect(consumer.bellArm(task)).toBe(1);
        producer.ring(task);
        expect(rig.word(task + TASK_BELL_OFFSET)).toBe(2);
        expect(consumer.bellArm(task)).toBe(2);
        consumer.bellDisarm(task);
        expect(rig.word(task + TASK_PARKED_OFFSET)).toBe(0);
        producer.ring(task);
        expect(rig.word(task + TASK_BELL_OFFSET)).toBe(2);
      });

      it("ringAlways() rings, armed or not, and only that task's", () => {
        producer.ringAlways(rig.task(1));
        producer.ringAlways(rig.task(1));
        expect(range(3).map((task) => rig.word(rig.task(task) + TASK_BELL_OFFSET))).toEqual([0, 2, 0]);
      });

      it("bellWait() does not sleep if the bell has rung since it was armed", () => {
        const seen = consumer.bellArm(rig.task(2));
        producer.ring(rig.task(2));
        expect(consumer.bellWait(rig.task(2), seen, -1)).toBe(WAIT_NOT_EQUAL);
      });

      it("bellWait() gives up after its time", () => {
        const seen = consumer.bellArm(rig.task(2));
        expect(consumer.bellWait(rig.task(2), seen, 0)).toBe(WAIT_TIMED_OUT);
        expect(consumer.bellWait(rig.task(2), seen, 1.5)).toBe(WAIT_TIMED_OUT);
      });

      it("bellWait() wakes when the bell is notified", async () => {
        const bell = (rig.task(2) + TASK_BELL_OFFSET) >>> 2;
        const ringer = new Worker(
          `const { words, bell } = require("node:worker_threads").workerData;
           while (Atomics.notify(words, bell) === 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);`,
          { eval: true, workerData: { words: rig.memory.words, bell } },
        );
        const over = new Promise<void>((resolve) => ringer.on("exit", () => resolve()));
        // Up, before this thread blocks: in a browser it is this thread that starts the other.
        await new Promise<void>((resolve) => ringer.on("online", () => resolve()));
        expect(consumer.bellWait(rig.task(2), consumer.bellArm(rig.task(2)), -1)).toBe(WAIT_OK);
        await over;
      });

      it("ringAlways() wakes a sleeper", async () => {
        const bell = (rig.task(2) + TASK_BELL_OFFSET) >>> 2;
        const woken = new Int32Array(new SharedArrayBuffer(4));
        const sleeper = new Worker(
          `const { words, bell, woken } = require("node:worker_threads").workerData;
           while (Atomics.wait(words, bell, Atomics.load(words, bell)) !== "ok");
           Atomics.store(woken, 0, 1);`,
          { eval: true, workerData: { words: rig.memory.words, bell, woken } },
        );
        const over = new Promise((resolve) => sleeper.on("exit", resolve));
        while (Atomics.load(woken, 0) === 0) {
          producer.ringAlways(rig.task(2));
          await new Promise((resolve) => setTimeout(resolve, 1));
        }
        await over;
        expect(rig.word(rig.task(2) + TASK_BELL_OFFSET)).toBeGreaterThan(0);
      });
    });

    describe("spinning", () => {
      it("counts the tasks in the long phase of their spin", () => {
        use({ tasks: 40, contexts: 1 });
        const order = [0, 31, 32, 39, 5];
        order.forEach((task, i) => {
          expect((i % 2 === 0 ? producer : consumer).spinEnter(job, task, 40)).toBe(i + 1);
        });
        expect(consumer.spinEnter(job, 39, 40)).toBe(5);
        expect(rig.bits(job + JOB_SPINNING_OFFSET)).toEqual([0, 5, 31, 32, 39]);
        consumer.spinLeave(job, 31);
        producer.spinLeave(job, 39);
        producer.spinLeave(job, 39);
        expect(rig.bits(job + JOB_SPINNING_OFFSET)).toEqual([0, 5, 32]);
        expect(producer.spinEnter(job, 0, 40)).toBe(3);
      });
    });

    describe("heap", () => {
      const allocate = (pages: number, owner = 0): number => producer.heapAllocate(job, pages, owner);
      const page = (number: number): number => rig.map.heapBase + number * PAGE_SIZE;
      const entryOf = (number: number): number => rig.word(rig.map.heapTable + 4 * number);

      it("gives extents first fit, and says in the table whose they are", () => {
        expect(consumer.heapFreePages(job)).toBe(64);
        expect(allocate(3, 2)).toBe(page(0));
        expect(allocate(1, 1023)).toBe(page(3));
        expect(entryOf(0)).toBe((EXTENT_LANE << EXTENT_STATE_SHIFT) | (2 << EXTENT_OWNER_SHIFT) | 3);
        expect(entryOf(3) >>> EXTENT_STATE_SHIFT).toBe(EXTENT_LANE);
        expect((entryOf(3) >>> EXTENT_OWNER_SHIFT) & EXTENT_OWNER_MASK).toBe(1023);
        expect(entryOf(3) & EXTENT_PAGES_MASK).toBe(1);
        expect(entryOf(4)).toBe(60);
        expect(consumer.heapFreePages(job)).toBe(60);
        expect(rig.word(job + JOB_HEAP_LOCK_OFFSET)).toBe(0);
      });

      it("takes a freed extent again, and passes over one that is too short", () => {
        const extents = range(4).map(() => allocate(2));
        consumer.heapFree(job, extents[1] as number);
        expect(consumer.heapFreePages(job)).toBe(58);
        expect(allocate(3)).toBe(page(8));
        expect(allocate(1)).toBe(page(2));
        expect(allocate(1)).toBe(page(3));
        expect(allocate(1)).toBe(page(11));
      });

      it("joins free neighbours, in whichever order they were freed", () => {
        for (const order of [
          [1, 2, 3],
          [3, 2, 1],
          [1, 3, 2],
          [2, 3, 1],
        ]) {
          use();
          const extents = range(5).map(() => allocate(2));
          for (const i of order) consumer.heapFree(job, extents[i] as number);
          expect(allocate(6)).toBe(page(2));
          expect(allocate(1)).toBe(page(10));
        }
      });

      it("joins what is free even if it is still too little", () => {
        const extents = range(3).map(() => allocate(2));
        consumer.heapFree(job, extents[0] as number);
        consumer.heapFree(job, extents[1] as number);
        expect(allocate(5)).toBe(page(6));
        expect(entryOf(0)).toBe(4);
        expect(consumer.heapFreePages(job)).toBe(64 - 2 - 5);
      });

      it("says OPEN_NO_MEMORY, and changes nothing", () => {
        expect(allocate(65)).toBe(OPEN_NO_MEMORY);
        expect(allocate(64)).toBe(page(0));
        expect(consumer.heapFreePages(job)).toBe(0);
        expect(allocate(1)).toBe(OPEN_NO_MEMORY);
        expect(rig.word(job + JOB_HEAP_LOCK_OFFSET)).toBe(0);
        consumer.heapFree(job, page(0));
        expect(allocate(1)).toBe(page(0));
        expect(entryOf(1)).toBe(63);
      });

      it("says OPEN_BUSY while another task holds the lock, and leaves the lock to it", () => {
        rig.setWord(job + JOB_HEAP_LOCK_OFFSET, 7);
        const before = Buffer.from(rig.area());
        expect(allocate(1)).toBe(OPEN_BUSY);
        expect(producer.laneOpen(job, 1, 0, 1024, 256)).toBe(OPEN_BUSY);
        expect(Buffer.compare(before, rig.area())).toBe(0);
        rig.setWord(job + JOB_HEAP_LOCK_OFFSET, 0);
        expect(allocate(1)).toBe(page(0));
      });
    });

    describe("opening a lane", () => {
      it("takes whole pages, and makes the overhang as long as they allow", () => {
        const lane = rig.open(5, 0, 16384, 4112);
        expect(rig.word(lane + LANE_CAPACITY_OFFSET)).toBe(16384);
        expect(rig.word(lane + LANE_RECORD_MAX_OFFSET)).toBe(7680);
        expect(rig.word(lane + LANE_ORIGIN_OFFSET)).toBe(5);
        expect(rig.word(lane + LANE_TARGET_OFFSET)).toBe(0);
        expect(producer.heapFreePages(job)).toBe(64 - 6);
        const table = rig.word(rig.map.heapTable);
        expect((table >>> EXTENT_OWNER_SHIFT) & EXTENT_OWNER_MASK).toBe(2); // the task of origin 5, of 2 contexts each
      });

      it("never has an overhang that its ring could not hold", () => {
        const lane = rig.open(1, 0, LANE_BYTES_MIN, 16);
        expect(rig.word(lane + LANE_RECORD_MAX_OFFSET)).toBe(LANE_BYTES_MIN - 16);
        expect(producer.laneRoom(lane)).toBe(LANE_BYTES_MIN - 16 - 8);
      });

      it("enters it in the target's table, where each origin has one place", () => {
        const first = rig.open(1, 0);
        const second = rig.open(2, 0);
        const other = rig.open(1, 3);
        expect(consumer.laneOf(rig.context(0), 1)).toBe(first);
        expect(consumer.laneOf(rig.context(0), 2)).toBe(second);
        expect(consumer.laneOf(rig.context(3), 1)).toBe(other);
        expect(consumer.laneOf(rig.context(0), 3)).toBe(0);
        expect(producer.laneOpen(job, 1, 0, 1024, 256)).toBe(OPEN_BUSY);
        expect(consumer.laneOf(rig.context(0), 1)).toBe(first);
      });

      it("finds it empty, even where the memory was used before", () => {
        const extent = producer.heapAllocate(job, 1, 0);
        rig.write(extent, new Uint8Array(PAGE_SIZE).fill(0xff));
        producer.heapFree(job, extent);
        const lane = rig.open(1);
        expect(lane).toBe(extent);
        expect(rig.tailWord(lane)).toBe(0);
        expect(consumer.lanePeek(lane)).toBe(0);
        expect(rig.take()).toEqual([]);
      });

      it("says OPEN_NO_MEMORY, and enters nothing", () => {
        expect(producer.laneOpen(job, 1, 0, 64 * PAGE_SIZE, 256)).toBe(OPEN_NO_MEMORY);
        expect(consumer.laneOf(rig.context(0), 1)).toBe(0);
      });
    });

    describe("sending", () => {
      it("laneSendWords: bodies of 0 … 8 bytes", () => {
        const lane = rig.open(3);
        const [a, b] = [0x04030201, 0x88070605];
        for (const length of range(9)) {
          expect(producer.laneSendWords(lane, length, 0xfff00000 + length, a, b)).toBe(1);
        }
        const events = rig.take();
        const body = wordsOf(a, b);
        expect(events.map(({ origin, kind, length, meta, bytes }) => ({ origin, kind, length, meta, bytes }))).toEqual(
          range(9).map((length) => ({
            origin: 3,
            kind: KIND_MESSAGE,
            length,
            meta: 0xfff00000 + length,
            bytes: body.slice(0, length),
          })),
        );
        expect(rig.word(lane + LANE_TAIL_OFFSET)).toBe(9 * 16);
        expect(rig.word(lane + LANE_HEAD_OFFSET)).toBe(9 * 16);
        expect(rig.tailWord(lane)).toBe(0);
      });

      it("laneReserve and laneCommit: every kind, lengths around each granule", () => {
        const lane = rig.open(1, 0, 4096, 1024);
        const kinds = [KIND_MESSAGE, KIND_FIRST, KIND_MORE];
        const lengths = [0, 1, 4, 7, 8, 9, 16, 23, 24, 25, 255, 256, 257, 600];
        lengths.forEach((length, i) => {
          const body = rig.producer.laneReserve(lane, length);
          expect(body % 8).toBe(0);
          expect(rig.word(lane + LANE_RESERVED_OFFSET)).toBe(Math.ceil((length + 8) / 16) * 16);
          rig.write(body, range(length));
          producer.laneCommit(lane, kinds[i % 3] as number, length, i);
          expect(rig.word(lane + LANE_RESERVED_OFFSET)).toBe(0);
        });
        const events = rig.take();
        expect(events.map(({ kind, length, meta }) => [kind, length, meta])).toEqual(
          lengths.map((length, i) => [kinds[i % 3], length, i]),
        );
        for (const { bytes, length } of events) expect(bytes).toEqual(range(length).map((i) => i & 255));
        expect(rig.tailWord(lane)).toBe(0);
      });

      it("shows nothing of a record before it is committed", () => {
        const lane = rig.open(1);
        const body = producer.laneReserve(lane, 100);
        rig.write(body, new Uint8Array(100).fill(0xee));
        expect(rig.bits(rig.context(0) + CONTEXT_READY_OFFSET)).toEqual([]);
        expect(consumer.lanePeek(lane)).toBe(0);
        expect(consumer.peek(rig.context(0))).toBe(0);
        expect(rig.take()).toEqual([]);
        producer.laneCommit(lane, KIND_MESSAGE, 100, 1);
        expect(consumer.lanePeek(lane)).toBe(1);
        expect(rig.take().map(({ length }) => length)).toEqual([100]);
      });

      it("a commit may be shorter than what was reserved: the rest is free, and clean", () => {
        for (const [reserved, committed] of [
          [100, 99],
          [100, 24],
          [100, 0],
          [600, 3],
          [600, 599],
          [1000, 1000],
        ] as const) {
          use();
          const lane = rig.open(1, 0, 2048, 1024);
          const body = producer.laneReserve(lane, reserved);
          rig.write(body, new Uint8Array(reserved).fill(0xee));
          producer.laneCommit(lane, KIND_MESSAGE, committed, 0);
          expect(rig.tailWord(lane)).toBe(0);
          expect(rig.word(lane + LANE_TAIL_OFFSET)).toBe(Math.ceil((committed + 8) / 16) * 16);
          rig.send(lane, [1, 2, 3], 7);
          expect(rig.take().map(({ length, meta }) => [length, meta])).toEqual([
            [committed, 0],
            [3, 7],
          ]);
        }
      });

      it("a body full of what looks like commit words is a body, wherever the next records begin", () => {
        const lane = rig.open(1, 0, 1024, 512);
        for (let pass = 0; pass < 200; pass++) {
          const length = (pass * 37) % 480;
          expect(rig.send(lane, new Uint8Array(length).fill(0xff), pass)).toBe(true);
          expect(rig.take().map((event) => [event.meta, event.length])).toEqual([[pass, length]]);
          expect(rig.take()).toEqual([]);
        }
      });

      it("release stores into each line that it frees, and into nothing else", () => {
        const lane = rig.openAt(16, 1, 0, 8192, 512);
        const ring = lane + LANE_CONTROL_SIZE;
        const first = new Uint8Array(100).fill(0xff); // 112 bytes from 16 on: lines 0 and 64
        rig.send(lane, first, 1);
        const taken = rig.advance();
        rig.send(lane, [1, 2, 3], 2); // from 128 on, not taken yet
        const [before, second] = [rig.read(ring, 256), rig.word(ring + 128)];
        expect(taken).toHaveLength(1);
        consumer.laneRelease(lane);
        const changed = rig.read(ring, 256).flatMap((byte, i) => (byte === before[i] ? [] : [i]));
        expect(changed.map((offset) => offset & ~3).filter((offset, i, all) => offset !== all[i - 1])).toEqual([
          16, 64,
        ]);
        expect([rig.word(ring + 16), rig.word(ring + 64), rig.word(ring + 128)]).toEqual([0, 0, second]);
      });

      it("release of more than RETAKE_MAX bytes writes nothing into them", () => {
        const lane = rig.openAt(0, 1, 0, 65536, 32768);
        rig.send(lane, new Uint8Array(RETAKE_MAX - 8 - 16).fill(7), 1);
        rig.send(lane, [], 2);
        const most = rig.advance();
        consumer.laneRelease(lane);
        expect(rig.word(lane + LANE_HEAD_OFFSET)).toBe(RETAKE_MAX);
        expect([most.length, rig.word(lane + LANE_CONTROL_SIZE)]).toEqual([2, 0]);
        rig.send(lane, new Uint8Array(RETAKE_MAX - 8).fill(7), 1);
        rig.send(lane, [], 2);
        expect(rig.advance()).toHaveLength(2);
        const before = rig.read(lane + LANE_CONTROL_SIZE, 65536 + 32768);
        consumer.laneRelease(lane);
        expect(rig.word(lane + LANE_HEAD_OFFSET)).toBe(2 * RETAKE_MAX + 16);
        expect(rig.read(lane + LANE_CONTROL_SIZE, 65536 + 32768)).toEqual(before);
      });

      it("laneAbort: nothing was sent, and the place is clean", () => {
        const lane = rig.open(1, 0, 2048, 1024);
        for (const length of [0, 8, 100, 900]) {
          const body = producer.laneReserve(lane, length);
          rig.write(body, new Uint8Array(length).fill(0xee));
          producer.laneAbort(lane);
          expect(rig.tailWord(lane)).toBe(0);
          expect(rig.word(lane + LANE_RESERVED_OFFSET)).toBe(0);
          expect(consumer.peek(rig.context(0))).toBe(0);
        }
        rig.send(lane, [9], 1);
        expect(rig.take().map(({ bytes }) => bytes)).toEqual([[9]]);
      });

      it("finds no room in a full lane, counts it, and finds room once records are released", () => {
        const lane = rig.open(1, 0, 128);
        for (const i of range(7)) expect(producer.laneSendWords(lane, 4, i, i, 0)).toBe(1);
        expect(producer.laneRoom(lane)).toBe(0);
        expect(producer.laneSendWords(lane, 4, 7, 0, 0)).toBe(0);
        expect(producer.laneReserve(lane, 0)).toBe(0);
        expect(rig.word(lane + LANE_FULLS_OFFSET)).toBe(2);
        expect(rig.advance()).toHaveLength(7);
        expect(producer.laneRoom(lane)).toBe(0); // taken, but not free before release()
        expect(producer.laneSendWords(lane, 4, 7, 0, 0)).toBe(0);
        rig.release();
        expect(producer.laneSendWords(lane, 4, 7, 0, 0)).toBe(1);
        expect(rig.take().map(({ meta }) => meta)).toEqual([7]);
      });

      it.each([
        [64, 48],
        [256, 240],
        [4096, 4080],
        [4096, 2048],
        [16_384, 4112],
      ])(
        "in an empty ring of %i bytes the largest record, of %i, has room, however little was read",
        (capacity, least) => {
          const lane = rig.open(1, 0, capacity, least);
          const most = rig.word(lane + LANE_RECORD_MAX_OFFSET);
          expect(most).toBeGreaterThanOrEqual(least);
          for (let i = 0; i < 3 * (capacity / 16); i++) {
            rig.send(lane, [i], 1);
            expect(rig.advance()).toHaveLength(1);
            rig.release(); // nobody peeks: who never sleeps does not
            expect(producer.laneRoom(lane)).toBe(most - 8);
            if (i > 1000) break;
          }
        },
      );

      it("laneRoom is the largest body that laneReserve takes", () => {
        const lane = rig.open(1, 0, 512, 512);
        expect(producer.laneRoom(lane)).toBe(512 - 16 - 8);
        let sent = 0;
        for (const length of [8, 40, 100, 9, 120, 24]) {
          rig.send(lane, range(length));
          sent += Math.ceil((length + 8) / 16) * 16;
          const room = producer.laneRoom(lane);
          expect(room).toBe(512 - 16 - sent - 8);
          expect(producer.laneReserve(lane, room + 1)).toBe(0);
          expect(producer.laneReserve(lane, room)).not.toBe(0);
          expect(producer.laneRoom(lane)).toBe(0); // a lane with a reserved record takes nothing else
          producer.laneAbort(lane);
          expect(producer.laneRoom(lane)).toBe(room);
        }
      });

      it("laneRoom is never more than the largest record", () => {
        const lane = rig.openAt(0, 1, 0, 1024, 256);
        expect(producer.laneRoom(lane)).toBe(256 - 8);
      });

      it("a commit rings the target's bell if it is armed, and nobody else's", () => {
        const lane = rig.open(5, 2);
        const bells = (): number[] => range(3).map((task) => rig.word(rig.task(task) + TASK_BELL_OFFSET));
        rig.send(lane, [1]);
        expect(bells()).toEqual([0, 0, 0]);
        for (const task of range(3)) consumer.bellArm(rig.task(task));
        rig.send(lane, [1]);
        expect(bells()).toEqual([0, 1, 0]);
        consumer.bellArm(rig.task(1));
        producer.laneSendWords(lane, 0, 0, 0, 0);
        expect(bells()).toEqual([0, 2, 0]);
        producer.laneReserve(lane, 4);
        producer.laneAbort(lane);
        expect(bells()).toEqual([0, 2, 0]);
      });

      it("the release of records rings the origin's bell if it wants room and is armed", () => {
        const lane = rig.open(5, 0);
        const origin = rig.task(2);
        const bell = (): number => rig.word(origin + TASK_BELL_OFFSET);
        producer.bellArm(origin);
        rig.send(lane, [1]);
        rig.take();
        rig.settle();
        expect(bell()).toBe(0); // it does not want room
        producer.laneWantRoom(lane, 1);
        expect(rig.word(lane + LANE_ROOM_WANTED_OFFSET)).toBe(1);
        rig.advance();
        rig.release();
        expect(bell()).toBe(0); // nothing was freed
        rig.send(lane, [1]);
        rig.send(lane, [2]);
        rig.advance();
        expect(bell()).toBe(0); // nothing is free yet
        rig.release();
        expect(bell()).toBe(1);
        producer.bellDisarm(origin);
        rig.send(lane, [1]);
        rig.take();
        expect(bell()).toBe(1); // it is awake
        producer.bellArm(origin);
        producer.laneWantRoom(lane, 0);
        rig.send(lane, [1]);
        rig.take();
        expect(bell()).toBe(1);
      });

      it("a record that needs the whole ring finds room in an idle lane, without another record to push it", () => {
        const lane = rig.open(5, 0, 512, 512);
        const whole = 512 - 16 - 8;
        for (const wanted of [0, 1]) {
          rig.send(lane, [1]);
          producer.laneWantRoom(lane, wanted);
          rig.take();
          expect(consumer.advance(rig.context(0), 1)).toBe(0);
          rig.settle();
          expect(producer.laneRoom(lane)).toBe(whole);
          rig.send(lane, new Uint8Array(whole), 1);
          expect(rig.take().map(({ length }) => length)).toEqual([whole]);
        }
      });

      it("laneRelease frees one lane's records", () => {
        const [first, second] = [rig.open(1), rig.open(2)];
        rig.send(first, [1]);
        rig.send(second, [1]);
        expect(rig.advance()).toHaveLength(2);
        consumer.laneRelease(second);
        expect([first, second].map((lane) => rig.word(lane + LANE_HEAD_OFFSET))).toEqual([0, 16]);
        rig.release();
        rig.settle();
        expect([first, second].map((lane) => rig.word(lane + LANE_HEAD_OFFSET))).toEqual([16, 16]);
      });

      it("many records through a small ring, whole and in order", () => {
        const lane = rig.open(4, 0, 256, 128);
        const verifier = new Verifier(100);
        let sent = 0;
        while (verifier.count(4) < 1000) {
          for (;;) {
            const { meta, bytes } = numbered(4, sent, 100);
            if (!rig.send(lane, bytes, meta)) break;
            sent++;
          }
          for (const event of rig.take()) verifier.accept(event);
          expect(rig.tailWord(lane)).toBe(0);
        }
      });
    });

    describe("advance", () => {
      const counter = (offset: number): number => rig.word(rig.context(0) + offset);

      it("finds nothing in a context without lanes, or with empty ones", () => {
        expect(consumer.advance(rig.context(0), 1)).toBe(0);
        rig.open(1);
        expect(consumer.advance(rig.context(0), 50)).toBe(0);
        expect(consumer.peek(rig.context(0))).toBe(0);
      });

      it("points to the bodies in the ring", () => {
        const lane = rig.open(1);
        rig.send(lane, [1, 2, 3]);
        rig.send(lane, range(30));
        const [first, second] = rig.advance();
        expect(first?.body).toBe(lane + LANE_CONTROL_SIZE + 8);
        expect(second?.body).toBe(lane + LANE_CONTROL_SIZE + 16 + 8);
      });

      it("keeps each lane's order, and names the origin", () => {
        const lanes = new Map([1, 2, 4].map((origin) => [origin, rig.open(origin)]));
        for (const i of range(30)) {
          const origin = [1, 4, 2, 4, 1][i % 5] as number;
          producer.laneSendWords(lanes.get(origin) as number, 4, i, i, 0);
        }
        const events = rig.take();
        expect(events).toHaveLength(30);
        for (const [i, own] of [1, 4, 2].entries()) {
          const expected = range(30).filter((number) => [1, 4, 2, 4, 1][number % 5] === own);
          expect(
            events.filter(({ origin }) => origin === own).map(({ meta }) => meta),
            `origin ${i}`,
          ).toEqual(expected);
        }
      });

      it("leaves other contexts alone", () => {
        const lane = rig.open(1, 2);
        rig.send(lane, [1]);
        expect(rig.take(0)).toEqual([]);
        expect(rig.take(3)).toEqual([]);
        expect(rig.take(2)).toHaveLength(1);
      });

      it("counts records and batches", () => {
        const lane = rig.open(1);
        rig.take();
        rig.send(lane, [1]);
        rig.send(lane, [1]);
        rig.advance(0, 3);
        expect(counter(CONTEXT_EVENT_COUNT_OFFSET)).toBe(2);
        rig.release();
        expect(counter(CONTEXT_EVENT_COUNT_OFFSET)).toBe(0);
        rig.send(lane, [1]);
        rig.take();
        consumer.advance(rig.context(0), 20);
        expect([CONTEXT_MESSAGES_OFFSET, CONTEXT_BATCHES_OFFSET].map(counter)).toEqual([3, 2]);
      });

      it("takes EVENT_LANE_MAX of one lane's records into a batch", () => {
        const lane = rig.open(1, 0, 16384);
        for (const i of range(EVENT_LANE_MAX + 50)) producer.laneSendWords(lane, 4, i, i, 0);
        expect(rig.take().map(({ meta }) => meta)).toEqual(range(EVENT_LANE_MAX));
        expect(rig.take().map(({ meta }) => meta)).toEqual(range(50).map((i) => EVENT_LANE_MAX + i));
      });

      it("a flooding origin leaves place for another one", () => {
        const [flood, other] = [rig.open(1, 0, 16384), rig.open(2)];
        for (const i of range(600)) producer.laneSendWords(flood, 4, i, 0, 0);
        rig.advance();
        rig.release();
        producer.laneSendWords(other, 4, 5000, 0, 0);
        const events = rig.take();
        expect(events.filter(({ origin }) => origin === 1)).toHaveLength(EVENT_LANE_MAX);
        expect(events.filter(({ origin }) => origin === 2).map(({ meta }) => meta)).toEqual([5000]);
      });

      it("floods that fill every batch starve nobody", () => {
        const lanes = range(5).map((origin) => rig.open(origin, 0, 16384));
        const counts = new Array<number>(5).fill(0);
        for (let batch = 0; batch < 10; batch++) {
          for (const lane of lanes) while (producer.laneSendWords(lane, 4, 0, 0, 0) === 1);
          const events = rig.take();
          expect(events).toHaveLength(EVENT_COUNT_MAX);
          for (const { origin } of events) counts[origin] = (counts[origin] as number) + 1;
        }
        // 2,560 places for five lanes that always have more: each gets its share of 512, give or take one turn.
        expect(Math.min(...counts)).toBeGreaterThanOrEqual(512 - EVENT_LANE_MAX);
        expect(Math.max(...counts)).toBeLessThanOrEqual(512 + EVENT_LANE_MAX);
      });

      it("says that the task's notice has moved, with or without events, until it has been dealt with", () => {
        const lane = rig.open(1);
        const context = rig.context(0);
        producer.addWord(rig.task(1) + TASK_NOTICE_OFFSET, 1); // another task's
        expect(consumer.advance(context, 2)).toBe(0);
        producer.addWord(rig.task(0) + TASK_NOTICE_OFFSET, 1);
        expect(consumer.peek(context)).toBe(1);
        expect(consumer.advance(context, 1000)).toBe(ADVANCE_NOTICE);
        rig.send(lane, [1]);
        const result = consumer.advance(context, 1);
        expect(result).toBe(ADVANCE_NOTICE | 1);
        expect(rig.events(result)).toHaveLength(1);
        rig.release();
        expect(consumer.advance(context, 1)).toBe(ADVANCE_NOTICE);
        rig.setWord(context + CONTEXT_NOTICE_SEEN_OFFSET, 1);
        expect(consumer.peek(context)).toBe(0);
        expect(consumer.advance(context, 2)).toBe(0);
      });

      it("peek sees what advance would find, and takes nothing", () => {
        const lane = rig.open(1);
        rig.send(lane, [1]);
        for (let i = 0; i < 3; i++) expect(consumer.peek(rig.context(0))).toBe(1);
        expect(rig.take()).toHaveLength(1);
        expect(consumer.peek(rig.context(0))).toBe(0);
        rig.send(lane, [2]);
        expect(consumer.peek(rig.context(0))).toBe(1);
        expect(consumer.lanePeek(lane)).toBe(1);
        expect(rig.take().map(({ bytes }) => bytes)).toEqual([[2]]);
        expect(consumer.lanePeek(lane)).toBe(0);
      });
    });

    describe("ready bits", () => {
      const MANY = { tasks: 50, contexts: 1, heapBytes: 64 * PAGE_SIZE };
      const ready = (): number[] => rig.bits(rig.context(0) + CONTEXT_READY_OFFSET);
      const attending = (): number[] => rig.bits(rig.context(0) + CONTEXT_ATTENDING_OFFSET);
      /** More rounds than it takes for every idle lane to be given up. */
      const ROUNDS = 2 * ATTENDED_IDLE_MAX + 2;

      function consistent(): void {
        expect(attending()).toEqual(rig.attended());
        expect(ready()).toEqual(expect.arrayContaining(attending()));
      }

      it("the first record sets its origin's bit, and the lane is attended from then on", () => {
        use(MANY);
        const lanes = [0, 31, 32, 49].map((origin) => rig.open(origin));
        expect(ready()).toEqual([]);
        for (const lane of lanes) rig.send(lane, [1]);
        expect(ready()).toEqual([0, 31, 32, 49]);
        expect(attending()).toEqual([]);
        expect(rig.take()).toHaveLength(4);
        expect(rig.attended()).toEqual([0, 31, 32, 49]);
        consistent();
      });

      it("ATTENDED_KEEP lanes stay attended however long they are idle", () => {
        use(MANY);
        const origins = range(ATTENDED_KEEP);
        const lanes = origins.map((origin) => rig.open(origin));
        for (const lane of lanes) rig.send(lane, [1]);
        rig.take();
        expect(consumer.advance(rig.context(0), 3 * ROUNDS)).toBe(0);
        expect(rig.attended()).toEqual(origins);
        expect(ready()).toEqual(origins);
      });

      it("of more lanes, those that are idle are given up, and come back with their next record", () => {
        use(MANY);
        const origins = range(50);
        const lanes = origins.map((origin) => rig.open(origin));
        for (let pass = 0; pass < 3; pass++) {
          for (const lane of lanes) rig.send(lane, [pass]);
          const events = rig.drain();
          expect(events.map(({ origin }) => origin).sort((a, b) => a - b)).toEqual(origins);
          expect(events.every(({ bytes }) => bytes[0] === pass)).toBe(true);
          consumer.advance(rig.context(0), ROUNDS);
          expect(rig.attended()).toHaveLength(ATTENDED_KEEP);
          expect(ready()).toEqual(rig.attended());
          consistent();
        }
      });

      it("lanes are given up only after ATTENDED_IDLE_MAX idle rounds", () => {
        use(MANY);
        const lanes = range(10).map((origin) => rig.open(origin));
        for (const lane of lanes) rig.send(lane, [1]);
        rig.take();
        expect(consumer.advance(rig.context(0), ATTENDED_IDLE_MAX - 1)).toBe(0);
        expect(rig.attended()).toHaveLength(10);
        rig.send(lanes[7] as number, [1]);
        expect(rig.take()).toHaveLength(1);
        expect(consumer.advance(rig.context(0), 2)).toBe(0);
        expect(rig.attended()).toHaveLength(ATTENDED_KEEP);
        expect(rig.attended()).toContain(7);
        consistent();
      });

      it("loses no record that comes while lanes are being given up", () => {
        use(MANY);
        const lanes = range(12).map((origin) => rig.open(origin));
        for (const lane of lanes) rig.send(lane, [1]);
        rig.take();
        for (let step = 0; step < 200; step++) {
          const origin = (step * 5) % 12;
          rig.send(lanes[origin] as number, [step]);
          expect(rig.take(0, 1 + (step % 3)).map((event) => [event.origin, event.bytes[0]])).toEqual([[origin, step]]);
          consumer.advance(rig.context(0), step % 7 === 0 ? ROUNDS : 1);
          consistent();
        }
      });

      it("a lane that is busy now and then is kept, however many there are", () => {
        use(MANY);
        const lanes = range(10).map((origin) => rig.open(origin));
        for (const lane of lanes) rig.send(lane, [1]);
        rig.take();
        const busy = [1, 3, 5, 6, 7, 9];
        for (let pass = 0; pass < 6; pass++) {
          expect(consumer.advance(rig.context(0), ATTENDED_IDLE_MAX / 2)).toBe(0);
          for (const origin of busy) rig.send(lanes[origin] as number, [pass]);
          expect(rig.take()).toHaveLength(busy.length);
        }
        expect(rig.attended()).toEqual(busy);
        consistent();
      });

      it("a lane that is given up has given all of its ring back: nobody looks at it again before its next record", () => {
        use(MANY);
        const lanes = range(10).map((origin) => rig.open(origin, 0, 1024, 512));
        const room = producer.laneRoom(lanes[0] as number);
        for (const lane of lanes) rig.send(lane, [1]);
        rig.take();
        consumer.advance(rig.context(0), ROUNDS);
        expect(rig.attended()).toHaveLength(ATTENDED_KEEP);
        for (const lane of lanes) producer.laneWantRoom(lane, 1);
        rig.settle();
        expect(lanes.map((lane) => rig.word(lane + LANE_HEAD_OFFSET))).toEqual(Array(10).fill(16));
        expect(lanes.map((lane) => producer.laneRoom(lane))).toEqual(Array(10).fill(room));
      });

      it("a bit without a lane does not stay", () => {
        use(MANY);
        rig.setWord(rig.context(0) + CONTEXT_READY_OFFSET + 4, 1 << 9);
        expect(consumer.advance(rig.context(0), 1)).toBe(0);
        expect(ready()).toEqual([]);
        expect(rig.attended()).toEqual([]);
        rig.send(rig.open(41), [5]);
        expect(rig.take().map(({ origin }) => origin)).toEqual([41]);
      });
    });

    describe("pausing a lane", () => {
      const metas = (): number[] => rig.take().map(({ meta }) => meta);

      it("takes its records from one on out of the batch, and gives them again when it is resumed", () => {
        const [lane, other] = [rig.open(1), rig.open(2)];
        for (const i of range(10)) rig.send(lane, range(3 * i), i);
        rig.send(other, [1], 77);
        const events = rig.advance();
        const fourth = events.find(({ meta, origin }) => origin === 1 && meta === 3);
        consumer.lanePause(lane, fourth?.body as number);
        rig.release();
        rig.settle();
        expect(rig.word(lane + LANE_HEAD_OFFSET)).toBe(16 + 16 + 16);
        expect(metas()).toEqual([]);
        expect(consumer.peek(rig.context(0))).toBe(0);
        expect(consumer.lanePeek(lane)).toBe(1);
        rig.send(lane, [1], 10);
        rig.send(other, [1], 78);
        expect(metas()).toEqual([78]);
        consumer.laneResume(rig.context(0), 1);
        expect(consumer.peek(rig.context(0))).toBe(1);
        const again = rig.take();
        expect(again.map(({ meta }) => meta)).toEqual([3, 4, 5, 6, 7, 8, 9, 10]);
        expect(again[0]?.bytes).toEqual(range(9));
        expect(rig.tailWord(lane)).toBe(0);
      });

      it("at the batch's first record: nothing of it is released", () => {
        const lane = rig.open(1);
        for (const i of range(3)) rig.send(lane, [i], i);
        consumer.lanePause(lane, rig.advance()[0]?.body as number);
        rig.release();
        expect(rig.word(lane + LANE_HEAD_OFFSET)).toBe(0);
        consumer.laneResume(rig.context(0), 1);
        expect(metas()).toEqual([0, 1, 2]);
      });

      it("at every record of a ring that has wrapped", () => {
        const lane = rig.open(1, 0, 256, 128);
        let sent = 0;
        let taken = 0;
        for (let pass = 0; pass < 60; pass++) {
          while (rig.send(lane, range((sent * 13) % 90), sent)) sent++;
          const events = rig.advance();
          expect(events[0]?.meta).toBe(taken);
          const at = pass % events.length;
          consumer.lanePause(lane, events[at]?.body as number);
          rig.release();
          taken += at;
          expect(rig.take()).toEqual([]);
          consumer.laneResume(rig.context(0), 1);
          if (at === 0) taken += rig.take().length;
        }
        expect(taken).toBeGreaterThan(100);
        expect(rig.tailWord(lane)).toBe(0);
      });

      it("while other lanes let it be given up: resuming brings it back, with its records", () => {
        use({ tasks: 20, contexts: 1 });
        const lanes = range(10).map((origin) => rig.open(origin));
        for (const lane of lanes) rig.send(lane, [1], 1);
        const paused = rig.advance().find(({ origin }) => origin === 6)?.body as number;
        consumer.lanePause(lanes[6] as number, paused);
        rig.release();
        consumer.advance(rig.context(0), 2 * ATTENDED_IDLE_MAX + 2);
        rig.send(lanes[6] as number, [2], 2); // sets the bit again, and is not taken
        expect(consumer.advance(rig.context(0), 2 * ATTENDED_IDLE_MAX + 2)).toBe(0);
        consumer.laneResume(rig.context(0), 6);
        expect(metas()).toEqual([1, 2]);
      });

      it("a paused lane that is given up while it is full comes back too", () => {
        use({ tasks: 20, contexts: 1 });
        const lanes = range(10).map((origin) => rig.open(origin, 0, 128));
        for (const lane of lanes) while (rig.send(lane, [1], 1));
        consumer.lanePause(lanes[6] as number, rig.advance().find(({ origin }) => origin === 6)?.body as number);
        rig.release();
        consumer.advance(rig.context(0), 2 * ATTENDED_IDLE_MAX + 2);
        expect(rig.attended()).not.toContain(6);
        expect(rig.send(lanes[6] as number, [1])).toBe(false);
        consumer.laneResume(rig.context(0), 6);
        expect(metas()).toHaveLength(7);
      });
    });

    describe("replacing and closing a lane", () => {
      /** Takes everything and obeys the switch records, as a target does. */
      function follow(): number[] {
        const metas: number[] = [];
        for (;;) {
          const events = rig.advance();
          if (events.length === 0) return metas;
          const switches = events
            .filter(({ kind }) => kind === KIND_SWITCH)
            .map(({ origin, body }) => [origin, rig.word(body)]);
          metas.push(...events.filter(({ kind }) => kind !== KIND_SWITCH).map(({ meta }) => meta));
          rig.release();
          for (const [origin, fresh] of switches)
            consumer.laneSwitch(job, rig.context(0), origin as number, fresh as number);
        }
      }

      it("the old lane ends with a record that names the new one", () => {
        const old = rig.open(1, 0, 64, 48);
        rig.send(old, [1], 1);
        const fresh = producer.laneReplace(job, old, 4096, 2048);
        expect(fresh).toBe(rig.map.heapBase + PAGE_SIZE);
        expect(consumer.laneOf(rig.context(0), 1)).toBe(old);
        expect(rig.word(fresh + LANE_CAPACITY_OFFSET)).toBe(4096);
        expect(rig.word(fresh + LANE_ORIGIN_OFFSET)).toBe(1);
        rig.send(fresh, range(1000), 2);
        const events = rig.advance();
        expect(events.map(({ kind, length }) => [kind, length])).toEqual([
          [KIND_MESSAGE, 1],
          [KIND_SWITCH, 4],
        ]);
        expect(events[1]?.bytes).toEqual(wordsOf(fresh));
        rig.release();
        consumer.laneSwitch(job, rig.context(0), 1, fresh);
        expect(consumer.laneOf(rig.context(0), 1)).toBe(fresh);
        expect(rig.take().map(({ meta }) => meta)).toEqual([2]);
        expect(consumer.heapFreePages(job)).toBe(64 - 2);
      });

      it("again and again, in order, without losing a page", () => {
        let lane = rig.open(1, 0, 64, 48);
        const other = rig.open(2);
        let sent = 0;
        const taken: number[] = [];
        for (let pass = 0; pass < 50; pass++) {
          while (rig.send(lane, [1], sent)) if (++sent % 3 === 0) break;
          rig.send(other, [1], 9999);
          const fresh = producer.laneReplace(job, lane, pass % 2 === 0 ? 128 : 64, 48);
          if (fresh !== OPEN_BUSY) lane = fresh;
          if (pass % 3 === 0) taken.push(...follow());
        }
        taken.push(...follow());
        expect(taken.filter((meta) => meta !== 9999)).toEqual(range(sent));
        expect(taken.filter((meta) => meta === 9999)).toHaveLength(50);
        expect(consumer.laneOf(rig.context(0), 1)).toBe(lane);
        expect(consumer.heapFreePages(job)).toBe(64 - 2);
      });

      it("capacity 0 closes it; the place is free once the target has taken everything", () => {
        const lane = rig.open(1);
        rig.send(lane, [1], 1);
        expect(producer.laneReplace(job, lane, 0, 0)).toBe(lane);
        expect(producer.laneOpen(job, 1, 0, 1024, 256)).toBe(OPEN_BUSY);
        expect(follow()).toEqual([1]);
        expect(consumer.laneOf(rig.context(0), 1)).toBe(0);
        expect(consumer.heapFreePages(job)).toBe(64);
        consumer.advance(rig.context(0), 3);
        rig.send(rig.open(1), [1], 2);
        expect(follow()).toEqual([2]);
      });

      it("a lane that is opened again at once is found, though its ready bit stayed", () => {
        const lane = rig.open(1);
        producer.laneReplace(job, lane, 0, 0);
        expect(follow()).toEqual([]);
        const again = rig.open(1);
        rig.send(again, [1], 3);
        expect(consumer.peek(rig.context(0))).toBe(1);
        expect(follow()).toEqual([3]);
      });

      it("a lane that is opened again before the target's next look is seen by peek: else its task would sleep on it", () => {
        const lane = rig.open(1);
        producer.laneReplace(job, lane, 0, 0);
        expect(rig.take().map(({ kind }) => kind)).toEqual([KIND_SWITCH]);
        consumer.laneSwitch(job, rig.context(0), 1, 0);
        rig.send(rig.open(1), [1], 3);
        expect(consumer.peek(rig.context(0))).toBe(1);
        expect(rig.take(0, 2).map(({ meta }) => meta)).toEqual([3]);
      });

      it("says OPEN_BUSY or OPEN_NO_MEMORY, and changes nothing of the lane", () => {
        const lane = rig.open(1, 0, 64, 48);
        const before = (): number[] => rig.read(lane, 1024);
        rig.send(lane, [1], 1);
        producer.laneRoom(lane);
        let bytes = before();
        expect(producer.laneReplace(job, lane, 128 * PAGE_SIZE, 64)).toBe(OPEN_NO_MEMORY);
        expect(before()).toEqual(bytes);
        rig.setWord(job + JOB_HEAP_LOCK_OFFSET, 3);
        expect(producer.laneReplace(job, lane, 64, 48)).toBe(OPEN_BUSY);
        expect(before()).toEqual(bytes);
        rig.setWord(job + JOB_HEAP_LOCK_OFFSET, 0);
        while (producer.laneSendWords(lane, 0, 2, 0, 0) === 1);
        bytes = before();
        for (const capacity of [0, 128]) expect(producer.laneReplace(job, lane, capacity, 64)).toBe(OPEN_BUSY); // no room
        expect(before()).toEqual(bytes);
        expect(producer.heapFreePages(job)).toBe(63);
        rig.take();
        producer.laneReserve(lane, 4);
        expect(producer.laneReplace(job, lane, 0, 0)).toBe(OPEN_BUSY); // a record is reserved
      });

      it("laneReclaim takes back the lane to a dead target", () => {
        const lane = rig.open(1, 3);
        rig.send(lane, [1]);
        producer.laneReclaim(job, 1, 3);
        expect(producer.laneOf(rig.context(3), 1)).toBe(0);
        expect(producer.heapFreePages(job)).toBe(64);
      });

      it("laneReclaim takes back the lanes that were replaced and that the dead target had not come to", () => {
        let lane = rig.open(1, 3, 64, 48);
        for (let i = 0; i < 3; i++) {
          rig.send(lane, [i]);
          lane = producer.laneReplace(job, lane, 64, 48);
        }
        expect(producer.heapFreePages(job)).toBe(60);
        producer.laneReclaim(job, 1, 3);
        expect(producer.laneOf(rig.context(3), 1)).toBe(0);
        expect(producer.heapFreePages(job)).toBe(64);
      });

      it("laneReclaim leaves the lanes of other origins, and to other targets", () => {
        for (const [origin, target] of [
          [1, 3],
          [0, 3],
          [1, 2],
          [2, 3],
        ] as const)
          rig.open(origin, target, 64, 48);
        producer.laneReclaim(job, 1, 3);
        expect(producer.heapFreePages(job)).toBe(61);
        expect(producer.laneOf(rig.context(3), 0)).not.toBe(0);
        expect(producer.laneOf(rig.context(2), 1)).not.toBe(0);
      });

      it("extentPass gives a region's extent to another task, or frees it, if it still is its owner's", () => {
        const extent = producer.regionAllocate(job, 3, 1);
        const lane = producer.heapAllocate(job, 1, 1);
        expect(producer.extentPass(job, extent, 0, 2)).toBe(0);
        expect(producer.extentPass(job, lane, 1, 2)).toBe(0);
        expect(producer.extentPass(job, extent, 1, 2)).toBe(1);
        expect(producer.extentPass(job, extent, 1, 2)).toBe(0);
        consumer.heapReclaim(job, 1);
        expect(consumer.heapFreePages(job)).toBe(64 - 3);
        expect(consumer.extentPass(job, extent, 2, 2)).toBe(1);
        expect(consumer.extentPass(job, extent, 2, NONE)).toBe(1);
        expect(consumer.extentPass(job, extent, 2, NONE)).toBe(0);
        expect(consumer.heapFreePages(job)).toBe(64);
      });

      it("bufferRelease stores into the slot, and rings its origin if that waits", () => {
        const pool = producer.regionAllocate(job, 1, 1);
        const [slot, bell] = [pool + POOL_SLOTS_OFFSET + 8, rig.task(1) + TASK_BELL_OFFSET];
        rig.setWord(pool + POOL_TASK_OFFSET, rig.task(1));
        rig.setWord(pool + POOL_WANTED_OFFSET, 0);
        rig.setWord(slot, BUFFER_SENT);
        producer.bellArm(rig.task(1));
        consumer.bufferRelease(slot, BUFFER_GONE);
        expect([rig.word(slot), rig.word(bell)]).toEqual([BUFFER_GONE, 0]);
        producer.bufferWant(pool, 1);
        consumer.bufferRelease(slot, BUFFER_FREE);
        expect([rig.word(slot), rig.word(bell)]).toEqual([BUFFER_FREE, 1]);
        producer.bufferWant(pool, 0);
        consumer.bufferRelease(slot, BUFFER_FREE);
        expect(rig.word(bell)).toBe(1);
        producer.bellDisarm(rig.task(1));
      });

      it("heapReclaim frees what one owner has, and nothing else", () => {
        const extents = [0, 1, 0, 2, 1].map((owner, i) => producer.heapAllocate(job, i + 1, owner));
        producer.heapFree(job, extents[2] as number);
        producer.heapReclaim(job, 1);
        expect(consumer.heapFreePages(job)).toBe(64 - 1 - 4);
        producer.heapReclaim(job, 1);
        expect(consumer.heapFreePages(job)).toBe(64 - 1 - 4);
        producer.heapReclaim(job, 0);
        producer.heapReclaim(job, 2);
        expect(consumer.heapFreePages(job)).toBe(64);
      });
    });
  });
}
