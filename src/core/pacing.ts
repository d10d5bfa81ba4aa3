// How fast a payload that was offered is moved: options of contexts, and of `message.receive()`.
import { DEPTH_MAX } from "../../assembly/layout.js";
import type { AbortSignalLike } from "../support/like.js";
import { checkKeys, checkSignal, type Keys } from "./check.js";
import { checkInteger } from "./error.js";

/** How fast a payload is moved into a region. */
export interface Pacing {
  /**
   * Bytes that are moved for one descriptor, 64 … 2^30 (default 262,144). A payload has at most 1,024 fragments: of one
   * that is larger they are too. Of one in another memory they are 1,048,576 at the most, but for that.
   */
  readonly fragment?: number | undefined;
  /** Fragments that are asked for at a time, 1 … 4 (default 2). */
  readonly depth?: number | undefined;
}

/** Options of `message.receive`. */
export interface ReceiveOptions extends Pacing {
  /** Gives the payload up: it comes to CANCELED, unless all of it is there. */
  readonly signal?: AbortSignalLike | undefined;
}

const RECEIVE_KEYS: Keys<ReceiveOptions> = { fragment: true, depth: true, signal: true };

/** Bytes of a fragment, and fragments that are asked for at a time, where nothing else is said. */
export const FRAGMENT_BYTES = 262144;
export const DEPTH = 2;
const FRAGMENT_BYTES_MIN = 64;
const FRAGMENT_BYTES_MAX = 2 ** 30;

/** @throws PAMIR_INVAL */
export function checkReceive(options: ReceiveOptions): void {
  checkKeys("options of receive()", options, RECEIVE_KEYS);
  checkSignal("receive()", options.signal);
  checkPacing(options);
}

/** @throws PAMIR_INVAL */
export function checkPacing({ fragment = FRAGMENT_BYTES, depth = DEPTH }: Pacing): void {
  checkInteger("fragment", fragment, FRAGMENT_BYTES_MIN, FRAGMENT_BYTES_MAX);
  checkInteger("depth", depth, 1, DEPTH_MAX);
}
