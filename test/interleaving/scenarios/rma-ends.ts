// What one-sided operations need ends while they are under way: their origin, the owner of the region that they go to, or
// that region alone. Whoever goes on hears of each operation once, and nothing is written late into what has another
// owner by then. The engine's slices are of SLICE bytes here: the long puts are of three.

import { endpointOf } from "../../../src/core/endpoint.js";
import type { MemRegion } from "../../../src/core/region.js";
import { ERROR, SHUTDOWN, SUCCESS } from "../../../src/core/result.js";
import { markDead } from "../../../src/node/liveness.js";
import type { Client } from "../../../src/pami/client.js";
import type { Context } from "../../../src/pami/context.js";
import { SLICE } from "../control.js";
import type { Scenario } from "../scenario.js";
import type { World } from "../world.js";
import { KILLED, monitor } from "./death.js";
import { handleOf, knownRegion, openAtStart, PAGE, regionAtStart, same, throws } from "./support.js";

const DISPATCH = 5;
const LONG = 2 * SLICE + 8;
const LONG_WORDS = LONG / 4;
/** Where the long put goes: its first word in the target's region. */
const PLACE = 2;
/** Note of a thread: it had the page of the one that ended. */
const HAD = 1;

/** Whether a context has heard of a task's end: what is put there from now on comes to SHUTDOWN. */
function hasHeard(world: World, context: Context, local: MemRegion, task: number): boolean {
  // An entry that is never opened: before the end, its handle is stale.
  const put = { to: endpointOf(task, 0), local, remote: handleOf(world, task, 2), bytes: 0 };
  return !throws("PAMIR_STALE", () => same("the result of a late put", [context.put(put)], [SHUTDOWN]));
}

/** Puts and fences of one context, each of which is to be called back as often as it has callbacks. */
class Calls {
  readonly #context: Context;
  readonly #due: number[] = [];

  constructor(context: Context) {
    this.#context = context;
  }

  readonly #called = (cookie: unknown, result: number): void => {
    if (result !== SUCCESS && result !== ERROR && result !== SHUTDOWN) throw new Error(`a callback got ${result}`);
    const left = --(this.#due as number[])[cookie as number];
    if (left < 0) throw new Error(`operation ${cookie} was called back too often`);
  };

  get isOver(): boolean {
    return this.#due.every((left) => left === 0);
  }

