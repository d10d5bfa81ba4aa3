// An extension is built upon a geometry and has messages of its own: a grid, an aggregator.
import type { Arrival } from "../protocol/late-handler.js";

export interface Extension {
  /** A message of this extension has come from a member. An error that this function throws comes out of `advance()`. */
  came(rank: number, tag: number, word: number, arrival: Arrival): void;
  /** A member has ended or closed the geometry, and all its messages are delivered. Also called for this member itself. */
  gone(rank: number): void;
}
