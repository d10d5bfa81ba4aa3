// Where tasks stand in a node's tables: which slots are given to tasks of other nodes, and found again.
import fc from "fast-check";
import { beforeEach, describe, expect, it } from "vitest";
import {
  JOB_BIND_LOCK_OFFSET,
  JOB_BINDS_OFFSET,
  JOB_SLOTS_WANTED_OFFSET,
  NONE,
  TASK_ABSENT,
  TASK_BELL_OFFSET,
  TASK_CLOSED,
  TASK_DEAD,
  TASK_HELD_OFFSET,
  TASK_LEAVING_OFFSET,
  TASK_PARKED_OFFSET,
  TASK_STATE_OFFSET,
  TASK_TOLD_OFFSET,
  TASK_UP,
} from "../../assembly/layout.js";
import { contextOf, endpointOf, taskOf } from "../../src/core/endpoint.js";
import { contextAt, endpointCount, isRemote, SlotTable, taskAt, UNBOUND } from "../../src/node/address.js";
import { markDead } from "../../src/node/liveness.js";
import { makeRig, type Rig } from "../support/kernels.js";
import { assertProperty } from "../support/seed.js";

const FIRST = 1000;
const LOCALS = 2;
const TASKS = 6;
const CONTEXTS = 3;
const LAST_TASK = 2 ** 24 - 1;
/** In place of a task's slot: the agent binds. */
const AGENT = TASKS;

