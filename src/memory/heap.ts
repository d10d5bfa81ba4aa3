// Reserves a part of the heap for the first lanes of contexts that have not exchanged a message yet. Without a lane, two
// contexts cannot communicate at all; without a larger lane or a region, a call only fails.
import {
  JOB_STARTED_OFFSET,
  LANE_CONTROL_SIZE,
  PAGE_SIZE,
  RECORD_BODY_OFFSET,
  SEND_IMMEDIATE_MAX,
  TASK_CLOSED,
  TASK_STATE_OFFSET,
} from "../../assembly/layout.js";
import type { Kernel } from "../kernel/kernel.js";
import { contextBlock, isClosed, type MemoryMap, ordinalOf, taskSlot } from "./map.js";

/** At most this part of the heap is reserved: a quarter. */
const KEPT_SHIFT = 2;

/** Whether the heap has bytes to spare beside the reserved ones. They may be in several pieces. */
export function isToSpare(kernel: Kernel, map: MemoryMap, bytes: number): boolean {
  const left = kernel.heapFreePages(map.job) * PAGE_SIZE - bytes;
  return left >= map.heapBytes >>> KEPT_SHIFT || (left >= 0 && left >= keptBytes(kernel, map));
}

/** Bytes to reserve: of the first lanes of all pairs of open or future contexts that have none. */
export function keptBytes(kernel: Kernel, map: MemoryMap): number {
  const { job, contexts, laneBytes } = map;
  const recordMax = Math.min(SEND_IMMEDIATE_MAX + RECORD_BODY_OFFSET, laneBytes);
  const lane = Math.ceil((LANE_CONTROL_SIZE + laneBytes + recordMax) / PAGE_SIZE) * PAGE_SIZE;
  const most = map.heapBytes >>> KEPT_SHIFT;
  const blocks: number[] = [];
  const ordinals: number[] = [];
  const started = Math.min(kernel.loadWord(job + JOB_STARTED_OFFSET), map.locals);
  for (let task = 0; task < map.tasks; task++) {
    const state = kernel.loadWord(taskSlot(map, task) + TASK_STATE_OFFSET);
    // Any slot for a task of another node may be bound.
    const isExpected = task < started || task >= map.locals;
    if (!isExpected || state >= TASK_CLOSED) continue;
    for (let context = 0; context < contexts; context++) {
      const ordinal = ordinalOf(map, task, context);
      if (isClosed(kernel, map, ordinal)) continue;
      ordinals.push(ordinal);
      blocks.push(contextBlock(map, ordinal));
    }
  }
  let kept = 0;
  const own = map.locals * contexts;
  for (const [place, block] of blocks.entries()) {
    // Between two tasks of other nodes there are no lanes here.
    for (const origin of ordinals) {
      if ((origin < own || (ordinals[place] as number) < own) && kernel.laneOf(block, origin) === 0) kept += lane;
    }
    if (kept >= most) return most;
  }
  return kept;
}
