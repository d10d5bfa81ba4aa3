// Messages whose payload stays where it is until the target has chosen a destination. sender.ts has the payloads that a context
// offers, receiver.ts the payloads that other contexts offer to it, and transfers.ts the rget FIFOs that the two engines use.

import type { Pacing } from "../../core/message/pacing.js";
import type { ProgressSource } from "../../core/progress.js";
import type { RegionTable } from "../../memory/regions.js";
import type { ContextParts } from "../base.js";
import { RendezvousReceiver } from "./receiver.js";
import { RendezvousSender } from "./sender.js";
import { TransferTable } from "./transfers.js";

export class Rendezvous implements ProgressSource {
  /**
   * Transfers that are not over. A field, because each advance() reads this count: a sum of two fields made advance() 6 %
   * slower.
   */
  busy = 0;
  readonly sender: RendezvousSender;
  readonly receiver: RendezvousReceiver;
  readonly #transfers: TransferTable;

  /** @throws PAMIR_INVAL */
  constructor(base: ContextParts, regions: RegionTable, pacing: Pacing) {
    const count = (change: 1 | -1): void => {
      this.busy += change;
      base.activity.add(change);
    };
    this.#transfers = new TransferTable(base, regions, count);
    this.sender = new RendezvousSender(base, regions, this.#transfers);
    this.receiver = new RendezvousReceiver(base, regions, this.#transfers, pacing, count);
  }

  /** Whether advance() would do something. */
  get hasWork(): boolean {
    return this.busy > 0 && (this.#transfers.hasWork || this.sender.hasWork || this.receiver.hasWork);
  }

  /** Whether no payload is offered. */
  get isDrained(): boolean {
    return this.sender.count === 0;
  }

  /**
   * One turn of the engine, and one slice of each payload that this thread copies; ends transfers that are over. Returns how
   * many ended.
   */
  advance(): number {
    const over = this.#transfers.advance();
    this.sender.advance();
    return over + this.receiver.advance();
  }

  /** An endpoint has ended: ends all transfers with it. */
  ended(ordinal: number): void {
    this.#transfers.ended(ordinal);
    this.receiver.ended(ordinal);
  }

  /** The engine thread has ended: ends the transfers that it may have begun. */
  engineEnded(hadBegun: boolean): void {
    this.#transfers.engineEnded(hadBegun);
  }

  /** Whether a payload is under way with an endpoint. */
  holds(ordinal: number): boolean {
    return this.#transfers.holds(ordinal) || this.receiver.holds(ordinal);
  }

  /** The context closes: its memory is freed once no thread can access it. */
  close(): void {
    this.#transfers.close();
    this.sender.close();
    this.receiver.close();
  }
}
