// What is done for a task that has ended in any way but by closing its client.
import { JOB_HEAP_LOCK_OFFSET, JOB_SPINNING_OFFSET, TASK_DEAD, TASK_STATE_OFFSET } from "../../assembly/layout.js";
import type { Kernel } from "../kernel/kernel.js";
import { type MemoryMap, taskSlot } from "../memory/map.js";
import { tellOfEnd } from "../pami/notice.js";

/**
 * Marks a task as dead, gives back what it held for itself alone, and tells everybody. Its thread no longer runs; the
 * caller is any other one.
 */
export function bury(
  sync: Pick<Kernel, "storeWord" | "exchangeIf" | "clearBits" | "addWord" | "ringAlways">,
  map: MemoryMap,
  task: number,
): void {
  // SYNC D (dead): pairs with those who look whether a task has ended.
  sync.storeWord(taskSlot(map, task) + TASK_STATE_OFFSET, TASK_DEAD);
  // SYNC X (mend): its holder is gone; the table is whole after any of its stores.
  sync.exchangeIf(map.job + JOB_HEAP_LOCK_OFFSET, task + 1, 0);
  sync.clearBits(map.job + JOB_SPINNING_OFFSET + ((task >>> 5) << 2), 1 << (task & 31));
  tellOfEnd(sync, map, [task]);
}
