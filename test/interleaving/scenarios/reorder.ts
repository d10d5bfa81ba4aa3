// A FIFO message queue of two threads: who has the socket inserts and resets the sub-pointers, the other consumes (S1–S9).
import { INSERT_DONE, INSERT_OUTSIDE, QUEUE_HEAD_OFFSET, QUEUE_TAIL_OFFSET } from "../../../assembly/layout.js";
import { map } from "../control.js";
import type { Scenario } from "../scenario.js";
import type { World } from "../world.js";
import { PAGE, same } from "./support.js";

const QUEUE = map.heapBase;
/** What packet i holds: a word at CONTENT + 4 i. */
const CONTENT = map.heapBase + PAGE;

/** Packet i, whose content is its own number. */
const contentOf = (at: number): number => CONTENT + 4 * at;

/** The first thread: looks so often, and notes what it has got. */
function consume(looks: number) {
  return (world: World): void => {
    for (let i = 0; i < looks; i++) {
      const packet = world.kernel.queueTake(QUEUE);
      if (packet !== 0) world.note(world.load(packet));
    }
  };
}

/** The second thread: inserts packets in this order, each as soon as there is room for it, in so many tries in all. */
function insert(arrivals: readonly number[], tries: number) {
  return (world: World): void => {
    let place = 0;
    for (let i = 0; i < tries && place < arrivals.length; i++) {
      const at = arrivals[place] as number;
      // One that is repeated has its content already.
      if (arrivals.indexOf(at) === place) world.store(contentOf(at), at);
      if (world.kernel.queueInsert(QUEUE, at, contentOf(at)) !== INSERT_OUTSIDE) place++;
      world.kernel.queueReset(QUEUE);
    }
    world.note(place);
  };
}

/** What the first thread has not seen yet. */
function rest({ kernel, memory: { words } }: World): number[] {
  const taken: number[] = [];
  for (let packet = kernel.queueNext(QUEUE); packet !== 0; packet = kernel.queueNext(QUEUE))
    taken.push(words[packet >>> 2] as number);
  return taken;
}

function queue(name: string, window: number, arrivals: readonly number[], looks: number, tries: number): Scenario {
  return {
    name: `FIFO message queue, ${name}`,
    setup: ({ kernel }) => kernel.queueInit(QUEUE, window, 0, true),
    threads: [consume(looks), insert(arrivals, tries)],
    check(world, [taken = [], [inserted = 0] = []]) {
      const seen = [...taken, ...rest(world)];
      // Whoever was held back finds room now.
      for (const at of arrivals.slice(inserted)) {
        world.memory.words[contentOf(at) >>> 2] = at;
        const isThere = seen.includes(at) || arrivals.slice(0, inserted).includes(at);
        const result = world.kernel.queueInsert(QUEUE, at, contentOf(at));
        if ((result === INSERT_DONE) === isThere) throw new Error(`insertion of ${at} gave ${result}`);
        seen.push(...rest(world));
      }
      const all = [...new Set(arrivals)].sort((a, b) => a - b);
      same("packets, in order", seen, all);
      same(
        "slots that are not free",
        [world.word(QUEUE + QUEUE_TAIL_OFFSET) - world.word(QUEUE + QUEUE_HEAD_OFFSET)],
        [0],
      );
    },
  };
}

export const REORDER_SCENARIOS: readonly Scenario[] = [
  queue("S2 S3 S7: packets in order", 4, [0, 1, 2], 4, 3),
  queue("S4 S5 S7: packets out of order", 4, [2, 0, 1, 3], 6, 4),
  queue("S9: packets that come twice", 4, [1, 1, 0, 0, 1], 4, 5),
  queue("S1 S6 S7: the smallest window, full and wrapping", 2, [1, 0, 3, 2, 4], 7, 7),
];
