// The state of an origin's messages to one target endpoint: its reservation, its pending queue, and the waiters for room.
// Pending messages go before newer ones. The direct path is open while all three are empty.
import * as L from "../../../assembly/layout.js";
import type { Endpoint } from "../../core/endpoint.js";
import { PamiError } from "../../core/error.js";
import { bodyBytes } from "../../core/message/message.js";
import { CANCELED, type Callback, EAGAIN, ENOMEM, ERROR, type Result, SHUTDOWN, SUCCESS } from "../../core/result.js";
import { LANE_ENDED, LANE_FULL, LANE_LATER, LANE_NO_MEMORY, LANE_READY } from "../../transport/transport.js";
import { LANE_BROKEN, LANE_BUSY, LANE_CANCELED, LANE_OFFERED, LANE_UNREAD, MessageWriter } from "./message-writer.js";
import type { PeerSet } from "./peer-set.js";
import { nextBytes, PendingMessages, pendingOf, type SendRequest, totalOf } from "./pending.js";

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

/** Room that a lane needs to be replaced by a larger one. */
const SWITCH_BYTES = 8;

export class Peer {
  readonly #peerSet: PeerSet;
  readonly #ordinal: number;
  readonly #pending = new PendingMessages();
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
  readonly writer: MessageWriter;
  /** Tells an agent without a thread that a record was committed. The direct path is not open then. */
  readonly #posted: (() => void) | undefined;
  /** Whether sends to this target may use the direct path. */
  readonly #isDirect: boolean;
  #ended: boolean;

