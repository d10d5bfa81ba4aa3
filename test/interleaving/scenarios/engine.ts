// The engine thread, with the loop that ships: who calls it while it falls asleep, what it processes while its owner goes on,
// and what is closed while it is at it.
import {
  COMPLETION_RESULT_SHIFT,
  DESCRIPTOR_FENCE,
  DESCRIPTOR_GET,
  DESCRIPTOR_PUT,
  INJECTION_HEAD_OFFSET,
  INJECTION_STAGED_OFFSET,
  INJECTION_TAIL_OFFSET,
  JOB_DUE_OFFSET,
  NONE,
  TASK_CLOSED,
  TASK_STATE_OFFSET,
  TASK_TOLD_OFFSET,
  TASK_UP,
  TRANSFER_DONE,
  TRANSFER_LATER,
  TRANSFER_REMOTE_CLOSED,
} from "../../../assembly/layout.js";
import { endpointOf } from "../../../src/core/endpoint.js";
import { announceClose, announceEnds, hasEngineSeenAll, markDead, notifyEngine } from "../../../src/node/liveness.js";
import type { Client } from "../../../src/pami/client.js";
import type { Context } from "../../../src/pami/context.js";
import { map, SLICE } from "../control.js";
import type { Scenario } from "../scenario.js";
import type { World } from "../world.js";
import {
  handleOf,
  knownRegion,
  openAtStart,
  PAGE,
  regionAtStart,
  same,
  serveForever,
  setUp,
  sleepUntil,
  throws,
} from "./support.js";

/** Regions of a task, at its last places: what it puts, and what others put there; each a half of its page. */
const FROM = 0;
const TO = 1;
const HALF = PAGE / 2;

function regionOf(task: number, which: number): { index: number; base: number } {
  return { index: (task + 1) * map.regions - 1 - which, base: map.heapBase + task * PAGE + which * HALF };
}

/** Word of a region. */
const place = (task: number, which: number, word: number): number => regionOf(task, which).base + 4 * word;

/** Tasks 0 and 1 with their regions; word i of what task t puts is 100 (t + 1) + i. */
function setupTasks(world: World): void {
  setUp(world, [0, 1]);
  for (const task of [0, 1]) {
    world.kernel.regionAllocate(map.job, 1, task);
    for (let word = 0; word < 32; word++) {
      world.setWord(place(task, FROM, word), sourceWord(task, word));
      world.setWord(place(task, TO, word), 0);
    }
    for (const which of [FROM, TO]) {
      const { index, base } = regionOf(task, which);
      world.kernel.regionOpen(map.job, index, base, HALF);
    }
  }
}

const sourceWord = (task: number, word: number): number => 100 * (task + 1) + word;

/** What a task asks of the engine: a put of `count` words from word `from` on, to the other task's from word `to` on. */
interface Order {
  readonly kind: number;
  readonly from?: number;
  readonly to?: number;
  readonly count?: number;
  readonly completions: number;
  /** Generation of the region that it goes to. */
  readonly generation?: number;
}

/** Stages an order in a task's first FIFO. */
function stage(world: World, task: number, order: Order): void {
  const { kind, from = 0, to = from, count = 1, generation = 1 } = order;
  const [local, remote] = [regionOf(task, FROM).index, regionOf(1 - task, TO).index];
  const staged = world.fifo(map.contexts * task) + INJECTION_STAGED_OFFSET;
  const words = [kind, 4 * count, local, 1, 4 * from, remote, generation, 4 * to];
  for (const [i, value] of words.entries()) world.store(staged + 4 * i, value);
}

/** Injects an order, and calls the engine; false: no room. */
function inject(world: World, task: number, order: Order): boolean {
  const ordinal = map.contexts * task;
  stage(world, task, order);
  if (world.kernel.inject(world.fifo(ordinal), order.completions) === NONE) return false;
  world.kernel.engineCall(map.job, ordinal);
  return true;
}

