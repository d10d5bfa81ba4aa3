// A task dies at any step of an allocation, a free, or the opening of a region or lane, with the heap's lock or without, while
// another one allocates and frees. The monitor mends the lock, and all memory of the dead one comes back.
import {
  JOB_HEAP_LOCK_OFFSET,
  OPEN_BUSY,
  OPEN_NO_MEMORY,
  TASK_CLOSED,
  TASK_STATE_OFFSET,
} from "../../../assembly/layout.js";
import { engineSlot } from "../../../src/memory/map.js";
import { markDead, markEngineDead } from "../../../src/node/liveness.js";
import type { Scenario } from "../scenario.js";
import type { World } from "../world.js";
import { agent, ONE, ONE_SLOT, Own, says } from "./nodes.js";
import { betweenProcesses, PAGE, same } from "./support.js";

/** Note of a task: the agent has died, and the task has had all memory. */
const HAD = -1;

/** An extent, whose owner has written a mark into its first word and its last one. */
interface Held {
  readonly extent: number;
  readonly words: readonly number[];
  readonly mark: number;
}

/** Takes an extent once the lock is free: its holder goes on after a while, or has died. */
function hold(world: World, task: number, pages: number): Held {
  const { kernel, map } = world;
  const slot = world.task(task);
  for (;;) {
    const extent = kernel.heapAllocate(map.job, pages, task);
    if (extent === OPEN_NO_MEMORY) throw new Error(`no ${pages} pages for task ${task}`);
    if (extent === OPEN_BUSY) {
      world.sleep(slot, kernel.bellArm(slot), 1);
      continue;
    }
    const held = { extent, words: [extent, extent + pages * PAGE - 4], mark: 100 * task + pages };
    for (const word of held.words) world.store(word, held.mark);
    return held;
  }
}

/** Frees an extent that no other task has written to. */
function letGo(world: World, { extent, words, mark }: Held): void {
  for (const word of words) same(`the mark at ${word}`, [world.load(word)], [mark]);
  world.kernel.heapFree(world.map.job, extent);
}

/** Takes a page, and frees it. */
function useOnce(world: World, task: number): void {
  letGo(world, hold(world, task, 1));
}

/** Divides free extents, and joins free neighbors. */
function useHeap(world: World, task: number): void {
  const [one, two] = [hold(world, task, 2), hold(world, task, 1)];
  letGo(world, one);
  const three = hold(world, task, 3);
  letGo(world, two);
  letGo(world, three);
}

const free = ({ kernel, map }: World): number => kernel.heapFreePages(map.job);

/** All pages are free, and so is the lock. */
function expectFree(world: World): void {
  const { job, heapPages } = world.map;
  same("the heap's lock", [world.word(job + JOB_HEAP_LOCK_OFFSET)], [0]);
  same("free pages", [free(world)], [heapPages]);
}

/** A task that goes on has all memory, once others have ended. */
function haveAll(world: World, task: number, ...others: readonly number[]): void {
  for (const other of others) world.awaitEnd(other);
  letGo(world, hold(world, task, world.map.heapPages));
}

/** What the monitor does for a task that has died, and what the first task does that hears of it. */
function mend({ kernel, map, me }: World): void {
  markDead(kernel, map, me);
  kernel.heapReclaim(map.job, me);
}

/** The clients and contexts of the runtime: one task dies, and the other one hears of it, and has all memory then. */
function clientDies(how: string, bound: number, use: (own: Own, other: number) => void): Scenario {
  return {
    name: `a task dies while ${how}, and the other one has all memory then`,
    mortal: [1],
    monitor: ({ kernel, map, me }) => markDead(kernel, map, me),
    bound,
    setup() {},
    threads: [
      (world) => {
        const own = new Own(world, 0);
        use(own, 1);
        world.awaitEnd(1);
        haveAllAsClient(world, own);
        own.client.close();
      },
      (world) => {
        const own = new Own(world, 1);
        use(own, 0);
        own.client.close();
      },
    ],
    check: expectFree,
  };
}

/** The same by its context, which hears of the others' ends, and takes back what they had. */
function haveAllAsClient(world: World, own: Own): void {
  own.context.advanceUntil(() => free(world) === world.map.heapPages);
  haveAll(world, own.client.task);
}

/** Whether the agent has died. */
function isCutOff({ kernel, map }: World): boolean {
  return kernel.loadWord(engineSlot(map) + TASK_STATE_OFFSET) >= TASK_CLOSED;
}

const SCENARIOS: readonly Scenario[] = [
  {
    name: "a task dies while it allocates and frees, and so does another one, which goes on",
    mortal: [1],
    monitor: mend,
    bound: 1,
    setup() {},
    threads: [
      (world) => {
        useHeap(world, 0);
        haveAll(world, 0, 1);
      },
      (world) => useHeap(world, 1),
    ],
    check: expectFree,
  },
  {
    name: "a task dies while one of two others has the heap's lock, and they go on",
    mortal: [0],
    monitor: mend,
    bound: 1,
    setup() {},
    threads: [(world) => useOnce(world, 0), (world) => useOnce(world, 1), (world) => useOnce(world, 2)],
    check: expectFree,
  },
  {
    name: "two tasks die while they allocate and free",
    mortal: [0, 1],
    deaths: 2,
    monitor: mend,
    bound: 0,
    setup() {},
    threads: [(world) => useHeap(world, 0), (world) => useHeap(world, 1)],
    check: expectFree,
  },
  {
    name: "two tasks die while they allocate and free, and so does a third one, which goes on",
    mortal: [0, 1],
    deaths: 2,
    monitor: mend,
    bound: 0,
    setup() {},
    threads: [
      (world) => useHeap(world, 0),
      (world) => useHeap(world, 1),
      (world) => {
        useHeap(world, 2);
        haveAll(world, 2, 0, 1);
      },
    ],
    check: expectFree,
  },
  clientDies("both open regions", 1, (own) => {
    const [one, two] = [own.region(PAGE), own.region(2 * PAGE)];
    one.close();
    own.region(3 * PAGE).close();
    two.close();
  }),
  clientDies("both open a lane to each other", 0, (own, other) => own.sayIfUp(other, 1)),
  {
    name: "the agent dies while it opens a lane, and a task opens regions",
    node: ONE_SLOT,
    endless: [1],
    mortal: [1],
    monitor: ({ kernel, map }) => markEngineDead(kernel, map),
    bound: 1,
    setup() {},
    threads: [
      (world) => {
        const own = new Own(world, 0);
        own.region(2 * PAGE).close();
        own.context.advanceUntil(() => own.got > 0 || isCutOff(world));
        if (isCutOff(world)) {
          haveAllAsClient(world, own);
          world.note(HAD);
        }
      },
      agent(says(ONE, 7)),
    ],
    check(world, [had = []]) {
      // The agent may have died later.
      if (had.includes(HAD)) expectFree(world);
    },
  },
];

/** The same between processes: the lock lies in the memory of all. */
export const HEAP_DEATH_SCENARIOS: readonly Scenario[] = SCENARIOS.flatMap((scenario) => [
  scenario,
  betweenProcesses(scenario),
]);
