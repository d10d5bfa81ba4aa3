// FIFO message queues, one in each form: see compare.ts.
import { describe, it } from "vitest";
import { PAGE_SIZE } from "../../assembly/layout.js";
import type { Rig, RigOptions, Straddle } from "../support/kernels.js";
import { compare, type Operations, pick, type Random, word } from "./compare.js";

const WINDOWS = [2, 8, 64];
const FIRSTS = [0, 0x7ffffff0, 0xfffffff0];

/** The queues lie in pages of their own; queue i has window i, and is shared if i is odd. */
const queueOf = ({ map }: Rig, number: number): number => map.heapBase + PAGE_SIZE * number;

interface State {
  /** Order number of the packet after the last that was inserted in order. */
  readonly latest: number[];
}

function operations(): Operations<State> {
  const anyQueue = (random: Random): number => random(2 * WINDOWS.length);
  const call = (name: "queueReset" | "queueTake" | "queueNext", weight: number): Operations<State> => ({
    [name]: {
      weight,
      choose: (_, random) => {
        const number = anyQueue(random);
        return { text: `${name}(${number})`, act: (rig) => rig.producer[name](queueOf(rig, number)) };
      },
    },
  });
  return {
    insert: {
      weight: 8,
      choose: ({ latest }, random) => {
        const number = anyQueue(random);
        const window = WINDOWS[number % WINDOWS.length] as number;
        const jump = random(8) === 0 ? random(2 * window + 4) - window : 0;
        const order = random(50) === 0 ? word(random) : ((latest[number] as number) + jump) >>> 0;
        if (jump === 0) latest[number] = (order + (random(6) === 0 ? 2 : 1)) >>> 0;
        else if (random(2) === 0) latest[number] = ((latest[number] as number) - random(window)) >>> 0;
        const packet = pick(random, [1, 0x80000000, 0xffffffff, 1 + random(2 ** 31 - 1)]) as number;
        return {
          text: `queueInsert(${number}, ${order}, ${packet})`,
          act: (rig) => rig.producer.queueInsert(queueOf(rig, number), order, packet),
        };
      },
    },
    ...call("queueReset", 3),
    ...call("queueTake", 6),
    ...call("queueNext", 4),
    init: {
      weight: 1,
      choose: ({ latest }, random) => {
        const number = anyQueue(random);
        const window = WINDOWS[number % WINDOWS.length] as number;
        const first = pick(random, FIRSTS) as number;
        latest[number] = first;
        return {
          text: `queueInit(${number}, ${window}, ${first})`,
          act: (rig) => rig.producer.queueInit(queueOf(rig, number), window, first, number % 2 === 1),
        };
      },
    },
  };
}

function prepare(rig: Rig): void {
  for (let number = 0; number < 2 * WINDOWS.length; number++)
    rig.producer.queueInit(queueOf(rig, number), WINDOWS[number % WINDOWS.length] as number, 0, number % 2 === 1);
}

describe("wasm and twin, in two memories: FIFO message queues", () => {
  it.each<[string, Straddle | undefined]>([
    ["", undefined],
    [", 2^31 in the heap", "heap"],
  ])("the same results and the same bytes after every operation%s", (_, straddle) => {
    const options: RigOptions = { tasks: 1, contexts: 1, heapBytes: 16 * PAGE_SIZE, straddle };
    const state = (): State => ({ latest: Array(2 * WINDOWS.length).fill(0) });
    compare({ options, sequences: 20, length: 1000, prepare, state, operations });
  });
});
