// What every implementation of the engine thread's kernels does (P11): who calls it, what it looks at, in which order, and
// what is left when it ends. The producer stands for all tasks, the consumer for the engine thread.
import fc from "fast-check";
import { beforeEach, describe, expect, it, vi } from "vitest";
import {
  AWAY_FOUND,
  AWAY_NONE,
  BLOCK_SIZE,
  BLOCK_STATUS_OFFSET,
  COMPLETION_RESULT_SHIFT,
  CONTEXT_CLOSED,
  CONTEXT_STATE_OFFSET,
  DESCRIPTOR_FENCE,
  DESCRIPTOR_GET,
  DESCRIPTOR_PUT,
  DESCRIPTOR_RMW,
  INJECTION_AHEAD_OFFSET,
  INJECTION_AWAY_OFFSET,
  INJECTION_HEAD_OFFSET,
  INJECTION_MASK_OFFSET,
  INJECTION_MOVED_OFFSET,
  INJECTION_OLDEST_OFFSET,
  INJECTION_PENDING_OFFSET,
  INJECTION_REFUSED_OFFSET,
  INJECTION_STAGED_OFFSET,
  INJECTION_TAIL_OFFSET,
  JOB_DUE_OFFSET,
  LINK_SIZE,
  NONE,
  PAGE_SIZE,
  RGET_FIFO_ALLOWED_OFFSET,
  RGET_FIFO_COUNT,
  RGET_FIFO_HEAD_OFFSET,
  RGET_FIFO_LEFT_OFFSET,
  RGET_FIFO_MOVED_OFFSET,
  RGET_FIFO_PASSED_OFFSET,
  RGET_FIFO_RESULT_OFFSET,
  RGET_FIFO_SIZE,
  RGET_FIFO_STOP_OFFSET,
  RGET_FIFO_TAIL_OFFSET,
  RGET_FIFO_WRONG_OFFSET,
  RMW_ADD,
  SHORT_BYTES,
  SLICE_BYTES,
  TASK_ABSENT,
  TASK_BELL_OFFSET,
  TASK_CLOSED,
  TASK_DEAD,
  TASK_NOTICE_OFFSET,
  TASK_SEEN_OFFSET,
  TASK_STATE_OFFSET,
  TASK_TURN_OFFSET,
  TRANSFER_BROKEN,
  TRANSFER_CANCELED,
  TRANSFER_DONE,
  TRANSFER_ENDED,
  TRANSFER_LATER,
  TRANSFER_LOCAL_CLOSED,
  TRANSFER_REFUSED,
  TRANSFER_REMOTE_BOUNDS,
  TRANSFER_REMOTE_CLOSED,
} from "../../assembly/layout.js";
import type { Kernel } from "../../src/kernel/kernel.js";
import { type Chain, Chains, FROM, type Place, type Region, type Side, TO, type Transfer } from "../support/chains.js";
import { makeRig, type Rig, type RigOptions } from "../support/kernels.js";
import { assertProperty } from "../support/seed.js";

const range = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

/** 33 endpoints: their bits need a second word. */
const TASKS = 3;
const CONTEXTS = 11;
const ENDPOINTS = TASKS * CONTEXTS;
const FIFOS = 2;
/** Regions that everything long is moved between: so many slices. */
const DATA_SLICES = 8;
const DATA_BYTES = DATA_SLICES * SLICE_BYTES;

/** Something long, in a FIFO or an rget FIFO. */
interface Long {
  /** What takes turns: a FIFO of a context, or with number FIFOS its rget FIFOs. */
  readonly item: number;
  readonly ordinal: number;
  /** Slices that it has, and has had. */
  readonly slices: number;
  readonly had: () => number;
}

/** A put, or another descriptor, of an endpoint's FIFO. */
interface Injected {
  readonly kind?: number;
  readonly bytes?: number;
  readonly completions?: number;
  readonly from?: Region;
  readonly to?: Region;
  readonly offset?: number;
}

