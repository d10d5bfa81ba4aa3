// How a message reaches one target: as a record in the lane, in several packets, in a buffer, or as an offer of its payload.
import * as L from "../../../assembly/layout.js";
import { headerSpace, prologueBytes } from "../../core/message/message.js";
import type { GivenRegion } from "../../memory/regions.js";
import { LANE_FULL, LANE_NO_MEMORY, LANE_READY, TAKE_LATER, type UnreadBuffers } from "../../transport/transport.js";
import type { Offer } from "../rendezvous/sender.js";
import type { PeerSet } from "./peer-set.js";
import { isPayloadClosed, PACKET_BYTES, type SendRequest, totalOf } from "./pending.js";

/**
 * Results of MessageWriter.write(), beside LANE_…. OFFERED: the payload is offered. BUSY: the target has not taken enough earlier
 * offers.
 */
export const LANE_OFFERED = -1;
export const LANE_BUSY = -2;
export const LANE_CANCELED = -3;
/** A result of MessageWriter.write(): the target has as many unread buffers as it may have. */
export const LANE_UNREAD = -4;
/**
 * Of MessageWriter.write(): the payload's buffer was detached or shrunk. If the message had begun, the target has a KIND_BROKEN record.
 */
export const LANE_BROKEN = -5;

export class MessageWriter {
  /** Large payloads on their way to the target. */
  readonly flight: UnreadBuffers;
  /** Whether payloads may go in buffers: not to another memory. */
  readonly takesBuffers: boolean;
  readonly #peerSet: PeerSet;
  readonly #ordinal: number;

  constructor(peerSet: PeerSet, ordinal: number) {
    this.#peerSet = peerSet;
    this.#ordinal = ordinal;
    this.flight = peerSet.buffers.flight();
    this.takesBuffers = !peerSet.isRemote(ordinal);
  }

  get lane(): number {
    return this.#peerSet.lanes.open[this.#ordinal] as number;
  }

  /** Whether one more payload may be offered to the target now. */
  get mayOffer(): boolean {
    return this.#peerSet.rendezvous.mayBegin(this.#ordinal);
  }

  /** Whether a payload may go in a buffer, at some time. */
  fitsBuffer(payloadBytes: number): boolean {
    return this.takesBuffers && payloadBytes >= L.BUFFER_PAYLOAD_MIN && this.#peerSet.buffers.fits(payloadBytes);
  }

  /** Whether a request of which nothing is sent goes in a buffer, if there is memory for one. */
  goesInBuffer({ payload, payloadBytes, sent, offer, gift }: SendRequest): boolean {
    if (sent >= 0 || offer !== undefined || payload === undefined) return false;
    return gift === undefined ? this.fitsBuffer(payloadBytes) : this.takesBuffers;
  }

