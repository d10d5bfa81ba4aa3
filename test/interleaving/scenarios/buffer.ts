// Buffers: one is written again only once it has been read, an origin that waits for one is woken, and a target that dies
// while it keeps one loses no page. The tables of regions and the waiting are those of the runtime.
import {
  BUFFER_FREE,
  BUFFER_GONE,
  BUFFER_SENT,
  NONE,
  POOL_SLOTS_OFFSET,
  POOL_TASK_OFFSET,
  POOL_WANTED_OFFSET,
  WAIT_ADVANCE_UNTIL,
} from "../../../assembly/layout.js";
import { RegionTable } from "../../../src/memory/regions.js";
import { gracePeriods } from "../../../src/node/liveness.js";
import { Spins } from "../../../src/node/spins.js";
import type { Scenario } from "../scenario.js";
import type { World } from "../world.js";
import { ORIGIN, PAGE, same } from "./support.js";

/** What a wait tells beside; of no meaning here. */
const WAIT = {
  kind: WAIT_ADVANCE_UNTIL,
  activity: { busy: 0 },
  restless: () => false,
  spins: new Spins(),
  found: false,
};
const [READER, WRITER] = [0, 1];
/** What the writer writes into the buffer first, and then. */
const [FIRST, SECOND] = [11, 22];

/** The pool block, in the heap's first page; its one buffer, in the second. */
const poolOf = ({ map }: World): number => map.heapBase;
const extentOf = ({ map }: World): number => map.heapBase + PAGE;
const slotOf = (world: World): number => poolOf(world) + POOL_SLOTS_OFFSET;

/** A pool of the writer's, and a buffer of it that is sent. */
function setup(world: World): void {
  const { kernel, map } = world;
  for (let i = 0; i < 2; i++) kernel.regionAllocate(map.job, 1, WRITER);
  // As a pool does: free memory is full of bits, and a target that finds any here rings in each schedule.
  world.setWord(poolOf(world) + POOL_WANTED_OFFSET, 0);
  world.setWord(poolOf(world) + POOL_TASK_OFFSET, world.task(WRITER));
  world.setWord(slotOf(world), BUFFER_SENT);
  world.setWord(extentOf(world), FIRST);
}

/** The writer gives back what is its, as a pool does for a target that has ended; then all that it has. */
function takeBack({ kernel, map }: World, slot: number, extent: number): void {
  if (kernel.loadWord(slot) === BUFFER_SENT) kernel.extentPass(map.job, extent, WRITER, NONE);
  kernel.heapReclaim(map.job, READER);
}

export const BUFFER_SCENARIOS: readonly Scenario[] = [
  {
    name: "a buffer is written again once it has been read, by an origin that sleeps until then",
    setup,
    threads: [
      (world) => {
        world.note(world.load(extentOf(world)));
        world.kernel.bufferRelease(slotOf(world), BUFFER_FREE);
      },
      (world) => {
        const { kernel } = world;
        const isFree = (): boolean => kernel.loadWord(slotOf(world)) === BUFFER_FREE;
        const lastLook = (): boolean => {
          kernel.bellArm(world.task(WRITER));
          return isFree();
        };
        kernel.bufferWant(poolOf(world), 1);
        world
          .parker(WRITER)
          .wait({ ...WAIT, poll: isFree, lastLook, block: world.context(ORIGIN) }, Number.POSITIVE_INFINITY, 0);
        kernel.bufferWant(poolOf(world), 0);
        world.store(extentOf(world), SECOND);
      },
    ],
    check(world, [read = []]) {
      same("what was read", read, [FIRST]);
      same("what was written then", [world.word(extentOf(world))], [SECOND]);
    },
  },
  {
    name: "a target dies at any step of keeping a buffer: its origin takes it back, or it goes with the target",
    mortal: [READER],
    setup,
    threads: [
      (world) => {
        const { kernel, memory, map } = world;
        const regions = new RegionTable({
          kernel,
          memory,
          map,
          task: READER,
          grace: gracePeriods(kernel, map),
          keptMax: 8 * PAGE,
        });
        const region = regions.adopt(WRITER, extentOf(world), extentOf(world), 8, () =>
          kernel.bufferRelease(slotOf(world), BUFFER_GONE),
        );
        world.note(world.load(region.bytes.byteOffset));
        region.close();
      },
      (world) => {
        world.awaitEnd(READER);
        takeBack(world, slotOf(world), extentOf(world));
      },
    ],
    check({ kernel, map }) {
      same("pages that are in use: the pool block", [map.heapPages - kernel.heapFreePages(map.job)], [1]);
    },
  },
  {
    name: "a target dies at any step of freeing what it was given: the extent is freed once",
    mortal: [READER],
    setup,
    threads: [
      (world) => {
        const { kernel, memory, map } = world;
        const regions = new RegionTable({ kernel, memory, map, task: READER, grace: gracePeriods(kernel, map) });
        regions.release(WRITER, extentOf(world), () => kernel.bufferRelease(slotOf(world), BUFFER_GONE));
      },
      (world) => {
        const { kernel, map } = world;
        // Has the extent again as soon as it is free.
        const again = kernel.regionAllocate(map.job, map.heapPages - 1, WRITER);
        world.awaitEnd(READER);
        takeBack(world, slotOf(world), extentOf(world));
        world.note(again === extentOf(world) ? map.heapPages - 1 : 0);
      },
    ],
    check({ kernel, map }, [, [taken = 0] = []]) {
      same("pages that are in use", [map.heapPages - kernel.heapFreePages(map.job)], [1 + taken]);
    },
  },
];
