// The heap under several allocators: no page belongs to two, none is lost.
import { OPEN_BUSY, OPEN_NO_MEMORY } from "../../../assembly/layout.js";
import type { Scenario } from "../scenario.js";
import type { World } from "../world.js";
import { messages, ORIGIN, OTHER, rest, same, send, smallLane, TARGET, take } from "./support.js";

const isExtent = (pointer: number): boolean => pointer !== OPEN_NO_MEMORY && pointer !== OPEN_BUSY;

/** Takes an extent, writes all over its first words, and looks whether they stay. */
function use(world: World, pages: number, mark: number): number {
  const extent = world.kernel.heapAllocate(world.map.job, pages, mark);
  if (!isExtent(extent)) return 0;
  const last = extent + pages * 4096 - 4;
  for (const at of [extent, last]) world.store(at, mark);
  for (const at of [extent, last]) if (world.load(at) !== mark) throw new Error(`an extent of two owners at ${at}`);
  return extent;
}

function allFree(world: World, pages: number): void {
  same("free pages", [world.kernel.heapFreePages(world.map.job)], [pages]);
  const extent = world.kernel.heapAllocate(world.map.job, pages, 0);
  if (!isExtent(extent)) throw new Error(`${pages} free pages don't join to one extent`);
}

export const HEAP_SCENARIOS: readonly Scenario[] = [
  {
    name: "two tasks allocate and free",
    setup() {},
    threads: [
      (world) => {
        const { kernel, map } = world;
        const one = use(world, 3, 1);
        if (one !== 0) kernel.heapFree(map.job, one);
        const two = use(world, 4, 1);
        if (two !== 0) kernel.heapFree(map.job, two);
      },
      (world) => {
        const { kernel, map } = world;
        const one = use(world, 2, 2);
        const two = use(world, 3, 2);
        if (one !== 0) kernel.heapFree(map.job, one);
        if (two !== 0) kernel.heapFree(map.job, two);
      },
    ],
    check(world) {
      allFree(world, world.map.heapPages);
    },
  },
  {
    name: "an extent is freed while another task allocates behind it",
    setup(world) {
      world.setWord(world.task(2), world.kernel.heapAllocate(world.map.job, 2, 0)); // a word to remember it by
    },
    threads: [
      (world) => world.kernel.heapFree(world.map.job, world.word(world.task(2))),
      (world) => {
        const { kernel, map } = world;
        for (let i = 0; i < 2; i++) {
          const extent = use(world, map.heapPages - 2, 2);
          if (extent === 0) throw new Error("no memory, and no other allocator");
          kernel.heapFree(map.job, extent);
        }
      },
    ],
    check(world) {
      allFree(world, world.map.heapPages);
    },
  },
  {
    name: "two tasks take back what a third one had, and one of them uses it at once",
    setup(world) {
      world.kernel.heapAllocate(world.map.job, world.map.heapPages, 2);
    },
    threads: [
      (world) => world.kernel.heapReclaim(world.map.job, 2),
      (world) => {
        world.kernel.heapReclaim(world.map.job, 2);
        if (use(world, world.map.heapPages, 1) === 0) throw new Error("no memory, and no other allocator");
      },
    ],
    check(world) {
      same("free pages", [world.kernel.heapFreePages(world.map.job)], [0]);
    },
  },
  {
    name: "a lane's page is used by another lane as soon as it is given back",
    setup(world) {
      smallLane(world);
      // Nothing else is free: the page of the first lane is the only one to be had.
      world.kernel.heapAllocate(world.map.job, world.map.heapPages - 1, 0);
    },
    threads: [
      (world) => {
        for (let i = 0; i < 3; i++) take(world);
      },
      (world) => {
        const { kernel, map } = world;
        const lane = kernel.laneOf(world.context(TARGET), ORIGIN);
        send(world, lane, 0);
        kernel.laneReplace(map.job, lane, 0, 0);
      },
      (world) => {
        for (let tries = 0; tries < 2; tries++) {
          const lane = world.kernel.laneOpen(world.map.job, OTHER, TARGET, 64, 48);
          if (!isExtent(lane)) continue;
          send(world, lane, 1);
          world.note(1);
          break;
        }
      },
    ],
    check(world, [taken = [], , other = []]) {
      same("messages, in order", [...taken, ...rest(world)], messages(1 + other.length));
    },
  },
];
