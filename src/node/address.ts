// The slot table: where an endpoint stands in this node's tables. Only this file divides by the number of contexts of a task.
//
// Each task of the node, and each task of another node with which those talk, has a task slot. Its contexts have one ordinal
// each: slot × contexts + context. The table of endpoints (assembly/layout/job.ts) has the endpoint of each ordinal.
import * as L from "../../assembly/layout.js";
import { contextOf, type Endpoint, endpointOf, taskOf } from "../core/endpoint.js";
import { EAGAIN, type Result, SHUTDOWN } from "../core/result.js";
import type { Kernel, Memory } from "../kernel/kernel.js";
import { engineSlot, type MemoryMap, ordinalOf, taskSlot } from "../memory/map.js";

/** How many contexts each task has. */
export type PerTask = Pick<MemoryMap, "contexts">;
/** The number of contexts of a task, and of task slots of the node. */
type Shape = PerTask & Pick<MemoryMap, "tasks">;

/** How many endpoints the node has room for. */
export function endpointCount({ tasks, contexts }: Shape): number {
  return tasks * contexts;
}

/** The task slot of an ordinal. */
export function taskAt({ contexts }: PerTask, ordinal: number): number {
  return Math.floor(ordinal / contexts);
}

/** The context of an ordinal, by its number in its task. */
export function contextAt({ contexts }: PerTask, ordinal: number): number {
  return ordinal % contexts;
}

/** Whether an ordinal is that of a task of another node. */
export function isRemote({ contexts, locals }: PerTask & Pick<MemoryMap, "locals">, ordinal: number): boolean {
  return ordinal >= locals * contexts;
}

/** In place of a task slot or ordinal: the task has none. */
export const UNBOUND = -1;

/** The kernel functions that give slots away. */
type Binding = Pick<Kernel, "loadWord" | "storeWord" | "addWord" | "exchangeIf" | "ring" | "pause">;

/**
 * How often bind() tries to take the lock, and the divisions between two tries: 0.7 µs in wasm, 1.6 in the twin, so 50 or 100 µs
 * in all. A holder needs 5 µs, 40 to 100 in its second call, and up to 450 in its first (Node 20, Zen 5).
 */
const LOCK_TRIES = 64;
const LOCK_PAUSE = 200;

export class SlotTable {
  /** The endpoint of each ordinal; NONE: the slot is free. A lookup instead of a division (38 → 44 M messages/s). */
  readonly table: Uint32Array;
  /** Number of the task in slot 0. */
  readonly first: number;
  readonly #kernel: Binding;
  readonly #map: MemoryMap;
  /** The last known slot of a task, by its number. The table says whether the task still has it. */
  readonly #slots = new Map<number, number>();
  /** Whether the last bind() was in vain only because another thread had the lock: that thread is not running. */
  isLocked = false;

  constructor(kernel: Binding, { buffer }: Pick<Memory, "buffer">, map: MemoryMap) {
    this.#kernel = kernel;
    this.#map = map;
    this.table = new Uint32Array(buffer, map.endpointsBase, endpointCount(map));
    this.first = this.numberOf(0);
  }

