// The dispatch table's types: handlers, and the hints that say what they can take.
import { PamiError, show } from "./error.js";
import type { Message } from "./message.js";

/**
 * Called in `advance()` for each message to its dispatch id, in the order sent by each origin. The message is valid
 * until it returns. It may send, call and post; it must not advance. What it throws is thrown by `advance()` at the end
 * of the round; no other message is lost. Where the message is a call, what it returns, a view of bytes or nothing, or a
 * promise of that, is the reply, and what it throws goes to the caller instead.
 */
export type Handler = (message: Message) => unknown;

/** `enable` and `disable` are promises that are kept, or the call fails; `default` leaves it to pamir. */
export type Hint = "default" | "enable" | "disable";

/** What a handler asks for; hard: honoured, or `dispatch()` throws PAMIR_HINT. */
export interface DispatchHints {
  /**
   * `whole` (default): the handler runs once all of a message is here, at any size, and reads it in place. `early`: for a
   * message of more than RECV_IMMEDIATE_MAX bytes it runs once the header is here, and says by `receive()` where the
   * payload goes.
   */
  delivery?: "whole" | "early" | undefined;
  /** `enable`: every message arrives whole (a larger one is an error); `disable`: none does, not even of 0 bytes. */
  recvImmediate?: Hint | undefined;
  /** `disable`: headers are at most SEND_IMMEDIATE_MAX bytes. */
  longHeader?: Hint | undefined;
  /** Destinations are contiguous here always. */
  recvContiguous?: Hint | undefined;
  /** Payloads are copied to their destination here always: `disable` can't be honoured. */
  recvCopy?: Hint | undefined;
  /** Other contexts may help: they never do, since a context belongs to one thread. */
  multicontext?: Hint | undefined;
  /** Always on here. */
  consistency?: Hint | undefined;
  /** Shared memory is the only path within a node: `disable` can't be honoured. */
  useShmem?: Hint | undefined;
  /** Messages go by lanes, never by one-sided transfers: `enable` can't be honoured. */
  useRdma?: Hint | undefined;
  /** Payloads go to any view, registered or not: `enable` can't be honoured. */
  bufferRegistered?: Hint | undefined;
  /** Progress is made in `advance()` only: `enable` can't be honoured. */
  remoteAsyncProgress?: Hint | undefined;
}

/** For each hint, the value that pamir can't keep as a promise. */
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

/** Throws for a hint that does not exist or can't be honoured. */
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
