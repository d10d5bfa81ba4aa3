// The handler of a dispatch id of pamir's own whose code is loaded on demand. What comes before is kept.
import type { HandlerTable } from "../core/dispatch.js";
import type { Endpoint } from "../core/endpoint.js";
import type { Message } from "../core/message.js";

/** The part of a message that such a handler reads. The payload is valid until the handler returns. */
export interface Arrival {
  readonly origin: Endpoint;
  readonly payloadBytes: number;
  readonly payload: Uint8Array;
  /** The u32 at a byte offset of the header. */
  headerWord(offset: number): number;
}

export class LateHandler {
  #handler: ((arrival: Arrival) => void) | undefined;
  #kept: Arrival[] = [];

  constructor(handlers: HandlerTable, id: number) {
    handlers.handle(id, (message) => {
      if (this.#handler === undefined) this.#kept.push(kept(message));
      else this.#handler(message);
    });
  }

  /** Sets the handler, which gets what has come before at once, in order. */
  set(handler: (arrival: Arrival) => void): void {
    this.#handler = handler;
    for (const arrival of this.#kept.splice(0)) handler(arrival);
  }
}

function kept(message: Message): Arrival {
  const header = new Uint32Array(message.header.slice().buffer);
  return {
    origin: message.origin,
    payloadBytes: message.payloadBytes,
    payload: message.copy(),
    headerWord: (offset) => header[offset >>> 2] as number,
  };
}
