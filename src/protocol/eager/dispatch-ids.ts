// What takes the messages of each dispatch id: a handler, with its hints, or a stream. Once no more handlers come, calls to
// the other dispatch ids are refused.
import * as L from "../../../assembly/layout.js";
import { nameOf } from "../../core/endpoint.js";
import { checkInteger, PamiError } from "../../core/error.js";
import { checkHints, type DispatchHints, type Handler, type HandlerTable } from "../../core/message/dispatch.js";
import { bodyBytes } from "../../core/message/message.js";
import type { ContextParts } from "../base.js";

/** Most dispatch ids that the text of a refusal names. */
const SHOWN_IDS_MAX = 16;

const NO_HINTS: DispatchHints = {};

export class DispatchIds {
  /** Whether no more handlers come. */
  isReady = false;
  /** Hints by dispatch id, on this side. A send checks them too, because both sides set the same hints. */
  readonly hints: (DispatchHints | undefined)[] = [];
  readonly #parts: ContextParts;
  readonly #handlers: HandlerTable["all"];
  /** Dispatch ids whose messages are taken out of the unexpected queue one by one. */
  readonly streams = new Set<number>();
  /** Dispatch ids whose messages a stream reads, or has read. */
  readonly #streamed = new Set<number>();

  constructor(parts: ContextParts) {
    this.#parts = parts;
    this.#handlers = parts.handlers.all;
  }

  /** @throws PAMIR_INVAL, PAMIR_DISPATCH_TAKEN */
  #checkFree(id: number): void {
    checkInteger("dispatch id", id, 0, L.DISPATCH_ID_MAX);
    if (this.hasReader(id)) throw new PamiError("PAMIR_DISPATCH_TAKEN", `dispatch id ${id} has a handler, or a stream`);
  }

  /** @throws PAMIR_INVAL, PAMIR_DISPATCH_TAKEN, PAMIR_HINT */
  setHandler(id: number, handler: Handler, hints: DispatchHints): void {
    this.#checkFree(id);
    checkHints(hints);
    this.#handlers[id] = handler;
    this.hints[id] = hints;
  }

  /** @throws PAMIR_INVAL, PAMIR_DISPATCH_TAKEN */
  openStream(id: number): void {
    this.#checkFree(id);
    this.streams.add(id);
    this.#streamed.add(id);
  }

  hasReader(id: number): boolean {
    return this.#handlers[id] !== undefined || this.streams.has(id);
  }

  /**
   * No message of a dispatch id waits: a handler without hints is called for a whole message without a further look. Returns
   * whether there is a handler.
   */
  allowDirect(id: number): boolean {
    const handler = this.#handlers[id];
    if (handler === undefined) return false;
    if (Object.keys(this.hints[id] as DispatchHints).length === 0) this.#parts.handlers.plain[id] = handler;
    return true;
  }

  /** The handler of refused calls; undefined: calls to this dispatch id are not refused. */
  refusal(id: number): Handler | undefined {
    if (!this.isReady || this.#handlers[id] !== undefined || this.#streamed.has(id)) return undefined;
    return () => {
      throw new PamiError("PAMIR_NO_HANDLER", this.#refusalText(id));
    };
  }

  #refusalText(id: number): string {
    const users = this.#handlers.slice(0, L.DISPATCH_ID_MAX + 1);
    const ids = users.flatMap((handler, own) => (handler !== undefined || this.#streamed.has(own) ? own : []));
    const more = ids.length > SHOWN_IDS_MAX ? `, and ${ids.length - SHOWN_IDS_MAX} more` : "";
    const has = ids.length === 0 ? "none" : `handlers of ${ids.slice(0, SHOWN_IDS_MAX).join(", ")}${more}`;
    const { addresses, ordinal } = this.#parts;
    return `${nameOf(addresses.endpointAt(ordinal))} has no handler of dispatch id ${id}; it has ${has}`;
  }

  /** Whether a handler is called as soon as the header of a large message is here. */
  isEarly(id: number): boolean {
    const { delivery, recvImmediate = "default" } = this.hints[id] ?? NO_HINTS;
    return delivery === "early" || recvImmediate !== "default";
  }

  /** Whether a handler is called with the payload. */
  isImmediate(id: number, headerBytes: number, payloadBytes: number): boolean {
    if (!this.isEarly(id)) return true;
    return this.hints[id]?.recvImmediate !== "disable" && bodyBytes(headerBytes, payloadBytes) <= L.RECV_IMMEDIATE_MAX;
  }

  /** Checks a send to a dispatch id that has hints on this side. @throws PAMIR_TOO_LARGE */
  checkSend(id: number, headerBytes: number, total: number): void {
    const hints = this.hints[id] as DispatchHints;
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
}
