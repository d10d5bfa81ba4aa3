// A task that dies at any step: the others hear of it, nobody sleeps for ever, what it sent before is whole, and all
// memory comes back. The clients, the contexts and what the monitor does are those of the runtime.
import { CONTEXT_NOTICE_SEEN_OFFSET, OPEN_BUSY, OPEN_NO_MEMORY } from "../../../assembly/layout.js";
import { type Endpoint, endpointOf } from "../../../src/core/endpoint.js";
import type { Message } from "../../../src/core/message/message.js";
import { EAGAIN, SHUTDOWN, SUCCESS } from "../../../src/core/result.js";
import { markDead } from "../../../src/node/liveness.js";
import type { Context } from "../../../src/pami/context.js";
import type { Scenario } from "../scenario.js";
import type { World } from "../world.js";
import { betweenProcesses, ORIGIN, same, TARGET } from "./support.js";

const DISPATCH = 5;
/** Note of a thread: its target has ended. */
const ENDED = -1;
/** Note of the monitor: the mortal thread was killed. */
export const KILLED = -2;

const PAYLOADS = Array.from({ length: 8 }, (_, i) => Uint8Array.from([i + 1, 0, 0, 0]));

/** Thread that waits for the end of another, and marks it dead if it was killed. */
export function monitor(mortal: number) {
  return (world: World): void => {
    world.awaitEnd(mortal);
    if (!world.isDead(mortal)) return;
    world.note(KILLED);
    markDead(world.kernel, world.map, mortal);
  };
}

/** A context that notes the number in each message. */
function open(world: World, task: number): { context: Context; close: () => void } {
  const client = world.client(task);
  const context = client.createContext({ spin: 0, pendingBytes: 0 });
  context.dispatch(DISPATCH, (message: Message) => world.note(message.getInt32(0)));
  return { context, close: () => client.close() };
}

/** Whether the task has heard of the other's end, and no lane between the two is left. */
function isOver(world: World, task: number): boolean {
  const context = task === 0 ? TARGET : ORIGIN;
  if (world.load(world.context(context) + CONTEXT_NOTICE_SEEN_OFFSET) === 0) return false;
  return world.kernel.laneOf(world.context(TARGET), ORIGIN) === 0;
}

/** Sends `count` numbers, waiting where there is no room; notes ENDED if the target has ended. */
function sendNumbers(context: Context, to: Endpoint, count: number, world: World): void {
  for (let i = 0; i < count; ) {
    const result = context.sendImmediate(to, DISPATCH, null, PAYLOADS[i]);
    if (result === SUCCESS) i++;
    else if (result === SHUTDOWN) {
      world.note(ENDED);
      return;
    } else if (result === EAGAIN) {
      let told = false;
      context.whenRoom(to, 4, () => {
        told = true;
      });
      context.advanceUntil(() => told);
    } else throw new Error(`sendImmediate() came to ${result}`);
  }
}

/** All of 1 … `most` that came, in order; all of them unless the sender was killed. */
function checkNumbers(taken: readonly number[], most: number, killed: boolean): void {
  const length = killed ? Math.min(taken.length, most) : most;
  same(
    "messages",
    taken,
    Array.from({ length }, (_, i) => i + 1),
  );
}

function allFree({ kernel, map }: World): void {
  const free = kernel.heapFreePages(map.job);
  if (free !== map.heapPages) throw new Error(`${map.heapPages - free} pages were lost`);
}

/** The end of whoever was not killed: hears of the other's end, and can have memory at once. */
function outlive(world: World, task: number, context: Context): void {
  const { kernel, map } = world;
  context.advanceUntil(() => isOver(world, task));
  const extent = kernel.heapAllocate(map.job, 1, task);
  if (extent === OPEN_BUSY || extent === OPEN_NO_MEMORY) throw new Error(`heapAllocate() gave ${extent}`);
  kernel.heapFree(map.job, extent);
  // Whoever stays until all have been told has the rest.
  world.awaitEnd(2);
  context.advance();
}

