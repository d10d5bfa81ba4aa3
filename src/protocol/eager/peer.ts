// The state of an origin's messages to one target endpoint: its reservation, its pending queue, and the waiters for room.
// Pending messages go before newer ones. The direct path is open while all three are empty.
import * as L from "../../../assembly/layout.js";
import type { CompletionQueue } from "../../core/completion.js";
import type { Endpoint } from "../../core/endpoint.js";
import { PamiError } from "../../core/error.js";
import { bodyBytes, headerSpace, prologueBytes } from "../../core/message/message.js";
import type { Activity } from "../../core/progress.js";
import type { RegionState } from "../../core/region.js";
import { CANCELED, type Callback, EAGAIN, ENOMEM, ERROR, type Result, SHUTDOWN, SUCCESS } from "../../core/result.js";
import type { Kernel, Memory } from "../../kernel/kernel.js";
import type { MemoryMap } from "../../memory/map.js";
import type { GivenRegion } from "../../memory/regions.js";
import { isRemote, type SlotTable } from "../../node/address.js";
import { type Clock, stampOf } from "../../support/clock.js";
import { wasCut } from "../../support/copy.js";
import { diagnostics } from "../../support/diagnostics.js";
import { Queue } from "../../support/queue.js";
import {
  type Buffers,
  LANE_ENDED,
  LANE_FULL,
  LANE_LATER,
  LANE_NO_MEMORY,
  LANE_READY,
  type Lanes,
  TAKE_LATER,
  type UnreadBuffers,
} from "../../transport/transport.js";
import type { ContextParts } from "../base.js";
import type { Offer, RendezvousSender } from "../rendezvous/sender.js";

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

/** A whenRoom() whose callback has not been called. */
interface RoomWaiter {
  readonly bytes: number;
  readonly onRoom: Callback;
  readonly cookie: unknown;
  /** The waiter wants to offer a payload: room alone does not help. */
  readonly isOffer: boolean;
  /**
   * Free bytes of the pending queue with which the send needs no memory. Infinity: it can't use the queue. -1: room alone
   * helps.
   */
  readonly held: number;
}

/**
 * Most bytes of one packet of a large message: with the headers that nodes add, it fits into one packet of a link on loopback.
 */
const PACKET_BYTES = 65_280;
/**
 * Results of #attempt(), beside LANE_…. OFFERED: the payload is offered. BUSY: the target has not taken enough earlier
 * offers.
 */
const LANE_OFFERED = -1;
const LANE_BUSY = -2;
const LANE_CANCELED = -3;
/** A result of #attempt(): the target has as many unread buffers as it may have. */
const LANE_UNREAD = -4;
/**
 * Of #attempt(): the payload's buffer was detached or shrunk. If the message had begun, the target has a KIND_BROKEN record.
 */
const LANE_BROKEN = -5;
/** Room that a lane needs to be replaced by a larger one. */
const SWITCH_BYTES = 8;

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

/** State that the targets of one context share. */
export class PeerSet {
  /** Targets with pending messages or waiters for room: work for the next advance. */
  busy = 0;
  /** A message waits for an event for which no task rings the bell: look again soon. */
  retrySoon = false;
  /** Bytes of copies in the pending queues. */
  pendingBytes = 0;
  /** The lane by a target's ordinal where the direct path is open, else 0. */
  readonly direct: Uint32Array;
  readonly kernel: Kernel;
  readonly memory: Memory;
  readonly lanes: Lanes;
  readonly completions: CompletionQueue;
  readonly rendezvous: RendezvousSender;
  readonly buffers: Buffers;
  readonly pendingMax: number;
  /** See Base. */
  readonly posted: (() => void) | undefined;
  readonly #activity: Activity;
  readonly addresses: SlotTable;
  readonly #map: MemoryMap;
  readonly #clock: Clock;
  /** Pointer to the block of the context. */
  readonly #block: number;
  #pendingCount = 0;

  constructor(
    { kernel, memory, map, addresses, clock, block, lanes, buffers, completions, posted, activity }: ContextParts,
    rendezvous: RendezvousSender,
    pendingMax: number,
  ) {
    this.rendezvous = rendezvous;
    this.buffers = buffers;
    this.#activity = activity;
    this.addresses = addresses;
    this.#map = map;
    this.#block = block;
    this.#clock = clock;
    this.kernel = kernel;
    this.memory = memory;
    this.lanes = lanes;
    this.completions = completions;
    this.pendingMax = pendingMax;
    this.posted = posted;
    this.direct = new Uint32Array(lanes.open.length);
  }

