// What happens with messages without a handler: they are copied into the unexpected queue, within its limit, and leave it for
// their handler, for the reader of a stream, or to be refused.
import * as L from "../../../assembly/layout.js";
import type { Endpoint } from "../../core/endpoint.js";
import { type Result, SHUTDOWN, SUCCESS } from "../../core/result.js";
import type { ContextParts } from "../base.js";
import type { PayloadOffer, RendezvousReceiver } from "../rendezvous/receiver.js";
import { allocate, type MessageCopy } from "./arrivals.js";
import type { DispatchIds } from "./dispatch-ids.js";
import type { EndedOrigins } from "./ended-origins.js";
import type { PausedOrigins } from "./paused-origins.js";

/** A message that was taken out of the unexpected queue. The caller owns these copies. */
export interface Taken {
  readonly origin: Endpoint;
  readonly header: Uint8Array;
  readonly payload: Uint8Array;
  /** Number of the call, if the message is a call. */
  readonly call: number | undefined;
}

interface QueueParts extends ContextParts {
  readonly paused: PausedOrigins;
  readonly rendezvous: RendezvousReceiver;
  readonly ids: DispatchIds;
  readonly ended: EndedOrigins;
  /** Limit in bytes. */
  readonly unexpectedBytes: number;
}

export class UnexpectedQueue {
  /** Work for the next advance: dispatch ids whose messages wait, and whose handler has been set; refusals that are due. */
  busy = 0;
  bytes = 0;
  readonly #parts: QueueParts;
  readonly #ids: DispatchIds;
  readonly #queues = new Map<number, MessageCopy[]>();
  /** Whether calls that waited before ready() are still to be refused. */
  #isRefusalDue = false;

  constructor(parts: QueueParts) {
    this.#parts = parts;
    this.#ids = parts.ids;
  }

