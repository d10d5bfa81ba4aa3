// The pace of offered payloads: options of contexts and of `message.receive()`.
import { DEPTH_MAX } from "../../../assembly/layout.js";
import type { AbortSignalLike } from "../../support/like.js";
import { checkKeys, checkSignal, type Keys } from "../check.js";
import { checkInteger } from "../error.js";
import type { TransferType } from "../transfer-type.js";

/** The pace at which the engine moves an offered payload into a region. */
export interface Pacing {
  /**
   * Bytes of a fragment: 64 … 2^30 (default 262,144). One descriptor moves one fragment. A payload has at most 1,024
   * fragments, so a large payload has larger ones. If tasks share no memory, a fragment has at most 1,048,576 bytes, unless
   * 1,024 such fragments are too few.
   */
  readonly fragment?: number | undefined;
  /** Fragments that are requested at a time: 1 … 4 (default 2). */
  readonly depth?: number | undefined;
}

/** Options of `message.receive`. */
export interface ReceiveOptions extends Pacing {
  /** Aborting it gives the transfer up: it completes with CANCELED, unless all bytes are there. */
  readonly signal?: AbortSignalLike | undefined;
  /**
   * Type of the elements in the destination: the payload is unpacked there, as many elements as it has data for. The last may
   * be a part. A payload that is not here yet comes packed first, and takes its own length of memory meanwhile.
   */
  readonly type?: TransferType | undefined;
}

const RECEIVE_KEYS: Keys<ReceiveOptions> = { fragment: true, depth: true, signal: true, type: true };

/** Default bytes of a fragment, and default number of fragments that are requested at a time. */
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
