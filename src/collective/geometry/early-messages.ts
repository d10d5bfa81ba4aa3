// Messages that come before this member has begun their operation.
import { COLLECTIVE_HEADER_SIZE } from "../../../assembly/layout.js";
import type { Arrival } from "../../protocol/late-handler.js";
import { EAGER_BYTES } from "../schedule/channel.js";

/**
 * Bytes for which an early message counts, besides its payload, and the most bytes of one member: see EARLY_BYTES_MAX of
 * collectives.ts.
 */
const EARLY_BYTES = 64;
const EARLY_BYTES_MAX = 67_108_864;
/** A message whose operation has not begun here. */
export interface Early {
  readonly kind: number;
  readonly rank: number;
  readonly tag: number;
  readonly signature: number;
  readonly arrival: Arrival;
}

export class EarlyMessages {
  /** By number. Other code reads whether there are any. */
  readonly byNumber = new Map<number, Early[]>();
  /** Bytes of early messages, by the rank that has sent them. */
  readonly #bytes: number[] = [];

  /** Keeps a message until its operation begins. */
  keep(number: number, early: Early): void {
    const { rank, arrival } = early;
    const bytes = (this.#bytes[rank] ?? 0) + EARLY_BYTES + arrival.payloadBytes;
    // A long transfer waits until this member is ready.
    if (arrival.payloadBytes > EAGER_BYTES || bytes > EARLY_BYTES_MAX) return;
    this.#bytes[rank] = bytes;
    const list = this.byNumber.get(number);
    const kept = { ...early, arrival: copyOf(arrival) };
    if (list === undefined) this.byNumber.set(number, [kept]);
    else list.push(kept);
  }

  /** The early messages of an operation. */
  of(number: number): readonly Early[] {
    return this.byNumber.get(number) ?? [];
  }

  /** Early messages of an operation are delivered, or no longer needed. */
  forget(number: number): void {
    for (const { rank, arrival } of this.of(number))
      this.#bytes[rank] = (this.#bytes[rank] as number) - EARLY_BYTES - arrival.payloadBytes;
    this.byNumber.delete(number);
  }
}

/** A copy of a message, which outlives the message's handler. */
export function copyOf(arrival: Arrival): Arrival {
  const words = Uint32Array.from({ length: COLLECTIVE_HEADER_SIZE / 4 }, (_, at) => arrival.headerWord(4 * at));
  return {
    origin: arrival.origin,
    payloadBytes: arrival.payloadBytes,
    payload: arrival.payload.slice(),
    headerWord: (offset) => words[offset >>> 2] as number,
  };
}
