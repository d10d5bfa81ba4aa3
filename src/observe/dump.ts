// The state of a job, read from its shared memory while the tasks run. Each number is right; two numbers may be from
// different moments.
import * as L from "../../assembly/layout.js";
import { taskOf } from "../core/endpoint.js";
import type { Memory } from "../kernel/kernel.js";
import { contextBlock, engineSlot, injectionFifo, type MemoryMap, ordinalOf, taskSlot } from "../memory/map.js";
import { contextAt, endpointCount, taskAt } from "../node/address.js";
import { hasEngineThread, isEngineInline } from "../node/liveness.js";
import { WAITS } from "../node/wait-kinds.js";
import { type Clock, stampOf } from "../support/clock.js";

const CONTEXT_STATES = ["none", "open", "closed"] as const;
const STATES = ["absent", "up", "closed", "dead"] as const;

/** A lane from one context to another. */
export interface LaneDump {
  /** Task and context of the origin. */
  readonly origin: readonly [task: number, context: number];
  /** Size of its ring in bytes. */
  readonly bytes: number;
  /** Number of records taken from it so far. A larger lane that replaced it begins with 0. */
  readonly messages: number;
  /** Bytes that are committed and not yet taken. */
  readonly queued: number;
  /** Bytes of the open reservation, whose commit or abort the lane waits for. */
  readonly reserved: number;
  /** Whether the origin waits for room. */
  readonly roomWanted: boolean;
  /** Milliseconds for which the origin has waited for room; 0 if it does not wait. */
  readonly wantedFor: number;
  /** Whether the target has stopped reading it, because its unexpected queue has no room for the next message. */
  readonly paused: boolean;
  /** Milliseconds since the target stopped reading it; 0 if it reads. */
  readonly pausedFor: number;
  /** How many times a record found no room. */
  readonly fulls: number;
}

/** An injection FIFO, which holds the one-sided operations that were not done at once. */
export interface InjectionDump {
  /** Its number in its context. */
  readonly fifo: number;
  /** Number of slots. */
  readonly slots: number;
  /** Number of descriptors that the engine has not processed. */
  readonly left: number;
  /** Number of callbacks, of operations and fences, that were not called yet. */
  readonly pending: number;
  /** Number of descriptors that were refused so far, because a region was closed. */
  readonly refused: number;
}

/** An offered payload, as one of its sides sees it. */
export interface TransferDump {
  /** `origin`: this context offered it. `target`: it moves into a region of this task. */
  readonly side: "origin" | "target";
  /** Task and context of the other side. */
  readonly peer: readonly [task: number, context: number];
  /** Size of the payload in bytes. */
  readonly bytes: number;
  /** At the target: bytes that have not arrived. At the origin: 0, because only the target counts them. */
  readonly left: number;
  /** At the origin: number of fragments that have moved. At the target: 0. */
  readonly fragments: number;
  /** Number of its descriptors that the engine has not processed. */
  readonly queued: number;
}

/** The engine of long transfers. */
export interface EngineDump {
  /** As `job.engine`. */
  readonly mode: "inline" | "thread" | "ended";
  /** Whether the engine thread is asleep, or about to be. */
  readonly parked: boolean;
}

/** A context, with its lanes, injection FIFOs and transfers. */
export interface ContextDump {
  /** Its number in its task. */
  readonly context: number;
  /** `none`: it does not exist yet, and messages to it wait. */
  readonly state: "none" | "open" | "closed";
  /** Number of messages and packets that it has taken so far, modulo 2^32. */
  readonly messages: number;
  /** Number of looks at its lanes that found messages. A context that is behind finds several at once. */
  readonly batches: number;
  /** Its messages that wait for room, and the bytes that are kept for them. */
  readonly pending: { readonly messages: number; readonly bytes: number };
  /** Bytes of messages without a handler. */
  readonly unexpectedBytes: number;
  /** Dispatch id whose messages have waited longest for a handler or for `messages()`; undefined without one. */
  readonly handlerless: number | undefined;
  /** Number of calls without a reply. */
  readonly calls: number;
  /** Names of the waits in which it sleeps. */
  readonly waits: readonly string[];
  /** Lanes to it. */
  readonly lanes: readonly LaneDump[];
  /** Its injection FIFOs that were used. */
  readonly injections: readonly InjectionDump[];
  /** Payloads that it has offered, or that move into regions of its task. */
  readonly transfers: readonly TransferDump[];
}

