// What the scenarios share: how a target takes what comes, and what should have come.
import {
  ADVANCE_EVENTS_MASK,
  CONTEXT_EVENTS_OFFSET,
  CONTEXT_OPEN,
  CONTEXT_STATE_OFFSET,
  EVENT_SIZE,
  KIND_SWITCH,
  RECORD_KIND_MASK,
  RECORD_KIND_SHIFT,
  TASK_STATE_OFFSET,
  TASK_UP,
} from "../../../assembly/layout.js";
import { MemRegion, type RegionHandle } from "../../../src/core/region.js";
import { engineSlot } from "../../../src/memory/map.js";
import { sleepUntilCalled } from "../../../src/node/serve.js";
import type { Client } from "../../../src/pami/client.js";
import { map } from "../control.js";
import type { Scenario } from "../scenario.js";
import type { World } from "../world.js";

/** Ordinals of the endpoints: of tasks 0, 1 and 2, whose threads have the same numbers. */
export const TARGET = 0;
export const ORIGIN = 2;
export const OTHER = 4;

export const PAGE = 4096;
/** A scenario whose threads stand for processes. No sleep ends by itself there: each needs its wake-up. */
export function betweenProcesses(scenario: Scenario): Scenario {
  return { ...scenario, name: `between processes: ${scenario.name}`, processes: { sleepsEnd: false } };
}

/** Bytes of the regions that are there from the start. */
const START_BYTES = 64;

/** Handle of the first region that a task makes at one of its first places. */
export function handleOf({ map }: World, task: number, place: number): RegionHandle {
  return 2 ** 20 + task * map.regions + place;
}

/**
 * Before all else: gives a task a region, in the heap's first page and at its last place, whose words are 0, 1, …. Its
 * client knows nothing of it: what it makes itself is at the places before.
 */
export function openAtStart(world: World, task: number): void {
  const { kernel, map } = world;
  const base = kernel.regionAllocate(map.job, 1, task);
  for (let at = 0; at < START_BYTES; at += 4) world.setWord(base + at, at / 4);
  kernel.regionOpen(map.job, (task + 1) * map.regions - 1, base, START_BYTES);
}

/** That region, as its task has it. */
export function regionAtStart({ memory, map }: World, task: number): MemRegion {
  const bytes = memory.bytes.subarray(map.heapBase, map.heapBase + START_BYTES);
  return new MemRegion(bytes, (task + 1) * map.regions - 1, 1, () => {});
}

/** A region whose handle was read. A region that no other task can know is free as soon as it closes. */
export function knownRegion(client: Client, bytes: number): MemRegion {
  const region = client.createRegion(bytes);
  void region.handle;
  return region;
}

/** Whether a call of the runtime throws this code. */
export function throws(code: string, call: () => unknown): boolean {
  try {
    call();
    return false;
  } catch (error) {
    if ((error as { code?: string }).code === code) return true;
    throw error;
  }
}

/** Throws what differs. */
export function same(what: string, is: readonly number[], should: readonly number[]): void {
  let equal = is.length === should.length;
  for (let i = 0; equal && i < is.length; i++) equal = is[i] === should[i];
  if (!equal) throw new Error(`${what}: ${JSON.stringify(is)}, not ${JSON.stringify(should)}`);
}

/** Meta word and first body word of the first messages. */
export function messages(count: number): number[] {
  const all: number[] = [];
  for (let i = 0; i < count; i++) all.push(i + 1, 100 + i);
  return all;
}

/** Sends the message of a number, as messages() has it; false: no room. */
export function send(world: World, lane: number, number: number): boolean {
  return world.kernel.laneSendWords(lane, 4, number + 1, 100 + number, 0) === 1;
}

/** A lane of 64 bytes, three small records, whose positions wrap at 2^32 `before` bytes from its start. */
export function smallLane(world: World, before = 16): number {
  return world.openAt(2 ** 32 - before, ORIGIN, TARGET, 64, 48);
}

/** Notes the messages of the batch in hand; returns origin and successor of each lane that has ended. */
export function noteEvents(world: World, count: number): number[] {
  const switches: number[] = [];
  for (let i = 0; i < count; i++) {
    const event = world.context(TARGET) + CONTEXT_EVENTS_OFFSET + EVENT_SIZE * i;
    const body = world.load(world.load(event + 8));
    if (((world.load(event) >>> RECORD_KIND_SHIFT) & RECORD_KIND_MASK) === KIND_SWITCH) {
      switches.push(world.load(event + 12), body >>> 0);
    } else {
      world.note(world.load(event + 4));
      world.note(body);
    }
  }
  return switches;
}

/** One advance of the target: notes what came, switches lanes that have ended, and releases. Returns events. */
export function take(world: World): number {
  const { kernel } = world;
  const context = world.context(TARGET);
  const count = kernel.advance(context, 1) & ADVANCE_EVENTS_MASK;
  if (count === 0) return 0;
  const switches = noteEvents(world, count);
  kernel.release(context);
  for (let i = 0; i < switches.length; i += 2) {
    kernel.laneSwitch(world.map.job, context, switches[i] as number, switches[i + 1] as number);
  }
  return count;
}

/** What is left once all threads are through: all that the last look before a sleep would wake for. */
export function rest(world: World): readonly number[] {
  const before = world.notes.length;
  // A ready bit that came after its lane had gone is cleared by the first advance() that finds nothing there.
  for (let idle = 0; world.kernel.peek(world.context(TARGET)) !== 0; ) {
    idle = take(world) === 0 ? idle + 1 : 0;
    if (idle > 2) throw new Error("the last look finds something, advance() does not");
  }
  return world.notes.slice(before);
}

/** The engine thread: as serve(), but it does not spin. */
export function serveForever({ kernel, memory }: World): void {
  for (;;) {
    while (kernel.engineServe(map.job) !== 0);
    sleepUntilCalled(kernel, memory, map.job, engineSlot(map), () => false);
  }
}

/** Says that these tasks are there, each with its first context, and the engine thread. */
export function setUp(world: World, tasks: readonly number[]): void {
  for (const task of tasks) {
    world.setWord(world.task(task) + TASK_STATE_OFFSET, TASK_UP);
    world.setWord(world.context(map.contexts * task) + CONTEXT_STATE_OFFSET, CONTEXT_OPEN);
  }
  world.setWord(engineSlot(map) + TASK_STATE_OFFSET, TASK_UP);
}

/** Sleeps on a task's bell until `look` sees what it waits for. */
export function sleepUntil({ kernel }: World, slot: number, look: () => boolean): void {
  for (let isOver = look(); !isOver; ) {
    const seen = kernel.bellArm(slot);
    isOver = look();
    if (!isOver) kernel.bellWait(slot, seen, -1);
    kernel.bellDisarm(slot);
    isOver ||= look();
  }
}
