// The origin's side of active messages: from the caller's bytes to records in a lane, with a pending queue for what
// has no room. Order: what is pending for a target goes before anything newer to it.
import {
  DISPATCH_ID_MAX,
  FIRST_PREFIX_SIZE,
  HEADER_BYTES_MAX,
  KIND_FIRST,
  KIND_MESSAGE,
  KIND_MORE,
  MESSAGE_BYTES_MAX,
  META_HEADER_SHIFT,
  RECV_IMMEDIATE_MAX,
  SEND_IMMEDIATE_MAX,
} from "../../assembly/layout.js";
import { alignUp } from "../../assembly/seq.js";
import type { Kernel, Memory } from "../kernel/kernel.js";
import type { MemoryMap } from "../memory/map.js";
import { copyInto } from "../support/copy.js";
import { LANE_ENDED, LANE_FULL, LANE_LATER, LANE_NO_MEMORY, LANE_READY, type ShmLanes } from "../transport/shm.js";
import type { CompletionQueue } from "./completion.js";
import { contextOf, type Endpoint, taskOf } from "./endpoint.js";
import { checkInteger, PamiError, show } from "./error.js";
import { bodyBytes } from "./message.js";
import { type Callback, EAGAIN, ENOMEM, type Result, SHUTDOWN, SUCCESS } from "./result.js";

/** Parameters of `context.send`; read before it returns, so that one object can serve every call. */
export interface SendParameters {
  /** Target endpoint. */
  to: Endpoint;
  /** Dispatch id at the target. */
  dispatch: number;
  /** At most 65,535 bytes. Yours again when `send` returns. */
  header?: ArrayBufferView | null | undefined;
  /** Any size. Yours again at `onLocal`; without `onLocal`, when `send` returns. */
  payload?: ArrayBufferView | null | undefined;
  /** Called in a later `advance()`: `payload` may be reused. */
  onLocal?: Callback | undefined;
  /** Called in a later `advance()`: the message is in the target's reception FIFO, not yet dispatched. */
  onRemote?: Callback | undefined;
  /** Handed to both callbacks. */
  cookie?: unknown;
  /** `false`: EAGAIN rather than a place in the pending queue. */
  queue?: boolean | undefined;
}

/** A message that is on its way: in the pending queue, or being sent. */
interface Instruction {
  readonly dispatch: number;
  readonly header: Uint8Array | undefined;
  readonly payload: Uint8Array | undefined;
  readonly onLocal: Callback | undefined;
  readonly onRemote: Callback | undefined;
  readonly cookie: unknown;
  /** Bytes of it that count against the limit of the pending queue: those that were copied. */
  readonly held: number;
  /** Payload bytes sent in packets so far; -1: nothing is sent. */
  sent: number;
}

/** Somebody who wants to be told of room. */
interface RoomWish {
  readonly bytes: number;
  readonly onRoom: Callback;
  readonly cookie: unknown;
}

/** What an origin knows of a target that it has sent to. */
interface Target {
  readonly ordinal: number;
  readonly pending: Instruction[];
  readonly wishes: RoomWish[];
  /** Bytes of the open reservation's header, payload and its meta word; undefined without one. */
  reserved: { readonly headerBytes: number; readonly payloadBytes: number; readonly meta: number } | undefined;
  /** Bytes of the body for which the target has been asked to ring when it frees space; -1: none. */
  wanted: number;
  ended: boolean;
}

/** Bytes up to which a copy by a loop beats TypedArray.set into shared memory. */
const LOOP_BYTES = 8;
/** Payload bytes of one packet of a large message. */
const PACKET_BYTES = 65536;
/** Room that a lane needs to be replaced by a larger one. */
const SWITCH_BYTES = 8;
/** On-heap typed arrays are at most this long; asking them for `buffer` makes V8 move them. */
const ON_HEAP_BYTES = 64;

/** Four bytes as a little-endian word. */
function wordAt(bytes: Uint8Array, offset: number): number {
  return (
    (bytes[offset] as number) |
    ((bytes[offset + 1] as number) << 8) |
    ((bytes[offset + 2] as number) << 16) |
    ((bytes[offset + 3] as number) << 24)
  );
}

