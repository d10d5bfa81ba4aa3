// The handler of a dispatch id of pamir's own whose code is loaded on demand. Messages that come before are kept.

import type { Endpoint } from "../core/endpoint.js";
import type { HandlerTable } from "../core/message/dispatch.js";
import type { Message } from "../core/message/message.js";

/** Bytes for which a kept message counts, besides its payload. */
const ARRIVAL_BYTES = 64;
/** Bytes that are kept of one task: for as many geometries as a context may have, of 100 bytes each. */
export const KEPT_BYTES_MAX = 8_388_608;

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
  /** Bytes of kept messages, by the task that has sent them. */
  readonly #keptBytes = new Map<number, number>();

  constructor(handlers: HandlerTable, id: number) {
    handlers.handle(id, (message) => {
      if (this.#handler !== undefined) this.#handler(message);
      else if (this.#mayKeep(message)) this.#kept.push(kept(message));
      else handlers.malformed++;
    });
  }

  #mayKeep({ task, payloadBytes }: Message): boolean {
    const bytes = (this.#keptBytes.get(task) ?? 0) + ARRIVAL_BYTES + payloadBytes;
    if (bytes > KEPT_BYTES_MAX) return false;
    this.#keptBytes.set(task, bytes);
    return true;
  }

  /** Sets the handler, which gets the kept messages at once, in order. */
  set(handler: (arrival: Arrival) => void): void {
    this.#handler = handler;
    this.#keptBytes.clear();
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
