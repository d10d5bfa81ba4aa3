// job.dump(): the state of a job, read from its shared memory without stopping anybody: each number is right, two of
// them may be from different moments.
import {
  CONTEXT_BATCHES_OFFSET,
  CONTEXT_MESSAGES_OFFSET,
  CONTEXT_STATE_OFFSET,
  EXTENT_FREE,
  EXTENT_LANE,
  EXTENT_OWNER_MASK,
  EXTENT_OWNER_SHIFT,
  EXTENT_PAGES_MASK,
  EXTENT_STATE_SHIFT,
  INJECTION_HEAD_OFFSET,
  INJECTION_PENDING_OFFSET,
  INJECTION_REFUSED_OFFSET,
  INJECTION_TAIL_OFFSET,
  JOB_STARTED_OFFSET,
  LANE_CAPACITY_OFFSET,
  LANE_FULLS_OFFSET,
  LANE_HEAD_OFFSET,
  LANE_NEXT_OFFSET,
  LANE_PAUSED_OFFSET,
  LANE_RESERVED_OFFSET,
  LANE_ROOM_WANTED_OFFSET,
  LANE_TAIL_OFFSET,
  PAGE_SIZE,
  TASK_PARKED_OFFSET,
  TASK_STATE_OFFSET,
} from "../../assembly/layout.js";
import type { Kernel, Memory } from "../kernel/kernel.js";
import { contextBlock, injectionFifo, isClosed, type MemoryMap, ordinalOf, taskSlot } from "../memory/map.js";

const STATES = ["absent", "up", "closed", "dead"] as const;

export interface LaneDump {
  /** Task and context of the origin. */
  readonly origin: readonly [task: number, context: number];
  readonly bytes: number;
  /** Bytes committed and not yet taken. */
  readonly queued: number;
  /** Bytes of the reservation that is open: the lane waits for its commit or abort. */
  readonly reserved: number;
  /** The origin waits for room. */
  readonly roomWanted: boolean;
  /** The target does not read it, since its unexpected queue is full. */
  readonly paused: boolean;
  /** Times that a record found no room. */
  readonly fulls: number;
}

/** An injection FIFO: the one-sided operations that were not done at once. */
export interface InjectionDump {
  readonly fifo: number;
  readonly slots: number;
  /** Descriptors that the engine has not processed. */
  readonly left: number;
  /** Callbacks and fences that have not been called. */
  readonly pending: number;
  /** Descriptors that were refused so far, since a region was closed meanwhile. */
  readonly refused: number;
}

export interface ContextDump {
  readonly context: number;
  readonly messages: number;
  readonly batches: number;
  /** Lanes to it. */
  readonly lanes: readonly LaneDump[];
  /** Its injection FIFOs, as far as they were used. */
  readonly injections: readonly InjectionDump[];
}

/** Bytes of the heap: whole pages. */
export interface HeapDump {
  readonly bytes: number;
  readonly free: number;
  /** Largest piece that is free. */
  readonly largest: number;
  /** Bytes of lanes and of regions, the closed ones included that may still be looked at; by the task that made them. */
  readonly owners: readonly { readonly task: number; readonly lanes: number; readonly regions: number }[];
}

export interface TaskDump {
  readonly task: number;
  readonly state: (typeof STATES)[number];
  /** Asleep, or about to be. */
  readonly parked: boolean;
  readonly contexts: readonly ContextDump[];
}

export interface Dump {
  readonly heap: HeapDump;
  readonly tasks: readonly TaskDump[];
  /** One line for each thing that stands still, and why. */
  readonly stuck: readonly string[];
  /** All of it as text. */
  toString(): string;
}

