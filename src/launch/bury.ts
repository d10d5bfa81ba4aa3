// What is done for a task that has ended in any way but by closing its client.
import {
  JOB_HEAP_LOCK_OFFSET,
  JOB_SPINNING_OFFSET,
  TASK_ABSENT,
  TASK_CLOSED,
  TASK_DEAD,
  TASK_STATE_OFFSET,
  TASK_UP,
} from "../../assembly/layout.js";
import type { Kernel } from "../kernel/kernel.js";
import { engineSlot, type MemoryMap, taskSlot } from "../memory/map.js";
import { type Telling, tellAll, tellOfEnd } from "../pami/notice.js";

/**
 * Marks a task as dead, gives back what it held for itself alone, and tells everybody. Its thread no longer runs; the
 * caller is any other one.
 */
export function bury(sync: Pick<Kernel, Telling | "exchangeIf" | "clearBits">, map: MemoryMap, task: number): void {
  // SYNC D (dead): pairs with those who look whether a task has ended.
  sync.storeWord(taskSlot(map, task) + TASK_STATE_OFFSET, TASK_DEAD);
  // SYNC X (mend): its holder is gone; the table is whole after any of its stores.
  sync.exchangeIf(map.job + JOB_HEAP_LOCK_OFFSET, task + 1, 0);
  sync.clearBits(map.job + JOB_SPINNING_OFFSET + ((task >>> 5) << 2), 1 << (task & 31));
  tellOfEnd(sync, map, [task]);
}

/**
 * As bury(), for the engine thread: each context brings what it was at to an end, and is its own engine from then on. One
 * that has not begun was at nothing.
 */
export function buryEngine(sync: Pick<Kernel, Telling | "exchangeIf">, map: MemoryMap): void {
  const state = engineSlot(map) + TASK_STATE_OFFSET;
  // SYNC D (dead): pairs with engineThread(), and with serve(), which does not begin then.
  if (sync.exchangeIf(state, TASK_ABSENT, TASK_CLOSED) === TASK_UP) sync.storeWord(state, TASK_DEAD);
  tellAll(sync, map);
}
