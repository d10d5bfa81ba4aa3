// A task ends while it has something for a task of another node: the agent sends what was committed, and the end behind that,
// and all memory of the task comes back.
import { engineSlot } from "../../../src/memory/map.js";
import { markDead } from "../../../src/node/liveness.js";
import type { Scenario } from "../scenario.js";
import type { World } from "../world.js";
import { agent, allOf, bindAll, END, type Event, Own } from "./nodes.js";
import { openAtStart, same } from "./support.js";

/** The job has three tasks, so that each has a slot: two are those of the node, and one is another's. */
const NODE = { locals: 2, isCrowded: false } as const;
const FAR = 2;
/** The number that task 1 says. */
const OTHERS = 7;

/** What the far task hears of task 0: the numbers 1, 2, … that were committed, and then the end, once in each stream. */
function expectSent(sent: readonly number[] | undefined, least: number, most: number): void {
  const went = allOf(FAR, sent).filter((one) => one <= most || one === END);
  const [count, ends] = [went.indexOf(END), went.filter((one) => one === END).length];
  const numbers = Array.from({ length: Math.min(most, Math.max(least, count)) }, (_, i) => i + 1);
  same("what went to the far task", went, [...numbers, ...Array.from({ length: Math.max(1, ends) }, () => END)]);
}

/** What it hears of task 1: a number, and the end. */
function expectOther(sent: readonly number[] | undefined): void {
  const went = allOf(FAR, sent).filter((one) => one === OTHERS || one === END + 1);
  same("what went to the far task of the other one", [...new Set(went)], [OTHERS, END + 1]);
}

const free = ({ kernel, map }: World): number => kernel.heapFreePages(map.job);

/** A task dies at any step, or closes its client behind all that it sends. Another one waits for its memory. */
function dies(name: string, most: number, start: (world: World) => void, send: (own: Own) => void): Scenario {
  return {
    name,
    node: NODE,
    endless: [1],
    mortal: [0],
    bound: 0,
    setup(world) {
      openAtStart(world, 0);
      start(world);
    },
    threads: [
      (world) => {
        const own = new Own(world, 0);
        send(own);
        own.client.close();
      },
      agent(),
      (world) => {
        const own = new Own(world, 1);
        world.awaitEnd(0);
        own.context.advanceUntil(() => free(world) === world.map.heapPages);
        own.say(FAR, OTHERS);
        own.client.close();
      },
    ],
    monitor: ({ kernel, map }) => markDead(kernel, map, 0),
    check(world, [, sent]) {
      expectSent(sent, world.isDead(0) ? 0 : most, most);
      expectOther(sent);
      same("free pages", [free(world)], [world.map.heapPages]);
    },
  };
}

/** The agent sleeps before a turn until no other thread goes on. */
function late({ kernel, map }: World): Event {
  return () => void kernel.bellWait(engineSlot(map), kernel.bellArm(engineSlot(map)), 1);
}

export const FAR_DEATH_SCENARIOS: readonly Scenario[] = [
  dies(
    "a task dies while it holds a reservation in a lane to another node",
    2,
    (world) => bindAll(world, FAR),
    (own) => {
      own.say(FAR, 1);
      own.sayLate(FAR, 2, 1);
    },
  ),
  dies(
    "a task dies while it opens a lane to another node",
    1,
    () => {},
    (own) => own.say(FAR, 1),
  ),
  {
    name: "the agent acknowledges a task's end before it has seen it, and the other task awaits the memory",
    node: NODE,
    endless: [1],
    bound: 1,
    setup(world) {
      openAtStart(world, 0);
      bindAll(world, FAR);
    },
    threads: [
      (world) => {
        const [own, other] = [new Own(world, 0), new Own(world, 1)];
        own.say(FAR, 1);
        own.rest();
        markDead(world.kernel, world.map, 0);
        other.context.advanceUntil(() => free(world) === world.map.heapPages);
      },
      (world) => agent(...Array.from({ length: 4 }, () => late(world)))(world),
    ],
    check: (_, [, sent]) => expectSent(sent, 1, 1),
  },
];
