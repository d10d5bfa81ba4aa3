// Purge: gives back the slots of idle tasks of other nodes, when a task or a frame waits for a slot.
//
//   UP ─► LEAVING ─► every context has acknowledged ─┬─► one holds it, or something came: UP
//                                                    └─► lanes are given up ─► acknowledged again ─┬─► one holds it: UP
//                                                                                                  └─► FREED
//   FREED ─► acknowledged once more ─► free
//
// A lane may end in an offered payload that has no handler yet. The context reads it behind its acknowledgement, and says that
// it holds the slot with the second one. A task that has ended goes to FREED at once, if no context has a lane to or from it.
import * as L from "../../../assembly/layout.js";
import type { Kernel, Memory } from "../../kernel/kernel.js";
import { contextBlock, type MemoryMap, ordinalOf, taskSlot } from "../../memory/map.js";
import type { GracePeriod, GracePeriods } from "../../memory/regions.js";
import { type SlotTable, UNBOUND } from "../../node/address.js";
import { gracePeriods, mayBeInUse } from "../../node/liveness.js";
import type { NetParts } from "./net-parts.js";

/** Most slots that are on their way back at a time. */
const LEAVING_MAX = 4;

/** The part of the agent that a purge needs. */
export interface PurgeHost {
  /** Whether an operation with the task in a slot is under way. @param hasAny whether records that may go at once count */
  isBusy(slot: number, hasAny: boolean): boolean;
  /** Ends the lanes from the task in a slot. False: some have no room for the switch record. */
  closeLanes(slot: number): boolean;
  /** Number of the last frame to or from the task. */
  lastUse(task: number): number;
  /** The slot stands for another task from now on. */
  forget(slot: number, task: number): void;
}

/** A slot that is being given back. */
interface Leaving {
  readonly slot: number;
  readonly task: number;
  /**
   * `closed`: there are no lanes any more. `stays`, then `rests`: two grace periods in which the agent does not ask for the
   * slot again. In the first period, each context begins a round, and retries waiting messages with the slot; in the second, it
   * acknowledges that round. Otherwise an operation that holds the slot might never send the message that ends the operation.
   */
  phase: "asked" | "closing" | "closed" | "freed" | "stays" | "rests";
  grace: GracePeriod;
  /** Whether a task that held the slot may have ended since the agent asked for the slot: an ended task does not ring. */
  mayBeLeft: boolean;
}

export class Purge {
  readonly #kernel: Kernel;
  readonly #memory: Memory;
  readonly #map: MemoryMap;
  readonly #addresses: SlotTable;
  readonly #host: PurgeHost;
  readonly #grace: GracePeriods;
  #leaving: Leaving[] = [];
  /** Slots that a context held at the last attempt, with their last use at that time, until a slot is wanted anew. */
  readonly #held = new Map<number, number>();
  /** Held slots with which tasks wanted to begin a transfer. */
  readonly #reached = new Set<number>();
  /** By slot: the task that has it, as far as it was the agent's, or was left alone once. */
  readonly #known = new Map<number, number>();
  /** Whether the next free slot goes to tasks or to frames, if both wait for a slot. */
  #turnOf: "all" | "tasks" | "frames" = "all";
  /** A frame waits for a slot. */
  isWanted = false;

  constructor({ kernel, memory, map, addresses }: NetParts, host: PurgeHost) {
    this.#kernel = kernel;
    this.#memory = memory;
    this.#map = map;
    this.#addresses = addresses;
    this.#host = host;
    this.#grace = gracePeriods(kernel, map);
  }

