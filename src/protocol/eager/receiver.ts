// The target's side: from events to handlers. A handler reads a small message in place. Of a large message, the handler gets
// the header, and chooses where the packets are copied. A message without a handler is copied into the unexpected queue.
import * as L from "../../../assembly/layout.js";
import type { CompletionQueue } from "../../core/completion.js";
import { type Endpoint, nameOf } from "../../core/endpoint.js";
import { checkInteger, PamiError } from "../../core/error.js";
import {
  checkHints,
  type DispatchHints,
  type Handler,
  type HandlerTable,
  NO_HANDLERS,
} from "../../core/message/dispatch.js";
import {
  type Bytes,
  bodyBytes,
  copyToDestination,
  type Destination,
  headerSpace,
  Message,
  prologueBytes,
} from "../../core/message/message.js";
import type { Activity } from "../../core/progress.js";
import type { MemRegion } from "../../core/region.js";
import { ENOMEM, ERROR, type Result, SHUTDOWN, SUCCESS } from "../../core/result.js";
import type { Kernel, Memory } from "../../kernel/kernel.js";
import { type MemoryMap, taskSlot } from "../../memory/map.js";
import type { RegionTable } from "../../memory/regions.js";
import { type SlotTable, taskAt } from "../../node/address.js";
import { mayBeInUse } from "../../node/liveness.js";
import { type Clock, stampOf } from "../../support/clock.js";
import { copyInto } from "../../support/copy.js";
import { diagnostics } from "../../support/diagnostics.js";
import { promised } from "../../support/promise.js";
import type { ContextParts } from "../base.js";
import type { PayloadOffer, RendezvousReceiver } from "../rendezvous/receiver.js";

/** The part of a message that comes in packets. */
interface Arrival {
  /** Offset of the next packet in the destination, or in the copy. */
  at: number;
  /** Offset of the end of the last packet. */
  readonly end: number;
  /**
   * A receive(), or a copy, which completes with the last packet. The copy is in the unexpected queue, or waits for its
   * handler. Without a receive() and a copy, the packets are discarded.
   */
  readonly destination: Destination | undefined;
  readonly copy: Copy | undefined;
}

/** A copy of a message, or of the part that its handler needs first. */
interface Copy extends Bytes {
  words: Int32Array<ArrayBuffer>;
  /** The whole message; beyond the limit, the part that has come, with memory for at most twice as much. */
  bytes: Uint8Array;
  /** Bytes for which the copy counts in the unexpected queue. */
  readonly counts: number;
  /** Dispatch id of the handler; for a call, `meta` has DISPATCH_ID_CALL instead. */
  readonly id: number;
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

/** The buffer of the current message. */
interface Buffer {
  slot: number;
  extent: number;
  place: number;
  bytes: number;
  /** The task that has sent it. */
  owner: number;
  isGiven: boolean;
  /** Set by keep(). */
  kept: MemRegion | undefined;
}

/** A message that was taken out of the unexpected queue. The caller owns these copies. */
export interface Taken {
  readonly origin: Endpoint;
  readonly header: Uint8Array;
  readonly payload: Uint8Array;
  /** Number of the call, if the message is a call. */
  readonly call: number | undefined;
}

/** Bytes for which an empty message counts in the unexpected queue: the bytes of its record. */
const KEPT_BYTES_MIN = L.RECORD_GRANULE;

/**
 * The largest memory of a copy that is kept for the next copy. Fresh memory for 1 MiB takes 75 µs, and the garbage collector
 * works for it.
 */
const SPARE_BYTES_MAX = 4_194_304;

/** Most dispatch ids that the text of a refusal names. */
const SHOWN_IDS_MAX = 16;

const isCallOf = ({ meta }: Copy): boolean => (meta & L.META_DISPATCH_MASK) === L.DISPATCH_ID_CALL;

/** These bits of a commit word are 0 for a whole message. */
const KIND_BITS = L.RECORD_KIND_MASK << L.RECORD_KIND_SHIFT;

export class Receiver {
  /** Work for the next advance: unexpected messages whose handler has been set. */
  busy = 0;
  /** Whether there are orphans for reclaimOrphans(). A field, since each round with an event reads it. */
  hasOrphans = false;
  /** Hints by dispatch id, on this side. A send checks them too, because both sides set the same hints. */
  readonly hints: (DispatchHints | undefined)[] = [];
  #unexpectedBytes = 0;

  readonly #activity: Activity;
  readonly #kernel: Kernel;
  readonly #memory: Memory;
  readonly #map: MemoryMap;
  readonly #addresses: SlotTable;
  readonly #block: number;
  readonly #eventWord: number;
  readonly #completions: CompletionQueue;
  readonly #rendezvous: RendezvousReceiver;
  readonly #gone: (endpoint: Endpoint) => void;
  readonly #unexpectedMax: number;
  readonly #clock: Clock;
  readonly #message: Message;
  readonly #table: HandlerTable;
  readonly #handlers: HandlerTable["all"];
  /** Handlers of the dispatch ids without hints and without unexpected messages, which need no checks. */
  readonly #plain: HandlerTable["plain"];
  /** `#plain`, or NO_HANDLERS while an origin is paused: the rest of its records in a batch must not be handled. */
  #direct: HandlerTable["plain"];
  readonly #arrivals: (Arrival | undefined)[] = [];
  /** Memory of a copy whose handler has returned. */
  #spare: Int32Array<ArrayBuffer> | undefined;
  readonly #unexpected = new Map<number, Copy[]>();
  /** Dispatch ids whose messages are taken out of the unexpected queue one by one. */
  readonly #streams = new Set<number>();
  /** Dispatch ids whose messages a stream reads, or has read. */
  readonly #streamed = new Set<number>();
  readonly #ordinal: number;
  #isReady = false;
  /** Whether the calls that ready() has found are still to be refused. */
  #isRefusalDue = false;
  /** Origins whose lane is not read because the unexpected queue is full. */
  readonly #paused = new Set<number>();
  /** Endpoints that have ended, by ordinal. */
  readonly #endedOrdinals = new Set<number>();
  /** Tasks that have ended and may still own memory. */
  readonly #unreclaimed = new Set<number>();
  /** Origins that have ended, and whose lane is given back once it is empty. */
  readonly #orphans = new Set<number>();
  /** Lanes to be replaced at the end of the batch: origin, lane that follows. */
  readonly #switches: number[] = [];
  /** The buffer of the current message; `slot` 0: the message has no buffer. One object, filled anew for each message. */
  readonly #buffer: Buffer = { slot: 0, extent: 0, place: 0, bytes: 0, owner: 0, isGiven: false, kept: undefined };
  readonly #regions: RegionTable;
  #inBatch = false;
  #stopped = false;
  #resumeWanted = false;