describe.each(["wasm", "twin"] as const)("addresses: %s", (producer) => {
  let rig: Rig;
  let addresses: SlotTable;

  function use(more: { tasks?: number; locals?: number; jobTasks?: number; first?: number } = {}): void {
    const limits = { tasks: TASKS, locals: LOCALS, contexts: CONTEXTS, jobTasks: 2 ** 24, first: FIRST, ...more };
    rig = makeRig({ producer, engine: "thread", ...limits });
    addresses = view();
  }

  /** The tables as another thread of the node sees them. */
  const view = (): SlotTable => new SlotTable(rig.producer, rig.memory, rig.map);

  beforeEach(() => use());

  const jobWord = (offset: number): number => rig.word(rig.map.job + offset);
  const taskWord = (slot: number, offset: number): number => rig.word(rig.task(slot) + offset);

  /** Gives a slot back, as the agent does. */
  function free(slot: number, state: number = TASK_ABSENT): void {
    for (let context = 0; context < rig.map.contexts; context++) {
      rig.setWord(rig.map.endpointsBase + 4 * (slot * rig.map.contexts + context), NONE);
    }
    rig.setWord(rig.task(slot) + TASK_STATE_OFFSET, state);
  }

  it("has the node's own tasks in the first slots, and nothing in the others", () => {
    expect(addresses.first).toBe(FIRST);
    const slots = Array.from({ length: TASKS }, (_, slot) => addresses.numberOf(slot));
    expect(slots).toEqual([FIRST, FIRST + 1, UNBOUND, UNBOUND, UNBOUND, UNBOUND]);
    expect([FIRST - 1, FIRST, FIRST + 1, FIRST + 2, 0, LAST_TASK].map((number) => addresses.slotOf(number))).toEqual([
      UNBOUND,
      0,
      1,
      UNBOUND,
      UNBOUND,
      UNBOUND,
    ]);
    expect(addresses.table).toHaveLength(endpointCount(rig.map));
    for (let ordinal = 0; ordinal < LOCALS * CONTEXTS; ordinal++) {
      const endpoint = addresses.endpointAt(ordinal);
      expect([taskOf(endpoint), contextOf(endpoint)]).toEqual([
        FIRST + taskAt(rig.map, ordinal),
        contextAt(rig.map, ordinal),
      ]);
      expect([addresses.ordinalOf(endpoint), addresses.isDirect(ordinal), isRemote(rig.map, ordinal)]).toEqual([
        ordinal,
        true,
        false,
      ]);
    }
    // An own task is not bound: it has its slot.
    const before = Buffer.from(rig.area());
    expect(addresses.bind(FIRST + 1, 0)).toBe(1);
    expect(Buffer.compare(before, rig.area())).toBe(0);
  });

  it.each([0, 7, FIRST - 1, FIRST + TASKS, LAST_TASK])(
    "gives task %i a slot, with an ordinal for each context",
    (number) => {
      const bell = rig.word(rig.engine + TASK_BELL_OFFSET);
      rig.setWord(rig.engine + TASK_PARKED_OFFSET, 1);
      for (const offset of [TASK_TOLD_OFFSET, TASK_LEAVING_OFFSET, TASK_HELD_OFFSET]) {
        rig.setWord(rig.task(LOCALS) + offset, 1);
      }
      expect(addresses.bind(number, 0)).toBe(LOCALS);
      for (const each of [addresses, view()]) {
        expect([each.slotOf(number), each.numberOf(LOCALS)]).toEqual([LOCALS, number]);
        for (let context = 0; context < CONTEXTS; context++) {
          const endpoint = endpointOf(number, context);
          const ordinal = LOCALS * CONTEXTS + context;
          expect([each.ordinalOf(endpoint), each.endpointAt(ordinal)]).toEqual([ordinal, endpoint]);
          expect([each.isDirect(ordinal), isRemote(rig.map, ordinal)]).toEqual([false, true]);
        }
      }
      const words = [TASK_STATE_OFFSET, TASK_TOLD_OFFSET, TASK_LEAVING_OFFSET, TASK_HELD_OFFSET];
      expect(words.map((offset) => taskWord(LOCALS, offset))).toEqual([TASK_UP, 0, 0, 0]);
      // The agent is to look at it.
      expect([jobWord(JOB_BINDS_OFFSET), rig.word(rig.engine + TASK_BELL_OFFSET) - bell]).toEqual([1, 1]);
      expect(jobWord(JOB_BIND_LOCK_OFFSET)).toBe(0);
      // Once, from whatever thread.
      expect([addresses.bind(number, 1), view().bind(number, AGENT), jobWord(JOB_BINDS_OFFSET)]).toEqual([
        LOCALS,
        LOCALS,
        1,
      ]);
    },
  );

  it("prefers the slot that the direct path computes; else it is the first free one", () => {
    expect(addresses.bind(FIRST + 4, 0)).toBe(4);
    expect(addresses.isDirect(4 * CONTEXTS)).toBe(true);
    expect([addresses.bind(5, 0), addresses.bind(6, 0)]).toEqual([2, 3]);
    // Its own is taken.
    expect(addresses.bind(FIRST + 3, AGENT)).toBe(5);
    expect([addresses.isDirect(5 * CONTEXTS), addresses.isDirect(3 * CONTEXTS)]).toEqual([false, false]);
    expect(view().slotOf(FIRST + 3)).toBe(5);
  });

  it("keeps the last free slot for the agent, and has none when all are taken", () => {
    expect([10, 11, 12].map((number) => addresses.bind(number, 1))).toEqual([2, 3, 4]);
    expect([addresses.bind(13, 0), addresses.bind(FIRST + 5, 0)]).toEqual([UNBOUND, UNBOUND]);
    expect([jobWord(JOB_BINDS_OFFSET), jobWord(JOB_BIND_LOCK_OFFSET)]).toEqual([3, 0]);
    expect(addresses.bind(13, AGENT)).toBe(5);
    const before = Buffer.from(rig.area());
    for (const holder of [0, 1, AGENT]) expect(addresses.bind(14, holder)).toBe(UNBOUND);
    // What has one is still found.
    expect([10, 11, 12, 13].map((number) => addresses.bind(number, 0))).toEqual([2, 3, 4, 5]);
    expect(Buffer.compare(before, rig.area())).toBe(0);
  });

  it("keeps none where each task of the job has one", () => {
    use({ jobTasks: TASKS, first: 0 });
    expect([5, 4, 3, 2].map((number) => addresses.bind(number, 0))).toEqual([5, 4, 3, 2]);
    for (let ordinal = 0; ordinal < TASKS * CONTEXTS; ordinal++) expect(addresses.isDirect(ordinal)).toBe(true);
  });

  it("says UNBOUND and changes nothing while another thread gives a slot away", () => {
    addresses.bind(10, 0);
    rig.setWord(rig.map.job + JOB_BIND_LOCK_OFFSET, 2);
    const before = Buffer.from(rig.area());
    expect([addresses.bind(11, 0), addresses.bind(11, AGENT), addresses.bind(10, 0)]).toEqual([UNBOUND, UNBOUND, 2]);
    expect(Buffer.compare(before, rig.area())).toBe(0);
    rig.setWord(rig.map.job + JOB_BIND_LOCK_OFFSET, 0);
    expect(addresses.bind(11, 0)).toBe(3);
  });

  it.each([0, 1])(
    "goes on once the holder of the lock, task %i, is marked dead; any other's end releases nothing",
    (holder) => {
      rig.setWord(rig.map.job + JOB_BIND_LOCK_OFFSET, holder + 1);
      // It has died between two stores: the slot is still free.
      rig.setWord(rig.task(LOCALS) + TASK_STATE_OFFSET, TASK_UP);
      rig.setWord(rig.map.endpointsBase + 4 * (LOCALS * CONTEXTS + 2), endpointOf(77, 2));
      markDead(rig.producer, rig.map, 1 - holder);
      expect([jobWord(JOB_BIND_LOCK_OFFSET), addresses.bind(10, AGENT)]).toEqual([holder + 1, UNBOUND]);
      const binds = jobWord(JOB_BINDS_OFFSET);
      markDead(rig.producer, rig.map, holder);
      // It may have come further: the agent is to look.
      expect(jobWord(JOB_BINDS_OFFSET)).toBeGreaterThan(binds);
      expect([jobWord(JOB_BIND_LOCK_OFFSET), addresses.bind(10, AGENT)]).toEqual([0, LOCALS]);
      const endpoints = Array.from({ length: CONTEXTS }, (_, context) =>
        addresses.endpointAt(LOCALS * CONTEXTS + context),
      );
      expect(endpoints).toEqual([0, 1, 2].map((context) => endpointOf(10, context)));
    },
  );

  it.each([TASK_CLOSED, TASK_DEAD])("does not give away a slot without a task whose state is %i", (state) => {
    addresses.bind(10, 0);
    free(LOCALS, state);
    expect(addresses.bind(11, 0)).toBe(LOCALS + 1);
    free(LOCALS);
    expect(addresses.bind(12, 0)).toBe(LOCALS);
  });

  it("forgets where a task was found once the slot is another's", () => {
    const other = view();
    expect([addresses.bind(10, 0), other.slotOf(10)]).toEqual([2, 2]);
    free(2);
    expect([addresses.slotOf(10), addresses.numberOf(2)]).toEqual([UNBOUND, UNBOUND]);
    expect(other.bind(11, 1)).toBe(2);
    for (const each of [addresses, other]) {
      expect([each.slotOf(10), each.ordinalOf(endpointOf(10, 1)), each.slotOf(11)]).toEqual([UNBOUND, UNBOUND, 2]);
    }
    expect(other.bind(10, 1)).toBe(3);
    for (const each of [addresses, other]) expect([each.slotOf(10), each.slotOf(11)]).toEqual([3, 2]);
    // And back again: what was remembered first is right once more.
    free(2);
    free(3);
    expect([other.bind(10, 1), addresses.slotOf(10), addresses.slotOf(11)]).toEqual([2, 2, UNBOUND]);
  });

  it("a slot is leaving while the agent says so; an own task's never is", () => {
    addresses.bind(10, 0);
    for (let slot = 0; slot < TASKS; slot++) rig.setWord(rig.task(slot) + TASK_LEAVING_OFFSET, Number(slot !== 3));
    const leaving = Array.from({ length: TASKS * CONTEXTS }, (_, ordinal) => addresses.isSlotLeaving(ordinal));
    expect(leaving).toEqual(Array.from({ length: TASKS * CONTEXTS }, (_, i) => i >= 6 && (i < 9 || i >= 12)));
    expect([addresses.reach(10, 0), addresses.slotOf(10)]).toEqual([UNBOUND, 2]);
    expect(Array.from({ length: TASKS }, (_, slot) => taskWord(slot, TASK_HELD_OFFSET))).toEqual([0, 0, 0, 0, 0, 0]);
  });

  it("a task that waits for a slot tells the agent, and wakes it", () => {
    rig.setWord(rig.engine + TASK_PARKED_OFFSET, 1);
    const bell = rig.word(rig.engine + TASK_BELL_OFFSET);
    addresses.want();
    expect([jobWord(JOB_SLOTS_WANTED_OFFSET), rig.word(rig.engine + TASK_BELL_OFFSET) - bell]).toEqual([1, 1]);
  });

  it("random tasks come and go: each has one slot at most, and every thread finds it there", () => {
    const number = fc.oneof(
      fc.integer({ min: FIRST - 3, max: FIRST + TASKS + 3 }),
      fc.constantFrom(0, 1, LAST_TASK, LAST_TASK - 1),
    );
    const operation = fc.record({
      what: fc.constantFrom("bind", "bind", "bind", "free"),
      number,
      by: fc.integer({ min: 0, max: 2 }),
    });
    const property = fc.property(fc.array(operation, { maxLength: 60 }), (operations) => {
      use();
      const views = [addresses, view(), view()];
      const slots = new Map([
        [FIRST, 0],
        [FIRST + 1, 1],
      ]);
      for (const { what, number, by } of operations) {
        const bound = slots.get(number);
        if (what === "free") {
          if (bound === undefined || bound < LOCALS) continue;
          free(bound);
          slots.delete(number);
          continue;
        }
        const isAgent = by === 2;
        const isRoom = TASKS - slots.size >= (isAgent ? 1 : 2);
        const slot = (views[by] as SlotTable).bind(number, isAgent ? AGENT : by);
        if (bound !== undefined) expect(slot).toBe(bound);
        else if (!isRoom) expect(slot).toBe(UNBOUND);
        else {
          expect([...slots.values()]).not.toContain(slot);
          expect(slot).toBeGreaterThanOrEqual(LOCALS);
          expect(slot).toBeLessThan(TASKS);
          slots.set(number, slot);
        }
        const all = [...slots.keys(), ...operations.map((each) => each.number)];
        for (const each of views) {
          for (const one of all) expect(each.slotOf(one)).toBe(slots.get(one) ?? UNBOUND);
        }
      }
    });
    assertProperty(property, 60);
  });
});