/** The heap: bytes of whole pages. */
export interface HeapDump {
  /** Size of the heap. */
  readonly bytes: number;
  /** Free bytes, in all pieces. */
  readonly free: number;
  /** Bytes of the largest free piece. */
  readonly largest: number;
  /** Bytes of lanes and regions by the task that made them, including closed ones that may still be in use. */
  readonly owners: readonly { readonly task: number; readonly lanes: number; readonly regions: number }[];
  /** Bytes of those regions in pools of buffers for large payloads. */
  readonly pooled: number;
  /** Bytes of those regions in received buffers that tasks keep. */
  readonly kept: number;
}

/** A task. */
export interface TaskDump {
  /** Its number. */
  readonly task: number;
  /** `absent`: it has no client yet. `up`: it runs. `closed`: it has closed its client. `dead`: it ended without that. */
  readonly state: (typeof STATES)[number];
  /** Whether it is asleep, or about to be. */
  readonly parked: boolean;
  /** Milliseconds since it last fell asleep or woke; 0 if it has never slept. */
  readonly since: number;
  /** How many times it fell asleep. */
  readonly sleeps: number;
  /** Number of spins during which the awaited event came, modulo 2^32. */
  readonly spinsWon: number;
  /** Number of spins after which it slept, or during which another thread took its core, modulo 2^32. */
  readonly spinsLost: number;
  /** Contexts that it has made, or to which other contexts send. */
  readonly contexts: readonly ContextDump[];
}

/** The result of `job.dump()` and `client.dump()`. */
export interface Dump {
  /** Use of the heap. */
  readonly heap: HeapDump;
  /** The engine of long transfers. */
  readonly engine: EngineDump;
  /** All tasks, by number. */
  readonly tasks: readonly TaskDump[];
  /** A line for each operation that stands still, with the reason. */
  readonly stuck: readonly string[];
  /** Returns the dump as text. */
  toString(): string;
}

/** One node in the result of `job.dumpAll()`: the tasks that share one memory. */
export interface NodeDump {
  /** Numbers of its tasks. */
  readonly tasks: readonly number[];
  /**
   * `answered`: its dump is here. `silent`: it did not answer in time, because its thread is busy or blocked, or has not
   * begun. `ended`: its tasks have ended.
   */
  readonly state: "answered" | "silent" | "ended";
  /** State of its memory; undefined unless it answered. It also has those tasks of other nodes with which it talks. */
  readonly dump: Dump | undefined;
}

/** Milliseconds for which all tasks must be asleep before the dump reports it. */
const IDLE_MS = 1000;

/** Reads words that several threads change. */
interface Loader {
  loadWord(pointer: number): number;
}

/** A dump without its text: the part that is posted between threads. */
export type DumpData = Omit<Dump, "toString">;

/** A dump: its data, and its text. */
export function dumpJob(map: MemoryMap, memory: Memory, kernel: Loader, clock: Clock): Dump {
  return withText(dumpData(map, memory, kernel, clock));
}

/** Adds the text to a dump that was posted. */
export function withText(dump: DumpData): Dump {
  return { ...dump, toString: () => dumpText(dump) };
}