export class Sender {
  /** Work for the next advance: targets with something pending, or somebody waiting for room. */
  busy = 0;
  /** Something waits for what nobody rings for: look again soon. */
  retrySoon = false;
  /** Bytes of copies in the pending queue. */
  pendingBytes = 0;

  readonly #kernel: Kernel;
  readonly #memory: Memory;
  readonly #bytes: Uint8Array;
  readonly #lanes: ShmLanes;
  readonly #completions: CompletionQueue;
  readonly #taskCount: number;
  readonly #contexts: number;
  readonly #pendingMax: number;
  /** Bytes of a `sendImmediate` that every lane takes as one record: all, but where lanes are very small. */
  readonly #directMax: number;
  /** The lane by a target's ordinal where the direct path is free, else 0: see #settle(). */
  readonly #direct: Uint32Array;
  readonly #targets: (Target | undefined)[] = [];
  #lastView: ArrayBufferView | undefined;
  #lastBytes: Uint8Array | undefined;

  constructor(
    kernel: Kernel,
    memory: Memory,
    map: MemoryMap,
    lanes: ShmLanes,
    completions: CompletionQueue,
    pendingMax: number,
  ) {
    this.#kernel = kernel;
    this.#memory = memory;
    this.#bytes = memory.bytes;
    this.#lanes = lanes;
    this.#completions = completions;
    this.#taskCount = map.tasks;
    this.#contexts = map.contexts;
    this.#pendingMax = pendingMax;
    this.#directMax = Math.min(SEND_IMMEDIATE_MAX, lanes.smallBodyMax);
    this.#direct = new Uint32Array(lanes.open.length);
  }

