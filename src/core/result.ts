// Results: small integers that hot calls return and callbacks get. The first seven are those of PAMI (pami_result_t).
import { TRANSFER_CANCELED, TRANSFER_DONE, TRANSFER_ENDED } from "../../assembly/layout.js";

/** The operation is done, or accepted: sent, or in a queue of pamir. */
export const SUCCESS = 0;
/**
 * An accepted operation failed later. Only callbacks get it. Causes: a region was closed, or the buffer of a payload was
 * detached or shrunk, before all of it was sent; a handler threw instead of choosing a destination; or the engine thread
 * ended before it reported completion.
 */
export const ERROR = 1;
/** A result of PAMI. No call here returns it: a wrong argument throws PAMIR_INVAL. */
export const INVAL = 2;
/** A result of PAMI. No call here returns it: a hint that can't be honored throws PAMIR_HINT. */
export const UNIMPL = 3;
/** There is no room now, and nothing was done. Advance, and try again. */
export const EAGAIN = 4;
/** The heap has no memory for a lane, and nothing was done. */
export const ENOMEM = 5;
/** The other task, or its context, has ended for good. */
export const SHUTDOWN = 6;
/** A blocking wait reached its `timeout`. Waits that are promises reject with PAMIR_TIMEDOUT instead. */
export const TIMEDOUT = 1000;
/** A `signal` of either side gave up an offered payload. Waits that a signal ends reject with PAMIR_CANCELED. */
export const CANCELED = 1001;
/** `job.interrupt`, or the close of its context, ended a blocking wait. */
export const INTERRUPTED = 1002;

/** The result of an operation. `errorText` describes it in words. */
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

/** Describes a result in words. */
export function errorText(result: number): string {
  return TEXTS[result as Result] ?? `unknown result ${result}`;
}

/** A callback that `advance()` calls when an operation is done. `cookie` is the caller's value. */
export type Callback = (cookie: unknown, result: Result) => void;

/** Returns the result for an engine's TRANSFER_… code. @internal */
export function resultOf(transfer: number): Result {
  if (transfer === TRANSFER_DONE) return SUCCESS;
  if (transfer === TRANSFER_ENDED) return SHUTDOWN;
  return transfer === TRANSFER_CANCELED ? CANCELED : ERROR;
}
