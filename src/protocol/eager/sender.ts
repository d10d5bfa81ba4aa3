// The origin's side of active messages: checks the parameters, and has the direct path for messages with room at once. All
// other work concerns one target: see peer.ts.
import * as L from "../../../assembly/layout.js";
import { checkCallback, checkFlag, checkSignal } from "../../core/check.js";
import type { CompletionQueue } from "../../core/completion.js";
import { checkEndpoint, type Endpoint, taskOf } from "../../core/endpoint.js";
import { checkInteger, PamiError, show } from "../../core/error.js";
import { bodyBytes, headerSpace } from "../../core/message/message.js";
import type { RegionState } from "../../core/region.js";
import { type Callback, EAGAIN, type Result, SHUTDOWN, SUCCESS } from "../../core/result.js";
import type { Kernel } from "../../kernel/kernel.js";
import type { MemoryMap } from "../../memory/map.js";
import type { GivenRegion, RegionTable } from "../../memory/regions.js";
import { type SlotTable, taskAt } from "../../node/address.js";
import type { Lanes } from "../../transport/transport.js";
import type { ContextParts } from "../base.js";
import type { Offer, RendezvousSender } from "../rendezvous/sender.js";
import { Peer } from "./peer.js";
import { PeerSet } from "./peer-set.js";
import { type Ending, pendingOf, type SendRequest } from "./pending.js";
import type { SendParameters } from "./send-parameters.js";

/** Four bytes as a little-endian word. */
function wordAt(bytes: Uint8Array, offset: number): number {
  return (
    (bytes[offset] as number) |
    ((bytes[offset + 1] as number) << 8) |
    ((bytes[offset + 2] as number) << 16) |
    ((bytes[offset + 3] as number) << 24)
  );
}

/** Whether a value is a dispatch id. A BigInt would throw an error of its own. */
function isId(dispatch: unknown): boolean {
  return typeof dispatch === "number" && dispatch === (dispatch & L.DISPATCH_ID_MAX);
}

/** @throws PAMIR_INVAL */
function checkCallbacks(onLocal: unknown, onRemote: unknown): void {
  checkCallback("onLocal of send()", onLocal);
  checkCallback("onRemote of send()", onRemote);
}

/** How a message is sent. @throws PAMIR_INVAL */
function checkManner(queue: unknown, rendezvous: unknown, transfer: unknown, signal: unknown): void {
  checkFlag("queue of send()", queue);
  checkFlag("rendezvous of send()", rendezvous);
  checkFlag("transfer of send()", transfer);
  checkSignal("send()", signal);
}

/** An operation that waits for a slot in the node's tables: other targets have all of them, or another thread has the lock. */
interface Awaiting {
  readonly to: Endpoint;
  /** The message, in the form that the pending queue keeps. For a whenRoom(), `onLocal` is its onRoom. */
  readonly request: Ending & { readonly held?: number };
  readonly begin: (target: Peer) => unknown;
}

export class Sender {
  readonly #kernel: Kernel;
  readonly #lanes: Lanes;
  readonly #peerSet: PeerSet;
  /** Whether a message waits for an event for which no task rings the bell. */
  readonly waiting: Pick<PeerSet, "busy" | "retrySoon" | "direct">;
  readonly #regions: RegionTable;
  readonly #completions: CompletionQueue;
  readonly #map: MemoryMap;
  readonly #addresses: SlotTable;
  /** Number of the task in slot 0. A field, which `sendImmediate` reads. */
  readonly #first: number;
  /** Slot of the context's task. */
  readonly #slot: number;
  /** Contexts of each task. A field, which `sendImmediate` reads. */
  readonly #contexts: number;
  /** Bytes of a `sendImmediate` that every lane takes as one record: SEND_IMMEDIATE_MAX, unless lanes are very small. */
  readonly #directMax: number;
  /** See PeerSet: also held here, which saves one load for each message. The engine of MPI has both in the job's memory. */
  direct: Uint32Array;
  readonly #peers: (Peer | undefined)[] = [];
  /** Operations that wait for a slot of their target. */
  readonly #awaiting: Awaiting[] = [];
  /** Promises that settle late may still reply: such replies must not open a lane again. */
  #closed = false;
  #lastView: ArrayBufferView | undefined;
  #lastBytes: Uint8Array | undefined;

