// An rget FIFO whose transfer is given up while the engine thread is at it, and then another one's: by the table of rget
// FIFOs that ships, on the thread of its core. The cores at the other side do nothing but begin; so one thread is all
// cores, and the other one is the engine.
import {
  BLOCK_SIZE,
  BLOCK_STATUS_OFFSET,
  NONE,
  RGET_FIFO_ALLOWED_OFFSET,
  RGET_FIFO_HEAD_OFFSET,
  RGET_FIFO_LEFT_OFFSET,
  RGET_FIFO_MOVED_OFFSET,
  RGET_FIFO_RESULT_OFFSET,
  RGET_FIFO_TAIL_OFFSET,
  RGET_FIFO_WRONG_OFFSET,
  TRANSFER_DONE,
  TRANSFER_ENDED,
} from "../../../assembly/layout.js";
import { type Result, SHUTDOWN, SUCCESS } from "../../../src/core/result.js";
import { RegionTable } from "../../../src/memory/regions.js";
import { ContextEngine } from "../../../src/node/engine.js";
import { gracePeriods } from "../../../src/node/liveness.js";
import type { ContextParts } from "../../../src/protocol/base.js";
import { type RgetFifo, TransferTable } from "../../../src/protocol/rendezvous/transfers.js";
import { addBlock, chainWords, type Plan, type Region, readySide, type Side, sideOf } from "../../support/chains.js";
import { map } from "../control.js";
import type { Scenario } from "../scenario.js";
import type { World } from "../world.js";
import { PAGE, same, serveForever, setUp, sleepUntil } from "./support.js";

/** Task 0 has the table; it gives up what it has with task 1, and goes on with task 2. */
const OWN = 0;
const OTHERS = [1, 2];
const FRAGMENT = 8;
/** Of the first transfer, two fragments; of the second, one: its first words. */
const WORDS = 3;
const NEXT_WORDS = 2;
/** Of a task, at its last places: its data, the links of what it receives, its block of rget FIFOs. */
const DATA = 0;
const LINKS = 1;
const BLOCK = 2;
/** Where what task t sends lies in its data, and what it gets from task t. */
const FROM = 0;
const toOf = (task: number): number => 512 * task;
const LINKS_AT = 2048;

/** In the heap: a page for each task, then the blocks of tasks 1 and 2; that of task 0 comes with its table. */
function regionOf(task: number, which: number): Region {
  const page = map.heapBase + task * PAGE;
  const base =
    which === BLOCK ? map.heapBase + 3 * PAGE + (task - 1) * BLOCK_SIZE : which === DATA ? page : page + LINKS_AT;
  return { index: (task + 1) * map.regions - 1 - which, generation: 1, base };
}

const payloadWord = (task: number, word: number): number => 100 * (task + 1) + word;

function setup(world: World): void {
  const { kernel } = world;
  setUp(world, [0, 1, 2]);
  for (const task of [0, 1, 2]) {
    same("where its data are", [kernel.regionAllocate(map.job, 1, task)], [regionOf(task, DATA).base]);
    kernel.regionOpen(map.job, regionOf(task, DATA).index, regionOf(task, DATA).base, LINKS_AT);
    kernel.regionOpen(map.job, regionOf(task, LINKS).index, regionOf(task, LINKS).base, PAGE - LINKS_AT);
    for (let word = 0; word < WORDS; word++) {
      world.setWord(regionOf(task, DATA).base + FROM + 4 * word, payloadWord(task, word));
      for (const from of [0, 1, 2]) world.setWord(regionOf(task, DATA).base + toOf(from) + 512 + 4 * word, 0);
    }
  }
  for (const task of OTHERS) {
    const block = regionOf(task, BLOCK);
    same("where its block is", [kernel.regionAllocate(map.job, BLOCK_SIZE / PAGE, task)], [block.base]);
    kernel.regionOpen(map.job, block.index, block.base, BLOCK_SIZE);
    addBlock(world, task, block);
    readySide(world, sideOf(map, task, block, 0), OWN);
  }
}

