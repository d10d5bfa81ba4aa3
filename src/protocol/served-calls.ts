// The calls that this context serves, and whose handler may still ask whether the caller has given the call up. The calls form
// a list, whose links lie in the calls. A call whose handler returns its reply at once, or asks for nothing, is never in the
// list.

import { type Endpoint, nameOf } from "../core/endpoint.js";
import { PamiError } from "../core/error.js";
import type { CallScope } from "../core/message/call-scope.js";
import type { HostAbortSignal } from "../support/like.js";

/** Why a caller has given a call up, as it travels. */
export const ABORT_CANCELED = 0;
export const ABORT_TIMEDOUT = 1;
export const ABORT_INTERRUPTED = 2;

export class AbortableCall implements CallScope {
  readonly origin: Endpoint;
  readonly number: number;
  previous: AbortableCall | undefined;
  next: AbortableCall | undefined;
  isListed = false;
  isAnswered = false;
  readonly #calls: ServedCalls;
  #controller: AbortController | undefined;
  #reason: PamiError | undefined;

  constructor(calls: ServedCalls, origin: Endpoint, number: number) {
    this.#calls = calls;
    this.origin = origin;
    this.number = number;
  }

  get signal(): HostAbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#reason !== undefined) this.#controller.abort(this.#reason);
      else this.#calls.add(this);
    }
    return this.#controller.signal as HostAbortSignal;
  }

  abort(reason: PamiError): void {
    this.#calls.delete(this);
    this.#reason = reason;
    this.#controller?.abort(reason);
  }

  /** The call is answered: its signal is never aborted afterwards. */
  answered(): void {
    this.isAnswered = true;
    this.#calls.delete(this);
  }
}

export class ServedCalls {
  #first: AbortableCall | undefined;
  #last: AbortableCall | undefined;
  readonly #isGone: (origin: Endpoint) => boolean;
  /**
   * The reason, by origin and number, of calls that were given up while they waited for their handler, and are not answered.
   */
  readonly early = new Map<string, number>();

  /** @param isGone whether an endpoint has ended, and all its messages are delivered or kept */
  constructor(isGone: (origin: Endpoint) => boolean) {
    this.#isGone = isGone;
  }

  /** A call that its handler has not answered. */
  add(call: AbortableCall): void {
    if (call.isListed || call.isAnswered) return;
    call.isListed = true;
    call.previous = this.#last;
    if (this.#last === undefined) this.#first = call;
    else this.#last.next = call;
    this.#last = call;
    const key = keyOf(call.origin, call.number);
    const early = this.early.get(key);
    this.early.delete(key);
    if (early !== undefined) call.abort(givenUp(call.origin, early));
    else if (this.#isGone(call.origin)) call.abort(ended(call.origin));
  }

  delete(call: AbortableCall): void {
    if (!call.isListed) return;
    call.isListed = false;
    const { previous, next } = call;
    if (previous === undefined) this.#first = next;
    else previous.next = next;
    if (next === undefined) this.#last = previous;
    else next.previous = previous;
    call.previous = undefined;
    call.next = undefined;
  }

  /** A caller has given a call up. @param isKept whether the call waits for its handler */
  abort(origin: Endpoint, number: number, why: number, isKept: () => boolean): void {
    for (let call = this.#first; call !== undefined; call = call.next) {
      if (call.number !== number || call.origin !== origin) continue;
      call.abort(givenUp(origin, why));
      return;
    }
    if (isKept()) this.early.set(keyOf(origin, number), why);
  }

  /** A call gets its handler. If the caller gave the call up before, a handler that asks learns of it. */
  begin(call: AbortableCall): void {
    if (this.early.size > 0 && this.early.has(keyOf(call.origin, call.number))) this.add(call);
  }

  /** A call is answered. Its handler may not have asked. */
  forget(origin: Endpoint, number: number): void {
    if (this.early.size > 0) this.early.delete(keyOf(origin, number));
  }

  /** An endpoint has ended, and all its messages are delivered or kept. */
  originEnded(origin: Endpoint): void {
    this.#abortAll(ended(origin), (call) => call.origin === origin);
    for (const key of this.early.keys()) if (key.startsWith(`${origin}:`)) this.early.delete(key);
  }

  /** This context has closed. */
  close(own: Endpoint): void {
    this.#abortAll(new PamiError("PAMIR_CLOSED", `${nameOf(own)} was closed while it served a call`), () => true);
    this.early.clear();
  }

  #abortAll(reason: PamiError, isMeant: (call: AbortableCall) => boolean): void {
    const all: AbortableCall[] = [];
    for (let call = this.#first; call !== undefined; call = call.next) if (isMeant(call)) all.push(call);
    for (const call of all) call.abort(reason);
  }
}

const keyOf = (origin: Endpoint, number: number): string => `${origin}:${number}`;

function ended(origin: Endpoint): PamiError {
  return new PamiError("PAMIR_SHUTDOWN", `${nameOf(origin)} has ended, and awaits no reply to its call`);
}

function givenUp(origin: Endpoint, why: number): PamiError {
  if (why === ABORT_TIMEDOUT) return new PamiError("PAMIR_TIMEDOUT", `a call of ${nameOf(origin)} has timed out there`);
  if (why === ABORT_INTERRUPTED)
    return new PamiError("PAMIR_INTERRUPTED", `a call of ${nameOf(origin)} was interrupted`);
  return new PamiError("PAMIR_CANCELED", `a call of ${nameOf(origin)} was canceled`);
}
