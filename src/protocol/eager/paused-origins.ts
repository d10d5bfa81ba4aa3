// Which origins are read: all, but those whose next message found the unexpected queue full, and none once the context closes.
import * as L from "../../../assembly/layout.js";
import { type HandlerTable, NO_HANDLERS } from "../../core/message/dispatch.js";
import { stampOf } from "../../support/clock.js";
import { diagnostics } from "../../support/diagnostics.js";
import type { ContextParts } from "../base.js";

export class PausedOrigins {
  /**
   * The handlers that are called without a further look. None while an origin is paused: the rest of its records in a batch
   * must not be handled. A field, which each event reads.
   */
  direct: HandlerTable["plain"];
  /** Whether the context closes. */
  isStopped = false;
  /** Origins that are held back. */
  readonly origins = new Set<number>();
  readonly #parts: ContextParts;

  constructor(parts: ContextParts) {
    this.#parts = parts;
    this.direct = parts.handlers.plain;
  }

  /** Stops reading an origin, from the record with this body on. @param bytes bytes in the unexpected queue */
  pause(origin: number, body: number, bytes: number): void {
    const { kernel, memory, addresses, clock, ordinal, block } = this.#parts;
    const lane = kernel.laneOf(block, origin);
    memory.words[(lane + L.LANE_PAUSED_SINCE_OFFSET) >>> 2] = stampOf(clock, clock.now());
    kernel.lanePause(lane, body);
    this.origins.add(origin);
    this.direct = NO_HANDLERS;
    if (!diagnostics.paused.hasSubscribers) return;
    const [to, from] = [addresses.endpointAt(ordinal), addresses.endpointAt(origin)];
    diagnostics.paused.publish({ from, to, bytes });
  }

  /**
   * Reads again from the origins that were held back. A handler may cause this: a batch has the records of an origin one behind
   * the other, so none of a paused origin is left in it by then.
   */
  resume(): void {
    const { kernel, block, handlers } = this.#parts;
    for (const origin of this.origins) kernel.laneResume(block, origin);
    this.origins.clear();
    if (!this.isStopped) this.direct = handlers.plain;
  }

  /** The context closes: drops the rest of the current batch. */
  stop(): void {
    this.isStopped = true;
    this.direct = NO_HANDLERS;
  }
}
