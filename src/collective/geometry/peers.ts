// Sends the messages of a geometry to its other members.
import type { Endpoint } from "../../core/endpoint.js";
import type { Callback, Result } from "../../core/result.js";
import type { Channel } from "../schedule/channel.js";
import type { Membership } from "./membership.js";

export class Peers {
  readonly #channel: Channel;
  readonly #membership: Membership;

  constructor(channel: Channel, membership: Membership) {
    this.#channel = channel;
    this.#membership = membership;
  }

  /** @param word that of the signature */
  send(kind: number, rank: number, number: number, tag: number, word: number, payload?: Uint8Array): Result {
    return this.#address(kind, rank).send(this.#endpoint(rank), number, tag, word, payload);
  }

  /** The payload may be reused at `onSent`. */
  sendLong(
    kind: number,
    rank: number,
    number: number,
    tag: number,
    word: number,
    payload: Uint8Array,
    onSent: Callback,
  ): void {
    this.#address(kind, rank).sendLong(this.#endpoint(rank), number, tag, word, payload, onSent);
  }

  /** Calls back once all messages to a member have left. False: they have left already. */
  whenSent(rank: number, onSent: Callback): boolean {
    return this.#channel.whenSent(this.#endpoint(rank), onSent);
  }

  #endpoint(rank: number): Endpoint {
    return this.#membership.endpoints[rank] as Endpoint;
  }

  #address(kind: number, rank: number): Channel {
    const { ids, id, rank: own } = this.#membership;
    return this.#channel.address(kind, ids[rank] as number, id, own);
  }
}