  /** The number of the task in a slot; UNBOUND: the slot is free, or does not exist. */
  numberOf(slot: number): number {
    const endpoint = this.table[slot * this.#map.contexts] ?? L.NONE;
    return endpoint === L.NONE ? UNBOUND : taskOf(endpoint);
  }

  /** The endpoint of an ordinal, whose slot is not free. */
  endpointAt(ordinal: number): Endpoint {
    return this.table[ordinal] as number;
  }

  /** Whether the direct path of a send finds an ordinal: it computes it from the endpoint. */
  isDirect(ordinal: number): boolean {
    const slot = taskAt(this.#map, ordinal);
    return this.numberOf(slot) - this.first === slot;
  }

  /** The ordinal of an endpoint, or UNBOUND. */
  ordinalOf(endpoint: Endpoint): number {
    const slot = this.slotOf(taskOf(endpoint));
    return slot < 0 ? UNBOUND : ordinalOf(this.#map, slot, contextOf(endpoint));
  }

  /** Whether a slot is bound to a task. If so, the slot's other words are valid, too. */
  #isAt(slot: number, number: number): boolean {
    if (this.numberOf(slot) !== number) return false;
    const { locals, contexts, endpointsBase } = this.#map;
    // SYNC endpoint (look): pairs with bind(). The node's own tasks have had their slots from the start.
    return slot < locals || this.#kernel.loadWord(endpointsBase + 4 * slot * contexts) === endpointOf(number, 0);
  }

  /** The slot of a task, or UNBOUND. */
  slotOf(number: number): number {
    const { tasks } = this.#map;
    const direct = number - this.first;
    if (direct >= 0 && direct < tasks && this.#isAt(direct, number)) return direct;
    const last = this.#slots.get(number);
    if (last !== undefined && this.#isAt(last, number)) return last;
    for (let slot = 0; slot < tasks; slot++) {
      if (!this.#isAt(slot, number)) continue;
      this.#slots.set(number, slot);
      return slot;
    }
    this.#slots.delete(number);
    return UNBOUND;
  }

  /**
   * The slot of a task; binds a free one if the task has none. Only the agent gets the last free one. So it can always take
   * frames of other nodes, and no two nodes wait for each other's slots.
   * @param holder slot of the calling task, or of the agent
   * @returns UNBOUND: no slot is free, or another thread has the lock (`isLocked`): try again. Or the agent has ended: refusal()
   */
  bind(number: number, holder: number): number {
    this.isLocked = false;
    const bound = this.slotOf(number);
    if (bound >= 0) return bound;
    const kernel = this.#kernel;
    const lock = this.#map.job + L.JOB_BIND_LOCK_OFFSET;
    // SYNC bind-lock (take): pairs with the release below, and with markDead(), which releases it for a dead holder.
    for (let tries = 1; kernel.exchangeIf(lock, 0, holder + 1) !== 0; tries++) {
      this.isLocked = tries === LOCK_TRIES;
      if (this.isLocked) return UNBOUND;
      kernel.pause(LOCK_PAUSE);
    }
    const slot = this.#bindLocked(number, holder === this.#map.tasks ? 1 : 2);
    kernel.storeWord(lock, 0); // SYNC bind-lock (release)
    // Behind the release: the agent may wait for the lock.
    if (holder !== this.#map.tasks) kernel.ring(engineSlot(this.#map));
    return slot;
  }

  /**
   * As bind(), for something new: UNBOUND also while the slot is about to be given back. The task then waits for its turn.
   * @param holder slot of the calling task
   */
  reach(number: number, holder: number): number {
    const slot = this.bind(number, holder);
    return slot < 0 || !this.isSlotLeaving(ordinalOf(this.#map, slot, 0)) ? slot : UNBOUND;
  }

  /**
   * Why the last bind() or reach() was in vain. EAGAIN: asks the agent for a slot, unless only the lock is awaited.
   * SHUTDOWN: no message reaches other nodes any more.
   */
  refusal(): Result {
    if (this.hasAgentEnded) return SHUTDOWN;
    if (!this.isLocked) this.want();
    return EAGAIN;
  }

  /** Whether the agent has ended: no message reaches other nodes any more. */
  get hasAgentEnded(): boolean {
    // SYNC task-state (engine): pairs with the monitor's store.
    return this.#kernel.loadWord(engineSlot(this.#map) + L.TASK_STATE_OFFSET) >= L.TASK_CLOSED;
  }

  /** Whether the slot of an ordinal is about to be given back: no new operation may begin for it. */
  isSlotLeaving(ordinal: number): boolean {
    if (!isRemote(this.#map, ordinal)) return false;
    // SYNC purge (look): pairs with the agent, which asks for the slot.
    return this.#kernel.loadWord(taskSlot(this.#map, taskAt(this.#map, ordinal)) + L.TASK_LEAVING_OFFSET) !== 0;
  }

  /** A task waits for a free slot: asks the agent to give back slots of idle targets. */
  want(): void {
    this.#kernel.storeWord(this.#map.job + L.JOB_SLOTS_WANTED_OFFSET, L.SLOTS_WANTED); // SYNC purge (want)
    if (this.#map.engine) this.#kernel.ring(engineSlot(this.#map));
  }

  /** @param least slots that have to be free */
  #bindLocked(number: number, least: number): number {
    const bound = this.slotOf(number);
    if (bound >= 0) return bound;
    // No message reaches the task, and no thread would tell the contexts of its end.
    if (this.hasAgentEnded) return UNBOUND;
    const { tasks, locals, contexts, endpointsBase } = this.#map;
    const direct = number - this.first;
    let [slot, free] = [UNBOUND, 0];
    for (let one = locals; one < tasks && (free < least || slot !== direct); one++) {
      if (!this.#isFree(one)) continue;
      free++;
      if (slot === UNBOUND || one === direct) slot = one;
    }
    // If there is a slot for every task, none has to wait.
    if (free < (tasks < this.#map.jobTasks ? least : 1)) return UNBOUND;
    const pointer = taskSlot(this.#map, slot);
    for (const offset of [L.TASK_TOLD_OFFSET, L.TASK_LEAVING_OFFSET, L.TASK_HELD_OFFSET, L.TASK_CERTAIN_OFFSET]) {
      this.#kernel.storeWord(pointer + offset, 0);
    }
    this.#kernel.storeWord(pointer + L.TASK_STATE_OFFSET, L.TASK_UP); // SYNC task-state (peer): pairs with markEngineDead().
    if (this.hasAgentEnded) {
      this.#kernel.storeWord(pointer + L.TASK_STATE_OFFSET, L.TASK_ABSENT);
      return UNBOUND;
    }
    // The first context's entry comes last: it says that the slot is bound.
    for (let context = contexts - 1; context >= 0; context--) {
      // SYNC endpoint (bind): pairs with the looks at the table.
      this.#kernel.storeWord(endpointsBase + 4 * ordinalOf(this.#map, slot, context), endpointOf(number, context));
    }
    this.#kernel.addWord(this.#map.job + L.JOB_BINDS_OFFSET, 1); // SYNC endpoint (count)
    return slot;
  }

  /** The caller has the lock. A slot that is UP without an endpoint was left by a thread that died while binding it. */
  #isFree(slot: number): boolean {
    if (this.numberOf(slot) !== UNBOUND) return false;
    return this.#kernel.loadWord(taskSlot(this.#map, slot) + L.TASK_STATE_OFFSET) < L.TASK_CLOSED;
  }
}
