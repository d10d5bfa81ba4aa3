// What every implementation of the chain kernels does (P1–P9): windows, and the descriptors that two engines hand each other.
// The producer stands for the origin, the consumer for the target. Endpoint 0 sends to endpoint 2, of another task.
import { beforeEach, describe, expect, it } from "vitest";
import {
  BLOCK_SIZE,
  BLOCK_STATUS_OFFSET,
  BLOCK_WINDOWS_OFFSET,
  CONTEXT_WINDOWS_OFFSET,
  DESCRIPTOR_BYTES_OFFSET,
  DESCRIPTOR_FETCH,
  DESCRIPTOR_KIND_OFFSET,
  DESCRIPTOR_LOCAL_OFFSET_OFFSET,
  DESCRIPTOR_MOVE,
  DESCRIPTOR_NOTICE,
  DESCRIPTOR_REFILL,
  DESCRIPTOR_REMOTE_OFFSET_OFFSET,
  DESCRIPTOR_RGET,
  DESCRIPTOR_SHIFT,
  DESCRIPTOR_VALUE_OFFSET,
  LINK_SIZE,
  NONE,
  OPEN_BUSY,
  OPEN_NO_MEMORY,
  PAGE_SIZE,
  SLICE_BYTES,
  TRANSFER_CANCELED,
  TRANSFER_DONE,
  TRANSFER_LOCAL_CLOSED,
  TRANSFER_REFUSED,
  TRANSFER_REMOTE_BOUNDS,
  WINDOW_ALLOWED_OFFSET,
  WINDOW_BIT_OFFSET,
  WINDOW_BYTES_OFFSET,
  WINDOW_CHAIN_GENERATION_OFFSET,
  WINDOW_CHAIN_INDEX_OFFSET,
  WINDOW_DEPTH_OFFSET,
  WINDOW_FROM_GENERATION_OFFSET,
  WINDOW_FROM_INDEX_OFFSET,
  WINDOW_FROM_OFFSET_OFFSET,
  WINDOW_HEAD_OFFSET,
  WINDOW_LEFT_OFFSET,
  WINDOW_OWN_GENERATION_OFFSET,
  WINDOW_OWN_INDEX_OFFSET,
  WINDOW_OWN_OFFSET_OFFSET,
  WINDOW_PASSED_OFFSET,
  WINDOW_PEER_GENERATION_OFFSET,
  WINDOW_PEER_INDEX_OFFSET,
  WINDOW_PEER_OFFSET_OFFSET,
  WINDOW_PEER_TASK_OFFSET,
  WINDOW_PEER_WINDOW_OFFSET,
  WINDOW_PORTION_OFFSET,
  WINDOW_RESULT_OFFSET,
  WINDOW_RING_OFFSET,
  WINDOW_SIZE,
  WINDOW_SLOTS,
  WINDOW_SLOTS_OFFSET,
  WINDOW_STATUS_OFFSET,
  WINDOW_STOP_OFFSET,
  WINDOW_TAIL_OFFSET,
  WINDOW_TO_GENERATION_OFFSET,
  WINDOW_TO_INDEX_OFFSET,
  WINDOW_TO_OFFSET_OFFSET,
  WINDOW_WRONG_OFFSET,
} from "../../assembly/layout.js";
import type { Kernel } from "../../src/kernel/kernel.js";
import { makeRig, type Rig, type RigOptions } from "../support/kernels.js";

interface Region {
  readonly index: number;
  readonly generation: number;
  readonly base: number;
}

/** A window of a side. */
interface Side {
  readonly kernel: Kernel;
  readonly task: number;
  readonly context: number;
  readonly block: Region;
  /** Offset of the window in its block. */
  readonly offset: number;
  readonly window: number;
  readonly generation: number;
}

interface Chain {
  readonly portions: number;
  readonly depth: number;
  readonly portion?: number;
  /** Bytes of the last portion. */
  readonly last?: number;
  readonly ring?: number;
  readonly allowed?: number;
}

const NAMES: Record<number, string> = {
  [DESCRIPTOR_RGET]: "RGET",
  [DESCRIPTOR_FETCH]: "FETCH",
  [DESCRIPTOR_REFILL]: "REFILL",
  [DESCRIPTOR_MOVE]: "MOVE",
  [DESCRIPTOR_NOTICE]: "NOTICE",
};

