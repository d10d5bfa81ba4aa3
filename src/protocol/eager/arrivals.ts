// Messages that are not here as a whole: where the packets of each origin go, and how much memory a copy of a message takes
// meanwhile.
import * as L from "../../../assembly/layout.js";
import type { Endpoint } from "../../core/endpoint.js";
import { type Bytes, copyToDestination, type Destination, headerSpace } from "../../core/message/message.js";
import { copyInto } from "../../support/copy.js";
import type { ContextParts } from "../base.js";
import type { PayloadOffer } from "../rendezvous/receiver.js";
import type { Incoming } from "./incoming.js";

/** The part of a message that comes in packets. */
export interface PacketArrival {
  /** Offset of the next packet in the destination, or in the copy. Below `end` after the arrival: the message is broken off. */
  at: number;
  /** Offset of the end of the last packet. */
  readonly end: number;
  /**
   * A receive(), or a copy, which completes with the last packet. The copy is in the unexpected queue, or waits for its
   * handler. Without a receive() and a copy, the packets are discarded.
   */
  readonly destination: Destination | undefined;
  readonly copy: MessageCopy | undefined;
}

/** A copy of a message, or of the part that its handler needs first. */
export interface MessageCopy extends Bytes {
  words: Int32Array<ArrayBuffer>;
  /** The whole message; beyond the limit, the part that has come, with memory for at most twice as much. */
  bytes: Uint8Array;
  /** Bytes for which the copy counts in the unexpected queue. */
  readonly counts: number;
  /** Dispatch id of the handler; for a call, `meta` has DISPATCH_ID_CALL instead. */
  readonly id: number;
  readonly isCall: boolean;
  readonly meta: number;
  /** Not the ordinal: the origin's slot may be given back meanwhile. */
  readonly origin: Endpoint;
  readonly payloadBytes: number;
  /** Whether it is in the unexpected queue. */
  readonly isQueued: boolean;
  complete: boolean;
  /** The offered payload, if any: then the copy has only the header. */
  readonly request: PayloadOffer | undefined;
}

/** Bytes for which an empty message counts in the unexpected queue: the bytes of its record. */
export const KEPT_BYTES_MIN = L.RECORD_GRANULE;

/**
 * The largest memory of a copy that is kept for the next copy. Fresh memory for 1 MiB takes 75 µs, and the garbage collector
 * works for it.
 */
const SPARE_BYTES_MAX = 4_194_304;

/** Allocates the memory of a copy. */
export function allocate(size: number): Pick<MessageCopy, "words" | "bytes"> {
  const words = new Int32Array(Math.ceil(size / 4));
  return { words, bytes: new Uint8Array(words.buffer, 0, size) };
}

interface ArrivalParts extends ContextParts {
  /** Limit of the unexpected queue in bytes. */
  readonly unexpectedBytes: number;
}

export class Arrivals {
  readonly #parts: ArrivalParts;
  readonly #arrivals: (PacketArrival | undefined)[] = [];
  /** Memory of a copy whose handler has returned. */
  #spare: Int32Array<ArrayBuffer> | undefined;

  constructor(parts: ArrivalParts) {
    this.#parts = parts;
  }

  /**
   * Copies the part of a message that is here, and its payload from a buffer. The rest comes in packets.
   * @param total bytes of the copy
   */
  copy(message: Incoming, total: number, isQueued: boolean): MessageCopy {
    const { id, isCall, meta, origin, header, here, place, payloadBytes, request } = message;
    const { memory, addresses, unexpectedBytes } = this.#parts;
    // The announced bytes are not here yet. Beyond the limit, memory is allocated only as packets come.
    const room = place !== 0 ? total : Math.max(here, L.RECV_IMMEDIATE_MAX, unexpectedBytes);
    // A header without a payload is padded in the queue, but not in a record.
    const end = Math.min(total, message.end);
    const copy: MessageCopy = {
      ...((isQueued ? undefined : this.#takeSpare(total)) ?? allocate(Math.min(total, room))),
      counts: Math.max(total, KEPT_BYTES_MIN),
      id,
      isCall,
      meta,
      origin: addresses.endpointAt(origin),
      payloadBytes,
      isQueued,
      complete: here >= end,
      request,
    };
    copyInto(copy.bytes, 0, memory.bytes.subarray(header, header + here));
    if (place !== 0) copyInto(copy.bytes, total - payloadBytes, memory.bytes.subarray(place, place + payloadBytes));
    if (!copy.complete) this.begin(origin, here, end, undefined, copy);
    return copy;
  }

  /** Packets of an origin are awaited, up to an end. */
  begin(origin: number, at: number, end: number, destination?: Destination, copy?: MessageCopy): void {
    this.#arrivals[origin] = { at, end, destination, copy };
  }

  /** Whether a message of an origin is still arriving. */
  has(origin: number): boolean {
    return this.#arrivals[origin] !== undefined;
  }

  /** Takes a packet. Returns the arrival that has ended by this. @throws if there is no memory for the message */
  takePacket(origin: number, body: number, length: number): PacketArrival | undefined {
    const arrival = this.#arrivals[origin];
    if (arrival === undefined) return undefined;
    const { at, end, copy, destination } = arrival;
    const packet = this.#parts.memory.bytes.subarray(body, body + length);
    const next = at + length;
    if (copy !== undefined) {
      grow(copy, next);
      copyInto(copy.bytes, at, packet);
    } else if (destination !== undefined && !copyToDestination(destination, at, packet)) {
      // The rest of the message is dropped as it comes.
      if (next < end) this.begin(origin, next, end);
      else this.takeEnded(origin);
      return arrival;
    }
    arrival.at = next;
    return next < end ? undefined : this.takeEnded(origin);
  }

  /** Ends the message that an origin sends in packets: all packets are here, or the origin gives up the rest. */
  takeEnded(origin: number): PacketArrival | undefined {
    const arrival = this.#arrivals[origin];
    this.#arrivals[origin] = undefined;
    return arrival;
  }

  /** The kept memory, if a copy fills at least half of it. */
  #takeSpare(size: number): Pick<MessageCopy, "words" | "bytes"> | undefined {
    const words = this.#spare;
    if (words === undefined || size > words.byteLength || 2 * size < words.byteLength) return undefined;
    this.#spare = undefined;
    return { words, bytes: new Uint8Array(words.buffer, 0, size) };
  }

  /** The handler of a copy has returned: the next copy may have its memory. */
  reuse({ words }: MessageCopy): void {
    if (words.byteLength <= SPARE_BYTES_MAX) this.#spare = words;
  }
}

/** Makes room for so many bytes of a copy. */
function grow(copy: MessageCopy, needed: number): void {
  const { bytes, meta, payloadBytes } = copy;
  if (needed <= bytes.length) return;
  const total = headerSpace(meta >>> L.META_HEADER_SHIFT) + payloadBytes;
  const room = allocate(Math.min(total, Math.max(needed, 4 * bytes.length)));
  room.bytes.set(bytes);
  Object.assign(copy, room);
}
