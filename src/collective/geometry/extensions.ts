// What is built upon a geometry, at one member: grids, aggregators, counters. Each has a number, which its messages carry.
import { COLLECTIVE_EXTENSION } from "../../../assembly/layout.js";
import { type Callback, type Result, SUCCESS } from "../../core/result.js";
import type { Arrival } from "../../protocol/late-handler.js";
import type { Extension } from "../extension.js";
import type { Peers } from "./peers.js";

export class Extensions {
  readonly #peers: Peers;
  readonly #all = new Map<number, Extension>();

  constructor(peers: Peers) {
    this.#peers = peers;
  }

  /** Adds an extension. @param number of the operation in which members tell each other of the extension: the extension's number */
  add(number: number, extension: Extension): void {
    this.#all.set(number, extension);
  }

  /** Removes an extension: messages to it are dropped. */
  remove(number: number): void {
    this.#all.delete(number);
  }

  /** Sends a message to another member's extension. The payload may be reused once this returns, or at `onSent`. */
  send(number: number, rank: number, tag: number, word: number, payload?: Uint8Array, onSent?: Callback): Result {
    if (onSent === undefined) return this.#peers.send(COLLECTIVE_EXTENSION, rank, number, tag, word, payload);
    this.#peers.sendLong(COLLECTIVE_EXTENSION, rank, number, tag, word, payload as Uint8Array, onSent);
    return SUCCESS;
  }

  /** A message has come for an extension. */
  came(number: number, rank: number, tag: number, word: number, arrival: Arrival): void {
    this.#all.get(number)?.came(rank, tag, word, arrival);
  }

  /** A member has ended, or has closed the geometry. */
  gone(rank: number): void {
    for (const extension of this.#all.values()) extension.gone(rank);
  }

  /** This member closes the geometry. @param rank its own */
  close(rank: number): void {
    this.gone(rank);
    this.#all.clear();
  }
}