  /** A long put with both callbacks, of a region that may be closed, and of a task that may have ended. */
  put(world: World, local: MemRegion, task: number): void {
    const { length: cookie } = this.#due;
    const both = { onLocal: this.#called, onRemote: this.#called, cookie };
    const put = { to: endpointOf(task, 0), local, remote: handleOf(world, task, 0), bytes: LONG, ...both };
    this.#due.push(0);
    throws("PAMIR_STALE", () => {
      if (this.#context.put(put) === SUCCESS) this.#due[cookie] = 2;
    });
  }

  fence(task: number): void {
    const { length: cookie } = this.#due;
    this.#due.push(1);
    same("fence()", [this.#context.fence(endpointOf(task, 0), this.#called, cookie)], [SUCCESS]);
  }
}

const SEVENS: readonly number[] = Array.from({ length: LONG_WORDS }, () => 7);

/** Makes a region of the one page that there may be, and writes it; false: it is somebody's still. */
function takePage(world: World, client: Client): boolean {
  return !throws("PAMIR_NO_MEMORY", () => {
    const { byteOffset } = knownRegion(client, PAGE).bytes;
    for (const [i, value] of SEVENS.entries()) world.store(byteOffset + 4 * i, value);
    world.note(HAD);
  });
}

/** At the end, the page is as its new owner left it, if it has one. */
function checkPage(world: World, notes: readonly (readonly number[])[]): void {
  if (!notes.some((list) => list.includes(HAD))) return;
  const page = world.map.heapBase + (world.map.heapPages - 1) * PAGE;
  same(
    "what the page's new owner wrote",
    SEVENS.map((_, i) => world.word(page + 4 * i)),
    SEVENS,
  );
}

/** One page is free, for the region of task 0; `task`, which puts, has a region from the start. */
function setupPage(world: World, task: number): void {
  const { kernel, map } = world;
  openAtStart(world, task);
  kernel.heapAllocate(map.job, map.heapPages - 2, task);
}

/**
 * A task ends with its region open; one has a long put into it under way and is slow to hear of it; another one hears of
 * it and asks for the page. Whoever can have it first has it.
 */
function heardLate(name: string, end: (world: World) => void): Scenario {
  return {
    name,
    setup(world) {
      setupPage(world, 2);
      const { kernel, map } = world;
      kernel.regionOpen(map.job, 0, kernel.regionAllocate(map.job, 1, 0), PAGE);
    },
    threads: [
      end,
      (world) => {
        const client = world.client(1);
        const context = client.createContext({ spin: 0 });
        const local = regionAtStart(world, 2);
        context.advanceUntil(() => hasHeard(world, context, local, 0));
        if (!takePage(world, client)) client.close();
      },
      (world) => {
        const client = world.client(2);
        const context = client.createContext({ spin: 0 });
        const local = regionAtStart(world, 2);
        const calls = new Calls(context);
        calls.put(world, local, 0);
        world.awaitEnd(1);
        context.advanceUntil(() => hasHeard(world, context, local, 0) && calls.isOver);
        world.awaitEnd(0);
        for (let rounds = 0; rounds < 2; rounds++) context.advance();
        takePage(world, client);
      },
    ],
    check(world, notes) {
      same("who had the page", notes.flat(), [HAD]);
      checkPage(world, notes);
    },
  };
}

export const RMA_ENDS_SCENARIOS: readonly Scenario[] = [
  {
    name: "a region is closed while a long put into it is under way, and its page used again",
    setup: (world) => setupPage(world, 1),
    threads: [
      (world) => {
        const client = world.client(0);
        const context = client.createContext({ spin: 0 });
        knownRegion(client, PAGE).close();
        for (let tries = 0; tries < 2; tries++) {
          // That a page can be had is no event: it looks again after a while.
          context.advanceUntil(() => false, { timeout: 1 });
          if (takePage(world, client)) return;
        }
      },
      (world) => {
        const client = world.client(1);
        const [putting, other] = [client.createContext({ spin: 0 }), client.createContext({ spin: 0 })];
        const local = regionAtStart(world, 1);
        const calls = new Calls(putting);
        calls.put(world, local, 0);
        // This one is told of the closing first, and is at no region.
        other.advance();
        // A slice, then the notice: the last slice is still to come when the page may have another owner.
        putting.advance();
        world.awaitEnd(0);
        calls.fence(0);
        calls.put(world, local, 0);
        putting.advanceUntil(() => calls.isOver);
      },
    ],
    check: checkPage,
  },
  {
    name: "an origin dies with puts under way: the region at its target is whole, and all memory comes back",
    mortal: [1],
    bound: 0,
    setup: (world) => openAtStart(world, 0),
    threads: [
      (world) => {
        const client = world.client(0);
        const context = client.createContext({ spin: 0 });
        const own = regionAtStart(world, 0);
        context.dispatch(DISPATCH, () => {
          for (let i = 0; i < LONG_WORDS; i++) world.note(world.load(own.bytes.byteOffset + 4 * (PLACE + i)));
        });
        context.advanceUntil(() => hasHeard(world, context, own, 1));
        world.awaitEnd(2);
        // The message, the end of the lane behind it, and what else it had.
        for (let rounds = 0; rounds < 3; rounds++) context.advance();
        client.createRegion((world.map.heapPages - 1) * PAGE);
      },
      (world) => {
        const client = world.client(1);
        const context = client.createContext({ spin: 0 });
        const local = knownRegion(client, LONG);
        for (let i = 0; i < LONG_WORDS; i++) world.store(local.bytes.byteOffset + 4 * i, 100 + i);
        const to = endpointOf(0, 0);
        const remote = handleOf(world, 0, world.map.regions - 1);
        const onRemote = (_: unknown, result: number): void => world.note(result);
        let fenced = false;
        context.put({ to, local, remote, bytes: 4, onRemote });
        context.put({ to, local, remote, remoteOffset: 4 * PLACE, onLocal: onRemote, onRemote });
        context.fence(to, () => {
          fenced = true;
        });
        context.advanceUntil(() => fenced);
        context.sendImmediate(to, DISPATCH);
        local.close();
        client.close();
      },
      monitor(1),
    ],
    check(world, [told = [], called = [], monitored = []]) {
      const { bytes } = regionAtStart(world, 0);
      const before = Array.from({ length: bytes.length / 4 }, (_, i) => i);
      const now = before.map((i) => world.word(bytes.byteOffset + 4 * i));
      // The puts are in order, and so are the slices: of all their words the first ones are there.
      const order = [0, ...Array.from({ length: LONG_WORDS }, (_, i) => PLACE + i)];
      const put = [100, ...Array.from({ length: LONG_WORDS }, (_, i) => 100 + i)];
      const moved = order.filter((at) => now[at] !== before[at]).length;
      for (let i = 0; i < moved; i++) before[order[i] as number] = put[i] as number;
      same("the words of the target's region", now, before);
      // The message came behind the fence: it finds all words.
      if (told.length > 0) same("what the message found", told, put.slice(1));
      if (monitored.includes(KILLED)) return;
      same("words of the message, of the puts, and results", [told.length, moved, ...called], [10, 11, 0, 0, 0]);
    },
  },
  {
    name: "the owner of a region dies while another task puts into it, and then has its page",
    mortal: [0],
    bound: 1,
    setup: (world) => setupPage(world, 1),
    threads: [
      (world) => {
        const client = world.client(0);
        const context = client.createContext({ spin: 0 });
        const region = knownRegion(client, PAGE);
        context.advance();
        region.close();
        client.close();
      },
      (world) => {
        const client = world.client(1);
        const [putting, other] = [client.createContext({ spin: 0 }), client.createContext({ spin: 0 })];
        const local = regionAtStart(world, 1);
        const calls = new Calls(putting);
        // There are four slots: the second put waits for room.
        calls.put(world, local, 0);
        calls.fence(0);
        calls.put(world, local, 0);
        // The other context hears of the end first: what this one has under way is not over.
        other.advanceUntil(() => hasHeard(world, other, local, 0));
        world.awaitEnd(2);
        let isHad = takePage(world, client);
        putting.advanceUntil(() => {
          if (!hasHeard(world, putting, local, 0)) return false;
          // It may have begun after the end, and so have heard of it without an advance.
          other.advance();
          // Taken as soon as it can be had, and before the last callbacks.
          isHad ||= takePage(world, client);
          return calls.isOver;
        });
        for (const context of [putting, other]) context.advance();
        if (!isHad) takePage(world, client);
        putting.advance();
      },
      monitor(0),
    ],
    check(world, notes) {
      same("pages that the survivor had", notes[1] ?? [], [HAD]);
      checkPage(world, notes);
    },
  },
  heardLate("a task dies: nobody has its page while one that puts into it has not heard of it", ({ kernel, map }) =>
    markDead(kernel, map, 0),
  ),
  heardLate("a task closes: nobody has its page while one that puts into it has not heard of it", (world) =>
    world.client(0).close(),
  ),
];
