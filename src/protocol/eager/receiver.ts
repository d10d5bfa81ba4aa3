// The target's side: a batch of records, in order, from the events of the kernel to handlers. The other decisions of this side
// have a file each: incoming.ts, dispatch-ids.ts, dispatcher.ts, arrivals.ts, unexpected.ts, paused-origins.ts, ended-origins.ts
// and payload-buffer.ts.
import * as L from "../../../assembly/layout.js";
import type { Endpoint } from "../../core/endpoint.js";
import type { DispatchHints, Handler, HandlerTable } from "../../core/message/dispatch.js";
import { headerSpace, Message, prologueBytes } from "../../core/message/message.js";
import { ENOMEM, ERROR, type Result, SHUTDOWN, SUCCESS } from "../../core/result.js";
import type { Kernel, Memory } from "../../kernel/kernel.js";
import type { RegionTable } from "../../memory/regions.js";
import { promised } from "../../support/promise.js";
import type { ContextParts } from "../base.js";
import type { RendezvousReceiver } from "../rendezvous/receiver.js";
import { Arrivals, KEPT_BYTES_MIN, type PacketArrival } from "./arrivals.js";
import { DispatchIds } from "./dispatch-ids.js";
import { Dispatcher } from "./dispatcher.js";
import { EndedOrigins } from "./ended-origins.js";
import { Incoming } from "./incoming.js";
import { PausedOrigins } from "./paused-origins.js";
import { PayloadBuffer } from "./payload-buffer.js";
import { UnexpectedQueue } from "./unexpected.js";

/** These bits of a commit word are 0 for a whole message. */
const KIND_BITS = L.RECORD_KIND_MASK << L.RECORD_KIND_SHIFT;

export interface ReceiverParts extends ContextParts {
  readonly rendezvous: RendezvousReceiver;
  readonly regions: RegionTable;
  /** Limit of the unexpected queue in bytes. */
  readonly unexpectedBytes: number;
  /** Whether a handler may be running. */
  isAdvancing(): boolean;
  /** Called for each endpoint that has ended, once its last messages are delivered or kept. */
  endpointGone(endpoint: Endpoint): void;
}

export class Receiver {
  readonly ids: DispatchIds;
  readonly unexpected: UnexpectedQueue;
  readonly paused: PausedOrigins;
  readonly ended: EndedOrigins;
  readonly #parts: ReceiverParts;
  readonly #kernel: Kernel;
  readonly #memory: Memory;
  readonly #block: number;
  readonly #eventWord: number;
  readonly #table: HandlerTable;
  readonly #message: Message;
  readonly #incoming = new Incoming();
  readonly #arrivals: Arrivals;
  readonly #buffer: PayloadBuffer;
  readonly #dispatcher: Dispatcher;
  /** Lanes to be replaced at the end of the batch: origin, lane that follows. */
  readonly #switches: number[] = [];

  constructor(base: ReceiverParts) {
    const { kernel, memory, addresses, block, handlers } = base;
    const buffer = new PayloadBuffer(base);
    const ids = new DispatchIds(base);
    const paused = new PausedOrigins(base);
    const arrivals = new Arrivals(base);
    const message = new Message(memory, addresses.table, buffer);
    const ended = new EndedOrigins({
      ...base,
      paused,
      gone: (origin) => {
        base.endpointGone(addresses.endpointAt(origin));
        this.#endArrival(origin, SHUTDOWN);
      },
    });
    this.ids = ids;
    this.paused = paused;
    this.ended = ended;
    this.unexpected = new UnexpectedQueue({ ...base, ids, paused, ended });
    this.#parts = base;
    this.#kernel = kernel;
    this.#memory = memory;
    this.#block = block;
    this.#eventWord = (block + L.CONTEXT_EVENTS_OFFSET) >>> 2;
    this.#table = handlers;
    this.#buffer = buffer;
    this.#message = message;
    this.#arrivals = arrivals;
    this.#dispatcher = new Dispatcher({ ...base, ids, ended, arrivals, message });
  }

