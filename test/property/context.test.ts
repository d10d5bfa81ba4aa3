// A context with many origins against arrays: each origin has a row of lanes, each lane a row of records. The target
// sees the first lane of each row; a switch record ends it.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  ATTENDED_IDLE_MAX,
  ATTENDED_KEEP,
  CONTEXT_ATTENDING_OFFSET,
  CONTEXT_READY_OFFSET,
  EVENT_COUNT_MAX,
  EVENT_LANE_MAX,
  KIND_SWITCH,
  LANE_HEAD_OFFSET,
  LANE_NEXT_OFFSET,
  OPEN_BUSY,
  OPEN_NO_MEMORY,
  PAGE_SIZE,
} from "../../assembly/layout.js";
import { fraction, share } from "../support/arbitraries.js";
import { type Build, makeRig, type Rig, type Straddle } from "../support/kernels.js";
import { assertProperty } from "../support/seed.js";

const ORIGINS = 40;
const PAGES = 80;

interface OwnedLane {
  readonly pointer: number;
  readonly pages: number;
  /** Meta words of its records; the switch record is -1. */
  readonly records: number[];
}

interface Origin {
  /** In the order in which the target sees them. */
  lanes: OwnedLane[];
  /** Its last lane is closed: it sends nothing until the place is free again. */
  closed: boolean;
  paused: boolean;
  /**
   * It was opened while its place was still attended, as empty: the next round but one finds it. That round polls again
   * behind a pause, so it takes one cache line of records.
   */
  unseen: boolean;
}

interface Model {
  readonly origins: Origin[];
  number: number;
}

abstract class Step implements fc.Command<Model, Rig> {
  check(_model: Readonly<Model>): boolean {
    return true;
  }

  run(model: Model, rig: Rig): void {
    this.act(model, rig);
    const attended = rig.attended();
    const ready = new Set(rig.bits(rig.context(0) + CONTEXT_READY_OFFSET));
    expect(rig.bits(rig.context(0) + CONTEXT_ATTENDING_OFFSET)).toEqual(attended);
    expect(attended.filter((origin) => !ready.has(origin))).toEqual([]);
    // None lost: whatever there is to take has a ready bit.
    const waiting = model.origins.flatMap(({ lanes, paused }, origin) =>
      !paused && lanes[0]?.records.length ? [origin] : [],
    );
    expect(waiting.filter((origin) => !ready.has(origin))).toEqual([]);
    const used = model.origins.flatMap(({ lanes }) => lanes).reduce((sum, { pages }) => sum + pages, 0);
    expect(rig.consumer.heapFreePages(rig.map.job)).toBe(PAGES - used);
  }

  abstract act(model: Model, rig: Rig): void;
  abstract toString(): string;
}

/** The lane to send on; undefined: there is none now. */
function laneFor(model: Model, rig: Rig, origin: number, capacity: number): OwnedLane | undefined {
  const own = model.origins[origin] as Origin;
  if (!own.closed && own.lanes.length > 0) return own.lanes.at(-1);
  const pointer = rig.producer.laneOpen(rig.map.job, origin, 0, capacity, 32);
  expect(pointer === OPEN_BUSY).toBe(own.lanes.length > 0);
  if (pointer === OPEN_BUSY || pointer === OPEN_NO_MEMORY) return undefined;
  const lane = { pointer, pages: Math.ceil((512 + capacity + 32) / PAGE_SIZE), records: [] };
  own.lanes = [lane];
  own.closed = false;
  own.unseen = rig.attended().includes(origin);
  return lane;
}

class Send extends Step {
  readonly #origin: number;
  readonly #count: number;
  readonly #capacity: number;

  constructor(origin: number, count: number, capacity: number) {
    super();
    this.#origin = origin;
    this.#count = count;
    this.#capacity = capacity;
  }

  act(model: Model, rig: Rig): void {
    const lane = laneFor(model, rig, this.#origin, this.#capacity);
    if (lane === undefined) return;
    for (let i = 0; i < this.#count; i++) {
      if (rig.producer.laneSendWords(lane.pointer, 4, model.number, 0, 0) === 0) return;
      lane.records.push(model.number++);
    }
  }

  toString(): string {
    return `send(${this.#origin}, ${this.#count} records, ${this.#capacity})`;
  }
}

class Replace extends Step {
  readonly #origin: number;
  readonly #capacity: number;

