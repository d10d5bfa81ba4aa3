// Gives back the slots of tasks of other nodes. The agent asks for a slot (LEAVING). Each context then drops its state for the
// slot's task, or says that it needs the slot (HELD), before it acknowledges the notice. Once every context has acknowledged,
// and no context needs the slot, the agent frees it, and each context forgets the task.
import {
  HELD_SILENTLY,
  HELD_UNTIL_RING,
  TASK_CLOSED,
  TASK_HELD_OFFSET,
  TASK_LEAVING_OFFSET,
  TASK_STATE_OFFSET,
} from "../../assembly/layout.js";
import type { Activity, ProgressSource } from "../core/progress.js";
import type { Kernel } from "../kernel/kernel.js";
import { type MemoryMap, ordinalOf, taskSlot } from "../memory/map.js";
import { type SlotTable, UNBOUND } from "../node/address.js";

/** The part of a context that gives slots back. */
export interface SlotUser {
  /** Pointer to its block. */
  readonly block: number;
  /** Drops the state for an ordinal of another node. False: an operation with its endpoint is under way. */
  release(ordinal: number): boolean;
  /** The slot of a task of another node is free. */
  forgetSlot(slot: number): void;
  /** Adds a progress source. */
  add<Source extends ProgressSource>(make: (activity: Activity) => Source): Source;
}

/** The tables of the node. */
export interface SlotTables {
  readonly kernel: Pick<Kernel, "loadWord" | "storeWord" | "exchangeIf" | "laneOf" | "ring">;
  readonly map: MemoryMap;
  readonly addresses: SlotTable;
}

/** Handles the slots of tasks of other nodes, when a context has a notice. */
export type LookAtSlots = (core: SlotUser, task: SlotTables) => void;

/** The steps of a context that an agent awaits, if the agent has a thread of its own. */
export interface SlotWatch {
  /** The context is about to acknowledge a notice. */
  noticed(): void;
  /** The slot of an ordinal is asked for, or its task has ended. @param isHeld whether the context needs the slot */
  watch(ordinal: number, isHeld: boolean): void;
}

/** @param watchOf undefined: the agent works within each advance(), and looks by itself */
export function slotLooker(watchOf?: (core: SlotUser, task: SlotTables) => SlotWatch): LookAtSlots {
  return (core, task) => {
    const { kernel, map, addresses } = task;
    const watch = watchOf?.(core, task);
    watch?.noticed();
    for (let slot = map.locals; slot < map.tasks; slot++) {
      const pointer = taskSlot(map, slot);
      // SYNC task-state (look): the agent marks a task that has ended, and a slot that is to be free.
      const hasEnded = kernel.loadWord(pointer + TASK_STATE_OFFSET) >= TASK_CLOSED;
      if (addresses.numberOf(slot) === UNBOUND) {
        // SYNC purge (freed): pairs with the agent, which gives the slot away again once every context has seen this state.
        if (hasEnded) core.forgetSlot(slot);
      } else if (hasEnded) {
        for (let context = 0; context < map.contexts; context++) watch?.watch(ordinalOf(map, slot, context), false);
      } else if (kernel.loadWord(pointer + TASK_LEAVING_OFFSET) !== 0) {
        // SYNC purge (leave): pairs with the agent, which asks for the slot.
        let isAnyHeld = false;
        for (let context = 0; context < map.contexts; context++) {
          const ordinal = ordinalOf(map, slot, context);
          const isHeld = !core.release(ordinal);
          if (isHeld) isAnyHeld = true;
          watch?.watch(ordinal, isHeld);
        }
        if (isAnyHeld)
          kernel.storeWord(pointer + TASK_HELD_OFFSET, watch === undefined ? HELD_SILENTLY : HELD_UNTIL_RING); // SYNC purge (hold)
      }
    }
  };
}

export const lookAtSlots: LookAtSlots = slotLooker();