  /** See `Context.dispatch`. */
  dispatch(id: number, handler: Handler, hints: DispatchHints): void {
    this.ids.setHandler(id, handler, hints);
    this.unexpected.handlerSet(id);
    this.paused.resume();
  }

  /**
   * No more handlers come: from now on, new and waiting calls to dispatch ids without a handler are refused. An id whose
   * messages a stream has read counts as one with a handler.
   */
  ready(): void {
    if (this.ids.isReady) return;
    this.ids.isReady = true;
    this.unexpected.refuseSoon();
    this.paused.resume();
  }

  /** Looks for records up to `rounds` times and handles the first batch. Returns events and ADVANCE_NOTICE. */
  advance(rounds: number, errors: unknown[]): number {
    const found = this.#kernel.advance(this.#block, rounds);
    if ((found & L.ADVANCE_EVENTS_MASK) !== 0) this.endBatch(0, found, errors);
    return found;
  }

  /** Handles a batch that the kernels have `found`, from its event `place` on. */
  endBatch(first: number, found: number, errors: unknown[]): void {
    const count = found & L.ADVANCE_EVENTS_MASK;
    let place = first;
    while (place < count) {
      try {
        for (; place < count; place++) this.#event(this.#eventWord + place * (L.EVENT_SIZE >>> 2));
      } catch (error) {
        errors.push(error);
        place++;
      }
    }
    this.#kernel.release(this.#block);
    if (this.#switches.length > 0) this.#switchLanes();
  }

  #event(word: number): void {
    const { words } = this.#memory;
    const commit = words[word] as number;
    const meta = words[word + 1] as number;
    const body = (words[word + 2] as number) >>> 0;
    const origin = words[word + 3] as number;
    const { paused } = this;
    if ((commit & KIND_BITS) === 0) {
      const handler = paused.direct[meta & L.META_DISPATCH_MASK];
      if (handler !== undefined) {
        const message = this.#message;
        const rest = (commit & L.RECORD_LENGTH_MASK) - (((meta >>> L.META_HEADER_SHIFT) + 7) & ~7);
        message.set(meta, body, Math.max(rest, 0), origin, true);
        const returned = handler(message);
        if (returned !== undefined) promised(returned);
        return;
      }
      if ((meta & L.META_DISPATCH_MASK) === L.DISPATCH_ID_CALL) {
        const called = paused.direct[(words[(body + 4) >>> 2] as number) & L.DISPATCH_ID_MAX];
        if (called !== undefined) {
          const rest = (commit & L.RECORD_LENGTH_MASK) - (((meta >>> L.META_HEADER_SHIFT) + 7) & ~7);
          this.#message.set(meta, body, Math.max(rest, 0), origin, true);
          this.#table.serve(called, this.#message);
          return;
        }
      }
    }
    if (!paused.isStopped && !paused.origins.has(origin)) this.#rareEvent(commit, meta, body, origin);
  }

  #rareEvent(commit: number, meta: number, body: number, origin: number): void {
    const kind = (commit >>> L.RECORD_KIND_SHIFT) & L.RECORD_KIND_MASK;
    const length = commit & L.RECORD_LENGTH_MASK;
    if (kind === L.KIND_MORE) this.#packet(body, length, origin);
    else if (kind === L.KIND_BROKEN) this.#endArrival(origin, ERROR);
    else if (kind === L.KIND_SWITCH) this.#switches.push(origin, (this.#memory.words[body >>> 2] as number) >>> 0);
    else {
      const incoming = this.#incoming;
      incoming.origin = origin;
      incoming.request = kind === L.KIND_RTS ? this.#parts.rendezvous.requestAt(body, origin) : undefined;
      incoming.read(this.#memory.words, kind, meta, body, length);
      this.#begin(incoming);
    }
  }

