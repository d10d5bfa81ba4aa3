// While slots are given back, rings the agent, which has a thread of its own and sleeps, for a context's steps. A context rings
// the agent in a later round, or before its task sleeps. The steps: the context has acknowledged; it does not need a held slot
// any more; it has given up a lane from a task whose slot is asked for.
import {
  HELD_SILENTLY,
  HELD_UNTIL_RING,
  JOB_SLOTS_WANTED_OFFSET,
  SLOTS_ENOUGH,
  SLOTS_LET_GO,
  TASK_HELD_OFFSET,
} from "../../assembly/layout.js";
import type { Activity, ProgressSource } from "../core/progress.js";
import { engineSlot, taskSlot } from "../memory/map.js";
import { taskAt } from "../node/address.js";
import { type LookAtSlots, type SlotTables, type SlotUser, type SlotWatch, slotLooker } from "./slots.js";

/** Rings the agent for the steps of a context that it awaits. */
class SlotBell implements ProgressSource, SlotWatch {
  busy = 0;
  readonly #core: SlotUser;
  readonly #task: SlotTables;
  readonly #activity: Activity;
  /** Ordinals that the context needs though their slot was asked for. */
  readonly #held = new Set<number>();
  /** Ordinals from which there are lanes that the context has to give up. */
  readonly #lanes = new Set<number>();
  #isNoticed = false;

  constructor(core: SlotUser, task: SlotTables, activity: Activity) {
    this.#core = core;
    this.#task = task;
    this.#activity = activity;
  }

  noticed(): void {
    this.#isNoticed = true;
    this.#count();
  }

  watch(ordinal: number, isHeld: boolean): void {
    if (isHeld) this.#held.add(ordinal);
    else if (this.#task.kernel.laneOf(this.#core.block, ordinal) !== 0) this.#lanes.add(ordinal);
    this.#count();
  }

  #count(): void {
    const busy = this.#held.size + this.#lanes.size + Number(this.#isNoticed);
    this.#activity.add(busy - this.busy);
    this.busy = busy;
  }

  advance(): number {
    this.#ring();
    return 0;
  }

  /** Asked before the thread sleeps: rings too. */
  get hasWork(): boolean {
    return this.busy > 0 && this.#ring();
  }

  /** Rings the agent if an awaited step is done. Returns whether it rang. */
  #ring(): boolean {
    const { kernel, map } = this.#task;
    const before = this.busy;
    let isIdle = false;
    for (const ordinal of this.#held) {
      if (!this.#core.release(ordinal)) continue;
      this.#held.delete(ordinal);
      isIdle = true;
      // SYNC purge (idle): pairs with the agent, which may not have seen that the slot was held.
      kernel.exchangeIf(taskSlot(map, taskAt(map, ordinal)) + TASK_HELD_OFFSET, HELD_UNTIL_RING, HELD_SILENTLY);
    }
    for (const ordinal of this.#lanes) {
      if (kernel.laneOf(this.#core.block, ordinal) === 0) this.#lanes.delete(ordinal);
    }
    this.#isNoticed = false;
    this.#count();
    // SYNC purge (idle): pairs with the agent, which then asks for slots again that were held.
    if (isIdle) kernel.exchangeIf(map.job + JOB_SLOTS_WANTED_OFFSET, SLOTS_ENOUGH, SLOTS_LET_GO);
    if (this.busy < before) kernel.ring(engineSlot(map));
    return this.busy < before;
  }

  forget(ordinal: number): void {
    this.#held.delete(ordinal);
    this.#lanes.delete(ordinal);
    this.#count();
  }

  ended(ordinal: number): void {
    this.#held.delete(ordinal);
    this.#count();
  }
}

const bells = new WeakMap<SlotUser, SlotBell>();

function bellOf(core: SlotUser, task: SlotTables): SlotBell {
  let bell = bells.get(core);
  if (bell === undefined) {
    bell = core.add((activity) => new SlotBell(core, task, activity));
    bells.set(core, bell);
  }
  return bell;
}

/** Like lookAtSlots(), for a node whose agent has a thread of its own. */
export const lookAtSlotsAndRing: LookAtSlots = slotLooker(bellOf);