export function dumpData(map: MemoryMap, { words }: Memory, kernel: Loader, clock: Clock): DumpData {
  const word = (pointer: number): number => words[pointer >>> 2] as number;
  const stuck: string[] = [];
  const now = stampOf(clock, clock.now());
  /** Milliseconds since a time stamp; 0 if it lies in the future. */
  const since = (pointer: number): number => Math.max(0, (now - word(pointer)) | 0);
  /** The number of the task in a slot; NONE: the slot is free. */
  const numberAt = (slot: number): number => {
    const endpoint = kernel.loadWord(map.endpointsBase + 4 * ordinalOf(map, slot, 0)) >>> 0;
    return endpoint === L.NONE ? L.NONE : taskOf(endpoint);
  };
  const engine = engineDump();
  /** The component that descriptors wait for. */
  const engineOf = (name: string): string => (engine.mode === "thread" ? "the engine thread" : `${name} to advance`);

  function engineDump(): EngineDump {
    const isThread = hasEngineThread(kernel, map);
    const parked = isThread && kernel.loadWord(engineSlot(map) + L.TASK_PARKED_OFFSET) !== 0;
    return { mode: isEngineInline(kernel, map) ? "inline" : isThread ? "thread" : "ended", parked };
  }

  function laneDump(lane: number, origin: number, name: string, isOpen: boolean): LaneDump {
    const roomWanted = kernel.loadWord(lane + L.LANE_ROOM_WANTED_OFFSET) !== 0;
    // An agent pauses a lane for want of credits, and notes no time: that is no fault of the target's.
    const paused = word(lane + L.LANE_PAUSED_OFFSET) !== 0 && word(lane + L.LANE_PAUSED_SINCE_OFFSET) !== 0;
    const dump: LaneDump = {
      origin: [numberAt(taskAt(map, origin)), contextAt(map, origin)],
      bytes: word(lane + L.LANE_CAPACITY_OFFSET),
      messages: word(lane + L.LANE_MESSAGES_OFFSET) >>> 0,
      queued: (word(lane + L.LANE_TAIL_OFFSET) - word(lane + L.LANE_NEXT_OFFSET)) | 0,
      reserved: word(lane + L.LANE_RESERVED_OFFSET),
      roomWanted,
      wantedFor: roomWanted ? since(lane + L.LANE_WANTED_SINCE_OFFSET) : 0,
      paused,
      pausedFor: paused ? since(lane + L.LANE_PAUSED_SINCE_OFFSET) : 0,
      fulls: word(lane + L.LANE_FULLS_OFFSET) >>> 0,
    };
    const path = `lane ${dump.origin.join(".")} → ${name}`;
    if (dump.reserved > 0) {
      const slot = taskSlot(map, taskAt(map, origin));
      const asleep = kernel.loadWord(slot + L.TASK_PARKED_OFFSET) !== 0;
      const how = asleep ? `, its origin sleeps for ${seconds(since(slot + L.TASK_SINCE_OFFSET))}` : "";
      stuck.push(`${path}: a reservation of ${dump.reserved} bytes is neither committed nor aborted${how}`);
    }
    if (paused) stuck.push(`${path}: not read for ${seconds(dump.pausedFor)}, the unexpected queue of ${name} is full`);
    if (roomWanted) {
      const held = (word(lane + L.LANE_TAIL_OFFSET) - kernel.loadWord(lane + L.LANE_HEAD_OFFSET)) | 0;
      const inUse = `${held} of ${dump.bytes} bytes are in use`;
      stuck.push(`${path}: the origin waits for room for ${seconds(dump.wantedFor)}, ${inUse}`);
    }
    if (dump.queued > 0 && !isOpen)
      stuck.push(`${path}: ${dump.queued} bytes wait for a context that does not exist yet`);
    return dump;
  }

  function contextDump(task: number, context: number): ContextDump {
    const block = contextBlock(map, ordinalOf(map, task, context));
    const state = CONTEXT_STATES[kernel.loadWord(block + L.CONTEXT_STATE_OFFSET)] ?? "closed";
    const lanes: LaneDump[] = [];
    // Another task may use the lanes in the table of a closed context by now.
    const origins = state === "closed" ? 0 : endpointCount(map);
    for (let origin = 0; origin < origins; origin++) {
      const lane = kernel.loadWord(block + L.CONTEXT_LANES_OFFSET + 4 * origin) >>> 0;
      if (lane !== 0)
        lanes.push(laneDump(lane, origin, `${numberAt(task)}.${context}`, state !== "none" || task >= map.locals));
    }
    const fifos = task < map.locals ? map.fifos : 0;
    const injections = Array.from({ length: fifos }, (_, fifo) => injectionDump(task, context, fifo));
    const waits = Object.entries(WAITS).map(([name, kind]) =>
      new Array<string>(Math.max(0, word(block + L.CONTEXT_ASLEEP_OFFSET + 4 * kind))).fill(name),
    );
    const handlerless = word(block + L.CONTEXT_HANDLERLESS_OFFSET);
    return {
      context,
      state,
      messages: word(block + L.CONTEXT_MESSAGES_OFFSET) >>> 0,
      batches: word(block + L.CONTEXT_BATCHES_OFFSET) >>> 0,
      pending: {
        messages: word(block + L.CONTEXT_PENDING_COUNT_OFFSET),
        bytes: word(block + L.CONTEXT_PENDING_BYTES_OFFSET),
      },
      unexpectedBytes: word(block + L.CONTEXT_UNEXPECTED_OFFSET),
      handlerless: handlerless === 0 ? undefined : handlerless - 1,
      calls: word(block + L.CONTEXT_CALLS_OFFSET),
      waits: waits.flat(),
      lanes,
      injections: injections.filter((dump) => dump !== undefined),
      transfers: state === "open" ? transferDumps(block, `${numberAt(task)}.${context}`) : [],
    };
  }

  function transferDumps(block: number, name: string): TransferDump[] {
    const dumps: TransferDump[] = [];
    let rgetFifos = kernel.loadWord(block + L.CONTEXT_RGET_FIFOS_OFFSET) >>> 0;
    // The context may close meanwhile. Then another task may use the blocks.
    const isBlock = (pointer: number): boolean =>
      pointer >= map.heapBase && pointer % L.PAGE_SIZE === 0 && pointer + L.BLOCK_SIZE <= map.heapBase + map.heapBytes;
    for (let blocks = 0; isBlock(rgetFifos) && blocks < map.heapBytes / L.BLOCK_SIZE; blocks++) {
      for (let number = 0; number < L.RGET_FIFO_COUNT; number++) {
        const rgetFifo = rgetFifos + L.BLOCK_RGET_FIFOS_OFFSET + number * L.RGET_FIFO_SIZE;
        if ((kernel.loadWord(rgetFifo + L.RGET_FIFO_GENERATION_OFFSET) & 1) === 1)
          dumps.push(transferDump(rgetFifo, name));
      }
      rgetFifos = kernel.loadWord(rgetFifos + L.BLOCK_NEXT_OFFSET) >>> 0;
    }
    return dumps;
  }

  function transferDump(rgetFifo: number, name: string): TransferDump {
    const isTarget = word(rgetFifo + L.RGET_FIFO_DEPTH_OFFSET) !== 0;
    const peer = word(rgetFifo + L.RGET_FIFO_PEER_ENDPOINT_OFFSET);
    const head = kernel.loadWord(rgetFifo + L.RGET_FIFO_HEAD_OFFSET);
    const dump: TransferDump = {
      side: isTarget ? "target" : "origin",
      peer: [numberAt(taskAt(map, peer)), contextAt(map, peer)],
      bytes: word(rgetFifo + L.RGET_FIFO_BYTES_OFFSET) >>> 0,
      left: isTarget ? kernel.loadWord(rgetFifo + L.RGET_FIFO_LEFT_OFFSET) >>> 0 : 0,
      fragments: isTarget ? 0 : kernel.loadWord(rgetFifo + L.RGET_FIFO_PASSED_OFFSET) >>> 0,
      queued: (kernel.loadWord(rgetFifo + L.RGET_FIFO_TAIL_OFFSET) - head) | 0,
    };
    if (dump.queued > 0) {
      const [from, to] = isTarget ? [dump.peer.join("."), name] : [name, dump.peer.join(".")];
      const slot = rgetFifo + L.RGET_FIFO_SLOTS_OFFSET + (head & (L.RGET_FIFO_SLOTS - 1)) * L.DESCRIPTOR_SIZE;
      const isMove = word(slot + L.DESCRIPTOR_KIND_OFFSET) === L.DESCRIPTOR_MOVE;
      const isStaged = kernel.loadWord(rgetFifo + L.RGET_FIFO_ALLOWED_OFFSET) >>> 0 > dump.fragments;
      const whom = isMove && !isStaged ? `${name} to advance, which stages it` : engineOf(name);
      stuck.push(`payload of ${dump.bytes} bytes, ${from} → ${to}: ${dump.queued} descriptors wait for ${whom}`);
    }
    return dump;
  }

  function injectionDump(task: number, context: number, fifo: number): InjectionDump | undefined {
    const pointer = injectionFifo(map, ordinalOf(map, task, context), fifo);
    const tail = kernel.loadWord(pointer + L.INJECTION_TAIL_OFFSET);
    if (tail === 0) return undefined;
    const left = (tail - kernel.loadWord(pointer + L.INJECTION_HEAD_OFFSET)) | 0;
    if (left > 0) {
      const name = `${numberAt(task)}.${context}`;
      stuck.push(`injection FIFO ${fifo} of ${name}: ${left} descriptors wait for ${engineOf(name)}`);
    }
    return {
      fifo,
      slots: map.slots,
      left,
      pending: word(pointer + L.INJECTION_PENDING_OFFSET),
      refused: word(pointer + L.INJECTION_REFUSED_OFFSET) >>> 0,
    };
  }

  function heapDump(): HeapDump {
    const owners = Array.from({ length: map.tasks }, (_, task) => ({ task: numberAt(task), lanes: 0, regions: 0 }));
    let free = 0;
    let largest = 0;
    let piece = 0;
    let pages = 0;
    for (let page = 0; page < map.heapPages; page += pages) {
      const extent = kernel.loadWord(map.heapTable + 4 * page);
      pages = extent & L.EXTENT_PAGES_MASK;
      if (pages === 0) break; // the table is changing
      const bytes = pages * L.PAGE_SIZE;
      const state = extent >>> L.EXTENT_STATE_SHIFT;
      const owner = owners[(extent >>> L.EXTENT_OWNER_SHIFT) & L.EXTENT_OWNER_MASK];
      piece = state === L.EXTENT_FREE ? piece + bytes : 0;
      if (state === L.EXTENT_FREE) free += bytes;
      else if (owner !== undefined && state === L.EXTENT_LANE) owner.lanes += bytes;
      else if (owner !== undefined) owner.regions += bytes;
      largest = Math.max(largest, piece);
    }
    const used = owners.filter(({ lanes, regions }) => lanes + regions > 0);
    let [pooled, kept] = [0, 0];
    for (let task = 0; task < map.tasks; task++) {
      const slot = taskSlot(map, task);
      if (kernel.loadWord(slot + L.TASK_STATE_OFFSET) >= L.TASK_CLOSED) continue;
      pooled += word(slot + L.TASK_POOLED_OFFSET);
      kept += word(slot + L.TASK_KEPT_OFFSET);
    }
    return { bytes: map.heapPages * L.PAGE_SIZE, free, largest, owners: used, pooled, kept };
  }

  // The node's own tasks so far, and those of other nodes that have a slot.
  const started = Math.min(kernel.loadWord(map.job + L.JOB_STARTED_OFFSET), map.locals);
  const shown = Array.from({ length: map.tasks }, (_, task) => task).filter(
    (task) => task < started || (task >= map.locals && numberAt(task) !== L.NONE),
  );
  const tasks = shown.map((task): TaskDump => {
    const slot = taskSlot(map, task);
    const state = STATES[kernel.loadWord(slot + L.TASK_STATE_OFFSET)] ?? "absent";
    // Another task may use the memory that an ended task's tables name by now.
    const count = state === "up" || state === "absent" ? map.contexts : 0;
    const contexts = Array.from({ length: count }, (_, context) => contextDump(task, context));
    const sleeps = word(slot + L.TASK_SLEEPS_OFFSET) >>> 0;
    return {
      task: numberAt(task),
      state,
      parked: kernel.loadWord(slot + L.TASK_PARKED_OFFSET) !== 0,
      since: sleeps === 0 ? 0 : since(slot + L.TASK_SINCE_OFFSET),
      sleeps,
      spinsWon: word(slot + L.TASK_SPINS_WON_OFFSET) >>> 0,
      spinsLost: word(slot + L.TASK_SPINS_LOST_OFFSET) >>> 0,
      contexts: contexts.filter(({ state, lanes }) => lanes.length > 0 || state !== "none"),
    };
  });
  const up = tasks.filter(({ state }, place) => state === "up" && (shown[place] as number) < map.locals);
  const idle = Math.min(...up.map(({ since }) => since));
  const isMoving = engine.mode === "thread" && !engine.parked;
  // For a moment, this means nothing: a message may be on its way.
  if (!isMoving && up.every(({ parked }) => parked) && idle > IDLE_MS && idle < Number.POSITIVE_INFINITY)
    stuck.push(`all tasks are asleep for ${seconds(idle)}`);
  return { heap: heapDump(), engine, tasks, stuck };
}