  /** See ShmLanes.ensure(). */
  ensure(bytes: number): number {
    const { lanes, direct } = this.#peerSet;
    const state = lanes.ensure(this.#ordinal, bytes);
    // The lane may be a new lane, even if it does not take a body of `bytes`.
    if (direct[this.#ordinal] !== 0) direct[this.#ordinal] = this.lane;
    return state;
  }

  /**
   * Writes as much of a request as has room. LANE_READY: all of it.
   * @param mayBegin whether a message of several packets may be begun, and finished later
   */
  write(request: SendRequest, mayBegin: boolean): number {
    const { lanes } = this.#peerSet;
    const { header, payload, dispatch, sent, offer } = request;
    const total = totalOf(request);
    if (isPayloadClosed(request)) return this.#breakOff(request);
    if (offer !== undefined && sent < 0) {
      const state = this.#writeOffer(request, offer);
      if (state !== LANE_NO_MEMORY) return state;
    }
    if (this.goesInBuffer(request)) {
      const state = this.writeBuffer(dispatch, header, payload as Uint8Array, request.gift);
      if (state !== LANE_NO_MEMORY) return state;
      if (!mayBegin && total > L.RECV_IMMEDIATE_MAX) return LANE_NO_MEMORY;
    }
    // A message that has begun continues in the lane that there is.
    const bytes = sent < 0 ? Math.min(total, L.RECV_IMMEDIATE_MAX) : lanes.recordBodyMax(this.lane);
    const state = this.ensure(bytes);
    const lane = this.lane;
    const isTooSmall = state === LANE_NO_MEMORY && lane !== 0;
    if (state !== LANE_READY && !(isTooSmall && mayBegin)) return state;
    const meta = ((header?.length ?? 0) << L.META_HEADER_SHIFT) | dispatch;
    if (isTooSmall || sent >= 0 || total > L.RECV_IMMEDIATE_MAX) return this.#writePackets(request, meta, total);
    return lanes.send(lane, meta, header, payload, total) ? LANE_READY : LANE_FULL;
  }

  /** Gives up a request whose payload is gone. If the message has begun, the target is told. */
  #breakOff({ sent }: SendRequest): number {
    if (sent < 0) return LANE_BROKEN;
    const { kernel } = this.#peerSet;
    const state = this.ensure(0);
    if (state !== LANE_READY) return state;
    if (kernel.laneReserve(this.lane, 0) === 0) return LANE_FULL;
    kernel.laneCommit(this.lane, L.KIND_BROKEN, 0, 0);
    return LANE_BROKEN;
  }

  /** Writes the RTS of an offer. LANE_NO_MEMORY: there is no memory for the transfer, so the payload goes in packets. */
  #writeOffer({ header, dispatch }: SendRequest, offer: Offer): number {
    const { rendezvous, kernel, lanes } = this.#peerSet;
    if (offer.signal?.aborted) return LANE_CANCELED;
    if (!this.mayOffer) return LANE_BUSY;
    const headerBytes = header?.length ?? 0;
    const bytes = L.RTS_SIZE + headerBytes;
    // This node can't know whether the other memory has a piece for a larger lane.
    if (bytes > lanes.smallBodyMax && !this.takesBuffers) return LANE_NO_MEMORY;
    const state = this.ensure(bytes);
    if (state !== LANE_READY) return state;
    if (!rendezvous.reserve(offer)) return LANE_NO_MEMORY;
    const body = kernel.laneReserve(this.lane, bytes);
    if (body === 0) return LANE_FULL;
    rendezvous.begin(offer, this.#ordinal, body);
    if (header !== undefined) lanes.copyIn(header, body + L.RTS_SIZE);
    kernel.laneCommit(this.lane, L.KIND_RTS, bytes, (headerBytes << L.META_HEADER_SHIFT) | dispatch);
    return LANE_OFFERED;
  }

  /**
   * Copies a payload into a buffer, and writes its record. A payload that is given away already has its extent.
   * LANE_NO_MEMORY: the payload goes in the lane, or in packets.
   */
  writeBuffer(
    dispatch: number,
    header: Uint8Array | undefined,
    payload: Uint8Array,
    gift: GivenRegion | undefined,
  ): number {
    const { kernel, lanes, buffers, memory } = this.#peerSet;
    const headerBytes = header?.length ?? 0;
    const state = this.ensure(L.BUFFER_SIZE + headerBytes);
    if (state !== LANE_READY) return state;
    const lane = this.lane;
    const body = kernel.laneReserve(lane, L.BUFFER_SIZE + headerBytes);
    if (body === 0) return LANE_FULL;
    const slot = gift === undefined ? buffers.take(this.flight, payload.length) : buffers.give(gift.extent);
    if (slot < 0) {
      kernel.laneAbort(lane);
      return gift === undefined && slot === TAKE_LATER ? LANE_UNREAD : LANE_NO_MEMORY;
    }
    const extent = buffers.extentOf(slot);
    const place = gift === undefined ? extent : payload.byteOffset;
    if (gift === undefined) lanes.copyIn(payload, extent);
    const { words } = memory;
    words[(body + L.BUFFER_SLOT_OFFSET) >>> 2] = buffers.pointerOf(slot);
    words[(body + L.BUFFER_EXTENT_OFFSET) >>> 2] = extent;
    words[(body + L.BUFFER_PLACE_OFFSET) >>> 2] = place;
    words[(body + L.BUFFER_BYTES_OFFSET) >>> 2] = payload.length;
    words[(body + L.BUFFER_GIVEN_OFFSET) >>> 2] = gift === undefined ? 0 : 1;
    if (header !== undefined) lanes.copyIn(header, body + L.BUFFER_SIZE);
    buffers.send(this.flight, slot);
    gift?.accept();
    gift?.pass();
    kernel.laneCommit(
      lane,
      L.KIND_BUFFER,
      L.BUFFER_SIZE + headerBytes,
      (headerBytes << L.META_HEADER_SHIFT) | dispatch,
    );
    return LANE_READY;
  }

  #writePackets(request: SendRequest, meta: number, total: number): number {
    const { kernel, lanes, memory } = this.#peerSet;
    const { header, payloadBytes } = request;
    const lane = this.lane;
    const headerBytes = header?.length ?? 0;
    const prologue = prologueBytes(headerBytes, payloadBytes);
    const most = Math.min(PACKET_BYTES, lanes.recordBodyMax(lane));
    if (request.sent < 0) {
      const bytes = Math.min(prologue, lanes.recordBodyMax(lane) - L.FIRST_PREFIX_SIZE);
      const body = kernel.laneReserve(lane, L.FIRST_PREFIX_SIZE + bytes);
      if (body === 0) return LANE_FULL;
      memory.words[body >>> 2] = payloadBytes;
      this.#copyIn(request, 0, bytes, body + L.FIRST_PREFIX_SIZE);
      kernel.laneCommit(lane, L.KIND_FIRST, L.FIRST_PREFIX_SIZE + bytes, meta);
      request.sent = bytes;
    }
    while (request.sent < total) {
      const { sent } = request;
      const bytes = Math.min((sent < prologue ? prologue : total) - sent, most);
      const body = kernel.laneReserve(lane, bytes);
      if (body === 0) return LANE_FULL;
      this.#copyIn(request, sent, sent + bytes, body);
      kernel.laneCommit(lane, L.KIND_MORE, bytes, 0);
      request.sent = sent + bytes;
    }
    return LANE_READY;
  }

  /** Copies bytes of a message's body, from `start` to `end`, to `pointer`. */
  #copyIn({ header, payload }: SendRequest, start: number, end: number, pointer: number): void {
    const { lanes } = this.#peerSet;
    const headerBytes = header?.length ?? 0;
    const space = headerSpace(headerBytes);
    if (start < headerBytes) lanes.copyIn((header as Uint8Array).subarray(start, end), pointer);
    const from = Math.max(start, space);
    if (end > from) lanes.copyIn((payload as Uint8Array).subarray(from - space, end - space), pointer + from - start);
  }
}
