// Slots of tasks of other nodes are given back and given away again, while contexts use them.
import { NONE } from "../../../assembly/layout.js";
import { endpointOf } from "../../../src/core/endpoint.js";
import { engineSlot } from "../../../src/memory/map.js";
import { SlotTable } from "../../../src/node/address.js";
import { announceStart, markDead } from "../../../src/node/liveness.js";
import type { Scenario } from "../scenario.js";
import type { World } from "../world.js";
import { bound } from "./bind.js";
import {
  agent,
  bindAll,
  DISPATCH,
  ONE,
  ONE_SLOT,
  OTHER,
  Own,
  of,
  PAYLOADS,
  PUT,
  says,
  THIRD,
  TWO_SLOTS,
} from "./nodes.js";
import { openAtStart, regionAtStart, same } from "./support.js";

/** Half of the region that is there from the start, in bytes. */
const HALF = 32;

/** Where a task is found is another's only once this context has acknowledged that. */
function look({ kernel, memory, map }: World, task: number): void {
  const addresses = new SlotTable(kernel, memory, map);
  const ordinal = addresses.ordinalOf(endpointOf(task, 1));
  if (ordinal < 0) return;
  const there = addresses.endpointAt(ordinal);
  if (there !== endpointOf(task, 1) && there !== NONE) throw new Error(`at the ordinal of task ${task} is ${there}`);
}

/**
 * A context forgets a task that has ended before it acknowledges that the slot is free. Mostly the agent sleeps then, and the
 * context rings it later. Here it is awake, so that one preemption lets it give the slot away behind the acknowledgment.
 */
export const FORGOTTEN: Scenario = {
  name: "a context acknowledges that a slot is free while the agent is awake",
  node: ONE_SLOT,
  endless: [1],
  bound: 1,
  setup(world) {
    openAtStart(world, 0);
    bindAll(world, ONE);
  },
  threads: [
    (world) => {
      const own = new Own(world, 0);
      own.rest();
      // Acknowledges the end, then rings the agent, which frees the slot.
      own.context.advance();
      own.context.advance();
      own.rest();
      announceStart(world.kernel, world.map);
      own.await(1);
      own.put(THIRD, regionAtStart(world, 0));
    },
    agent((_, self) => self.ended(ONE, false), says(THIRD, 7)),
  ],
  check(_, [taken, sent]) {
    same("what came of the third", of(THIRD, taken), [7]);
    same("what went to the third", of(THIRD, sent), [PUT]);
  },
};