  /**
   * @param gone called for each endpoint that has ended, once its last messages are delivered or kept
   * @param isAdvancing whether a handler may be running
   */
  constructor(
    { kernel, memory, map, addresses, clock, ordinal, block, completions, handlers, activity }: ContextParts,
    unexpectedMax: number,
    rendezvous: RendezvousReceiver,
    regions: RegionTable,
    gone: (endpoint: Endpoint) => void,
    isAdvancing: () => boolean,
  ) {
    this.#activity = activity;
    this.#regions = regions;
    this.#kernel = kernel;
    this.#memory = memory;
    this.#map = map;
    this.#addresses = addresses;
    this.#ordinal = ordinal;
    this.#block = block;
    this.#eventWord = (block + L.CONTEXT_EVENTS_OFFSET) >>> 2;
    this.#completions = completions;
    this.#rendezvous = rendezvous;
    this.#gone = gone;
    this.#unexpectedMax = unexpectedMax;
    this.#message = new Message(memory, addresses.table, {
      keep: (message) => {
        if (!isAdvancing()) throw new PamiError("PAMIR_INVAL", "keep() outside of the message's handler");
        return this.#keepPayload(message);
      },
      complete: (onComplete, cookie) => completions.push(onComplete, cookie, SUCCESS),
      regionOf: (view) => regions.stateOf(view),
    });
    this.#clock = clock;
    this.#table = handlers;
    this.#handlers = handlers.all;
    this.#plain = handlers.plain;
    this.#direct = this.#plain;
  }

  #count(change: 1 | -1): void {
    this.busy += change;
    this.#activity.add(change);
  }

  get unexpectedBytes(): number {
    return this.#unexpectedBytes;
  }

  /** Also stored in the context's block, for the dump. */
  set unexpectedBytes(bytes: number) {
    this.#unexpectedBytes = bytes;
    this.#memory.words[(this.#block + L.CONTEXT_UNEXPECTED_OFFSET) >>> 2] = bytes;
  }

  /** The dispatch id whose messages have waited longest for a handler; -1: none. */
  protected get handlerless(): number {
    return (this.#memory.words[(this.#block + L.CONTEXT_HANDLERLESS_OFFSET) >>> 2] as number) - 1;
  }

  /**
   * Stores, after a change, which dispatch id has waited longest for a handler. @param held id of a message that is not even
   * kept
   */
  #noteHandlerless(held = -1): void {
    let first = held;
    for (const id of this.#unexpected.keys()) {
      if (this.#handlers[id] !== undefined || this.#streams.has(id)) continue;
      first = id;
      break;
    }
    this.#memory.words[(this.#block + L.CONTEXT_HANDLERLESS_OFFSET) >>> 2] = first + 1;
  }

  /** See `Context.dispatch`. */
  dispatch(id: number, handler: Handler, hints: DispatchHints): void {
    checkInteger("dispatch id", id, 0, L.DISPATCH_ID_MAX);
    if (this.#handlers[id] !== undefined || this.#streams.has(id))
      throw new PamiError("PAMIR_DISPATCH_TAKEN", `dispatch id ${id} has a handler, or a stream`);
    checkHints(hints);
    this.#handlers[id] = handler;
    this.hints[id] = hints;
    if (this.#unexpected.has(id)) this.#count(1);
    else if (Object.keys(hints).length === 0) this.#plain[id] = handler;
    this.#noteHandlerless();
    this.#resumeWanted = true;
    if (!this.#inBatch) this.#resume();
  }

  /**
   * No more handlers come: from now on, new and waiting calls to dispatch ids without a handler are refused. An id whose
   * messages a stream has read counts as one with a handler.
   */
  ready(): void {
    if (this.#isReady) return;
    this.#isReady = true;
    // Not at once: a handler may be running.
    this.#isRefusalDue = true;
    this.#count(1);
    this.#resumeWanted = true;
    if (!this.#inBatch) this.#resume();
  }

  /** The handler of refused calls; undefined: calls to this dispatch id are not refused. */
  #refusal(id: number): Handler | undefined {
    if (!this.#isReady || this.#handlers[id] !== undefined || this.#streamed.has(id)) return undefined;
    return () => {
      throw new PamiError("PAMIR_NO_HANDLER", this.#refusalText(id));
    };
  }

  #refusalText(id: number): string {
    const ids = new Set(this.#streamed);
    for (let own = 0; own <= L.DISPATCH_ID_MAX; own++) if (this.#handlers[own] !== undefined) ids.add(own);
    const sorted = [...ids].sort((a, b) => a - b);
    const more = sorted.length > SHOWN_IDS_MAX ? `, and ${sorted.length - SHOWN_IDS_MAX} more` : "";
    const has = sorted.length === 0 ? "none" : `handlers of ${sorted.slice(0, SHOWN_IDS_MAX).join(", ")}${more}`;
    const own = this.#addresses.endpointAt(this.#ordinal) as Endpoint;
    return `${nameOf(own)} has no handler of dispatch id ${id}; it has ${has}`;
  }

  /** Refuses the calls that are kept, as ready() has asked. */
  #refuseKept(): number {
    let refused = 0;
    this.#isRefusalDue = false;
    this.#count(-1);
    for (const [id, queue] of this.#unexpected) {
      const refusal = this.#refusal(id);
      if (refusal === undefined) continue;
      for (const copy of queue.filter((one) => one.complete && isCallOf(one))) {
        refused++;
        this.#unqueue(queue, copy);
        this.#deliver(refusal, copy);
      }
    }
    if (refused > 0) this.#resume();
    return refused;
  }

  /** Takes a message of an id without a handler out of the unexpected queue. */
  #unqueue(queue: Copy[], copy: Copy): void {
    queue.splice(queue.indexOf(copy), 1);
    this.unexpectedBytes -= copy.counts;
    if (queue.length > 0) return;
    this.#unexpected.delete(copy.id);
    this.#noteHandlerless();
  }

  /** Looks for records up to `rounds` times and handles the first batch. Returns events and ADVANCE_NOTICE. */
  advance(rounds: number, errors: unknown[]): number {
    const found = this.#kernel.advance(this.#block, rounds);
    const count = found & L.ADVANCE_EVENTS_MASK;
    if (count === 0) return found;
    let place = 0;
    this.#inBatch = true;
    while (place < count) {
      try {
        for (; place < count; place++) this.#event(this.#eventWord + place * (L.EVENT_SIZE >>> 2));
      } catch (error) {
        errors.push(error);
        place++;
      }
    }
    this.#kernel.release(this.#block);
    this.#inBatch = false;
    if (this.#switches.length > 0) this.#switchLanes();
    if (this.#resumeWanted) this.#resume();
    return found;
  }

  /** Delivers the unexpected messages whose handler has been set since. Returns how many. */
  deliverUnexpected(errors: unknown[]): number {
    let delivered = this.#isRefusalDue ? this.#refuseKept() : 0;
    for (const [id, queue] of this.#unexpected) {
      const handler = this.#handlers[id];
      if (handler === undefined) continue;
      while (queue[0]?.complete && !this.#stopped) {
        const copy = queue.shift() as Copy;
        delivered++;
        this.unexpectedBytes -= copy.counts;
        try {
          this.#deliver(handler, copy);
        } catch (error) {
          errors.push(error);
        }
      }
      if (queue.length === 0) {
        this.#unexpected.delete(id);
        this.#count(-1);
        if (Object.keys(this.hints[id] as DispatchHints).length === 0) this.#plain[id] = handler;
      }
    }
    if (delivered > 0) this.#resume();
    return delivered;
  }

  /** Keeps messages to a dispatch id for take() from now on. @throws PAMIR_INVAL, PAMIR_DISPATCH_TAKEN */
  openStream(id: number): void {
    checkInteger("dispatch id", id, 0, L.DISPATCH_ID_MAX);
    if (this.#handlers[id] !== undefined || this.#streams.has(id))
      throw new PamiError("PAMIR_DISPATCH_TAKEN", `dispatch id ${id} has a handler, or a stream`);
    this.#streams.add(id);
    this.#streamed.add(id);
    this.#noteHandlerless();
    // Messages that had no room before may have some now.
    this.#resumeWanted = true;
    if (!this.#inBatch) this.#resume();
  }

  closeStream(id: number): void {
    this.#streams.delete(id);
    this.#noteHandlerless();
  }

  /** Whether take() would return a message. If the first message's payload is only offered, this look begins its transfer. */
  hasNext(id: number): boolean {
    const queue = this.#unexpected.get(id);
    const first = queue?.[0];
    if (queue !== undefined && first?.request !== undefined) queue[0] = this.#gather(first, first.request);
    return queue?.[0]?.complete ?? false;
  }

  /** Whether a message to a dispatch id from one of these endpoints, complete or not, waits for take(). */
  hasFrom(id: number, endpoints: ReadonlySet<Endpoint>): boolean {
    return this.#unexpected.get(id)?.some(({ origin }) => endpoints.has(origin)) ?? false;
  }

  /** Moves an offered payload into the unexpected queue. */
  #gather(offered: Copy, request: PayloadOffer): Copy {
    const space = offered.bytes.length;
    const room = this.#allocateFor(offered, space + request.bytes);
    const { bytes } = room;
    const counts = offered.counts + request.bytes;
    const copy: Copy = { ...offered, ...room, counts, complete: false, request: undefined };
    this.unexpectedBytes += request.bytes;
    const onComplete = (_: unknown, result: Result) => this.#finish({ destination: undefined, copy }, result);
    const destination = { bytes: bytes.subarray(space), onComplete, cookie: undefined, options: {} };
    if (this.#endedOrdinals.has(request.origin)) this.#completeReceive(destination, SHUTDOWN);
    else this.#rendezvous.gather(request, destination);
    return copy;
  }

  /** Removes the next message to a dispatch id without a handler, which makes room for another. */
  popUnexpected(id: number): Taken | undefined {
    const queue = this.#unexpected.get(id);
    const next = queue?.[0];
    if (queue === undefined || next === undefined || !next.complete || next.request !== undefined) return undefined;
    queue.shift();
    if (queue.length === 0) this.#unexpected.delete(id);
    const { meta, bytes, words, origin, payloadBytes } = next;
    this.unexpectedBytes -= next.counts;
    if (this.#paused.size > 0) this.#resume();
    const isCall = (meta & L.META_DISPATCH_MASK) === L.DISPATCH_ID_CALL;
    return {
      origin,
      header: bytes.subarray(isCall ? 8 : 0, meta >>> L.META_HEADER_SHIFT),
      payload: bytes.subarray(bytes.length - payloadBytes),
      call: isCall ? (words[0] as number) >>> 0 : undefined,
    };
  }

  /** Whether a call waits for its handler. */
  keepsCall(from: Endpoint, number: number): boolean {
    for (const queue of this.#unexpected.values()) {
      for (const { meta, origin, words } of queue) {
        const isCall = (meta & L.META_DISPATCH_MASK) === L.DISPATCH_ID_CALL;
        if (isCall && origin === from && (words[0] as number) >>> 0 === number) return true;
      }
    }
    return false;
  }

  /** Whether deliverUnexpected() would deliver something: a message in packets may still be arriving. */
  hasDeliverable(): boolean {
    if (this.busy === 0) return false;
    if (this.#isRefusalDue) return true;
    for (const [id, queue] of this.#unexpected) {
      if (this.#handlers[id] !== undefined && queue[0]?.complete) return true;
    }
    return false;
  }

  /** The context closes: drops the rest of the current batch. */
  stop(): void {
    this.#stopped = true;
    this.#direct = NO_HANDLERS;
  }

  /**
   * Acknowledges the notice. Call acknowledge() before looking for changes.
   * @param ended tasks that have ended
   */
  acknowledgeNotice(notice: number, ended: readonly number[]): void {
    // SYNC quiescence (seen): this context uses nothing any more that was closed, or whose owner had ended, before the
    // notice.
    this.#kernel.storeWord(this.#block + L.CONTEXT_NOTICE_SEEN_OFFSET, notice);
    // This context may have been the last context to use memory of a task that ended before.
    for (const task of ended) this.#unreclaimed.add(task);
    if (ended.length > 0) this.hasOrphans = true;
  }

  /** An endpoint has ended. Called once: the endpoint's messages are still delivered, then its lane is given back. */
  originEnded(origin: number): void {
    this.#endedOrdinals.add(origin);
    this.#orphans.add(origin);
    this.hasOrphans = true;
    if (this.#paused.has(origin)) this.#resume();
    if (this.#kernel.laneOf(this.#block, origin) !== 0) this.#kernel.laneReady(this.#block, origin);
  }

  /** Whether originEnded() was called for an endpoint. */
  hasEnded(origin: number): boolean {
    return this.#endedOrdinals.has(origin);
  }

  /** Gives back the empty lanes of ended origins, and then all other memory of ended tasks. */
  reclaimOrphans(): void {
    const { job } = this.#map;
    for (const origin of this.#orphans) {
      const lane = this.#kernel.laneOf(this.#block, origin);
      if (lane !== 0) {
        if (this.#paused.has(origin) || this.#kernel.lanePeek(lane) !== 0) continue;
        this.#kernel.laneSwitch(job, this.#block, origin, 0);
      }
      this.#orphans.delete(origin);
      this.#gone(this.#addresses.endpointAt(origin));
      // Even if the lane itself has ended, after its last message.
      const task = taskAt(this.#map, origin);
      if (this.#kernel.loadWord(taskSlot(this.#map, task) + L.TASK_STATE_OFFSET) >= L.TASK_CLOSED)
        this.#unreclaimed.add(task);
      this.#endArrival(origin, SHUTDOWN);
    }
    // An ended task's lane that is in no table is unused: the task died before it entered the lane. The last context to stop
    // using the task's memory frees all of it.
    for (const task of this.#unreclaimed)
      if (!mayBeInUse(this.#kernel, this.#map, task)) this.#kernel.heapReclaim(job, task);
    this.#unreclaimed.clear();
    this.hasOrphans = this.#orphans.size > 0;
  }

  /** Whether a message of an origin is still arriving, or its payload is on offer. */
  holds(origin: number): boolean {
    if (this.#arrivals[origin] !== undefined || this.#paused.has(origin)) return true;
    for (const queue of this.#unexpected.values())
      if (queue.some((copy) => copy.request?.origin === origin)) return true;
    return false;
  }

  /** An ordinal stands for another endpoint from now on. */
  forget(origin: number): void {
    this.#endedOrdinals.delete(origin);
    this.#orphans.delete(origin);
    this.hasOrphans = this.#orphans.size > 0 || this.#unreclaimed.size > 0;
  }

  /** Whether an endpoint has ended, and all its messages are delivered or kept. */
  isGone(endpoint: Endpoint): boolean {
    const ordinal = this.#addresses.ordinalOf(endpoint);
    return this.#endedOrdinals.has(ordinal) && !this.#orphans.has(ordinal);
  }

  /** Origins that are held back because the unexpected queue is full. */
  get pausedOrigins(): number {
    return this.#paused.size;
  }

  #event(word: number): void {
    const { words } = this.#memory;
    const commit = words[word] as number;
    const meta = words[word + 1] as number;
    const body = (words[word + 2] as number) >>> 0;
    const origin = words[word + 3] as number;
    if ((commit & KIND_BITS) === 0) {
      const handler = this.#direct[meta & L.META_DISPATCH_MASK];
      if (handler !== undefined) {
        const message = this.#message;
        const rest = (commit & L.RECORD_LENGTH_MASK) - (((meta >>> L.META_HEADER_SHIFT) + 7) & ~7);
        message.set(meta, body, Math.max(rest, 0), origin, true);
        const returned = handler(message);
        if (returned !== undefined) promised(returned);
        return;
      }
      if ((meta & L.META_DISPATCH_MASK) === L.DISPATCH_ID_CALL) {
        const called = this.#direct[(words[(body + 4) >>> 2] as number) & L.DISPATCH_ID_MAX];
        if (called !== undefined) {
          const rest = (commit & L.RECORD_LENGTH_MASK) - (((meta >>> L.META_HEADER_SHIFT) + 7) & ~7);
          this.#message.set(meta, body, Math.max(rest, 0), origin, true);
          this.serve(called, this.#message);
          return;
        }
      }
    }
    if (!this.#stopped && !this.#paused.has(origin)) this.#rareEvent(commit, meta, body, origin);
  }

  #rareEvent(commit: number, meta: number, body: number, origin: number): void {
    const kind = (commit >>> L.RECORD_KIND_SHIFT) & L.RECORD_KIND_MASK;
    const length = commit & L.RECORD_LENGTH_MASK;
    if (kind === L.KIND_MORE) this.#packet(body, length, origin);
    else if (kind === L.KIND_MESSAGE || kind === L.KIND_FIRST) this.#dispatchRecord(kind, meta, body, length, origin);
    else if (kind === L.KIND_BUFFER) this.#buffered(meta, body, origin);
    else if (kind === L.KIND_RTS) this.#requested(meta, body, length, origin);
    else if (kind === L.KIND_BROKEN) this.#endArrival(origin, ERROR);
    else this.#switches.push(origin, (this.#memory.words[body >>> 2] as number) >>> 0);
  }

  #dispatchRecord(kind: number, meta: number, body: number, length: number, origin: number): void {
    const inPackets = kind === L.KIND_FIRST;
    const header = inPackets ? body + L.FIRST_PREFIX_SIZE : body;
    const isCall = (meta & L.META_DISPATCH_MASK) === L.DISPATCH_ID_CALL;
    const id = isCall
      ? (this.#memory.words[(header + 4) >>> 2] as number) & L.DISPATCH_ID_MAX
      : meta & L.META_DISPATCH_MASK;
    const headerBytes = meta >>> L.META_HEADER_SHIFT;
    const here = inPackets ? length - L.FIRST_PREFIX_SIZE : length;
    const payloadBytes = inPackets
      ? (this.#memory.words[body >>> 2] as number) >>> 0
      : Math.max(0, length - headerSpace(headerBytes));
    const refusal = isCall ? this.#refusal(id) : undefined;
    const handler = refusal ?? this.#handlers[id];
    if (handler === undefined || (refusal === undefined && this.#unexpected.has(id))) {
      this.#keep(id, meta, header, here, payloadBytes, origin, body);
      return;
    }
    const prologue = this.#isEarly(id)
      ? prologueBytes(headerBytes, payloadBytes)
      : bodyBytes(headerBytes, payloadBytes);
    if (here < prologue) {
      this.#copy(id, meta, header, here, payloadBytes, origin, prologue, false);
      return;
    }
    this.#message.set(meta, header, payloadBytes, origin, this.#isImmediate(id, headerBytes, payloadBytes));
    this.#handle(handler, id, isCall, origin, here < bodyBytes(headerBytes, payloadBytes));
  }

  /**
   * Takes a message whose payload lies in a buffer, where the handler reads it. Then the buffer goes back, unless the handler
   * keeps it.
   */
  #buffered(meta: number, body: number, origin: number): void {
    const { words } = this.#memory;
    const header = body + L.BUFFER_SIZE;
    const isCall = (meta & L.META_DISPATCH_MASK) === L.DISPATCH_ID_CALL;
    const id = isCall ? (words[(header + 4) >>> 2] as number) & L.DISPATCH_ID_MAX : meta & L.META_DISPATCH_MASK;
    const headerBytes = meta >>> L.META_HEADER_SHIFT;
    const payloadBytes = (words[(body + L.BUFFER_BYTES_OFFSET) >>> 2] as number) >>> 0;
    const place = (words[(body + L.BUFFER_PLACE_OFFSET) >>> 2] as number) >>> 0;
    const refusal = isCall ? this.#refusal(id) : undefined;
    const handler = refusal ?? this.#handlers[id];
    const isKept = handler === undefined || (refusal === undefined && this.#unexpected.has(id));
    const total = headerSpace(headerBytes) + payloadBytes;
    if (isKept && !this.#mayKeep(id, total, origin)) {
      this.#holdBack(id, origin, body);
      return;
    }
    const buffer = this.#buffer;
    buffer.slot = (words[(body + L.BUFFER_SLOT_OFFSET) >>> 2] as number) >>> 0;
    buffer.extent = (words[(body + L.BUFFER_EXTENT_OFFSET) >>> 2] as number) >>> 0;
    buffer.place = place;
    buffer.bytes = payloadBytes;
    buffer.owner = taskAt(this.#map, origin);
    buffer.isGiven = words[(body + L.BUFFER_GIVEN_OFFSET) >>> 2] !== 0;
    buffer.kept = undefined;
    try {
      if (handler === undefined || isKept) {
        const copy = this.#copy(id, meta, header, headerBytes, payloadBytes, origin, total, true, undefined, place);
        this.#queue(copy);
        return;
      }
      this.#message.set(meta, header, payloadBytes, origin, this.#isImmediate(id, headerBytes, payloadBytes));
      this.#message.setPlace(place);
      this.#handle(handler, id, isCall, origin, false);
    } finally {
      this.#releaseBuffer(buffer);
    }
  }

  /** The handler has returned: the buffer goes back, unless the handler keeps it. */
  #releaseBuffer(buffer: Buffer): void {
    const { slot, owner, extent, isGiven, kept } = buffer;
    buffer.slot = 0;
    buffer.kept = undefined;
    if (kept !== undefined) return;
    if (!isGiven) this.#kernel.bufferRelease(slot, L.BUFFER_FREE);
    else this.#regions.release(owner, extent, () => this.#kernel.bufferRelease(slot, L.BUFFER_GONE));
  }

  /** See Message.keep(). */
  #keepPayload(message: Message): MemRegion {
    const { payloadBytes } = message;
    if (!message.immediate) throw new PamiError("PAMIR_INVAL", "keep() of a payload that is not here: use receive()");
    if (payloadBytes === 0) throw new PamiError("PAMIR_INVAL", "keep() of a payload of 0 bytes");
    const buffer = this.#buffer;
    if (buffer.slot !== 0) {
      const { slot, owner, extent, place } = buffer;
      buffer.kept ??= this.#regions.adopt(owner, extent, place, payloadBytes, () =>
        this.#kernel.bufferRelease(slot, L.BUFFER_GONE),
      );
      return buffer.kept;
    }
    const region = this.#regions.create(payloadBytes);
    copyInto(region.bytes, 0, message.payload);
    return region;
  }

  /** Takes a request to send. */
  #requested(meta: number, body: number, length: number, origin: number): void {
    const id = meta & L.META_DISPATCH_MASK;
    const request = this.#rendezvous.requestAt(body, origin);
    const handler = id > L.DISPATCH_ID_MAX ? this.#table.drop : this.#handlers[id];
    if (handler === undefined || this.#unexpected.has(id)) {
      this.#keep(id, meta, body + L.RTS_SIZE, length - L.RTS_SIZE, request.bytes, origin, body, request);
      return;
    }
    this.#message.set(meta, body + L.RTS_SIZE, request.bytes, origin, false);
    this.#answer(handler, id, request);
  }

  /** Calls the handler for the current message, whose payload is offered, and begins the transfer. */
  #answer(handler: Handler, id: number, request: PayloadOffer): void {
    let isRefused = true;
    let destination: Destination | undefined;
    try {
      destination = this.#ask(handler, id, false);
      isRefused = false;
    } finally {
      // If the origin has ended, another task may use the memory of its rget FIFO by now.
      const isThere = !this.#endedOrdinals.has(request.origin);
      if (destination === undefined && isThere) this.#rendezvous.decline(request, isRefused);
    }
    if (destination !== undefined) this.#receive(request, destination);
  }

  #receive(request: PayloadOffer, destination: Destination): void {
    // If the origin has ended, no engine moves its payload.
    if (this.#endedOrdinals.has(request.origin)) this.#completeReceive(destination, SHUTDOWN);
    else this.#rendezvous.receive(request, destination);
  }

  /** Whether a handler is called as soon as the header of a large message is here. */
  #isEarly(id: number): boolean {
    const hints = this.hints[id];
    if (hints === undefined) return false;
    return hints.delivery === "early" || hints.recvImmediate === "enable" || hints.recvImmediate === "disable";
  }

  /** Whether a handler is called with the payload. */
  #isImmediate(id: number, headerBytes: number, payloadBytes: number): boolean {
    if (!this.#isEarly(id)) return true;
    return this.hints[id]?.recvImmediate !== "disable" && bodyBytes(headerBytes, payloadBytes) <= L.RECV_IMMEDIATE_MAX;
  }

  /** Calls the handler for the current message. @param comes whether the message's payload comes in packets */
  #handle(handler: Handler, id: number, isCall: boolean, origin: number, comes: boolean): void {
    const message = this.#message;
    if (message.immediate) {
      if (isCall) this.serve(handler, message);
      else promised(handler(message));
      return;
    }
    const { payloadBytes, payloadOffset, bytes } = message;
    // Entered before the handler runs: if it throws, the packets to come are dropped and the lane goes on.
    if (comes) this.#arrives(origin, 0, payloadBytes);
    const destination = this.#ask(handler, id, isCall);
    if (comes) this.#arrives(origin, 0, payloadBytes, destination);
    else if (destination !== undefined) {
      const payload = bytes.subarray(payloadOffset, payloadOffset + payloadBytes);
      const isThere = copyToDestination(destination, 0, payload);
      this.#completeReceive(destination, isThere ? SUCCESS : ERROR);
    }
  }

  /** Packets of an origin are awaited, up to an end. */
  #arrives(origin: number, at: number, end: number, destination?: Destination, copy?: Copy): void {
    this.#arrivals[origin] = { at, end, destination, copy };
  }

  /** Calls a handler for a call, and replies. */
  protected serve(handler: Handler, message: Message): void {
    this.#table.serve(handler, message);
  }

  /**
   * Calls a handler for a message that is not here yet. Returns the payload's destination; undefined: the payload is discarded.
   */
  #ask(handler: Handler, id: number, isCall: boolean): Destination | undefined {
    const message = this.#message;
    const takesAny = this.hints[id]?.recvImmediate !== "enable";
    const asked = takesAny ? handler : () => this.#refuseLarge(id);
    let destination: Destination | undefined;
    try {
      if (isCall) this.serve(asked, message);
      else {
        promised(asked(message));
        message.checkAnswered();
      }
    } finally {
      // Even if the handler has thrown: then the destination that it chose is dropped.
      destination = message.takeDestination();
    }
    return destination;
  }

  #refuseLarge(id: number): void {
    const { payloadBytes, origin } = this.#message;
    throw new PamiError(
      "PAMIR_TOO_LARGE",
      `dispatch id ${id} takes whole messages only, of at most ${L.RECV_IMMEDIATE_MAX} bytes; ` +
        `${payloadBytes} came from endpoint ${origin}`,
    );
  }

  #packet(body: number, length: number, origin: number): void {
    const arrival = this.#arrivals[origin];
    if (arrival === undefined) return;
    const { at, copy, destination } = arrival;
    const packet = this.#memory.bytes.subarray(body, body + length);
    if (copy !== undefined) {
      this.#grow(copy, at + length);
      copyInto(copy.bytes, at, packet);
    } else if (destination !== undefined && !copyToDestination(destination, at, packet)) {
      this.#endArrival(origin, ERROR);
      // The rest of the message is dropped as it comes.
      if (at + length < arrival.end) this.#arrives(origin, at + length, arrival.end);
      return;
    }
    arrival.at = at + length;
    if (arrival.at >= arrival.end) this.#endArrival(origin, SUCCESS);
  }

  /** Ends the message that an origin sends in packets: all packets are here, or the origin gives up the rest. */
  #endArrival(origin: number, result: Result): void {
    const arrival = this.#arrivals[origin];
    this.#arrivals[origin] = undefined;
    if (arrival !== undefined) this.#finish(arrival, result);
  }

  /** Makes room for so many bytes of a copy. */
  #grow(copy: Copy, needed: number): void {
    const { bytes, meta, payloadBytes } = copy;
    if (needed <= bytes.length) return;
    const total = headerSpace(meta >>> L.META_HEADER_SHIFT) + payloadBytes;
    Object.assign(copy, this.#allocateFor(copy, Math.min(total, Math.max(needed, 4 * bytes.length))));
  }

  /** Allocates larger memory for a copy, with its contents. Without memory, it drops the message and throws. */
  #allocateFor(copy: Copy, size: number): Pick<Copy, "words" | "bytes"> {
    const { origin, request } = copy;
    try {
      const room = allocate(size);
      room.bytes.set(copy.bytes);
      return room;
    } catch (error) {
      if (request === undefined) this.#arrivals[this.#addresses.ordinalOf(origin)] = undefined;
      else if (!this.#endedOrdinals.has(request.origin)) this.#rendezvous.decline(request, true);
      this.#finish({ destination: undefined, copy }, ENOMEM);
      throw error;
    }
  }

  #finish({ destination, copy }: Pick<Arrival, "destination" | "copy">, result: Result): void {
    if (destination !== undefined) this.#completeReceive(destination, result);
    if (copy === undefined) return;
    copy.complete = true;
    const { id } = copy;
    if (!copy.isQueued) {
      try {
        if (result === SUCCESS) this.#deliver((this.#refusal(id) ?? this.#handlers[id]) as Handler, copy);
      } finally {
        if (copy.words.byteLength <= SPARE_BYTES_MAX) this.#spare = copy.words;
      }
      return;
    }
    const refusal = result === SUCCESS && isCallOf(copy) ? this.#refusal(id) : undefined;
    if (refusal !== undefined) {
      this.#unqueue(this.#unexpected.get(id) as Copy[], copy);
      this.#deliver(refusal, copy);
      this.#resume();
      return;
    }
    if (result === SUCCESS) return;
    // The message is incomplete: its origin ended or gave the message up, or there is no memory for it.
    const queue = this.#unexpected.get(id) as Copy[];
    queue.splice(queue.indexOf(copy), 1);
    this.unexpectedBytes -= copy.counts;
    if (queue.length === 0) {
      this.#unexpected.delete(id);
      if (this.#handlers[id] !== undefined) this.#count(-1);
      this.#noteHandlerless();
    }
    // The dropped message leaves room for messages of origins that were held back.
    this.#resume();
  }

  #completeReceive({ onComplete, cookie }: Destination, result: Result): void {
    if (onComplete !== undefined) this.#completions.push(onComplete, cookie, result);
  }

  /** Copies a message into the unexpected queue. If the queue is full, it stops reading the origin from this record on. */
  #keep(
    id: number,
    meta: number,
    header: number,
    here: number,
    payloadBytes: number,
    origin: number,
    body: number,
    request?: PayloadOffer,
  ): void {
    const space = headerSpace(meta >>> L.META_HEADER_SHIFT);
    const total = request === undefined ? space + payloadBytes : space;
    if (!this.#mayKeep(id, Math.max(total, KEPT_BYTES_MIN), origin)) {
      this.#holdBack(id, origin, body);
      return;
    }
    this.#queue(this.#copy(id, meta, header, here, payloadBytes, origin, total, true, request));
  }

  /** Stops reading an origin, from a record on for which the unexpected queue has no room. */
  #holdBack(id: number, origin: number, body: number): void {
    this.#pause(origin, body);
    this.#direct = NO_HANDLERS;
    const isHandlerless = this.#handlers[id] === undefined && !this.#streams.has(id);
    this.#noteHandlerless(isHandlerless ? id : -1);
  }

  /** Puts a copy into the unexpected queue, where it waits for its handler, or for take(). */
  #queue(copy: Copy): void {
    const { id } = copy;
    this.unexpectedBytes += copy.counts;
    const queue = this.#unexpected.get(id);
    if (queue !== undefined) queue.push(copy);
    else {
      this.#unexpected.set(id, [copy]);
      this.#noteHandlerless();
    }
  }

  /** Whether the unexpected queue has room for a message. A message larger than the whole queue waits for its handler. */
  #mayKeep(id: number, counts: number, origin: number): boolean {
    if (this.unexpectedBytes + counts <= this.#unexpectedMax) return true;
    // The reader of a stream gets its next message, whatever its size, and whichever other messages wait.
    if (this.#streams.has(id)) return !this.#unexpected.has(id);
    // An origin that has ended sends no more than its lane holds. Its end is reported only after these messages.
    return this.unexpectedBytes === 0 && this.#endedOrdinals.has(origin);
  }

  /**
   * Copies the part of a message that is here. The rest comes in packets.
   * @param total bytes of the copy
   * @param place where the payload lies, if not behind the header
   */
  #copy(
    id: number,
    meta: number,
    header: number,
    here: number,
    payloadBytes: number,
    origin: number,
    total: number,
    isQueued: boolean,
    request?: PayloadOffer,
    place?: number,
  ): Copy {
    // The announced bytes are not here yet. Beyond the limit, memory is allocated only as packets come.
    const isWhole = place !== undefined;
    const room = Math.max(here, L.RECV_IMMEDIATE_MAX, this.#unexpectedMax);
    const spare = isQueued ? undefined : this.#takeSpare(total);
    const { words, bytes } = spare ?? allocate(isWhole ? total : Math.min(total, room));
    copyInto(bytes, 0, this.#memory.bytes.subarray(header, header + here));
    const headerBytes = meta >>> L.META_HEADER_SHIFT;
    if (isWhole) copyInto(bytes, total - payloadBytes, this.#memory.bytes.subarray(place, place + payloadBytes));
    // A header without a payload is padded in the queue, but not in a record.
    const end = request === undefined ? Math.min(total, bodyBytes(headerBytes, payloadBytes)) : here;
    const counts = Math.max(total, KEPT_BYTES_MIN);
    const complete = isWhole || here >= end;
    const from = this.#addresses.endpointAt(origin);
    const copy: Copy = { words, bytes, counts, id, meta, origin: from, payloadBytes, isQueued, complete, request };
    if (!complete) this.#arrives(origin, here, end, undefined, copy);
    return copy;
  }

  /** The kept memory, if a copy fills at least half of it. */
  #takeSpare(size: number): Pick<Copy, "words" | "bytes"> | undefined {
    const words = this.#spare;
    if (words === undefined || size > words.byteLength || 2 * size < words.byteLength) return undefined;
    this.#spare = undefined;
    return { words, bytes: new Uint8Array(words.buffer, 0, size) };
  }

  /** Stops reading an origin, from a record on. */
  #pause(origin: number, body: number): void {
    const lane = this.#kernel.laneOf(this.#block, origin);
    this.#memory.words[(lane + L.LANE_PAUSED_SINCE_OFFSET) >>> 2] = stampOf(this.#clock, this.#clock.now());
    this.#kernel.lanePause(lane, body);
    this.#paused.add(origin);
    if (diagnostics.paused.hasSubscribers) {
      const { contextsBase, contextSize } = this.#map;
      const own = (this.#block - contextsBase) / contextSize;
      const [to, from] = [this.#addresses.endpointAt(own), this.#addresses.endpointAt(origin)];
      diagnostics.paused.publish({ from, to, bytes: this.unexpectedBytes });
    }
  }

  /** Calls the handler for a copy. */
  #deliver(handler: Handler, copy: Copy): void {
    const { id, meta, origin, payloadBytes, request } = copy;
    const isCall = (meta & L.META_DISPATCH_MASK) === L.DISPATCH_ID_CALL;
    this.#message.setMemory(copy, Uint32Array.of(origin));
    const headerBytes = meta >>> L.META_HEADER_SHIFT;
    const isHere = request === undefined && this.#isImmediate(id, headerBytes, payloadBytes);
    this.#message.set(meta, 0, payloadBytes, 0, isHere);
    // For an early handler, only the part before the payload was copied.
    const comes = !copy.isQueued && request === undefined && copy.counts < bodyBytes(headerBytes, payloadBytes);
    try {
      if (request !== undefined) this.#answer(handler, id, request);
      else this.#handle(handler, id, isCall, this.#addresses.ordinalOf(origin), comes);
    } finally {
      this.#message.setMemory(this.#memory, this.#addresses.table);
    }
  }

  /** Reads again from origins that were held back. */
  #resume(): void {
    for (const origin of this.#paused) this.#kernel.laneResume(this.#block, origin);
    this.#paused.clear();
    this.#resumeWanted = false;
    if (!this.#stopped) this.#direct = this.#plain;
  }

  #switchLanes(): void {
    for (let i = 0; i < this.#switches.length; i += 2) {
      const [origin, fresh] = [this.#switches[i] as number, this.#switches[i + 1] as number];
      this.#kernel.laneSwitch(this.#map.job, this.#block, origin, fresh);
    }
    this.#switches.length = 0;
  }
}

/** Allocates the memory of a copy. */
function allocate(size: number): Pick<Copy, "words" | "bytes"> {
  const words = new Int32Array(Math.ceil(size / 4));
  return { words, bytes: new Uint8Array(words.buffer, 0, size) };
}

/** Checks a send to a dispatch id with these hints. @throws PAMIR_TOO_LARGE */
export function checkSendHints(id: number, hints: DispatchHints, headerBytes: number, total: number): void {
  if (hints.recvImmediate === "enable" && total > L.RECV_IMMEDIATE_MAX) {
    throw new PamiError(
      "PAMIR_TOO_LARGE",
      `dispatch id ${id} takes whole messages only (recvImmediate), of at most ${L.RECV_IMMEDIATE_MAX} bytes, not ${total}`,
    );
  }
  if (hints.longHeader === "disable" && headerBytes > L.SEND_IMMEDIATE_MAX) {
    throw new PamiError(
      "PAMIR_TOO_LARGE",
      `dispatch id ${id} takes headers of at most ${L.SEND_IMMEDIATE_MAX} bytes (longHeader), not ${headerBytes}`,
    );
  }
}
