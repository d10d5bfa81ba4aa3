// Writes a new job's memory: its constant words, and the bytes to which NULL of programs in C points. Only the thread that makes
// the memory loads this.
import * as L from "../../assembly/layout.js";
import { LAYOUT_HASH } from "../../assembly/layout-hash.js";
import { endpointOf } from "../core/endpoint.js";
import type { Memory } from "../kernel/kernel.js";
import { contextBlock, engineSlot, injectionFifo, type MemoryMap, maskBytes, ordinalOf, taskSlot } from "./map.js";

/** An entry opens 128 times before its generation is one of the next task's first. */
const GENERATION_SHIFT = 8;

/** Writes an injection FIFO into zeroed memory. Called once, before any task starts. */
export function formatInjection({ words }: Pick<Memory, "words">, fifo: number, slots: number): void {
  words[(fifo + L.INJECTION_SLOTS_OFFSET) >>> 2] = slots;
  words[(fifo + L.INJECTION_FIRST_OFFSET) >>> 2] = fifo + L.INJECTION_MASK_OFFSET + maskBytes(slots);
}

/**
 * Writes the constant words of a new job into zeroed memory, which no other thread sees yet.
 * @param first number of the node's first own task
 * @param guestPages pages of a memory that is another program's: its first bytes are that program's, too
 */
export function formatMemory(map: MemoryMap, memory: Memory, cores: number, first = 0, guestPages = 0): void {
  const { bytes, words } = memory;
  if (map.job === L.MAP_BASE && guestPages === 0) bytes.fill(L.GUARD_BYTE, 0, L.NULL_GUARD_BYTES);
  const header: [offset: number, value: number][] = [
    [L.JOB_MAGIC_OFFSET, L.JOB_MAGIC],
    [L.JOB_VERSION_OFFSET, L.LAYOUT_VERSION],
    [L.JOB_HASH_OFFSET, LAYOUT_HASH],
    [L.JOB_TASKS_OFFSET, map.tasks],
    [L.JOB_CONTEXTS_OFFSET, map.contexts],
    [L.JOB_CORES_OFFSET, cores],
    [L.JOB_LANE_BYTES_OFFSET, map.laneBytes],
    [L.JOB_TASKS_BASE_OFFSET, map.tasksBase],
    [L.JOB_CONTEXTS_BASE_OFFSET, map.contextsBase],
    [L.JOB_CONTEXT_SIZE_OFFSET, map.contextSize],
    [L.JOB_HEAP_TABLE_OFFSET, map.heapTable],
    [L.JOB_HEAP_BASE_OFFSET, map.heapBase],
    [L.JOB_HEAP_PAGES_OFFSET, map.heapPages],
    [L.JOB_MEMORY_END_OFFSET, map.end],
    [L.JOB_REGIONS_BASE_OFFSET, map.regionsBase],
    [L.JOB_REGIONS_OFFSET, map.regions],
    [L.JOB_INJECTION_BASE_OFFSET, map.injectionBase],
    [L.JOB_INJECTION_SIZE_OFFSET, map.injectionSize],
    [L.JOB_FIFOS_OFFSET, map.fifos],
    [L.JOB_SLOTS_OFFSET, map.slots],
    [L.JOB_TRACE_BASE_OFFSET, map.traceBase],
    [L.JOB_TRACE_EVENTS_OFFSET, map.traceEvents],
    [L.JOB_ENGINE_OFFSET, map.engine ? engineSlot(map) : 0],
    [L.JOB_STARTED_OFFSET, map.jobTasks],
    [L.JOB_WORLD_OFFSET, map.jobTasks],
    [L.JOB_LOCALS_OFFSET, map.locals],
    [L.JOB_JOB_TASKS_OFFSET, map.jobTasks],
    [L.JOB_ENDPOINTS_OFFSET, map.endpointsBase],
    [L.JOB_GUEST_PAGES_OFFSET, guestPages],
  ];
  for (const [offset, value] of header) words[(map.job + offset) >>> 2] = value;
  for (let task = 0; task < map.tasks; task++) {
    for (let context = 0; context < map.contexts; context++) {
      const ordinal = ordinalOf(map, task, context);
      const block = contextBlock(map, ordinal);
      // What goes to a task of another node is for the agent, which is the engine thread.
      const isLocal = task < map.locals;
      words[(block + L.CONTEXT_TASK_OFFSET) >>> 2] = isLocal ? taskSlot(map, task) : engineSlot(map);
      words[(map.endpointsBase >>> 2) + ordinal] = isLocal ? endpointOf(first + task, context) : L.NONE;
      words[(block + L.CONTEXT_LANE_COUNT_OFFSET) >>> 2] = map.tasks * map.contexts;
      if (!isLocal) continue;
      for (let fifo = 0; fifo < map.fifos; fifo++)
        formatInjection(memory, injectionFifo(map, ordinal, fifo), map.slots);
    }
  }
  if (map.locals < map.tasks) saltGenerations(map, words, first);
  // The whole heap is one free extent.
  words[map.heapTable >>> 2] = map.heapPages;
}

/** Begins the generations of each task's regions elsewhere, so that a handle is refused by any other node's task. */
function saltGenerations({ locals, regions, regionsBase }: MemoryMap, words: Int32Array, first: number): void {
  for (let index = 0; index < locals * regions; index++) {
    const number = first + Math.floor(index / regions);
    words[(regionsBase + index * L.REGION_SIZE + L.REGION_GENERATION_OFFSET) >>> 2] = number << GENERATION_SHIFT;
  }
}
