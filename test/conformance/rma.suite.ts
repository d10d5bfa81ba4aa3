// What every implementation of the one-sided kernels does: regions, the descriptors of an injection FIFO, the completion
// bits behind them. The producer is the origin (it injects, and takes completions), the consumer is the engine: inline, or on a
// thread of its own. A run is engineRun(), or what the engine thread does in one turn, once it was called.
import fc from "fast-check";
import { beforeEach, describe, expect, it } from "vitest";
import {
  AWAY_FOUND,
  AWAY_NONE,
  AWAY_TAKEN,
  COMPLETION_RESULT_SHIFT,
  DESCRIPTOR_BYTES_OFFSET,
  DESCRIPTOR_COMPLETION,
  DESCRIPTOR_FENCE,
  DESCRIPTOR_GET,
  DESCRIPTOR_KIND_OFFSET,
  DESCRIPTOR_LOCAL_INDEX_OFFSET,
  DESCRIPTOR_PUT,
  DESCRIPTOR_RMW,
  DESCRIPTOR_SIZE,
  DESCRIPTOR_VALUE_OFFSET,
  INJECTION_AWAY_OFFSET,
  INJECTION_HEAD_OFFSET,
  INJECTION_MASK_OFFSET,
  INJECTION_MOVED_OFFSET,
  INJECTION_OLDEST_OFFSET,
  INJECTION_PENDING_OFFSET,
  INJECTION_REFUSED_OFFSET,
  INJECTION_SLOTS_OFFSET,
  INJECTION_STAGED_OFFSET,
  INJECTION_TAIL_OFFSET,
  INJECTION_TAKEN_OFFSET,
  JOB_DUE_OFFSET,
  JOB_SIZE,
  MASK_TOP_WORDS,
  NONE,
  OPEN_BUSY,
  OPEN_NO_MEMORY,
  PAGE_SIZE,
  REGION_GENERATION_OFFSET,
  REGION_SIZE,
  RMW_ADD,
  RMW_AND,
  RMW_BEHIND,
  RMW_COMPARE,
  RMW_FETCH,
  RMW_NOTIFY,
  RMW_OPERATION_MASK,
  RMW_OR,
  RMW_SET,
  RMW_WIDE,
  RMW_XOR,
  SHORT_BYTES,
  SLICE_BYTES,
  SLOT_COUNT_MAX,
  SLOT_COUNT_MIN,
  TASK_BELL_OFFSET,
  TASK_CLOSED,
  TASK_DEAD,
  TASK_PARKED_OFFSET,
  TASK_SIZE,
  TASK_STATE_OFFSET,
  TRANSFER_AWAY,
  TRANSFER_BROKEN,
  TRANSFER_DONE,
  TRANSFER_ENDED,
  TRANSFER_INVALID,
  TRANSFER_LATER,
  TRANSFER_LOCAL_BOUNDS,
  TRANSFER_LOCAL_CLOSED,
  TRANSFER_REMOTE_BOUNDS,
  TRANSFER_REMOTE_CLOSED,
} from "../../assembly/layout.js";
import type { Kernel } from "../../src/kernel/kernel.js";
import { formatInjection } from "../../src/memory/format.js";
import { word } from "../support/arbitraries.js";
import { bytesFrom } from "../support/bytes.js";
import { makeRig, type Rig, type RigOptions } from "../support/kernels.js";
import { randomOf } from "../support/random.js";
import { assertProperty } from "../support/seed.js";

const range = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

const TWO_TO_32 = 2 ** 32;
/** Not a whole number of words: the last byte of a region is not the last one of its extent. */
const REGION_BYTES = 3 * PAGE_SIZE - 5;
/** For what goes in slices. */
const LARGE_BYTES = 600_100;
const LARGE = { heapBytes: 400 * PAGE_SIZE };

interface Region {
  readonly index: number;
  readonly generation: number;
  readonly base: number;
  readonly bytes: number;
}

/** A region that a handle names, and a place in it. */
interface Place {
  readonly index: number;
  readonly generation: number;
  readonly offset: number;
}

const at = ({ index, generation }: Region, offset = 0): Place => ({ index, generation, offset });

const KINDS: [name: string, kind: number][] = [
  ["put", DESCRIPTOR_PUT],
  ["get", DESCRIPTOR_GET],
];
/** By one call, or by a descriptor that the engine processes. */
const WAYS = ["at once", "by a descriptor"] as const;
type Way = (typeof WAYS)[number];
const KINDS_AND_WAYS = KINDS.flatMap(([name, kind]) => WAYS.map((way) => [name, way, kind] as const));

/** What an RMW makes of a word. */
function changed(operation: number, old: bigint, value: bigint): bigint {
  switch (operation & RMW_OPERATION_MASK) {
    case RMW_ADD:
      return old + value;
    case RMW_OR:
      return old | value;
    case RMW_AND:
      return old & value;
    case RMW_XOR:
      return old ^ value;
    default:
      return value;
  }
}

const low = (value: bigint): number => Number(BigInt.asUintN(32, value));
const high = (value: bigint): number => Number(BigInt.asUintN(32, value >> 32n));