/** Word of what a task gets from another. */
const place = (task: number, from: number, word: number): number =>
  regionOf(task, DATA).base + 512 + toOf(from) + 4 * word;

/** The transfers of task 0, in the rget FIFOs of its table, and what became of each. */
class Core {
  readonly rgetFifos: TransferTable;
  readonly results = new Map<number, Result>();
  readonly #world: World;
  readonly #isTarget: boolean;
  readonly #pointers = new Map<number, number>();

  constructor(world: World, isTarget: boolean) {
    const { kernel, memory } = world;
    const engine = new ContextEngine(kernel, map, OWN);
    const base = { kernel, memory, map, ordinal: OWN, block: world.context(OWN), engine } as unknown as ContextParts;
    this.rgetFifos = new TransferTable(
      base,
      new RegionTable({ kernel, memory, map, task: OWN, grace: gracePeriods(kernel, map) }),
      () => {},
    );
    this.#world = world;
    this.#isTarget = isTarget;
  }

  /**
   * A transfer with another task, from that one or to it; both cores' part.
   * @param allowed fragments that may be moved
   */
  begin(task: number, allowed = NONE): void {
    const { kernel } = this.#world;
    const other = sideOf(map, task, regionOf(task, BLOCK), 0);
    if (this.#isTarget) {
      const generation = kernel.rgetOpen(other.rgetFifo, allowed);
      const { rgetFifo } = this.#open(task, RGET_FIFO_WRONG_OFFSET, NONE);
      this.#write({ ...this.#plan(task, OWN), origin: other, target: this.#sideOf(rgetFifo), generation });
      return;
    }
    const { rgetFifo } = this.#open(task, RGET_FIFO_RESULT_OFFSET, allowed);
    kernel.rgetOpen(other.rgetFifo, NONE);
    const { generation } = rgetFifo;
    this.#write({ ...this.#plan(OWN, task), origin: this.#sideOf(rgetFifo), target: other, generation });
  }

  /** Offers something to another task, whose core answers that nothing of it is to be moved. */
  decline(task: number): void {
    const { rgetFifo } = this.#open(task, RGET_FIFO_RESULT_OFFSET, NONE);
    const { index, generation } = rgetFifo.region;
    const place = [rgetFifo.offset, rgetFifo.generation, OWN * map.contexts] as const;
    const told = this.#world.kernel.chainNotice(map.job, index, generation, ...place, TRANSFER_DONE);
    same("whether its rget FIFO was there", [told], [1]);
  }

  /** Sleeps for a while: the engine thread goes on as far as it may until then. */
  sleep(): void {
    const { kernel } = this.#world;
    const slot = this.#world.task(OWN);
    const seen = kernel.bellArm(slot);
    kernel.bellWait(slot, seen, 1);
    kernel.bellDisarm(slot);
  }

  /** As sleep(), while nothing may be moved of what has begun: so that is not over. */
  rest(): void {
    const before = this.results.size;
    this.sleep();
    this.rgetFifos.advance();
    same("transfers that are over", [this.results.size], [before]);
  }

  /** Opens an rget FIFO for a transfer that does not begin; after a while it is as it was. */
  openOnly(task: number): void {
    const world = this.#world;
    const { pointer } = this.#open(task, RGET_FIFO_WRONG_OFFSET, NONE).rgetFifo;
    this.rest();
    const words = [RGET_FIFO_LEFT_OFFSET, RGET_FIFO_WRONG_OFFSET, RGET_FIFO_MOVED_OFFSET].map((at) =>
      world.load(pointer + at),
    );
    same("what has come to an rget FIFO that is just open", words, [0, TRANSFER_DONE, 0]);
    same(
      "its slots",
      [world.load(pointer + RGET_FIFO_HEAD_OFFSET)],
      [world.kernel.loadWord(pointer + RGET_FIFO_TAIL_OFFSET)],
    );
  }

