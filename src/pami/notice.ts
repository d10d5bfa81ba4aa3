// Telling every task that some have ended, or a context, so that each lets go of what was theirs.
import {
  CONTEXT_CLOSED,
  CONTEXT_STATE_OFFSET,
  TASK_INTERRUPT_OFFSET,
  TASK_NOTICE_OFFSET,
  TASK_TOLD_OFFSET,
} from "../../assembly/layout.js";
import { tellEngine } from "../engine/engine.js";
import type { Kernel } from "../kernel/kernel.js";
import { contextBlock, type MemoryMap, taskSlot } from "../memory/map.js";

/** What of the kernels telling takes. */
export type Telling = "loadWord" | "storeWord" | "addWord" | "ring" | "ringAlways";

/**
 * Tells of tasks whose state says that they have ended. Twice: only when all have been told, nobody who acknowledges can
 * be taken for one who had nothing to acknowledge yet; whoever acknowledged before hears of it once more, and then looks
 * whether what was theirs may be given away.
 */
export function tellOfEnd(kernel: Pick<Kernel, Telling>, map: MemoryMap, ended: readonly number[]): void {
  tellAll(kernel, map);
  // SYNC N (told): pairs with those who look whether anybody is at something of theirs.
  for (const task of ended) kernel.storeWord(taskSlot(map, task) + TASK_TOLD_OFFSET, 1);
  tellAll(kernel, map);
}

/**
 * Tells of a context that has closed while its task goes on. Once: nothing of it is given away but its lanes, by those who
 * have been told.
 */
export function tellOfClose(kernel: Pick<Kernel, Telling>, map: MemoryMap, ordinal: number): void {
  // SYNC N (closed): pairs with isClosed().
  kernel.storeWord(contextBlock(map, ordinal) + CONTEXT_STATE_OFFSET, CONTEXT_CLOSED);
  tellAll(kernel, map);
}

/** Ends the wait in which a task is, or its next one. */
export function interruptTask(kernel: Pick<Kernel, "addWord" | "ringAlways">, map: MemoryMap, task: number): void {
  const slot = taskSlot(map, task);
  kernel.addWord(slot + TASK_INTERRUPT_OFFSET, 1);
  kernel.addWord(slot + TASK_NOTICE_OFFSET, 1); // SYNC N
  kernel.ringAlways(slot);
}

/** Has every task look up what has changed. */
export function tellAll(kernel: Pick<Kernel, Telling>, map: MemoryMap): void {
  for (let task = 0; task < map.tasks; task++) {
    kernel.addWord(taskSlot(map, task) + TASK_NOTICE_OFFSET, 1); // SYNC N
    kernel.ringAlways(taskSlot(map, task));
  }
  tellEngine(kernel, map);
}
