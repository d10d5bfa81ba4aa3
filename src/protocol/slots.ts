// Gives back the slots of tasks of other nodes. The agent asks for a slot (LEAVING). Each context then drops what it has for
// the slot's task, or says that it needs the slot (HELD), before it acknowledges the notice. Once every context has, and none
// needs it, the agent frees the slot, and each context forgets what it knew of the task.
import { TASK_CLOSED, TASK_HELD_OFFSET, TASK_LEAVING_OFFSET, TASK_STATE_OFFSET } from "../../assembly/layout.js";
import { ordinalOf, taskSlot } from "../memory/map.js";
import { UNBOUND } from "../node/address.js";
import type { ContextCore } from "./context.js";
import type { Task } from "./task.js";

/** What a context does at a notice, for the slots of tasks of other nodes. */
export type LookAtSlots = (core: ContextCore, task: Task) => void;

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
        if (!core.release(ordinalOf(map, slot, context))) isHeld = true;
      }
      if (isHeld) kernel.storeWord(pointer + TASK_HELD_OFFSET, 1); // SYNC purge (hold)
    }
  }
};