  /** All of a transfer may be moved: says the origin's core. */
  allow(task: number): void {
    const { kernel } = this.#world;
    const origin = this.#isTarget ? sideOf(map, task, regionOf(task, BLOCK), 0).rgetFifo : this.#pointers.get(task);
    kernel.storeWord((origin as number) + RGET_FIFO_ALLOWED_OFFSET, NONE);
    kernel.engineCall(map.job, (this.#isTarget ? task : OWN) * map.contexts);
  }

  /** Until a transfer is over; what it came to. */
  await_(task: number): Result {
    const world = this.#world;
    sleepUntil(world, world.task(OWN), () => {
      this.rgetFifos.advance();
      return this.results.has(task);
    });
    return this.results.get(task) as Result;
  }

  #open(task: number, resultOffset: number, allowed: number): { rgetFifo: RgetFifo } {
    const over = (result: Result): void => {
      if (this.results.has(task)) throw new Error("over twice");
      this.results.set(task, result);
    };
    const forget = (): void => {};
    const peer = task * map.contexts;
    const make = (rgetFifo: RgetFifo) => ({ rgetFifo, resultOffset, forget, breakOff: () => true, over });
    const side = this.rgetFifos.open(peer, allowed, make);
    if (side === undefined) throw new Error("no memory for a block");
    this.#pointers.set(task, side.rgetFifo.pointer);
    return side;
  }

  #sideOf({ pointer, region, offset }: RgetFifo): Side {
    const { index, generation } = region;
    const block = { index, generation, base: pointer - offset };
    return {
      task: OWN,
      ordinal: map.contexts * OWN,
      context: this.#world.context(OWN),
      block,
      number: 0,
      offset,
      rgetFifo: pointer,
    };
  }

  #plan(from: number, to: number): Omit<Plan, "origin" | "target" | "generation"> {
    return {
      payload: regionOf(from, DATA),
      from: FROM,
      destination: regionOf(to, DATA),
      to: 512 + toOf(from),
      links: regionOf(to, LINKS),
      bytes: 4 * (from + to === 1 ? WORDS : NEXT_WORDS),
      fragment: FRAGMENT,
      depth: 1,
    };
  }

  #write(plan: Plan): void {
    const world = this.#world;
    const { rgetFifo, task } = plan.target;
    for (const [offset, value] of chainWords(plan)) world.store(rgetFifo + offset, value);
    if (world.kernel.chainWrite(map.job, rgetFifo) === 0) throw new Error("the chain is not written");
    world.kernel.engineCall(map.job, task * map.contexts);
  }
}

/** What a task got from another one, as a thread reads it. */
function expectGot(world: World, task: number, from: number): void {
  const words = Array.from({ length: from + task === 1 ? WORDS : NEXT_WORDS }, (_, i) => payloadWord(from, i));
  same(
    `what task ${task} got from task ${from}`,
    words.map((_, i) => world.load(place(task, from, i))),
    words,
  );
}

/** Whoever was told that it is over has the memory for itself. */
function writeOver(world: World, pointer: (word: number) => number): void {
  for (let word = 0; word < WORDS; word++) world.store(pointer(word), 7);
}

function checkOver(world: World, pointer: (word: number) => number): void {
  const words = Array.from({ length: WORDS }, (_, word) => world.word(pointer(word)));
  same(
    "what was written once it was over",
    words,
    words.map(() => 7),
  );
}

const gotten = (word: number): number => place(OWN, 1, word);
const sent = (word: number): number => regionOf(OWN, DATA).base + FROM + 4 * word;

/** Task 1 ends behind what it has of task 0: that is told what came of it, and its rget FIFO is as free as any. */
function endsBehind(name: string, transfer: (world: World, core: Core) => void): Scenario {
  return {
    name,
    engine: true,
    bound: 1,
    endless: [1],
    setup,
    threads: [
      (world) => {
        const core = new Core(world, false);
        transfer(world, core);
        core.rgetFifos.ended(map.contexts);
        world.note(core.await_(1));
        core.openOnly(2);
      },
      serveForever,
    ],
    check: (_, [notes = []]) => same("what it came to", notes, [SUCCESS]),
  };
}