  constructor(peerSet: PeerSet, ordinal: number) {
    this.#peerSet = peerSet;
    this.#ordinal = ordinal;
    this.writer = new MessageWriter(peerSet, ordinal);
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

  /** Bytes of the largest body that a send certainly accepts now. */
  room(): number {
    if (this.#pending.length > 0 || this.#reserved !== undefined || this.#ended) return 0;
    if (this.writer.lane === 0 && this.writer.ensure(0) !== LANE_READY) return 0;
    const room = this.#peerSet.kernel.laneRoom(this.writer.lane);
    // A payload too short for a buffer goes only in the lane.
    if (room < L.BUFFER_PAYLOAD_MIN || !this.writer.takesBuffers) return room;
    const buffer = this.#peerSet.buffers.room(this.writer.flight);
    return buffer < L.BUFFER_PAYLOAD_MIN ? L.BUFFER_PAYLOAD_MIN - 1 : Math.max(room, buffer);
  }

  whenRoom(bytes: number, onRoom: Callback, cookie: unknown): void {
    if (this.#ended) {
      this.#peerSet.completions.push(onRoom, cookie, SHUTDOWN);
      return;
    }
    if (!this.isBusy) this.#peerSet.count(1);
    const isOffer = this.#isOfferRefused && !this.writer.mayOffer;
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
    if (held < 0) return Math.min(bytes, this.writer.fitsBuffer(bytes) ? L.SEND_IMMEDIATE_MAX : L.RECV_IMMEDIATE_MAX);
    // A message that lacks memory, or space in the pending queue, goes in a buffer or in packets: through any lane.
    const { lanes } = this.#peerSet;
    const most = this.writer.lane === 0 ? lanes.smallBodyMax : lanes.recordBodyMax(this.writer.lane);
    return Math.min(bytes, L.SEND_IMMEDIATE_MAX, most);
  }

  /** Whether a waiter may be called back, given that the lane has room for it. */
  #mayTell({ bytes, held }: RoomWaiter): boolean {
    const { buffers, lanes, pendingBytes, pendingMax } = this.#peerSet;
    const inBuffer = this.writer.fitsBuffer(bytes);
    if (held < 0) return !inBuffer || buffers.mayTake(this.writer.flight, bytes);
    if (pendingBytes + held <= pendingMax) return true;
    return inBuffer ? buffers.hasMemory(this.writer.flight, bytes) : bytes <= lanes.recordBodyMax(this.writer.lane);
  }

  /** The first waiter that room can help. A waiter with an offer is skipped while the target takes no more offers. */
  get #nextWaiter(): RoomWaiter | undefined {
    return this.#waiters.find(({ isOffer }) => !isOffer || this.writer.mayOffer);
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
    const state = this.writer.ensure(total);
    if (state !== LANE_READY) return -this.#refused(state, total);
    const body = this.#peerSet.kernel.laneReserve(this.writer.lane, total);
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
    const lane = this.writer.lane;
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
    const lane = this.writer.lane;
    if (
      this.#bufferWanted >= 0 &&
      !this.#ended &&
      payloadBytes >= this.#bufferWanted &&
      this.writer.fitsBuffer(payloadBytes)
    ) {
      return !this.#peerSet.buffers.mayTake(this.writer.flight, payloadBytes);
    }
    if (this.#wanted < 0 || this.#ended || lane === 0 || total > L.RECV_IMMEDIATE_MAX) return false;
    const needed = total <= lanes.recordBodyMax(lane) ? total : SWITCH_BYTES;
    if (kernel.laneRoom(lane) >= needed) return false;
    this.#wanted = total;
    return true;
  }

  /** Sends a message with a large payload now, if no message is before it. False: the caller takes the slow path. */
  sendBuffer(dispatch: number, header: Uint8Array | undefined, payload: Uint8Array): boolean {
    if (this.#peerSet.direct[this.#ordinal] === 0 || !this.writer.fitsBuffer(payload.length)) return false;
    return this.writer.writeBuffer(dispatch, header, payload, undefined) === LANE_READY;
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
      (fits || totalOf(request) <= L.RECV_IMMEDIATE_MAX || this.writer.goesInBuffer(request))
    ) {
      const state = this.writer.write(request, fits);
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
      const comesToFit = this.writer.lane !== 0 && queue && copied <= peerSet.pendingMax;
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
    const mayOffer = request.offer === undefined || this.writer.mayOffer;
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

  /** Asks the target to ring for what a request needs: a buffer, or room in the lane. */
  #wantFor(request: SendRequest): void {
    const inBuffer = this.writer.goesInBuffer(request);
    const bytes = request.payloadBytes;
    const waits = inBuffer && request.gift === undefined && !this.#peerSet.buffers.mayTake(this.writer.flight, bytes);
    if (waits) this.#wantBuffer(bytes);
    else this.#want(nextBytes(request, inBuffer));
  }

  /** Asks the target to ring when it has read a buffer. */
  #wantBuffer(bytes: number): void {
    const { buffers, kernel, direct } = this.#peerSet;
    if (this.#wanted >= 0 && this.writer.lane !== 0) kernel.laneWantRoom(this.writer.lane, 0);
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
      const state = this.writer.write(request, true);
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
      const state = this.writer.ensure(bytes);
      // There may be memory now for a lane that takes the message whole.
      if (bytes < waiter.bytes && waiter.bytes <= L.RECV_IMMEDIATE_MAX && waiter.held >= 0)
        this.writer.ensure(waiter.bytes);
      if (state === LANE_LATER) this.#peerSet.retrySoon = true;
      if (state === LANE_LATER) return told;
      if (state === LANE_FULL || (state === LANE_READY && kernel.laneRoom(this.writer.lane) < bytes)) {
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
      if (first === undefined ? !buffers.mayTake(this.writer.flight, this.#bufferWanted) : !this.#mayTell(first))
        return false;
      if (!this.isBusy) this.#settle();
      return true;
    }
    if (this.#wanted < 0) return false;
    const lane = this.writer.lane;
    const next = this.#pending.first;
    if (next?.offer !== undefined && !this.writer.mayOffer) return false;
    const waiter = this.#nextWaiter;
    const awaited = waiter === undefined ? this.#wanted : this.#laneBytes(waiter);
    const bytes =
      next === undefined ? Math.min(this.#wanted, awaited) : nextBytes(next, this.writer.goesInBuffer(next));
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
    peerSet.buffers.end(this.writer.flight);
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
    buffers.close(this.writer.flight);
  }

  /** Opens the lane, unless there is one. */
  resume(): Result {
    const state = this.writer.ensure(0);
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
    buffers.close(this.writer.flight);
    for (const { gift } of this.#pending) gift?.drop();
  }

  /** After a change: whether the direct path is open. */
  #settle(): void {
    const lane = this.writer.lane;
    const free = this.#pending.length === 0 && this.#reserved === undefined && !this.#ended;
    if (free && this.#wanted >= 0 && this.#nextWaiter === undefined && lane !== 0) {
      this.#wanted = -1;
      this.#peerSet.kernel.laneWantRoom(lane, 0);
    }
    if (free && this.#waiters.length === 0) this.#unwantBuffer();
    this.#peerSet.direct[this.#ordinal] = free && this.#wanted < 0 && this.#isDirect ? lane : 0;
    this.#posted?.();
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
    const lane = this.writer.lane;
    // A lane that has replaced the previous lane since has no stamp yet.
    const isStamped = this.#peerSet.memory.words[(lane + L.LANE_WANTED_SINCE_OFFSET) >>> 2] !== 0;
    if (lane !== 0 && (this.#wanted < 0 || !isStamped)) this.#peerSet.full(lane, this.#ordinal, bytes);
    this.#wanted = bytes;
    this.#unwantBuffer();
    if (lane !== 0) this.#peerSet.kernel.laneWantRoom(lane, 1);
    else this.#peerSet.retrySoon = true;
    this.#peerSet.direct[this.#ordinal] = 0;
  }

  /** Completes a request with the result of MessageWriter.write(). The callbacks of an offer are called later. */
  #over(request: SendRequest, state: number): void {
    if (state === LANE_OFFERED) return;
    let result: Result = SHUTDOWN;
    if (state === LANE_READY) result = SUCCESS;
    else if (state === LANE_CANCELED) result = CANCELED;
    else if (state === LANE_BROKEN) result = ERROR;
    this.#peerSet.complete(request, result);
  }
}
