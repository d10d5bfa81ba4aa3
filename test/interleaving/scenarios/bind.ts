// Slots for tasks of other nodes: given away by several threads, and looked up by others meanwhile. A thread that finds another
// one at work does without a slot: it tries again later.
import {
  JOB_BIND_LOCK_OFFSET,
  JOB_BINDS_OFFSET,
  NONE,
  TASK_DEAD,
  TASK_STATE_OFFSET,
  TASK_UP,
} from "../../../assembly/layout.js";
import { endpointOf, taskOf } from "../../../src/core/endpoint.js";
import { SlotTable } from "../../../src/node/address.js";
import { markEngineDead } from "../../../src/node/liveness.js";
import type { Scenario } from "../scenario.js";
import type { World } from "../world.js";
import { monitor } from "./death.js";
import { same } from "./support.js";

/** Tasks of other nodes. Neither of them has a slot that it prefers. */
const ONE = 70;
const OTHER = 90;
/** The slots of two tasks are free. */
const FIRST_FREE = 1;

const view = ({ kernel, memory, map }: World): SlotTable => new SlotTable(kernel, memory, map);

/** Binds tasks, one after the other, and notes the slot of each, or -1. */
function binder(holder: number, ...numbers: number[]) {
  return (world: World): void => {
    const addresses = view(world);
    for (const number of numbers) world.note(addresses.bind(number, holder));
  };
}

/** Looks for a task, and at all that its slot has; notes the slot, or -1. */
function reader(number: number) {
  return (world: World): void => {
    const addresses = view(world);
    for (let looks = 0; looks < 2; looks++) {
      const slot = addresses.slotOf(number);
      world.note(slot);
      if (slot >= 0) expectWhole(world, slot, number);
    }
  };
}

/** Plain loads: what was found orders them. */
function expectWhole(world: World, slot: number, number: number): void {
  const { contexts, endpointsBase } = world.map;
  for (let context = 0; context < contexts; context++) {
    const endpoint = world.load(endpointsBase + 4 * (slot * contexts + context));
    if (endpoint !== endpointOf(number, context)) throw new Error(`context ${context} of slot ${slot} is ${endpoint}`);
  }
  same("the state of a bound slot", [world.load(world.task(slot) + TASK_STATE_OFFSET)], [TASK_UP]);
}

/** The task in each slot, with -1 for none; throws if the slot has something else in part, or a task has two. */
export function bound(world: World): number[] {
  const { tasks, contexts, endpointsBase } = world.map;
  const numbers: number[] = [];
  for (let slot = FIRST_FREE; slot < tasks; slot++) {
    const endpoint = world.word(endpointsBase + 4 * slot * contexts);
    const number = endpoint === NONE ? -1 : taskOf(endpoint);
    if (number >= 0 && numbers.includes(number)) throw new Error(`task ${number} has two slots`);
    numbers.push(number);
    for (let context = 0; context < contexts && number >= 0; context++) {
      const own = world.word(endpointsBase + 4 * (slot * contexts + context));
      if (own !== endpointOf(number, context)) throw new Error(`context ${context} of slot ${slot} is ${own}`);
    }
  }
  return numbers;
}

/** Each thread that was given a slot has it. @param asked what each one bound */
function expectGiven(world: World, asked: readonly (readonly number[])[], notes: readonly (readonly number[])[]): void {
  const numbers = bound(world);
  for (const [thread, tasks] of asked.entries()) {
    for (const [i, number] of tasks.entries()) {
      const slot = notes[thread]?.[i] ?? -1;
      if (slot >= 0) same(`the task in slot ${slot}`, [numbers[slot - FIRST_FREE] as number], [number]);
    }
  }
  const count = numbers.filter((number) => number >= 0).length;
  if (count === 0) throw new Error("no thread has given a slot away");
  const words = [JOB_BINDS_OFFSET, JOB_BIND_LOCK_OFFSET].map((offset) => world.word(world.map.job + offset));
  same("bound slots, and the lock", words, [count, 0]);
}

export const BIND_SCENARIOS: readonly Scenario[] = [
  {
    name: "two threads bind the same task, and a third one looks for it",
    node: { locals: 1, isCrowded: false },
    setup() {},
    threads: [binder(0, ONE), binder(3, ONE), reader(ONE)],
    check(world, notes) {
      expectGiven(world, [[ONE], [ONE], [ONE, ONE]], notes);
      // What was found once stays.
      const [, , [first = -1, second = -1] = []] = notes;
      if (first >= 0) same("the slot that was found", [second], [first]);
    },
  },
  {
    name: "two threads bind two tasks each, in opposite order",
    node: { locals: 1, isCrowded: false },
    setup() {},
    threads: [binder(0, ONE, OTHER), binder(3, OTHER, ONE)],
    check(world, notes) {
      expectGiven(
        world,
        [
          [ONE, OTHER],
          [OTHER, ONE],
        ],
        notes,
      );
    },
  },
  {
    name: "a thread binds while the agent is marked as dead",
    node: { locals: 1, isCrowded: false },
    setup() {},
    threads: [binder(0, ONE), ({ kernel, map }) => markEngineDead(kernel, map)],
    check(world, [[slot = -1] = []]) {
      const stateOf = (one: number): number => world.word(world.task(one) + TASK_STATE_OFFSET);
      if (slot >= 0) {
        same("the state of the slot", [stateOf(slot)], [TASK_DEAD]);
        return;
      }
      // The agent ended before the slot was bound: no thread finds the task, and no context waits for its end.
      const numbers = bound(world);
      same(
        "bound slots",
        numbers.filter((number) => number >= 0),
        [],
      );
      same(
        "the states of free slots",
        numbers.map((_, i) => stateOf(FIRST_FREE + i)).filter((state) => state === TASK_UP),
        [],
      );
    },
  },
  {
    name: "the thread that binds dies, and another one binds then",
    node: { locals: 1, isCrowded: false },
    setup() {},
    threads: [
      binder(0, ONE),
      (world) => {
        monitor(0)(world);
        binder(3, OTHER, ONE)(world);
      },
      reader(ONE),
    ],
    mortal: [0],
    bound: 1,
    check(world, [, own = []]) {
      same("the lock", [world.word(world.map.job + JOB_BIND_LOCK_OFFSET)], [0]);
      const slots = own.slice(-2);
      const count = bound(world).filter((number) => number >= 0).length;
      const binds = world.word(world.map.job + JOB_BINDS_OFFSET);
      if (binds < count) throw new Error(`${count} slots are bound, and the agent was told of ${binds}`);
      same(
        "the tasks in their slots",
        slots.map((slot) => bound(world)[slot - FIRST_FREE] ?? -1),
        [OTHER, ONE],
      );
    },
  },
];
