// How a handler gets a message: in place or as a copy, whole or by its header. If the payload is not here, the handler chooses
// its destination.
import * as L from "../../../assembly/layout.js";
import { PamiError } from "../../core/error.js";
import type { Handler } from "../../core/message/dispatch.js";
import { bodyBytes, copyToDestination, type Destination, type Message } from "../../core/message/message.js";
import { ERROR, type Result, SHUTDOWN, SUCCESS } from "../../core/result.js";
import { promised } from "../../support/promise.js";
import type { ContextParts } from "../base.js";
import type { PayloadOffer, RendezvousReceiver } from "../rendezvous/receiver.js";
import type { Arrivals, MessageCopy } from "./arrivals.js";
import type { DispatchIds } from "./dispatch-ids.js";
import type { EndedOrigins } from "./ended-origins.js";
import type { Incoming } from "./incoming.js";

interface DispatchParts extends ContextParts {
  readonly ids: DispatchIds;
  readonly ended: EndedOrigins;
  readonly arrivals: Arrivals;
  /** The flyweight of all messages. */
  readonly message: Message;
  readonly rendezvous: RendezvousReceiver;
}

export class Dispatcher {
  readonly #parts: DispatchParts;
  readonly #message: Message;

  constructor(parts: DispatchParts) {
    this.#parts = parts;
    this.#message = parts.message;
  }

  /** Calls the handler for a message in place. */
  deliver(handler: Handler, incoming: Incoming): void {
    const { header, origin, place, here, end } = incoming;
    this.#point(incoming, header, origin);
    if (place !== 0) this.#message.setPlace(place);
    this.#call(handler, incoming, origin, here < end);
  }

  /** Calls the handler for a copy. */
  deliverCopy(handler: Handler, copy: MessageCopy): void {
    const { meta, origin, payloadBytes, isQueued, counts } = copy;
    const { memory, addresses } = this.#parts;
    const message = this.#message;
    message.setMemory(copy, Uint32Array.of(origin));
    this.#point(copy, 0, 0);
    // For an early handler, only the part before the payload was copied.
    const comes = !isQueued && counts < bodyBytes(meta >>> L.META_HEADER_SHIFT, payloadBytes);
    try {
      this.#call(handler, copy, addresses.ordinalOf(origin), comes);
    } finally {
      message.setMemory(memory, addresses.table);
    }
  }

  /** Makes a message the current one. @param origin its place in the flyweight's table of endpoints */
  #point({ id, meta, payloadBytes, request }: Incoming | MessageCopy, header: number, origin: number): void {
    const isHere = request === undefined && this.#parts.ids.isImmediate(id, meta >>> L.META_HEADER_SHIFT, payloadBytes);
    this.#message.set(meta, header, payloadBytes, origin, isHere);
  }

  /** Calls the handler for the current message, whose payload is offered, and begins the transfer. */
  #answer(handler: Handler, id: number, request: PayloadOffer): void {
    const { ended, rendezvous } = this.#parts;
    let isRefused = true;
    let destination: Destination | undefined;
    try {
      destination = this.#ask(handler, id, false);
      isRefused = false;
    } finally {
      // If the origin has ended, another task may use the memory of its rget FIFO by now.
      if (destination === undefined && !ended.has(request.origin)) rendezvous.decline(request, isRefused);
    }
    if (destination === undefined) return;
    // If the origin has ended, no engine moves its payload.
    if (ended.has(request.origin)) this.complete(destination, SHUTDOWN);
    else rendezvous.receive(request, destination);
  }

  /** Calls the handler for the current message. @param comes whether the message's payload comes in packets */
  #call(handler: Handler, { id, isCall, request }: Incoming | MessageCopy, origin: number, comes: boolean): void {
    const message = this.#message;
    if (request !== undefined) {
      this.#answer(handler, id, request);
      return;
    }
    const { arrivals } = this.#parts;
    if (message.immediate) {
      if (isCall) this.#parts.handlers.serve(handler, message);
      else promised(handler(message));
      return;
    }
    const { payloadBytes, payloadOffset, bytes } = message;
    // Entered before the handler runs: if it throws, the packets to come are dropped and the lane goes on.
    if (comes) arrivals.begin(origin, 0, payloadBytes);
    const destination = this.#ask(handler, id, isCall);
    if (comes) arrivals.begin(origin, 0, payloadBytes, destination);
    else if (destination !== undefined) {
      const payload = bytes.subarray(payloadOffset, payloadOffset + payloadBytes);
      const isThere = copyToDestination(destination, 0, payload);
      this.complete(destination, isThere ? SUCCESS : ERROR);
    }
  }

  /**
   * Calls a handler for a message that is not here yet. Returns the payload's destination; undefined: the payload is discarded.
   */
  #ask(handler: Handler, id: number, isCall: boolean): Destination | undefined {
    const message = this.#message;
    const takesAny = this.#parts.ids.hints[id]?.recvImmediate !== "enable";
    const asked = takesAny ? handler : () => this.#refuseLarge(id);
    let destination: Destination | undefined;
    try {
      if (isCall) this.#parts.handlers.serve(asked, message);
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

  /** The transfer to a destination is over. */
  complete({ onComplete, cookie }: Destination, result: Result): void {
    if (onComplete !== undefined) this.#parts.completions.push(onComplete, cookie, result);
  }
}