export const GIVEN_UP_SCENARIOS: readonly Scenario[] = [
  {
    name: "a target gives a transfer up while the engine thread is at it: its rget FIFO is open again, and nothing comes to it",
    engine: true,
    endless: [1],
    setup,
    threads: [
      (world) => {
        const core = new Core(world, true);
        core.begin(1);
        core.sleep();
        core.rgetFifos.ended(map.contexts);
        core.await_(1);
        writeOver(world, gotten);
        core.openOnly(2);
      },
      serveForever,
    ],
    check: (world) => checkOver(world, gotten),
  },
  {
    name: "a target gives a transfer up while the engine thread is at it: its rget FIFO is the next one's, and nothing comes late",
    engine: true,
    bound: 1,
    endless: [1],
    setup,
    threads: [
      (world) => {
        const core = new Core(world, true);
        core.begin(1);
        core.sleep();
        core.rgetFifos.ended(map.contexts);
        const result = core.await_(1);
        world.note(result);
        if (result === SUCCESS) expectGot(world, OWN, 1);
        writeOver(world, gotten);
        core.begin(2, 0);
        core.rest();
        core.allow(2);
        world.note(core.await_(2));
        expectGot(world, OWN, 2);
      },
      serveForever,
    ],
    check(world, [[first = -1, second = -1] = []]) {
      if (first !== SUCCESS && first !== SHUTDOWN) throw new Error(`the first came to ${first}`);
      same("what the second came to", [second], [SUCCESS]);
      checkOver(world, gotten);
    },
  },
  {
    name: "an origin gives a transfer up while the engine thread is at it: its rget FIFO is the next one's, and nothing is read late",
    engine: true,
    bound: 1,
    endless: [1],
    setup,
    threads: [
      (world) => {
        const core = new Core(world, false);
        core.begin(1);
        core.rgetFifos.ended(map.contexts);
        world.note(core.await_(1));
        writeOver(world, sent);
        for (let word = 0; word < NEXT_WORDS; word++) world.store(sent(word), payloadWord(OWN, word));
        core.begin(2);
        world.note(core.await_(2));
        expectGot(world, 2, OWN);
      },
      serveForever,
    ],
    check(_, [[first = -1, second = -1] = []]) {
      if (first !== SUCCESS && first !== SHUTDOWN) throw new Error(`the first came to ${first}`);
      same("what the second came to", [second], [SUCCESS]);
    },
  },
  endsBehind(
    "the target is told that all is there, and ends: the origin is told so, however late the engine thread is with that",
    (world, core) => {
      core.begin(1);
      const status = regionOf(1, BLOCK).base + BLOCK_STATUS_OFFSET;
      sleepUntil(world, world.task(1), () => world.kernel.loadWord(status) !== 0);
      expectGot(world, 1, OWN);
    },
  ),
  endsBehind(
    "the target says that it has it in another way, and ends: the origin is told so, whether the engine has come to that",
    (_, core) => core.decline(1),
  ),
  {
    name: "an origin's context closes while the engine thread is at it: its end is no mistake",
    engine: true,
    endless: [1],
    setup,
    threads: [
      (world) => {
        const { kernel } = world;
        const core = new Core(world, false);
        core.begin(1);
        core.rgetFifos.close();
        kernel.regionClose(map.job, regionOf(OWN, DATA).index);
      },
      serveForever,
    ],
    check(world) {
      const wrong = world.word(sideOf(map, 1, regionOf(1, BLOCK), 0).rgetFifo + RGET_FIFO_WRONG_OFFSET);
      if (wrong !== TRANSFER_DONE && wrong !== TRANSFER_ENDED) throw new Error(`the target is told of ${wrong}`);
    },
  },
];
