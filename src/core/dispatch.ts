// The types of the dispatch table: handlers, and hints that say which messages a handler can take.
import { PamiError, show } from "./error.js";
import type { Message } from "./message.js";

/**
 * A handler. `advance()` calls it for each message to its dispatch id, in the order sent by each origin. The message is
 * valid until the handler returns. A handler may send, call and post; it must not advance. `advance()` throws the handler's
 * error at the end of the round; no other message is lost. If the message is a call, the handler returns the reply: a view
 * of bytes, nothing, or a promise of either. Its error then goes to the caller instead.
 */
export type Handler = (message: Message) => unknown;

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
    if (!(name in REFUSED)) {
      const known = ["delivery", ...Object.keys(REFUSED)].join(", ");
      throw new PamiError("PAMIR_HINT", `hint ${name} is unknown; there are ${known}`);
    }
    if (value !== undefined && value !== "default" && value !== "enable" && value !== "disable") {
      throw new PamiError("PAMIR_HINT", `hint ${name} is ${show(value)}, not "default", "enable" or "disable"`);
    }
    if (value !== "default" && value === REFUSED[name as keyof typeof REFUSED]) {
      throw new PamiError("PAMIR_HINT", `hint ${name}: "${value}" can't be honoured here`);
    }
  }
}