/** The conformance suite of the one-sided kernels for those that `options` choose. */
export function rmaSuite(name: string, options: RigOptions): void {
  describe(`one-sided kernels: ${name}`, () => {
    const isThread = options.engine === "thread";
    /** Of what holds inline only. */
    const itInline = (what: string, test: () => void): void => {
      if (!isThread) it(what, test);
    };
    /** What submit() does at once, at most. */
    const AT_ONCE = isThread ? SHORT_BYTES : SLICE_BYTES;
    let rig: Rig;
    let owner: Kernel;
    let engine: Kernel;
    let job: number;
    let fifo: number;
    /** Regions of task 0, the origin, and of task 1, the target. */
    let local: Region;
    let remote: Region;
    /** Regions that were opened. */
    let regions: Region[];

    function open(task: number, bytes: number): Region {
      const base = owner.regionAllocate(job, Math.max(1, Math.ceil(bytes / PAGE_SIZE)), task);
      if (base === OPEN_NO_MEMORY || base === OPEN_BUSY) throw new Error(`regionAllocate() gave ${base}`);
      const index = task * rig.map.regions + regions.length;
      const kernel = task === 0 ? owner : engine;
      const region = { index, generation: kernel.regionOpen(job, index, base, bytes), base, bytes };
      regions.push(region);
      return region;
    }

    /** A fresh rig, with a region of random bytes at both ends. */
    function use(more: RigOptions = {}, bytes = REGION_BYTES): void {
      rig = makeRig({ ...options, ...more });
      ({ producer: owner, consumer: engine } = rig);
      ({ job } = rig.map);
      fifo = rig.fifo();
      regions = [];
      local = open(0, bytes);
      remote = open(1, bytes);
      const random = randomOf(1);
      for (const region of regions) scramble(region, random);
    }

    function scramble({ base, bytes }: Region, random: (below: number) => number): void {
      const size = Math.min(bytes, 4096);
      const noise = bytesFrom(size, () => random(256));
      for (let offset = 0; offset < bytes; offset += size) {
        // Another byte in front of each piece, so that a shifted one is seen.
        noise[0] = random(256);
        rig.write(base + offset, noise.subarray(0, Math.min(size, bytes - offset)));
      }
    }

    /** Writes the staged descriptor. */
    function stage(kind: number, bytes: number, from: Place, to: Place, value = 0n, test = 0n): void {
      const words = [
        kind,
        bytes,
        from.index,
        from.generation,
        from.offset,
        to.index,
        to.generation,
        to.offset,
        low(value),
        high(value),
        low(test),
        high(test),
      ];
      for (const [i, word] of words.entries()) rig.setWord(fifo + INJECTION_STAGED_OFFSET + 4 * i, word);
    }

    function transferNow(kind: number, bytes: number, from: Place, to: Place, most = bytes): number {
      stage(kind, bytes, from, to);
      return owner.perform(job, fifo + INJECTION_STAGED_OFFSET, most);
    }

    function inject(kind: number, bytes: number, from: Place, to: Place, completions = 0): number {
      stage(kind, bytes, from, to);
      return owner.inject(fifo, completions);
    }

    /** A transfer of nothing, for what happens around it. */
    const injectEmpty = (completions = 0): number => inject(DESCRIPTOR_PUT, 0, at(local), at(remote), completions);

    function injectFence(): number {
      stage(DESCRIPTOR_FENCE, 0, at(local), at(remote));
      return owner.inject(fifo, 0);
    }

    function rmwNow(operation: number, value: bigint, test: bigint, from: Place, to: Place): number {
      stage(DESCRIPTOR_RMW, operation, from, to, value, test);
      return owner.perform(job, fifo + INJECTION_STAGED_OFFSET, 8);
    }

    function injectRmw(
      operation: number,
      value: bigint,
      test: bigint,
      from: Place,
      to: Place,
      completions: number,
    ): number {
      stage(DESCRIPTOR_RMW, operation, from, to, value, test);
      return owner.inject(fifo, completions);
    }

    /** Has an engine run once for a FIFO: how many of its slots are left. */
    function runOf(fifo: number): number {
      const words = (): number =>
        (rig.word(fifo + INJECTION_TAIL_OFFSET) - rig.word(fifo + INJECTION_HEAD_OFFSET)) >>> 0;
      if (!isThread) {
        const left = engine.engineRun(job, fifo, SLICE_BYTES);
        expect(left).toBe(words());
        return left;
      }
      const ordinal = Math.floor((fifo - rig.map.injectionBase) / rig.map.injectionSize / rig.map.fifos);
      owner.engineCall(job, ordinal);
      expect(engine.engineServe(job)).toBe(Number(rig.due().includes(ordinal)));
      // Whatever is left is done without another call.
      if (words() !== 0) expect(rig.due()).toContain(ordinal);
      return words();
    }

    const run = (): number => runOf(fifo);

    /** Runs the engine until nothing is left: how often that was. */
    function runAll(): number {
      for (let runs = 1; runs < 1000; runs++) if (run() === 0) return runs;
      throw new Error("the engine does not come to an end");
    }

    /** What came of a transfer on one of the two ways. */
    function transfer(way: Way, kind: number, bytes: number, from: Place, to: Place): number {
      if (way === "at once") return transferNow(kind, bytes, from, to);
      const slot = inject(kind, bytes, from, to, 1);
      runAll();
      return taken((slot + 1) & (rig.map.slots - 1));
    }

    function rmw(way: Way, operation: number, value: bigint, test: bigint, from: Place, to: Place): number {
      if (way === "at once") return rmwNow(operation, value, test, from, to);
      const slot = injectRmw(operation, value, test, from, to, 1);
      runAll();
      return taken((slot + 1) & (rig.map.slots - 1));
    }

    /** Takes the completion that must be next: what came of its transfer. */
    function taken(slot: number): number {
      const completion = owner.completionTake(fifo);
      if (completion % 2 ** COMPLETION_RESULT_SHIFT !== slot) {
        throw new Error(`completionTake() gave ${completion.toString(16)}, not slot ${slot}`);
      }
      return completion >>> COMPLETION_RESULT_SHIFT;
    }

    const field = (offset: number): number => rig.word(fifo + offset);

    /** Sets the positions of an idle FIFO. */
    function startAt(position: number): void {
      for (const offset of [INJECTION_TAIL_OFFSET, INJECTION_OLDEST_OFFSET, INJECTION_HEAD_OFFSET]) {
        rig.setWord(fifo + offset, position);
      }
    }

    /** Passes `slots` slots without callbacks, as if they were injected and processed; all that is injected must be. */
    function skip(slots: number): void {
      const position = field(INJECTION_TAIL_OFFSET) + slots;
      for (const offset of [INJECTION_TAIL_OFFSET, INJECTION_HEAD_OFFSET]) rig.setWord(fifo + offset, position);
    }

    /** Words of each level of the completion bit mask, the lowest first. */
    function levels(): number[][] {
      const result: number[][] = [];
      let pointer = fifo + INJECTION_MASK_OFFSET;
      let count = field(INJECTION_SLOTS_OFFSET);
      do {
        count = Math.ceil(count / 32);
        const first = pointer;
        result.push(Array.from({ length: count }, (_, i) => rig.word(first + 4 * i)));
        pointer += 4 * count;
      } while (count > MASK_TOP_WORDS);
      return result;
    }

    /** Numbers of the bits that are set. */
    function bitsOf(words: number[]): number[] {
      const found: number[] = [];
      for (const [i, bits] of words.entries()) {
        for (let rest = bits; rest !== 0; rest &= rest - 1) found.push(32 * i + 31 - Math.clz32(rest & -rest));
      }
      return found;
    }

    /** Slots whose bit is set; each level above says which words are not 0, or above the completion taken last. */
    function slotsSet(): number[] {
      const all = levels();
      const taken = field(INJECTION_TAKEN_OFFSET);
      for (const [i, level] of all.slice(1).entries()) {
        const own = Math.floor(taken / 32 ** (i + 1));
        const without = (numbers: number[] = []) => numbers.filter((number) => number !== own);
        const expected = all[i]?.flatMap((bits, number) => (bits === 0 ? [] : [number]));
        expect(without(bitsOf(level))).toEqual(without(expected));
        if (expected?.includes(own)) expect(bitsOf(level)).toContain(own);
      }
      return bitsOf(all[0] as number[]);
    }

    function slotPointer(slot: number): number {
      const words = levels().reduce((sum, { length }) => sum + length, 0);
      return fifo + INJECTION_MASK_OFFSET + Math.ceil((4 * words) / 64) * 64 + slot * DESCRIPTOR_SIZE;
    }

    /**
     * Does something, and compares the whole map with what `model` makes of a copy of it; but for the FIFO, and what an
     * engine thread is asked by and notes. The model gets the map's bytes, and translates pointers to places in them.
     */
    function compare(act: () => void, model: (map: Buffer, place: (pointer: number) => number) => void): void {
      const expected = Buffer.from(rig.area());
      act();
      const place = (pointer: number): number => pointer - job;
      model(expected, place);
      const ignore = (from: number, bytes: number): void => {
        rig.area().copy(expected, place(from), place(from), place(from) + bytes);
      };
      ignore(fifo, rig.map.injectionSize);
      if (isThread) {
        ignore(job + JOB_DUE_OFFSET, JOB_SIZE - JOB_DUE_OFFSET);
        ignore(rig.engine, TASK_SIZE);
      }
      if (expected.equals(rig.area())) return;
      const different = expected.findIndex((byte, i) => byte !== rig.area()[i]);
      expect.fail(
        `byte ${different} of the map (heap: ${place(rig.map.heapBase)}) is ${rig.area()[different]}, not ${expected[different]}`,
      );
    }

    const nothing = (): void => {};

    beforeEach(() => use());

    describe("regions", () => {
      it("a generation counts openings and closings: odd while the region is open", () => {
        const index = rig.map.regions + 7;
        const generation = (): number => rig.word(rig.map.regionsBase + index * REGION_SIZE + REGION_GENERATION_OFFSET);
        expect(generation()).toBe(0);
        for (const kernel of [owner, engine]) {
          for (let count = 0; count < 5; count++) {
            const before = generation();
            expect(kernel.regionOpen(job, index, rig.map.heapBase, 64)).toBe(before + 1);
            expect(generation()).toBe(before + 1);
            expect(generation() % 2).toBe(1);
            kernel.regionClose(job, index);
            expect(generation()).toBe(before + 2);
          }
        }
      });

      it("a generation wraps at 2^32", () => {
        const index = rig.map.regions + 7;
        const entry = rig.map.regionsBase + index * REGION_SIZE;
        for (const kernel of [owner, engine]) {
          rig.setWord(entry + REGION_GENERATION_OFFSET, 0xfffffffe);
          expect(kernel.regionOpen(job, index, remote.base, 64)).toBe(0xffffffff);
          expect(transferNow(DESCRIPTOR_PUT, 8, at(local), { index, generation: 0xffffffff, offset: 0 })).toBe(
            TRANSFER_DONE,
          );
          kernel.regionClose(job, index);
          expect(rig.word(entry + REGION_GENERATION_OFFSET)).toBe(0);
          expect(transferNow(DESCRIPTOR_PUT, 8, at(local), { index, generation: 0, offset: 0 })).toBe(
            TRANSFER_REMOTE_CLOSED,
          );
          expect(kernel.regionOpen(job, index, remote.base, 64)).toBe(1);
        }
      });

      it.each(WAYS)("stale and forged handles are refused, %s", (way) => {
        const all = rig.map.tasks * rig.map.regions;
        // What lies behind the entries looks like an open one: the first FIFO's positions, so that another one is used.
        rig.setWord(rig.map.regionsBase + all * REGION_SIZE + REGION_GENERATION_OFFSET, remote.generation);
        fifo = rig.fifo(1);
        const closed = open(1, 100);
        engine.regionClose(job, closed.index);
        const reopened = open(1, 100);
        engine.regionClose(job, reopened.index);
        const again = engine.regionOpen(job, reopened.index, reopened.base, 100);
        const forged: Place[] = [
          at(closed),
          { index: closed.index, generation: closed.generation + 1, offset: 0 },
          at(reopened),
          { index: reopened.index, generation: again + 2, offset: 0 },
          { index: remote.index, generation: remote.generation + 1, offset: 0 },
          { index: remote.index, generation: remote.generation - 1, offset: 0 },
          { index: remote.index, generation: remote.generation + 2 ** 31, offset: 0 },
          { index: remote.index, generation: NONE, offset: 0 },
          { index: remote.index + 5, generation: 0, offset: 0 },
          { index: remote.index + 5, generation: 1, offset: 0 },
          ...[all, all + 1, 2 ** 28 + remote.index, 2 ** 31, NONE].map((index) => ({
            index,
            generation: remote.generation,
            offset: 0,
          })),
        ];
        compare(() => {
          for (const wrong of forged) {
            for (const [, kind] of KINDS) {
              expect(transfer(way, kind, 8, at(local), wrong), JSON.stringify(wrong)).toBe(TRANSFER_REMOTE_CLOSED);
              expect(transfer(way, kind, 8, wrong, at(remote)), JSON.stringify(wrong)).toBe(TRANSFER_LOCAL_CLOSED);
              expect(transfer(way, kind, 0, at(local), wrong)).toBe(TRANSFER_REMOTE_CLOSED);
            }
            const fetch = RMW_ADD | RMW_FETCH;
            expect(rmw(way, fetch, 1n, 0n, at(local), wrong)).toBe(TRANSFER_REMOTE_CLOSED);
            expect(rmw(way, fetch, 1n, 0n, wrong, at(remote))).toBe(TRANSFER_LOCAL_CLOSED);
          }
        }, nothing);
        expect(transfer(way, DESCRIPTOR_PUT, 8, at(local), { ...at(reopened), generation: again })).toBe(TRANSFER_DONE);
        // The last entry of all is one, too.
        const last = engine.regionOpen(job, all - 1, remote.base, 100);
        expect(transfer(way, DESCRIPTOR_PUT, 8, at(local), { index: all - 1, generation: last, offset: 0 })).toBe(
          TRANSFER_DONE,
        );
      });

      it.each(WAYS)("a transfer ends at the exact end of both regions at most, %s", (way) => {
        const size = REGION_BYTES;
        const right: [bytes: number, offset: number][] = [
          [size, 0],
          [1, size - 1],
          [100, size - 100],
          [0, size],
          [0, 0],
        ];
        const wrong: [bytes: number, offset: number][] = [
          [size + 1, 0],
          [size, 1],
          [1, size],
          [100, size - 99],
          [0, size + 1],
          [0, NONE],
          [NONE, 0],
          [NONE, NONE],
          [NONE, 1],
          [2, NONE],
          [1, NONE],
          [2 ** 31, 2 ** 31],
          [100, TWO_TO_32 - 100],
          [100, TWO_TO_32 - 50],
          [TWO_TO_32 - 100, 100],
          [TWO_TO_32 - 100, 200],
        ];
        for (const [, kind] of KINDS) {
          for (const [bytes, offset] of right) {
            const other = Math.floor((size - bytes) / 2);
            expect(transfer(way, kind, bytes, at(local, offset), at(remote, other))).toBe(TRANSFER_DONE);
            expect(transfer(way, kind, bytes, at(local, other), at(remote, offset))).toBe(TRANSFER_DONE);
          }
          compare(() => {
            for (const [bytes, offset] of wrong) {
              const message = `${bytes} bytes at ${offset}`;
              // The other side has room for as much as there can be room for.
              const fits = bytes <= size;
              expect(transfer(way, kind, bytes, at(local, offset), at(remote)), message).toBe(TRANSFER_LOCAL_BOUNDS);
              expect(transfer(way, kind, bytes, at(local), at(remote, offset)), message).toBe(
                fits ? TRANSFER_REMOTE_BOUNDS : TRANSFER_LOCAL_BOUNDS,
              );
            }
          }, nothing);
        }
      });

      it.each(WAYS)("nothing fits into a region of no bytes, but nothing does, %s", (way) => {
        const empty = open(1, 0);
        compare(() => {
          expect(transfer(way, DESCRIPTOR_PUT, 0, at(local), at(empty))).toBe(TRANSFER_DONE);
          expect(transfer(way, DESCRIPTOR_PUT, 1, at(local), at(empty))).toBe(TRANSFER_REMOTE_BOUNDS);
          expect(transfer(way, DESCRIPTOR_PUT, 0, at(local), at(empty, 1))).toBe(TRANSFER_REMOTE_BOUNDS);
        }, nothing);
      });

      it.each(WAYS)("a word of an RMW ends at the exact end of both regions at most, %s", (way) => {
        const [last4, last8] = [(REGION_BYTES - 4) & ~3, (REGION_BYTES - 8) & ~7];
        const fetch = RMW_OR | RMW_FETCH;
        for (const [operation, last, size] of [
          [fetch, last4, 4],
          [fetch | RMW_WIDE, last8, 8],
        ] as const) {
          expect(rmw(way, operation, 0n, 0n, at(local, last), at(remote))).toBe(TRANSFER_DONE);
          expect(rmw(way, operation, 0n, 0n, at(local), at(remote, last))).toBe(TRANSFER_DONE);
          compare(() => {
            for (const offset of [last + size, REGION_BYTES, 2 ** 31, TWO_TO_32 - size, NONE]) {
              expect(rmw(way, operation, 1n, 0n, at(local, offset), at(remote))).toBe(TRANSFER_LOCAL_BOUNDS);
              expect(rmw(way, operation, 1n, 0n, at(local), at(remote, offset))).toBe(TRANSFER_REMOTE_BOUNDS);
            }
          }, nothing);
        }
      });

      it("a transfer of which nothing is to be moved now is checked all the same", () => {
        compare(() => {
          for (const [, kind] of KINDS) {
            expect(transferNow(kind, 100, at(local), at(remote), 0)).toBe(TRANSFER_DONE);
            expect(transferNow(kind, REGION_BYTES, at(local), at(remote, 1), 0)).toBe(TRANSFER_REMOTE_BOUNDS);
            expect(transferNow(kind, 1, at(local), { ...at(remote), generation: 5 }, 0)).toBe(TRANSFER_REMOTE_CLOSED);
          }
        }, nothing);
      });
    });

    describe("C2 C4 moving bytes", () => {
      /** Where the bytes of a transfer come from, and go to. */
      const ends = (kind: number): [from: Region, to: Region] =>
        kind === DESCRIPTOR_PUT ? [local, remote] : [remote, local];

      it.each(KINDS_AND_WAYS)("%s %s: 0 … 130 bytes and 1000, each alignment, and no byte beside", (_, way, kind) => {
        const MARGIN = 24;
        const random = randomOf(2);
        const noise = bytesFrom(8192, () => random(256));
        const [from, to] = ends(kind);
        const { bytes } = rig.memory;
        compare(
          () => {
            for (const size of [...range(131), 1000]) {
              for (let alignment = 0; alignment < 64; alignment++) {
                const [fromOffset, toOffset] = [MARGIN + (alignment & 7), MARGIN + (alignment >> 3)];
                const window = size + 2 * MARGIN + 7;
                const source = noise.subarray(random(4096)).subarray(0, window);
                const expected = noise.slice(random(4096)).subarray(0, window);
                bytes.set(source, from.base);
                bytes.set(expected, to.base);
                expected.set(source.subarray(fromOffset, fromOffset + size), toOffset);
                const [localOffset, remoteOffset] =
                  kind === DESCRIPTOR_PUT ? [fromOffset, toOffset] : [toOffset, fromOffset];
                const result = transfer(way, kind, size, at(local, localOffset), at(remote, remoteOffset));
                const isRight =
                  result === TRANSFER_DONE &&
                  Buffer.compare(expected, bytes.subarray(to.base, to.base + window)) === 0 &&
                  Buffer.compare(source, bytes.subarray(from.base, from.base + window)) === 0;
                if (!isRight) expect.fail(`${size} bytes from ${fromOffset} to ${toOffset}: result ${result}`);
              }
            }
          },
          // Here only what lies beside both windows.
          (map, place) => {
            for (const { base } of [local, remote]) rig.area().copy(map, place(base), place(base), place(base) + 2048);
          },
        );
      });

      it.each(KINDS_AND_WAYS)("%s %s: sizes around a page and a slice, and many slices", (_, way, kind) => {
        use(LARGE, LARGE_BYTES);
        const [from, to] = ends(kind);
        for (const size of [
          4095,
          4096,
          4097,
          SLICE_BYTES - 1,
          SLICE_BYTES,
          SLICE_BYTES + 1,
          600_000,
          LARGE_BYTES - 8,
        ]) {
          for (const [localOffset, remoteOffset] of [
            [0, 0],
            [5, 8],
          ] as const) {
            scramble(from, randomOf(size + localOffset));
            compare(
              () =>
                expect(transfer(way, kind, size, at(local, localOffset), at(remote, remoteOffset))).toBe(TRANSFER_DONE),
              (map, place) => {
                const [fromOffset, toOffset] =
                  kind === DESCRIPTOR_PUT ? [localOffset, remoteOffset] : [remoteOffset, localOffset];
                map.copy(
                  map,
                  place(to.base) + toOffset,
                  place(from.base) + fromOffset,
                  place(from.base) + fromOffset + size,
                );
              },
            );
          }
        }
      });

      it.each(KINDS_AND_WAYS)(
        "%s %s: within one region, overlapping, as if there were a copy in between",
        (_, way, kind) => {
          const { bytes } = rig.memory;
          const random = randomOf(3);
          const window = 1400;
          const noise = bytesFrom(window, () => random(256));
          for (const size of [...range(131), 192, 193, 1000]) {
            for (const distance of [0, 1, 2, 3, 4, 5, 8, 12, 15, 16, 31, 32, 60, 64, 100]) {
              for (const [localOffset, remoteOffset] of [
                [128, 128 + distance],
                [128 + distance, 128],
                [131, 131 + distance],
              ] as const) {
                bytes.set(noise, local.base);
                const result = transfer(way, kind, size, at(local, localOffset), at(local, remoteOffset));
                const [from, to] = kind === DESCRIPTOR_PUT ? [localOffset, remoteOffset] : [remoteOffset, localOffset];
                const expected = noise.slice().copyWithin(to, from, from + size);
                if (
                  result !== TRANSFER_DONE ||
                  Buffer.compare(expected, bytes.subarray(local.base, local.base + window)) !== 0
                ) {
                  expect.fail(`${size} bytes from ${from} to ${to}: result ${result}`);
                }
              }
            }
          }
        },
      );

      it.each(KINDS_AND_WAYS)("%s %s: overlapping, of many slices", (_, way, kind) => {
        use(LARGE, LARGE_BYTES);
        for (const size of [SLICE_BYTES, SLICE_BYTES + 1, 500_000]) {
          for (const [localOffset, remoteOffset] of [
            [0, 1],
            [0, 100],
            [100, 0],
            [0, 100_000],
            [100_000, 3],
            [7, 7],
          ] as const) {
            scramble(local, randomOf(size + localOffset));
            compare(
              () =>
                expect(transfer(way, kind, size, at(local, localOffset), at(local, remoteOffset))).toBe(TRANSFER_DONE),
              (map, place) => {
                const [from, to] = kind === DESCRIPTOR_PUT ? [localOffset, remoteOffset] : [remoteOffset, localOffset];
                map.copyWithin(place(local.base) + to, place(local.base) + from, place(local.base) + from + size);
              },
            );
          }
        }
      });
    });

    describe("C2 injecting", () => {
      it("each transfer goes into the next slot, and nothing is moved before the engine runs", () => {
        compare(() => {
          expect(range(5).map((i) => inject(DESCRIPTOR_PUT, 100, at(local, i), at(remote, 10 * i)))).toEqual(range(5));
        }, nothing);
        expect(field(INJECTION_TAIL_OFFSET)).toBe(5);
        expect(field(INJECTION_HEAD_OFFSET)).toBe(0);
        expect(field(INJECTION_PENDING_OFFSET)).toBe(0);
        expect(range(8).map((i) => rig.word(slotPointer(3) + 4 * i))).toEqual([
          DESCRIPTOR_PUT,
          100,
          local.index,
          local.generation,
          3,
          remote.index,
          remote.generation,
          30,
        ]);
        expect(run()).toBe(0);
        expect(field(INJECTION_HEAD_OFFSET)).toBe(5);
        expect(run()).toBe(0);
      });

      it("an RMW's descriptor has its operation and operands", () => {
        const operation = RMW_XOR | RMW_FETCH | RMW_WIDE;
        injectEmpty();
        const [value, test] = [0xf1234567_89abcdefn, 0x80000000_00000001n];
        expect(injectRmw(operation, value, test, at(local, 8), at(remote, 16), 0)).toBe(1);
        expect(range(12).map((i) => rig.word(slotPointer(1) + 4 * i))).toEqual([
          DESCRIPTOR_RMW,
          operation,
          local.index,
          local.generation,
          8,
          remote.index,
          remote.generation,
          16,
          0x89abcdef,
          0xf1234567,
          1,
          0x80000000,
        ]);
      });

      it("FIFOs have nothing to do with each other", () => {
        const first = fifo;
        fifo = rig.fifo(1, rig.map.fifos - 1);
        expect(injectEmpty(1)).toBe(0);
        expect(runOf(first)).toBe(0);
        expect(owner.completionTake(first)).toBe(NONE);
        expect(rig.word(first + INJECTION_TAIL_OFFSET)).toBe(0);
        expect(run()).toBe(0);
        expect(owner.completionTake(first)).toBe(NONE);
        expect(taken(1)).toBe(TRANSFER_DONE);
      });
    });

    describe("C3 completion descriptors", () => {
      const kindOf = (slot: number): number => rig.word(slotPointer(slot) + DESCRIPTOR_KIND_OFFSET);

      it("stand in the very next slots, one or two of them", () => {
        expect(injectEmpty(1)).toBe(0);
        expect(injectEmpty(0)).toBe(2);
        expect(injectEmpty(2)).toBe(3);
        expect(injectRmw(RMW_SET, 1n, 0n, at(local), at(remote), 1)).toBe(6);
        const [put, done] = [DESCRIPTOR_PUT, DESCRIPTOR_COMPLETION];
        expect(range(9).map(kindOf)).toEqual([put, done, put, put, done, done, DESCRIPTOR_RMW, done, 0]);
        expect(field(INJECTION_TAIL_OFFSET)).toBe(8);
        expect(field(INJECTION_PENDING_OFFSET)).toBe(4);
        expect(run()).toBe(0);
        expect(slotsSet()).toEqual([1, 4, 5, 7]);
        expect([1, 4, 5, 7].map(taken)).toEqual([0, 0, 0, 0]);
      });

      it.each([SLOT_COUNT_MIN, 64, 1024])("of %i slots, the next of the last one is slot 0", (slots) => {
        use({ slots });
        for (const completions of [1, 2]) {
          for (let before = 1; before <= completions; before++) {
            startAt(3 * slots - before);
            expect(injectEmpty(completions)).toBe(slots - before);
            const expected = range(completions).map((i) => (slots - before + 1 + i) % slots);
            expect(expected.map(kindOf)).toEqual(expected.map(() => DESCRIPTOR_COMPLETION));
            expect(run()).toBe(0);
            expect(slotsSet()).toEqual(expected.toSorted((a, b) => a - b));
            expect(expected.map(taken)).toEqual(expected.map(() => TRANSFER_DONE));
            expect(slotsSet()).toEqual([]);
          }
        }
      });

      it("a transfer is injected with all of its completions, or not at all", () => {
        use({ slots: SLOT_COUNT_MIN });
        expect(injectEmpty(0)).toBe(0);
        expect(injectEmpty(1)).toBe(1);
        compare(() => {
          const staged = fifo - job + INJECTION_STAGED_OFFSET;
          const all = (): Buffer => Buffer.from(rig.area()).fill(0, staged, staged + DESCRIPTOR_SIZE);
          const before = all();
          expect(injectEmpty(1)).toBe(NONE);
          expect(injectEmpty(2)).toBe(NONE);
          expect(injectRmw(RMW_SET, 1n, 0n, at(local), at(remote), 1)).toBe(NONE);
          expect(before.equals(all())).toBe(true);
        }, nothing);
        expect(injectEmpty(0)).toBe(3);
        expect(injectEmpty(0)).toBe(NONE);
        expect(injectFence()).toBe(NONE);
      });

      it("the least FIFO holds two transfers with a callback each", () => {
        use({ slots: SLOT_COUNT_MIN });
        for (let turn = 0; turn < 10; turn++) {
          expect([injectEmpty(1), injectEmpty(1), injectEmpty(0)]).toEqual([0, 2, NONE]);
          expect(run()).toBe(0);
          expect([1, 3].map(taken)).toEqual([0, 0]);
        }
      });
    });

    describe("C2, C7 what is done at once", () => {
      const submit = (kind: number, bytes: number, hasCallback: boolean): number => {
        stage(kind, bytes, at(local), at(remote));
        return owner.submit(job, fifo, hasCallback);
      };

      it.each([false, true])("with nothing before it, callbacks %j: no slot is taken, no bit set", (hasCallback) => {
        expect(submit(DESCRIPTOR_PUT, 100, hasCallback)).toBe(TRANSFER_DONE);
        expect(rig.read(remote.base, 100)).toEqual(rig.read(local.base, 100));
        expect(field(INJECTION_TAIL_OFFSET)).toBe(0);
        expect(slotsSet()).toEqual([]);
      });

      it(`of ${AT_ONCE} bytes at the most: a slice; with an engine thread, what is short`, () => {
        use(LARGE, LARGE_BYTES);
        for (const kind of [DESCRIPTOR_PUT, DESCRIPTOR_GET]) {
          compare(
            () => expect(submit(kind, AT_ONCE, false)).toBe(TRANSFER_DONE),
            (map, place) => {
              const [from, to] = kind === DESCRIPTOR_PUT ? [local, remote] : [remote, local];
              map.copy(map, place(to.base), place(from.base), place(from.base) + AT_ONCE);
            },
          );
          compare(() => expect(submit(kind, AT_ONCE + 1, false)).toBe(TRANSFER_LATER), nothing);
        }
      });

      it("of more than that, and what comes behind it: to be injected, nothing is moved", () => {
        use(LARGE, LARGE_BYTES);
        compare(() => {
          expect(submit(DESCRIPTOR_PUT, LARGE_BYTES, false)).toBe(TRANSFER_LATER);
          expect(owner.inject(fifo, 0)).toBe(0);
          for (const hasCallback of [false, true]) {
            expect(submit(DESCRIPTOR_PUT, 8, hasCallback)).toBe(TRANSFER_LATER);
            stage(DESCRIPTOR_RMW, RMW_SET, at(local), at(remote), 7n);
          }
          expect(owner.submit(job, fifo, true)).toBe(TRANSFER_LATER);
        }, nothing);
      });

      it("what has a callback, behind one whose bit is not taken: to be injected, since callbacks come in order", () => {
        injectEmpty(1);
        run();
        expect(submit(DESCRIPTOR_PUT, 8, true)).toBe(TRANSFER_LATER);
        expect(submit(DESCRIPTOR_PUT, 8, false)).toBe(TRANSFER_DONE);
        expect(taken(1)).toBe(TRANSFER_DONE);
        expect(submit(DESCRIPTOR_PUT, 8, true)).toBe(TRANSFER_DONE);
      });

      it("an RMW without a callback overtakes what is left", () => {
        use(LARGE, LARGE_BYTES);
        stage(DESCRIPTOR_PUT, LARGE_BYTES, at(local), at(remote));
        owner.inject(fifo, 0);
        stage(DESCRIPTOR_RMW, RMW_SET, at(local), at(remote, LARGE_BYTES - 100), 7n);
        expect(owner.submit(job, fifo, false)).toBe(TRANSFER_DONE);
        expect(rig.word(remote.base + LARGE_BYTES - 100)).toBe(7);
      });

      it("without a descriptor: bytes go both ways, and nothing of the FIFO is touched", () => {
        const { index, generation } = remote;
        const before = rig.read(fifo, 256);
        const from = local.base + 3;
        expect(owner.moveNow(job, index, generation, 5, from, 77, true)).toBe(1);
        expect(rig.read(remote.base + 5, 77)).toEqual(rig.read(from, 77));
        const source = rig.read(remote.base + 9, 50);
        expect(owner.moveNow(job, index, generation, 9, local.base + 200, 50, false)).toBe(1);
        expect(rig.read(local.base + 200, 50)).toEqual(source);
        expect(rig.read(fifo, 256)).toEqual(before);
      });

      it.each([RMW_SET, RMW_ADD, RMW_OR, RMW_AND, RMW_XOR])(
        "without a descriptor: operation %i changes a word as a staged one does",
        (operation) => {
          const value = 0x7ffffff5;
          for (const offset of [64, 128]) rig.setWord(remote.base + offset, 0x80000013);
          rig.setWord(local.base + 4, 1);
          const { index, generation } = remote;
          expect(owner.changeNow(job, index, generation, 64, operation, value, local.base + 4)).toBe(1);
          expect(rig.word(local.base + 4)).toBe(0x80000013);
          stage(DESCRIPTOR_RMW, operation, at(local), at(remote, 128), BigInt(value));
          expect(owner.submit(job, fifo, false)).toBe(TRANSFER_DONE);
          expect(rig.word(remote.base + 64)).toBe(rig.word(remote.base + 128));
          expect(owner.changeNow(job, index, generation, 64, operation | RMW_FETCH, value, 0)).toBe(1);
        },
      );

      it("without a descriptor, and not right: nothing is done", () => {
        const { index, generation, bytes } = remote;
        const wrong: [index: number, generation: number, offset: number, size: number][] = [
          [index, generation + 1, 0, 8],
          [index, generation - 1, 0, 8],
          [index + 1, generation, 0, 8],
          [NONE, generation, 0, 8],
          [index, generation, bytes - 7, 8],
          [index, generation, NONE, 8],
          [index, generation, 0, bytes + 1],
        ];
        compare(() => {
          for (const [which, times, offset, size] of wrong) {
            expect(owner.moveNow(job, which, times, offset, local.base, size, true)).toBe(0);
            expect(owner.moveNow(job, which, times, offset, local.base, size, false)).toBe(0);
            if (size === 8) expect(owner.changeNow(job, which, times, offset + 4, RMW_ADD, 1, local.base)).toBe(0);
          }
          for (const offset of [1, 2, 3]) {
            expect(owner.changeNow(job, index, generation, offset, RMW_ADD, 1, local.base)).toBe(0);
          }
        }, nothing);
      });

      it.each([false, true])("that is not right, callbacks %j: says so, whatever is before it", (hasCallback) => {
        for (let turn = 0; turn < 2; turn++) {
          expect(submit(DESCRIPTOR_GET, REGION_BYTES + 1, hasCallback)).toBe(TRANSFER_LOCAL_BOUNDS);
          expect(submit(77, 0, hasCallback)).toBe(TRANSFER_INVALID);
          expect(field(INJECTION_TAIL_OFFSET)).toBe(turn);
          injectEmpty(0);
        }
      });
    });

    describe("C4 the engine", () => {
      it("processes one FIFO strictly in order", () => {
        use({ slots: 1024 });
        const random = randomOf(4);
        // Each transfer reads what others have written, all of it close together: any other order ends otherwise.
        const steps = range(700).map(() => ({
          kind: 1 + random(3),
          from: random(40),
          to: random(40),
          bytes: random(48),
          value: random(1000),
        }));
        compare(
          () => {
            for (const { kind, from, to, bytes, value } of steps) {
              const slot =
                kind === DESCRIPTOR_RMW
                  ? injectRmw(RMW_ADD | RMW_FETCH, BigInt(value), 0n, at(local, from & ~3), at(remote, to & ~3), 0)
                  : inject(kind, bytes, at(local, from), at(remote, to), 0);
              expect(slot).not.toBe(NONE);
              if (random(10) === 0) run();
            }
            runAll();
          },
          (map, place) => {
            for (const { kind, from, to, bytes, value } of steps) {
              const [mine, its] = [place(local.base) + from, place(remote.base) + to];
              if (kind === DESCRIPTOR_PUT) map.copy(map, its, mine, mine + bytes);
              else if (kind === DESCRIPTOR_GET) map.copy(map, mine, its, its + bytes);
              else {
                const pointer = place(remote.base) + (to & ~3);
                const old = map.readUInt32LE(pointer);
                map.writeUInt32LE((old + value) % TWO_TO_32, pointer);
                map.writeUInt32LE(old, place(local.base) + (from & ~3));
              }
            }
          },
        );
      });

      it.each([SLOT_COUNT_MIN, 64, 1024])("sets the bit of exactly the slot of each completion, of %i", (slots) => {
        use({ slots });
        for (let position = 0; position < slots; position++) {
          startAt(position);
          expect(injectFence()).toBe(position);
          expect(slotsSet()).toEqual([]);
          expect(run()).toBe(0);
          expect(slotsSet()).toEqual([position]);
          expect(taken(position)).toBe(TRANSFER_DONE);
          expect(slotsSet()).toEqual([]);
        }
      });

      it.each(KINDS)("moves a long %s slice by slice, and what stands behind it waits", (_, kind) => {
        use(LARGE, LARGE_BYTES);
        const bytes = 600_000;
        const [from, to] = kind === DESCRIPTOR_PUT ? [local, remote] : [remote, local];
        rig.memory.bytes.fill(1, from.base, from.base + LARGE_BYTES);
        rig.memory.bytes.fill(0, to.base, to.base + LARGE_BYTES);
        const moved = (): number =>
          rig.memory.bytes.subarray(to.base, to.base + LARGE_BYTES).reduce((sum, byte) => sum + byte, 0);
        inject(kind, bytes, at(local), at(remote), 1);
        inject(kind, 10, at(local, 600_010), at(remote, 600_010), 1);
        for (const slices of [1, 2]) {
          expect(run()).toBe(4);
          expect(moved()).toBe(slices * SLICE_BYTES);
          expect(field(INJECTION_MOVED_OFFSET)).toBe(slices * SLICE_BYTES);
          expect(field(INJECTION_HEAD_OFFSET)).toBe(0);
          expect(owner.completionTake(fifo)).toBe(NONE);
        }
        expect(run()).toBe(0);
        expect(moved()).toBe(bytes + 10);
        expect(field(INJECTION_MOVED_OFFSET)).toBe(0);
        expect([1, 3].map(taken)).toEqual([TRANSFER_DONE, TRANSFER_DONE]);
      });

      it("ends a run before what would make it more than a slice's worth of bytes", () => {
        use(LARGE, LARGE_BYTES);
        const bytes = 100_000;
        for (let i = 0; i < 7; i++) inject(DESCRIPTOR_PUT, bytes, at(local), at(remote));
        const whole = Math.floor(SLICE_BYTES / bytes);
        expect([run(), run(), run(), run()]).toEqual([7 - whole, 7 - 2 * whole, 7 - 3 * whole, 0]);
        for (let i = 0; i < 50; i++) inject(DESCRIPTOR_PUT, 1000, at(local), at(remote));
        expect(run()).toBe(0);
      });

      // An engine thread has two budgets in a turn, one for what is short: see serve.suite.ts.
      itInline("moves no more than it is told to in one run; a slice, or what is left of a transfer, at a time", () => {
        use(LARGE, LARGE_BYTES);
        const sizes = [100, 0, 200, SLICE_BYTES + 50, 8];
        for (const size of sizes) inject(DESCRIPTOR_PUT, size, at(local), at(remote));
        const steps: [most: number, left: number, moved: number][] = [
          [0, 5, 0],
          [99, 5, 0],
          [100, 3, 0], // the one of no bytes, too
          [299, 2, 0],
          [SLICE_BYTES - 1, 2, 0],
          [SLICE_BYTES, 2, SLICE_BYTES],
          [49, 2, SLICE_BYTES],
          [57, 1, 0],
          [SLICE_BYTES, 0, 0],
        ];
        for (const [most, left, moved] of steps) {
          expect([most, engine.engineRun(job, fifo, most), field(INJECTION_MOVED_OFFSET)]).toEqual([most, left, moved]);
        }
      });

      itInline("an RMW counts as 8 bytes, a completion and a fence as none", () => {
        for (let i = 0; i < 10; i++) {
          injectRmw(RMW_ADD, 1n, 0n, at(local), at(remote), 2);
          injectFence();
        }
        expect(engine.engineRun(job, fifo, 7)).toBe(40);
        for (let left = 36; left >= 0; left -= 4) expect(engine.engineRun(job, fifo, 15)).toBe(left);
      });

      it("what is refused moves nothing: any number of it is done in one run, with a slice of what is behind", () => {
        use(LARGE, LARGE_BYTES);
        for (let i = 1; i <= 20; i++) inject(DESCRIPTOR_PUT, LARGE_BYTES + i, at(local), at(remote));
        inject(DESCRIPTOR_PUT, SLICE_BYTES + 1, at(local), at(remote));
        expect(run()).toBe(1);
        expect([field(INJECTION_REFUSED_OFFSET), field(INJECTION_MOVED_OFFSET)]).toEqual([20, SLICE_BYTES]);
      });

      it.each([SLICE_BYTES - 1, SLICE_BYTES, SLICE_BYTES + 1])(
        "a transfer of %i bytes is one, whatever runs it takes",
        (bytes) => {
          use(LARGE, LARGE_BYTES);
          inject(DESCRIPTOR_PUT, bytes, at(local), at(remote), 1);
          inject(DESCRIPTOR_PUT, bytes, at(local), at(remote, 7), 1);
          compare(
            () => {
              run();
              expect(field(INJECTION_HEAD_OFFSET) > 0).toBe(bytes <= SLICE_BYTES);
              expect(runAll()).toBeLessThanOrEqual(3);
            },
            (map, place) => {
              map.copy(map, place(remote.base), place(local.base), place(local.base) + bytes);
              map.copy(map, place(remote.base) + 7, place(local.base), place(local.base) + bytes);
            },
          );
          expect([1, 3].map(taken)).toEqual([TRANSFER_DONE, TRANSFER_DONE]);
        },
      );

      it("what came of a transfer that was refused is told to its completions, counted, and to no other's", () => {
        const bad = (): number => inject(DESCRIPTOR_PUT, 10, at(local), at(remote, REGION_BYTES - 9), 2);
        const steps: [slot: number, result: number][] = [
          [bad(), TRANSFER_REMOTE_BOUNDS],
          [injectEmpty(2), TRANSFER_DONE],
          [inject(DESCRIPTOR_GET, 1, at(local, REGION_BYTES), at(remote), 2), TRANSFER_LOCAL_BOUNDS],
          [inject(DESCRIPTOR_GET, 1, at(local), { ...at(remote), generation: 9 }, 2), TRANSFER_REMOTE_CLOSED],
          [injectRmw(RMW_ADD, 1n, 0n, at(local), at(remote, 4), 2), TRANSFER_DONE],
          [inject(DESCRIPTOR_GET, 1, { ...at(local), index: NONE }, at(remote), 2), TRANSFER_LOCAL_CLOSED],
          [injectRmw(RMW_ADD, 1n, 0n, at(local), at(remote, 2), 2), TRANSFER_INVALID],
          [inject(0, 1, at(local), at(remote), 2), TRANSFER_INVALID],
          [inject(77, 1, at(local), at(remote), 2), TRANSFER_INVALID],
          [inject(NONE, 1, at(local), at(remote), 2), TRANSFER_INVALID],
          [injectEmpty(2), TRANSFER_DONE],
        ];
        expect(run()).toBe(0);
        for (const [slot, result] of steps) {
          for (const next of [slot + 1, slot + 2]) {
            expect(owner.completionTake(fifo)).toBe(next + result * 2 ** COMPLETION_RESULT_SHIFT);
          }
        }
        expect(field(INJECTION_REFUSED_OFFSET)).toBe(steps.filter(([, result]) => result !== TRANSFER_DONE).length);
      });

      it("looks at the regions when it gets there: one closed since is refused, between two slices too", () => {
        use(LARGE, LARGE_BYTES);
        const other = open(1, 100);
        inject(DESCRIPTOR_PUT, 600_000, at(local), at(remote), 1);
        inject(DESCRIPTOR_PUT, 50, at(local), at(other), 1);
        inject(DESCRIPTOR_PUT, 50, at(local), at(other, 50), 1);
        expect(run()).toBe(6);
        engine.regionClose(job, remote.index);
        compare(
          () => expect(run()).toBe(0),
          (map, place) => {
            for (const offset of [0, 50]) {
              map.copy(map, place(other.base) + offset, place(local.base), place(local.base) + 50);
            }
          },
        );
        expect([1, 3, 5].map(taken)).toEqual([TRANSFER_REMOTE_CLOSED, TRANSFER_DONE, TRANSFER_DONE]);
        expect(field(INJECTION_REFUSED_OFFSET)).toBe(1);
      });

      it.each([TASK_CLOSED, TASK_DEAD])(
        "what goes to a task that has ended (%i) is not done, and what is behind it is; between two slices too",
        (state) => {
          use(LARGE, LARGE_BYTES);
          const other = open(0, 100);
          inject(DESCRIPTOR_PUT, 600_000, at(local), at(remote), 1);
          inject(DESCRIPTOR_GET, 10, at(local), at(remote), 1);
          injectRmw(RMW_ADD | RMW_FETCH, 1n, 0n, at(local), at(remote), 1);
          inject(DESCRIPTOR_PUT, 50, at(local), at(other), 1);
          expect(run()).toBe(8);
          rig.setWord(rig.task(1) + TASK_STATE_OFFSET, state);
          compare(
            () => expect(run()).toBe(0),
            (map, place) => map.copy(map, place(other.base), place(local.base), place(local.base) + 50),
          );
          const ended = TRANSFER_ENDED;
          expect([1, 3, 5, 7].map(taken)).toEqual([ended, ended, ended, TRANSFER_DONE]);
          expect([field(INJECTION_REFUSED_OFFSET), field(INJECTION_MOVED_OFFSET)]).toEqual([3, 0]);
        },
      );

      it("a descriptor that becomes another one between two slices changes nothing outside of the regions", () => {
        use(LARGE, LARGE_BYTES);
        for (const [bytes, localOffset, remoteOffset] of [
          [100, LARGE_BYTES - 100, LARGE_BYTES - 100],
          [0, LARGE_BYTES, 0],
          [0, 0, LARGE_BYTES],
          [SLICE_BYTES - 1, 0, LARGE_BYTES - SLICE_BYTES],
          [SLICE_BYTES + 1, 9, 99],
        ] as const) {
          for (const [, kind] of KINDS) {
            const slot = inject(kind, 600_000, at(local), at(remote), 1);
            expect(run()).toBe(2);
            const descriptor = slotPointer(slot);
            rig.setWord(descriptor + DESCRIPTOR_BYTES_OFFSET, bytes);
            rig.setWord(descriptor + DESCRIPTOR_LOCAL_INDEX_OFFSET + 8, localOffset);
            rig.setWord(descriptor + DESCRIPTOR_LOCAL_INDEX_OFFSET + 20, remoteOffset);
            compare(
              () => runAll(),
              (map, place) => {
                for (const { base } of [local, remote]) {
                  rig.area().copy(map, place(base), place(base), place(base) + LARGE_BYTES);
                }
              },
            );
            taken((slot + 1) % rig.map.slots);
          }
        }
      });
    });

    describe("C5 taking completions", () => {
      it("gives the oldest first, one at a time, and passes over slots without a callback", () => {
        const plan = [0, 1, 0, 0, 2, 1, 0, 1, 0, 0, 0, 2, 0];
        const expected: number[] = [];
        for (const completions of plan) {
          const slot = injectEmpty(completions);
          for (let i = 1; i <= completions; i++) expected.push(slot + i);
        }
        expect(owner.completionTake(fifo)).toBe(NONE);
        expect(run()).toBe(0);
        while (expected.length > 0) {
          expect(slotsSet()).toEqual(expected);
          expect(field(INJECTION_PENDING_OFFSET)).toBe(expected.length);
          const slot = expected.shift() as number;
          expect(taken(slot)).toBe(TRANSFER_DONE);
          expect(field(INJECTION_OLDEST_OFFSET)).toBe(slot + 1);
        }
        expect(owner.completionTake(fifo)).toBe(NONE);
        expect(field(INJECTION_PENDING_OFFSET)).toBe(0);
        expect(slotsSet()).toEqual([]);
      });

      it("the oldest is that of the lowest position, not of the lowest slot", () => {
        for (const [slots, start] of [
          [4, 3],
          [64, 50],
          [64, TWO_TO_32 - 10],
          [1024, TWO_TO_32 - 40],
          [1024, 700],
        ] as const) {
          use({ slots });
          startAt(start);
          const count = slots === 4 ? 2 : 30;
          const expected = range(count).map(() => (injectEmpty(1) + 1) % slots);
          runAll();
          expect(expected.map(taken)).toEqual(expected.map(() => TRANSFER_DONE));
          expect(field(INJECTION_OLDEST_OFFSET)).toBe((start + 2 * count) % TWO_TO_32);
        }
      });

      it("a completion may be taken while what stands behind it is not processed yet", () => {
        use(LARGE, LARGE_BYTES);
        injectEmpty(1);
        inject(DESCRIPTOR_PUT, 600_000, at(local), at(remote), 1);
        expect(run()).toBe(2);
        expect(taken(1)).toBe(TRANSFER_DONE);
        expect(owner.completionTake(fifo)).toBe(NONE);
        expect(injectEmpty(1)).toBe(4);
        runAll();
        expect([3, 5].map(taken)).toEqual([TRANSFER_DONE, TRANSFER_DONE]);
      });
    });

    describe("C6 reuse of slots", () => {
      it("a slot is not used again while its bit is unread, nor before the engine has passed it", () => {
        use({ slots: SLOT_COUNT_MIN });
        expect([injectEmpty(1), injectEmpty(1)]).toEqual([0, 2]);
        expect(injectEmpty(0)).toBe(NONE);
        expect(run()).toBe(0);
        for (let tries = 0; tries < 3; tries++) {
          expect(injectEmpty(0)).toBe(NONE);
          expect(injectFence()).toBe(NONE);
          expect(slotsSet()).toEqual([1, 3]);
        }
        expect(taken(1)).toBe(TRANSFER_DONE);
        expect(injectEmpty(2)).toBe(NONE);
        expect(injectEmpty(1)).toBe(0);
        expect(injectEmpty(0)).toBe(NONE);
        expect(slotsSet()).toEqual([3]);
        expect(taken(3)).toBe(TRANSFER_DONE);
        expect(owner.completionTake(fifo)).toBe(NONE);
        expect(run()).toBe(0);
        expect(taken(1)).toBe(TRANSFER_DONE);
      });

      it("slots without a callback are free once the engine has passed them", () => {
        use({ slots: SLOT_COUNT_MIN });
        expect(range(5).map(() => injectEmpty(0))).toEqual([0, 1, 2, 3, NONE]);
        expect(run()).toBe(0);
        expect(range(5).map(() => injectEmpty(0))).toEqual([0, 1, 2, 3, NONE]);
        expect(run()).toBe(0);
        expect([injectEmpty(2), injectEmpty(0), injectEmpty(0)]).toEqual([0, 3, NONE]);
        expect(run()).toBe(0);
        expect([1, 2].map(taken)).toEqual([TRANSFER_DONE, TRANSFER_DONE]);
        expect(injectEmpty(2)).toBe(0);
      });

      it("a fence needs one slot", () => {
        use({ slots: SLOT_COUNT_MIN });
        for (let turn = 0; turn < 3; turn++) {
          expect(range(5).map(() => injectFence())).toEqual([0, 1, 2, 3, NONE]);
          expect(run()).toBe(0);
          expect(range(4).map(taken)).toEqual([0, 0, 0, 0]);
        }
      });

      it.each([
        [SLOT_COUNT_MIN, 100],
        [64, 100],
        [512, 30],
        [1024, 30],
        [32768, 20],
        [SLOT_COUNT_MAX, 20],
      ])("of %i slots: no callback is lost, none comes twice, each in its turn", (slots, runs) => {
        use({ slots, tasks: 2, contexts: 1, fifos: 1 });
        const maskBytes = slotPointer(0) - fifo - INJECTION_MASK_OFFSET;
        // Positions close to where a slot number, or the position itself, turns over.
        const start = fc
          .tuple(fc.constantFrom(0, slots, 2 ** 31, TWO_TO_32), fc.integer({ min: 0, max: 70 }))
          .map(([end, before]) => (end - before + TWO_TO_32) % TWO_TO_32);
        const gap = fc.oneof(
          fc.integer({ min: 1, max: 40 }),
          fc.nat(slots),
          fc.integer({ min: 0, max: 14 }).map((power) => 2 ** power),
        );
        const steps = fc.array(
          fc.oneof(
            fc.record({ what: fc.constant("inject" as const), count: fc.nat(2) }),
            fc.record({ what: fc.constant("fence" as const), count: fc.integer({ min: 1, max: 40 }) }),
            fc.record({ what: fc.constant("skip" as const), count: gap }),
            fc.record({ what: fc.constant("run" as const), count: fc.constant(0) }),
            fc.record({ what: fc.constant("take" as const), count: fc.integer({ min: 1, max: 40 }) }),
          ),
          { maxLength: 60, size: "max" },
        );
        const property = fc.property(start, steps, (first, sequence) => {
          rig.memory.bytes.fill(0, fifo, fifo + INJECTION_MASK_OFFSET + maskBytes);
          formatInjection(rig.memory, fifo, slots);
          startAt(first);
          /** Positions of completions that are not taken, whether processed or not; and the model's own positions. */
          const listed: number[] = [];
          let [tail, head, oldest] = [first, first, first];
          const hasRoom = (needed: number): boolean => {
            // The owner looks how far the engine has come only where it must.
            if (tail - oldest + needed > slots && listed.length === 0) oldest = head;
            return tail - oldest + needed <= slots;
          };
          const expectSlot = (slot: number, needed: number): boolean => {
            const expected = hasRoom(needed) ? tail % slots : NONE;
            if (slot !== expected) expect.fail(`slot ${slot}, not ${expected}`);
            return slot !== NONE;
          };
          const take = (): void => {
            const next = listed[0];
            if (next === undefined || next >= head) {
              expect(owner.completionTake(fifo)).toBe(NONE);
              return;
            }
            expect(owner.completionTake(fifo)).toBe(next % slots);
            listed.shift();
            oldest = next + 1;
          };
          for (const { what, count } of sequence) {
            if (what === "inject") {
              if (expectSlot(injectEmpty(count), 1 + count)) {
                for (let i = 1; i <= count; i++) listed.push(tail + i);
                tail += 1 + count;
              }
            } else if (what === "fence") {
              for (let i = 0; i < count; i++) {
                if (expectSlot(injectFence(), 1)) listed.push(tail++);
              }
            } else if (what === "skip") {
              // As many transfers without a callback, which the engine has processed by now.
              const fits = hasRoom(count);
              rig.setWord(fifo + INJECTION_OLDEST_OFFSET, oldest);
              if (head !== tail || !fits) continue;
              skip(count);
              tail += count;
              head += count;
            } else if (what === "run") {
              expect(run()).toBe(0);
              head = tail;
            } else for (let i = 0; i < count; i++) take();
            expect(field(INJECTION_PENDING_OFFSET)).toBe(listed.length);
            expect(field(INJECTION_TAIL_OFFSET)).toBe(tail % TWO_TO_32);
          }
          run();
          head = tail;
          if (slots <= 1024) expect(slotsSet()).toEqual(listed.map((slot) => slot % slots).sort((a, b) => a - b));
          while (listed.length > 0) take();
          take();
        });
        assertProperty(property, runs);
        expect(slotsSet()).toEqual([]);
      });

      it("of the most slots: all of them are used, and all completions are taken in their turn", () => {
        use({ slots: SLOT_COUNT_MAX, tasks: 2, contexts: 1, fifos: 1 });
        startAt(TWO_TO_32 - 1000);
        const first = SLOT_COUNT_MAX - 1000;
        const wrong: number[] = [];
        for (let i = 0; i < SLOT_COUNT_MAX; i++) {
          if (injectFence() !== (first + i) % SLOT_COUNT_MAX) wrong.push(i);
        }
        expect(injectFence()).toBe(NONE);
        expect(run()).toBe(0);
        expect(injectFence()).toBe(NONE);
        expect(levels().every((level) => level.every((bits) => bits === 0xffffffff || level.length === 1))).toBe(true);
        for (let i = 0; i < SLOT_COUNT_MAX; i++) {
          if (owner.completionTake(fifo) !== (first + i) % SLOT_COUNT_MAX) wrong.push(i);
        }
        expect(wrong).toEqual([]);
        expect(owner.completionTake(fifo)).toBe(NONE);
        expect(slotsSet()).toEqual([]);
        for (const level of levels()) expect(bitsOf(level).length).toBeLessThanOrEqual(1);
      });
    });

    describe("F3 F4 a fence", () => {
      it("is one descriptor behind what stands there", () => {
        injectEmpty(0);
        injectEmpty(1);
        expect(injectFence()).toBe(3);
        expect(rig.word(slotPointer(3) + DESCRIPTOR_KIND_OFFSET)).toBe(DESCRIPTOR_FENCE);
        expect(field(INJECTION_PENDING_OFFSET)).toBe(2);
        expect(run()).toBe(0);
        expect([2, 3].map(taken)).toEqual([TRANSFER_DONE, TRANSFER_DONE]);
      });

      it("alone in an empty FIFO completes with the next run", () => {
        for (let slot = 0; slot < 3 * rig.map.slots; slot++) {
          expect(injectFence()).toBe(slot % rig.map.slots);
          expect(owner.completionTake(fifo)).toBe(NONE);
          expect(run()).toBe(0);
          expect(taken(slot % rig.map.slots)).toBe(TRANSFER_DONE);
        }
      });

      it("is not done before all bytes of the transfers before it are moved, and waits for none behind it", () => {
        use(LARGE, LARGE_BYTES);
        for (let i = 0; i < 3; i++) inject(DESCRIPTOR_PUT, 300_000, at(local, i), at(remote, 1000 * i));
        const fence = injectFence();
        const last = inject(DESCRIPTOR_PUT, LARGE_BYTES, at(local), at(remote));
        compare(
          () => {
            while (owner.completionTake(fifo) !== fence) expect(run()).toBeGreaterThan(0);
          },
          (map, place) => {
            for (let i = 0; i < 3; i++) {
              map.copy(map, place(remote.base) + 1000 * i, place(local.base) + i, place(local.base) + i + 300_000);
            }
            // The one behind it may have begun.
            const begun = field(INJECTION_MOVED_OFFSET);
            map.copy(map, place(remote.base), place(local.base), place(local.base) + begun);
          },
        );
        expect(field(INJECTION_HEAD_OFFSET)).toBe(last);
      });

      it("two of them are told apart", () => {
        const slots = [injectFence(), injectFence()];
        injectEmpty(0);
        slots.push(injectFence());
        expect(run()).toBe(0);
        expect(slots).toEqual([0, 1, 3]);
        expect(slots.map(taken)).toEqual([0, 0, 0]);
      });
    });

    describe("RMW", () => {
      const OPERATIONS: [name: string, code: number][] = [
        ["set", RMW_SET],
        ["add", RMW_ADD],
        ["or", RMW_OR],
        ["and", RMW_AND],
        ["xor", RMW_XOR],
      ];
      const MODES: [name: string, code: number][] = [
        ["", 0],
        ["fetch-", RMW_FETCH],
        ["compare-", RMW_COMPARE],
        ["fetch-compare-", RMW_FETCH | RMW_COMPARE],
      ];
      const VALUES = [
        0n,
        1n,
        0x7fffffffn,
        0x80000000n,
        0xffffffffn,
        0x1_00000000n,
        0x80000000_00000000n,
        0x01234567_89abcdefn,
        0xffffffff_ffffffffn,
      ];

      function write(pointer: number, value: bigint): void {
        rig.setWord(pointer, low(value));
        rig.setWord(pointer + 4, high(value));
      }

      const read = (pointer: number): bigint => (BigInt(rig.word(pointer + 4)) << 32n) | BigInt(rig.word(pointer));

      it.each(
        OPERATIONS.flatMap(([what, code]) => MODES.map(([mode, flag]) => [`${mode}${what}`, code | flag] as const)),
      )("%s, of 32 and 64 bits, both ways", (_, operation) => {
        const [target, result] = [remote.base + 64, local.base + 32];
        const other = 0x5a5a5a5a_a5a5a5a5n;
        compare(
          () => {
            for (const bits of [32, 64]) {
              const wide = bits === 64 ? RMW_WIDE : 0;
              const cut = (value: bigint): bigint => BigInt.asUintN(bits, value);
              /** The rest of the eight bytes stays as it was. */
              const within = (before: bigint, value: bigint): bigint =>
                bits === 64 ? value : (before & 0xffffffff_00000000n) | value;
              for (const way of WAYS) {
                for (const old of VALUES) {
                  for (const value of VALUES) {
                    for (const test of [old, old ^ 1n, old ^ 0x80000000_00000000n, value]) {
                      write(target - 8, other);
                      write(target, old);
                      write(target + 8, other);
                      write(result - 8, other);
                      write(result, other);
                      write(result + 8, other);
                      const code = rmw(way, operation | wide, value, test, at(local, 32), at(remote, 64));
                      const does = (operation & RMW_COMPARE) === 0 || cut(test) === cut(old);
                      const after = does ? within(old, cut(changed(operation, cut(old), cut(value)))) : old;
                      const fetched = (operation & RMW_FETCH) === 0 ? other : within(other, cut(old));
                      const found = [read(target - 8), read(target), read(target + 8)];
                      const gave = [read(result - 8), read(result), read(result + 8)];
                      const message = `${way}, ${bits} bits: ${old.toString(16)}, ${value.toString(16)}, ${test.toString(16)}`;
                      if (code !== TRANSFER_DONE) expect.fail(`${message}: result ${code}`);
                      if (`${found} ${gave}` !== `${[other, after, other]} ${[other, fetched, other]}`) {
                        expect([found, gave], message).toEqual([
                          [other, after, other],
                          [other, fetched, other],
                        ]);
                      }
                    }
                  }
                }
              }
            }
          },
          (map, place) => {
            for (const pointer of [target, result]) {
              rig.area().copy(map, place(pointer) - 8, place(pointer) - 8, place(pointer) + 16);
            }
          },
        );
      });

      it.each(WAYS)("of a word at its own place, and where the old value goes to the word itself, %s", (way) => {
        write(remote.base, 5n);
        expect(rmw(way, RMW_ADD | RMW_FETCH, 3n, 0n, at(remote), at(remote))).toBe(TRANSFER_DONE);
        expect(read(remote.base)).toBe(5n);
        write(remote.base, 5n);
        expect(rmw(way, RMW_ADD | RMW_FETCH, 3n, 0n, at(remote, 4), at(remote))).toBe(TRANSFER_DONE);
        expect(read(remote.base)).toBe(0x5_00000008n);
      });

      it.each(WAYS)("without fetch, the origin's region means nothing, %s", (way) => {
        const none = { index: NONE, generation: 0, offset: NONE };
        write(remote.base, 5n);
        expect(rmw(way, RMW_ADD, 3n, 0n, none, at(remote))).toBe(TRANSFER_DONE);
        expect(rmw(way, RMW_ADD | RMW_COMPARE | RMW_WIDE, 3n, 8n, none, at(remote))).toBe(TRANSFER_DONE);
        expect(read(remote.base)).toBe(11n);
      });

      it.each(WAYS)("a word that is not aligned is refused, %s", (way) => {
        compare(() => {
          for (const [wide, size] of [
            [0, 4],
            [RMW_WIDE, 8],
          ] as const) {
            for (let offset = 1; offset < 2 * size; offset++) {
              if (offset === size) continue;
              for (const [, mode] of MODES) {
                const operation = RMW_ADD | mode | wide;
                expect(rmw(way, operation, 1n, 0n, at(local, 8), at(remote, offset))).toBe(TRANSFER_INVALID);
                if ((mode & RMW_FETCH) !== 0) {
                  expect(rmw(way, operation, 1n, 0n, at(local, offset), at(remote, 8))).toBe(TRANSFER_INVALID);
                }
              }
            }
          }
        }, nothing);
      });

      it.each(WAYS)("an operation that there is not is refused, %s", (way) => {
        const unknown = [0, 6, 7, RMW_FETCH, RMW_COMPARE, RMW_WIDE, RMW_WIDE | RMW_FETCH | 6, 256 | RMW_ADD];
        compare(() => {
          for (const operation of [...unknown, 0x102, 2 ** 31 + RMW_ADD, NONE]) {
            expect(rmw(way, operation, 1n, 0n, at(local), at(remote)), `operation ${operation}`).toBe(TRANSFER_INVALID);
          }
        }, nothing);
        if (way === "by a descriptor") expect(field(INJECTION_REFUSED_OFFSET)).toBe(unknown.length + 3);
      });
    });

    describe("an RMW that tells of the transfer before it", () => {
      const TELLS = RMW_ADD | RMW_NOTIFY | RMW_BEHIND;
      /** How often the owner of the remote region has been rung, once it may be asleep. */
      function armed(): () => number {
        const owner = rig.task(Math.floor(remote.index / rig.map.regions));
        rig.setWord(owner + TASK_PARKED_OFFSET, 1);
        const before = rig.word(owner + TASK_BELL_OFFSET);
        return () => rig.word(owner + TASK_BELL_OFFSET) - before;
      }

      it.each(WAYS)("wakes the owner of the region behind the change, and nobody where it was refused, %s", (way) => {
        const rung = armed();
        expect(rmw(way, RMW_SET | RMW_NOTIFY, 5n, 0n, at(local), at(remote, 8))).toBe(TRANSFER_DONE);
        expect([rung(), rig.word(remote.base + 8)]).toEqual([1, 5]);
        expect(rmw(way, RMW_SET | RMW_NOTIFY, 5n, 0n, at(local), at(remote, 2))).toBe(TRANSFER_INVALID);
        expect(rmw(way, RMW_SET, 6n, 0n, at(local), at(remote, 8))).toBe(TRANSFER_DONE);
        expect(rung()).toBe(1);
      });

      it("is done behind one that was done, and comes to the same as one that was not", () => {
        rig.setWord(remote.base + 8, 0);
        inject(DESCRIPTOR_PUT, 4, at(local), at(remote));
        const done = injectRmw(TELLS, 1n, 0n, at(local), at(remote, 8), 1);
        inject(DESCRIPTOR_PUT, 4, at(local), { ...at(remote), generation: 9 });
        const refused = injectRmw(TELLS, 1n, 0n, at(local), at(remote, 8), 1);
        const rung = armed();
        runAll();
        expect([taken(done + 1), taken(refused + 1)]).toEqual([TRANSFER_DONE, TRANSFER_REMOTE_CLOSED]);
        expect(rig.word(remote.base + 8)).toBe(1);
        expect(rung()).toBe(1);
      });
    });

    describe("what goes to another node", () => {
      /** Of another node; tasks 0 and 1 are the node's own. */
      const OTHER = 2;
      const AWAY_KINDS: [name: string, kind: number, size: number][] = [
        ["put", DESCRIPTOR_PUT, 100],
        ["get", DESCRIPTOR_GET, 100],
        ["rmw", DESCRIPTOR_RMW, RMW_ADD | RMW_FETCH],
      ];

      // The agent has the slot of an engine thread, also where it works inline.
      beforeEach(() => use({ engine: "thread", locals: OTHER }));

      const away = (offset = 0, task = OTHER): Place => ({ index: task * rig.map.regions + 5, generation: 7, offset });
      const isAway = (): number => field(INJECTION_AWAY_OFFSET);

      /** One run of the engine: what it says of the FIFO, or of the context. */
      function step(): number {
        if (!isThread) return engine.engineRun(job, fifo, SLICE_BYTES);
        owner.engineCall(job, 0);
        const due = engine.engineServe(job);
        expect(due).toBe(rig.due().length);
        return due;
      }

      function expectStopped(head: number): void {
        expect([step(), field(INJECTION_HEAD_OFFSET), isAway()]).toEqual([0, head, AWAY_FOUND]);
      }

      it.each(AWAY_KINDS)("a %s stops the FIFO, until the agent has carried it", (_, kind, size) => {
        const before = inject(DESCRIPTOR_PUT, 8, at(local), at(remote), 1);
        const slot = inject(kind, size, at(local), away(), 1);
        const behind = inject(DESCRIPTOR_PUT, 8, at(local, 8), at(remote, 8), 1);
        const fence = injectFence();
        expectStopped(2);
        expect(slotsSet()).toEqual([before + 1]);
        expect(rig.read(remote.base, 8)).toEqual(rig.read(local.base, 8));
        // Nothing behind it is done, also while the agent has it, and whatever else is run.
        for (const state of [AWAY_FOUND, AWAY_TAKEN]) {
          rig.setWord(fifo + INJECTION_AWAY_OFFSET, state);
          const words = rig.read(fifo, rig.map.injectionSize);
          compare(() => expect(step()).toBe(0), nothing);
          expect(rig.read(fifo, rig.map.injectionSize)).toEqual(words);
        }
        engine.engineCarried(fifo, TRANSFER_DONE);
        expect([isAway(), field(INJECTION_HEAD_OFFSET), slotsSet()]).toEqual([AWAY_NONE, 3, [before + 1]]);
        expect(step()).toBe(0);
        expect([before + 1, slot + 1, behind + 1, fence].map((each) => taken(each))).toEqual(
          Array(4).fill(TRANSFER_DONE),
        );
        expect(rig.read(remote.base + 8, 8)).toEqual(rig.read(local.base + 8, 8));
        expect([field(INJECTION_HEAD_OFFSET), field(INJECTION_REFUSED_OFFSET)]).toEqual([7, 0]);
      });

      it("what stopped one FIFO stops no other one", () => {
        inject(DESCRIPTOR_PUT, 8, at(local), away());
        expectStopped(0);
        fifo = rig.fifo(0, 1);
        const slot = inject(DESCRIPTOR_PUT, 8, at(local), at(remote), 1);
        expect([step(), taken(slot + 1), isAway()]).toEqual([0, TRANSFER_DONE, AWAY_NONE]);
      });

      it("what came of it is told to its completions, and to the next fence alone; what depends on it is cut off", () => {
        rig.setWord(remote.base + 8, 5);
        const slot = inject(DESCRIPTOR_PUT, 8, at(local), away(), 2);
        const cut = injectRmw(RMW_ADD | RMW_BEHIND, 1n, 0n, at(local), at(remote, 8), 1);
        const other = inject(DESCRIPTOR_PUT, 4, at(local), at(remote), 1);
        const fences = [injectFence(), injectFence()];
        expectStopped(0);
        engine.engineCarried(fifo, TRANSFER_REMOTE_BOUNDS);
        expect(field(INJECTION_REFUSED_OFFSET)).toBe(1);
        expect(step()).toBe(0);
        expect([slot + 1, slot + 2, cut + 1, other + 1, ...fences].map((each) => taken(each))).toEqual([
          TRANSFER_REMOTE_BOUNDS,
          TRANSFER_REMOTE_BOUNDS,
          TRANSFER_REMOTE_BOUNDS,
          TRANSFER_DONE,
          TRANSFER_REMOTE_BOUNDS,
          TRANSFER_DONE,
        ]);
        expect([rig.word(remote.base + 8), field(INJECTION_REFUSED_OFFSET)]).toEqual([5, 2]);
      });

      it("an RMW that depends on a transfer goes behind one that was done, and not behind one that was not", () => {
        const tells = RMW_ADD | RMW_BEHIND;
        inject(DESCRIPTOR_PUT, 4, at(local), { ...at(remote), generation: 9 });
        const refused = injectRmw(tells, 1n, 0n, at(local), away(), 1);
        inject(DESCRIPTOR_PUT, 4, at(local), at(remote));
        injectRmw(tells, 1n, 0n, at(local), away(), 1);
        expectStopped(4);
        expect(taken(refused + 1)).toBe(TRANSFER_REMOTE_CLOSED);
      });

      it("a slot is used again once what was in it is carried", () => {
        use({ engine: "thread", locals: OTHER, slots: SLOT_COUNT_MIN });
        for (let i = 0; i < SLOT_COUNT_MIN; i++) inject(DESCRIPTOR_PUT, 0, at(local), away());
        expectStopped(0);
        expect(injectEmpty()).toBe(NONE);
        engine.engineCarried(fifo, TRANSFER_DONE);
        expect([injectEmpty(), injectEmpty()]).toEqual([0, NONE]);
        expectStopped(1);
      });

      it("more than a slice stops it as well, and moves nothing; then a long one behind it is moved", () => {
        use({ engine: "thread", locals: OTHER, ...LARGE }, LARGE_BYTES);
        const slot = inject(DESCRIPTOR_GET, LARGE_BYTES, at(local), away(), 1);
        const behind = inject(DESCRIPTOR_PUT, LARGE_BYTES, at(local), at(remote), 1);
        compare(() => expectStopped(0), nothing);
        engine.engineCarried(fifo, TRANSFER_DONE);
        expect(field(INJECTION_MOVED_OFFSET)).toBe(0);
        runAll();
        expect([taken(slot + 1), taken(behind + 1)]).toEqual([TRANSFER_DONE, TRANSFER_DONE]);
        const [from, to] = [local, remote].map(({ base }) => rig.memory.bytes.subarray(base, base + LARGE_BYTES));
        expect(Buffer.compare(from as Uint8Array, to as Uint8Array)).toBe(0);
      });

      it.each(AWAY_KINDS)("a %s is to be injected, and is right as far as this node can say", (_, kind, size) => {
        compare(() => {
          for (const hasCallback of [false, true]) {
            stage(kind, size, at(local), away());
            expect(owner.submit(job, fifo, hasCallback)).toBe(TRANSFER_LATER);
          }
          expect(owner.perform(job, fifo + INJECTION_STAGED_OFFSET, 0)).toBe(TRANSFER_DONE);
          expect(owner.perform(job, fifo + INJECTION_STAGED_OFFSET, 8)).toBe(TRANSFER_AWAY);
          const { index, generation } = away();
          expect(owner.moveNow(job, index, generation, 0, local.base, 8, true)).toBe(0);
          expect(owner.changeNow(job, index, generation, 0, RMW_SET, 1, 0)).toBe(0);
        }, nothing);
        expect(isAway()).toBe(AWAY_NONE);
      });

      it.each(["submitted", "checked", "injected"])("what is wrong on this side is refused on this side, %s", (way) => {
        function outcome(kind: number, size: number, from: Place, to: Place): number {
          if (way === "injected") return transfer("by a descriptor", kind, size, from, to);
          if (way === "checked") return transferNow(kind, size, from, to, 0);
          stage(kind, size, from, to);
          return owner.submit(job, fifo, false);
        }
        const wide = RMW_ADD | RMW_WIDE;
        const right = way === "checked" ? TRANSFER_DONE : TRANSFER_LATER;
        for (const offset of [1, 2, 3, 6]) {
          expect(outcome(DESCRIPTOR_RMW, RMW_ADD, at(local), away(offset))).toBe(TRANSFER_INVALID);
        }
        for (const offset of [1, 4, 12])
          expect(outcome(DESCRIPTOR_RMW, wide, at(local), away(offset))).toBe(TRANSFER_INVALID);
        expect(outcome(DESCRIPTOR_RMW, RMW_OPERATION_MASK, at(local), away())).toBe(TRANSFER_INVALID);
        // As a local region, one of another node is none.
        for (const [, kind, size] of AWAY_KINDS) {
          expect(outcome(kind, size, away(), away())).toBe(TRANSFER_LOCAL_CLOSED);
          expect(outcome(kind, size, { ...at(local), generation: 9 }, away())).toBe(TRANSFER_LOCAL_CLOSED);
          expect(outcome(kind, size, away(), at(remote))).toBe(TRANSFER_LOCAL_CLOSED);
          expect(outcome(kind, size, at(local, REGION_BYTES), away())).toBe(TRANSFER_LOCAL_BOUNDS);
        }
        // Behind the last slot there is no task.
        const end = rig.map.tasks * rig.map.regions;
        for (const index of [end, end + 5, 2 ** 28 + end, 2 ** 31, NONE]) {
          for (const [, kind, size] of AWAY_KINDS) {
            expect(outcome(kind, size, at(local), { ...away(), index })).toBe(TRANSFER_REMOTE_CLOSED);
          }
        }
        expect(isAway()).toBe(AWAY_NONE);
        if (way === "injected") return;
        // Every offset for what moves bytes, and the last index of the last slot.
        expect(outcome(DESCRIPTOR_PUT, 8, at(local), away(3))).toBe(right);
        expect(outcome(DESCRIPTOR_RMW, RMW_ADD, at(local), away(4))).toBe(right);
        expect(outcome(DESCRIPTOR_PUT, 8, at(local), { ...away(), index: end - 1 })).toBe(right);
        expect(outcome(DESCRIPTOR_PUT, 8, at(local), { ...away(), index: OTHER * rig.map.regions })).toBe(right);
      });

      it.each([TASK_CLOSED, TASK_DEAD])("to a task whose slot says that it has ended (%i), nothing goes", (state) => {
        rig.setWord(rig.task(OTHER) + TASK_STATE_OFFSET, state);
        const results = AWAY_KINDS.map(([, kind, size]) => transfer("by a descriptor", kind, size, at(local), away()));
        expect([results, isAway()]).toEqual([Array(3).fill(TRANSFER_ENDED), AWAY_NONE]);
      });

      it("given up with the rest once the engine has ended, and then the FIFO goes on", () => {
        const slot = inject(DESCRIPTOR_PUT, 8, at(local), away(), 1);
        const fence = injectFence();
        expectStopped(0);
        rig.setWord(fifo + INJECTION_AWAY_OFFSET, AWAY_TAKEN);
        rig.setWord(rig.engine + TASK_STATE_OFFSET, TASK_DEAD);
        owner.engineGiveUp(rig.map.job, fifo);
        expect([isAway(), taken(slot + 1), taken(fence)]).toEqual([AWAY_NONE, TRANSFER_BROKEN, TRANSFER_BROKEN]);
        const next = inject(DESCRIPTOR_PUT, 8, at(local), at(remote), 1);
        expect([owner.engineRun(job, fifo, SLICE_BYTES), taken(next + 1)]).toEqual([0, TRANSFER_DONE]);
      });

      it("an index of another node is no entry here, whatever lies behind the last one", () => {
        const end = OTHER * rig.map.regions;
        fifo = rig.fifo(1);
        // The first FIFO's positions look like an open entry.
        rig.setWord(rig.map.regionsBase + end * REGION_SIZE + REGION_GENERATION_OFFSET, remote.generation);
        const behind = { index: end, generation: remote.generation, offset: 0 };
        expect(transferNow(DESCRIPTOR_PUT, 0, behind, at(remote))).toBe(TRANSFER_LOCAL_CLOSED);
        expect(transferNow(DESCRIPTOR_PUT, 0, at(local), behind, 8)).toBe(TRANSFER_AWAY);
        expect(owner.placeOf(job, end, remote.generation, 0, 0)).toBe(0);
        const last = engine.regionOpen(job, end - 1, remote.base, 8);
        expect(owner.placeOf(job, end - 1, last, 0, 8)).toBe(remote.base);
      });
    });

    describe("C4 random descriptors", () => {
      interface Handle {
        readonly region: number;
        readonly delta: number;
        readonly random: readonly [index: number, generation: number] | undefined;
        readonly offset: number;
      }

      interface Descriptor {
        readonly kind: number;
        readonly bytes: number;
        readonly from: Handle;
        readonly to: Handle;
        readonly value: bigint;
        readonly test: bigint;
        readonly rest: readonly number[];
      }

      /** Regions to be named: two open ones of each task, and a closed one. */
      const CLOSED = 4;
      const offset = fc.oneof(
        { weight: 4, arbitrary: fc.nat(64).map((words) => 8 * words) },
        { weight: 2, arbitrary: fc.nat(600) },
        { weight: 2, arbitrary: fc.integer({ min: -20, max: 2 }).map((beyond) => REGION_BYTES + beyond) },
        { weight: 1, arbitrary: word },
      );
      const handle: fc.Arbitrary<Handle> = fc.record({
        region: fc.oneof({ weight: 9, arbitrary: fc.nat(CLOSED - 1) }, { weight: 1, arbitrary: fc.constant(CLOSED) }),
        delta: fc.oneof(
          { weight: 9, arbitrary: fc.constant(0) },
          { weight: 1, arbitrary: fc.constantFrom(-2, -1, 1, 2) },
        ),
        random: fc.oneof(
          { weight: 12, arbitrary: fc.constant(undefined) },
          { weight: 1, arbitrary: fc.tuple(fc.oneof(fc.nat(60), word), fc.oneof(fc.nat(4), word)) },
        ),
        offset,
      });
      const operation = fc
        .tuple(fc.integer({ min: 1, max: 5 }), fc.nat(7))
        .map(([code, flags]) => code | (flags * RMW_FETCH));
      const bytes = fc.oneof(
        { weight: 3, arbitrary: fc.nat(140) },
        { weight: 1, arbitrary: fc.integer({ min: -2, max: 2 }).map((more) => REGION_BYTES + more) },
        { weight: 1, arbitrary: word },
      );
      const wideWord = fc.tuple(word, fc.oneof(fc.constant(0), word)).map(([a, b]) => (BigInt(b) << 32n) | BigInt(a));
      const descriptor: fc.Arbitrary<Descriptor> = fc
        .oneof(
          { weight: 4, arbitrary: fc.tuple(fc.constantFrom(DESCRIPTOR_PUT, DESCRIPTOR_GET), bytes) },
          {
            weight: 4,
            arbitrary: fc.tuple(
              fc.constant(DESCRIPTOR_RMW),
              fc.oneof({ weight: 6, arbitrary: operation }, { weight: 1, arbitrary: word }),
            ),
          },
          { weight: 1, arbitrary: fc.tuple(fc.oneof(fc.nat(6), word), bytes) },
        )
        .chain(([kind, size]) =>
          fc.record({
            kind: fc.constant(kind),
            bytes: fc.constant(size),
            from: handle,
            to: handle,
            value: wideWord,
            test: fc.oneof(fc.constant(0n), wideWord),
            rest: fc.array(word, { minLength: 4, maxLength: 4 }),
          }),
        );

      function named({ region, delta, random, offset }: Handle): Place {
        if (random !== undefined) return { index: random[0], generation: random[1], offset };
        const { index, generation } = regions[region] as Region;
        return { index, generation: (generation + delta) >>> 0, offset };
      }

      /**
       * What the engine is to make of a descriptor: its result; what it changes is changed in the map.
       * @param before what came of the one before it in its FIFO
       */
      function model(
        { kind, bytes, from, to, value, test }: Descriptor,
        map: Buffer,
        place: (pointer: number) => number,
        before: number,
      ): number {
        const find = ({ index, generation }: Place): Region | undefined =>
          regions.slice(0, CLOSED).find((region) => region.index === index && region.generation === generation);
        const [mine, its] = [named(from), named(to)];
        const [mineIn, itsIn] = [find(mine), find(its)];
        if (kind === DESCRIPTOR_PUT || kind === DESCRIPTOR_GET) {
          if (mineIn === undefined) return TRANSFER_LOCAL_CLOSED;
          if (mine.offset + bytes > mineIn.bytes) return TRANSFER_LOCAL_BOUNDS;
          if (itsIn === undefined) return TRANSFER_REMOTE_CLOSED;
          if (its.offset + bytes > itsIn.bytes) return TRANSFER_REMOTE_BOUNDS;
          const [a, b] = [place(mineIn.base) + mine.offset, place(itsIn.base) + its.offset];
          if (kind === DESCRIPTOR_PUT) map.copyWithin(b, a, a + bytes);
          else map.copyWithin(a, b, b + bytes);
          return TRANSFER_DONE;
        }
        if (kind !== DESCRIPTOR_RMW) return TRANSFER_INVALID;
        const known = RMW_OPERATION_MASK | RMW_FETCH | RMW_COMPARE | RMW_WIDE | RMW_NOTIFY | RMW_BEHIND;
        if ((bytes & RMW_BEHIND) !== 0 && before !== TRANSFER_DONE) return before;
        const code = bytes & RMW_OPERATION_MASK;
        if (code < RMW_SET || code > RMW_XOR || bytes > known) return TRANSFER_INVALID;
        const fetches = (bytes & RMW_FETCH) !== 0;
        const size = (bytes & RMW_WIDE) === 0 ? 4 : 8;
        if (fetches && mineIn === undefined) return TRANSFER_LOCAL_CLOSED;
        if (fetches && mine.offset + size > (mineIn?.bytes ?? 0)) return TRANSFER_LOCAL_BOUNDS;
        if (itsIn === undefined) return TRANSFER_REMOTE_CLOSED;
        if (its.offset + size > itsIn.bytes) return TRANSFER_REMOTE_BOUNDS;
        if (its.offset % size !== 0 || (fetches && mine.offset % size !== 0)) return TRANSFER_INVALID;
        const cut = (wide: bigint): bigint => BigInt.asUintN(8 * size, wide);
        const put = (pointer: number, wide: bigint): void => {
          map.writeUInt32LE(low(wide), pointer);
          if (size === 8) map.writeUInt32LE(high(wide), pointer + 4);
        };
        const pointer = place(itsIn.base) + its.offset;
        const old = size === 8 ? map.readBigUInt64LE(pointer) : BigInt(map.readUInt32LE(pointer));
        if ((bytes & RMW_COMPARE) === 0 || old === cut(test)) put(pointer, cut(changed(bytes, old, cut(value))));
        if (fetches) put(place((mineIn as Region).base) + mine.offset, old);
        return TRANSFER_DONE;
      }

      function useRegions(): void {
        use();
        open(0, REGION_BYTES);
        open(1, REGION_BYTES);
        const closed = open(1, REGION_BYTES);
        engine.regionClose(job, closed.index);
        // Zeros too: then some compares find what they look for.
        for (const { base } of regions) rig.memory.bytes.fill(0, base, base + 256);
      }

      /** Injects, and then writes every word of the slot over. */
      function scribble({ kind, bytes, from, to, value, test, rest }: Descriptor): number {
        const slot = injectEmpty();
        const [mine, its] = [named(from), named(to)];
        const words = [kind, bytes, mine.index, mine.generation, mine.offset, its.index, its.generation, its.offset];
        const pointer = slotPointer(slot);
        for (const [i, value] of words.entries()) rig.setWord(pointer + 4 * i, value);
        const operands = [low(value), high(value), low(test), high(test), ...rest];
        for (const [i, value] of operands.entries()) rig.setWord(pointer + DESCRIPTOR_VALUE_OFFSET + 4 * i, value);
        return slot;
      }

      const setsBit = (kind: number): boolean => kind === DESCRIPTOR_COMPLETION || kind === DESCRIPTOR_FENCE;

      it("each is refused or done, and counted; no byte is changed but what it says", () => {
        const property = fc.property(fc.array(descriptor, { minLength: 1, maxLength: 60, size: "max" }), (list) => {
          useRegions();
          let refused = 0;
          const bits: number[] = [];
          compare(
            () => {
              for (const each of list) {
                const slot = scribble(each);
                if (setsBit(each.kind)) bits.push(slot);
              }
              runAll();
            },
            (map, place) => {
              let before = TRANSFER_DONE;
              for (const each of list) {
                if (setsBit(each.kind)) continue;
                before = model(each, map, place, before);
                if (before !== TRANSFER_DONE) refused++;
              }
            },
          );
          expect(field(INJECTION_REFUSED_OFFSET)).toBe(refused);
          expect(field(INJECTION_HEAD_OFFSET)).toBe(list.length);
          expect(slotsSet()).toEqual(bits);
        });
        assertProperty(property, 100);
      });

      it("each one's completion says what came of it, and at once it is the same", () => {
        const property = fc.property(fc.array(descriptor, { minLength: 1, maxLength: 20, size: "max" }), (list) => {
          useRegions();
          const expected: number[] = [];
          compare(
            () => {
              for (const { kind, bytes, from, to, value, test } of list) {
                if (setsBit(kind)) continue;
                const [mine, its] = [named(from), named(to)];
                const slot =
                  kind === DESCRIPTOR_RMW
                    ? injectRmw(bytes, value, test, mine, its, 1)
                    : inject(kind, bytes, mine, its, 1);
                run();
                expected.push(taken(slot + 1));
              }
            },
            (map, place) => {
              let before = TRANSFER_DONE;
              for (const each of list) {
                if (setsBit(each.kind)) continue;
                before = model(each, map, place, before);
                expect(before).toBe(expected.shift());
              }
            },
          );
          useRegions();
          compare(
            () => {
              for (const { kind, bytes, from, to, value, test } of list) {
                const [mine, its] = [named(from), named(to)];
                if (kind === DESCRIPTOR_RMW) expected.push(rmwNow(bytes, value, test, mine, its));
                else if (kind === DESCRIPTOR_PUT || kind === DESCRIPTOR_GET) {
                  expected.push(transferNow(kind, bytes, mine, its));
                }
              }
            },
            (map, place) => {
              for (const each of list) {
                if (each.kind >= DESCRIPTOR_PUT && each.kind <= DESCRIPTOR_RMW) {
                  expect(model(each, map, place, TRANSFER_DONE)).toBe(expected.shift());
                }
              }
            },
          );
        });
        assertProperty(property, 100);
      });
    });
  });
}