/** Sends two numbers, the second by the lane that replaces the first. */
function sendByTwoLanes(world: World): void {
  const { kernel, map } = world;
  const sendTo = (lane: number, number: number): void => void kernel.laneSendWords(lane, 4, DISPATCH, number, 0);
  const lane = kernel.laneOpen(map.job, ORIGIN, TARGET, 64, 48);
  sendTo(lane, 1);
  sendTo(kernel.laneReplace(map.job, lane, 128, 48), 2);
}

/** Sends a number; then another one, which it writes in place; then it reserves a place, and gives it up. */
function sendInPlace(world: World, context: Context): void {
  const to = endpointOf(0, 0);
  sendNumbers(context, to, 1, world);
  const at = context.reserve(to, DISPATCH, 4);
  if (at < 0) throw new Error(`reserve() came to ${at}`);
  world.store(at, 2);
  context.commit(to);
  if (context.reserve(to, DISPATCH, 4) >= 0) context.abort(to);
}

/** Each as the other one's origin or target; `send`: what the origin does. */
function originDies(name: string, send: (world: World, context: Context) => void): Scenario {
  return {
    name,
    mortal: [1],
    bound: 0,
    setup() {},
    threads: [
      (world) => {
        const { context, close } = open(world, 0);
        outlive(world, 0, context);
        close();
      },
      (world) => {
        const { context, close } = open(world, 1);
        send(world, context);
        close();
      },
      monitor(1),
    ],
    check(world, [taken = [], , monitored = []]) {
      checkNumbers(taken, 2, monitored.includes(KILLED));
      allFree(world);
    },
  };
}

function targetDies(name: string, send: (world: World, context: Context) => void): Scenario {
  return {
    name,
    mortal: [0],
    bound: 0,
    setup() {},
    threads: [
      (world) => {
        const { context, close } = open(world, 0);
        let rounds = 0;
        context.advanceUntil(() => ++rounds > 3);
        close();
      },
      (world) => {
        const { context, close } = open(world, 1);
        send(world, context);
        outlive(world, 1, context);
        close();
      },
      monitor(0),
    ],
    check(world, [taken = []]) {
      checkNumbers(taken, taken.length, true);
      allFree(world);
    },
  };
}

/**
 * Two watches mark the same task dead, and one of them may die itself: that of thread 0, which goes on, and thread 2, which is
 * another process.
 */
const MARKED_TWICE: Scenario = {
  name: "two survivors mark a task dead, of which one may die meanwhile",
  mortal: [1, 2],
  deaths: 2,
  bound: 0,
  setup() {},
  threads: [
    (world) => {
      const { context, close } = open(world, 0);
      world.awaitEnd(1);
      if (world.isDead(1)) markDead(world.kernel, world.map, 1);
      outlive(world, 0, context);
      close();
    },
    (world) => {
      const { context, close } = open(world, 1);
      sendNumbers(context, endpointOf(0, 0), 2, world);
      close();
    },
    monitor(1),
  ],
  check(world, [taken = [], , monitored = []]) {
    checkNumbers(taken, 2, monitored.includes(KILLED) || taken.length < 2);
    allFree(world);
  },
};

const SCENARIOS: readonly Scenario[] = [
  MARKED_TWICE,
  originDies("an origin dies: its target gets what was sent, and the memory", (world, context) =>
    sendNumbers(context, endpointOf(0, 0), 2, world),
  ),
  originDies("an origin dies while it replaces its lane", sendByTwoLanes),
  originDies("an origin dies while it holds a reservation", sendInPlace),
  targetDies("a target dies: who sends to it hears of it, and takes the lane back", (world, context) =>
    sendNumbers(context, endpointOf(0, 0), 5, world),
  ),
  targetDies("a target dies while its lane is replaced", sendByTwoLanes),
];

/** The same between processes, which a futex wakes. */
export const DEATH_SCENARIOS: readonly Scenario[] = SCENARIOS.flatMap((scenario) => [
  scenario,
  betweenProcesses(scenario),
]);
