// What a handler may ask of the call that it serves.
import type { HostAbortSignal } from "../../support/like.js";
import type { Endpoint } from "../endpoint.js";

/** The call that a handler serves. It may be used for as long as the handler works, also after an `await`. */
export interface CallScope {
  /**
   * Aborted once the caller has given the call up, by its `signal`, its `timeout` or an interrupt, once the caller has ended,
   * or once this context closes. The reason is a PamiError that says which: PAMIR_CANCELED, PAMIR_TIMEDOUT,
   * PAMIR_INTERRUPTED, PAMIR_SHUTDOWN or PAMIR_CLOSED. Of a message that is no call, it is never aborted. It is made when it
   * is first read, and hears of the caller while this context advances.
   */
  readonly signal: HostAbortSignal;
}

/** Makes the scope of a call. */
export type ScopeMaker = (origin: Endpoint, number: number) => CallScope;

/** The scope of a message that is no call. */
export const NO_CALL: CallScope = {
  get signal() {
    return new AbortController().signal as HostAbortSignal;
  },
};