export const PURGE_SCENARIOS: readonly Scenario[] = [
  {
    name: "a task sends while its target's slot is asked back",
    node: TWO_SLOTS,
    endless: [1],
    bound: 1,
    setup: (world) => bindAll(world, ONE, OTHER),
    threads: [
      (world) => {
        const own = new Own(world, 0);
        own.say(ONE, 1);
        own.say(ONE, 2);
        own.await(1);
      },
      agent(says(THIRD, 7)),
    ],
    check(_, [taken, sent]) {
      same("what came of the third", of(THIRD, taken), [7]);
      same("what went to the one", of(ONE, sent), [1, 2]);
    },
  },
  {
    name: "a task begins transfers while their target's slot is asked back",
    node: TWO_SLOTS,
    endless: [1],
    bound: 1,
    setup(world) {
      openAtStart(world, 0);
      bindAll(world, ONE, OTHER);
    },
    threads: [
      (world) => {
        const own = new Own(world, 0);
        const local = regionAtStart(world, 0);
        own.put(ONE, local);
        own.put(ONE, local);
        own.await(1);
      },
      agent(says(THIRD, 7)),
    ],
    check(_, [taken, asked]) {
      same("what came of the third", of(THIRD, taken), [7]);
      same("puts that went to the one", of(ONE, asked), [PUT, PUT]);
    },
  },
  {
    name: "a task lets the slot go of a task to which it has a lane",
    node: ONE_SLOT,
    endless: [1],
    bound: 1,
    setup: (world) => bindAll(world, ONE),
    threads: [
      (world) => {
        const own = new Own(world, 0);
        own.sayLate(ONE, 1, 0);
        own.await(1);
      },
      agent(says(THIRD, 7)),
    ],
    check(_, [said, sent]) {
      same("what came of the third", of(THIRD, said), [7]);
      same("what went to the one", of(ONE, sent), of(ONE, said));
    },
  },
  {
    name: "one task holds a slot that is asked back, the other one lets it go",
    node: ONE_SLOT,
    endless: [1],
    bound: 0,
    setup: (world) => bindAll(world, ONE),
    threads: [
      (world) => {
        const own = new Own(world, 0);
        own.sayLate(ONE, 1, 3);
        own.await(1);
      },
      agent(says(THIRD, 7, 1), says(THIRD, 7)),
      (world) => new Own(world, 1).await(1),
    ],
    check(_, [said, sent, taken]) {
      same("what came of the third", of(THIRD, taken), [7]);
      same("what went to the one", of(ONE, sent), of(ONE, said));
    },
  },
  {
    name: "a task copies within its region while the slot of a task is asked back with which it has nothing",
    node: ONE_SLOT,
    endless: [1],
    bound: 1,
    setup(world) {
      openAtStart(world, 0);
      bindAll(world, ONE);
    },
    threads: [
      (world) => {
        const own = new Own(world, 0);
        own.copy(regionAtStart(world, 0), HALF);
        own.await(1);
      },
      agent(says(THIRD, 7)),
    ],
    check(world, [taken]) {
      same("the word that was copied", [world.word(world.map.heapBase + HALF)], [0]);
      same("what came of the third", of(THIRD, taken), [7]);
    },
  },
  {
    name: "a slot is given to another task while late readers still look",
    node: ONE_SLOT,
    endless: [1],
    bound: 0,
    setup: (world) => bindAll(world, ONE),
    threads: [
      (world) => {
        const own = new Own(world, 0);
        for (let round = 0; round < 4; round++) {
          look(world, ONE);
          own.context.advance();
        }
        own.await(1);
        own.say(THIRD, 1);
      },
      agent(says(THIRD, 7), says(THIRD, 7, 1)),
      (world) => {
        const own = new Own(world, 1);
        for (let round = 0; round < 2; round++) {
          own.context.advance();
          look(world, ONE);
        }
        own.await(1);
      },
    ],
    check(_, [taken, sent]) {
      same("what came of the third", of(THIRD, taken), [7]);
      same("what went to the third", of(THIRD, sent), [1]);
    },
  },
  {
    name: "a task dies between its hold on a slot and its acknowledgement",
    node: ONE_SLOT,
    endless: [1],
    mortal: [0],
    bound: 0,
    atMost: 10_000, // after eight minutes the walk had not ended
    setup: (world) => bindAll(world, ONE),
    threads: [
      (world) => {
        const own = new Own(world, 0);
        own.sayLate(ONE, 1, 3);
        own.await(1);
      },
      agent(says(THIRD, 7, 1), says(THIRD, 7)),
      (world) => new Own(world, 1).await(1),
    ],
    monitor: ({ kernel, map }) => markDead(kernel, map, 0),
    check(_, [said, sent, taken]) {
      same("what came of the third", of(THIRD, taken), [7]);
      // What it has not committed is lost with it.
      const came = of(ONE, sent);
      same("what went to the one", came, came.length === 0 ? [] : of(ONE, said));
    },
  },
  {
    name: "a task of another node speaks while its slot is asked back",
    node: ONE_SLOT,
    endless: [1],
    bound: 1,
    setup() {},
    threads: [(world) => new Own(world, 0).await(4), agent(says(ONE, 4), says(THIRD, 7), says(ONE, 5), says(ONE, 6))],
    check(_, [taken]) {
      same("what came of the third", of(THIRD, taken), [7]);
      same("what came of the one", of(ONE, taken), [4, 5, 6]);
    },
  },
  {
    name: "the slot of a task that has ended is given to another",
    node: ONE_SLOT,
    endless: [1],
    bound: 0,
    setup(world) {
      openAtStart(world, 0);
      bindAll(world, ONE);
    },
    threads: [
      (world) => {
        const own = new Own(world, 0);
        own.context.sendImmediate(endpointOf(ONE, 0), DISPATCH, null, PAYLOADS[2]);
        own.context.advanceUntil(() => own.last === THIRD);
        own.say(THIRD, 1);
        own.put(THIRD, regionAtStart(world, 0));
      },
      agent(says(ONE, 5), (_, self) => self.ended(ONE, false), says(THIRD, 7), says(THIRD, 7, 1)),
      (world) => new Own(world, 1).await(1),
    ],
    check(_, [taken, sent]) {
      // What is in no lane when it ends is lost with it.
      const came = of(ONE, taken);
      same("what came of the one", came, came.length === 0 ? [] : [5]);
      same("what came of the third", of(THIRD, taken), [7]);
      // A put overtakes what is in a lane.
      same("what went to the third", of(THIRD, sent).sort(), [1, PUT]);
    },
  },
  FORGOTTEN,
  {
    name: "two slots are free: a task and the agent want one each, and the task another one",
    node: TWO_SLOTS,
    setup() {},
    threads: [
      ({ kernel, memory, map }) => {
        const addresses = new SlotTable(kernel, memory, map);
        for (const task of [ONE, OTHER]) addresses.bind(task, 0);
      },
      (world) => {
        const { kernel, memory, map } = world;
        const addresses = new SlotTable(kernel, memory, map);
        // A task that has the lock goes on after a while. Each vain try takes a preemption, of which a schedule has at most 8.
        for (let tries = 1; addresses.bind(THIRD, map.tasks) < 0; tries++) {
          if (tries > 9) throw new Error("the agent finds no slot");
          kernel.bellWait(engineSlot(map), kernel.bellArm(engineSlot(map)), 1);
        }
      },
    ],
    check(world) {
      const numbers = bound(world);
      if (!numbers.includes(THIRD)) throw new Error("the agent has no slot");
    },
  },
  {
    name: "a task and a frame wait for slots at once",
    node: TWO_SLOTS,
    endless: [1],
    bound: 1,
    setup() {},
    threads: [
      (world) => {
        const own = new Own(world, 0);
        own.say(ONE, 1);
        own.say(OTHER, 2);
        own.await(1);
        own.say(ONE, 3);
      },
      agent(says(THIRD, 7)),
    ],
    check(_, [taken, sent]) {
      same("what came of the third", of(THIRD, taken), [7]);
      same("what went to the one", of(ONE, sent), [1, 3]);
      same("what went to the other", of(OTHER, sent), [2]);
    },
  },
];
