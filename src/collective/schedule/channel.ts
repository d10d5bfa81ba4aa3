// Sends messages between the members of geometries: one header for all messages, and no copy of a payload that can wait.
import * as L from "../../../assembly/layout.js";
import type { Endpoint } from "../../core/endpoint.js";
import type { Callback, Result } from "../../core/result.js";
import type { Sender } from "../../protocol/eager/sender.js";

/**
 * A transfer of more bytes begins once its receiver is ready for it. A transfer of at most so many bytes is copied if it has to
 * wait.
 */
export const EAGER_BYTES = 16 * 1024;
/** A longer transfer goes in messages of this many bytes, so that its copies on the way take bounded memory. */
export const FRAGMENT_BYTES = 512 * 1024;
/** Fragments that a receiver lets come before it has taken the first fragment. */
export const FRAGMENTS_AHEAD = 2;

export class Channel {
  readonly #sender: Pick<Sender, "sendOwn" | "room" | "whenRoom">;
  readonly #words = new Uint32Array(L.COLLECTIVE_HEADER_SIZE / 4);
  readonly #header = new Uint8Array(this.#words.buffer);

  constructor(sender: Pick<Sender, "sendOwn" | "room" | "whenRoom">) {
    this.#sender = sender;
  }

  /** Sets the origin and target words of the next header. */
  address(kind: number, to: number, from: number, rank: number): this {
    const words = this.#words;
    words[L.COLLECTIVE_KIND_OFFSET / 4] = kind;
    words[L.COLLECTIVE_TO_OFFSET / 4] = to;
    words[L.COLLECTIVE_FROM_OFFSET / 4] = from;
    words[L.COLLECTIVE_RANK_OFFSET / 4] = rank;
    return this;
  }

  /**
   * Sends the message. A payload of up to EAGER_BYTES may be reused when send() returns. @returns SHUTDOWN: the target has
   * ended
   */
  send(endpoint: Endpoint, number: number, tag: number, signature: number, payload?: Uint8Array): Result {
    this.#describe(number, tag, signature);
    return this.#sender.sendOwn(endpoint, L.DISPATCH_ID_COLLECTIVE, this.#header, payload, undefined);
  }

  /** Like send(), for more bytes, which are in use until `onSent`. `onSent` is called once, also with SHUTDOWN. */
  sendLong(
    endpoint: Endpoint,
    number: number,
    tag: number,
    signature: number,
    payload: Uint8Array,
    onSent: Callback,
  ): void {
    this.#describe(number, tag, signature);
    // The header is copied, because it is the same array each time.
    this.#sender.sendOwn(endpoint, L.DISPATCH_ID_COLLECTIVE, this.#header, payload, onSent);
  }

  /** Calls back once all messages to an endpoint have left the pending queue. False: they have left already. */
  whenSent(endpoint: Endpoint, onSent: Callback): boolean {
    if (this.#sender.room(endpoint) > 0) return false;
    this.#sender.whenRoom(endpoint, 1, onSent, undefined);
    return true;
  }

  #describe(number: number, tag: number, signature: number): void {
    const words = this.#words;
    words[L.COLLECTIVE_NUMBER_OFFSET / 4] = number;
    words[L.COLLECTIVE_TAG_OFFSET / 4] = tag;
    words[L.COLLECTIVE_SIGNATURE_OFFSET / 4] = signature;
  }
}
