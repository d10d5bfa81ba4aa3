// The call that the running function answers.
import { type Endpoint, type HostAbortSignal, PamiError } from "../../index.js";

/** The call that a function of `serve()` answers, until the function's first `await`. */
export interface ServedCall {
  /** Aborted once the caller has given the call up, or has ended. */
  readonly signal: HostAbortSignal;
  /** The caller. */
  readonly caller: Endpoint;
}

let current: ServedCall | undefined;

/**
 * The call that the running function answers: `currentCall().signal` is aborted once its caller has given it up, or has left
 * the loop over its stream. Ask before the function's first `await`, or in a generator before its next `yield` or `await`:
 * another call may run behind that.
 * @throws PAMIR_INVAL outside of a function that serve() or expose() was given
 */
export function currentCall(): ServedCall {
  if (current === undefined)
    throw new PamiError("PAMIR_INVAL", "currentCall() outside of a function that answers a call");
  return current;
}

/** Runs what answers a call. */
export function within<T>(call: ServedCall, run: () => T): T {
  const before = current;
  current = call;
  try {
    return run();
  } finally {
    current = before;
  }
}