  /** See `Context.sendImmediate`. */
  sendImmediate(
    to: Endpoint,
    dispatch: number,
    header: ArrayBufferView | null | undefined,
    payload: ArrayBufferView | null | undefined,
    queue: boolean,
  ): Result {
    // The shortest way, for the smallest messages: the rest is in a function of its own, so that V8 inlines this one.
    if (header == null && payload instanceof Uint8Array && payload.length === 8) {
      const lane = this.#directLane(to);
      if (lane !== 0 && dispatch === (dispatch & DISPATCH_ID_MAX)) {
        if (this.#kernel.laneSendWords(lane, 8, dispatch, wordAt(payload, 0), wordAt(payload, 4)) !== 0) return SUCCESS;
        return this.#sendSlowly(to, dispatch, header, payload, queue);
      }
    }
    return this.#sendCopied(to, dispatch, header, payload, queue);
  }

  #directLane(to: Endpoint): number {
    const context = to & 255;
    // An endpoint that does not exist has no lane either, and finds its error on the slow path.
    return to === to >>> 0 && context < this.#contexts ? (this.#direct[(to >>> 8) * this.#contexts + context] ?? 0) : 0;
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
    // Whatever has no byteLength makes the total NaN, which is not within the limit either.
    if (lane !== 0 && dispatch === (dispatch & DISPATCH_ID_MAX) && total <= this.#directMax) {
      if (this.#sendDirectly(lane, dispatch, header, headerBytes, payload, payloadBytes, total)) return SUCCESS;
    }
    return this.#sendSlowly(to, dispatch, header, payload, queue);
  }

  /** See `Context.send`. */
  send(parameters: SendParameters): Result {
    const { to, dispatch, header, payload, onLocal, onRemote, cookie } = parameters;
    const headerLength = header == null ? 0 : header.byteLength;
    const payloadLength = payload == null ? 0 : payload.byteLength;
    const total = payloadLength === 0 ? headerLength : ((headerLength + 7) & ~7) + payloadLength;
    const lane = this.#directLane(to);
    // A grown lane has place for a little more than what may arrive whole.
    const most = lane ? Math.min(this.#lanes.recordBodyMax(lane), RECV_IMMEDIATE_MAX) : 0;
    if (lane && dispatch === (dispatch & DISPATCH_ID_MAX) && total <= most) {
      if (this.#sendDirectly(lane, dispatch, header, headerLength, payload, payloadLength, total)) {
        if (onLocal !== undefined) this.#completions.push(onLocal, cookie, SUCCESS);
        if (onRemote !== undefined) this.#completions.push(onRemote, cookie, SUCCESS);
        return SUCCESS;
      }
    }
    return this.#sendInstruction(parameters);
  }

  #sendInstruction(parameters: SendParameters): Result {
    const { to, dispatch, header, payload, onLocal, onRemote, cookie } = parameters;
    const queue = parameters.queue !== false;
    const target = this.#target(to);
    checkInteger("dispatch", dispatch, 0, DISPATCH_ID_MAX);
    const headerView = this.#view("header", header);
    const payloadView = this.#view("payload", payload);
    const headerBytes = headerView?.length ?? 0;
    const payloadBytes = payloadView?.length ?? 0;
    if (headerBytes > HEADER_BYTES_MAX) {
      throw new PamiError("PAMIR_TOO_LARGE", `the header has ${headerBytes} bytes, the limit is ${HEADER_BYTES_MAX}`);
    }
    if (payloadBytes > MESSAGE_BYTES_MAX) {
      throw new PamiError(
        "PAMIR_TOO_LARGE",
        `the payload has ${payloadBytes} bytes, the limit is ${MESSAGE_BYTES_MAX}`,
      );
    }
    const copied = onLocal === undefined ? headerBytes + payloadBytes : headerBytes;
    if (copied > this.#pendingMax && bodyBytes(headerBytes, payloadBytes) > RECV_IMMEDIATE_MAX) {
      throw new PamiError(
        "PAMIR_TOO_LARGE",
        `a send of ${copied} bytes without onLocal: the pending queue copies at most ${this.#pendingMax}`,
      );
    }
    if (!queue && this.#isStillFull(target, bodyBytes(headerBytes, payloadBytes))) return EAGAIN;
    const instruction: Instruction = {
      dispatch,
      header: headerView,
      payload: payloadView,
      onLocal,
      onRemote,
      cookie,
      held: 0,
      sent: -1,
    };
    return this.#submit(target, instruction, copied, onLocal === undefined, queue);
  }

  /** See `Context.room`. */
  room(to: Endpoint): number {
    const target = this.#target(to);
    if (target.pending.length > 0 || target.reserved !== undefined || target.ended) return 0;
    const lane = this.#lanes.open[target.ordinal] as number;
    if (lane === 0) return this.#lanes.ensure(target.ordinal, 0) === LANE_READY ? this.room(to) : 0;
    return this.#kernel.laneRoom(lane);
  }

  /** See `Context.whenRoom`. */
  whenRoom(to: Endpoint, bytes: number, onRoom: Callback, cookie: unknown): void {
    checkInteger("bytes", bytes, 0, RECV_IMMEDIATE_MAX);
    const target = this.#target(to);
    if (target.ended) {
      this.#completions.push(onRoom, cookie, SHUTDOWN);
      return;
    }
    if (target.wishes.length === 0 && target.pending.length === 0) this.busy++;
    target.wishes.push({ bytes, onRoom, cookie });
    this.#want(target, bytes);
  }

  /** See `Context.reserve`. */
  reserve(to: Endpoint, dispatch: number, payloadBytes: number, headerBytes: number): number {
    const target = this.#target(to);
    checkInteger("dispatch", dispatch, 0, DISPATCH_ID_MAX);
    checkInteger("headerBytes", headerBytes, 0, HEADER_BYTES_MAX);
    checkInteger("payloadBytes", payloadBytes, 0, RECV_IMMEDIATE_MAX - alignUp(headerBytes, 8));
    if (target.reserved !== undefined) {
      throw new PamiError("PAMIR_INVAL", `reserve() while a reservation to endpoint ${to} is open`);
    }
    if (target.ended) return -SHUTDOWN;
    if (target.pending.length > 0) return -EAGAIN;
    const total = bodyBytes(headerBytes, payloadBytes);
    const state = this.#lanes.ensure(target.ordinal, total);
    if (state !== LANE_READY) return -this.#refused(target, state, total);
    const body = this.#kernel.laneReserve(this.#lanes.open[target.ordinal] as number, total);
    if (body === 0) return -this.#refused(target, LANE_FULL, total);
    const meta = (headerBytes << META_HEADER_SHIFT) | dispatch;
    target.reserved = { headerBytes, payloadBytes, meta };
    this.#settle(target);
    return body;
  }

  /** See `Context.commit`. */
  commit(to: Endpoint, payloadBytes: number | undefined): void {
    const target = this.#target(to);
    const reserved = this.#reservation(target, to);
    const bytes = payloadBytes ?? reserved.payloadBytes;
    checkInteger("payloadBytes", bytes, 0, reserved.payloadBytes);
    target.reserved = undefined;
    const lane = this.#lanes.open[target.ordinal] as number;
    // A target that ended in between took its lane with it; its messages go nowhere.
    if (lane !== 0) this.#kernel.laneCommit(lane, KIND_MESSAGE, bodyBytes(reserved.headerBytes, bytes), reserved.meta);
    this.#settle(target);
  }

  /** See `Context.abort`. */
  abort(to: Endpoint): void {
    const target = this.#target(to);
    this.#reservation(target, to);
    target.reserved = undefined;
    const lane = this.#lanes.open[target.ordinal] as number;
    if (lane !== 0) this.#kernel.laneAbort(lane);
    this.#settle(target);
  }

  /** Sends what is pending and has room now, and tells those who waited for room. Returns how many of them. */
  flush(): number {
    let events = 0;
    this.retrySoon = false;
    for (const target of this.#targets) {
      if (target === undefined || (target.pending.length === 0 && target.wishes.length === 0)) continue;
      events += this.#flushTarget(target);
      if (target.pending.length === 0 && target.wishes.length === 0) {
        this.busy--;
        this.#settle(target);
      }
    }
    return events;
  }

  /**
   * Whether what waits for room would get it: part of the last look before falling asleep. A caller that was told EAGAIN
   * and waits to try again is woken for it once.
   */
  hasRoom(): boolean {
    let found = false;
    for (const target of this.#targets) {
      if (target === undefined || target.wanted < 0 || target.reserved !== undefined) continue;
      const lane = this.#lanes.open[target.ordinal] as number;
      const next = target.pending[0];
      const bytes = next === undefined ? target.wanted : this.#nextBytes(next);
      if (lane === 0 || this.#kernel.laneRoom(lane) < Math.min(bytes, this.#lanes.recordBodyMax(lane))) continue;
      found = true;
      this.#settle(target);
    }
    return found;
  }

  /** Whether something waits for what nobody rings for; asked once before each sleep. */
  takeRetrySoon(): boolean {
    const soon = this.retrySoon;
    if (this.busy === 0) this.retrySoon = false;
    return soon;
  }

  /** Bytes of the body of the record that an instruction sends next. */
  #nextBytes({ header, payload, sent }: Instruction): number {
    const total = bodyBytes(header?.length ?? 0, payload?.length ?? 0);
    return total <= RECV_IMMEDIATE_MAX ? total : Math.min((payload?.length ?? 0) - Math.max(sent, 0), PACKET_BYTES);
  }

  /** A task has ended: what is addressed to it completes with SHUTDOWN. */
  targetEnded(task: number): void {
    for (let context = 0; context < this.#contexts; context++) {
      const target = this.#targets[task * this.#contexts + context];
      this.#lanes.reclaim(task * this.#contexts + context);
      if (target === undefined) continue;
      if (target.pending.length > 0 || target.wishes.length > 0) this.busy--;
      target.ended = true;
      for (const instruction of target.pending) this.#complete(instruction, SHUTDOWN);
      for (const { onRoom, cookie } of target.wishes) this.#completions.push(onRoom, cookie, SHUTDOWN);
      target.pending.length = 0;
      target.wishes.length = 0;
      this.#settle(target);
    }
  }

  /** The context closes: what is pending is dropped with SHUTDOWN, and its lanes end. */
  close(): void {
    for (const target of this.#targets) {
      if (target === undefined) continue;
      if (target.reserved !== undefined) {
        const lane = this.#lanes.open[target.ordinal] as number;
        if (lane !== 0) this.#kernel.laneAbort(lane);
      }
      this.#lanes.close(target.ordinal);
      this.#direct[target.ordinal] = 0;
    }
  }

  /** Targets whose reservation is open. */
  get openReservations(): number {
    return this.#targets.reduce((count, target) => count + (target?.reserved === undefined ? 0 : 1), 0);
  }

  #target(to: Endpoint): Target {
    const task = taskOf(to);
    const context = contextOf(to);
    if (typeof to !== "number" || to !== to >>> 0 || task >= this.#taskCount || context >= this.#contexts) {
      throw new PamiError(
        "PAMIR_INVAL",
        typeof to === "number"
          ? `endpoint ${to} is task ${task}, context ${context}: the job has ${this.#taskCount} tasks with ${this.#contexts} contexts each`
          : `endpoint is ${show(to)}, not a number from client.endpoint()`,
      );
    }
    const ordinal = task * this.#contexts + context;
    const known = this.#targets[ordinal];
    if (known !== undefined) return known;
    const target: Target = {
      ordinal,
      pending: [],
      wishes: [],
      reserved: undefined,
      wanted: -1,
      ended: this.#lanes.hasEnded(ordinal),
    };
    this.#targets[ordinal] = target;
    return target;
  }

  #reservation(target: Target, to: Endpoint): NonNullable<Target["reserved"]> {
    if (target.reserved === undefined) {
      throw new PamiError("PAMIR_INVAL", `commit() or abort() without a reservation to endpoint ${to}`);
    }
    return target.reserved;
  }