  constructor(origin: number, capacity: number) {
    super();
    this.#origin = origin;
    this.#capacity = capacity;
  }

  override check({ origins }: Readonly<Model>): boolean {
    const own = origins[this.#origin] as Origin;
    return !own.closed && own.lanes.length > 0;
  }

  act(model: Model, rig: Rig): void {
    const own = model.origins[this.#origin] as Origin;
    const last = own.lanes.at(-1) as OwnedLane;
    const pointer = rig.producer.laneReplace(rig.map.job, last.pointer, this.#capacity, 32);
    if (pointer === OPEN_BUSY || pointer === OPEN_NO_MEMORY) return;
    last.records.push(-1);
    if (this.#capacity === 0) own.closed = true;
    else own.lanes.push({ pointer, pages: Math.ceil((512 + this.#capacity + 32) / PAGE_SIZE), records: [] });
  }

  toString(): string {
    return `replace(${this.#origin}, ${this.#capacity})`;
  }
}

/** advance(), release(), and what the switch records ask for; before the release it may pause a lane of the batch. */
class Take extends Step {
  readonly #rounds: number;
  readonly #pause: number | undefined;

  constructor(rounds: number, pause?: number) {
    super();
    this.#rounds = rounds;
    this.#pause = pause;
  }

  act(model: Model, rig: Rig): void {
    const events = rig.advance(0, this.#rounds);
    const taken = new Map<number, number[]>();
    for (const { origin, kind, meta } of events) {
      taken.set(origin, [...(taken.get(origin) ?? []), kind === KIND_SWITCH ? -1 : meta]);
    }
    let expected = 0;
    let unseen = 0;
    for (const [origin, place] of model.origins.entries()) {
      const own = taken.get(origin) ?? [];
      const there = place.paused ? [] : (place.lanes[0]?.records.slice(0, EVENT_LANE_MAX) ?? []);
      expect(own, `origin ${origin}`).toEqual(there.slice(0, own.length));
      expected += place.unseen ? own.length : there.length;
      if (place.unseen) unseen += there.length;
      place.unseen = false;
    }
    if (unseen > 0 && this.#rounds > 1) expect(events.length).toBeGreaterThan(0);
    expect(events.length).toBe(Math.min(expected, EVENT_COUNT_MAX));
    if (events.length === 0) return;

    let paused = -1;
    if (this.#pause !== undefined) {
      const event = events[share(this.#pause, events.length - 1)];
      if (event === undefined) throw new Error("unreachable");
      paused = event.origin;
      const own = model.origins[paused] as Origin;
      own.paused = true;
      rig.consumer.lanePause(own.lanes[0]?.pointer as number, event.body);
      const kept = events.filter(({ origin }) => origin === paused).indexOf(event);
      taken.set(paused, (taken.get(paused) as number[]).slice(0, kept));
    }
    const nextLanes = new Map(
      events.filter(({ kind }) => kind === KIND_SWITCH).map((e) => [e.origin, rig.word(e.body)]),
    );
    rig.release();
    for (const [origin, records] of taken) {
      const own = model.origins[origin] as Origin;
      own.lanes[0]?.records.splice(0, records.length);
      if (records.at(-1) !== -1) continue;
      const fresh = nextLanes.get(origin) as number;
      expect(fresh).toBe(own.lanes[1]?.pointer ?? 0);
      rig.consumer.laneSwitch(rig.map.job, rig.context(0), origin, fresh);
      own.lanes.shift();
      if (fresh === 0) own.closed = false;
    }
  }

  toString(): string {
    return `take(${this.#rounds} rounds${this.#pause === undefined ? "" : `, pause at ${this.#pause}`})`;
  }
}

class Peek extends Step {
  act({ origins }: Model, rig: Rig): void {
    const found = rig.consumer.peek(rig.context(0));
    // A task that finds nothing here falls asleep.
    if (origins.some(({ lanes, paused }) => !paused && lanes[0]?.records.length)) expect(found).toBe(1);
  }

  toString(): string {
    return "peek()";
  }
}

class Resume extends Step {
  readonly #which: number;

  constructor(which: number) {
    super();
    this.#which = which;
  }

  override check({ origins }: Readonly<Model>): boolean {
    return origins.some(({ paused }) => paused);
  }

  act(model: Model, rig: Rig): void {
    const all = [...model.origins.entries()].filter(([, { paused }]) => paused);
    const [origin, own] = all[share(this.#which, all.length - 1)] as [number, Origin];
    rig.consumer.laneResume(rig.context(0), origin);
    own.paused = false;
  }

  toString(): string {
    return `resume(${this.#which})`;
  }
}

const origin = fc.oneof(fc.integer({ min: 0, max: ORIGINS - 1 }), fc.constantFrom(0, 1, 31, 32));
const ring = fc.constantFrom(64, 256, 4096);
const commands = fc.commands(
  [
    fc.tuple(origin, fc.integer({ min: 1, max: 4 }), ring).map((a) => new Send(...a)),
    fc.tuple(origin, fc.integer({ min: 1, max: 4 }), ring).map((a) => new Send(...a)),
    fc.tuple(origin, fc.constant(300), fc.constant(8192)).map((a) => new Send(...a)),
    fc.tuple(origin, fc.constantFrom(0, 64, 8192)).map((a) => new Replace(...a)),
    fc.constantFrom(1, 1, 2, 40).map((rounds) => new Take(rounds)),
    fc.constantFrom(1, 1, 2, 40).map((rounds) => new Take(rounds)),
    fc.constant(new Peek()),
    fc.constant(new Peek()),
    fraction.map((at) => new Take(1, at)),
    fraction.map((which) => new Resume(which)),
  ],
  { maxCommands: 120, size: "max" },
);

describe.each<[Build, Build, Straddle | undefined]>([
  ["wasm", "wasm", undefined],
  ["twin", "twin", undefined],
  ["wasm", "twin", "heap"],
  ["twin", "wasm", "context"],
])("%s sends, %s receives, straddle %s", (producer, consumer, straddle) => {
  it("loses nothing, mixes nothing up, and attends few lanes in the end", () => {
    const property = fc.property(commands, (sequence) => {
      const rig = makeRig({ producer, consumer, straddle, tasks: ORIGINS, contexts: 1, heapBytes: PAGES * PAGE_SIZE });
      const origins = Array.from(
        { length: ORIGINS },
        (): Origin => ({ lanes: [], closed: false, paused: false, unseen: false }),
      );
      const model: Model = { origins, number: 0 };
      fc.modelRun(() => ({ model, real: rig }), sequence);
      while (origins.some(({ paused }) => paused)) new Resume(0).run(model, rig);
      while (origins.some(({ lanes }) => lanes[0]?.records.length)) new Take(1).run(model, rig);
      // None stale: idle lanes are given up, and their bits with them.
      rig.consumer.advance(rig.context(0), 2 * ATTENDED_IDLE_MAX + 2);
      expect(rig.attended().length).toBeLessThanOrEqual(ATTENDED_KEEP);
      expect(rig.bits(rig.context(0) + CONTEXT_READY_OFFSET)).toEqual(rig.attended());
      // No byte is kept back, attended or not: an origin that waits for room would wait for ever.
      rig.settle();
      const open = origins.flatMap(({ lanes }) => lanes.slice(0, 1)).map(({ pointer }) => pointer);
      const heads = (offset: number): number[] => open.map((lane) => rig.word(lane + offset));
      expect(heads(LANE_HEAD_OFFSET)).toEqual(heads(LANE_NEXT_OFFSET));
      // What is closed gives its pages back.
      for (const [i, { closed, lanes }] of origins.entries())
        if (!closed && lanes.length > 0) new Replace(i, 0).run(model, rig);
      while (origins.some(({ lanes }) => lanes.length > 0)) new Take(1).run(model, rig);
      expect(rig.producer.heapFreePages(rig.map.job)).toBe(PAGES);
    });
    assertProperty(property, 60);
  });
});
