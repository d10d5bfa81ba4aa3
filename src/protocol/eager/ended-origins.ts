// The end of an origin: its last messages are still delivered, then its lane is given back, and all memory of an ended task.
import * as L from "../../../assembly/layout.js";
import type { Endpoint } from "../../core/endpoint.js";
import { taskSlot } from "../../memory/map.js";
import { taskAt } from "../../node/address.js";
import { mayBeInUse } from "../../node/liveness.js";
import type { ContextParts } from "../base.js";
import type { PausedOrigins } from "./paused-origins.js";

interface EndParts extends ContextParts {
  readonly paused: PausedOrigins;
  /** Called for each endpoint that has ended, by ordinal, once its last messages are delivered or kept. */
  gone(origin: number): void;
}

export class EndedOrigins {
  /** Whether there is work for reclaim(). A field, since each round with an event reads it. */
  hasOrphans = false;
  readonly #parts: EndParts;
  /** Endpoints that have ended, by ordinal. */
  readonly #ended = new Set<number>();
  /** Those of them whose lane is given back once it is empty. */
  readonly #orphans = new Set<number>();
  /** Tasks that have ended and may still own memory. */
  readonly #unreclaimed = new Set<number>();

  constructor(parts: EndParts) {
    this.#parts = parts;
  }

  /**
   * Acknowledges the notice. Call acknowledgeNotice() before looking for changes.
   * @param ended tasks that have ended
   */
  acknowledgeNotice(notice: number, ended: readonly number[]): void {
    const { kernel, block } = this.#parts;
    // SYNC quiescence (seen): this context uses nothing any more that was closed, or whose owner had ended, before the
    // notice.
    kernel.storeWord(block + L.CONTEXT_NOTICE_SEEN_OFFSET, notice);
    // This context may have been the last context to use memory of a task that ended before.
    for (const task of ended) this.#unreclaimed.add(task);
    if (ended.length > 0) this.hasOrphans = true;
  }

  /** An endpoint has ended. Called once: the endpoint's messages are still delivered, then its lane is given back. */
  add(origin: number): void {
    const { kernel, block, paused } = this.#parts;
    this.#ended.add(origin);
    this.#orphans.add(origin);
    this.hasOrphans = true;
    if (paused.origins.has(origin)) paused.resume();
    if (kernel.laneOf(block, origin) !== 0) kernel.laneReady(block, origin);
  }

  /** Whether add() was called for an endpoint. */
  has(origin: number): boolean {
    return this.#ended.has(origin);
  }

  /** Whether an endpoint has ended, and all its messages are delivered or kept. */
  isGone(endpoint: Endpoint): boolean {
    const ordinal = this.#parts.addresses.ordinalOf(endpoint);
    return this.#ended.has(ordinal) && !this.#orphans.has(ordinal);
  }

  /** Gives back the empty lanes of ended origins, and then all other memory of ended tasks. */
  reclaim(): void {
    const { kernel, map, block, paused, gone } = this.#parts;
    const { job } = map;
    for (const origin of this.#orphans) {
      const lane = kernel.laneOf(block, origin);
      if (lane !== 0) {
        if (paused.origins.has(origin) || kernel.lanePeek(lane) !== 0) continue;
        kernel.laneSwitch(job, block, origin, 0);
      }
      this.#orphans.delete(origin);
      // Even if the lane itself has ended, after its last message.
      const task = taskAt(map, origin);
      if (kernel.loadWord(taskSlot(map, task) + L.TASK_STATE_OFFSET) >= L.TASK_CLOSED) this.#unreclaimed.add(task);
      gone(origin);
    }
    // An ended task's lane that is in no table is unused: the task died before it entered the lane. The last context to stop
    // using the task's memory frees all of it.
    for (const task of this.#unreclaimed) if (!mayBeInUse(kernel, map, task)) kernel.heapReclaim(job, task);
    this.#unreclaimed.clear();
    this.hasOrphans = this.#orphans.size > 0;
  }

  /** An ordinal stands for another endpoint from now on. */
  forget(origin: number): void {
    this.#ended.delete(origin);
    this.#orphans.delete(origin);
    this.hasOrphans = this.#orphans.size > 0 || this.#unreclaimed.size > 0;
  }
}