  /**
   * One step for each slot on its way back, and the choice of further slots while slots are wanted. Contexts ring when an
   * awaited step is done: see protocol/slots.ts. Returns whether a slot is free now, or stays.
   */
  turn(): boolean {
    const wanted = this.#map.job + L.JOB_SLOTS_WANTED_OFFSET;
    // SYNC purge (wanted): pairs with want() of SlotTable. A task that still waits calls want() again.
    const asked = this.#kernel.loadWord(wanted);
    if (asked !== L.SLOTS_ENOUGH) {
      this.#kernel.storeWord(wanted, L.SLOTS_ENOUGH);
      this.#held.clear();
    }
    if (asked === L.SLOTS_WANTED && this.#turnOf === "all") this.#turnOf = "tasks";
    const isWanted = this.isWanted || asked === L.SLOTS_WANTED;
    if (!isWanted && this.#leaving.length === 0) return false;
    const before = this.#leaving;
    let isAny = false;
    // A step may add to the list.
    this.#leaving = [];
    for (const one of before) {
      if (this.#step(one)) isAny = true;
      else this.#leaving.push(one);
    }
    if (!isWanted) return isAny;
    this.isWanted = false;
    // The last free slot is the agent's: see bind() of SlotTable.
    if (this.#onTheirWay < LEAVING_MAX && this.#free < 2) this.#choose();
    return isAny;
  }

  /** A task or a context of this node has ended: slots that it held may be idle now. */
  ended(): void {
    this.#held.clear();
    for (const one of this.#leaving) one.mayBeLeft = true;
  }

  /** The agent has bound a slot for a frame. */
  took(slot: number, task: number): void {
    this.#known.set(slot, task);
    this.#turnOf = "all";
  }

  /**
   * Whether frames leave the free slots to tasks that wait. A task needs two free slots, and tries in its own rounds, so the
   * agent would always come first. The agent waits while slots are on their way back, or have been free for at most two grace
   * periods.
   */
  get isTurnOfTasks(): boolean {
    if (this.#turnOf !== "tasks") return false;
    return this.#onTheirWay > 0 || this.#leaving.some(({ slot }) => this.#addresses.numberOf(slot) === UNBOUND);
  }

  get #onTheirWay(): number {
    return this.#leaving.filter(({ phase }) => phase !== "stays" && phase !== "rests").length;
  }

  /** How many slots are free, or about to be. */
  get #free(): number {
    let count = this.#onTheirWay;
    for (let slot = this.#map.locals; slot < this.#map.tasks; slot++) {
      if (this.#addresses.numberOf(slot) === UNBOUND && this.#stateOf(slot) === L.TASK_ABSENT) count++;
    }
    return count;
  }

  #stateOf(slot: number): number {
    return this.#kernel.loadWord(taskSlot(this.#map, slot) + L.TASK_STATE_OFFSET);
  }

  /** Asks for the slot that was used longest ago, among slots that the agent believes idle. */
  #choose(): void {
    let [best, bestUse] = [UNBOUND, Number.POSITIVE_INFINITY];
    for (let slot = this.#map.locals; slot < this.#map.tasks; slot++) {
      const task = this.#addresses.numberOf(slot);
      if (task === UNBOUND || this.#leaving.some((one) => one.slot === slot)) continue;
      if (this.#stateOf(slot) >= L.TASK_CLOSED) {
        if (!mayBeInUse(this.#kernel, this.#map, slot) && !this.#hasLanes(slot)) this.#takeBack(slot, task);
        continue;
      }
      if (this.#known.get(slot) !== task) {
        // A task has bound this slot, and uses it in a later round: until then, this slot would count as used longest ago.
        this.#known.set(slot, task);
        this.#turnOf = "frames";
        this.#rest(slot, task);
        continue;
      }
      const use = this.#host.lastUse(task);
      const isBest = use < bestUse && this.#held.get(slot) !== use;
      // Records that may go at once go while the contexts look: a lane to a task may hold some at any time.
      if (isBest && !this.#host.isBusy(slot, false)) [best, bestUse] = [slot, use];
    }
    if (best === UNBOUND) {
      // A context that holds a slot rings once it holds the slot no more. A context that wanted to begin a transfer with the
      // slot does not ring.
      for (const slot of this.#reached) this.#held.delete(slot);
      this.#reached.clear();
      return;
    }
    const pointer = taskSlot(this.#map, best);
    this.#kernel.storeWord(pointer + L.TASK_HELD_OFFSET, L.HELD_NOT);
    // SYNC purge (ask): pairs with isSlotLeaving() and lookAtSlots(): before the notice.
    this.#kernel.storeWord(pointer + L.TASK_LEAVING_OFFSET, 1);
    const task = this.#addresses.numberOf(best);
    this.#leaving.push({ slot: best, task, phase: "asked", grace: this.#grace.begin(), mayBeLeft: false });
  }

  /** Whether a slot is free by now, or stays. */
  #step(one: Leaving): boolean {
    const { slot, task } = one;
    if (!this.#grace.isOver(one.grace)) return false;
    if (one.phase === "rests") return true;
    if (one.phase === "stays") {
      one.phase = "rests";
      one.grace = this.#grace.begin();
      return false;
    }
    if (one.phase === "freed") {
      this.#giveBack(slot);
      // Each context begins a round, and tries to have the slot.
      this.#rest(slot, task);
      return true;
    }
    if (one.phase === "closing") {
      if (!this.#host.closeLanes(slot) || this.#hasLanes(slot)) return false;
      one.phase = "closed";
      one.grace = this.#grace.begin();
      return false;
    }
    // SYNC purge (held): pairs with lookAtSlots().
    const held = this.#kernel.loadWord(taskSlot(this.#map, slot) + L.TASK_HELD_OFFSET);
    if (held !== L.HELD_NOT || this.#host.isBusy(slot, true) || this.#stateOf(slot) >= L.TASK_CLOSED) {
      if (held !== L.HELD_NOT) this.#held.set(slot, this.#host.lastUse(task));
      if (held === L.HELD_UNTIL_RING && !one.mayBeLeft) this.#reached.delete(slot);
      else this.#reached.add(slot);
      this.#stay(one);
      return true;
    }
    if (one.phase === "asked") {
      one.phase = "closing";
      return this.#step(one);
    }
    this.#takeBack(slot, task);
    return true;
  }

  /** A slot stays bound to its task. */
  #stay({ slot, task }: Leaving): void {
    this.#kernel.storeWord(taskSlot(this.#map, slot) + L.TASK_LEAVING_OFFSET, 0);
    // Makes each context retry messages that have waited meanwhile.
    this.#rest(slot, task);
  }

  /** Leaves a slot alone for two grace periods. */
  #rest(slot: number, task: number): void {
    this.#leaving.push({ slot, task, phase: "stays", grace: this.#grace.begin(), mayBeLeft: false });
  }

  /** Whether there is a lane to or from a task of another node. */
  #hasLanes(slot: number): boolean {
    const { locals, contexts } = this.#map;
    for (let context = 0; context < contexts; context++) {
      const peer = ordinalOf(this.#map, slot, context);
      for (let own = 0; own < locals * contexts; own++) {
        if (this.#kernel.laneOf(contextBlock(this.#map, peer), own) !== 0) return true;
        if (this.#kernel.laneOf(contextBlock(this.#map, own), peer) !== 0) return true;
      }
    }
    return false;
  }

  /** No context uses a slot any more: frees the slot. Each context forgets the slot's task at the next notice. */
  #takeBack(slot: number, task: number): void {
    this.#host.forget(slot, task);
    this.#known.delete(slot);
    this.#kernel.storeWord(taskSlot(this.#map, slot) + L.TASK_STATE_OFFSET, L.TASK_CLOSED);
    const { contexts, endpointsBase } = this.#map;
    for (let context = 0; context < contexts; context++) {
      // SYNC endpoint (free): pairs with the looks at the table.
      this.#kernel.storeWord(endpointsBase + 4 * ordinalOf(this.#map, slot, context), L.NONE);
    }
    this.#leaving.push({ slot, task, phase: "freed", grace: this.#grace.begin(), mayBeLeft: false });
  }

  /** The slot may be bound again. */
  #giveBack(slot: number): void {
    const { words } = this.#memory;
    for (let context = 0; context < this.#map.contexts; context++) {
      const block = contextBlock(this.#map, ordinalOf(this.#map, slot, context));
      words.fill(0, block >>> 2, (block >>> 2) + (L.ENDPOINT_COUNT_MAX >>> 5));
      words.fill(
        0,
        (block + L.CONTEXT_ATTENDING_OFFSET) >>> 2,
        ((block + L.CONTEXT_ATTENDING_OFFSET) >>> 2) + (L.ENDPOINT_COUNT_MAX >>> 5),
      );
      for (const offset of [L.CONTEXT_ATTENDED_COUNT_OFFSET, L.CONTEXT_EVENT_COUNT_OFFSET])
        words[(block + offset) >>> 2] = 0;
      this.#kernel.storeWord(block + L.CONTEXT_STATE_OFFSET, 0);
    }
    const pointer = taskSlot(this.#map, slot);
    this.#kernel.storeWord(pointer + L.TASK_LEAVING_OFFSET, 0);
    // SYNC purge (give): pairs with bind().
    this.#kernel.storeWord(pointer + L.TASK_STATE_OFFSET, L.TASK_ABSENT);
  }
}
