// The dispatch table: handlers, and hints that say which messages a handler can take.
import { DISPATCH_ID_CALL, DISPATCH_ID_MAX, META_DISPATCH_MASK } from "../../../assembly/layout.js";
import { noSuchKey } from "../../support/node/nearest.js";
import { PamiError, show } from "../error.js";
import type { Message } from "./message.js";

/** The largest dispatch id of a user. */
export { DISPATCH_ID_MAX } from "../../../assembly/layout.js";

/**
 * A handler. `advance()` calls it for each message to its dispatch id, in the order sent by each origin. The message is
 * valid until the handler returns. A handler may send, call and post; it must not advance. `advance()` throws the handler's
 * error at the end of the round; no other message is lost. If the message is a call, the handler returns the reply: a view
 * of bytes, nothing, or a promise of either. Its error then goes to the caller instead. `message.signal` tells once the caller
 * gives the call up.
 */
export type Handler = (message: Message) => unknown;

/** Calls a user's handler for a message that is a call, and sees to its reply. */
export type Server = (handler: Handler, message: Message) => void;

/**
 * A table without handlers. One shape from the start: holes cost a lookup in the prototype for each message. Each thread makes
 * it while it loads: by spread in 0.6 ms, by push() in 1.4 (Zen 5).
 */
export const NO_HANDLERS: (Handler | undefined)[] = [...Array<undefined>(META_DISPATCH_MASK + 1)];

/**
 * The handlers of a context. Those up to DISPATCH_ID_MAX are the user's: see DispatchIds. The ids above are pamir's own: a
 * protocol registers its handlers when it is made.
 */
export class HandlerTable {
  /** Messages to a dispatch id of pamir's own that no protocol has registered: they are dropped. */
  malformed = 0;
  /** By dispatch id. One of pamir's own that is not registered has `drop`. */
  readonly all = NO_HANDLERS.slice();
  /** Those that are called for a whole message without a further look. */
  readonly plain = NO_HANDLERS.slice();
  readonly #observed: (id: number, handler: Handler) => Handler;
  readonly #noServer: Server = (_, message) => this.drop(message);
  /** Serves the messages to DISPATCH_ID_CALL: calls a user's handler, and replies. */
  serve = this.#noServer;

  /** @param observed what is called in place of a protocol's handler */
  constructor(observed: (id: number, handler: Handler) => Handler) {
    this.#observed = observed;
    this.all.fill(this.drop, DISPATCH_ID_MAX + 1);
    this.plain.fill(this.drop, DISPATCH_ID_MAX + 1);
    // A call is for the handler of the dispatch id that its header names.
    this.plain[DISPATCH_ID_CALL] = undefined;
  }

  /** Drops a message. */
  readonly drop = (message: Message): void => {
    this.malformed++;
    message.discard();
  };

  /**
   * Registers a protocol's handler of a dispatch id of pamir's own. It gets every message whole, in packets or not; an
   * offered payload is dropped. There is no unexpected queue for it: what comes before it is registered is dropped.
   */
  handle(id: number, handler: Handler): void {
    const isOwn = id > DISPATCH_ID_MAX && id <= META_DISPATCH_MASK && id !== DISPATCH_ID_CALL;
    if (!isOwn || this.all[id] !== this.drop) throw new Error(`dispatch id ${id} is registered, or not a protocol's`);
    const observed = this.#observed(id, handler);
    this.all[id] = observed;
    this.plain[id] = observed;
  }

  /** Registers what serves the messages to DISPATCH_ID_CALL. */
  handleCalls(server: Server): void {
    if (this.serve !== this.#noServer) throw new Error("calls are registered");
    this.serve = server;
  }
}

/** `enable` and `disable` are promises: if pamir cannot keep one, the call fails. `default` leaves the choice to pamir. */
export type Hint = "default" | "enable" | "disable";

/** Hints of a handler. `dispatch()` honors each hint, or throws PAMIR_HINT. */
export interface DispatchHints {
  /**
   * With `whole` (default) the handler runs once the whole message is here, at any size, and reads it in place. With `early`
   * the handler of a message of more than RECV_IMMEDIATE_MAX bytes runs once the header is here. It calls `receive()` to
   * choose the destination.
   */
  delivery?: "whole" | "early" | undefined;
  /** `enable`: every message arrives whole, and a larger one is an error. `disable`: no message does, not even of 0 bytes. */
  recvImmediate?: Hint | undefined;
  /** `disable`: headers have at most SEND_IMMEDIATE_MAX bytes. */
  longHeader?: Hint | undefined;
  /** Destinations are always contiguous: `disable` can't be honored. */
  recvContiguous?: Hint | undefined;
  /** Payloads are always copied to their destination: `disable` can't be honored. */
  recvCopy?: Hint | undefined;
  /** Accepted without effect: other contexts never help, since a context belongs to one thread. */
  multicontext?: Hint | undefined;
  /** Consistency is always on: `disable` can't be honored. */
  consistency?: Hint | undefined;
  /** Shared memory is the only path within a node: `disable` can't be honored. */
  useShmem?: Hint | undefined;
  /** Messages go through lanes, never by one-sided transfers: `enable` can't be honored. */
  useRdma?: Hint | undefined;
  /** Payloads go to any view, registered or not: `enable` can't be honored. */
  bufferRegistered?: Hint | undefined;
  /** Progress happens in `advance()` only: `enable` can't be honored. */
  remoteAsyncProgress?: Hint | undefined;
}

/** For each hint, the value that pamir can't honor. */
const REFUSED: Record<Exclude<keyof DispatchHints, "delivery">, Hint | undefined> = {
  recvImmediate: undefined,
  longHeader: undefined,
  recvContiguous: "disable",
  recvCopy: "disable",
  multicontext: undefined,
  consistency: "disable",
  useShmem: "disable",
  useRdma: "enable",
  bufferRegistered: "enable",
  remoteAsyncProgress: "enable",
};

/** Checks hints. @throws PAMIR_HINT for a hint that is unknown or can't be honored */
export function checkHints(hints: DispatchHints): void {
  const { delivery, ...others } = hints;
  if (delivery !== undefined && delivery !== "whole" && delivery !== "early") {
    throw new PamiError("PAMIR_HINT", `hint delivery is ${show(delivery)}, not "whole" or "early"`);
  }
  for (const [name, value] of Object.entries(others)) {
    if (!Object.hasOwn(REFUSED, name)) {
      const known = ["delivery", ...Object.keys(REFUSED)];
      throw new PamiError("PAMIR_HINT", `hints of dispatch(): ${noSuchKey(name, show(name), known)}`);
    }
    if (value !== undefined && value !== "default" && value !== "enable" && value !== "disable") {
      throw new PamiError("PAMIR_HINT", `hint ${name} is ${show(value)}, not "default", "enable" or "disable"`);
    }
    if (value !== "default" && value === REFUSED[name as keyof typeof REFUSED]) {
      throw new PamiError("PAMIR_HINT", `hint ${name}: "${value}" can't be honoured here`);
    }
  }
}