/** The conformance suite of the chain kernels for those that `options` choose. */
export function chainSuite(name: string, options: RigOptions): void {
  describe(`chains: ${name}`, () => {
    const HEAP = { heapBytes: 1024 * PAGE_SIZE };
    let rig: Rig;
    let job: number;
    let opened: number;
    let payload: Region;
    let destination: Region;

    beforeEach(() => {
      rig = makeRig({ ...options, ...HEAP });
      job = rig.map.job;
      opened = 0;
    });

    function region(kernel: Kernel, task: number, bytes: number): Region {
      const base = kernel.regionAllocate(job, Math.ceil(bytes / PAGE_SIZE), task);
      if (base === OPEN_NO_MEMORY || base === OPEN_BUSY) throw new Error(`regionAllocate() gave ${base}`);
      const index = task * rig.map.regions + opened++;
      return { index, generation: kernel.regionOpen(job, index, base, bytes), base };
    }

    /** A window of endpoint 0 (task 0) or 2 (task 1), in a block of its own. */
    function side(kernel: Kernel, task: number, number: number, allowed: number): Side {
      const context = rig.context(task * rig.map.contexts);
      const known = rig.word(context + CONTEXT_WINDOWS_OFFSET);
      const block = region(kernel, task, BLOCK_SIZE);
      rig.memory.bytes.fill(0, block.base, block.base + BLOCK_SIZE);
      rig.setWord(block.base, known);
      kernel.storeWord(context + CONTEXT_WINDOWS_OFFSET, block.base);
      const offset = BLOCK_WINDOWS_OFFSET + number * WINDOW_SIZE;
      const window = block.base + offset;
      rig.setWord(window + WINDOW_STATUS_OFFSET, block.base + BLOCK_STATUS_OFFSET);
      rig.setWord(window + WINDOW_BIT_OFFSET, 1 << number);
      rig.setWord(window + WINDOW_PEER_TASK_OFFSET, rig.task(1 - task));
      return { kernel, task, context, block, offset, window, generation: kernel.windowOpen(window, allowed) };
    }

    function set(window: number, words: [offset: number, value: number][]): void {
      for (const [offset, value] of words) rig.setWord(window + offset, value);
    }

    /** Both sides of a transfer, its chain written. The payload is 1, 2, 3 … modulo 251. */
    function begin({ portions, depth, portion = 100, last = portion, ring = 0, allowed = NONE }: Chain) {
      const bytes = (portions - 1) * portion + last;
      const origin = side(rig.producer, 0, 3, allowed);
      const target = side(rig.consumer, 1, 5, NONE);
      payload = region(rig.producer, 0, bytes + 16);
      destination = region(rig.consumer, 1, bytes + 24);
      for (let i = 0; i < bytes; i++) rig.memory.bytes[payload.base + 8 + i] = (i % 251) + 1;
      const links = region(rig.consumer, 1, portions * LINK_SIZE);
      set(target.window, [
        [WINDOW_PEER_INDEX_OFFSET, origin.block.index],
        [WINDOW_PEER_GENERATION_OFFSET, origin.block.generation],
        [WINDOW_PEER_OFFSET_OFFSET, origin.offset],
        [WINDOW_PEER_WINDOW_OFFSET, origin.generation],
        [WINDOW_OWN_INDEX_OFFSET, target.block.index],
        [WINDOW_OWN_GENERATION_OFFSET, target.block.generation],
        [WINDOW_OWN_OFFSET_OFFSET, target.offset],
        [WINDOW_FROM_INDEX_OFFSET, payload.index],
        [WINDOW_FROM_GENERATION_OFFSET, payload.generation],
        [WINDOW_FROM_OFFSET_OFFSET, 8],
        [WINDOW_TO_INDEX_OFFSET, destination.index],
        [WINDOW_TO_GENERATION_OFFSET, destination.generation],
        [WINDOW_TO_OFFSET_OFFSET, 16],
        [WINDOW_CHAIN_INDEX_OFFSET, links.index],
        [WINDOW_CHAIN_GENERATION_OFFSET, links.generation],
        [WINDOW_BYTES_OFFSET, bytes],
        [WINDOW_PORTION_OFFSET, portion],
        [WINDOW_RING_OFFSET, ring],
        [WINDOW_DEPTH_OFFSET, depth],
      ]);
      expect(rig.consumer.chainWrite(job, target.window)).toBe(portions);
      return { origin, target, bytes, portion };
    }

    /** Descriptors that were injected into a window since `from`, with which portion or origin RGET they are about. */
    function injected({ window }: Side, from: number, portion: number): string[] {
      const tail = rig.word(window + WINDOW_TAIL_OFFSET);
      return Array.from({ length: tail - from }, (_, i) => {
        const slot = window + WINDOW_SLOTS_OFFSET + (((from + i) & (WINDOW_SLOTS - 1)) << DESCRIPTOR_SHIFT);
        const word = (offset: number) => rig.word(slot + offset);
        const kind = word(DESCRIPTOR_KIND_OFFSET);
        const link = word(DESCRIPTOR_REMOTE_OFFSET_OFFSET) / LINK_SIZE;
        if (kind === DESCRIPTOR_FETCH) return `FETCH link ${link} (${word(DESCRIPTOR_BYTES_OFFSET)})`;
        if (kind === DESCRIPTOR_MOVE) return `MOVE ${(word(DESCRIPTOR_LOCAL_OFFSET_OFFSET) - 8) / portion}`;
        if (kind === DESCRIPTOR_RGET) return `RGET ${word(DESCRIPTOR_VALUE_OFFSET)}`;
        if (kind === DESCRIPTOR_REFILL) return `REFILL ${word(DESCRIPTOR_VALUE_OFFSET)} link ${link}`;
        return NAMES[kind] ?? `kind ${kind}`;
      });
    }

    const run = ({ kernel, context }: Side): number => kernel.chainRun(job, context);
    const status = ({ block }: Side): number => rig.word(block.base + BLOCK_STATUS_OFFSET);
    const result = ({ window }: Side): number => rig.word(window + WINDOW_RESULT_OFFSET);
    const left = ({ window }: Side): number => rig.word(window + WINDOW_LEFT_OFFSET);
    const tail = ({ window }: Side): number => rig.word(window + WINDOW_TAIL_OFFSET);
    const head = ({ window }: Side): number => rig.word(window + WINDOW_HEAD_OFFSET);

    /** Lets both engines run until both sides are told; fails if that takes too long. */
    function finish({ origin, target }: { origin: Side; target: Side }): void {
      for (let i = 0; i < 10_000; i++) {
        if (status(origin) !== 0 && status(target) !== 0) return;
        run(target);
        run(origin);
      }
      throw new Error(`not over: ${left(target)} bytes are left`);
    }

    function expectPayload(bytes: number): void {
      const { bytes: memory } = rig.memory;
      const from = memory.subarray(payload.base + 8, payload.base + 8 + bytes);
      const to = memory.subarray(destination.base + 16, destination.base + 16 + bytes);
      expect(Buffer.compare(from, to)).toBe(0);
      for (const edge of [destination.base, destination.base + 16 + bytes]) {
        expect([...memory.subarray(edge, edge + 8)]).toEqual(Array(8).fill(0xa5));
      }
    }

    const shapes = [1, 2, 3, 100].flatMap((portions) => [1, 2, 4].map((depth) => ({ portions, depth })));

    /** What is shipped, in order, for n portions at a depth: to the origin, and to the target. */
    function described(n: number, depth: number) {
      const slots = (i: number): number => 1 + Number(i + depth < n) + Number(i + 2 * depth < n) + Number(i === n - 1);
      const link = (i: number): string[] => [
        ...(i + depth < n ? [`RGET ${i % depth}`] : []),
        ...(i + 2 * depth < n ? [`REFILL ${i % depth} link ${i + 2 * depth}`] : []),
        `MOVE ${i}`,
        ...(i === n - 1 ? ["NOTICE"] : []),
      ];
      const all = Array.from({ length: n }, (_, i) => i);
      return { toOrigin: all.flatMap(link), toTarget: all.map((i) => `FETCH link ${i} (${slots(i)})`) };
    }

    describe.each(shapes)("P1 P2 P3 P4 P5 P8 $portions portions, depth $depth", ({ portions, depth }) => {
      it("ships the descriptors of the description, in its order, and never more than there is room for", () => {
        const transfer = begin({ portions, depth, portion: 96, last: 41 });
        const { origin, target, bytes } = transfer;
        const toOrigin: string[] = [];
        const toTarget = injected(target, 0, 96);
        expect(toTarget).toHaveLength(Math.min(depth, portions));
        for (let turn = 0; status(origin) === 0 || status(target) === 0; turn++) {
          if (turn > 10 * portions) throw new Error("it does not come to an end");
          for (const [here, there, list] of [
            [target, origin, toOrigin],
            [origin, target, toTarget],
          ] as const) {
            const before = tail(there);
            run(here);
            list.push(...injected(there, before, 96));
            expect(tail(there) - head(there)).toBeLessThanOrEqual(3 * depth + 2);
          }
        }
        expect({ toOrigin, toTarget }).toEqual(described(portions, depth));
        expect([result(origin), rig.word(target.window + WINDOW_WRONG_OFFSET)]).toEqual([TRANSFER_DONE, TRANSFER_DONE]);
        expect([status(origin), status(target)]).toEqual([1 << 3, 1 << 5]);
        expectPayload(bytes);
      });

      it("each slice by itself comes to the same", () => {
        const transfer = begin({ portions: Math.min(portions, 3), depth, portion: SLICE_BYTES + 100, last: 7 });
        finish(transfer);
        expectPayload(transfer.bytes);
      });
    });

    it("P4 the request for the next portion is shipped before its portion moves", () => {
      const { origin, target } = begin({ portions: 2, depth: 1, portion: 2 * SLICE_BYTES });
      run(target);
      expect(run(origin)).toBe(1);
      expect(left(target)).toBe(4 * SLICE_BYTES);
      expect(injected(target, 1, 1)).toEqual(["FETCH link 1 (2)"]);
    });

    it("P7 the target is told once, when all bytes have arrived, and not before", () => {
      const transfer = begin({ portions: 3, depth: 2, last: 1 });
      const { origin, target } = transfer;
      const seen: number[][] = [];
      for (let i = 0; i < 8; i++) {
        run(target);
        run(origin);
        seen.push([left(target), status(target)]);
      }
      expect(seen.findIndex(([bytes]) => bytes === 0)).toBe(seen.findIndex(([, bits]) => bits !== 0));
      expect(seen.map(([bytes]) => bytes)).toContain(101);
    });

    it("P8 the origin is told by the last descriptor, behind the last portion", () => {
      const { origin, target } = begin({ portions: 1, depth: 1, portion: 2 * SLICE_BYTES });
      run(target);
      run(origin);
      expect([status(origin), left(target)]).toEqual([0, 2 * SLICE_BYTES]);
      run(origin);
      expect([status(origin), left(target)]).toEqual([1 << 3, 0]);
    });

    it("P9 a target that does not run holds its origin back after as many portions as it has asked for", () => {
      const { origin, target, bytes } = begin({ portions: 10, depth: 2 });
      run(target);
      for (let i = 0; i < 20; i++) run(origin);
      expect(left(target)).toBe(bytes - 200);
      expect([run(origin), origin.kernel.chainPeek(origin.context)]).toEqual([0, 0]);
      expect(target.kernel.chainPeek(target.context)).toBe(1);
      finish({ origin, target });
      expectPayload(bytes);
    });

    it("P9 one slice of a portion, then another window's turn", () => {
      const first = begin({ portions: 1, depth: 1, portion: 3 * SLICE_BYTES });
      const firstPayload = [payload, destination] as const;
      run(first.target);
      // A second window in the same block.
      const small = begin({ portions: 1, depth: 1, portion: 8 });
      run(small.target);
      expect(run(small.origin)).toBe(1);
      expect(left(small.target)).toBe(0);
      expect(status(small.origin)).toBe(1 << 3);
      finish(first);
      [payload, destination] = firstPayload;
      expectPayload(first.bytes);
    });

    it("a portion that is not staged yet is waited for, and the rest goes through a ring", () => {
      const { origin, target } = begin({ portions: 5, depth: 2, portion: 64, ring: 2, allowed: 1 });
      for (let staged = 1; staged <= 5; staged++) {
        for (let i = 0; i < 5; i++) {
          run(target);
          run(origin);
        }
        expect(rig.word(origin.window + WINDOW_PASSED_OFFSET)).toBe(staged);
        expect(left(target)).toBe((5 - staged) * 64);
        const from = destination.base + 16 + (staged - 1) * 64;
        const ring = payload.base + 8 + ((staged - 1) % 2) * 64;
        expect(rig.read(from, 64)).toEqual(rig.read(ring, 64));
        rig.memory.bytes.fill(staged, ring, ring + 64);
        if (staged < 5) {
          expect(origin.kernel.chainPeek(origin.context)).toBe(0);
          origin.kernel.storeWord(origin.window + WINDOW_ALLOWED_OFFSET, staged + 1);
          expect(origin.kernel.chainPeek(origin.context)).toBe(1);
        }
      }
      expect([status(origin), status(target)]).toEqual([1 << 3, 1 << 5]);
    });

    describe("P10", () => {
      it.each(["origin", "target"] as const)(
        "the %s gives it up: nothing more is moved, both are told, all is empty",
        (who) => {
          const transfer = begin({ portions: 10, depth: 2 });
          const { origin, target } = transfer;
          run(target);
          for (let i = 0; i < 3; i++) run(origin);
          const before = rig.read(destination.base, 1024);
          const side = transfer[who];
          side.kernel.storeWord(side.window + WINDOW_STOP_OFFSET, TRANSFER_CANCELED);
          finish(transfer);
          expect(rig.read(destination.base, 1024)).toEqual(before);
          expect([result(origin), rig.word(target.window + WINDOW_WRONG_OFFSET)]).toEqual([
            TRANSFER_CANCELED,
            TRANSFER_CANCELED,
          ]);
          for (const { window } of [origin, target])
            expect(rig.word(window + WINDOW_HEAD_OFFSET)).toBe(rig.word(window + WINDOW_TAIL_OFFSET));
        },
      );

      it("a payload whose region is closed, a destination that is too small: nothing is written, both are told", () => {
        const closed = begin({ portions: 4, depth: 2 });
        const before = rig.read(destination.base, 448);
        rig.producer.regionClose(job, payload.index);
        finish(closed);
        expect(rig.read(destination.base, 448)).toEqual(before);
        expect(result(closed.origin)).toBe(TRANSFER_LOCAL_CLOSED);
        expect(rig.word(closed.target.window + WINDOW_WRONG_OFFSET)).toBe(TRANSFER_LOCAL_CLOSED);
        const small = begin({ portions: 4, depth: 2, portion: 200, last: 100 });
        rig.consumer.regionClose(job, destination.index);
        destination = {
          ...destination,
          generation: rig.consumer.regionOpen(job, destination.index, destination.base, 500),
        };
        const after = rig.read(destination.base + 500, 400);
        set(small.target.window, [[WINDOW_TO_GENERATION_OFFSET, destination.generation]]);
        // The links as they are now.
        expect(rig.consumer.chainWrite(job, small.target.window)).toBe(4);
        finish(small);
        expect(rig.read(destination.base + 500, 400)).toEqual(after);
        expect(result(small.origin)).toBe(TRANSFER_REMOTE_BOUNDS);
      });

      it("a window that was closed is not written to, whoever still has something for it", () => {
        const { origin, target } = begin({ portions: 6, depth: 2 });
        run(target);
        run(origin);
        target.kernel.windowClose(target.window);
        const before = rig.read(target.window, WINDOW_SIZE);
        for (let i = 0; i < 5; i++) run(origin);
        expect(rig.read(target.window, WINDOW_SIZE)).toEqual(before);
        expect(run(target)).toBe(0);
        origin.kernel.windowClose(origin.window);
        expect(run(origin)).toBe(0);
        expect(origin.kernel.chainPeek(origin.context)).toBe(0);
      });

      it("a notice alone, as of what is not taken", () => {
        const { origin } = begin({ portions: 1, depth: 1 });
        const { block, offset, generation } = origin;
        const notice = (own: number): number =>
          rig.consumer.chainNotice(job, block.index, block.generation, offset, own, rig.task(0), TRANSFER_REFUSED);
        expect(notice(generation + 2)).toBe(0);
        expect(tail(origin)).toBe(0);
        expect(notice(generation)).toBe(1);
        run(origin);
        expect([status(origin), result(origin)]).toEqual([1 << 3, TRANSFER_REFUSED]);
      });
    });
  });
}