/** The conformance suite of the engine thread's kernels for those that `options` choose. */
export function serveSuite(name: string, options: RigOptions): void {
  describe(`engine thread: ${name}`, () => {
    const LIMITS = { tasks: TASKS, contexts: CONTEXTS, fifos: FIFOS, heapBytes: 3072 * PAGE_SIZE, regions: 128 };
    let rig: Rig;
    let job: number;
    let owner: Kernel;
    let engine: Kernel;
    let chains: Chains;
    /** Data of task 0, and of task 1. */
    let from: Region;
    let to: Region;
    /** The blocks of rget FIFOs that contexts have, and how many rget FIFOs of each are in use. */
    let blocks: Map<number, { block: Region; used: number }>;

    function use(more: RigOptions = {}): void {
      rig = makeRig({ ...LIMITS, engine: "thread", ...options, ...more });
      ({ producer: owner, consumer: engine } = rig);
      ({ job } = rig.map);
      chains = new Chains(rig, () => owner);
      from = chains.region(0, DATA_BYTES);
      to = chains.region(1, DATA_BYTES);
      blocks = new Map();
    }

    beforeEach(() => use());

    const serve = (): number => engine.engineServe(job);

    /** Turns until nothing is left. */
    function serveAll(): number {
      for (let turns = 1; turns < 20_000; turns++) if (serve() === 0) return turns;
      throw new Error("the engine does not come to an end");
    }

    const call = (ordinal: number): void => owner.engineCall(job, ordinal);
    const taskOf = (ordinal: number): number => rig.task(Math.floor(ordinal / CONTEXTS));

    /**
     * Has every task say that it may be asleep. What is returned counts how often each has been rung since, once at the most
     * between two counts: each has them say it again.
     */
    function armAll(): () => number[] {
      const arm = (): number[] => range(TASKS).map((task) => owner.bellArm(rig.task(task)));
      const seen = arm();
      return () => arm().map((bell, task) => (bell - (seen[task] as number)) >>> 0);
    }

    /** Writes the staged descriptor of a FIFO, by default of a put from the one region to the other. */
    function stage(
      fifo: number,
      { kind = DESCRIPTOR_PUT, bytes = 0, from: mine = from, to: its = to, offset = 0 }: Injected,
    ) {
      const words = [kind, bytes, mine.index, mine.generation, 0, its.index, its.generation, offset, 1, 0, 0, 0];
      for (const [i, word] of words.entries()) rig.setWord(fifo + INJECTION_STAGED_OFFSET + 4 * i, word);
    }

    /** Injects a descriptor, and calls the engine; its slot. */
    function inject(ordinal: number, number: number, what: Injected): number {
      const fifo = rig.fifo(ordinal, number);
      stage(fifo, what);
      const slot = owner.inject(fifo, what.completions ?? 0);
      expect(slot).not.toBe(NONE);
      call(ordinal);
      return slot;
    }

    const head = (ordinal: number, number = 0): number => rig.word(rig.fifo(ordinal, number) + INJECTION_HEAD_OFFSET);
    const moved = (ordinal: number, number = 0): number => rig.word(rig.fifo(ordinal, number) + INJECTION_MOVED_OFFSET);
    const at = ({ rgetFifo }: Side, offset: number): number => rig.word(rgetFifo + offset);
    const isTold = ({ block, number }: Side): boolean =>
      (rig.word(block.base + BLOCK_STATUS_OFFSET) & (1 << number)) !== 0;

    /** Takes the next completion of a FIFO: its slot, and what came of it; undefined: there is none. */
    function take(ordinal: number, number = 0): [slot: number, result: number] | undefined {
      const completion = owner.completionTake(rig.fifo(ordinal, number));
      if (completion === NONE) return undefined;
      return [completion % 2 ** COMPLETION_RESULT_SHIFT, completion >>> COMPLETION_RESULT_SHIFT];
    }

    /** An rget FIFO of a context that no transfer has. */
    function rgetFifoOf(ordinal: number): [block: Region, number: number] {
      let found = blocks.get(ordinal);
      if (found === undefined || found.used === RGET_FIFO_COUNT) {
        found = { block: chains.block(ordinal), used: 0 };
        blocks.set(ordinal, found);
      }
      return [found.block, found.used++];
    }

    function placeOf(origin: number, target: number): Place {
      const [a, b] = [rgetFifoOf(origin), rgetFifoOf(target)];
      return { blocks: [a[0], b[0]], numbers: [a[1], b[1]], ordinals: [origin, target] };
    }

    /** Begins a chain between two endpoints. */
    function begin(chain: Chain, origin: number, target: number): Transfer {
      const transfer = chains.prepare(chain, placeOf(origin, target));
      expect(chains.write(transfer)).toBe(chain.fragments);
      return transfer;
    }

    /** Has the first links of a chain shipped, without a turn of the engine. */
    const shipFirst = ({ target }: Transfer): number => owner.chainRun(job, target.context, 0);

    function expectPayload({ payload, from, destination, to, bytes }: Transfer): void {
      const view = (base: number) => rig.memory.bytes.subarray(base, base + bytes);
      expect(Buffer.compare(view(payload.base + from), view(destination.base + to))).toBe(0);
    }

    /** Begins a long put, in a FIFO with nothing before it. */
    function longPut(ordinal: number, number: number, slices = DATA_SLICES): Long {
      const first = head(ordinal, number);
      inject(ordinal, number, { bytes: slices * SLICE_BYTES });
      return {
        item: ordinal * (FIFOS + 1) + number,
        ordinal,
        slices,
        had: () => (head(ordinal, number) === first ? moved(ordinal, number) / SLICE_BYTES : slices),
      };
    }

    /** Begins a chain of one long fragment; its MOVE is in the rget FIFO of the origin. */
    function longChain(origin: number, target: number, slices = DATA_SLICES): Long {
      const bytes = slices * SLICE_BYTES;
      const small = chains.prepare({ fragments: 1, depth: 1, fragment: 4 }, placeOf(origin, target));
      const transfer = { ...small, payload: from, from: 0, destination: to, to: 0, bytes, fragment: bytes };
      chains.plan(transfer);
      expect(chains.write(transfer)).toBe(1);
      shipFirst(transfer);
      return {
        item: origin * (FIFOS + 1) + FIFOS,
        ordinal: origin,
        slices,
        had: () =>
          at(transfer.target, RGET_FIFO_LEFT_OFFSET) === 0
            ? slices
            : at(transfer.origin, RGET_FIFO_MOVED_OFFSET) / SLICE_BYTES,
      };
    }

    /** Begins something long where an item stands: chains go to the last context of all. */
    function longAt(item: number, slices = DATA_SLICES): Long {
      const [ordinal, number] = [Math.floor(item / (FIFOS + 1)), item % (FIFOS + 1)];
      return number === FIFOS ? longChain(ordinal, ENDPOINTS - 1, slices) : longPut(ordinal, number, slices);
    }

    const isLeft = ({ had, slices }: Long): boolean => had() < slices;
    const sum = (longs: readonly Long[]): number => longs.reduce((all, { had }) => all + had(), 0);

    describe("P11 who calls it", () => {
      /** How often the engine has been rung; it is asleep again. */
      const bell = (): number => owner.bellArm(rig.engine);

      it.each([0, 1, 31, ENDPOINTS - 1])(
        "sets the bit of context %i, and rings the engine: once, while it is set",
        (ordinal) => {
          const rung = armAll();
          owner.bellArm(rig.engine);
          call(ordinal);
          expect([rig.due(), bell()]).toEqual([[ordinal], 1]);
          call(ordinal);
          expect([rig.due(), bell()]).toEqual([[ordinal], 1]);
          expect(serve()).toBe(0);
          call(ordinal);
          expect([rig.due(), bell(), rung()]).toEqual([[ordinal], 2, [0, 0, 0]]);
          call((ordinal + 1) % ENDPOINTS);
          expect([rig.due().length, bell()]).toEqual([2, 3]);
        },
      );

      it("an engine that is awake is not rung", () => {
        call(3);
        expect([rig.due(), rig.word(rig.engine + TASK_BELL_OFFSET)]).toEqual([[3], 0]);
      });

      it("one that has not begun yet is called: it looks when it does", () => {
        rig.setWord(rig.engine + TASK_STATE_OFFSET, TASK_ABSENT);
        inject(3, 0, { bytes: 8 });
        expect(rig.due()).toEqual([3]);
        expect([serve(), head(3)]).toEqual([0, 1]);
      });

      it.each<[string, number | undefined]>([
        ["is none", undefined],
        ["is one that has ended", TASK_DEAD],
        ["is one that could not begin", TASK_CLOSED],
      ])("where there %s, the context's task is rung: it is its own engine", (_, state) => {
        if (state === undefined) use({ engine: "inline" });
        else rig.setWord(rig.engine + TASK_STATE_OFFSET, state);
        const rung = armAll();
        for (const [ordinal, task] of [
          [0, 0],
          [CONTEXTS - 1, 0],
          [CONTEXTS, 1],
          [ENDPOINTS - 1, 2],
        ] as const) {
          const before = rung();
          call(ordinal);
          expect(rung()).toEqual(before.map((count, i) => count + Number(i === task)));
        }
        expect(rig.due()).toEqual([]);
      });
    });

    describe("P11 what is due", () => {
      it("a bit is cleared when nothing is left", () => {
        for (const ordinal of [0, 31, 32]) inject(ordinal, 1, { bytes: 100 });
        call(7);
        expect(rig.due()).toEqual([0, 7, 31, 32]);
        expect([serve(), rig.due()]).toEqual([0, []]);
        expect([head(0, 1), head(31, 1), head(32, 1)]).toEqual([1, 1, 1]);
      });

      it("what nobody has called it for is not looked at", () => {
        inject(5, 0, { bytes: 100 });
        rig.setWord(job + JOB_DUE_OFFSET, 0);
        expect([serve(), head(5)]).toEqual([0, 0]);
      });

      it("a bit stays while something is left; it is told of how many contexts that is so", () => {
        const longs = [longPut(3, 0, 2), longPut(3, 1, 1), longPut(32, 0, 2)];
        inject(9, 0, { bytes: 100 });
        const counts: number[] = [];
        for (let turn = 0; turn < 6; turn++) {
          const open = new Set(longs.filter(isLeft).map(({ ordinal }) => ordinal));
          // Those that have something left when what is short is done: the last slice of one comes after that.
          counts.push(serve());
          expect(counts.at(-1)).toBe(open.size);
          expect(rig.due()).toEqual([...open]);
        }
        expect(counts).toEqual([2, 2, 2, 2, 1, 0]);
        expect(longs.some(isLeft)).toBe(false);
      });

      it.each([0, 1])("is set again when something came in between, and that is done in the next turn", (number) => {
        // Something of this context writes the tail of its FIFO 0, which has been looked at by then: it is injected now.
        inject(4, 0, { bytes: 8 });
        const tail = rig.fifo(4) + INJECTION_TAIL_OFFSET;
        rig.setWord(tail, 0);
        const index = 100;
        const word: Region = { index, generation: owner.regionOpen(job, index, tail, 4), base: tail };
        rig.setWord(from.base, 1);
        if (number === 1) inject(4, 1, { bytes: 4, to: word });
        else {
          const small = chains.prepare({ fragments: 1, depth: 1, fragment: 4 }, placeOf(4, 8));
          const transfer = { ...small, payload: from, from: 0, destination: word, to: 0 };
          chains.plan(transfer);
          chains.write(transfer);
          shipFirst(transfer);
        }
        expect([serve(), rig.due(), head(4)]).toEqual([1, [4], 0]);
        expect([serve(), rig.due(), head(4)]).toEqual([0, [], 1]);
      });

      it.each<[string, (ordinal: number) => void]>([
        ["is closed", (ordinal) => rig.setWord(rig.context(ordinal) + CONTEXT_STATE_OFFSET, CONTEXT_CLOSED)],
        ["is not open yet", (ordinal) => rig.setWord(rig.context(ordinal) + CONTEXT_STATE_OFFSET, 0)],
        ["has a task that has closed", (ordinal) => rig.setWord(taskOf(ordinal) + TASK_STATE_OFFSET, TASK_CLOSED)],
        ["has a task that is dead", (ordinal) => rig.setWord(taskOf(ordinal) + TASK_STATE_OFFSET, TASK_DEAD)],
        ["has a task that is not there", (ordinal) => rig.setWord(taskOf(ordinal) + TASK_STATE_OFFSET, TASK_ABSENT)],
      ])("a context that %s: nothing of it is processed, others are", (_, end) => {
        const gone = 2 * CONTEXTS;
        const chain = begin({ fragments: 1, depth: 1 }, gone, 5);
        const other = begin({ fragments: 1, depth: 1 }, 5, gone);
        for (const transfer of [chain, other]) shipFirst(transfer);
        inject(gone, 0, { bytes: 100, completions: 1 });
        longPut(gone, 1);
        inject(5, 0, { bytes: 100, completions: 1 });
        end(gone);
        const before = rig.read(chain.origin.rgetFifo, RGET_FIFO_SIZE);
        serveAll();
        expect([rig.due(), head(gone), moved(gone, 1), head(5)]).toEqual([[], 0, 0, 2]);
        expect(rig.read(chain.origin.rgetFifo, RGET_FIFO_SIZE)).toEqual(before);
        expect([isTold(chain.target), isTold(chain.origin), isTold(other.origin)]).toEqual([false, false, true]);
      });

      it("an rget FIFO that is held, until its next fragment is staged: its core calls then", () => {
        const transfer = begin({ fragments: 4, depth: 2, fragment: 64, ring: 4, allowed: 0 }, 2, 20);
        const { origin, target } = transfer;
        const rung = armAll();
        for (let staged = 0; staged < 4; staged++) {
          serveAll();
          expect([rig.due(), at(origin, RGET_FIFO_PASSED_OFFSET), rung()[0]]).toEqual([[], staged, staged]);
          owner.storeWord(origin.rgetFifo + RGET_FIFO_ALLOWED_OFFSET, staged + 1);
          call(2);
        }
        serveAll();
        expect([isTold(origin), isTold(target), at(target, RGET_FIFO_LEFT_OFFSET)]).toEqual([true, true, 0]);
        expectPayload(transfer);
      });

      it("an rget FIFO that is held goes on when its core gives it up", () => {
        const { origin, target } = begin({ fragments: 4, depth: 2, fragment: 64, ring: 4, allowed: 1 }, 2, 20);
        serveAll();
        expect([rig.due(), at(origin, RGET_FIFO_PASSED_OFFSET)]).toEqual([[], 1]);
        owner.storeWord(origin.rgetFifo + RGET_FIFO_STOP_OFFSET, TRANSFER_CANCELED);
        call(2);
        serveAll();
        const results = [at(origin, RGET_FIFO_RESULT_OFFSET), at(target, RGET_FIFO_WRONG_OFFSET)];
        expect([isTold(origin), isTold(target), ...results]).toEqual([
          true,
          true,
          TRANSFER_CANCELED,
          TRANSFER_CANCELED,
        ]);
      });
    });

    describe("P11 what is short", () => {
      /** Something short in a context's FIFO, or in one of its rget FIFOs; what is returned says whether it is done. */
      const SHORT: [string, (ordinal: number, number: number) => () => boolean][] = [
        ...(["put", "get", "RMW", "fence"] as const).map((name): (typeof SHORT)[0] => [
          `a ${name} with its completion`,
          (ordinal, number) => {
            const kinds = { put: DESCRIPTOR_PUT, get: DESCRIPTOR_GET, RMW: DESCRIPTOR_RMW, fence: DESCRIPTOR_FENCE };
            const isFence = name === "fence";
            const bytes = name === "RMW" ? RMW_ADD : SHORT_BYTES;
            const slot = inject(ordinal, number, { kind: kinds[name], bytes, completions: isFence ? 0 : 1 });
            return () => take(ordinal, number)?.[0] === slot + Number(!isFence);
          },
        ]),
        [
          "many puts, of 4,096 bytes in all",
          (ordinal, number) => {
            for (let i = 0; i < 32; i++) inject(ordinal, number, { bytes: SHORT_BYTES / 32 });
            return () => head(ordinal, number) === 32;
          },
        ],
        [
          "a FETCH",
          (ordinal) => {
            const { origin } = begin({ fragments: 3, depth: 1, fragment: SLICE_BYTES }, 12, ordinal);
            return () => at(origin, RGET_FIFO_TAIL_OFFSET) > 0;
          },
        ],
        [
          "an RGET and a REFILL before a MOVE that is held",
          (ordinal) => {
            const transfer = begin({ fragments: 3, depth: 1, ring: 1, allowed: 0 }, ordinal, 12);
            shipFirst(transfer);
            call(ordinal);
            return () =>
              at(transfer.origin, RGET_FIFO_HEAD_OFFSET) === 2 && at(transfer.target, RGET_FIFO_TAIL_OFFSET) === 2;
          },
        ],
        [
          "a MOVE, and the NOTICE behind it",
          (ordinal) => {
            const transfer = begin({ fragments: 1, depth: 1, fragment: SHORT_BYTES }, ordinal, 12);
            shipFirst(transfer);
            call(ordinal);
            return () => isTold(transfer.origin) && isTold(transfer.target);
          },
        ],
        [
          "a NOTICE alone",
          (ordinal) => {
            const { origin } = chains.prepare({ fragments: 1, depth: 1 }, placeOf(ordinal, 12));
            const { block, offset, generation } = origin;
            owner.chainNotice(job, block.index, block.generation, offset, generation, ordinal, TRANSFER_REFUSED);
            return () => isTold(origin);
          },
        ],
      ];

      /** So many of these are in FIFOs. */
      const FIFO_KINDS = 5;

      const PLACES: [ordinal: number, number: number][] = [
        [0, 1],
        [16, 0],
        [ENDPOINTS - 2, 1],
      ];

      describe.each(SHORT)("%s", (_, make) => {
        it.each([1, 2, 8, 32])("is done in the very next turn, behind one slice of %i long ones elsewhere", (count) => {
          for (const [ordinal, number] of PLACES) {
            use();
            // All around it: in other contexts, and in the other FIFO and other rget FIFOs of its own.
            const own = ordinal * (FIFOS + 1) + number;
            const first = Math.max(0, Math.min(own - Math.floor(count / 2), ENDPOINTS * (FIFOS + 1) - 1 - count));
            const items = range(count + 1)
              .map((i) => first + i)
              .filter((item) => item !== own)
              .slice(0, count);
            const longs = items.map((item) => longAt(item));
            for (let turn = 0; turn < 3; turn++) serve();
            const isDone = make(ordinal, number);
            const before = sum(longs);
            serve();
            expect([ordinal, isDone(), sum(longs) - before]).toEqual([ordinal, true, 1]);
          }
        });
      });

      it.each([1, 2])(
        "is done before the slice of its turn, so that none comes between two looks: %i long",
        (count) => {
          rig.memory.bytes.fill(7, from.base, from.base + DATA_BYTES);
          const longs = range(count).map((i) => longPut(16, i, 4));
          const shorts = [0, 15, 17, ENDPOINTS - 1].map((ordinal) => ({ ordinal, probe: chains.region(0, 8) }));
          for (let turn = 0; turn < 4 * count; turn++) {
            // Which bytes the slice of this turn is to overwrite: each of the two puts writes the same.
            const offset = Math.floor(turn / count) * SLICE_BYTES;
            rig.memory.bytes.fill(0, to.base + offset, to.base + offset + 4);
            for (const { ordinal, probe } of shorts) {
              rig.setWord(probe.base, -1);
              inject(ordinal, 0, { kind: DESCRIPTOR_GET, bytes: 4, from: probe, to, offset });
            }
            serve();
            expect([turn, ...shorts.map(({ probe }) => rig.word(probe.base))]).toEqual([turn, 0, 0, 0, 0]);
            expect(sum(longs)).toBe(turn + 1);
          }
        },
      );

      it("wherever it is, and whatever is long: done in the very next turn, and one slice of those is", () => {
        const item = fc.nat(ENDPOINTS * (FIFOS + 1) - 1);
        const property = fc.property(
          fc.uniqueArray(item, { minLength: 1, maxLength: 32 }),
          fc.nat(12),
          fc.array(fc.record({ kind: fc.nat(SHORT.length - 1), item }), { minLength: 1, maxLength: 4 }),
          (items, turns, shorts) => {
            use();
            const longs = items.map((item) => longAt(item));
            for (let turn = 0; turn < turns; turn++) serve();
            const used = new Set(items);
            for (const { kind, item } of shorts) {
              const [ordinal, number] = [Math.floor(item / (FIFOS + 1)), item % FIFOS];
              // What is behind something long in its FIFO waits; an rget FIFO is for one transfer.
              const own = ordinal * (FIFOS + 1) + number;
              if (kind < FIFO_KINDS && used.has(own)) continue;
              used.add(own);
              const isDone = (SHORT[kind] as (typeof SHORT)[0])[1](ordinal, number);
              const before = sum(longs);
              serve();
              expect(isDone()).toBe(true);
              expect(sum(longs) - before).toBeLessThanOrEqual(1);
            }
          },
        );
        assertProperty(property, 40);
      });

      it("is what has 4,096 bytes at the most: one more takes its turn", () => {
        const long = longPut(3, 0);
        const turnOf = (ordinal: number): void => rig.setWord(rig.engine + TASK_TURN_OFFSET, ordinal * (FIFOS + 1));
        inject(7, 0, { bytes: SHORT_BYTES + 1 });
        turnOf(7);
        serve();
        expect([head(7), long.had()]).toEqual([0, 1]);
        serve();
        expect([head(7), long.had()]).toEqual([1, 1]);
        inject(7, 0, { bytes: SHORT_BYTES });
        turnOf(7);
        serve();
        expect([head(7), long.had()]).toEqual([2, 2]);
      });

      it("so much of each FIFO, and of the rget FIFOs of each context, in a turn: the rest takes its turn", () => {
        const long = longPut(3, 0);
        for (const number of [0, 1]) for (let i = 0; i < 5; i++) inject(7, number, { bytes: 1000 });
        const chain = () => begin({ fragments: 1, depth: 1, fragment: 3000 }, 8, 12);
        const three = [chain(), chain(), chain()];
        shipFirst(three[0] as Transfer);
        call(8);
        const done = (): number => three.filter(({ origin }) => isTold(origin)).length;
        rig.setWord(rig.engine + TASK_TURN_OFFSET, 8 * (FIFOS + 1) + FIFOS);
        serve();
        expect([head(7, 0), head(7, 1), done(), long.had()]).toEqual([4, 4, 1, 1]);
        rig.setWord(rig.engine + TASK_TURN_OFFSET, 8 * (FIFOS + 1) + FIFOS);
        serve();
        expect([head(7, 0), head(7, 1), done(), long.had()]).toEqual([5, 5, 2, 2]);
      });

      it("the end of something long is short, too", () => {
        const [long, other] = [longPut(3, 0), longPut(5, 0)];
        inject(7, 0, { bytes: 2 * SLICE_BYTES + SHORT_BYTES, completions: 1 });
        for (let turn = 0; turn < 6; turn++) serve();
        expect([long.had(), other.had(), moved(7), head(7)]).toEqual([2, 2, 2 * SLICE_BYTES, 0]);
        serve();
        expect([long.had() + other.had(), head(7)]).toEqual([5, 2]);
      });
    });

    describe("P11 what is long", () => {
      it("takes turns in the order of contexts, of each its FIFOs, then its rget FIFOs: one slice in a turn", () => {
        const items = [1, 15, 17, 18, 31 * (FIFOS + 1), 32 * (FIFOS + 1) + 1];
        const longs = items.map((item) => longAt(item, 3));
        const order: number[] = [];
        for (let turn = 0; turn < 3 * longs.length; turn++) {
          const before = longs.map(({ had }) => had());
          serve();
          const who = longs.filter(({ had }, i) => had() !== before[i]);
          expect(who.length).toBe(1);
          order.push(...who.map(({ item }) => item));
          expect(sum(longs)).toBe(turn + 1);
        }
        expect(order).toEqual([...items, ...items, ...items]);
        expect([serve(), rig.due()]).toEqual([0, []]);
      });

      it.each([2, 7, 32])(
        "%i of them, over the FIFOs and rget FIFOs of all tasks: each has as many slices as the others",
        (count) => {
          const items = range(count).map((i) => (i * 23) % (ENDPOINTS * (FIFOS + 1)));
          const longs = items.map((item) => longAt(item, 4));
          for (let turn = 1; turn <= 4 * count; turn++) {
            serve();
            const had = longs.map((long) => long.had());
            expect(Math.max(...had) - Math.min(...had)).toBeLessThanOrEqual(1);
            expect(sum(longs)).toBe(turn);
          }
          expect(longs.some(isLeft)).toBe(false);
        },
      );

      it("a slice looks at its owner's line once for all that it finds there", () => {
        const put = (): number => inject(5, 0, { bytes: SLICE_BYTES });
        for (let i = 0; i < 3; i++) put();
        const steps: number[][] = [];
        for (let turn = 0; turn < 5; turn++) {
          serve();
          steps.push([head(5), rig.word(rig.fifo(5, 0) + INJECTION_AHEAD_OFFSET)]);
          if (turn === 0) for (let i = 0; i < 2; i++) put();
        }
        expect(steps).toEqual([
          [1, 2],
          [2, 1],
          [3, 0],
          [4, 1],
          [5, 0],
        ]);
        expect([serve(), rig.due()]).toEqual([0, []]);
      });

      it("the rget FIFOs of a context have one turn together, and take it one after the other", () => {
        const rgetFifos = range(3).map(() => longChain(6, 30, 2));
        const put = longPut(20, 0, 6);
        const had: number[][] = [];
        for (let turn = 0; turn < 12; turn++) {
          serve();
          had.push([sum(rgetFifos), put.had()]);
          const each = rgetFifos.map((rgetFifo) => rgetFifo.had());
          expect(Math.max(...each) - Math.min(...each)).toBeLessThanOrEqual(1);
        }
        expect(had).toEqual(range(12).map((turn) => [Math.floor(turn / 2) + 1, Math.floor((turn + 1) / 2)]));
      });

      it("whoever comes when: a slice in each turn, and nobody waits for more than one of each of the others", () => {
        const arrival = fc.record({
          item: fc.nat(ENDPOINTS * (FIFOS + 1) - 1),
          turn: fc.nat(40),
          slices: fc.integer({ min: 1, max: 6 }),
        });
        const arrivals = fc.uniqueArray(arrival, { minLength: 1, maxLength: 12, selector: ({ item }) => item });
        const property = fc.property(arrivals, (all) => {
          use();
          const longs: Long[] = [];
          const waits = new Map<Long, number>();
          for (let turn = 0; turn < 200; turn++) {
            for (const { item, turn: when, slices } of all) if (when === turn) longs.push(longAt(item, slices));
            const open = longs.filter(isLeft);
            if (turn > 40 && open.length === 0) break;
            const before = new Map(open.map((long) => [long, long.had()]));
            serve();
            const served = open.filter((long) => long.had() !== before.get(long));
            expect(served.length).toBe(Math.min(1, open.length));
            for (const long of open) waits.set(long, served.includes(long) ? 0 : (waits.get(long) ?? 0) + 1);
            for (const long of open) expect(waits.get(long)).toBeLessThan(all.length);
          }
          expect(longs.filter(isLeft)).toEqual([]);
          serveAll();
          expect(rig.due()).toEqual([]);
        });
        assertProperty(property, 60);
      });
    });

    describe("P11 whom it rings", () => {
      it("an owner once its head moved, and not for a slice in between", () => {
        const rung = armAll();
        inject(CONTEXTS + 4, 0, { bytes: 3 * SLICE_BYTES, completions: 1 });
        const counts = range(5).map(() => {
          serve();
          return rung();
        });
        expect(counts).toEqual([
          [0, 0, 0],
          [0, 0, 0],
          [0, 1, 0],
          [0, 1, 0],
          [0, 1, 0],
        ]);
      });

      it("once for all that is short in a FIFO", () => {
        const rung = armAll();
        for (let i = 0; i < 10; i++) inject(1, 1, { bytes: 100, completions: 1 });
        serveAll();
        expect(rung()).toEqual([1, 0, 0]);
      });
    });

    describe("P11 what it has seen", () => {
      /** As a task tells that it has closed something. */
      function tell(): number {
        return (owner.addWord(rig.engine + TASK_NOTICE_OFFSET, 1) + 1) >>> 0;
      }

      const seen = (): number => rig.word(rig.engine + TASK_SEEN_OFFSET);
      const notices = (): number[] => range(TASKS).map((task) => rig.word(rig.task(task) + TASK_NOTICE_OFFSET));

      it("acknowledges the last notice, once; counts up that of each task, and rings it", () => {
        const rung = armAll();
        serve();
        expect([seen(), notices(), rung()]).toEqual([0, [0, 0, 0], [0, 0, 0]]);
        tell();
        const notice = tell();
        for (let turn = 0; turn < 3; turn++) {
          expect(serve()).toBe(0);
          expect([seen(), notices(), rung()]).toEqual([notice, [1, 1, 1], [1, 1, 1]]);
        }
      });

      it("also where its count wraps at 2^32, and while something long goes on", () => {
        rig.setWord(rig.engine + TASK_NOTICE_OFFSET, NONE);
        longPut(3, 0);
        for (const notice of [NONE, 0, 1]) {
          serve();
          expect(seen()).toBe(notice);
          tell();
        }
        expect(notices()).toEqual([3, 3, 3]);
      });

      /** Fills memory, as whoever has it next; what is returned says whether it has stayed as it is. */
      function reuse(areas: [base: number, bytes: number][]): () => boolean {
        for (const [base, bytes] of areas) rig.memory.bytes.fill(0xee, base, base + bytes);
        return () =>
          areas.every(([base, bytes]) => rig.memory.bytes.subarray(base, base + bytes).every((byte) => byte === 0xee));
      }

      const whole = (region: Region): [number, number] => [region.base, DATA_BYTES];

      it.each(["put", "get"])(
        "a region that is closed is not written to any more: what a %s is in the midst of",
        (kind) => {
          const region = kind === "put" ? to : from;
          inject(3, 0, { kind: kind === "put" ? DESCRIPTOR_PUT : DESCRIPTOR_GET, bytes: DATA_BYTES, completions: 1 });
          for (let turn = 0; turn < 2; turn++) serve();
          expect(moved(3)).toBe(2 * SLICE_BYTES);
          owner.regionClose(job, region.index);
          const notice = tell();
          serve();
          expect(seen()).toBe(notice);
          const isUntouched = reuse([whole(region)]);
          serveAll();
          expect(isUntouched()).toBe(true);
          expect(take(3)).toEqual([1, kind === "put" ? TRANSFER_REMOTE_CLOSED : TRANSFER_LOCAL_CLOSED]);
        },
      );

      it.each(["destination", "links", "block"] as const)("nor is one of a chain: %s", (which) => {
        const transfer = begin({ fragments: 12, depth: 2, fragment: SLICE_BYTES / 2 }, 3, 15);
        const { target, destination, links } = transfer;
        for (let turn = 0; turn < 3; turn++) serve();
        expect(at(target, RGET_FIFO_LEFT_OFFSET)).toBeGreaterThan(0);
        const [region, bytes] = {
          destination: [destination, TO + transfer.bytes] as const,
          links: [links, 12 * LINK_SIZE] as const,
          block: [target.block, BLOCK_SIZE] as const,
        }[which];
        if (which === "block") rig.setWord(target.context + CONTEXT_STATE_OFFSET, CONTEXT_CLOSED);
        owner.regionClose(job, region.index);
        const notice = tell();
        serve();
        expect(seen()).toBe(notice);
        const isUntouched = reuse([[region.base, bytes]]);
        serveAll();
        expect(isUntouched()).toBe(true);
        expect(at(transfer.origin, RGET_FIFO_HEAD_OFFSET)).toBe(at(transfer.origin, RGET_FIFO_TAIL_OFFSET));
      });

      it.each([TASK_CLOSED, TASK_DEAD])(
        "nor is anything of a task that has ended (%i), whose regions are open still",
        (state) => {
          const toIt = begin({ fragments: 12, depth: 2, fragment: SLICE_BYTES / 2 }, 3, CONTEXTS + 4);
          const ofIt = begin({ fragments: 12, depth: 2, fragment: SLICE_BYTES / 2 }, CONTEXTS + 5, 4);
          inject(3, 0, { bytes: DATA_BYTES, completions: 1 });
          inject(2 * CONTEXTS, 0, { kind: DESCRIPTOR_GET, bytes: DATA_BYTES, completions: 1 });
          longPut(CONTEXTS + 5, 1);
          for (let turn = 0; turn < 6; turn++) serve();
          rig.setWord(rig.task(1) + TASK_STATE_OFFSET, state);
          const notice = tell();
          serve();
          expect(seen()).toBe(notice);
          const before = [head(CONTEXTS + 5, 1), moved(CONTEXTS + 5, 1)];
          const isUntouched = reuse([
            whole(to),
            [toIt.destination.base, TO + toIt.bytes],
            [toIt.links.base, 12 * LINK_SIZE],
            [toIt.target.block.base, BLOCK_SIZE],
            [ofIt.origin.block.base, BLOCK_SIZE],
            [ofIt.payload.base, FROM + ofIt.bytes],
          ]);
          const received = rig.memory.bytes.slice(from.base, from.base + DATA_BYTES);
          serveAll();
          expect(isUntouched()).toBe(true);
          expect(Buffer.compare(received, rig.memory.bytes.subarray(from.base, from.base + DATA_BYTES))).toBe(0);
          expect([take(3), take(2 * CONTEXTS)]).toEqual(range(2).map(() => [1, TRANSFER_ENDED]));
          expect([head(CONTEXTS + 5, 1), moved(CONTEXTS + 5, 1)]).toEqual(before);
          expect([at(toIt.origin, RGET_FIFO_RESULT_OFFSET), rig.due()]).toEqual([TRANSFER_ENDED, []]);
        },
      );
    });

    describe("P11 chains", () => {
      const ends: [origin: number, target: number, rings: number[]][] = [
        [0, CONTEXTS, [1, 1, 0]],
        [ENDPOINTS - 1, 0, [1, 0, 1]],
        // Both sides are of one task, and told in one turn.
        [12, 13, [0, 1, 0]],
      ];
      const shapes = [1, 2, 3, 100, 1024].flatMap((fragments) => [1, 2, 4].map((depth) => [fragments, depth] as const));

      it.each(shapes)(
        "of %i fragments, depth %i: from chainWrite() to the status bits by the engine alone",
        (fragments, depth) => {
          for (const [origin, target, rings] of ends) {
            use();
            const transfer = begin({ fragments, depth, fragment: 40, last: 7 }, origin, target);
            const rung = armAll();
            for (let turns = 0; !isTold(transfer.origin) || !isTold(transfer.target); turns++) {
              expect(rung()).toEqual([0, 0, 0].map((_, task) => Number(isTold(transfer.target) && target === task)));
              // A turn for a link's way there and back, at the most.
              if (turns > 2 * fragments) throw new Error("it does not come to an end");
              serve();
            }
            expectPayload(transfer);
            expect([rung(), serveAll(), rig.due()]).toEqual([rings, 1, []]);
          }
        },
      );

      it("any number of them, both ways, among what is long and short: all arrive, and nobody's kernel is called", () => {
        const chain = fc.record({
          fragments: fc.integer({ min: 1, max: 20 }),
          depth: fc.integer({ min: 1, max: 4 }),
          fragment: fc.oneof(fc.integer({ min: 1, max: 5000 }), fc.integer({ min: 5000, max: 100_000 })),
          ends: fc.tuple(fc.nat(ENDPOINTS - 1), fc.nat(ENDPOINTS - 1)),
        });
        const put = fc.record({ ordinal: fc.nat(ENDPOINTS - 1), bytes: fc.nat(2 * SLICE_BYTES) });
        const property = fc.property(
          fc.array(chain, { maxLength: 6 }),
          fc.array(put, { maxLength: 6 }),
          (some, puts) => {
            use();
            const transfers = some.map(({ fragments, depth, fragment, ends }) => {
              const count = Math.max(1, Math.min(fragments, Math.floor(400_000 / fragment)));
              return begin({ fragments: count, depth, fragment }, ...ends);
            });
            for (const { ordinal, bytes } of puts) inject(ordinal, 0, { bytes, completions: 1 });
            const rung = armAll();
            serveAll();
            for (const transfer of transfers) {
              expect([isTold(transfer.origin), isTold(transfer.target)]).toEqual([true, true]);
              expectPayload(transfer);
            }
            // Once for all that is told before the task is up: of each side, and of what it has injected.
            const sides = transfers.flatMap(({ origin, target }) => [origin.task, target.task]);
            for (const [task, count] of rung().entries()) {
              const told = sides.filter((side) => side === task).length;
              const injected = puts.filter(({ ordinal }) => Math.floor(ordinal / CONTEXTS) === task).length;
              expect(count).toBe(Math.min(1, told + injected));
            }
            for (const { ordinal } of puts) expect(take(ordinal)?.[1]).toBe(TRANSFER_DONE);
          },
        );
        assertProperty(property, 40);
      });
    });

    describe("P11 what goes to another node", () => {
      /** Task 2 is of another node. */
      const LOCALS = 2;
      const OWN = LOCALS * CONTEXTS;
      /** A region of it. */
      let other: Region;

      beforeEach(() => {
        use({ locals: LOCALS });
        other = { index: LOCALS * rig.map.regions + 1, generation: 5, base: 0 };
      });

      const isAway = (ordinal: number, number = 0): boolean => {
        const state = rig.word(rig.fifo(ordinal, number) + INJECTION_AWAY_OFFSET);
        expect([AWAY_NONE, AWAY_FOUND]).toContain(state);
        return state === AWAY_FOUND;
      };

      it.each([0, OWN - 1])(
        "context %i is not due any more, until its engine is called again: then it goes on",
        (ordinal) => {
          inject(ordinal, 0, { bytes: 8, completions: 1 });
          inject(ordinal, 0, { bytes: 8, to: other, completions: 1 });
          inject(ordinal, 0, { bytes: 8, completions: 1 });
          const rung = armAll();
          expect([serve(), rig.due(), head(ordinal), isAway(ordinal)]).toEqual([0, [], 2, true]);
          // Its owner may wait for what came before.
          const once = range(TASKS).map((task) => Number(task === Math.floor(ordinal / CONTEXTS)));
          expect(rung()).toEqual(once);
          expect([take(ordinal), take(ordinal)]).toEqual([[1, TRANSFER_DONE], undefined]);
          call(ordinal);
          expect([serve(), rig.due(), head(ordinal), rung()]).toEqual([0, [], 2, once]);
          engine.engineCarried(rig.fifo(ordinal), TRANSFER_REMOTE_BOUNDS);
          expect([isAway(ordinal), take(ordinal)]).toEqual([false, undefined]);
          call(ordinal);
          expect([serve(), rig.due(), head(ordinal)]).toEqual([0, [], 6]);
          expect([take(ordinal), take(ordinal)]).toEqual([
            [3, TRANSFER_REMOTE_BOUNDS],
            [5, TRANSFER_DONE],
          ]);
        },
      );

      it("one of each FIFO waits, and the others go on, however long they are", () => {
        for (const [ordinal, number] of [
          [0, 1],
          [3, 0],
        ] as const)
          inject(ordinal, number, { to: other });
        const longs = [longAt(0), longAt(3 * (FIFOS + 1) + 1), longChain(3, OWN - 1)];
        for (let turns = 1; turns <= 3 * DATA_SLICES; turns++) {
          serve();
          expect(sum(longs)).toBe(turns);
          expect([isAway(0, 1), isAway(3)]).toEqual([true, true]);
        }
        expect([serve(), rig.due()]).toEqual([0, []]);
      });

      it("behind a long put that is alone, with another long one behind it", () => {
        const put = longPut(4, 0);
        inject(4, 0, { bytes: 8, to: other, completions: 1 });
        inject(4, 0, { bytes: DATA_BYTES });
        serveAll();
        expect([put.had(), isAway(4), head(4)]).toEqual([DATA_SLICES, true, 1]);
        engine.engineCarried(rig.fifo(4), TRANSFER_DONE);
        expect(serve()).toBe(0);
        call(4);
        serveAll();
        expect([take(4), take(4), head(4)]).toEqual([[2, TRANSFER_DONE], undefined, 4]);
      });

      it("carried before the next turn, behind the last slice of what was alone: no slot is processed that there is not", () => {
        inject(4, 0, { bytes: SLICE_BYTES + 100 });
        inject(4, 0, { bytes: 8, to: other });
        inject(4, 0, { bytes: 8, completions: 1 });
        for (let turns = 0; !isAway(4); turns++) {
          expect(turns).toBeLessThan(4);
          serve();
        }
        engine.engineCarried(rig.fifo(4), TRANSFER_DONE);
        call(4);
        serveAll();
        const words = [INJECTION_TAIL_OFFSET, INJECTION_HEAD_OFFSET, INJECTION_REFUSED_OFFSET];
        expect(words.map((offset) => rig.word(rig.fifo(4) + offset))).toEqual([4, 4, 0]);
      });

      it("tells no slot of another node's task of a notice: the agent has it, and the node's own tasks", () => {
        const before = range(TASKS).map((task) => rig.word(rig.task(task) + TASK_NOTICE_OFFSET));
        owner.addWord(rig.engine + TASK_NOTICE_OFFSET, 1);
        serve();
        const after = range(TASKS).map((task) => rig.word(rig.task(task) + TASK_NOTICE_OFFSET));
        expect(after.map((notice, task) => notice - (before[task] as number))).toEqual([1, 1, 0]);
      });
    });

    describe("P11 when it has ended", () => {
      const fifo = (): number => rig.fifo(3);
      const field = (offset: number): number => rig.word(fifo() + offset);

      function end(): void {
        rig.setWord(rig.engine + TASK_STATE_OFFSET, TASK_DEAD);
      }

      function takeAll(): [slot: number, result: number][] {
        const all: [number, number][] = [];
        for (let next = take(3); next !== undefined; next = take(3)) all.push(next);
        return all;
      }

      it("what was not processed is given up, and its completions say so; what was processed is as it is", () => {
        for (let i = 0; i < 3; i++) inject(3, 0, { bytes: 100, completions: 1 });
        inject(3, 0, { bytes: 100, completions: 1, offset: DATA_BYTES });
        serve();
        expect(take(3)).toEqual([1, TRANSFER_DONE]);
        inject(3, 0, { bytes: DATA_BYTES, completions: 2 });
        inject(3, 0, { bytes: 100, completions: 1 });
        inject(3, 0, { kind: DESCRIPTOR_FENCE });
        serve();
        expect(moved(3)).toBe(SLICE_BYTES);
        const refused = field(INJECTION_REFUSED_OFFSET);
        end();
        owner.engineGiveUp(rig.map.job, fifo());
        expect(takeAll()).toEqual([
          [3, TRANSFER_DONE],
          [5, TRANSFER_DONE],
          [7, TRANSFER_REMOTE_BOUNDS],
          [9, TRANSFER_BROKEN],
          [10, TRANSFER_BROKEN],
          [12, TRANSFER_BROKEN],
          // Of all that was refused since the last fence, this was first.
          [13, TRANSFER_REMOTE_BOUNDS],
        ]);
        expect([field(INJECTION_REFUSED_OFFSET) - refused, moved(3)]).toEqual([2, 0]);
        expect([head(3), field(INJECTION_PENDING_OFFSET)]).toEqual([14, 0]);
      });

      it("from then on the task is its own engine", () => {
        inject(3, 0, { bytes: DATA_BYTES, completions: 1 });
        end();
        owner.engineGiveUp(rig.map.job, fifo());
        expect(takeAll()).toEqual([[1, TRANSFER_BROKEN]]);
        stage(fifo(), { bytes: SLICE_BYTES });
        expect(owner.submit(job, fifo(), true)).toBe(TRANSFER_DONE);
        stage(fifo(), { bytes: SLICE_BYTES + 1 });
        expect(owner.submit(job, fifo(), true)).toBe(TRANSFER_LATER);
        expect(owner.inject(fifo(), 1)).toBe(2);
        expect([owner.engineRun(job, fifo(), SLICE_BYTES), owner.engineRun(job, fifo(), SLICE_BYTES)]).toEqual([2, 0]);
        expect(takeAll()).toEqual([[3, TRANSFER_DONE]]);
      });

      it("nothing to give up: nothing changes", () => {
        inject(3, 0, { bytes: 100, completions: 1 });
        serve();
        const before = rig.read(fifo(), rig.map.injectionSize);
        owner.engineGiveUp(rig.map.job, fifo());
        expect(rig.read(fifo(), rig.map.injectionSize)).toEqual(before);
      });

      it.each([64, 1024])(
        "of %i slots: what it had processed and not yet said, the owner may have taken: that is left as it is",
        (slots) => {
          use({ slots });
          // Positions that wrap, of the ring and of 2^32.
          const start = 2 ** 32 - 50;
          for (const offset of [INJECTION_TAIL_OFFSET, INJECTION_OLDEST_OFFSET, INJECTION_HEAD_OFFSET])
            rig.setWord(fifo() + offset, start);
          const position = (i: number): number => (start + i) % slots;
          for (let i = 0; i < 30; i++) inject(3, 0, { bytes: i < 20 ? 8 : DATA_BYTES, completions: 1 });
          serve();
          expect((head(3) - start) >>> 0).toBe(40);
          for (let i = 0; i < 7; i++) expect(take(3)).toEqual([position(2 * i + 1), TRANSFER_DONE]);
          // It has died before it stored its head.
          rig.setWord(fifo() + INJECTION_HEAD_OFFSET, start);
          end();
          owner.engineGiveUp(rig.map.job, fifo());
          expect(takeAll()).toEqual(range(23).map((i) => [position(2 * (7 + i) + 1), TRANSFER_BROKEN]));
          expect([(head(3) - start) >>> 0, field(INJECTION_PENDING_OFFSET)]).toEqual([60, 0]);
          expect(take(3)).toBeUndefined();
        },
      );

      it.each([1024, 32768])("of %i slots: a bit that it had set without those above it is found", (slots) => {
        use({ slots });
        const first = slots / 2 + 5;
        for (const offset of [INJECTION_TAIL_OFFSET, INJECTION_OLDEST_OFFSET, INJECTION_HEAD_OFFSET])
          rig.setWord(fifo() + offset, first);
        // Behind so many others, its word is looked for by the levels above.
        for (let i = 0; i < 40; i++) inject(3, 0, {});
        const [one, next] = [inject(3, 0, { kind: DESCRIPTOR_FENCE }), inject(3, 0, { kind: DESCRIPTOR_FENCE })];
        rig.setWord(fifo() + INJECTION_MASK_OFFSET + 4 * (one >>> 5), 1 << (one & 31));
        end();
        expect(take(3)).toBeUndefined();
        owner.engineGiveUp(rig.map.job, fifo());
        expect(takeAll()).toEqual([
          [one, TRANSFER_BROKEN],
          [next, TRANSFER_DONE],
        ]);
        expect(rig.read(fifo() + INJECTION_MASK_OFFSET, slots / 8).every((byte) => byte === 0)).toBe(true);
      });

      it("a chain that was begun is broken off: its target is told, and nothing of it is left to come", () => {
        const transfer = begin({ fragments: 12, depth: 2, fragment: SLICE_BYTES }, 3, CONTEXTS);
        const { origin, target } = transfer;
        for (let turn = 0; turn < 4; turn++) serve();
        expect(at(target, RGET_FIFO_LEFT_OFFSET)).toBeGreaterThan(0);
        end();
        const rung = armAll();
        expect(owner.chainBreak(job, origin.rgetFifo)).toBe(1);
        const state = (): unknown[] => [
          isTold(target),
          at(target, RGET_FIFO_WRONG_OFFSET),
          at(target, RGET_FIFO_LEFT_OFFSET),
        ];
        expect([state(), isTold(origin), rung()]).toEqual([[true, TRANSFER_BROKEN, 0], false, [0, 1, 0]]);
        // Both close, and each is its own engine.
        for (const { rgetFifo } of [origin, target]) {
          owner.rgetClose(rgetFifo);
          owner.rgetClear(rgetFifo);
        }
        for (const { context } of [origin, target]) expect(owner.chainRun(job, context, SLICE_BYTES)).toBe(0);
      });

      it("one that its target has not begun is not broken off: it may be begun still, and goes on", () => {
        const transfer = chains.prepare({ fragments: 5, depth: 2 }, placeOf(3, CONTEXTS));
        const { origin, target } = transfer;
        end();
        const before = Buffer.from(rig.area());
        expect(owner.chainBreak(job, origin.rgetFifo)).toBe(0);
        expect(Buffer.compare(before, rig.area())).toBe(0);
        expect(chains.write(transfer)).toBe(5);
        for (let i = 0; i < 20; i++)
          for (const { context } of [target, origin]) owner.chainRun(job, context, SLICE_BYTES);
        expect([isTold(origin), isTold(target), at(origin, RGET_FIFO_RESULT_OFFSET)]).toEqual([
          true,
          true,
          TRANSFER_DONE,
        ]);
        expectPayload(transfer);
      });

      it("an rget FIFO that was opened again has not been begun", () => {
        const transfer = begin({ fragments: 5, depth: 2 }, 3, CONTEXTS);
        const { origin } = transfer;
        expect(owner.chainBreak(job, origin.rgetFifo)).toBe(1);
        owner.rgetClose(origin.rgetFifo);
        owner.rgetClear(origin.rgetFifo);
        owner.rgetOpen(origin.rgetFifo, NONE);
        expect(owner.chainBreak(job, origin.rgetFifo)).toBe(0);
      });

      it.each<[string, (transfer: Transfer) => void]>([
        ["its rget FIFO is closed", ({ target }) => owner.rgetClose(target.rgetFifo)],
        [
          "its rget FIFO has been opened again",
          ({ target }) => {
            owner.rgetClose(target.rgetFifo);
            owner.rgetOpen(target.rgetFifo, NONE);
          },
        ],
        ["its block is closed", ({ target }) => owner.regionClose(job, target.block.index)],
        ["its task has closed", () => rig.setWord(rig.task(1) + TASK_STATE_OFFSET, TASK_CLOSED)],
        ["its task is dead", () => rig.setWord(rig.task(1) + TASK_STATE_OFFSET, TASK_DEAD)],
      ])("a target that is gone, %s: broken off, and nothing is written there", (_, go) => {
        const transfer = begin({ fragments: 5, depth: 2, fragment: SLICE_BYTES }, 3, CONTEXTS);
        for (let turn = 0; turn < 2; turn++) serve();
        end();
        go(transfer);
        const rung = armAll();
        const before = Buffer.from(rig.area());
        expect(owner.chainBreak(job, transfer.origin.rgetFifo)).toBe(1);
        expect(Buffer.compare(before, rig.area())).toBe(0);
        expect(rung()).toEqual([0, 0, 0]);
      });

      it("a target breaks off by a NOTICE: the origin is told, and nothing that is left of the chain moves", () => {
        const transfer = begin({ fragments: 12, depth: 2, fragment: SLICE_BYTES }, 3, CONTEXTS);
        const { origin, target } = transfer;
        for (let turn = 0; turn < 4; turn++) serve();
        end();
        const { block, offset, generation } = origin;
        const rung = armAll();
        expect(owner.chainNotice(job, block.index, block.generation, offset, generation, 3, TRANSFER_BROKEN)).toBe(1);
        expect(rung()).toEqual([1, 0, 0]);
        owner.rgetClose(target.rgetFifo);
        owner.rgetClear(target.rgetFifo);
        const { base } = transfer.destination;
        const received = rig.memory.bytes.slice(base, base + transfer.bytes);
        for (let i = 0; i < 12; i++)
          for (const { context } of [target, origin]) owner.chainRun(job, context, SLICE_BYTES);
        expect(isTold(origin)).toBe(true);
        expect([TRANSFER_BROKEN, TRANSFER_ENDED]).toContain(at(origin, RGET_FIFO_RESULT_OFFSET));
        expect(Buffer.compare(received, rig.memory.bytes.subarray(base, base + transfer.bytes))).toBe(0);
      });
    });

    // The wasm kernels' looks can't be stopped in between: for those there are the interleaving tests.
    if (options.producer === "twin") {
      it.each([64, 1024])("C5 of %i slots: bits that are set while their owner looks are taken in order", (slots) => {
        const fifo = (): number => rig.fifo(3);
        const load = Atomics.load.bind(Atomics) as (words: Int32Array, index: number) => number;
        /** Positions of fences; all else is puts. */
        const plans = [
          [1, 40],
          [33, 34, 63],
          [0, 31, 32, 60],
          [slots - 33, slots - 1],
          [2, slots - 30, slots - 29],
        ];
        for (const plan of plans) {
          for (const start of [0, 20, slots - 7]) {
            for (let look = 0; look < 40; look++) {
              use({ slots });
              for (const offset of [INJECTION_TAIL_OFFSET, INJECTION_OLDEST_OFFSET, INJECTION_HEAD_OFFSET])
                rig.setWord(fifo() + offset, start);
              for (let i = 0; i <= Math.max(...plan); i++)
                inject(3, 0, { kind: plan.includes(i) ? DESCRIPTOR_FENCE : DESCRIPTOR_PUT });
              let looks = 0;
              const spy = vi.spyOn(Atomics, "load").mockImplementation(((words: Int32Array, index: number) => {
                const value = load(words, index);
                if (looks++ === look) engine.engineRun(job, fifo(), SLICE_BYTES);
                return value;
              }) as typeof Atomics.load);
              const early = take(3);
              spy.mockRestore();
              if (looks <= look) break; // it takes no more looks
              const found = early === undefined ? [] : [early[0]];
              for (let next = take(3); next !== undefined; next = take(3)) found.push(next[0]);
              expect(found).toEqual(plan.map((position) => (start + position) % slots));
            }
          }
        }
      });
    }
  });
}