  /** A message begins: its handler gets it, or it is copied, until it is whole or has a handler. */
  #begin(incoming: Incoming): void {
    const { id, isCall, origin, body, headerBytes, payloadBytes, here, end, place, request } = incoming;
    const refusal = isCall ? this.ids.refusal(id) : undefined;
    const isOfferOfProtocol = request !== undefined && id > L.DISPATCH_ID_MAX;
    const handler = isOfferOfProtocol ? this.#table.drop : (refusal ?? this.#table.all[id]);
    const waits = handler === undefined || (refusal === undefined && this.unexpected.has(id));
    const total = headerSpace(headerBytes) + (request === undefined ? payloadBytes : 0);
    if (waits && !this.unexpected.hasRoom(id, Math.max(total, KEPT_BYTES_MIN), origin)) {
      this.paused.pause(origin, body, this.unexpected.bytes);
      this.unexpected.noteHandlerless(id);
      return;
    }
    if (place !== 0) this.#buffer.take(body, origin);
    try {
      const prologue = this.ids.isEarly(id) ? prologueBytes(headerBytes, payloadBytes) : end;
      if (waits) this.unexpected.push(this.#arrivals.copy(incoming, total, true));
      else if (here < Math.min(prologue, end)) this.#arrivals.copy(incoming, prologue, false);
      else this.#dispatcher.deliver(handler, incoming);
    } finally {
      if (place !== 0) this.#buffer.release();
    }
  }

  #packet(body: number, length: number, origin: number): void {
    let arrival: PacketArrival | undefined;
    try {
      arrival = this.#arrivals.takePacket(origin, body, length);
    } catch (error) {
      this.#endArrival(origin, ENOMEM);
      throw error;
    }
    if (arrival !== undefined) this.#finish(arrival, arrival.at < arrival.end ? ERROR : SUCCESS);
  }

  /** No more packets come from an origin. */
  #endArrival(origin: number, result: Result): void {
    const arrival = this.#arrivals.takeEnded(origin);
    if (arrival !== undefined) this.#finish(arrival, result);
  }

  /** All packets of a message are here; without SUCCESS, its origin has ended or gives it up, or there is no memory for it. */
  #finish({ destination, copy }: PacketArrival, result: Result): void {
    if (destination !== undefined) this.#dispatcher.complete(destination, result);
    if (copy === undefined) return;
    copy.complete = true;
    const { id, isCall, isQueued } = copy;
    const refusal = result === SUCCESS && isCall ? this.ids.refusal(id) : undefined;
    if (isQueued) {
      if (result === SUCCESS && refusal === undefined) return;
      this.unexpected.drop(copy);
      if (refusal !== undefined) this.#dispatcher.deliverCopy(refusal, copy);
      return;
    }
    try {
      const handler = refusal ?? this.#table.all[id];
      if (result === SUCCESS) this.#dispatcher.deliverCopy(handler as Handler, copy);
    } finally {
      this.#arrivals.reuse(copy);
    }
  }

  /** Delivers the unexpected messages whose handler has been set since, and refuses calls. Returns how many. */
  deliverUnexpected(errors: unknown[]): number {
    const refused = this.unexpected.takeRefused();
    let delivered = refused.length;
    for (const copy of refused) this.#dispatcher.deliverCopy(this.ids.refusal(copy.id) as Handler, copy);
    for (const copy of this.unexpected.takeDeliverable()) {
      if (this.paused.isStopped) break;
      delivered++;
      try {
        this.#dispatcher.deliverCopy(this.#table.all[copy.id] as Handler, copy);
      } catch (error) {
        errors.push(error);
      }
    }
    if (delivered > 0) this.paused.resume();
    return delivered;
  }

  /** Whether a message of an origin is still arriving, or its payload is on offer. */
  holds(origin: number): boolean {
    return this.#arrivals.has(origin) || this.paused.origins.has(origin) || this.unexpected.hasOffer(origin);
  }

  #switchLanes(): void {
    for (let i = 0; i < this.#switches.length; i += 2) {
      const [origin, fresh] = [this.#switches[i] as number, this.#switches[i + 1] as number];
      this.#kernel.laneSwitch(this.#parts.map.job, this.#block, origin, fresh);
    }
    this.#switches.length = 0;
  }
}