export function dumpJob(map: MemoryMap, { words }: Memory, kernel: Kernel): Dump {
  const word = (pointer: number): number => words[pointer >>> 2] as number;
  const stuck: string[] = [];

  function laneDump(lane: number, origin: number, name: string): LaneDump {
    const dump: LaneDump = {
      origin: [Math.floor(origin / map.contexts), origin % map.contexts],
      bytes: word(lane + LANE_CAPACITY_OFFSET),
      queued: (word(lane + LANE_TAIL_OFFSET) - word(lane + LANE_NEXT_OFFSET)) | 0,
      reserved: word(lane + LANE_RESERVED_OFFSET),
      roomWanted: kernel.loadWord(lane + LANE_ROOM_WANTED_OFFSET) !== 0,
      paused: word(lane + LANE_PAUSED_OFFSET) !== 0,
      fulls: word(lane + LANE_FULLS_OFFSET) >>> 0,
    };
    const path = `lane ${dump.origin.join(".")} → ${name}`;
    if (dump.reserved > 0)
      stuck.push(`${path}: a reservation of ${dump.reserved} bytes is neither committed nor aborted`);
    if (dump.paused) stuck.push(`${path}: not read, the unexpected queue of ${name} is full`);
    if (dump.roomWanted) {
      const held = (word(lane + LANE_TAIL_OFFSET) - kernel.loadWord(lane + LANE_HEAD_OFFSET)) | 0;
      stuck.push(`${path}: the origin waits for room, ${held} of ${dump.bytes} bytes are in use`);
    }
    return dump;
  }

  function contextDump(task: number, context: number): ContextDump {
    const block = contextBlock(map, ordinalOf(map, task, context));
    const lanes: LaneDump[] = [];
    // What the table of one that has closed names may be anybody's by now.
    const origins = isClosed(kernel, map, ordinalOf(map, task, context)) ? 0 : map.tasks * map.contexts;
    for (let origin = 0; origin < origins; origin++) {
      const lane = kernel.laneOf(block, origin);
      if (lane !== 0) lanes.push(laneDump(lane, origin, `${task}.${context}`));
    }
    const injections = Array.from({ length: map.fifos }, (_, fifo) => injectionDump(task, context, fifo));
    return {
      context,
      messages: word(block + CONTEXT_MESSAGES_OFFSET) >>> 0,
      batches: word(block + CONTEXT_BATCHES_OFFSET) >>> 0,
      lanes,
      injections: injections.filter((dump) => dump !== undefined),
    };
  }

  function injectionDump(task: number, context: number, fifo: number): InjectionDump | undefined {
    const pointer = injectionFifo(map, ordinalOf(map, task, context), fifo);
    const tail = kernel.loadWord(pointer + INJECTION_TAIL_OFFSET);
    if (tail === 0) return undefined;
    const left = (tail - kernel.loadWord(pointer + INJECTION_HEAD_OFFSET)) | 0;
    if (left > 0) {
      stuck.push(`injection FIFO ${fifo} of ${task}.${context}: ${left} descriptors wait for it to advance`);
    }
    return {
      fifo,
      slots: map.slots,
      left,
      pending: word(pointer + INJECTION_PENDING_OFFSET),
      refused: word(pointer + INJECTION_REFUSED_OFFSET) >>> 0,
    };
  }

  function heapDump(): HeapDump {
    const owners = Array.from({ length: map.tasks }, (_, task) => ({ task, lanes: 0, regions: 0 }));
    let free = 0;
    let largest = 0;
    let piece = 0;
    let pages = 0;
    for (let page = 0; page < map.heapPages; page += pages) {
      const extent = kernel.loadWord(map.heapTable + 4 * page);
      pages = extent & EXTENT_PAGES_MASK;
      if (pages === 0) break; // the table is changing under our eyes
      const bytes = pages * PAGE_SIZE;
      const state = extent >>> EXTENT_STATE_SHIFT;
      const owner = owners[(extent >>> EXTENT_OWNER_SHIFT) & EXTENT_OWNER_MASK];
      piece = state === EXTENT_FREE ? piece + bytes : 0;
      if (state === EXTENT_FREE) free += bytes;
      else if (owner !== undefined && state === EXTENT_LANE) owner.lanes += bytes;
      else if (owner !== undefined) owner.regions += bytes;
      largest = Math.max(largest, piece);
    }
    const used = owners.filter(({ lanes, regions }) => lanes + regions > 0);
    return { bytes: map.heapPages * PAGE_SIZE, free, largest, owners: used };
  }

  const started = kernel.loadWord(map.job + JOB_STARTED_OFFSET);
  const tasks = Array.from({ length: started }, (_, task): TaskDump => {
    const slot = taskSlot(map, task);
    const state = STATES[kernel.loadWord(slot + TASK_STATE_OFFSET)] ?? "absent";
    // What an ended task's tables name may be anybody's by now.
    const count = state === "up" || state === "absent" ? map.contexts : 0;
    const contexts = Array.from({ length: count }, (_, context) => contextDump(task, context));
    return {
      task,
      state,
      parked: kernel.loadWord(slot + TASK_PARKED_OFFSET) !== 0,
      contexts: contexts.filter(
        ({ context, lanes }) =>
          lanes.length > 0 || word(contextBlock(map, ordinalOf(map, task, context)) + CONTEXT_STATE_OFFSET) !== 0,
      ),
    };
  });
  const dump = { heap: heapDump(), tasks, stuck };
  return { ...dump, toString: () => dumpText(dump) };
}

function dumpText({ heap, tasks, stuck }: Omit<Dump, "toString">): string {
  const lines = [`heap: ${heap.free} of ${heap.bytes} bytes free, ${heap.largest} in one piece`];
  for (const { task, lanes, regions } of heap.owners) {
    lines.push(`  of task ${task}: lanes ${lanes} bytes, regions ${regions} bytes`);
  }
  for (const { task, state, parked, contexts } of tasks) {
    lines.push(`task ${task}: ${state}${parked ? ", parked" : ""}`);
    for (const { context, messages, batches, lanes, injections } of contexts) {
      lines.push(`  context ${context}: ${messages} messages in ${batches} batches`);
      for (const lane of lanes) {
        lines.push(
          `    from ${lane.origin.join(".")}: ${lane.queued} of ${lane.bytes} bytes queued, full ${lane.fulls} times`,
        );
      }
      for (const { fifo, slots, left, pending, refused } of injections) {
        lines.push(
          `    injection FIFO ${fifo} of ${slots} slots: ${left} left, ${pending} callbacks pending, ${refused} refused`,
        );
      }
    }
  }
  return [...lines, ...stuck.map((line) => `stuck: ${line}`)].join("\n");
}
