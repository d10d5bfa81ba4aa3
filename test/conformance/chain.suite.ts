// What every implementation of the chain kernels does (P1–P9): rget FIFOs, and the descriptors that two engines hand each
// other. The producer stands for the origin, the consumer for the target, and for the engine thread where there is one.
// Endpoint 0 sends to endpoint 2, of another task. A run is one look of a side's engine: chainRun(), or a turn of the
// engine thread in which only that side is due; a core calls the engine where one would. What only holds inline says so:
// see serve.suite.ts.
import fc from "fast-check";
import { beforeEach, describe, expect, it } from "vitest";
import {
  AWAY_BEGUN,
  AWAY_OVER,
  AWAY_YES,
  BLOCK_NEXT_OFFSET,
  BLOCK_RGET_FIFOS_OFFSET,
  BLOCK_SIZE,
  BLOCK_STATUS_OFFSET,
  CONTEXT_RGET_FIFOS_OFFSET,
  DEPTH_MAX,
  DESCRIPTOR_BYTES_OFFSET,
  DESCRIPTOR_FENCE,
  DESCRIPTOR_FETCH,
  DESCRIPTOR_KIND_OFFSET,
  DESCRIPTOR_LOCAL_OFFSET_OFFSET,
  DESCRIPTOR_MOVE,
  DESCRIPTOR_NOTICE,
  DESCRIPTOR_PUT,
  DESCRIPTOR_REFILL,
  DESCRIPTOR_REMOTE_GENERATION_OFFSET,
  DESCRIPTOR_REMOTE_INDEX_OFFSET,
  DESCRIPTOR_REMOTE_OFFSET_OFFSET,
  DESCRIPTOR_RGET,
  DESCRIPTOR_SHIFT,
  DESCRIPTOR_SIZE,
  DESCRIPTOR_VALUE_OFFSET,
  JOB_DUE_OFFSET,
  LINK_COUNT_MAX,
  LINK_SIZE,
  LINK_SLOTS,
  NONE,
  PAGE_SIZE,
  RGET_FIFO_ALLOWED_OFFSET,
  RGET_FIFO_AWAY_OFFSET,
  RGET_FIFO_BYTES_OFFSET,
  RGET_FIFO_CHAIN_GENERATION_OFFSET,
  RGET_FIFO_COUNT,
  RGET_FIFO_DEPTH_OFFSET,
  RGET_FIFO_FRAGMENT_OFFSET,
  RGET_FIFO_GENERATION_OFFSET,
  RGET_FIFO_HEAD_OFFSET,
  RGET_FIFO_LEFT_OFFSET,
  RGET_FIFO_MOVED_OFFSET,
  RGET_FIFO_PASSED_OFFSET,
  RGET_FIFO_PEER_FIFO_OFFSET,
  RGET_FIFO_PEER_GENERATION_OFFSET,
  RGET_FIFO_PEER_INDEX_OFFSET,
  RGET_FIFO_PEER_OFFSET_OFFSET,
  RGET_FIFO_RESULT_OFFSET,
  RGET_FIFO_RGETS_OFFSET,
  RGET_FIFO_SIZE,
  RGET_FIFO_SLOTS,
  RGET_FIFO_SLOTS_OFFSET,
  RGET_FIFO_STOP_OFFSET,
  RGET_FIFO_TAIL_OFFSET,
  RGET_FIFO_WRONG_OFFSET,
  SLICE_BYTES,
  TASK_CLOSED,
  TASK_DEAD,
  TASK_STATE_OFFSET,
  TRANSFER_CANCELED,
  TRANSFER_DONE,
  TRANSFER_ENDED,
  TRANSFER_LOCAL_CLOSED,
  TRANSFER_REFUSED,
  TRANSFER_REMOTE_BOUNDS,
} from "../../assembly/layout.js";
import { bytesFrom } from "../support/bytes.js";
import {
  type Chain,
  Chains,
  type End,
  FROM,
  type Place,
  type Region,
  type Side,
  sideOf,
  TO,
  type Transfer,
} from "../support/chains.js";
import { makeRig, type Rig, type RigOptions } from "../support/kernels.js";
import { assertProperty } from "../support/seed.js";

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
    const LIMITS = { heapBytes: 2048 * PAGE_SIZE, regions: 64 };
    const isThread = options.engine === "thread";
    /** Of what holds inline only. */
    const itInline = (what: string, test: () => void): void => {
      if (!isThread) it(what, test);
    };
    let rig: Rig;
    let job: number;
    let chains: Chains;

    function reset(): void {
      rig = makeRig({ ...options, ...LIMITS });
      job = rig.map.job;
      chains = new Chains(rig, (task) => (task === 0 ? rig.producer : rig.consumer));
    }

    beforeEach(reset);

    /** A block of rget FIFOs of task 0 or 1. */
    const block = (task: number): Region => chains.block(task * rig.map.contexts);

    /** Blocks of rget FIFOs for a transfer of its own. */
    const anyPlace = (): Place => ({ blocks: [block(0), block(1)], numbers: [3, 5] });

    const prepare = (chain: Chain, place: Place): Transfer => chains.prepare(chain, place);

    function set(rgetFifo: number, words: [offset: number, value: number][]): void {
      for (const [offset, value] of words) rig.setWord(rgetFifo + offset, value);
    }

    /** As prepare(), with the chain written. Each transfer is in blocks of its own, unless a place is given. */
    function begin(chain: Chain, place = anyPlace()): Transfer {
      const transfer = prepare(chain, place);
      expect(chains.write(transfer)).toBe(chain.fragments);
      return transfer;
    }

    /** A core has its engine look. */
    const call = ({ kernel, ordinal }: End): void => kernel.engineCall(job, ordinal);

    /** A core allows so many fragments of what it stages. */
    function allow(side: End, fragments: number): void {
      side.kernel.storeWord(side.rgetFifo + RGET_FIFO_ALLOWED_OFFSET, fragments);
      call(side);
    }

    /** A core gives a transfer up. */
    function stop(transfer: Transfer, who: "origin" | "target"): void {
      const { kernel, rgetFifo } = transfer[who];
      kernel.storeWord(rgetFifo + RGET_FIFO_STOP_OFFSET, TRANSFER_CANCELED);
      for (const { ordinal } of [transfer.origin, transfer.target]) kernel.engineCall(job, ordinal);
    }

    /** A core ends a transfer, with no engine at it. */
    function close({ kernel, rgetFifo }: End): void {
      kernel.rgetClose(rgetFifo);
      kernel.rgetClear(rgetFifo);
    }

    /** Descriptors that were injected into an rget FIFO since `from`, with which fragment or origin RGET they are about. */
    function injected({ rgetFifo }: Side, from: number, fragment: number): string[] {
      const tail = rig.word(rgetFifo + RGET_FIFO_TAIL_OFFSET);
      return Array.from({ length: tail - from }, (_, i) => {
        const slot = rgetFifo + RGET_FIFO_SLOTS_OFFSET + (((from + i) & (RGET_FIFO_SLOTS - 1)) << DESCRIPTOR_SHIFT);
        const word = (offset: number) => rig.word(slot + offset);
        const kind = word(DESCRIPTOR_KIND_OFFSET);
        const link = word(DESCRIPTOR_REMOTE_OFFSET_OFFSET) / LINK_SIZE;
        if (kind === DESCRIPTOR_FETCH) return `FETCH link ${link} (${word(DESCRIPTOR_BYTES_OFFSET)})`;
        if (kind === DESCRIPTOR_MOVE) return `MOVE ${(word(DESCRIPTOR_LOCAL_OFFSET_OFFSET) - 8) / fragment}`;
        if (kind === DESCRIPTOR_RGET) return `RGET ${word(DESCRIPTOR_VALUE_OFFSET)}`;
        if (kind === DESCRIPTOR_REFILL) return `REFILL ${word(DESCRIPTOR_VALUE_OFFSET)} link ${link}`;
        return NAMES[kind] ?? `kind ${kind}`;
      });
    }

    /** Rget FIFOs of a context in which an engine would find something to do. */
    function remaining({ context }: Side): number {
      let count = 0;
      for (let at = rig.word(context + CONTEXT_RGET_FIFOS_OFFSET); at !== 0; at = rig.word(at + BLOCK_NEXT_OFFSET)) {
        for (let i = 0; i < RGET_FIFO_COUNT; i++) {
          const word = (offset: number): number => rig.word(at + BLOCK_RGET_FIFOS_OFFSET + i * RGET_FIFO_SIZE + offset);
          const position = word(RGET_FIFO_HEAD_OFFSET);
          if (word(RGET_FIFO_GENERATION_OFFSET) % 2 === 0 || position === word(RGET_FIFO_TAIL_OFFSET)) continue;
          const kind = word(RGET_FIFO_SLOTS_OFFSET + ((position & (RGET_FIFO_SLOTS - 1)) << DESCRIPTOR_SHIFT));
          const isStaged = word(RGET_FIFO_PASSED_OFFSET) < word(RGET_FIFO_ALLOWED_OFFSET);
          if (kind !== DESCRIPTOR_MOVE || isStaged || word(RGET_FIFO_STOP_OFFSET) !== TRANSFER_DONE) count++;
        }
      }
      return count;
    }

    /** One turn of the engine thread, for one context: what else is due waits. */
    function serveOnly({ ordinal }: Side): void {
      const due = job + JOB_DUE_OFFSET;
      const others = rig.word(due) & ~(1 << ordinal);
      rig.setWord(due, rig.word(due) & (1 << ordinal));
      const count = rig.consumer.engineServe(job);
      expect(count).toBe(rig.due().length);
      rig.setWord(due, rig.word(due) | others);
    }

    /** The engine of a side runs: how many rget FIFOs of its context have something left. */
    function run(side: End): number {
      const count = isThread ? undefined : side.kernel.chainRun(job, side.context, SLICE_BYTES);
      if (isThread) serveOnly(side);
      const left = remaining(side);
      if (!isThread) expect(count).toBe(left);
      // Whatever is left is done without another call.
      else if (left !== 0) expect(rig.due()).toContain(side.ordinal);
      return left;
    }

    /** Whether it is seen before sleep that there is something to do: by the side's own thread, or by that of the engine. */
    function isSeen(side: End): boolean {
      if (status(side) !== 0) return true;
      return isThread ? rig.due().includes(side.ordinal) : side.kernel.chainLeft(side.context) !== 0;
    }

    const status = ({ block }: Side): number => rig.word(block.base + BLOCK_STATUS_OFFSET);
    const result = ({ rgetFifo }: Side): number => rig.word(rgetFifo + RGET_FIFO_RESULT_OFFSET);
    const left = ({ rgetFifo }: Side): number => rig.word(rgetFifo + RGET_FIFO_LEFT_OFFSET);
    const tail = ({ rgetFifo }: Side): number => rig.word(rgetFifo + RGET_FIFO_TAIL_OFFSET);
    const head = ({ rgetFifo }: Side): number => rig.word(rgetFifo + RGET_FIFO_HEAD_OFFSET);
    /** Bytes that are moved of the fragment at head. */
    const moved = ({ rgetFifo }: Side): number => rig.word(rgetFifo + RGET_FIFO_MOVED_OFFSET);
    const wrong = ({ rgetFifo }: Side): number => rig.word(rgetFifo + RGET_FIFO_WRONG_OFFSET);
    const isTold = (side: Side): boolean => (status(side) & (1 << side.number)) !== 0;

    /** Lets both engines run until both sides are told; fails if that takes too long. */
    function finish({ origin, target }: Transfer): void {
      for (let i = 0; i < 10_000; i++) {
        if (isTold(origin) && isTold(target)) return;
        if (isThread) rig.consumer.engineServe(job);
        else for (const side of [target, origin]) run(side);
      }
      throw new Error(`not over: ${left(target)} bytes are left`);
    }

    /** The destination holds these bytes, and nothing else has been written to its pages. */
    function expectAt({ destination, to }: Transfer, bytes: Uint8Array): void {
      const end = Math.ceil((to + bytes.length + 8) / PAGE_SIZE) * PAGE_SIZE;
      const pages = Buffer.alloc(end, 0xa5);
      pages.set(bytes, to);
      const area = rig.memory.bytes.subarray(destination.base, destination.base + end);
      expect(Buffer.compare(area, pages)).toBe(0);
    }

    function expectPayload(transfer: Transfer): void {
      const { payload, from, bytes } = transfer;
      expectAt(transfer, rig.memory.bytes.slice(payload.base + from, payload.base + from + bytes));
    }

    /** Both are told so, each once; and all is empty. */
    function expectOver({ origin, target }: Transfer, outcome = TRANSFER_DONE): void {
      expect([isTold(origin), isTold(target)]).toEqual([true, true]);
      expect([result(origin), wrong(target)]).toEqual([outcome, outcome]);
      expect(left(target)).toBe(0);
      for (const side of [origin, target]) {
        expect(head(side)).toBe(tail(side));
        rig.setWord(side.block.base + BLOCK_STATUS_OFFSET, 0);
        expect([run(side), isSeen(side), status(side)]).toEqual([0, false, 0]);
      }
    }

    const shapes = [1, 2, 3, 100].flatMap((fragments) => [1, 2, 4].map((depth) => ({ fragments, depth })));

    /** What is shipped, in order, for n fragments at a depth: to the origin, and to the target. */
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

    describe.each(shapes)("P1 P2 P3 P4 P5 P8 $fragments fragments, depth $depth", ({ fragments, depth }) => {
      it("ships the descriptors of the description, in its order, and never more than there is room for", () => {
        const transfer = begin({ fragments, depth, fragment: 96, last: 41 });
        const { origin, target } = transfer;
        const toOrigin: string[] = [];
        const toTarget = injected(target, 0, 96);
        expect(toTarget).toHaveLength(Math.min(depth, fragments));
        for (let turn = 0; status(origin) === 0 || status(target) === 0; turn++) {
          if (turn > 10 * fragments) throw new Error("it does not come to an end");
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
        expect({ toOrigin, toTarget }).toEqual(described(fragments, depth));
        expect([status(origin), status(target)]).toEqual([1 << 3, 1 << 5]);
        expectPayload(transfer);
        expectOver(transfer);
      });

      it("each slice by itself comes to the same", () => {
        const transfer = begin({ fragments: Math.min(fragments, 3), depth, fragment: SLICE_BYTES + 100, last: 7 });
        finish(transfer);
        expectPayload(transfer);
        expectOver(transfer);
      });
    });

    it("P4 the request for the next fragment is shipped before its fragment moves", () => {
      const { origin, target } = begin({ fragments: 2, depth: 1, fragment: 2 * SLICE_BYTES });
      run(target);
      expect(run(origin)).toBe(1);
      expect(left(target)).toBe(4 * SLICE_BYTES);
      expect(injected(target, 1, 1)).toEqual(["FETCH link 1 (2)"]);
    });

    it("P7 the target is told once, when all bytes have arrived, and not before", () => {
      const { origin, target } = begin({ fragments: 3, depth: 2, fragment: SLICE_BYTES, last: 1 });
      const seen: number[] = [];
      let told = 0;
      for (let i = 0; i < 8; i++) {
        for (const side of [target, origin]) {
          run(side);
          seen.push(left(target));
          expect(isTold(target)).toBe(left(target) === 0 && told === 0);
          if (!isTold(target)) continue;
          told++;
          target.kernel.clearBits(target.block.base + BLOCK_STATUS_OFFSET, 1 << target.number);
        }
      }
      expect([...new Set(seen)]).toEqual([2 * SLICE_BYTES + 1, SLICE_BYTES + 1, 1, 0]);
      expect(told).toBe(1);
    });

    it("P8 the origin is told by the last descriptor, behind the last fragment", () => {
      const { origin, target } = begin({ fragments: 1, depth: 1, fragment: 2 * SLICE_BYTES });
      run(target);
      run(origin);
      expect([status(origin), left(target)]).toEqual([0, 2 * SLICE_BYTES]);
      run(origin);
      expect([status(origin), left(target)]).toEqual([1 << 3, 0]);
    });

    // By an engine thread, nobody is held back: that is P11, see serve.suite.ts.
    itInline("P9 a target that does not run holds its origin back after the fragments that it has asked for", () => {
      const transfer = begin({ fragments: 10, depth: 2 });
      const { origin, target, bytes } = transfer;
      run(target);
      for (let i = 0; i < 20; i++) run(origin);
      expect(left(target)).toBe(bytes - 200);
      expect([run(origin), isSeen(origin), isSeen(target)]).toEqual([0, false, true]);
      finish(transfer);
      expectPayload(transfer);
    });

    describe("rget FIFOs that take turns", () => {
      // An engine thread does what is short at once: see serve.suite.ts.
      itInline("P9 one slice of a fragment, then the turn of another rget FIFO in its block", () => {
        const blocks = [block(0), block(1)] as const;
        const large = begin({ fragments: 1, depth: 1, fragment: 3 * SLICE_BYTES }, { blocks, numbers: [2, 7] });
        const small = begin({ fragments: 1, depth: 1, fragment: 8 }, { blocks, numbers: [6, 0] });
        run(large.target);
        expect(moved(large.origin)).toBe(0);
        expect(run(large.origin)).toBe(2);
        expect([moved(large.origin), left(small.target)]).toEqual([SLICE_BYTES, 8]);
        expect(run(large.origin)).toBe(1);
        expect([moved(large.origin), left(small.target)]).toEqual([SLICE_BYTES, 0]);
        expect([status(small.origin), status(small.target)]).toEqual([1 << 6, 1 << 0]);
        finish(large);
        for (const transfer of [large, small]) expectPayload(transfer);
      });

      it("P9 three large ones in one block: each has one slice of three", () => {
        const blocks = [block(0), block(1)] as const;
        const transfers = ([0, 4, 8] as const).map((number) =>
          begin({ fragments: 1, depth: 1, fragment: 4 * SLICE_BYTES }, { blocks, numbers: [number, number] }),
        );
        const [first] = transfers as [Transfer, ...Transfer[]];
        run(first.target);
        const slices = ({ origin, target }: Transfer): number => (left(target) === 0 ? 4 : moved(origin) / SLICE_BYTES);
        for (let round = 1; round <= 4; round++) {
          for (let turn = 1; turn <= 3; turn++) {
            // All that are not through: those that have had their last slice in this round are.
            expect(run(first.origin)).toBe(round < 4 ? 3 : 3 - turn);
            const had = transfers.map(slices);
            expect(had.reduce((sum, count) => sum + count, 0)).toBe(3 * (round - 1) + turn);
            expect(Math.max(...had) - Math.min(...had)).toBeLessThanOrEqual(1);
          }
        }
        expect(status(first.origin)).toBe((1 << 0) | (1 << 4) | (1 << 8));
        for (const transfer of transfers) expectPayload(transfer);
      });

      it("P9 a block behind the first is served, and seen before sleep; each has its slice", () => {
        const transfers = [0, 1, 2].map(() => begin({ fragments: 1, depth: 1, fragment: 2 * SLICE_BYTES }));
        const [first, ...others] = transfers as [Transfer, ...Transfer[]];
        const { origin, target } = first;
        // The first that was made is the last in the list.
        expect(rig.word(origin.context + CONTEXT_RGET_FIFOS_OFFSET)).toBe(others[1]?.origin.block.base);
        expect(isSeen(target)).toBe(true);
        run(target);
        expect([isSeen(target), isSeen(origin)]).toEqual([false, true]);
        const slices = (): number[] =>
          transfers.map((one) => (left(one.target) === 0 ? 2 : moved(one.origin) / SLICE_BYTES));
        const had = Array.from({ length: 6 }, () => {
          run(origin);
          return slices().toSorted();
        });
        expect(had).toEqual([
          [0, 0, 1],
          [0, 1, 1],
          [1, 1, 1],
          [1, 1, 2],
          [1, 2, 2],
          [2, 2, 2],
        ]);
        expect(transfers.map((transfer) => status(transfer.origin))).toEqual(Array(3).fill(1 << 3));
        // What an rget FIFO of the last block has to tell is seen as well.
        for (const transfer of others) rig.setWord(transfer.origin.block.base + BLOCK_STATUS_OFFSET, 0);
        expect(isSeen(origin)).toBe(true);
        for (const transfer of transfers) expectPayload(transfer);
      });

      it("P9 between two that have shorter fragments one after the other, a long one has its turn all the same", () => {
        const blocks = [block(0), block(1)] as const;
        const begun = (number: number, chain: Chain) => begin(chain, { blocks, numbers: [number, number] });
        const shorter = { fragments: 40, depth: 1, fragment: 5000 };
        const [before, long] = [begun(0, shorter), begun(1, { fragments: 3, depth: 1, fragment: SLICE_BYTES })];
        const behind = begun(2, shorter);
        for (let runs = 0; runs < 10; runs++) {
          run(long.target);
          run(long.origin);
        }
        expect(left(long.target)).toBe(0);
        for (const { target } of [before, behind]) expect(left(target)).toBeGreaterThan(0);
      });

      it("P9 fragments of other sizes: an rget FIFO that there was no room for is the first of the next run", () => {
        const fragment = fc.oneof(
          { weight: 2, arbitrary: fc.integer({ min: 1, max: 5000 }) },
          { weight: 1, arbitrary: fc.integer({ min: 1, max: SLICE_BYTES }) },
          { weight: 2, arbitrary: fc.constant(SLICE_BYTES) },
        );
        const shape = fc.record({ fragment, depth: fc.integer({ min: 1, max: DEPTH_MAX }), block: fc.nat(2) });
        const property = fc.property(
          fc.array(shape, { minLength: 2, maxLength: 5 }),
          fc.nat(RGET_FIFO_COUNT),
          (shapes, first) => {
            reset();
            const blocks = [0, 1, 2].map(() => [block(0), block(1)] as const);
            const transfers = shapes.map(({ fragment, depth, block }, i) => {
              const number = (first + i) % RGET_FIFO_COUNT;
              const fragments = Math.max(2, Math.min(20, Math.floor(500_000 / fragment)));
              return begin(
                { fragments, depth, fragment },
                { blocks: blocks[block] as (typeof blocks)[0], numbers: [number, number] },
              );
            });
            const [{ origin, target }] = transfers as [Transfer, ...Transfer[]];
            /** Runs since each had its last fragment, or slice. */
            const waits = transfers.map(() => 0);
            for (let runs = 0; transfers.some((one) => !isTold(one.origin)); runs++) {
              if (runs > 1000) throw new Error("it does not come to an end");
              run(target);
              const before = transfers.map((one) => left(one.target));
              run(origin);
              for (const [i, one] of transfers.entries()) {
                const waited = left(one.target) === before[i] && !isTold(one.origin);
                waits[i] = waited ? (waits[i] as number) + 1 : 0;
                if ((waits[i] as number) >= transfers.length)
                  expect.fail(`transfer ${i} has waited for ${waits[i]} runs`);
              }
            }
            for (const transfer of transfers) expectPayload(transfer);
          },
        );
        assertProperty(property, 40);
      });
    });

    describe("a payload that is staged", () => {
      it("a fragment that is not staged yet is waited for, and the rest goes through a ring", () => {
        const transfer = begin({ fragments: 5, depth: 2, fragment: 64, ring: 2, allowed: 1 });
        const { origin, target, payload, destination } = transfer;
        for (let staged = 1; staged <= 5; staged++) {
          for (let i = 0; i < 5; i++) {
            run(target);
            run(origin);
          }
          expect(rig.word(origin.rgetFifo + RGET_FIFO_PASSED_OFFSET)).toBe(staged);
          expect(left(target)).toBe((5 - staged) * 64);
          const from = destination.base + TO + (staged - 1) * 64;
          const ring = payload.base + FROM + ((staged - 1) % 2) * 64;
          expect(rig.read(from, 64)).toEqual(rig.read(ring, 64));
          rig.memory.bytes.fill(staged, ring, ring + 64);
          if (staged < 5) {
            expect(isSeen(origin)).toBe(false);
            allow(origin, staged + 1);
            expect(isSeen(origin)).toBe(true);
          }
        }
        expectOver(transfer);
      });

      it("P10 its core gives up what is not staged: it is counted, and nothing of it is moved", () => {
        const transfer = begin({ fragments: 5, depth: 2, fragment: 64, ring: 2, allowed: 1 });
        const { origin, target, payload } = transfer;
        for (let i = 0; i < 5; i++) {
          run(target);
          run(origin);
        }
        expect([left(target), isSeen(origin)]).toEqual([4 * 64, false]);
        stop(transfer, "origin");
        expect(isSeen(origin)).toBe(true);
        finish(transfer);
        expectOver(transfer, TRANSFER_CANCELED);
        const first = rig.memory.bytes.slice(payload.base + FROM, payload.base + FROM + 64);
        expectAt(transfer, first);
      });
    });

    describe("P10", () => {
      it.each(["origin", "target"] as const)(
        "the %s gives it up: nothing more is moved, both are told, all is empty",
        (who) => {
          const transfer = begin({ fragments: 10, depth: 2 });
          const { origin, target, payload } = transfer;
          run(target);
          for (let i = 0; i < 3; i++) run(origin);
          const arrived = transfer.bytes - left(target);
          expect(arrived).toBe(200);
          stop(transfer, who);
          finish(transfer);
          expectAt(transfer, rig.memory.bytes.slice(payload.base + FROM, payload.base + FROM + arrived));
          expectOver(transfer, TRANSFER_CANCELED);
        },
      );

      it("between two slices of a fragment: the rest of it is not moved", () => {
        const transfer = begin({ fragments: 2, depth: 1, fragment: 3 * SLICE_BYTES });
        const { origin, target, payload } = transfer;
        run(target);
        run(origin);
        stop(transfer, "target");
        finish(transfer);
        expectAt(transfer, rig.memory.bytes.slice(payload.base + FROM, payload.base + FROM + SLICE_BYTES));
        expect(moved(origin)).toBe(0);
        expectOver(transfer, TRANSFER_CANCELED);
      });

      it("a payload whose region is closed, a destination that is too small: nothing is written, both are told", () => {
        const closed = begin({ fragments: 4, depth: 2 });
        rig.producer.regionClose(job, closed.payload.index);
        finish(closed);
        expectAt(closed, new Uint8Array());
        expectOver(closed, TRANSFER_LOCAL_CLOSED);
        const whole = prepare({ fragments: 4, depth: 2, fragment: 200, last: 100 }, anyPlace());
        const { index, base } = whole.destination;
        rig.consumer.regionClose(job, index);
        // The last two fragments have no place.
        const small = {
          ...whole,
          destination: { index, base, generation: rig.consumer.regionOpen(job, index, base, 500) },
        };
        chains.plan(small);
        expect(chains.write(small)).toBe(4);
        finish(small);
        expectAt(small, rig.memory.bytes.slice(small.payload.base + FROM, small.payload.base + FROM + 400));
        expectOver(small, TRANSFER_REMOTE_BOUNDS);
      });

      it("an rget FIFO that was closed is not written to, whichever engine still has something for it", () => {
        const { origin, target } = begin({ fragments: 6, depth: 2, fragment: SLICE_BYTES });
        run(target);
        run(origin);
        close(target);
        const before = rig.read(target.rgetFifo, RGET_FIFO_SIZE);
        for (let i = 0; i < 5; i++) run(origin);
        expect(rig.read(target.rgetFifo, RGET_FIFO_SIZE)).toEqual(before);
        // A link was left, and is counted; nothing more comes.
        expect([run(origin), result(origin), run(target), isSeen(target)]).toEqual([0, TRANSFER_ENDED, 0, false]);
        expect([head(origin), status(origin)]).toEqual([tail(origin), 0]);
      });

      it("what is left in an rget FIFO that was closed is not processed, and goes when it is cleared", () => {
        for (const who of ["origin", "target"] as const) {
          const transfer = begin({ fragments: 6, depth: 2, fragment: SLICE_BYTES });
          const { origin, target } = transfer;
          run(target);
          if (who === "origin") run(origin);
          run(target);
          if (who === "target") run(origin);
          const side = transfer[who];
          const inIt = tail(side) - head(side);
          expect(inIt).toBeGreaterThan(0);
          call(side);
          expect(isSeen(side)).toBe(true);
          side.kernel.rgetClose(side.rgetFifo);
          const before = rig.read(side.rgetFifo, RGET_FIFO_SIZE);
          const bytes = left(target);
          expect([run(side), isSeen(side)]).toEqual([0, false]);
          expect(rig.read(side.rgetFifo, RGET_FIFO_SIZE)).toEqual(before);
          side.kernel.rgetClear(side.rgetFifo);
          expect([tail(side), left(target), status(side)]).toEqual([head(side), bytes, 0]);
          // Whoever has it next finds nothing of that.
          expect(side.kernel.rgetOpen(side.rgetFifo, NONE)).toBe(side.generation + 2);
          call(side);
          expect([run(side), head(side), tail(side)]).toEqual([0, tail(side), head(side)]);
        }
      });

      it("one that was opened again: what is shipped to it, counted in it and told it was for the last one", () => {
        const { origin, target } = begin({ fragments: 6, depth: 2, fragment: SLICE_BYTES });
        run(target);
        run(origin);
        // The target's task has forgotten the transfer: the origin has a link of it still, and then a FETCH.
        close(target);
        expect(target.kernel.rgetOpen(target.rgetFifo, NONE)).toBe(target.generation + 2);
        const before = rig.read(target.rgetFifo, RGET_FIFO_SIZE);
        for (let i = 0; i < 5; i++) run(origin);
        expect(rig.read(target.rgetFifo, RGET_FIFO_SIZE)).toEqual(before);
        expect([status(target), result(origin)]).toEqual([0, TRANSFER_ENDED]);
      });

      it("an origin's that was opened again has no links of the last transfer", () => {
        const { origin, target } = begin({ fragments: 6, depth: 2 });
        close(origin);
        expect(origin.kernel.rgetOpen(origin.rgetFifo, NONE)).toBe(origin.generation + 2);
        const before = rig.read(origin.rgetFifo, RGET_FIFO_SIZE);
        run(target);
        expect(rig.read(origin.rgetFifo, RGET_FIFO_SIZE)).toEqual(before);
        expect([head(target), tail(target)]).toEqual([2, 2]);
        expect(notice(origin, {})).toBe(0);
      });

      it.each([TASK_CLOSED, TASK_DEAD])("the rget FIFO of a task that has ended (%i) is not written to", (state) => {
        const { origin, target } = begin({ fragments: 6, depth: 2, fragment: SLICE_BYTES });
        run(target);
        run(origin);
        rig.setWord(rig.task(1) + TASK_STATE_OFFSET, state);
        const before = rig.read(target.rgetFifo, RGET_FIFO_SIZE);
        for (let i = 0; i < 5; i++) run(origin);
        expect(rig.read(target.rgetFifo, RGET_FIFO_SIZE)).toEqual(before);
        expect([result(origin), head(origin), status(target)]).toEqual([TRANSFER_ENDED, tail(origin), 0]);
      });

      it("nor is that of an origin that has ended: no chain is begun with it, no link shipped", () => {
        const transfer = begin({ fragments: 6, depth: 2 });
        const { origin, target } = transfer;
        rig.setWord(rig.task(0) + TASK_STATE_OFFSET, TASK_DEAD);
        const before = rig.read(origin.rgetFifo, RGET_FIFO_SIZE);
        run(target);
        expect([head(target), chains.write(transfer)]).toEqual([tail(target), 0]);
        expect(rig.read(origin.rgetFifo, RGET_FIFO_SIZE)).toEqual(before);
      });

      it("rget FIFOs are used again and again: generations go on, and each transfer finds its place", () => {
        const place = { blocks: [block(0), block(1)], numbers: [8, 0] } as const;
        for (let round = 0; round < 7; round++) {
          const transfer = begin({ fragments: 1 + round, depth: 1 + (round % 4), fragment: 24 + round }, place);
          expect([transfer.origin.generation, transfer.target.generation]).toEqual([2 * round + 1, 2 * round + 1]);
          finish(transfer);
          expectPayload(transfer);
          expectOver(transfer);
          for (const side of [transfer.origin, transfer.target]) close(side);
        }
      });

      it("positions of slots wrap at 2^32, and so do generations", () => {
        const place = { blocks: [block(0), block(1)], numbers: [1, 2] } as const;
        for (const [task, number] of [
          [0, 1],
          [1, 2],
        ] as const) {
          const { rgetFifo } = sideOf(rig.map, task, place.blocks[task], number);
          set(rgetFifo, [
            [RGET_FIFO_GENERATION_OFFSET, 0xfffffffe],
            [RGET_FIFO_TAIL_OFFSET, 0xfffffffd],
            [RGET_FIFO_HEAD_OFFSET, 0xfffffffd],
          ]);
        }
        for (const generation of [0xffffffff, 1]) {
          const transfer = begin({ fragments: 9, depth: 3 }, place);
          expect(transfer.origin.generation).toBe(generation);
          finish(transfer);
          expectPayload(transfer);
          expectOver(transfer);
          for (const side of [transfer.origin, transfer.target]) close(side);
        }
      });

      it("a notice alone, as of what is not taken", () => {
        const { origin } = begin({ fragments: 1, depth: 1 });
        expect(notice(origin, {})).toBe(1);
        run(origin);
        expect([status(origin), result(origin)]).toEqual([1 << 3, TRANSFER_REFUSED]);
      });

      it("the NOTICE that is left in an rget FIFO that is cleared is noted, as if it had been processed; nothing else is", () => {
        const { origin, target } = begin({ fragments: 1, depth: 1 });
        const clear = ({ kernel, rgetFifo }: End) => {
          kernel.rgetClose(rgetFifo);
          return [kernel.rgetClear(rgetFifo), result(origin), tail(origin) - head(origin), status(origin)];
        };
        expect(notice(origin, {})).toBe(1);
        expect(clear(origin)).toEqual([1, TRANSFER_REFUSED, 0, 0]);
        // Of a FETCH, and of nothing.
        for (let i = 0; i < 2; i++) expect(clear(target)[0]).toBe(0);
        // The slot has the last one's NOTICE still.
        origin.kernel.rgetOpen(origin.rgetFifo, NONE);
        expect(clear(origin)).toEqual([0, TRANSFER_DONE, 0, 0]);
      });

      it("the NOTICE of an rget FIFO that is cleared does not change what a fragment came to", () => {
        const { origin } = begin({ fragments: 1, depth: 1 });
        rig.setWord(origin.rgetFifo + RGET_FIFO_RESULT_OFFSET, TRANSFER_ENDED);
        expect(notice(origin, {})).toBe(1);
        origin.kernel.rgetClose(origin.rgetFifo);
        expect([origin.kernel.rgetClear(origin.rgetFifo), result(origin)]).toEqual([1, TRANSFER_ENDED]);
      });
    });

    /** What names an rget FIFO of another task, as it may be forged or stale; each is off by so much. */
    interface Forged {
      readonly index?: number;
      readonly generation?: number;
      readonly offset?: number;
      readonly own?: number;
    }

    /** Offset of rget FIFO 3. */
    const PLACE = BLOCK_RGET_FIFOS_OFFSET + 3 * RGET_FIFO_SIZE;
    const FORGED: [string, Forged][] = [
      ["an index beyond all regions", { index: 1 << 20 }],
      ["another region's generation", { generation: 2 }],
      ["an even generation of a region", { generation: 1 }],
      ["an offset beyond the block", { offset: BLOCK_SIZE }],
      ["an offset between two rget FIFOs", { offset: 64 }],
      ["an offset where no words lie", { offset: 2 }],
      ["the offset of the block itself", { offset: -PLACE }],
      ["an even generation of an rget FIFO", { own: -1 }],
      ["a generation that is over", { own: -2 }],
    ];

    function notice(to: End, { index = 0, generation = 0, offset = 0, own = 0 }: Forged): number {
      const { block } = to;
      const [a, b, c] = [block.index + index, block.generation + generation, to.offset + offset];
      return rig.consumer.chainNotice(job, a, b, c, to.generation + own, 0, TRANSFER_REFUSED);
    }

    describe("what is not right is passed over", () => {
      /** Injects a descriptor into an rget FIFO, as no engine does. */
      function inject(side: End, words: [offset: number, value: number][]): void {
        const { kernel, rgetFifo } = side;
        const tail = rig.word(rgetFifo + RGET_FIFO_TAIL_OFFSET);
        const slot = rgetFifo + RGET_FIFO_SLOTS_OFFSET + ((tail & (RGET_FIFO_SLOTS - 1)) << DESCRIPTOR_SHIFT);
        rig.memory.bytes.fill(0, slot, slot + DESCRIPTOR_SIZE);
        set(slot, words);
        kernel.storeWord(rgetFifo + RGET_FIFO_TAIL_OFFSET, tail + 1);
        call(side);
      }

      /** Runs an engine: it goes on behind the descriptor at head, and writes nothing else anywhere. */
      function expectPassed(side: End): void {
        const before = Buffer.from(rig.area());
        const at = side.rgetFifo + RGET_FIFO_HEAD_OFFSET;
        before.writeUInt32LE(head(side) + 1, at - rig.map.job);
        // And its engine need not look any more.
        const due = rig.word(job + JOB_DUE_OFFSET) & ~(1 << side.ordinal);
        before.writeInt32LE(due, JOB_DUE_OFFSET);
        expect(run(side)).toBe(0);
        expect(head(side)).toBe(tail(side));
        expect(Buffer.compare(rig.area(), before)).toBe(0);
      }

      function expectGoesOn(transfer: Transfer): void {
        finish(transfer);
        expectPayload(transfer);
        expectOver(transfer);
      }

      const kinds = [0, DESCRIPTOR_PUT, DESCRIPTOR_FENCE, DESCRIPTOR_NOTICE + 1, 0x7fffffff, 0xffffffff];

      it.each(kinds.flatMap((kind) => (["origin", "target"] as const).map((who) => [who, kind] as const)))(
        "in the rget FIFO of the %s: a descriptor of kind %i",
        (who, kind) => {
          const transfer = prepare({ fragments: 4, depth: 2 }, { blocks: [block(0), block(1)], numbers: [3, 5] });
          inject(transfer[who], [
            [DESCRIPTOR_KIND_OFFSET, kind],
            [DESCRIPTOR_BYTES_OFFSET, 2],
            [DESCRIPTOR_REMOTE_INDEX_OFFSET, transfer.links.index],
            [DESCRIPTOR_REMOTE_GENERATION_OFFSET, transfer.links.generation],
          ]);
          expectPassed(transfer[who]);
          expect(chains.write(transfer)).toBe(4);
          expectGoesOn(transfer);
        },
      );

      it.each(
        [DEPTH_MAX, 0x7fffffff, 0x80000000, 0xffffffff].flatMap((number) => [
          ["RGET", DESCRIPTOR_RGET, number] as const,
          ["REFILL", DESCRIPTOR_REFILL, number] as const,
        ]),
      )("a %s (kind %i) of origin RGET %i", (_, kind, number) => {
        const transfer = begin({ fragments: 4, depth: 2 });
        inject(transfer.origin, [
          [DESCRIPTOR_KIND_OFFSET, kind],
          [DESCRIPTOR_VALUE_OFFSET, number],
          [DESCRIPTOR_BYTES_OFFSET, 0x5a5a5a5a],
        ]);
        expectPassed(transfer.origin);
        expectGoesOn(transfer);
      });

      /** A FETCH of the first link, but for what is said. */
      const FETCHES: [string, (links: Region) => [offset: number, value: number][]][] = [
        ["of more slots than a link has", () => [[DESCRIPTOR_BYTES_OFFSET, LINK_SLOTS + 1]]],
        ["of 2^32 - 1 slots", () => [[DESCRIPTOR_BYTES_OFFSET, 0xffffffff]]],
        ["of 2^26 slots: 0 bytes, modulo 2^32", () => [[DESCRIPTOR_BYTES_OFFSET, 2 ** 26]]],
        ["of a region that is not open", () => [[DESCRIPTOR_REMOTE_GENERATION_OFFSET, 2]]],
        ["of a generation that is over", ({ generation }) => [[DESCRIPTOR_REMOTE_GENERATION_OFFSET, generation + 2]]],
        ["beyond all regions", () => [[DESCRIPTOR_REMOTE_INDEX_OFFSET, 0xffffffff]]],
        ["from behind the links", () => [[DESCRIPTOR_REMOTE_OFFSET_OFFSET, 4 * LINK_SIZE]]],
        ["that reaches beyond the links", () => [[DESCRIPTOR_REMOTE_OFFSET_OFFSET, 3 * LINK_SIZE + DESCRIPTOR_SIZE]]],
        ["from 2^32 - 64 on", () => [[DESCRIPTOR_REMOTE_OFFSET_OFFSET, 0xffffffc0]]],
        ["from where no words lie", () => [[DESCRIPTOR_REMOTE_OFFSET_OFFSET, 2]]],
      ];

      it.each(FETCHES)("a FETCH %s", (_, words) => {
        const transfer = prepare({ fragments: 4, depth: 2 }, { blocks: [block(0), block(1)], numbers: [3, 5] });
        const { links } = transfer;
        set(transfer.origin.rgetFifo, [
          [RGET_FIFO_PEER_INDEX_OFFSET, transfer.target.block.index],
          [RGET_FIFO_PEER_GENERATION_OFFSET, transfer.target.block.generation],
          [RGET_FIFO_PEER_OFFSET_OFFSET, transfer.target.offset],
          [RGET_FIFO_PEER_FIFO_OFFSET, transfer.target.generation],
        ]);
        inject(transfer.target, [
          [DESCRIPTOR_KIND_OFFSET, DESCRIPTOR_FETCH],
          [DESCRIPTOR_BYTES_OFFSET, LINK_SLOTS],
          [DESCRIPTOR_REMOTE_INDEX_OFFSET, links.index],
          [DESCRIPTOR_REMOTE_GENERATION_OFFSET, links.generation],
          [DESCRIPTOR_REMOTE_OFFSET_OFFSET, 0],
          ...words(links),
        ]);
        expectPassed(transfer.target);
        expect(chains.write(transfer)).toBe(4);
        expectGoesOn(transfer);
      });

      it("P9 a turn ends, though as much is shipped meanwhile as it processes: its thread comes back", () => {
        const transfer = prepare({ fragments: 4, depth: 1 }, { blocks: [block(0), block(1)], numbers: [3, 5] });
        const { links, target } = transfer;
        // It ships itself to its own rget FIFO, as another side may that is as fast as this one.
        const fetch: [offset: number, value: number][] = [
          [DESCRIPTOR_KIND_OFFSET, DESCRIPTOR_FETCH],
          [DESCRIPTOR_BYTES_OFFSET, 1],
          [DESCRIPTOR_REMOTE_INDEX_OFFSET, links.index],
          [DESCRIPTOR_REMOTE_GENERATION_OFFSET, links.generation],
          [DESCRIPTOR_REMOTE_OFFSET_OFFSET, 0],
        ];
        for (const [offset, value] of fetch) rig.setWord(links.base + offset, value);
        set(target.rgetFifo, [
          [RGET_FIFO_PEER_INDEX_OFFSET, target.block.index],
          [RGET_FIFO_PEER_GENERATION_OFFSET, target.block.generation],
          [RGET_FIFO_PEER_OFFSET_OFFSET, target.offset],
          [RGET_FIFO_PEER_FIFO_OFFSET, target.generation],
        ]);
        inject(target, fetch);
        expect(run(target)).toBe(1);
        expect(tail(target) - head(target)).toBe(1);
        expect(head(target)).toBeGreaterThan(RGET_FIFO_SLOTS);
      });

      it("an rget FIFO that is closed, named by the generation that it has then", () => {
        const place = { blocks: [block(0), block(1)], numbers: [3, 5] } as const;
        const transfer = prepare({ fragments: 4, depth: 1 }, place);
        const { origin, target } = transfer;
        expect(chains.write(transfer)).toBe(4);
        close(origin);
        set(target.rgetFifo, [[RGET_FIFO_PEER_FIFO_OFFSET, origin.generation + 1]]);
        expectPassed(target);
        expect([notice(origin, { own: 1 }), rig.consumer.chainWrite(job, target.rgetFifo)]).toEqual([0, 0]);
        expect([tail(origin), status(origin)]).toEqual([0, 0]);
      });

      it("a FETCH of links whose region has been closed", () => {
        const transfer = begin({ fragments: 4, depth: 1 });
        rig.consumer.regionClose(job, transfer.links.index);
        expectPassed(transfer.target);
        expect(tail(transfer.origin)).toBe(0);
      });

      it.each(FORGED)("an rget FIFO that is named by %s: nothing is shipped, written or told there", (_, forged) => {
        const place = { blocks: [block(0), block(1)], numbers: [3, 5] } as const;
        const transfer = prepare({ fragments: 4, depth: 1 }, place);
        const { origin, target } = transfer;
        const { index = 0, generation = 0, offset = 0, own = 0 } = forged;
        expect(chains.write(transfer)).toBe(4);
        // What would be the generation there is the right one.
        if (Math.abs(offset) < BLOCK_SIZE && offset !== 0)
          rig.setWord(origin.rgetFifo + offset + RGET_FIFO_GENERATION_OFFSET, origin.generation);
        set(target.rgetFifo, [
          [RGET_FIFO_PEER_INDEX_OFFSET, origin.block.index + index],
          [RGET_FIFO_PEER_GENERATION_OFFSET, origin.block.generation + generation],
          [RGET_FIFO_PEER_OFFSET_OFFSET, origin.offset + offset],
          [RGET_FIFO_PEER_FIFO_OFFSET, origin.generation + own],
        ]);
        expectPassed(target);
        const before = Buffer.from(rig.area());
        expect(notice(origin, forged)).toBe(0);
        expect(rig.consumer.chainWrite(job, target.rgetFifo)).toBe(0);
        expect(Buffer.compare(rig.area(), before)).toBe(0);
      });

      it("a chain that can't be: more links than there may be, also where their length wraps at 2^32, none, no depth", () => {
        const place = { blocks: [block(0), block(1)], numbers: [3, 5] } as const;
        const { target } = prepare({ fragments: LINK_COUNT_MAX + 1, depth: 4, fragment: 1 }, place);
        for (const [bytes, fragment, depth = 4] of [
          [LINK_COUNT_MAX + 1, 1],
          [0x7fffffff, 96], // links of 128 bytes, modulo 2^32
          [0xffffffff, 1],
          [0, 1],
          [0, 0xffffffff],
          [1, 0],
          [1, 1, 0],
          [1, 1, DEPTH_MAX + 1],
          [1, 1, 0xffffffff],
        ]) {
          set(target.rgetFifo, [
            [RGET_FIFO_BYTES_OFFSET, bytes as number],
            [RGET_FIFO_FRAGMENT_OFFSET, fragment as number],
            [RGET_FIFO_DEPTH_OFFSET, depth],
          ]);
          const before = Buffer.from(rig.area());
          expect(rig.consumer.chainWrite(job, target.rgetFifo)).toBe(0);
          expect(Buffer.compare(rig.area(), before)).toBe(0);
        }
      });

      it("as many links as there may be", () => {
        const transfer = begin({ fragments: LINK_COUNT_MAX, depth: 4, fragment: 3, last: 1 });
        finish(transfer);
        expectPayload(transfer);
        expectOver(transfer);
      });
    });

    describe("with a side in another node", () => {
      const AWAY = AWAY_YES;
      const word = ({ rgetFifo }: Side, offset: number): number => rig.word(rgetFifo + offset);
      const bytesOf = ({ base }: { base: number }, bytes: number): Buffer =>
        Buffer.from(rig.memory.bytes.buffer, base, bytes);
      const rgets = ({ rgetFifo }: Side): Buffer =>
        Buffer.from(bytesOf({ base: rgetFifo + RGET_FIFO_RGETS_OFFSET }, DEPTH_MAX * DESCRIPTOR_SIZE));

      it.each(shapes)(
        "P2 the first origin RGETs stay in the own rget FIFO: $fragments fragments, depth $depth",
        (shape) => {
          const transfer = prepare(shape, anyPlace());
          const { origin, target, links, bytes } = transfer;
          const { chainWrite } = target.kernel;
          const linkBytes = shape.fragments * LINK_SIZE;
          const before = Buffer.from(rig.area());
          rig.write(target.rgetFifo + RGET_FIFO_RGETS_OFFSET, Array(DEPTH_MAX * DESCRIPTOR_SIZE).fill(0));
          rig.write(origin.rgetFifo + RGET_FIFO_RGETS_OFFSET, Array(DEPTH_MAX * DESCRIPTOR_SIZE).fill(0));
          expect(chainWrite(job, target.rgetFifo)).toBe(shape.fragments);
          const within = { rgets: rgets(origin), links: Buffer.from(bytesOf(links, linkBytes)) };
          before.copy(rig.area());
          rig.write(target.rgetFifo + RGET_FIFO_RGETS_OFFSET, Array(DEPTH_MAX * DESCRIPTOR_SIZE).fill(0));
          rig.setWord(target.rgetFifo + RGET_FIFO_AWAY_OFFSET, AWAY);
          const peer = Array.from({ length: 5 }, (_, i) => word(target, RGET_FIFO_PEER_INDEX_OFFSET + 4 * i));
          const theirs = Buffer.from(bytesOf(origin.block, BLOCK_SIZE));
          expect(chainWrite(job, target.rgetFifo)).toBe(shape.fragments);
          expect(rgets(target)).toEqual(within.rgets);
          expect(bytesOf(links, linkBytes)).toEqual(within.links);
          expect(word(target, RGET_FIFO_AWAY_OFFSET)).toBe(AWAY | AWAY_BEGUN);
          expect([left(target), tail(target)]).toEqual([bytes, Math.min(shape.depth, shape.fragments)]);
          // Neither the other rget FIFO nor what this one knows of it.
          expect(Buffer.compare(bytesOf(origin.block, BLOCK_SIZE), theirs)).toBe(0);
          expect(Array.from({ length: 5 }, (_, i) => word(target, RGET_FIFO_PEER_INDEX_OFFSET + 4 * i))).toEqual(peer);
        },
      );

      it("is written whatever the rget FIFO knows of the other side: the agent finds that", () => {
        const { target } = prepare({ fragments: 3, depth: 2 }, anyPlace());
        set(target.rgetFifo, [
          [RGET_FIFO_AWAY_OFFSET, AWAY],
          [RGET_FIFO_PEER_INDEX_OFFSET, NONE],
          [RGET_FIFO_PEER_GENERATION_OFFSET, 0],
          [RGET_FIFO_PEER_FIFO_OFFSET, 0],
        ]);
        expect(target.kernel.chainWrite(job, target.rgetFifo)).toBe(3);
        // What is wrong on this side is refused as ever.
        for (const [offset, value] of [
          [RGET_FIFO_BYTES_OFFSET, 0],
          [RGET_FIFO_FRAGMENT_OFFSET, 0],
          [RGET_FIFO_DEPTH_OFFSET, DEPTH_MAX + 1],
          [RGET_FIFO_CHAIN_GENERATION_OFFSET, 0],
        ] as const) {
          const right = rig.word(target.rgetFifo + offset);
          set(target.rgetFifo, [
            [offset, value],
            [RGET_FIFO_AWAY_OFFSET, AWAY],
          ]);
          expect(target.kernel.chainWrite(job, target.rgetFifo)).toBe(0);
          expect(word(target, RGET_FIFO_AWAY_OFFSET)).toBe(AWAY);
          set(target.rgetFifo, [[offset, right]]);
        }
      });

      it("the kernels leave the descriptors in both rget FIFOs to the agent", () => {
        const transfer = begin({ fragments: 3, depth: 2 });
        const { origin, target } = transfer;
        for (const { rgetFifo } of [origin, target]) set(rgetFifo, [[RGET_FIFO_AWAY_OFFSET, AWAY]]);
        const { index, generation } = origin.block;
        target.kernel.chainNotice(
          job,
          index,
          generation,
          origin.offset,
          origin.generation,
          origin.ordinal,
          TRANSFER_DONE,
        );
        const state = (): unknown => [origin, target].map((side) => [head(side), tail(side), left(side), status(side)]);
        const before = state();
        for (const side of [target, origin]) {
          if (isThread) serveOnly(side);
          else expect(side.kernel.chainRun(job, side.context, SLICE_BYTES)).toBe(0);
          expect(side.kernel.chainLeft(side.context)).toBe(0);
        }
        expect([state(), rig.due()]).toEqual([before, []]);
        // The agent gives them back to nobody: without the mark, they go on here.
        for (const { rgetFifo } of [origin, target]) set(rgetFifo, [[RGET_FIFO_AWAY_OFFSET, 0]]);
        for (const side of [target, origin]) expect(side.kernel.chainLeft(side.context)).not.toBe(0);
      });

      it.each<[string, away: number, begun: boolean, isOver: boolean]>([
        ["within this memory, begun or not", 0, true, true],
        ["that its target has not begun", AWAY, false, true],
        ["whose bytes have not all arrived", AWAY, true, false],
        ["whose bytes have not all arrived, by another mark", AWAY | AWAY_BEGUN, true, false],
        ["whose bytes have all arrived", AWAY | AWAY_OVER, true, true],
      ])("P8 a NOTICE is left in the rget FIFO of a transfer %s", (_, away, begun, isOver) => {
        const { origin, target } = prepare({ fragments: 3, depth: 2 }, anyPlace());
        const { index, generation } = origin.block;
        set(origin.rgetFifo, [
          [RGET_FIFO_AWAY_OFFSET, away],
          [RGET_FIFO_PEER_FIFO_OFFSET, begun ? target.generation : 0],
        ]);
        target.kernel.chainNotice(
          job,
          index,
          generation,
          origin.offset,
          origin.generation,
          origin.ordinal,
          TRANSFER_REFUSED,
        );
        origin.kernel.rgetClose(origin.rgetFifo);
        expect(origin.kernel.rgetClear(origin.rgetFifo)).toBe(Number(isOver));
        expect([result(origin), head(origin) === tail(origin)]).toEqual([
          isOver ? TRANSFER_REFUSED : TRANSFER_DONE,
          true,
        ]);
      });
    });

    it("any fragments, depth and ring, in whatever order the threads run: all arrives, and slots are never too few", () => {
      const shape = fc
        .record({
          fragment: fc.oneof(
            { weight: 4, arbitrary: fc.integer({ min: 1, max: 200 }) },
            { weight: 1, arbitrary: fc.constantFrom(SLICE_BYTES - 1, SLICE_BYTES, SLICE_BYTES + 1, 2 * SLICE_BYTES) },
          ),
          fragments: fc.integer({ min: 1, max: 30 }),
          rest: fc.double({ min: 0, max: 1, noNaN: true }),
          depth: fc.integer({ min: 1, max: DEPTH_MAX }),
          ring: fc.integer({ min: 0, max: 4 }),
        })
        .map(({ fragment, fragments, rest, depth, ring }) => ({
          fragment,
          fragments: fragment > 200 ? Math.min(fragments, 4) : fragments,
          last: 1 + Math.floor(rest * (fragment - 1)),
          depth,
          ring,
        }));
      const turns = fc.array(fc.constantFrom("origin", "target", "core"), { maxLength: 100 });
      const property = fc.property(shape, turns, (chain, order) => {
        reset();
        const { ring, fragment, depth } = chain;
        const transfer = begin({ ...chain, allowed: ring === 0 ? NONE : 0 });
        const { origin, target, bytes, payload } = transfer;
        const all = bytesFrom(bytes, (i) => (7 * i) % 251);
        const staged = ring === 0 ? bytes : ring * fragment;
        if (ring === 0) rig.write(payload.base + FROM, all);
        else rig.memory.bytes.fill(0xee, payload.base + FROM, payload.base + FROM + staged);
        let ready = 0;
        /** The origin's core stages the next fragment, if there is a place for it. */
        const stage = (): void => {
          const passed = origin.kernel.loadWord(origin.rgetFifo + RGET_FIFO_PASSED_OFFSET);
          if (ring === 0 || ready === chain.fragments || ready - passed === ring) return;
          const at = payload.base + FROM + (ready % ring) * fragment;
          rig.memory.bytes.fill(0xee, at, at + fragment);
          rig.write(at, all.subarray(ready * fragment).subarray(0, fragment));
          allow(origin, ++ready);
        };
        /** Runs an engine: whether it has done anything, or there was anything to tell, has been seen before. */
        const expectSeen = (side: End): void => {
          const sees = isSeen(side);
          const state = [head(side), moved(side), status(side)];
          run(side);
          const hasDone = head(side) !== state[0] || moved(side) !== state[1];
          // An engine thread looks once more where it has moved the last there was.
          if (!isThread || hasDone || state[2] !== 0) expect(sees).toBe(hasDone || state[2] !== 0);
        };
        let before = bytes;
        const turn = (what: string): void => {
          if (what === "core") stage();
          else expectSeen(what === "origin" ? origin : target);
          expect(tail(origin) - head(origin)).toBeLessThanOrEqual(3 * depth + 2);
          expect(tail(target) - head(target)).toBeLessThanOrEqual(depth);
          expect(left(target)).toBeLessThanOrEqual(before);
          before = left(target);
          expect([isTold(target), isTold(origin)]).toEqual(Array(2).fill(before === 0));
        };
        for (const what of order) turn(what);
        for (let rounds = 0; !isTold(origin) && rounds < 1000; rounds++)
          for (const what of ["core", "target", "origin"]) turn(what);
        expectAt(transfer, all);
        expectOver(transfer);
      });
      assertProperty(property, 60);
    });
  });
}
