// Gives back the slots of tasks of other nodes. The agent asks for a slot (LEAVING). Each context then drops what it has for
// the slot's task, or says that it needs the slot (HELD), before it acknowledges the notice. Once every context has
// acknowledged, and none needs the slot, the agent frees it, and each context forgets the task.
import { TASK_CLOSED, TASK_HELD_OFFSET, TASK_LEAVING_OFFSET, TASK_STATE_OFFSET } from "../../assembly/layout.js";
import type { Kernel } from "../kernel/kernel.js";
import { type MemoryMap, ordinalOf, taskSlot } from "../memory/map.js";
import { type Addresses, UNBOUND } from "../node/address.js";

/** The part of a context that gives slots back. */
interface SlotUser {
  /** Drops the state for an ordinal of another node. False: an operation with its endpoint is under way. */
  release(ordinal: number): boolean;
  /** Keeps the target of the last one-sided operation, for the next one to it. */
  readonly rma: { forget(ordinal: number): void };
  /** The slot of a task of another node is free. */
  forgetSlot(slot: number): void;
}

/** The tables of its node. */
interface SlotTables {
  readonly kernel: Pick<Kernel, "loadWord" | "storeWord">;
  readonly map: MemoryMap;
  readonly addresses: Addresses;
}

/** Handles the slots of tasks of other nodes, when a context has a notice. */
export type LookAtSlots = (core: SlotUser, task: SlotTables) => void;

export const lookAtSlots: LookAtSlots = (core, { kernel, map, addresses }) => {
  for (let slot = map.locals; slot < map.tasks; slot++) {
    const pointer = taskSlot(map, slot);
    if (addresses.numberOf(slot) === UNBOUND) {
      // SYNC purge (freed): pairs with the agent, which gives the slot away again once every context has seen this.
      if (kernel.loadWord(pointer + TASK_STATE_OFFSET) >= TASK_CLOSED) core.forgetSlot(slot);
    } else if (kernel.loadWord(pointer + TASK_LEAVING_OFFSET) !== 0) {
      // SYNC purge (leave): pairs with the agent, which asks for the slot.
      let isHeld = false;
      for (let context = 0; context < map.contexts; context++) {
        const ordinal = ordinalOf(map, slot, context);
        if (!core.release(ordinal)) isHeld = true;
        // The next operation looks up the slot, and finds that it is leaving.
        else core.rma.forget(ordinal);
      }
      if (isHeld) kernel.storeWord(pointer + TASK_HELD_OFFSET, 1); // SYNC purge (hold)
    }
  }
};
