// Computes from the limits where every area of the linear memory lies. assembly/layout/ draws the inside of each area.
//
//   base ─► ┌───────────────────────────────────────────────┐
//           │ job header                                    │ 640 B
//           ├───────────────────────────────────────────────┤
//           │ task slots              tasks × 384 B         │ one more for the engine thread, if there is one
//           ├───────────────────────────────────────────────┤
//           │ context blocks          tasks × contexts ×    │ 4.6 KiB with 4 endpoints, 17 KiB with 1024
//           │                         contextSize           │
//           ├───────────────────────────────────────────────┤
//           │ endpoints               tasks × contexts ×    │ which endpoint has which slot
//           │                         4 B                   │
//           ├───────────────────────────────────────────────┤
//           │ region entries          locals × regions ×    │ 16 KiB a task
//           │                         16 B                  │
//           ├───────────────────────────────────────────────┤
//           │ injection FIFOs         locals × contexts ×   │ 18 KiB a context
//           │                         fifos × injectionSize │
//           ├───────────────────────────────────────────────┤
//           │ trace rings             locals × traceSize    │ only if the job is traced
//           ├───────────────────────────────────────────────┤
//           │ heap table              4 B a page            │
//           ├───────────────────────────────────────────────┤ page-aligned
//           │ heap: lanes, regions                          │ heapBytes
//           └───────────────────────────────────────────────┘ end

import * as L from "../../assembly/layout.js";
import { alignUp } from "../../assembly/seq.js";
import type { Kernel, Memory } from "../kernel/kernel.js";

/** The limits that decide the size of a job's memory. */
export interface Limits {
  /** Task slots: of the node's own tasks, and of those tasks of other nodes with which they talk. */
  readonly tasks: number;
  /** The node's own tasks; they have the first slots (default: all). */
  readonly locals?: number;
  /** Tasks that the whole job may have (default: those of this node). */
  readonly jobTasks?: number;
  /** Contexts that each task may have. */
  readonly contexts: number;
  /** Bytes of the ring of a new lane, a power of two. */
  readonly laneBytes: number;
  /** Bytes of the heap, which holds lanes and regions. */
  readonly heapBytes: number;
  /** Regions that each task may have open at once. */
  readonly regions?: number;
  /** Injection FIFOs of each context. */
  readonly fifos?: number;
  /** Slots of an injection FIFO, a power of two. */
  readonly slots?: number;
  /** Events that each task's trace holds, a power of two; 0: the job is not traced. */
  readonly traceEvents?: number;
  /** Whether the engine is a thread of its own. */
  readonly engine?: boolean;
}

export interface MemoryMap extends Required<Limits> {
  /** Pointer to the job header. */
  readonly job: number;
  readonly tasksBase: number;
  readonly contextsBase: number;
  readonly contextSize: number;
  /** Pointer to the region entries, those of task 0 first. */
  readonly regionsBase: number;
  /** Pointer to the endpoint of each ordinal. */
  readonly endpointsBase: number;
  /** Pointer to the injection FIFOs, those of the first context first. */
  readonly injectionBase: number;
  /** Bytes from one injection FIFO to the next. */
  readonly injectionSize: number;
  /** Pointer to the trace rings. */
  readonly traceBase: number;
  readonly heapTable: number;
  readonly heapBase: number;
  readonly heapPages: number;
  /** First byte after the map. */
  readonly end: number;
}

/** 4 GiB less one wasm page: pointers are u32, and so is the end of the memory. */
export const MEMORY_BYTES_MAX = 4 * 1024 ** 3 - 65536;

/** The map for these limits, at `base` (MAP_BASE in jobs; in tests also 0, or one that straddles 2^31). */
export function memoryMap(limits: Limits, base = 0): MemoryMap {
  const endpoints = limits.tasks * limits.contexts;
  const tasksBase = base + L.JOB_SIZE;
  const { engine = false } = limits;
  const contextsBase = tasksBase + (limits.tasks + Number(engine)) * L.TASK_SIZE;
  const contextSize = alignUp(L.CONTEXT_LANES_OFFSET + (4 + L.ATTENDED_SIZE) * endpoints, L.FALSE_SHARING_SIZE);
  const { regions = L.REGION_COUNT_DEFAULT, fifos = L.FIFO_COUNT_DEFAULT, slots = L.SLOT_COUNT_DEFAULT } = limits;
  const { traceEvents = 0, locals = limits.tasks } = limits;
  const endpointsBase = contextsBase + endpoints * contextSize;
  const regionsBase = alignUp(endpointsBase + 4 * endpoints, L.FALSE_SHARING_SIZE);
  const injectionBase = alignUp(regionsBase + locals * regions * L.REGION_SIZE, L.FALSE_SHARING_SIZE);
  const injectionSize = alignUp(
    L.INJECTION_MASK_OFFSET + maskBytes(slots) + slots * L.DESCRIPTOR_SIZE,
    L.FALSE_SHARING_SIZE,
  );
  const traceBase = injectionBase + locals * limits.contexts * fifos * injectionSize;
  const heapTable = traceBase + locals * traceSize(traceEvents);
  const heapPages = limits.heapBytes >>> L.PAGE_SHIFT;
  const heapBase = Math.ceil((heapTable + 4 * heapPages) / L.PAGE_SIZE) * L.PAGE_SIZE;
  return {
    ...limits,
    regions,
    fifos,
    slots,
    traceEvents,
    engine,
    locals,
    jobTasks: limits.jobTasks ?? limits.tasks,
    job: base,
    tasksBase,
    contextsBase,
    contextSize,
    endpointsBase,
    regionsBase,
    injectionBase,
    injectionSize,
    traceBase,
    heapTable,
    heapBase,
    heapPages,
    end: heapBase + heapPages * L.PAGE_SIZE,
  };
}

