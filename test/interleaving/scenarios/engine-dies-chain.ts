// The engine thread dies at any step of a chain: both cores, each with the table of rget FIFOs that ships, break it off, and
// the next one goes through the same rget FIFOs by engines of their own.
import {
  CONTEXT_NOTICE_SEEN_OFFSET,
  NONE,
  RGET_FIFO_RESULT_OFFSET,
  RGET_FIFO_WRONG_OFFSET,
  TASK_NOTICE_OFFSET,
  TRANSFER_BROKEN,
} from "../../../assembly/layout.js";
import { ERROR, type Result, SUCCESS } from "../../../src/core/result.js";
import { RegionTable } from "../../../src/memory/regions.js";
import { ContextEngine } from "../../../src/node/engine.js";
import { gracePeriods, markEngineDead } from "../../../src/node/liveness.js";
import type { ContextParts } from "../../../src/protocol/base.js";
import { type RgetFifo, TransferTable } from "../../../src/protocol/rendezvous/transfers.js";
import { chainWords, type Region, sideOf } from "../../support/chains.js";
import { map } from "../control.js";
import type { Scenario } from "../scenario.js";
import type { World } from "../world.js";
import { PAGE, same, serveForever, setUp } from "./support.js";

/** Task 0 offers something to task 1, and then something else. */
const ORIGIN = 0;
const TARGET = 1;
/** Transfers of a schedule in which the engine thread dies. */
const TIMES = 2;
const FRAGMENT = 8;
const WORDS = 3;

/** Of a task, at its last places: its data, and the links of what it receives. */
const DATA = 0;
const LINKS = 1;
/** Where the payload of each transfer lies in the origin's data, and goes in the target's. */
const payloadAt = (time: number): number => 64 * time;
/** Where in the origin's data it says which rget FIFO it has opened: four words, and before them how many were told. */
const TOLD_AT = 1024;
const LINKS_AT = 2048;

/** In the heap: a page for each task; the blocks of rget FIFOs come with the tables. */
function regionOf(task: number, which: number): Region {
  const base = map.heapBase + task * PAGE + (which === DATA ? 0 : LINKS_AT);
  return { index: (task + 1) * map.regions - 1 - which, generation: 1, base };
}

const word = (task: number, time: number, i: number): number => regionOf(task, DATA).base + payloadAt(time) + 4 * i;
const payloadWord = (time: number, i: number): number => 100 * (time + 1) + i;
const told = (i: number): number => regionOf(ORIGIN, DATA).base + TOLD_AT + 4 * i;
const PLACES = Array.from({ length: WORDS }, (_, i) => i);

function setup(world: World): void {
  const { kernel } = world;
  setUp(world, [ORIGIN, TARGET]);
  for (const task of [ORIGIN, TARGET]) {
    same("where its data are", [kernel.regionAllocate(map.job, 1, task)], [regionOf(task, DATA).base]);
    kernel.regionOpen(map.job, regionOf(task, DATA).index, regionOf(task, DATA).base, LINKS_AT);
    kernel.regionOpen(map.job, regionOf(task, LINKS).index, regionOf(task, LINKS).base, PAGE - LINKS_AT);
    for (let time = 0; time < TIMES; time++) {
      for (const i of PLACES) world.setWord(word(task, time, i), task === ORIGIN ? payloadWord(time, i) : 0);
    }
  }
  world.setWord(told(0), 0);
}

/** A task's core: what its context does with its rget FIFOs. */
class Core {
  readonly results: Result[] = [];
  readonly #world: World;
  readonly #task: number;
  readonly #context: number;
  readonly #engine: ContextEngine;
  readonly #rgetFifos: TransferTable;
  #notice = 0;

  constructor(world: World, task: number) {
    const { kernel, memory } = world;
    this.#world = world;
    this.#task = task;
    this.#context = world.context(task * map.contexts);
    this.#engine = new ContextEngine(kernel, map, task * map.contexts);
    const base = { kernel, memory, map, ordinal: task * map.contexts, block: this.#context, engine: this.#engine };
    this.#rgetFifos = new TransferTable(
      base as unknown as ContextParts,
      new RegionTable({ kernel, memory, map, task: task, grace: gracePeriods(kernel, map) }),
      () => {},
    );
  }

  /** @param breakOff see Side */
  open(peer: number, resultOffset: number, breakOff: (rgetFifo: RgetFifo) => boolean): RgetFifo {
    const make = (rgetFifo: RgetFifo) => ({
      rgetFifo,
      resultOffset,
      forget: () => {},
      breakOff: () => breakOff(rgetFifo),
      over: (result: Result) => void this.results.push(result),
    });
    const side = this.#rgetFifos.open(peer * map.contexts, NONE, make);
    if (side === undefined) throw new Error("no rget FIFO");
    return side.rgetFifo;
  }