  /** Whether a target is in another node. */
  isRemote(ordinal: number): boolean {
    return isRemote(this.#map, ordinal);
  }

  /** One target more, or one fewer, has pending messages or waiters for room. */
  count(change: 1 | -1): void {
    this.busy += change;
    this.#activity.add(change);
  }

  /**
   * One message more, or one fewer, is in the pending queues, with so many copied bytes. Also stored in the context's block.
   */
  held(messages: 1 | -1, bytes: number): void {
    this.#pendingCount += messages;
    this.pendingBytes += messages * bytes;
    const { words } = this.memory;
    words[(this.#block + L.CONTEXT_PENDING_COUNT_OFFSET) >>> 2] = this.#pendingCount;
    words[(this.#block + L.CONTEXT_PENDING_BYTES_OFFSET) >>> 2] = this.pendingBytes;
  }

  /** A message is sent, or is not sent any more. @returns `result` */
  complete({ onLocal, onRemote, cookie, gift }: Ending, result: Result): Result {
    if (result === SUCCESS) gift?.accept();
    gift?.drop();
    if (onLocal !== undefined) this.completions.push(onLocal, cookie, result);
    if (onRemote !== undefined) this.completions.push(onRemote, cookie, result);
    return result;
  }

  /** A lane has no room from now on: stores the time stamp, for the dump. */
  full(lane: number, target: number, bytes: number): void {
    this.memory.words[(lane + L.LANE_WANTED_SINCE_OFFSET) >>> 2] = stampOf(this.#clock, this.#clock.now());
    if (!diagnostics.full.hasSubscribers) return;
    const { addresses, lanes } = this;
    const { origin } = lanes;
    diagnostics.full.publish({ from: addresses.endpointAt(origin), to: addresses.endpointAt(target), bytes });
  }
}

/** Bytes of a request's body as one record. */
function totalOf({ header, payloadBytes }: SendRequest): number {
  return bodyBytes(header?.length ?? 0, payloadBytes);
}

/** Whether a request's payload no longer exists: its region was closed, or its buffer detached or shrunk. */
function isPayloadClosed({ payload, payloadBytes, region }: SendRequest): boolean {
  return region?.closed === true || (payload !== undefined && wasCut(payload, payloadBytes));
}

/** Bytes of the body of the record that a request sends next. A record of the request never needs more room. */
function nextBytes(request: SendRequest, inBuffer: boolean): number {
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
class PendingQueue {
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

export class Peer {
  readonly #peerSet: PeerSet;
  readonly #ordinal: number;
  readonly #pending = new PendingQueue();
  readonly #waiters: RoomWaiter[] = [];
  /** Bytes of the open reservation's header and payload, and its meta word; undefined without one. */
  #reserved: { readonly headerBytes: number; readonly payloadBytes: number; readonly meta: number } | undefined;
  /** Bytes of the body for which the target was asked to ring when it frees space; -1: it was not asked. */
  #wanted = -1;
  /** The last refused message was an offer, and lacked only that the target takes an earlier offer. */
  #isOfferRefused = false;
  /** The last refused message lacked only memory, or this space in the pending queue: as RoomWaiter.held. */
  #heldRefused = -1;
  /** Bytes of the payload that waits for a buffer; -1: no payload does. */
  #bufferWanted = -1;
  /** Large payloads on their way to the target. */
  readonly #flight: UnreadBuffers;
  /** Whether payloads may go in buffers: not to another memory. */
  readonly #takesBuffers: boolean;
  /** Tells an agent without a thread that a record was committed. The direct path is not open then. */
  readonly #posted: (() => void) | undefined;
  /** Whether sends to this target may use the direct path. */
  readonly #isDirect: boolean;
  #ended: boolean;

  constructor(peerSet: PeerSet, ordinal: number) {
    this.#peerSet = peerSet;
    this.#ordinal = ordinal;
    this.#flight = peerSet.buffers.flight();
    this.#takesBuffers = !peerSet.isRemote(ordinal);
    this.#posted = peerSet.posted;
    this.#isDirect = this.#posted === undefined && peerSet.addresses.isDirect(ordinal);
    this.#ended = peerSet.lanes.hasEnded(ordinal);
  }

  get isReserved(): boolean {
    return this.#reserved !== undefined;
  }

  /** Whether flush() has something to do here. */
  get isBusy(): boolean {
    return this.#pending.length > 0 || this.#waiters.length > 0;
  }

  get #lane(): number {
    return this.#peerSet.lanes.open[this.#ordinal] as number;
  }

  /** Bytes of the largest body that a send certainly accepts now. */
  room(): number {
    if (this.#pending.length > 0 || this.#reserved !== undefined || this.#ended) return 0;
    if (this.#lane === 0 && this.#ensure(0) !== LANE_READY) return 0;
    const room = this.#peerSet.kernel.laneRoom(this.#lane);
    // A payload too short for a buffer goes only in the lane.
    if (room < L.BUFFER_PAYLOAD_MIN || !this.#takesBuffers) return room;
    const buffer = this.#peerSet.buffers.room(this.#flight);
    return buffer < L.BUFFER_PAYLOAD_MIN ? L.BUFFER_PAYLOAD_MIN - 1 : Math.max(room, buffer);
  }

  /** Whether a payload may go in a buffer, at some time. */
  fitsBuffer(payloadBytes: number): boolean {
    return this.#takesBuffers && payloadBytes >= L.BUFFER_PAYLOAD_MIN && this.#peerSet.buffers.fits(payloadBytes);
  }

  whenRoom(bytes: number, onRoom: Callback, cookie: unknown): void {
    if (this.#ended) {
      this.#peerSet.completions.push(onRoom, cookie, SHUTDOWN);
      return;
    }
    if (!this.isBusy) this.#peerSet.count(1);
    const isOffer = this.#isOfferRefused && !this.#mayOffer;
    // A message of one record never lacks a buffer: its send returns ENOMEM if no lane takes it.
    const isRecord = bytes <= L.RECV_IMMEDIATE_MAX && this.#heldRefused === Number.POSITIVE_INFINITY;
    this.#waiters.push({ bytes, onRoom, cookie, isOffer, held: isRecord ? -1 : this.#heldRefused });
    this.#isOfferRefused = false;
    this.#heldRefused = -1;
    if (!isOffer) this.#want(bytes);
    else this.#settle();
  }

  /** Bytes of room in the lane that a waiter waits for. */
  #laneBytes({ bytes, held }: RoomWaiter): number {
    if (held < 0) return Math.min(bytes, this.fitsBuffer(bytes) ? L.SEND_IMMEDIATE_MAX : L.RECV_IMMEDIATE_MAX);
    // A message that lacks memory, or space in the pending queue, goes in a buffer or in packets: through any lane.
    const { lanes } = this.#peerSet;
    const most = this.#lane === 0 ? lanes.smallBodyMax : lanes.recordBodyMax(this.#lane);
    return Math.min(bytes, L.SEND_IMMEDIATE_MAX, most);
  }

  /** Whether a waiter may be called back, given that the lane has room for it. */
  #mayTell({ bytes, held }: RoomWaiter): boolean {
    const { buffers, lanes, pendingBytes, pendingMax } = this.#peerSet;
    const inBuffer = this.fitsBuffer(bytes);
    if (held < 0) return !inBuffer || buffers.mayTake(this.#flight, bytes);
    if (pendingBytes + held <= pendingMax) return true;
    return inBuffer ? buffers.hasMemory(this.#flight, bytes) : bytes <= lanes.recordBodyMax(this.#lane);
  }

  /** The first waiter that room can help. A waiter with an offer is skipped while the target takes no more offers. */
  get #nextWaiter(): RoomWaiter | undefined {
    return this.#waiters.find(({ isOffer }) => !isOffer || this.#mayOffer);
  }

  /** Whether one more payload may be offered to the target now. */
  get #mayOffer(): boolean {
    return this.#peerSet.rendezvous.mayBegin(this.#ordinal);
  }

  /** Takes back a whenRoom() whose callback has not been called. */
  forgetRoom(onRoom: Callback): void {
    const place = this.#waiters.findIndex((waiter) => waiter.onRoom === onRoom);
    if (place < 0) return;
    this.#waiters.splice(place, 1);
    if (this.isBusy) return;
    this.#peerSet.count(-1);
    this.#settle();
  }

  /** Pointer to the body, or a negated result. */
  reserve(to: Endpoint, dispatch: number, headerBytes: number, payloadBytes: number): number {
    if (this.#reserved !== undefined) {
      throw new PamiError("PAMIR_INVAL", `reserve() while a reservation to endpoint ${to} is open`);
    }
    if (this.#ended) return -SHUTDOWN;
    if (this.#pending.length > 0) return -EAGAIN;
    const total = bodyBytes(headerBytes, payloadBytes);
    const state = this.#ensure(total);
    if (state !== LANE_READY) return -this.#refused(state, total);
    const body = this.#peerSet.kernel.laneReserve(this.#lane, total);
    if (body === 0) return -this.#refused(LANE_FULL, total);
    this.#reserved = { headerBytes, payloadBytes, meta: (headerBytes << L.META_HEADER_SHIFT) | dispatch };
    this.#settle();
    return body;
  }

  /** Bytes of the payload of the open reservation. */
  reservedBytes(to: Endpoint): number {
    if (this.#reserved === undefined) {
      throw new PamiError("PAMIR_INVAL", `commit() or abort() without a reservation to endpoint ${to}`);
    }
    return this.#reserved.payloadBytes;
  }

  /** Ends the open reservation: sends it with `payloadBytes`; undefined: sends nothing. */
  endReservation(payloadBytes: number | undefined): void {
    const reserved = this.#reserved;
    if (reserved === undefined) return;
    const { kernel, lanes } = this.#peerSet;
    const lane = this.#lane;
    this.#reserved = undefined;
    // A target that has ended since gets nothing.
    if (this.#ended) lanes.reclaim(this.#ordinal);
    else if (payloadBytes === undefined) kernel.laneAbort(lane);
    else {
      const total = bodyBytes(reserved.headerBytes, payloadBytes);
      kernel.laneCommit(lane, L.KIND_MESSAGE, total, reserved.meta);
    }
    this.#settle();
  }

  /** Whether a target that had no room still has none. So a caller that tries again and again makes no garbage. */
  isStillFull(total: number, payloadBytes: number): boolean {
    const { lanes, kernel } = this.#peerSet;
    const lane = this.#lane;
    if (
      this.#bufferWanted >= 0 &&
      !this.#ended &&
      payloadBytes >= this.#bufferWanted &&
      this.fitsBuffer(payloadBytes)
    ) {
      return !this.#peerSet.buffers.mayTake(this.#flight, payloadBytes);
    }
    if (this.#wanted < 0 || this.#ended || lane === 0 || total > L.RECV_IMMEDIATE_MAX) return false;
    const needed = total <= lanes.recordBodyMax(lane) ? total : SWITCH_BYTES;
    if (kernel.laneRoom(lane) >= needed) return false;
    this.#wanted = total;
    return true;
  }

  /** Sends a message with a large payload now, if no message is before it. False: the caller takes the slow path. */
  sendBuffer(dispatch: number, header: Uint8Array | undefined, payload: Uint8Array): boolean {
    if (this.#peerSet.direct[this.#ordinal] === 0 || !this.fitsBuffer(payload.length)) return false;
    return this.#attemptBuffer(dispatch, header, payload, undefined) === LANE_READY;
  }

  /**
   * Sends now, or queues, or refuses.
   * @param copied bytes that the pending queue would have to copy: of the payload too if `copyPayload`
   * @param queue whether the pending queue may be used
   * @param isOwn the pending queue may be used, however full it is
   */
  submit(request: SendRequest, copied: number, copyPayload: boolean, queue: boolean, isOwn: boolean): Result {
    const peerSet = this.#peerSet;
    if (this.#ended) return peerSet.complete(request, SHUTDOWN);
    this.#heldRefused = -1;
    // A message in several packets, once begun, has to be finished. So its space in the queue is secured first.
    const fits = isOwn || (queue && peerSet.pendingBytes + copied <= peerSet.pendingMax);
    if (
      this.#pending.length === 0 &&
      this.#reserved === undefined &&
      (fits || totalOf(request) <= L.RECV_IMMEDIATE_MAX || this.#goesInBuffer(request))
    ) {
      const state = this.#attempt(request, fits);
      if (state === LANE_OFFERED || state === LANE_CANCELED || state === LANE_READY) {
        this.#over(request, state);
        this.#settle();
        return SUCCESS;
      }
      if (state === LANE_ENDED) {
        this.#refused(state, 0);
        return peerSet.complete(request, SHUTDOWN);
      }
      if (state === LANE_UNREAD) return this.#later(request, copied, copyPayload, fits);
      const held = queue && copied <= peerSet.pendingMax ? copied : Number.POSITIVE_INFINITY;
      // The message could go in packets, but the pending queue has no space to finish it from. No task rings for memory.
      if (state === LANE_NO_MEMORY && !fits && totalOf(request) > L.RECV_IMMEDIATE_MAX) {
        this.#heldRefused = held;
        peerSet.retrySoon = true;
        return EAGAIN;
      }
      // A reply, which no caller would send again, waits for its first lane.
      const waits = isOwn && request.dispatch !== L.DISPATCH_ID_CALL;
      // The message would go in packets, once the pending queue has space for it.
      const comesToFit = this.#lane !== 0 && queue && copied <= peerSet.pendingMax;
      if (state === LANE_NO_MEMORY && !fits && comesToFit) this.#heldRefused = held;
      if (state === LANE_NO_MEMORY && !waits && !comesToFit) return this.#refused(state, 0);
      if (state === LANE_LATER || state === LANE_NO_MEMORY) peerSet.retrySoon = true;
    } else if (this.#pending.length === 0 && this.#reserved === undefined && queue && !fits) {
      // A message that can only go in packets waits for space in the pending queue, whatever room the lane has.
      this.#heldRefused = copied;
    }
    return this.#later(request, copied, copyPayload, fits);
  }

  /** Queues a message that can't be sent now, or refuses it. */
  #later(request: SendRequest, copied: number, copyPayload: boolean, fits: boolean): Result {
    const peerSet = this.#peerSet;
    const mayOffer = request.offer === undefined || this.#mayOffer;
    if (!fits) {
      this.#isOfferRefused = !mayOffer;
      if (mayOffer) this.#wantFor(request);
      return EAGAIN;
    }
    if (!this.isBusy) peerSet.count(1);
    const pending = pendingOf(request, copied, copyPayload);
    this.#pending.push(pending);
    peerSet.held(1, copied);
    request.gift?.accept();
    // If the target takes no more offers, room does not help.
    if (mayOffer && this.#pending.first === pending) this.#wantFor(request);
    else if (mayOffer) peerSet.direct[this.#ordinal] = 0;
    else this.#settle();
    return SUCCESS;
  }

  /** Whether a request of which nothing is sent goes in a buffer, if there is memory for one. */
  #goesInBuffer({ payload, payloadBytes, sent, offer, gift }: SendRequest): boolean {
    if (sent >= 0 || offer !== undefined || payload === undefined) return false;
    return gift === undefined ? this.fitsBuffer(payloadBytes) : this.#takesBuffers;
  }

  /** Asks the target to ring for what a request needs: a buffer, or room in the lane. */
  #wantFor(request: SendRequest): void {
    const inBuffer = this.#goesInBuffer(request);
    const bytes = request.payloadBytes;
    const waits = inBuffer && request.gift === undefined && !this.#peerSet.buffers.mayTake(this.#flight, bytes);
    if (waits) this.#wantBuffer(bytes);
    else this.#want(nextBytes(request, inBuffer));
  }

  /** Asks the target to ring when it has read a buffer. */
  #wantBuffer(bytes: number): void {
    const { buffers, kernel, direct } = this.#peerSet;
    if (this.#wanted >= 0 && this.#lane !== 0) kernel.laneWantRoom(this.#lane, 0);
    this.#wanted = -1;
    if (this.#bufferWanted < 0) buffers.want(1);
    this.#bufferWanted = bytes;
    direct[this.#ordinal] = 0;
  }

  #unwantBuffer(): void {
    if (this.#bufferWanted >= 0) this.#peerSet.buffers.want(-1);
    this.#bufferWanted = -1;
  }

  /** Sends pending messages for which there is room now, and calls back waiters for room. Returns how many waiters. */
  flush(): number {
    const peerSet = this.#peerSet;
    if (!this.isBusy) return 0;
    const told = this.#flush();
    this.#posted?.();
    if (!this.isBusy) {
      peerSet.count(-1);
      this.#settle();
    }
    return told;
  }

  #flush(): number {
    const { kernel, completions } = this.#peerSet;
    if (this.#reserved !== undefined) return 0;
    while (this.#pending.length > 0) {
      const request = this.#pending.first as SendRequest;
      const state = this.#attempt(request, true);
      if (state === LANE_BUSY) return 0;
      if (state === LANE_FULL || state === LANE_UNREAD) {
        this.#wantFor(request); // the lane may be another one by now
        return 0;
      }
      // The message was accepted, so it waits for its first lane.
      if (state === LANE_LATER || state === LANE_NO_MEMORY) {
        this.#peerSet.retrySoon = true;
        return 0;
      }
      this.#pending.shift();
      this.#peerSet.held(-1, request.held);
      this.#over(request, state);
    }
    let told = 0;
    for (let waiter = this.#nextWaiter; waiter !== undefined; waiter = this.#nextWaiter) {
      const { onRoom, cookie } = waiter;
      const bytes = this.#laneBytes(waiter);
      const state = this.#ensure(bytes);
      // There may be memory now for a lane that takes the message whole.
      if (bytes < waiter.bytes && waiter.bytes <= L.RECV_IMMEDIATE_MAX && waiter.held >= 0) this.#ensure(waiter.bytes);
      if (state === LANE_LATER) this.#peerSet.retrySoon = true;
      if (state === LANE_LATER) return told;
      if (state === LANE_FULL || (state === LANE_READY && kernel.laneRoom(this.#lane) < bytes)) {
        // A waiter with an offer asks the target to ring only once one more payload may be offered.
        if (this.#wanted < 0) this.#want(bytes);
        return told;
      }
      if (state === LANE_READY && !this.#mayTell(waiter)) {
        this.#wantBuffer(waiter.bytes);
        // No task rings when other tasks free memory, or when the pending queue has space.
        if (waiter.held >= 0) this.#peerSet.retrySoon = true;
        return told;
      }
      this.#waiters.splice(this.#waiters.indexOf(waiter), 1);
      completions.push(onRoom, cookie, state === LANE_READY ? SUCCESS : state === LANE_ENDED ? SHUTDOWN : ENOMEM);
      told++;
    }
    return told;
  }

  /**
   * Whether a waiting message or callback would get room. A caller that got EAGAIN, and waits to try again, is woken once for
   * this room.
   */
  hasRoom(): boolean {
    const { lanes, kernel, buffers } = this.#peerSet;
    if (this.#reserved !== undefined) return false;
    if (this.#bufferWanted >= 0) {
      const first = this.#pending.length === 0 ? this.#nextWaiter : undefined;
      if (first === undefined ? !buffers.mayTake(this.#flight, this.#bufferWanted) : !this.#mayTell(first))
        return false;
      if (!this.isBusy) this.#settle();
      return true;
    }
    if (this.#wanted < 0) return false;
    const lane = this.#lane;
    const next = this.#pending.first;
    if (next?.offer !== undefined && !this.#mayOffer) return false;
    const waiter = this.#nextWaiter;
    const awaited = waiter === undefined ? this.#wanted : this.#laneBytes(waiter);
    const bytes = next === undefined ? Math.min(this.#wanted, awaited) : nextBytes(next, this.#goesInBuffer(next));
    if (lane === 0 || kernel.laneRoom(lane) < Math.min(bytes, lanes.recordBodyMax(lane))) return false;
    this.#settle();
    if (waiter !== undefined) this.#wanted = awaited;
    return true;
  }

  /** The target has ended, and its lane is taken back: pending messages complete with SHUTDOWN. */
  end(): void {
    const peerSet = this.#peerSet;
    if (this.isBusy) peerSet.count(-1);
    this.#ended = true;
    for (const request of this.#pending) {
      peerSet.held(-1, request.held);
      peerSet.complete(request, SHUTDOWN);
    }
    for (const { onRoom, cookie } of this.#waiters) peerSet.completions.push(onRoom, cookie, SHUTDOWN);
    this.#pending.clear();
    this.#waiters.length = 0;
    this.#unwantBuffer();
    peerSet.buffers.end(this.#flight);
    this.#settle();
  }

  /** Ends the lane. False: it has no room for the switch record. Nothing may be pending or reserved. */
  purge(): boolean {
    if (!this.#peerSet.lanes.close(this.#ordinal)) return false;
    this.#settle();
    return true;
  }

  /** The ordinal stands for another endpoint from now on. */
  forget(): void {
    const { lanes, direct, buffers } = this.#peerSet;
    lanes.open[this.#ordinal] = 0;
    direct[this.#ordinal] = 0;
    buffers.close(this.#flight);
  }

  /** Opens the lane, unless there is one. */
  resume(): Result {
    const state = this.#ensure(0);
    this.#settle();
    if (state === LANE_ENDED) return SHUTDOWN;
    if (state === LANE_NO_MEMORY) return ENOMEM;
    return state === LANE_READY ? SUCCESS : EAGAIN;
  }

  /** The origin's context closes: drops pending messages, and ends the lane. */
  close(): void {
    const { lanes, direct, buffers } = this.#peerSet;
    this.endReservation(undefined);
    // A target that has ended does not free the lane: the origin does.
    if (lanes.hasEnded(this.#ordinal)) lanes.reclaim(this.#ordinal);
    else lanes.close(this.#ordinal);
    direct[this.#ordinal] = 0;
    this.#unwantBuffer();
    buffers.close(this.#flight);
    for (const { gift } of this.#pending) gift?.drop();
  }

  /** After a change: whether the direct path is open. */
  #settle(): void {
    const lane = this.#lane;
    const free = this.#pending.length === 0 && this.#reserved === undefined && !this.#ended;
    if (free && this.#wanted >= 0 && this.#nextWaiter === undefined && lane !== 0) {
      this.#wanted = -1;
      this.#peerSet.kernel.laneWantRoom(lane, 0);
    }
    if (free && this.#waiters.length === 0) this.#unwantBuffer();
    this.#peerSet.direct[this.#ordinal] = free && this.#wanted < 0 && this.#isDirect ? lane : 0;
    this.#posted?.();
  }

  /** See ShmLanes.ensure(). */
  #ensure(bytes: number): number {
    const { lanes, direct } = this.#peerSet;
    const state = lanes.ensure(this.#ordinal, bytes);
    // The lane may be a new lane, even if it does not take a body of `bytes`.
    if (direct[this.#ordinal] !== 0) direct[this.#ordinal] = this.#lane;
    return state;
  }

  /** The result of a call for which there is no lane. */
  #refused(state: number, bytes: number): Result {
    if (state === LANE_NO_MEMORY) return ENOMEM;
    if (state === LANE_ENDED) {
      this.#ended = true;
      this.#settle();
      return SHUTDOWN;
    }
    if (state === LANE_LATER) this.#peerSet.retrySoon = true;
    this.#want(bytes);
    return EAGAIN;
  }

  /** Asks the target to ring when it frees space. The direct path is closed until the target has freed space. */
  #want(bytes: number): void {
    const lane = this.#lane;
    // A lane that has replaced the previous lane since has no stamp yet.
    const isStamped = this.#peerSet.memory.words[(lane + L.LANE_WANTED_SINCE_OFFSET) >>> 2] !== 0;
    if (lane !== 0 && (this.#wanted < 0 || !isStamped)) this.#peerSet.full(lane, this.#ordinal, bytes);
    this.#wanted = bytes;
    this.#unwantBuffer();
    if (lane !== 0) this.#peerSet.kernel.laneWantRoom(lane, 1);
    else this.#peerSet.retrySoon = true;
    this.#peerSet.direct[this.#ordinal] = 0;
  }

  /**
   * Writes as much of a request as has room. LANE_READY: all of it.
   * @param mayBegin whether a message of several packets may be begun, and finished later
   */
  #attempt(request: SendRequest, mayBegin: boolean): number {
    const { lanes } = this.#peerSet;
    const { header, payload, dispatch, sent, offer } = request;
    const total = totalOf(request);
    if (isPayloadClosed(request)) return this.#breakOff(request);
    if (offer !== undefined && sent < 0) {
      const state = this.#attemptOffer(request, offer);
      if (state !== LANE_NO_MEMORY) return state;
    }
    if (this.#goesInBuffer(request)) {
      const state = this.#attemptBuffer(dispatch, header, payload as Uint8Array, request.gift);
      if (state !== LANE_NO_MEMORY) return state;
      if (!mayBegin && total > L.RECV_IMMEDIATE_MAX) return LANE_NO_MEMORY;
    }
    // A message that has begun continues in the lane that there is.
    const bytes = sent < 0 ? Math.min(total, L.RECV_IMMEDIATE_MAX) : lanes.recordBodyMax(this.#lane);
    const state = this.#ensure(bytes);
    const lane = this.#lane;
    const isTooSmall = state === LANE_NO_MEMORY && lane !== 0;
    if (state !== LANE_READY && !(isTooSmall && mayBegin)) return state;
    const meta = ((header?.length ?? 0) << L.META_HEADER_SHIFT) | dispatch;
    if (isTooSmall || sent >= 0 || total > L.RECV_IMMEDIATE_MAX) return this.#attemptPackets(request, meta, total);
    return lanes.send(lane, meta, header, payload, total) ? LANE_READY : LANE_FULL;
  }

  /** Gives up a request whose payload is gone. If the message has begun, the target is told. */
  #breakOff({ sent }: SendRequest): number {
    if (sent < 0) return LANE_BROKEN;
    const { kernel } = this.#peerSet;
    const state = this.#ensure(0);
    if (state !== LANE_READY) return state;
    if (kernel.laneReserve(this.#lane, 0) === 0) return LANE_FULL;
    kernel.laneCommit(this.#lane, L.KIND_BROKEN, 0, 0);
    return LANE_BROKEN;
  }

  /** Writes the RTS of an offer. LANE_NO_MEMORY: there is no memory for the transfer, so the payload goes in packets. */
  #attemptOffer({ header, dispatch }: SendRequest, offer: Offer): number {
    const { rendezvous, kernel, lanes } = this.#peerSet;
    if (offer.signal?.aborted) return LANE_CANCELED;
    if (!this.#mayOffer) return LANE_BUSY;
    const headerBytes = header?.length ?? 0;
    const bytes = L.RTS_SIZE + headerBytes;
    // This node can't know whether the other memory has a piece for a larger lane.
    if (bytes > lanes.smallBodyMax && !this.#takesBuffers) return LANE_NO_MEMORY;
    const state = this.#ensure(bytes);
    if (state !== LANE_READY) return state;
    if (!rendezvous.reserve(offer)) return LANE_NO_MEMORY;
    const body = kernel.laneReserve(this.#lane, bytes);
    if (body === 0) return LANE_FULL;
    rendezvous.begin(offer, this.#ordinal, body);
    if (header !== undefined) lanes.copyIn(header, body + L.RTS_SIZE);
    kernel.laneCommit(this.#lane, L.KIND_RTS, bytes, (headerBytes << L.META_HEADER_SHIFT) | dispatch);
    return LANE_OFFERED;
  }

  /**
   * Copies a payload into a buffer, and writes its record. A payload that is given away already has its extent.
   * LANE_NO_MEMORY: the payload goes in the lane, or in packets.
   */
  #attemptBuffer(
    dispatch: number,
    header: Uint8Array | undefined,
    payload: Uint8Array,
    gift: GivenRegion | undefined,
  ): number {
    const { kernel, lanes, buffers, memory } = this.#peerSet;
    const headerBytes = header?.length ?? 0;
    const state = this.#ensure(L.BUFFER_SIZE + headerBytes);
    if (state !== LANE_READY) return state;
    const lane = this.#lane;
    const body = kernel.laneReserve(lane, L.BUFFER_SIZE + headerBytes);
    if (body === 0) return LANE_FULL;
    const slot = gift === undefined ? buffers.take(this.#flight, payload.length) : buffers.give(gift.extent);
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
    buffers.send(this.#flight, slot);
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

  #attemptPackets(request: SendRequest, meta: number, total: number): number {
    const { kernel, lanes, memory } = this.#peerSet;
    const { header, payloadBytes } = request;
    const lane = this.#lane;
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

  /** Completes a request with the result of #attempt(). The callbacks of an offer are called later. */
  #over(request: SendRequest, state: number): void {
    if (state === LANE_OFFERED) return;
    let result: Result = SHUTDOWN;
    if (state === LANE_READY) result = SUCCESS;
    else if (state === LANE_CANCELED) result = CANCELED;
    else if (state === LANE_BROKEN) result = ERROR;
    this.#peerSet.complete(request, result);
  }
}
