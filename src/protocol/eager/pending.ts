// Messages that wait for room at one target, in order.
import * as L from "../../../assembly/layout.js";
import { bodyBytes } from "../../core/message/message.js";
import type { RegionState } from "../../core/region.js";
import type { Callback } from "../../core/result.js";
import type { GivenRegion } from "../../memory/regions.js";
import { wasCut } from "../../support/copy.js";
import { Queue } from "../../support/queue.js";
import type { Offer } from "../rendezvous/sender.js";

/** A message that is on its way: in the pending queue, or being sent. */
export interface SendRequest {
  readonly dispatch: number;
  readonly header: Uint8Array | undefined;
  /** While pending and not copied, a view of fixed length. The view's length becomes 0 if its buffer is detached or shrunk. */
  readonly payload: Uint8Array | undefined;
  /** Bytes of the payload when it was sent. */
  readonly payloadBytes: number;
  /** The region that holds the payload, unless that is copied or given away. */
  readonly region: RegionState | undefined;
  readonly onLocal: Callback | undefined;
  readonly onRemote: Callback | undefined;
  readonly cookie: unknown;
  /** Copied bytes of the message, which count against the limit of the pending queue. */
  readonly held: number;
  /** Bytes of the body sent in packets so far; -1: nothing is sent. */
  sent: number;
  /** The payload is to be offered, if there is memory for an offer. Then the offer calls the callbacks. */
  readonly offer: Offer | undefined;
  /** The region that holds the payload, if the region is given away with the message. */
  readonly gift: GivenRegion | undefined;
}

/** The part of a request that is needed when it ends. */
export type Ending = Pick<SendRequest, "onLocal" | "cookie"> & Partial<Pick<SendRequest, "onRemote" | "gift">>;

/**
 * Most bytes of one packet of a large message: with the headers that nodes add, it fits into one packet of a link on loopback.
 */
export const PACKET_BYTES = 65_280;
/**
 * A request in the form that the pending queue keeps: its caller may reuse the header, and also a copied payload.
 * @param copied bytes of the copies
 */
export function pendingOf(request: SendRequest, copied: number, copyPayload: boolean): SendRequest {
  const { header, payload, payloadBytes } = request;
  return {
    ...request,
    header: header?.slice(),
    payload: copyPayload ? payload?.slice() : payload?.subarray(0, payloadBytes),
    held: copied,
  };
}

/** Bytes of a request's body as one record. */
export function totalOf({ header, payloadBytes }: SendRequest): number {
  return bodyBytes(header?.length ?? 0, payloadBytes);
}

/** Whether a request's payload no longer exists: its region was closed, or its buffer detached or shrunk. */
export function isPayloadClosed({ payload, payloadBytes, region }: SendRequest): boolean {
  return region?.closed === true || (payload !== undefined && wasCut(payload, payloadBytes));
}

/** Bytes of the body of the record that a request sends next. A record of the request never needs more room. */
export function nextBytes(request: SendRequest, inBuffer: boolean): number {
  const { sent } = request;
  if (isPayloadClosed(request)) return 0;
  if (request.offer !== undefined && sent < 0) return L.RTS_SIZE + (request.header?.length ?? 0);
  if (inBuffer) return L.BUFFER_SIZE + (request.header?.length ?? 0);
  const total = totalOf(request);
  return sent < 0 && total <= L.RECV_IMMEDIATE_MAX ? total : Math.min(total - Math.max(sent, 0), PACKET_BYTES);
}

/**
 * The pending queue of one target. Messages about transfers that have begun go first: an offer at the head may wait until
 * the target has finished with an earlier payload, which takes such messages.
 */
export class PendingMessages {
  readonly #ofTransfers = new Queue<SendRequest>();
  readonly #others = new Queue<SendRequest>();

  /** The queue with the message that goes next. A message of several packets that has begun is finished before. */
  get #next(): Queue<SendRequest> {
    const { first } = this.#others;
    const hasBegun = first !== undefined && first.sent >= 0;
    return hasBegun || this.#ofTransfers.length === 0 ? this.#others : this.#ofTransfers;
  }

  get length(): number {
    return this.#ofTransfers.length + this.#others.length;
  }

  get first(): SendRequest | undefined {
    return this.#next.first;
  }

  push(request: SendRequest): void {
    (request.dispatch < L.DISPATCH_ID_PULL ? this.#others : this.#ofTransfers).push(request);
  }

  shift(): void {
    this.#next.shift();
  }

  *[Symbol.iterator](): Iterator<SendRequest> {
    yield* this.#ofTransfers;
    yield* this.#others;
  }

  clear(): void {
    this.#ofTransfers.clear();
    this.#others.clear();
  }
}