  /** The engine has something to do. */
  call(): void {
    if (!this.#engine.isOwn) this.#engine.call();
  }

  /** Until it is so. */
  await_(isSo: () => boolean): void {
    const { kernel } = this.#world;
    const slot = this.#world.task(this.#task);
    while (!this.#turn(isSo)) {
      const seen = kernel.bellArm(slot);
      if (!isSo() && !this.#rgetFifos.hasWork && !this.#hasNews) kernel.bellWait(slot, seen, -1);
      kernel.bellDisarm(slot);
    }
  }

  get #hasNews(): boolean {
    return this.#world.kernel.loadWord(this.#world.task(this.#task) + TASK_NOTICE_OFFSET) !== this.#notice;
  }

  /** One advance(). */
  #turn(isSo: () => boolean): boolean {
    const { kernel } = this.#world;
    const notice = kernel.loadWord(this.#world.task(this.#task) + TASK_NOTICE_OFFSET);
    if (notice !== this.#notice) {
      this.#notice = notice;
      if (this.#engine.hasEnded()) this.#rgetFifos.engineEnded(this.#engine.hadBegun());
      kernel.storeWord(this.#context + CONTEXT_NOTICE_SEEN_OFFSET, notice);
    }
    this.#rgetFifos.advance();
    return isSo();
  }
}

/** Offers, each as soon as what was before is over; then the payload's memory is its own again. */
const offers =
  (times: number) =>
  (world: World): void => {
    const { kernel } = world;
    const core = new Core(world, ORIGIN);
    for (let time = 0; time < times; time++) {
      const rgetFifo = core.open(
        TARGET,
        RGET_FIFO_RESULT_OFFSET,
        ({ pointer }) => kernel.chainBreak(map.job, pointer) !== 0,
      );
      const { region, offset, generation } = rgetFifo;
      [region.index, region.generation, offset, generation].forEach((value, i) => void world.store(told(1 + i), value));
      kernel.storeWord(told(0), time + 1);
      kernel.ring(world.task(TARGET));
      core.await_(() => core.results.length > time);
      for (const i of PLACES) world.store(word(ORIGIN, time, i), 7);
      world.note(core.results[time] as Result);
    }
  };

/** Takes what is offered, at depth 1; then it has the memory for itself. */
const takes =
  (times: number) =>
  (world: World): void => {
    const { kernel } = world;
    const core = new Core(world, TARGET);
    for (let time = 0; time < times; time++) {
      core.await_(() => kernel.loadWord(told(0)) > time);
      const [index = 0, generation = 0, offset = 0, own = 0] = [1, 2, 3, 4].map((i) => world.load(told(i)));
      const origin = { ...sideOf(map, ORIGIN, { index, generation, base: 0 }, 0), offset };
      const ordinal = ORIGIN * map.contexts;
      const rgetFifo = core.open(ORIGIN, RGET_FIFO_WRONG_OFFSET, () => {
        kernel.chainNotice(map.job, index, generation, offset, own, ordinal, TRANSFER_BROKEN);
        return true;
      });
      const block = { index: rgetFifo.region.index, generation: rgetFifo.region.generation, base: 0 };
      const plan = {
        origin,
        target: { ...sideOf(map, TARGET, block, 0), offset: rgetFifo.offset },
        generation: own,
        payload: regionOf(ORIGIN, DATA),
        from: payloadAt(time),
        destination: regionOf(TARGET, DATA),
        to: payloadAt(time),
        links: regionOf(TARGET, LINKS),
        bytes: 4 * WORDS,
        fragment: FRAGMENT,
        depth: 1,
      };
      for (const [at, value] of chainWords(plan)) world.store(rgetFifo.pointer + at, value);
      if (kernel.chainWrite(map.job, rgetFifo.pointer) === 0) throw new Error("the origin's rget FIFO is not there");
      core.call();
      core.await_(() => core.results.length > time);
      const result = core.results[time] as Result;
      if (result === SUCCESS) {
        const words = PLACES.map((i) => world.load(word(TARGET, time, i)));
        same(
          "what was told to be there",
          words,
          PLACES.map((i) => payloadWord(time, i)),
        );
      }
      for (const i of PLACES) world.store(word(TARGET, time, i), 7);
      world.note(result);
    }
  };

/** What both sides may have got, transfer by transfer; and their memory is theirs. */
function check(world: World, times: number, [atOrigin = [], atTarget = []]: readonly (readonly number[])[]): void {
  same("how many were over", [atOrigin.length, atTarget.length], [times, times]);
  for (let time = 0; time < times; time++) {
    const [origin, target] = [atOrigin[time], atTarget[time]];
    // It may have died between telling the target, and the origin.
    const isRight =
      origin === ERROR ? target === SUCCESS || target === ERROR : origin === SUCCESS && target === SUCCESS;
    if (!isRight) throw new Error(`transfer ${time}: the origin got ${origin}, the target ${target}`);
    // It was dead by then.
    if (time > 0 && atOrigin[time - 1] === ERROR) same("what the origin got", [origin as number], [SUCCESS]);
    const words = PLACES.flatMap((i) => [world.word(word(ORIGIN, time, i)), world.word(word(TARGET, time, i))]);
    same(
      "what was written once it was over",
      words,
      words.map(() => 7),
    );
  }
}

export const ENGINE_DIES_CHAIN_SCENARIOS: readonly Scenario[] = [
  {
    name: "P10: the engine thread dies with a chain under way: both sides are told once, and the next one needs none",
    engine: true,
    bound: 0, // with 1 there are more than 200,000 schedules
    mortal: [2],
    endless: [2],
    monitor: ({ kernel }) => markEngineDead(kernel, map),
    setup,
    threads: [offers(TIMES), takes(TIMES), serveForever],
    check: (world, notes) => check(world, TIMES, notes),
  },
  {
    name: "P11: the last look of a core before it sleeps, while the engine thread is at its chain",
    engine: true,
    bound: 1,
    endless: [2],
    setup,
    threads: [offers(1), takes(1), serveForever],
    check: (world, notes) => check(world, 1, notes),
  },
];