/** After a run: nothing is left for the engine. */
function expectNothingLeft(world: World): void {
  same("what the engine is still to look at", [world.word(map.job + JOB_DUE_OFFSET)], [0]);
  for (const task of [0, 1]) {
    const fifo = world.fifo(map.contexts * task);
    same("slots processed", [world.word(fifo + INJECTION_HEAD_OFFSET)], [world.word(fifo + INJECTION_TAIL_OFFSET)]);
  }
}

/** A task's thread: injects orders as there is room, and takes their completions; asleep while there is neither. */
function issue(task: number, orders: readonly Order[]) {
  const due = orders.flatMap((order) => Array.from({ length: order.completions }, () => order));
  return (world: World): void => {
    const { kernel } = world;
    const fifo = world.fifo(map.contexts * task);
    let injected = 0;
    let taken = 0;
    sleepUntil(world, world.task(task), () => {
      while (injected < orders.length && inject(world, task, orders[injected] as Order)) injected++;
      while (kernel.completionTake(fifo) !== NONE) {
        const { to = 0 } = due[taken++] as Order;
        // The bit says that the bytes are there.
        same("a word that was put", [world.load(place(1 - task, TO, to))], [sourceWord(task, to)]);
      }
      return injected === orders.length && taken === due.length;
    });
    world.note(taken);
  };
}

const put = (word: number, completions: number): Order => ({ kind: DESCRIPTOR_PUT, from: word, to: word, completions });

function called(name: string, bound: number, ...orders: readonly (readonly Order[])[]): Scenario {
  return {
    name,
    engine: true,
    bound,
    endless: [orders.length],
    setup: setupTasks,
    threads: [...orders.map((of, task) => issue(task, of)), serveForever],
    check(world, notes) {
      expectNothingLeft(world);
      orders.forEach((of, task) => {
        const due = of.reduce((sum, { completions }) => sum + completions, 0);
        same(`completions of task ${task}`, notes[task] ?? [], [due]);
      });
    },
  };
}

/** Words of a put of three slices, and of one that is short. */
const LONG = (2 * SLICE + 4) / 4;
const SHORT_FROM = 20;
const SHORT_TO = 4;

/** Does the order at once, or has the engine thread do it; what fences say is noted, and completions are taken in order. */
class Submitter {
  readonly #world: World;
  readonly #fifo: number;
  /** Completions that are to come. */
  #due = 0;
  #last = NONE;

  constructor(world: World) {
    this.#world = world;
    this.#fifo = world.fifo(0);
  }

