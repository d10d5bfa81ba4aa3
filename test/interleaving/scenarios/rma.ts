// One-sided operations: an injection FIFO between its owner and an engine on another thread, its completion bits, and
// regions that are closed while somebody writes into them.
import {
  DESCRIPTOR_FENCE,
  DESCRIPTOR_PUT,
  DESCRIPTOR_SIZE,
  INJECTION_OLDEST_OFFSET,
  INJECTION_STAGED_OFFSET,
  INJECTION_TAIL_OFFSET,
  NONE,
  SLICE_BYTES,
} from "../../../assembly/layout.js";
import { endpointOf } from "../../../src/core/endpoint.js";
import { MemRegion } from "../../../src/core/region.js";
import { formatInjection } from "../../../src/memory/format.js";
import { map } from "../control.js";
import type { Scenario } from "../scenario.js";
import type { World } from "../world.js";
import { knownRegion, PAGE, same, throws } from "./support.js";

/** Entries of the regions of task 1, which puts, and of task 0; each is opened once, so its generation is 1. */
const LOCAL = map.regions;
const REMOTE = 0;

/** An injection FIFO of so many slots in the heap, and a region at both ends. */
function setupFifo(world: World, slots: number): void {
  const { kernel, map } = world;
  const pages = Math.ceil((512 + slots * (DESCRIPTOR_SIZE + 1)) / PAGE);
  const fifo = kernel.heapAllocate(map.job, pages, 1);
  for (let at = 0; at < pages * PAGE; at += 4) world.setWord(fifo + at, 0);
  formatInjection(world.memory, fifo, slots);
  world.setWord(world.task(2), fifo); // a word to remember it by
  for (const [index, fill] of [
    [LOCAL, 1],
    [REMOTE, 0],
  ] as const) {
    const region = kernel.regionAllocate(map.job, 1, 0);
    for (let at = 0; at < 64; at += 4) world.setWord(region + at, fill === 0 ? 0 : 100 + at / 4);
    kernel.regionOpen(map.job, index, region, 64);
    world.setWord(world.task(2) + 4 + 4 * fill, region);
  }
}

const fifoOf = (world: World): number => world.word(world.task(2));
const remoteOf = (world: World): number => world.word(world.task(2) + 4);

/** Stages a put of one word, or a fence, and injects it; the slot, or NONE. */
function inject(world: World, kind: number, word: number, completions: number): number {
  const staged = fifoOf(world) + INJECTION_STAGED_OFFSET;
  const words = [kind, 4, LOCAL, 1, 4 * word, REMOTE, 1, 4 * word];
  for (const [i, value] of words.entries()) world.store(staged + 4 * i, value);
  return world.kernel.inject(fifoOf(world), completions);
}

/** The owner injects puts with a callback each, and a fence; the engine on another thread processes them. */
function fifo(name: string, slots: number, before: number): Scenario {
  return {
    name,
    setup(world) {
      setupFifo(world, slots);
      // Some come and go before, so that slots are used again and words of the mask change.
      for (let i = 0; i < before; i++) {
        inject(world, DESCRIPTOR_PUT, 0, i === 0 ? 1 : 0);
        world.kernel.engineRun(world.map.job, fifoOf(world), SLICE_BYTES);
        world.kernel.completionTake(fifoOf(world));
      }
      world.setWord(remoteOf(world), 0);
      // The small one is empty from its very next slot on; in the large one the scan begins in another word of the mask.
      const fifo = fifoOf(world);
      if (slots === 4) world.setWord(fifo + INJECTION_OLDEST_OFFSET, world.word(fifo + INJECTION_TAIL_OFFSET));
    },
    threads: [
      (world) => {
        const { kernel } = world;
        const orders: [kind: number, word: number, completions: number][] = [
          [DESCRIPTOR_PUT, 0, 1],
          [DESCRIPTOR_PUT, 1, 0],
          [DESCRIPTOR_PUT, 2, 1],
          [DESCRIPTOR_FENCE, 0, 0],
        ];
        const words = [0, 2, 2];
        let taken = 0;
        let injected = 0;
        for (let tries = 0; tries < 9; tries++) {
          const order = orders[injected];
          if (order !== undefined && inject(world, ...order) !== NONE) injected++;
          // The first bits stay unread for a while, so that the FIFO fills up behind them.
          const completion = tries < 3 ? NONE : kernel.completionTake(fifoOf(world));
          if (completion === NONE) continue;
          // The bit says that the bytes are there.
          const word = words[taken++] as number;
          same("a word that was put", [world.load(remoteOf(world) + 4 * word)], [100 + word]);
          world.note(completion);
        }
        world.note(-injected);
      },
      (world) => {
        for (let i = 0; i < 4; i++) world.kernel.engineRun(world.map.job, fifoOf(world), SLICE_BYTES);
      },
    ],
    check(world, [notes = []]) {
      const injected = -(notes.at(-1) as number);
      const taken = notes.slice(0, -1);
      for (let runs = 0; runs < 5; runs++) world.kernel.engineRun(world.map.job, fifoOf(world), SLICE_BYTES);
      for (let left = 4; left > 0; left--) {
        const completion = world.kernel.completionTake(fifoOf(world));
        if (completion !== NONE) taken.push(completion);
      }
      // Behind what came before: a put and its completion, a put, a put and its completion, the fence.
      const slotsOfAll = [1, 4, 5].map((slot) => (before + 1 + slot) & (slots - 1));
      same("slots, in order, and results", taken, slotsOfAll.slice(0, [0, 1, 1, 2, 3][injected]));
    },
  };
}

export const RMA_SCENARIOS: readonly Scenario[] = [
  fifo("an injection FIFO of four slots, its owner and an engine on another thread", 4, 3),
  fifo("an injection FIFO with two levels of completion bits, likewise", 512, 40),
  fifo("C7: the oldest completion is taken first, where the engine sets bits of two words of the mask", 64, 29),
  fifo(
    "C7: the oldest completion is taken first, where the engine sets bits in the last word and then the first",
    64,
    61,
  ),
  {
    name: "a region is closed and its page used again while another task puts into it",
    setup(world) {
      // The origin has its region; one page is free, for the target's.
      const { kernel, map } = world;
      const local = kernel.regionAllocate(map.job, map.heapPages - 1, 1);
      kernel.regionOpen(map.job, LOCAL, local, PAGE);
      for (const at of [0, 4]) world.setWord(local + at, 1);
    },
    threads: [
      (world) => {
        const client = world.client(0);
        const context = client.createContext({ spin: 0 });
        knownRegion(client, PAGE).close();
        for (let tries = 0; tries < 4; tries++) {
          context.advance();
          let byteOffset = 0;
          const use = (): void => {
            ({ byteOffset } = knownRegion(client, PAGE).bytes);
          };
          if (throws("PAMIR_NO_MEMORY", use)) continue;
          for (const at of [0, 4]) world.store(byteOffset + at, 7);
          context.advance();
          same("what its owner wrote", [world.load(byteOffset), world.load(byteOffset + 4)], [7, 7]);
          world.note(1);
          return;
        }
      },
      (world) => {
        const client = world.client(1);
        const context = client.createContext({ spin: 0 });
        const local = new MemRegion(
          world.memory.bytes.subarray(world.map.heapBase).subarray(0, PAGE),
          LOCAL,
          1,
          () => {},
        );
        const put = { to: endpointOf(0, 0), local, remote: 2 ** 20 + REMOTE, bytes: 8 };
        for (let i = 0; i < 2; i++) {
          throws("PAMIR_STALE", () => context.put(put));
          context.advance();
        }
      },
    ],
    check() {},
  },
];