function seconds(milliseconds: number): string {
  return `${(milliseconds / 1000).toFixed(1)} s`;
}

/** What a task does, as far as shared memory shows it. */
function doing({ state, parked, since, contexts }: TaskDump): string {
  if (state !== "up") return state;
  if (!parked) return since > 0 ? `up, awake for ${seconds(since)}` : "up";
  const waits = contexts.flatMap(({ context, waits }) => waits.map((wait) => `${wait} of context ${context}`));
  return waits.length === 0 ? "up, about to sleep" : `up, asleep for ${seconds(since)} in ${waits.join(", ")}`;
}

function engineText({ mode, parked }: EngineDump): string {
  if (mode === "thread") return parked ? "a thread, asleep" : "a thread, awake";
  return mode === "inline"
    ? "each task, as it advances"
    : "each task, as it advances, since the engine thread has ended";
}

function dumpText({ heap, engine, tasks, stuck }: DumpData): string {
  const lines = [`heap: ${heap.free} of ${heap.bytes} bytes free, ${heap.largest} in one piece`];
  if (heap.pooled + heap.kept > 0) lines.push(`  buffers: ${heap.pooled} bytes in pools, ${heap.kept} bytes kept`);
  for (const { task, lanes, regions } of heap.owners) {
    lines.push(`  of task ${task}: lanes ${lanes} bytes, regions ${regions} bytes`);
  }
  lines.push(`engine: ${engineText(engine)}`);
  for (const task of tasks) {
    lines.push(`task ${task.task}: ${doing(task)}`);
    for (const context of task.contexts) {
      const { messages, batches, pending, unexpectedBytes, handlerless, calls, lanes, injections, transfers } = context;
      lines.push(`  context ${context.context}: ${messages} messages in ${batches} batches`);
      if (pending.messages > 0)
        lines.push(`    ${pending.messages} messages wait for room, ${pending.bytes} bytes held`);
      const whose = handlerless === undefined ? "" : `: dispatch id ${handlerless} has waited longest`;
      if (unexpectedBytes > 0 || whose !== "")
        lines.push(`    ${unexpectedBytes} bytes of messages without a handler${whose}`);
      if (calls > 0) lines.push(`    ${calls} calls without a reply`);
      for (const lane of lanes) {
        const queued = `${lane.queued} of ${lane.bytes} bytes queued`;
        lines.push(`    from ${lane.origin.join(".")}: ${lane.messages} messages, ${queued}, full ${lane.fulls} times`);
      }
      for (const { fifo, slots, left, pending, refused } of injections) {
        lines.push(
          `    injection FIFO ${fifo} of ${slots} slots: ${left} left, ${pending} callbacks pending, ${refused} refused`,
        );
      }
      for (const { side, peer, bytes, left, fragments, queued } of transfers) {
        const moved =
          side === "origin" ? `to ${peer.join(".")}: ${bytes} bytes offered, ${fragments} fragments moved` : "";
        const missing = side === "target" ? `from ${peer.join(".")}: ${left} of ${bytes} bytes have not come` : "";
        lines.push(`    payload ${moved}${missing}, ${queued} descriptors queued`);
      }
    }
  }
  return [...lines, ...stuck.map((line) => `stuck: ${line}`)].join("\n");
}