  #count(change: 1 | -1): void {
    this.busy += change;
    this.#parts.activity.add(change);
  }

  /** Also stored in the context's block, for the dump. */
  #add(bytes: number): void {
    this.bytes += bytes;
    this.#parts.memory.words[(this.#parts.block + L.CONTEXT_UNEXPECTED_OFFSET) >>> 2] = this.bytes;
  }

  /** The dispatch id whose messages have waited longest for a handler; -1: none. */
  get handlerless(): number {
    return (this.#parts.memory.words[(this.#parts.block + L.CONTEXT_HANDLERLESS_OFFSET) >>> 2] as number) - 1;
  }

  /**
   * Stores, after a change, which dispatch id has waited longest for a handler. @param held id of a message that is not even
   * kept
   */
  noteHandlerless(held = -1): void {
    const { memory, block } = this.#parts;
    let first = this.#ids.hasReader(held) ? -1 : held;
    for (const id of this.#queues.keys()) {
      if (this.#ids.hasReader(id)) continue;
      first = id;
      break;
    }
    memory.words[(block + L.CONTEXT_HANDLERLESS_OFFSET) >>> 2] = first + 1;
  }

  /** Whether messages to a dispatch id wait, complete or not. */
  has(id: number): boolean {
    return this.#queues.has(id);
  }

  /** Whether there is room for a message. A message larger than the whole queue waits for its handler. */
  hasRoom(id: number, counts: number, origin: number): boolean {
    if (this.bytes + counts <= this.#parts.unexpectedBytes) return true;
    // The reader of a stream gets its next message, whatever its size, and whichever other messages wait.
    if (this.#ids.streams.has(id)) return !this.has(id);
    // An origin that has ended sends no more than its lane holds. Its end is reported only after these messages.
    return this.bytes === 0 && this.#parts.ended.has(origin);
  }

  push(copy: MessageCopy): void {
    const { id, counts } = copy;
    this.#add(counts);
    const queue = this.#queues.get(id);
    if (queue !== undefined) queue.push(copy);
    else {
      this.#queues.set(id, [copy]);
      this.noteHandlerless();
    }
  }

  #remove(copy: MessageCopy): void {
    const { id, counts } = copy;
    const queue = this.#queues.get(id) as MessageCopy[];
    if (queue[0] === copy) queue.shift();
    else queue.splice(queue.indexOf(copy), 1);
    this.#add(-counts);
    if (queue.length > 0) return;
    this.#queues.delete(id);
    if (this.#ids.allowDirect(id)) this.#count(-1);
    this.noteHandlerless();
  }

  /** A dispatch id has a handler from now on. */
  handlerSet(id: number): void {
    if (this.has(id)) this.#count(1);
    else this.#ids.allowDirect(id);
    this.noteHandlerless();
  }

  /** Takes out, one after the other, the messages whose handler has been set since. */
  *takeDeliverable(): Generator<MessageCopy> {
    const { all } = this.#parts.handlers;
    for (const [id, queue] of this.#queues) {
      if (all[id] === undefined) continue;
      for (let copy = queue[0]; copy?.complete; copy = queue[0]) {
        this.#remove(copy);
        yield copy;
      }
    }
  }

  /** Not at once: a handler may be running. */
  refuseSoon(): void {
    this.#isRefusalDue = true;
    this.#count(1);
  }

  /** Takes out the calls that are refused, if refuseSoon() was called. */
  takeRefused(): MessageCopy[] {
    if (!this.#isRefusalDue) return [];
    this.#isRefusalDue = false;
    this.#count(-1);
    const refused = this.#all.filter(({ id, isCall, complete }) => complete && isCall && this.#ids.refusal(id));
    for (const copy of refused) this.#remove(copy);
    return refused;
  }

  /** Whether takeRefused() or takeDeliverable() would find something: a message in packets may still be arriving. */
  get hasWork(): boolean {
    const { all } = this.#parts.handlers;
    const isDue = ([id, queue]: [number, MessageCopy[]]) => all[id] !== undefined && queue[0]?.complete === true;
    return this.busy > 0 && (this.#isRefusalDue || [...this.#queues].some(isDue));
  }

  /** Whether a message to a dispatch id from one of these endpoints, complete or not, waits. */
  hasFrom(id: number, endpoints: ReadonlySet<Endpoint>): boolean {
    return this.#queues.get(id)?.some(({ origin }) => endpoints.has(origin)) ?? false;
  }

  /** Whether a call waits for its handler. */
  hasCall(from: Endpoint, number: number): boolean {
    return this.#all.some(
      ({ isCall, origin, words }) => isCall && origin === from && (words[0] as number) >>> 0 === number,
    );
  }

  /** Whether a payload that an origin offers waits. */
  hasOffer(ordinal: number): boolean {
    return this.#all.some(({ request }) => request?.origin === ordinal);
  }

  get #all(): MessageCopy[] {
    return [...this.#queues.values()].flat();
  }

  /** Keeps messages to a dispatch id for take() from now on. @throws PAMIR_INVAL, PAMIR_DISPATCH_TAKEN */
  open(id: number): void {
    this.#ids.openStream(id);
    this.noteHandlerless();
    // Messages that had no room before may have some now.
    this.#parts.paused.resume();
  }

  close(id: number): void {
    this.#ids.streams.delete(id);
    this.noteHandlerless();
  }

  /** Whether take() would return a message. If the first message's payload is only offered, this look begins its transfer. */
  hasNext(id: number): boolean {
    const queue = this.#queues.get(id);
    const first = queue?.[0];
    if (queue !== undefined && first?.request !== undefined) queue[0] = this.#gather(first, first.request);
    return queue?.[0]?.complete ?? false;
  }

  /** Moves an offered payload into the unexpected queue. Without memory, it drops the message and throws. */
  #gather(offered: MessageCopy, request: PayloadOffer): MessageCopy {
    const { ended, rendezvous, completions } = this.#parts;
    const space = offered.bytes.length;
    const hasEnded = ended.has(request.origin);
    let room: ReturnType<typeof allocate>;
    try {
      room = allocate(space + request.bytes);
    } catch (error) {
      if (!hasEnded) rendezvous.decline(request, true);
      this.drop(offered);
      throw error;
    }
    room.bytes.set(offered.bytes);
    const counts = offered.counts + request.bytes;
    const copy: MessageCopy = { ...offered, ...room, counts, complete: false, request: undefined };
    this.#add(request.bytes);
    const onComplete = (_: unknown, result: Result) => {
      copy.complete = true;
      if (result !== SUCCESS) this.drop(copy);
    };
    const destination = { bytes: room.bytes.subarray(space), onComplete, cookie: undefined, options: {} };
    // If the origin has ended, no engine moves its payload.
    if (hasEnded) completions.push(onComplete, undefined, SHUTDOWN);
    else rendezvous.gather(request, destination);
    return copy;
  }

  /** Takes a message out, which leaves room for messages of origins that were held back. */
  drop(copy: MessageCopy): void {
    this.#remove(copy);
    this.#parts.paused.resume();
  }

  /** Removes the next message to a dispatch id, which makes room for another. */
  take(id: number): Taken | undefined {
    const next = this.#queues.get(id)?.[0];
    if (next === undefined || !next.complete || next.request !== undefined) return undefined;
    const { meta, bytes, words, origin, payloadBytes, isCall } = next;
    this.#remove(next);
    this.#parts.paused.resume();
    return {
      origin,
      header: bytes.subarray(isCall ? 8 : 0, meta >>> L.META_HEADER_SHIFT),
      payload: bytes.subarray(bytes.length - payloadBytes),
      call: isCall ? (words[0] as number) >>> 0 : undefined,
    };
  }
}
