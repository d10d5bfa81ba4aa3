// Results: small integers that hot calls return and callbacks receive. The first seven are PAMI's (pami_result_t).
import { TRANSFER_CANCELED, TRANSFER_DONE, TRANSFER_ENDED } from "../../assembly/layout.js";

/** Done, or accepted: sent, or waiting in a queue of pamir's. */
export const SUCCESS = 0;
/**
 * What was issued was refused later: the region of a one-sided operation, or of a payload, had been closed; the buffer of a
 * payload was detached or shrunk before all of it had gone; a handler threw rather than say where a payload goes; or the
 * engine thread ended before it could say that it was done. To callbacks only.
 */
export const ERROR = 1;
/** PAMI's. Nothing gives it here: an argument that is wrong throws PAMIR_INVAL. */
export const INVAL = 2;
/** PAMI's. Nothing gives it here: a hint that can't be honoured throws PAMIR_HINT. */
export const UNIMPL = 3;
/** No room now; nothing was done. Advance, and try again. */
export const EAGAIN = 4;
/** The heap has no memory for a lane; nothing was done. */
export const ENOMEM = 5;
/** The task at the other side has ended, for good. */
export const SHUTDOWN = 6;
/** A wait's `timeout` is over. Waits that are promises reject with PAMIR_TIMEDOUT instead. */
export const TIMEDOUT = 1000;
/** A payload that was offered was given up, by a `signal` at either side. Waits that a signal ends reject with PAMIR_CANCELED. */
export const CANCELED = 1001;
/** A wait was ended by `job.interrupt`, or because its context was closed. */
export const INTERRUPTED = 1002;

/** What an operation came to; `errorText` says it in words. */
export type Result =
  | typeof SUCCESS
  | typeof ERROR
  | typeof INVAL
  | typeof UNIMPL
  | typeof EAGAIN
  | typeof ENOMEM
  | typeof SHUTDOWN
  | typeof TIMEDOUT
  | typeof CANCELED
  | typeof INTERRUPTED;

const TEXTS: Record<Result, string> = {
  [SUCCESS]: "success",
  [ERROR]: "error",
  [INVAL]: "invalid argument",
  [UNIMPL]: "not implemented",
  [EAGAIN]: "no room now: advance, and try again",
  [ENOMEM]: "out of memory",
  [SHUTDOWN]: "the other side has ended",
  [TIMEDOUT]: "timed out",
  [CANCELED]: "canceled",
  [INTERRUPTED]: "interrupted",
};

/** A result in words. */
export function errorText(result: number): string {
  return TEXTS[result as Result] ?? `unknown result ${result}`;
}

/** Called in `advance()` when an operation is done. `cookie` is what the caller passed in. */
export type Callback = (cookie: unknown, result: Result) => void;

/** What a callback gets for what an engine made of a transfer, TRANSFER_…. @internal */
export function resultOf(transfer: number): Result {
  if (transfer === TRANSFER_DONE) return SUCCESS;
  if (transfer === TRANSFER_ENDED) return SHUTDOWN;
  return transfer === TRANSFER_CANCELED ? CANCELED : ERROR;
}