  /** After a change of a target's state: whether its direct path is free. */
  #settle(target: Target): void {
    const lane = this.#lanes.open[target.ordinal] as number;
    const free = target.pending.length === 0 && target.reserved === undefined && !target.ended;
    if (free && target.wanted >= 0 && target.wishes.length === 0 && lane !== 0) {
      target.wanted = -1;
      this.#kernel.laneWantRoom(lane, 0);
    }
    this.#direct[target.ordinal] = free && target.wanted < 0 ? lane : 0;
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
    const meta = (headerBytes << META_HEADER_SHIFT) | dispatch;
    const kernel = this.#kernel;
    if (total === 0) return kernel.laneSendWords(lane, 0, meta, 0, 0) !== 0;
    // Before the reservation: these throw for what is no view.
    const headerView = headerBytes === 0 ? undefined : this.#bytesOf("header", header as ArrayBufferView);
    const payloadView = payloadBytes === 0 ? undefined : this.#bytesOf("payload", payload as ArrayBufferView);
    const body = this.#lanes.place(lane, total);
    if (body === 0) return false;
    if (headerView !== undefined) this.#copyIn(headerView, body);
    if (payloadView !== undefined) this.#copyIn(payloadView, body + ((headerBytes + 7) & ~7));
    kernel.laneCommit(lane, KIND_MESSAGE, total, meta);
    return true;
  }

  /** Everything that is not one kernel call: errors, the first message, no room, messages behind pending ones. */
  #sendSlowly(
    to: Endpoint,
    dispatch: number,
    header: ArrayBufferView | null | undefined,
    payload: ArrayBufferView | null | undefined,
    queue: boolean,
  ): Result {
    const target = this.#target(to);
    checkInteger("dispatch", dispatch, 0, DISPATCH_ID_MAX);
    const headerView = this.#view("header", header);
    const payloadView = this.#view("payload", payload);
    const total = bodyBytes(headerView?.length ?? 0, payloadView?.length ?? 0);
    if (total > SEND_IMMEDIATE_MAX) {
      throw new PamiError(
        "PAMIR_TOO_LARGE",
        `sendImmediate of ${total} bytes (header padded to 8), the limit is ${SEND_IMMEDIATE_MAX}: use send()`,
      );
    }
    if (!queue && this.#isStillFull(target, total)) return EAGAIN;
    const instruction: Instruction = {
      dispatch,
      header: headerView,
      payload: payloadView,
      onLocal: undefined,
      onRemote: undefined,
      cookie: undefined,
      held: 0,
      sent: -1,
    };
    return this.#submit(target, instruction, total, true, queue);
  }

  /** Whether a target that had no room has none yet: a caller who tries again and again makes no garbage. */
  #isStillFull(target: Target, total: number): boolean {
    const lane = this.#lanes.open[target.ordinal] as number;
    if (target.wanted < 0 || target.ended || lane === 0 || total > RECV_IMMEDIATE_MAX) return false;
    const needed = total <= this.#lanes.recordBodyMax(lane) ? total : SWITCH_BYTES;
    if (this.#kernel.laneRoom(lane) >= needed) return false;
    target.wanted = total;
    return true;
  }

  /** Sends now, or queues, or refuses. `copied`: bytes that the pending queue would have to copy. */
  #submit(target: Target, instruction: Instruction, copied: number, copyPayload: boolean, queue: boolean): Result {
    if (target.ended) return this.#complete(instruction, SHUTDOWN);
    // A message of several packets that is begun has to be finished, so its place in the queue is made sure first.
    const fits = queue && this.pendingBytes + copied <= this.#pendingMax;
    const packets = bodyBytes(instruction.header?.length ?? 0, instruction.payload?.length ?? 0) > RECV_IMMEDIATE_MAX;
    if (target.pending.length === 0 && target.reserved === undefined && (fits || !packets)) {
      const state = this.#attempt(target, instruction);
      if (state === LANE_READY) {
        this.#complete(instruction, SUCCESS);
        this.#settle(target);
        return SUCCESS;
      }
      if (state === LANE_NO_MEMORY || state === LANE_ENDED) return this.#refused(target, state, 0);
      if (state === LANE_LATER) this.retrySoon = true;
    }
    if (!fits) {
      this.#want(target, this.#nextBytes(instruction));
      return EAGAIN;
    }
    if (target.pending.length === 0 && target.wishes.length === 0) this.busy++;
    target.pending.push({
      ...instruction,
      header: instruction.header?.slice(),
      payload: copyPayload ? instruction.payload?.slice() : instruction.payload,
      held: copied,
    });
    this.pendingBytes += copied;
    this.#want(target, this.#nextBytes(instruction));
    return SUCCESS;
  }

  /** What a call returns when there is no lane for it. */
  #refused(target: Target, state: number, bytes: number): Result {
    if (state === LANE_NO_MEMORY) return ENOMEM;
    if (state === LANE_ENDED) {
      target.ended = true;
      this.#settle(target);
      return SHUTDOWN;
    }
    if (state === LANE_LATER) this.retrySoon = true;
    this.#want(target, bytes);
    return EAGAIN;
  }

  /** Asks the target to ring when it frees space; until it has, nothing goes the direct way. */
  #want(target: Target, bytes: number): void {
    const lane = this.#lanes.open[target.ordinal] as number;
    target.wanted = bytes;
    if (lane !== 0) this.#kernel.laneWantRoom(lane, 1);
    else this.retrySoon = true;
    this.#direct[target.ordinal] = 0;
  }

  #flushTarget(target: Target): number {
    if (target.reserved !== undefined) return 0;
    while (target.pending.length > 0) {
      const instruction = target.pending[0] as Instruction;
      const state = this.#attempt(target, instruction);
      if (state === LANE_LATER) this.retrySoon = true;
      if (state === LANE_FULL) this.#want(target, this.#nextBytes(instruction)); // the lane may be another one by now
      if (state === LANE_LATER || state === LANE_FULL) return 0;
      target.pending.shift();
      this.pendingBytes -= instruction.held;
      this.#complete(instruction, state === LANE_READY ? SUCCESS : state === LANE_NO_MEMORY ? ENOMEM : SHUTDOWN);
    }
    let told = 0;
    while (target.wishes.length > 0) {
      const { bytes, onRoom, cookie } = target.wishes[0] as RoomWish;
      const state = this.#lanes.ensure(target.ordinal, bytes);
      const lane = this.#lanes.open[target.ordinal] as number;
      if (state === LANE_LATER) this.retrySoon = true;
      if (state === LANE_LATER || state === LANE_FULL) return told;
      if (state === LANE_READY && this.#kernel.laneRoom(lane) < bytes) return told;
      target.wishes.shift();
      this.#completions.push(onRoom, cookie, state === LANE_READY ? SUCCESS : state === LANE_ENDED ? SHUTDOWN : ENOMEM);
      told++;
    }
    return told;
  }

  /** Writes as much of an instruction as has room. LANE_READY: all of it. */
  #attempt(target: Target, instruction: Instruction): number {
    const headerBytes = instruction.header?.length ?? 0;
    const payloadBytes = instruction.payload?.length ?? 0;
    const total = bodyBytes(headerBytes, payloadBytes);
    if (total > RECV_IMMEDIATE_MAX) return this.#attemptPackets(target, instruction, headerBytes, payloadBytes);
    const state = this.#lanes.ensure(target.ordinal, total);
    if (state !== LANE_READY) return state;
    const lane = this.#lanes.open[target.ordinal] as number;
    const body = this.#kernel.laneReserve(lane, total);
    if (body === 0) return LANE_FULL;
    if (instruction.header !== undefined) this.#copyIn(instruction.header, body);
    if (instruction.payload !== undefined) this.#copyIn(instruction.payload, body + alignUp(headerBytes, 8));
    this.#kernel.laneCommit(lane, KIND_MESSAGE, total, (headerBytes << META_HEADER_SHIFT) | instruction.dispatch);
    return LANE_READY;
  }

  #attemptPackets(target: Target, instruction: Instruction, headerBytes: number, payloadBytes: number): number {
    const payload = instruction.payload as Uint8Array;
    const kernel = this.#kernel;
    const state = this.#lanes.ensure(target.ordinal, RECV_IMMEDIATE_MAX);
    if (state !== LANE_READY) return state;
    const lane = this.#lanes.open[target.ordinal] as number;
    if (instruction.sent < 0) {
      const prefix = FIRST_PREFIX_SIZE + alignUp(headerBytes, 8);
      const body = kernel.laneReserve(lane, prefix);
      if (body === 0) return LANE_FULL;
      this.#memory.words[body >>> 2] = payloadBytes;
      if (instruction.header !== undefined) this.#copyIn(instruction.header, body + FIRST_PREFIX_SIZE);
      kernel.laneCommit(lane, KIND_FIRST, prefix, (headerBytes << META_HEADER_SHIFT) | instruction.dispatch);
      instruction.sent = 0;
    }
    while (instruction.sent < payloadBytes) {
      const bytes = Math.min(payloadBytes - instruction.sent, PACKET_BYTES);
      const body = kernel.laneReserve(lane, bytes);
      if (body === 0) return LANE_FULL;
      this.#copyIn(payload.subarray(instruction.sent, instruction.sent + bytes), body);
      kernel.laneCommit(lane, KIND_MORE, bytes, 0);
      instruction.sent += bytes;
    }
    return LANE_READY;
  }

  #complete({ onLocal, onRemote, cookie }: Instruction, result: Result): Result {
    if (onLocal !== undefined) this.#completions.push(onLocal, cookie, result);
    if (onRemote !== undefined) this.#completions.push(onRemote, cookie, result);
    return result;
  }

  /** Copies the caller's bytes into shared memory. */
  #copyIn(view: Uint8Array, pointer: number): void {
    const { length } = view;
    if (length <= LOOP_BYTES) {
      const bytes = this.#bytes;
      for (let i = 0; i < length; i++) bytes[pointer + i] = view[i] as number;
    } else if (length > ON_HEAP_BYTES && view.buffer === this.#memory.buffer) {
      this.#kernel.copyBytes(pointer, view.byteOffset, length);
    } else copyInto(this.#bytes, pointer, view);
  }

  /** A view's bytes; the last one's are remembered, so that a caller who reuses a view makes no garbage. */
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