  submit(order: Order): void {
    stage(this.#world, 0, order);
    const result = this.#world.kernel.submit(map.job, this.#fifo, order.completions > 0);
    if (result === TRANSFER_LATER) this.inject(order);
    else same("the result of submit()", [result], [TRANSFER_DONE]);
  }

  inject(order: Order): void {
    sleepUntil(this.#world, this.#world.task(0), () => {
      this.take();
      return inject(this.#world, 0, order);
    });
    this.#due += order.completions + Number(order.kind === DESCRIPTOR_FENCE);
  }

  take(): void {
    for (;;) {
      const taken = this.#world.kernel.completionTake(this.#fifo);
      if (taken === NONE) return;
      this.#due--;
      this.#last = taken >>> COMPLETION_RESULT_SHIFT;
    }
  }

  /** What a fence says, once it does. */
  fence(): number {
    const order = { kind: DESCRIPTOR_FENCE, completions: 0 };
    this.take();
    stage(this.#world, 0, order);
    if (this.#world.kernel.submit(map.job, this.#fifo, true) === TRANSFER_DONE) return TRANSFER_DONE;
    this.inject(order);
    this.settle();
    return this.#last;
  }

  /** Sleeps until all completions that are to come are taken. */
  settle(): void {
    sleepUntil(this.#world, this.#world.task(0), () => {
      this.take();
      return this.#due === 0;
    });
  }
}

/** What is short is done at once, or behind what was injected before it; fences tell of both, and of what was refused. */
function submitted(): Scenario {
  return {
    name: "C2, C3, F3: something short is submitted while the engine thread processes what was injected before it",
    engine: true,
    endless: [1],
    setup: setupTasks,
    threads: [
      (world) => {
        const own = new Submitter(world);
        own.inject({ kind: DESCRIPTOR_PUT, count: LONG, completions: 1 });
        own.submit({ kind: DESCRIPTOR_PUT, from: SHORT_FROM, to: SHORT_TO, completions: 0 });
        world.note(own.fence());
        const words = Array.from({ length: LONG }, (_, i) => sourceWord(0, i === SHORT_TO ? SHORT_FROM : i));
        same(
          "what was put",
          words.map((_, i) => world.load(place(1, TO, i))),
          words,
        );
        own.inject({ kind: DESCRIPTOR_PUT, generation: 3, completions: 0 });
        world.note(own.fence());
        own.submit({ kind: DESCRIPTOR_PUT, from: SHORT_FROM, to: 0, completions: 0 });
        world.note(own.fence());
        same("the word that was put last", [world.load(place(1, TO, 0))], [sourceWord(0, SHORT_FROM)]);
      },
      serveForever,
    ],
    check(world, [notes = []]) {
      expectNothingLeft(world);
      same("what the fences say", notes, [TRANSFER_DONE, TRANSFER_REMOTE_CLOSED, TRANSFER_DONE]);
    },
  };
}

/** Whoever has taken the last callback is behind nothing, however far the engine thread says that it is. */
function submittedBehindTaken(): Scenario {
  return {
    name: "C7: something short is done at once by whoever has taken the callbacks of all that is before it",
    engine: true,
    endless: [1],
    setup: setupTasks,
    threads: [
      (world) => {
        const own = new Submitter(world);
        for (const word of [0, 1]) {
          own.inject(put(word, 1));
          own.settle();
          stage(world, 0, put(SHORT_FROM, 0));
          world.note(world.kernel.submit(map.job, world.fifo(0), false));
        }
      },
      serveForever,
    ],
    check(world, [notes = []]) {
      expectNothingLeft(world);
      same("what submit() gives", notes, [TRANSFER_DONE, TRANSFER_DONE]);
    },
  };
}

/**
 * Something ends while the engine thread has a long transfer of task 0's in its hands, one way or the other: whoever sees that
 * it has heard of that has the memory for itself.
 * @param end ends it, and tells the engine thread
 * @param task whose memory is written to
 */
function closed(name: string, kind: number, end: (world: World) => void): Scenario {
  const [task, which] = kind === DESCRIPTOR_PUT ? [1, TO] : [0, FROM];
  const words = Array.from({ length: LONG }, (_, i) => place(task, which, i));
  return {
    name,
    engine: true,
    endless: [1],
    setup(world) {
      setupTasks(world);
      inject(world, 0, { kind, count: LONG, completions: 1 });
    },
    threads: [
      (world) => {
        end(world);
        sleepUntil(world, world.task(0), () => hasEngineSeenAll(world.kernel, map));
        for (const word of words) world.store(word, 7);
      },
      serveForever,
    ],
    check(world) {
      same(
        "what was written once the engine thread had heard",
        words.map((word) => world.word(word)),
        words.map(() => 7),
      );
    },
  };
}

/** Task 0, which puts, has a region from the start; beside that, one page is free. */
function setupPage(world: World): void {
  setUp(world, []);
  openAtStart(world, 0);
  world.kernel.heapAllocate(map.job, map.heapPages - 2, 0);
}

/** A long put to the first region of a task, for the engine thread to do. */
function putLong(world: World, context: Context, task: number): void {
  const local = regionAtStart(world, 0);
  context.put({ to: endpointOf(task, 0), local, remote: handleOf(world, task, 0), bytes: 4 * LONG });
}

/** Makes a region of the one page that is free, and writes it; false: it is somebody's still. */
function takePage(world: World, client: Client): boolean {
  return !throws("PAMIR_NO_MEMORY", () => {
    const { byteOffset } = knownRegion(client, PAGE).bytes;
    for (let word = 0; word < LONG; word++) world.store(byteOffset + 4 * word, 7);
  });
}

/** At the end, the page is as its new owner left it. */
function checkPage(world: World): void {
  const page = map.heapBase + (map.heapPages - 1) * PAGE;
  const words = Array.from({ length: LONG }, (_, i) => world.word(page + 4 * i));
  same(
    "what the page's new owner wrote",
    words,
    words.map(() => 7),
  );
}

/** A page is had again that the engine thread may still put something to, by a thread that sleeps until then. */
function hadAgain(name: string, setup: (world: World) => void, end: (world: World, use: Used) => void): Scenario {
  return {
    name,
    engine: true,
    endless: [1],
    setup(world) {
      setupPage(world);
      setup(world);
    },
    threads: [
      (world) => {
        const client = world.client(0);
        const context = client.createContext({ spin: 0 });
        end(world, { client, context });
        let isHad = false;
        context.advanceUntil(() => {
          isHad ||= takePage(world, client);
          return isHad;
        });
      },
      serveForever,
    ],
    check: checkPage,
  };
}

interface Used {
  readonly client: Client;
  readonly context: Context;
}

const HAD_AGAIN: readonly Scenario[] = [
  hadAgain(
    "a closed region's page is used again once the engine thread has heard of it",
    () => {},
    (world, { client, context }) => {
      const region = knownRegion(client, PAGE);
      putLong(world, context, 0);
      region.close();
    },
  ),
  hadAgain(
    "a dead task's page is used again once the engine thread has heard of it",
    (world) => {
      const { kernel } = world;
      kernel.regionOpen(map.job, 2 * map.regions, kernel.regionAllocate(map.job, 1, 2), PAGE);
      world.setWord(world.task(2) + TASK_STATE_OFFSET, TASK_UP);
    },
    (world, { context }) => {
      putLong(world, context, 2);
      markDead(world.kernel, map, 2);
    },
  ),
];

/** Task 1 closes, or dies at any step of that: also while it calls the engine thread, between the flag and the ring. */
const CALLER_DIES: Scenario = {
  name: "a task dies while it calls the engine thread, which hears of its end all the same",
  engine: true,
  bound: 1,
  mortal: [1],
  endless: [2],
  setup: setupTasks,
  threads: [
    (world) => {
      const { kernel } = world;
      const isTold = (): boolean => kernel.loadWord(world.task(1) + TASK_TOLD_OFFSET) !== 0;
      sleepUntil(world, world.task(0), () => isTold() && hasEngineSeenAll(kernel, map));
    },
    (world) => {
      const { kernel } = world;
      kernel.engineCall(map.job, map.contexts);
      kernel.storeWord(world.task(1) + TASK_STATE_OFFSET, TASK_CLOSED);
      announceEnds(kernel, map, [1]);
    },
    serveForever,
  ],
  monitor: ({ kernel }) => markDead(kernel, map, 1),
  check(world) {
    expectNothingLeft(world);
  },
};

export const ENGINE_SCENARIOS: readonly Scenario[] = [
  called("C5: a task sleeps until its puts are complete, and the engine thread until it is called", 2, [
    put(0, 1),
    put(1, 1),
  ]),
  called(
    "C5: a task sleeps until there is room in its FIFO of four slots",
    2,
    [0, 1, 2, 3, 4].map((i) => put(i, i === 4 ? 1 : 0)),
  ),
  called("C5: two tasks call the engine thread while it falls asleep", 1, [put(0, 1)], [put(0, 1)]),
  submitted(),
  submittedBehindTaken(),
  closed("a region is closed while a put to it is in the engine thread's hands", DESCRIPTOR_PUT, ({ kernel }) => {
    kernel.regionClose(map.job, regionOf(1, TO).index);
    notifyEngine(kernel, map);
  }),
  closed("a task dies while a put to it is in the engine thread's hands", DESCRIPTOR_PUT, ({ kernel }) =>
    markDead(kernel, map, 1),
  ),
  closed("a task dies while a get of its own is in the engine thread's hands", DESCRIPTOR_GET, ({ kernel }) =>
    markDead(kernel, map, 0),
  ),
  closed("a context closes while a put of its own is in the engine thread's hands", DESCRIPTOR_PUT, ({ kernel }) =>
    announceClose(kernel, map, 0),
  ),
  ...HAD_AGAIN,
  CALLER_DIES,
];