  /** @param pendingMax bytes that the pending queue may copy */
  constructor(base: ContextParts, rendezvous: RendezvousSender, regions: RegionTable, pendingMax: number) {
    const { kernel, map, addresses, lanes, completions } = base;
    this.#regions = regions;
    this.#kernel = kernel;
    this.#lanes = lanes;
    this.#peerSet = new PeerSet(base, rendezvous, pendingMax);
    this.direct = this.#peerSet.direct;
    this.waiting = this.#peerSet;
    this.#completions = completions;
    this.#map = map;
    this.#addresses = addresses;
    this.#first = addresses.first;
    this.#slot = taskAt(map, base.ordinal);
    this.#contexts = map.contexts;
    this.#directMax = Math.min(L.SEND_IMMEDIATE_MAX, lanes.smallBodyMax);
  }

  /** Work for the next advance: targets with pending messages or waiters for room. */
  get busy(): number {
    return this.#peerSet.busy;
  }

  /** See `Context.sendImmediate`. */
  sendImmediate(
    to: Endpoint,
    dispatch: number,
    header: ArrayBufferView | null | undefined,
    payload: ArrayBufferView | null | undefined,
    queue: boolean,
  ): Result {
    // The shortest path, for the smallest messages. The rest is in a function of its own, so that V8 inlines this one.
    if (header == null && payload instanceof Uint8Array && payload.length === 8) {
      const lane = this.#directLane(to);
      if (lane !== 0 && isId(dispatch)) {
        if (this.#kernel.laneSendWords(lane, 8, dispatch, wordAt(payload, 0), wordAt(payload, 4)) !== 0) return SUCCESS;
        return this.#sendSlowly(to, dispatch, header, payload, queue);
      }
    }
    return this.#sendCopied(to, dispatch, header, payload, queue);
  }

  #directLane(to: Endpoint): number {
    // A BigInt would throw an error of its own below.
    if (typeof to !== "number") return 0;
    // The functions of endpoint.ts, written out. An endpoint that does not exist has no lane, so the slow path throws its
    // error.
    const context = to >>> 24;
    const contexts = this.#contexts;
    return to === to >>> 0 && context < contexts
      ? (this.direct[((to & 0xffffff) - this.#first) * contexts + context] ?? 0)
      : 0;
  }

  #sendCopied(
    to: Endpoint,
    dispatch: number,
    header: ArrayBufferView | null | undefined,
    payload: ArrayBufferView | null | undefined,
    queue: boolean,
  ): Result {
    // The length of a Uint8Array is read in place; `byteLength` of any view is a call into V8 (5 ns).
    const headerBytes = header == null ? 0 : header.byteLength;
    const payloadBytes = payload instanceof Uint8Array ? payload.length : payload == null ? 0 : payload.byteLength;
    const total = payloadBytes === 0 ? headerBytes : ((headerBytes + 7) & ~7) + payloadBytes;
    const lane = this.#directLane(to);
    // A value without byteLength makes the total NaN, which is not within the limit either.
    if (lane !== 0 && isId(dispatch) && total <= this.#directMax) {
      if (this.#sendDirectly(lane, dispatch, header, headerBytes, payload, payloadBytes, total)) return SUCCESS;
    }
    return this.#sendSlowly(to, dispatch, header, payload, queue);
  }

  /** See `Context.send`. */
  send(parameters: SendParameters): Result {
    const { to, dispatch, header, payload, onLocal, onRemote, cookie, queue, rendezvous, transfer, signal } =
      parameters;
    if (onLocal !== undefined || onRemote !== undefined) checkCallbacks(onLocal, onRemote);
    if (queue !== undefined || rendezvous !== undefined || transfer !== undefined || signal !== undefined)
      checkManner(queue, rendezvous, transfer, signal);
    const headerLength = header == null ? 0 : header.byteLength;
    const payloadLength = payload == null ? 0 : payload.byteLength;
    const total = payloadLength === 0 ? headerLength : ((headerLength + 7) & ~7) + payloadLength;
    const lane = this.#directLane(to);
    const isPlain = lane !== 0 && !rendezvous && !transfer;
    if (isPlain && isId(dispatch)) {
      if (this.#sendWhole(lane, to, dispatch, header, headerLength, payload, payloadLength, total)) {
        if (onLocal !== undefined) this.#completions.push(onLocal, cookie, SUCCESS);
        if (onRemote !== undefined) this.#completions.push(onRemote, cookie, SUCCESS);
        return SUCCESS;
      }
    }
    return this.#sendRequest(parameters);
  }

  /** Sends a message now, as a record or in a buffer. False: the caller takes the slow path. */
  #sendWhole(
    lane: number,
    to: Endpoint,
    dispatch: number,
    header: ArrayBufferView | null | undefined,
    headerBytes: number,
    payload: ArrayBufferView | null | undefined,
    payloadBytes: number,
    total: number,
  ): boolean {
    if (payloadBytes < L.BUFFER_PAYLOAD_MIN) {
      // A grown lane takes slightly larger records than the largest message that is delivered whole.
      if (!(total <= Math.min(this.#lanes.recordBodyMax(lane), L.RECV_IMMEDIATE_MAX))) return false;
      return this.#sendDirectly(lane, dispatch, header, headerBytes, payload, payloadBytes, total);
    }
    if (headerBytes > L.HEADER_BYTES_MAX) return false;
    const headerView = headerBytes === 0 ? undefined : this.#bytesOf("header", header as ArrayBufferView);
    const payloadView = this.#bytesOf("payload", payload as ArrayBufferView);
    return this.#peer(to)?.sendBuffer(dispatch, headerView, payloadView) ?? false;
  }

  /**
   * Sends to one of pamir's own dispatch ids. A message without room goes to the pending queue, however full the queue is, so
   * that no later message overtakes it. A request is copied, because its caller may reuse it, unless the payload is given away.
   * A reply without `onLocal` is copied, too.
   */
  sendOwn(
    to: Endpoint,
    dispatch: number,
    header: Uint8Array,
    payload: Uint8Array | undefined,
    onLocal: Callback | undefined,
    gift?: GivenRegion,
  ): Result {
    if (this.#closed) return SHUTDOWN;
    const payloadBytes = payload?.length ?? 0;
    const total = payloadBytes === 0 ? header.length : ((header.length + 7) & ~7) + payloadBytes;
    // #directLane(), written out: the endpoint was checked.
    const lane = this.direct[((to & 0xffffff) - this.#first) * this.#contexts + (to >>> 24)] ?? 0;
    if (lane !== 0 && total <= this.#directMax && total > 0 && gift === undefined) {
      const meta = (header.length << L.META_HEADER_SHIFT) | dispatch;
      if (this.#lanes.send(lane, meta, header, payload, total)) return SUCCESS;
    }
    const isSmall = total <= L.RECV_IMMEDIATE_MAX;
    const callbacks = { onLocal, onRemote: undefined, cookie: undefined, offer: undefined, gift };
    const isReply = dispatch === L.DISPATCH_ID_REPLY;
    const isCopied =
      gift === undefined && (isSmall || dispatch === L.DISPATCH_ID_CALL || (isReply && onLocal === undefined));
    const region = isCopied || gift !== undefined ? undefined : this.#regionOf(payload);
    const request: SendRequest = { dispatch, header, payload, payloadBytes, region, ...callbacks, held: 0, sent: -1 };
    const copied = isCopied ? total : header.length;
    return this.#submit(this.#peer(to), to, request, copied, isCopied, true, true);
  }

  #sendRequest(parameters: SendParameters): Result {
    const { to, dispatch, header, payload, onLocal, onRemote, cookie } = parameters;
    const queue = parameters.queue !== false;
    const target = this.#peer(to);
    checkInteger("dispatch", dispatch, 0, L.DISPATCH_ID_MAX);
    const headerView = this.#view("header", header);
    const payloadView = this.#view("payload", payload);
    const headerBytes = headerView?.length ?? 0;
    const payloadBytes = payloadView?.length ?? 0;
    if (headerBytes > L.HEADER_BYTES_MAX) {
      throw new PamiError("PAMIR_TOO_LARGE", `the header has ${headerBytes} bytes, the limit is ${L.HEADER_BYTES_MAX}`);
    }
    if (payloadBytes > L.MESSAGE_BYTES_MAX) {
      throw new PamiError(
        "PAMIR_TOO_LARGE",
        `the payload has ${payloadBytes} bytes, the limit is ${L.MESSAGE_BYTES_MAX}`,
      );
    }
    const gift = this.giftOf(parameters.transfer, parameters.rendezvous, payloadView);
    const copiesPayload = onLocal === undefined && gift === undefined;
    const total = bodyBytes(headerBytes, payloadBytes);
    const copied = copiesPayload ? total : headerBytes;
    const isLarge = total > L.RECV_IMMEDIATE_MAX;
    if (copied > this.#peerSet.pendingMax && isLarge && !target?.writer.fitsBuffer(payloadBytes)) {
      throw new PamiError(
        "PAMIR_TOO_LARGE",
        `a send of ${copied} bytes without onLocal: the pending queue copies at most ${this.#peerSet.pendingMax}`,
      );
    }
    if (!queue && target?.isStillFull(total, payloadBytes)) return EAGAIN;
    const region = copiesPayload || gift !== undefined ? undefined : this.#regionOf(payloadView);
    const request: SendRequest = {
      dispatch,
      header: headerView,
      payload: payloadView,
      payloadBytes,
      region,
      onLocal,
      onRemote,
      cookie,
      held: 0,
      sent: -1,
      offer: this.#offerOf(parameters, payloadView, region),
      gift,
    };
    return this.#submit(target, to, request, copied, copiesPayload, queue, false);
  }

  /** The region that is given away with a message, if any. @throws PAMIR_INVAL */
  giftOf(transfer: unknown, rendezvous: unknown, payload: Uint8Array | undefined): GivenRegion | undefined {
    if (transfer !== undefined && typeof transfer !== "boolean") {
      throw new PamiError("PAMIR_INVAL", `transfer is ${show(transfer)}, not true or false`);
    }
    if (transfer !== true) return undefined;
    if (rendezvous === true || payload === undefined || payload.length === 0) {
      throw new PamiError("PAMIR_INVAL", "transfer needs a payload of 1 byte or more, and no rendezvous");
    }
    return this.#regions.give(payload);
  }

  /** The payload that is offered rather than sent, if any. */
  #offerOf(
    { rendezvous, onLocal, onRemote, cookie, signal }: SendParameters,
    payload: Uint8Array | undefined,
    region: RegionState | undefined,
  ): Offer | undefined {
    if (rendezvous === true && (onLocal === undefined || payload === undefined)) {
      throw new PamiError("PAMIR_INVAL", "rendezvous needs a payload, and onLocal, which says when that is free again");
    }
    if (rendezvous !== true || onLocal === undefined || payload === undefined || payload.length === 0) return undefined;
    // A view that tracks the length of its buffer must not grow with the buffer.
    const { resizable } = payload.buffer as { resizable?: boolean };
    const fixed = resizable === true ? payload.subarray(0, payload.length) : payload;
    return { payload: fixed, bytes: payload.length, onLocal, onRemote, cookie, signal, region };
  }

  #regionOf(payload: Uint8Array | undefined): RegionState | undefined {
    return payload && this.#regions.stateOf(payload);
  }

  /** See `Context.room`. */
  room(to: Endpoint): number {
    return this.#peer(to)?.room() ?? 0;
  }

  /** See `Context.whenRoom`. */
  whenRoom(to: Endpoint, bytes: number, onRoom: Callback, cookie: unknown): void {
    checkInteger("bytes", bytes, 0, L.MESSAGE_BYTES_MAX);
    const begin = (late: Peer): unknown => late.whenRoom(bytes, onRoom, cookie);
    const target = this.#peer(to);
    const request = { onLocal: onRoom, cookie };
    if (target !== undefined) begin(target);
    else if (this.#await({ to, request, begin }) === SHUTDOWN) this.#peerSet.complete(request, SHUTDOWN);
  }

  /** Takes back a whenRoom() by its callback. */
  forgetRoom(to: Endpoint, onRoom: Callback): void {
    const place = this.#awaiting.findIndex((one) => one.to === to && one.request.onLocal === onRoom);
    if (place < 0) this.#peer(to)?.forgetRoom(onRoom);
    else this.#take(place, 1);
  }

  /** See `Context.reserve`. */
  reserve(to: Endpoint, dispatch: number, payloadBytes: number, headerBytes: number): number {
    const target = this.#peer(to);
    checkInteger("dispatch", dispatch, 0, L.DISPATCH_ID_MAX);
    checkInteger("headerBytes", headerBytes, 0, L.HEADER_BYTES_MAX);
    checkInteger("payloadBytes", payloadBytes, 0, L.RECV_IMMEDIATE_MAX - headerSpace(headerBytes));
    return target === undefined ? -this.#unbound() : target.reserve(to, dispatch, headerBytes, payloadBytes);
  }

  /** See `Context.commit`. */
  commit(to: Endpoint, payloadBytes: number | undefined): void {
    const target = this.#reserved(to);
    const reserved = target.reservedBytes(to);
    const bytes = payloadBytes === undefined ? reserved : payloadBytes;
    checkInteger("payloadBytes", bytes, 0, reserved);
    target.endReservation(bytes);
  }

  /** See `Context.abort`. */
  abort(to: Endpoint): void {
    const target = this.#reserved(to);
    target.reservedBytes(to);
    target.endReservation(undefined);
  }

  /** See `Context.purge`. */
  purge(endpoints: readonly Endpoint[], own: Endpoint): Result {
    const targets = this.#foreign("purge", endpoints, own);
    for (const [place, target] of targets.entries()) {
      if (target?.isBusy || target?.isReserved) {
        throw new PamiError("PAMIR_INVAL", `purge() of endpoint ${endpoints[place]}: something is under way to it`);
      }
    }
    let result: Result = SUCCESS;
    for (const target of targets) if (target?.purge() === false) result = EAGAIN;
    this.#peerSet.buffers.trim();
    return result;
  }

  /** See `Context.resume`. */
  resume(endpoints: readonly Endpoint[], own: Endpoint): Result {
    const targets = this.#foreign("resume", endpoints, own);
    let worst: Result = SUCCESS;
    for (const target of targets) {
      const result = target?.resume() ?? this.#unbound();
      if (result !== SUCCESS) worst = result;
    }
    return worst;
  }

  /** The targets of a list of endpoints, which may not contain the context's own. Undefined: the endpoint has no slot. */
  #foreign(call: string, endpoints: readonly Endpoint[], own: Endpoint): (Peer | undefined)[] {
    if (!Array.isArray(endpoints)) {
      throw new PamiError("PAMIR_INVAL", `endpoints of ${call}() are ${show(endpoints)}, not an array`);
    }
    return endpoints.map((to) => {
      const target = this.#peer(to);
      if (to === own) throw new PamiError("PAMIR_INVAL", `${call}() of endpoint ${to}, which is this context's own`);
      return target;
    });
  }

  /** Sends pending messages for which there is room now, and calls back waiters for room. Returns how many waiters. */
  flush(): number {
    let events = 0;
    this.#peerSet.retrySoon = false;
    if (this.#awaiting.length > 0) this.#bindAwaiting();
    for (const target of this.#peers) events += target?.flush() ?? 0;
    return events;
  }

  /** Whether a waiting message or callback would get room: part of the last look before the task sleeps. */
  hasRoom(): boolean {
    let found = false;
    for (const target of this.#peers) if (target?.hasRoom()) found = true;
    return found;
  }

  /** An endpoint has ended: messages to it complete with SHUTDOWN. */
  targetEnded(ordinal: number): void {
    const target = this.#peers[ordinal];
    // The caller may write to a reservation until the caller ends it.
    if (!target?.isReserved) this.#lanes.reclaim(ordinal);
    target?.end();
  }

  /** Ends the lane to an idle target. False: the target is busy, or its lane has no room for the switch record. */
  release(ordinal: number): boolean {
    const target = this.#peers[ordinal];
    if (target === undefined) return true;
    if (target.isBusy || target.isReserved || !target.purge()) return false;
    this.forget(ordinal);
    return true;
  }

  /** An ordinal stands for another endpoint from now on. */
  forget(ordinal: number): void {
    this.#peers[ordinal]?.forget();
    this.#peers[ordinal] = undefined;
  }

  /** The context closes: drops pending messages, and ends its lanes. */
  close(): void {
    this.#closed = true;
    for (const target of this.#peers) target?.close();
    for (const { request } of this.#awaiting) request.gift?.drop();
  }

  /** @throws PAMIR_INVAL */
  checkEndpoint(to: Endpoint): void {
    // The usual case of checkEndpoint(), written out.
    const { jobTasks } = this.#map;
    if (typeof to === "number" && to === to >>> 0 && (to & 0xffffff) < jobTasks && to >>> 24 < this.#contexts) return;
    checkEndpoint(to, jobTasks, this.#contexts);
  }

  /** The target of an endpoint; binds a slot if the endpoint has none. Undefined: no slot is free now. */
  #peer(to: Endpoint): Peer | undefined {
    this.checkEndpoint(to);
    const ordinal = this.#addresses.ordinalOf(to);
    const known = this.#peers[ordinal];
    if (known !== undefined) return known;
    if (this.#addresses.reach(taskOf(to), this.#slot) < 0) return undefined;
    const bound = this.#addresses.ordinalOf(to);
    const target = new Peer(this.#peerSet, bound);
    this.#peers[bound] = target;
    // Operations that have waited for the slot come first.
    if (this.#awaiting.length > 0) this.#bindAwaiting();
    return target;
  }

  /** No slot is free for a target. No task rings when a slot becomes free. */
  #unbound(): Result {
    this.#peerSet.retrySoon = true;
    return this.#addresses.refusal();
  }

  /**
   * Calls `begin` once an endpoint has a slot. @returns SHUTDOWN: the agent has ended, so no slot becomes free, and the
   * operation does not wait
   */
  #await(one: Awaiting): Result {
    if (this.#unbound() === SHUTDOWN) return SHUTDOWN;
    this.#awaiting.push(one);
    this.#count(one, 1);
    one.request.gift?.accept();
    return SUCCESS;
  }

  #count({ request }: Awaiting, change: 1 | -1): void {
    this.#peerSet.count(change);
    if (request.held !== undefined) this.#peerSet.held(change, request.held);
  }

  /** Removes operations that wait for a slot. */
  #take(place: number, count: number): Awaiting[] {
    const taken = this.#awaiting.splice(place, count);
    for (const one of taken) this.#count(one, -1);
    return taken;
  }

  /** Begins the operations that wait for a slot, as far as there are slots. */
  #bindAwaiting(): void {
    for (const one of this.#take(0, this.#awaiting.length)) {
      // An operation begins after the operations that still wait for the same endpoint.
      const isFirst = this.#awaiting.every(({ to }) => to !== one.to);
      const target = isFirst ? this.#peer(one.to) : undefined;
      if (target !== undefined) one.begin(target);
      else if (this.#await(one) === SHUTDOWN) this.#peerSet.complete(one.request, SHUTDOWN);
    }
  }

  /** A target to which a reservation is open. @throws PAMIR_INVAL */
  #reserved(to: Endpoint): Peer {
    const target = this.#peer(to);
    if (target?.isReserved) return target;
    throw new PamiError("PAMIR_INVAL", `commit() or abort() without a reservation to endpoint ${to}`);
  }

  /** Writes a message into a lane whose direct path is free; false: no room. */
  #sendDirectly(
    lane: number,
    dispatch: number,
    header: ArrayBufferView | null | undefined,
    headerBytes: number,
    payload: ArrayBufferView | null | undefined,
    payloadBytes: number,
    total: number,
  ): boolean {
    const meta = (headerBytes << L.META_HEADER_SHIFT) | dispatch;
    if (total === 0) {
      this.#view("header", header);
      this.#view("payload", payload);
      return this.#kernel.laneSendWords(lane, 0, meta, 0, 0) !== 0;
    }
    // Before the reservation, because these checks throw if a value is no view.
    const headerView = headerBytes === 0 ? undefined : this.#bytesOf("header", header as ArrayBufferView);
    const payloadView = payloadBytes === 0 ? undefined : this.#bytesOf("payload", payload as ArrayBufferView);
    return this.#lanes.send(lane, meta, headerView, payloadView, total);
  }

  /** All sends that are not one kernel call: errors, the first message, no room, messages behind pending messages. */
  #sendSlowly(
    to: Endpoint,
    dispatch: number,
    header: ArrayBufferView | null | undefined,
    payload: ArrayBufferView | null | undefined,
    queue: boolean,
  ): Result {
    const total = bodyBytes(header?.byteLength ?? 0, payload?.byteLength ?? 0);
    if (total > L.SEND_IMMEDIATE_MAX) {
      throw new PamiError(
        "PAMIR_TOO_LARGE",
        `sendImmediate of ${total} bytes (header padded to 8), the limit is ${L.SEND_IMMEDIATE_MAX}: use send()`,
      );
    }
    return this.#sendRequest({ to, dispatch, header, payload, queue });
  }

  /**
   * Like submit() of the target. If the target has no slot, and only the lock of the slots is in the way, a message that may be
   * queued waits. So in a job with a slot for each task, the outcome of a send does not depend on slots that other threads
   * bind.
   */
  #submit(
    target: Peer | undefined,
    to: Endpoint,
    request: SendRequest,
    copied: number,
    copyPayload: boolean,
    queue: boolean,
    isOwn: boolean,
  ): Result {
    if (target !== undefined) return target.submit(request, copied, copyPayload, queue, isOwn);
    const { pendingBytes, pendingMax } = this.#peerSet;
    const mayWait =
      queue && this.#addresses.isLocked && request.gift === undefined && pendingBytes + copied <= pendingMax;
    if (!isOwn && !mayWait) return this.#unbound();
    const kept = pendingOf(request, copied, copyPayload);
    const begin = (late: Peer): unknown => late.submit(kept, copied, false, true, true);
    return this.#await({ to, request: kept, begin });
  }

  /** A view's bytes. The last view's bytes are kept, so that a caller that reuses a view makes no garbage. */
  #bytesOf(name: string, view: ArrayBufferView): Uint8Array {
    if (view instanceof Uint8Array) return view;
    if (!ArrayBuffer.isView(view))
      throw new PamiError("PAMIR_INVAL", `${name} is ${show(view)}, not an ArrayBufferView`);
    if (view === this.#lastView && (this.#lastBytes as Uint8Array).length === view.byteLength) {
      return this.#lastBytes as Uint8Array;
    }
    this.#lastBytes = new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
    this.#lastView = view;
    return this.#lastBytes;
  }

  #view(name: string, view: ArrayBufferView | null | undefined): Uint8Array | undefined {
    return view == null ? undefined : this.#bytesOf(name, view);
  }
}