/** Bytes of a task's trace ring. */
function traceSize(events: number): number {
  return events === 0 ? 0 : L.TRACE_EVENTS_OFFSET + (events << L.TRACE_EVENT_SHIFT);
}

/** Bytes of a completion bit mask with the levels above it: a multiple of 64. */
export function maskBytes(slots: number): number {
  let words = 0;
  let level = slots;
  do {
    level = (level + 31) >>> 5;
    words += level;
  } while (level > L.MASK_TOP_WORDS);
  return alignUp(4 * words, L.DESCRIPTOR_SIZE);
}

/** Pointer to a task's slot. */
export function taskSlot(map: MemoryMap, task: number): number {
  return map.tasksBase + task * L.TASK_SIZE;
}

/** Pointer to the slot of the engine thread, if the job has one. */
export function engineSlot(map: MemoryMap): number {
  return taskSlot(map, map.tasks);
}

/** Number of an endpoint among all endpoints of the node: the index of its lane in every context. */
export function ordinalOf({ contexts }: Pick<MemoryMap, "contexts">, task: number, context: number): number {
  return task * contexts + context;
}

/** Pointer to the context block of an endpoint's ordinal. */
export function contextBlock(map: MemoryMap, ordinal: number): number {
  return map.contextsBase + ordinal * map.contextSize;
}

/** Whether a context has been closed: then its owner does not read or write it any more. */
export function isClosed(kernel: Pick<Kernel, "loadWord">, map: MemoryMap, ordinal: number): boolean {
  // SYNC context-state (look): pairs with announceClose(), which then notifies every task.
  return kernel.loadWord(contextBlock(map, ordinal) + L.CONTEXT_STATE_OFFSET) === L.CONTEXT_CLOSED;
}

/** Pointer to one of the injection FIFOs of an endpoint's ordinal. */
export function injectionFifo(map: MemoryMap, ordinal: number, fifo: number): number {
  return map.injectionBase + (ordinal * map.fifos + fifo) * map.injectionSize;
}

/** Pointer to a task's trace ring, if the job is traced. */
export function traceRing(map: MemoryMap, task: number): number {
  return map.traceBase + task * traceSize(map.traceEvents);
}

/** The map of a formatted memory, read from its header. */
export function readMap({ words }: Memory, job: number): MemoryMap {
  const word = (offset: number): number => (words[(job + offset) >>> 2] as number) >>> 0;
  const heapPages = word(L.JOB_HEAP_PAGES_OFFSET);
  return {
    tasks: word(L.JOB_TASKS_OFFSET),
    locals: word(L.JOB_LOCALS_OFFSET),
    jobTasks: word(L.JOB_JOB_TASKS_OFFSET),
    contexts: word(L.JOB_CONTEXTS_OFFSET),
    laneBytes: word(L.JOB_LANE_BYTES_OFFSET),
    heapBytes: heapPages * L.PAGE_SIZE,
    job,
    tasksBase: word(L.JOB_TASKS_BASE_OFFSET),
    contextsBase: word(L.JOB_CONTEXTS_BASE_OFFSET),
    contextSize: word(L.JOB_CONTEXT_SIZE_OFFSET),
    heapTable: word(L.JOB_HEAP_TABLE_OFFSET),
    heapBase: word(L.JOB_HEAP_BASE_OFFSET),
    heapPages,
    end: word(L.JOB_MEMORY_END_OFFSET),
    endpointsBase: word(L.JOB_ENDPOINTS_OFFSET),
    regionsBase: word(L.JOB_REGIONS_BASE_OFFSET),
    regions: word(L.JOB_REGIONS_OFFSET),
    injectionBase: word(L.JOB_INJECTION_BASE_OFFSET),
    injectionSize: word(L.JOB_INJECTION_SIZE_OFFSET),
    fifos: word(L.JOB_FIFOS_OFFSET),
    slots: word(L.JOB_SLOTS_OFFSET),
    traceBase: word(L.JOB_TRACE_BASE_OFFSET),
    traceEvents: word(L.JOB_TRACE_EVENTS_OFFSET),
    engine: word(L.JOB_ENGINE_OFFSET) !== 0,
  };
}

/** Whether each of this many endpoints has a ready bit. */
export function endpointsFit(limits: Limits): boolean {
  return limits.tasks * limits.contexts <= L.ENDPOINT_COUNT_MAX;
}
