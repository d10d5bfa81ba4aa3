// Request and reply. A call is a message to DISPATCH_ID_CALL, whose header begins with the call's number and the dispatch id of
// its handler. The handler's result comes back as a message to DISPATCH_ID_REPLY. Calls are no ProgressSource: only messages
// move a call on, and targetEnded() ends it.
//
//   call    header  0  number   4  dispatch id   8  the caller's header      payload  the request
//   call    header  0  number   4  dispatch id and CALL_HAS_PARTS   8  head  payload  the body
//   abort   header  0  number   4  ABORT_…                                    behind the call: its caller has given it up
//   reply   header  0  number   4  REPLY_…                                    payload  the reply, or an error as JSON
//   reply   header  0  number   4  REPLY_PARTS   8  head                      payload  the body
//
// A value in two parts has a large ArrayBuffer as its body, and the codec's bytes for all the rest as its head: the
// ArrayBuffer is copied once on each side. See Parts.
import {
  DISPATCH_ID_ABORT,
  DISPATCH_ID_CALL,
  DISPATCH_ID_REPLY,
  HEADER_BYTES_MAX,
  RECV_IMMEDIATE_MAX,
} from "../../assembly/layout.js";
import { type Endpoint, nameOf } from "../core/endpoint.js";
import { PamiError, show } from "../core/error.js";
import type { ScopeMaker } from "../core/message/call-scope.js";
import { type DispatchId, encoded, isTransient, type JsonCheck, type Parts } from "../core/message/codec.js";
import type { Handler, HandlerTable } from "../core/message/dispatch.js";
import type { Message } from "../core/message/message.js";
import { type Callback, ERROR, type Result, SHUTDOWN, SUCCESS } from "../core/result.js";
import { thrownBytes, thrownIn } from "../core/thrown.js";
import type { Memory } from "../kernel/kernel.js";
import type { GivenRegion } from "../memory/regions.js";
import { isDetached } from "../support/copy.js";
import { promised } from "../support/promise.js";
import { ABORT_INTERRUPTED, ABORT_TIMEDOUT, AbortableCall, ServedCalls } from "./served-calls.js";

const REPLY_VALUE = 0;
const REPLY_ERROR = 1;
const REPLY_PARTS = 2;
/** Bytes of a call's header before the caller's own, and of a reply's. */
const PREFIX_BYTES = 8;

/** Bytes of an answer that is copied if it has to wait. */
const PLAIN_BYTES_MAX = RECV_IMMEDIATE_MAX - PREFIX_BYTES;

/** The dispatch id of a handler of values; undefined: its handler returns bytes. */
type Typed = DispatchId<unknown, unknown> | undefined;

/** The part of a context that calls need. */
export interface CallHost {
  readonly sender: {
    /**
     * Like `Context.send`, to one of pamir's own dispatch ids, but never EAGAIN. Without room, the message waits in order and
     * without a limit. A reply also waits for the memory of a first lane. A waiting request is copied, as is a waiting reply
     * without `onSent`.
     * @param onSent gets the result if the message had to wait; for a reply, only if it is too large to be copied
     * @param gift the region of the payload, if it is given away: it is not copied
     */
    sendOwn(
      to: Endpoint,
      dispatch: number,
      header: Uint8Array,
      payload: Uint8Array | undefined,
      onSent: Callback | undefined,
      gift?: GivenRegion,
    ): Result;
  };
  /** Where the number of pending calls is published: a word, by its index in the memory. */
  readonly memory: Memory;
  readonly countWord: number;
  readonly owner: {
    /** Makes the context advance while calls are pending. `isSooner`: a call has an earlier deadline than all others. */
    advanceSoon(isSooner: boolean): void;
  };
  /** In debug mode: see Observers. */
  readonly checkJson: JsonCheck;
  /** Whether an incoming call waits for its handler. */
  keepsCall(origin: Endpoint, number: number): boolean;
  /** Whether an endpoint has ended, and all its messages are delivered or kept. */
  isGone(endpoint: Endpoint): boolean;
  /** Rejects a call whose target has ended, with the reason as the cause. */
  rejectEnded(call: PendingCall, text: string): void;
}

/** A call whose reply has not come. */
export interface PendingCall {
  readonly to: Endpoint;
  /** When it is given up, on the context's clock; Infinity: never. */
  readonly deadline: number;
  /** Whether `resolve` takes the reply in place. */
  readonly inPlace: boolean;
  /** Whether the caller's thread is blocked meanwhile: then the call is settled without an event. */
  readonly blocks: boolean;
  /** @param body of a reply in two parts, always in place: `reply` is its head */
  readonly resolve: (reply: Uint8Array, body?: Uint8Array) => void;
  readonly reject: (error: Error) => void;
}

export class Calls {
  /** Calls that were settled since the owner set this to 0. */
  settled = 0;
  /** Calls whose reply has not come. A field, like `answering`, since each look of a wait reads both. */
  size = 0;
  /** Calls whose handler has given a promise that is not settled. */
  answering = 0;
  /** No pending call is given up before this, on the context's clock. */
  soonest = Number.POSITIVE_INFINITY;

  readonly #host: CallHost;
  readonly #served: ServedCalls;
  readonly #scopeOf: ScopeMaker;
  readonly #pending = new Map<number, PendingCall>();
  /** Of the value that is being encoded. */
  readonly #parts: Parts = { body: undefined };
  readonly #words = new Uint32Array(2);
  readonly #bytes = new Uint8Array(this.#words.buffer);
  #number = 0;

  constructor(host: CallHost, handlers: HandlerTable) {
    this.#host = host;
    this.#served = new ServedCalls((endpoint) => host.isGone(endpoint));
    this.#scopeOf = (origin, number) => this.scopeOf(origin, number);
    handlers.handleCalls(this.#serve);
    handlers.handle(DISPATCH_ID_REPLY, this.#onReply);
    handlers.handle(DISPATCH_ID_ABORT, (message) => this.#onAbort(message));
  }

  /** Whether the reply of a call has not come. */
  isPending(number: number): boolean {
    return this.#pending.has(number);
  }

  /**
   * Begins a call, which `call.resolve` or `call.reject` settles once.
   * @param id with CALL_HAS_PARTS if the header is a head, and the payload a body
   * @param gift the region of the payload, if it is given away
   * @returns its number, for giveUp()
   */
  begin(
    id: number,
    header: Uint8Array | undefined,
    payload: Uint8Array | undefined,
    call: PendingCall,
    gift?: GivenRegion,
  ): number {
    const headerBytes = header?.length ?? 0;
    if (headerBytes > HEADER_BYTES_MAX - PREFIX_BYTES) {
      const limit = HEADER_BYTES_MAX - PREFIX_BYTES;
      throw new PamiError("PAMIR_TOO_LARGE", `the header of a call has ${headerBytes} bytes, the limit is ${limit}`);
    }
    const number = (this.#number + 1) >>> 0;
    this.#number = number;
    this.#words[0] = number;
    this.#words[1] = id;
    // sendOwn() copies it: without a caller's header it is the same array each time.
    const prefixed = header === undefined ? this.#bytes : this.#prefix(number, id, header);
    // sendOwn() may throw: no call is pending then. A reply can't come before the next advance().
    const onSent = (_: unknown, late: Result): void => {
      if (late !== SUCCESS && this.#settled(number) !== undefined) this.#refuse(call, late);
    };
    const result = this.#host.sender.sendOwn(call.to, DISPATCH_ID_CALL, prefixed, payload, onSent, gift);
    if (result !== SUCCESS) {
      this.#refuse(call, result);
      return number;
    }
    this.#pending.set(number, call);
    this.#host.memory.words[this.#host.countWord] = ++this.size;
    const isSooner = call.deadline < this.soonest;
    if (isSooner) this.soonest = call.deadline;
    this.#host.owner.advanceSoon(isSooner);
    return number;
  }

  /** Gives up the calls whose time is over. */
  expire(now: number, late: (call: PendingCall) => Error): void {
    if (now < this.soonest) return;
    this.soonest = Number.POSITIVE_INFINITY;
    for (const [number, call] of this.#pending) {
      if (call.deadline <= now) this.abandon(number, late(call), ABORT_TIMEDOUT);
      else if (call.deadline < this.soonest) this.soonest = call.deadline;
    }
  }

  /** Gives up all pending calls: an interrupt ends them. */
  interrupt(error: () => Error): void {
    for (const number of [...this.#pending.keys()]) this.abandon(number, error(), ABORT_INTERRUPTED);
  }

  /** The context has closed: gives up all pending calls, and all calls that it serves. Callers learn of the context's end. */
  close(own: Endpoint, error: () => Error): void {
    for (const number of [...this.#pending.keys()]) this.giveUp(number, error());
    this.#served.close(own);
  }

  /** An endpoint has ended, and awaits no replies any more. All its messages are delivered or kept. */
  originEnded(endpoint: Endpoint): void {
    this.#served.originEnded(endpoint);
  }

  /** The scope of a call that has come. */
  scopeOf(origin: Endpoint, number: number): AbortableCall {
    const scope = new AbortableCall(this.#served, origin, number);
    this.#served.begin(scope);
    return scope;
  }

  /** A call's answer comes later: until then the call's scope hears of the caller. */
  serveLater(scope: AbortableCall): void {
    this.#served.add(scope);
  }

  /** An endpoint has ended, and all its messages are delivered. */
  targetEnded(endpoint: Endpoint): void {
    for (const [number, call] of this.#pending) {
      if (call.to !== endpoint) continue;
      this.#settled(number);
      this.#refuse(call, SHUTDOWN);
    }
  }

  /** Rejects a call that could not be sent, or will not be answered. */
  #refuse(call: PendingCall, result: Result): void {
    const target = nameOf(call.to);
    if (result === SHUTDOWN) this.#host.rejectEnded(call, `call(): ${target} has ended`);
    else call.reject(new PamiError("PAMIR_NO_MEMORY", `call(): no memory for a lane to ${target}`));
  }

  /** Calls the handler of an incoming call, and replies. Throws nothing. */
  readonly #serve = (handler: Handler, message: Message): void => {
    const { origin } = message;
    const number = message.takeCall(this.#scopeOf);
    let value: unknown;
    try {
      value = handler(message);
      if (!message.immediate) message.checkAnswered();
    } catch (error) {
      message.discard();
      (message.leaveCall() as AbortableCall | undefined)?.answered();
      this.replyError(origin, number, error);
      return;
    }
    const scope = message.leaveCall() as AbortableCall | undefined;
    // The usual answer of plain bytes, sent from here: reply() enters five functions for it.
    // isView() comes first: instanceof would ask a proxy for its prototype.
    if (
      ArrayBuffer.isView(value) &&
      value instanceof Uint8Array &&
      value.length > 0 &&
      value.length <= PLAIN_BYTES_MAX
    ) {
      if (scope === undefined && message.typed === undefined && this.#served.early.size === 0) {
        this.#words[0] = number;
        this.#words[1] = REPLY_VALUE;
        this.#host.sender.sendOwn(origin, DISPATCH_ID_REPLY, this.#bytes, value, undefined);
        return;
      }
    }
    this.reply(origin, number, value, scope, message.typed as Typed);
  };

  /** The handler of DISPATCH_ID_REPLY. */
  readonly #onReply = (message: Message): void => {
    const number = message.headerWord(0);
    const status = message.headerWord(4);
    const call = this.#pending.get(number);
    // Only the called task may answer: another task could guess the number.
    if (call?.to !== message.origin) return;
    if (status === REPLY_ERROR) this.giveUp(number, thrownIn(message.copy(), nameOf(message.origin)));
    else {
      // #settled(), written out: the usual answer.
      this.#pending.delete(number);
      this.#host.memory.words[this.#host.countWord] = --this.size;
      if (this.size === 0) this.soonest = Number.POSITIVE_INFINITY;
      this.settled++;
      if (status === REPLY_PARTS) call.resolve(message.header.subarray(PREFIX_BYTES), message.payload);
      else call.resolve(call.inPlace ? message.payload : message.copy());
    }
  };

  /** The handler of DISPATCH_ID_ABORT. */
  #onAbort(message: Message): void {
    const { origin } = message;
    const number = message.headerWord(0);
    this.#served.abort(origin, number, message.headerWord(4), () => this.#host.keepsCall(origin, number));
  }

  /** A call is pending no more. @returns the call, if it was pending */
  #settled(number: number): PendingCall | undefined {
    const call = this.#pending.get(number);
    if (call === undefined) return undefined;
    this.#pending.delete(number);
    this.#host.memory.words[this.#host.countWord] = --this.size;
    // Otherwise each wait would make a timer for a call that was answered long before its deadline.
    if (this.size === 0) this.soonest = Number.POSITIVE_INFINITY;
    this.settled++;
    return call;
  }

  /** As giveUp(), and tells the target, by a message behind the call. @param why ABORT_… */
  abandon(number: number, error: Error, why: number): void {
    const call = this.#pending.get(number);
    if (call === undefined) return;
    // Whether the abort is sent does not matter: the target learns of the end of this task in any case.
    this.#host.sender.sendOwn(call.to, DISPATCH_ID_ABORT, this.#prefix(number, why, undefined), undefined, undefined);
    this.giveUp(number, error);
  }

  /** Ends a call with an error, unless its reply has come. A later reply is dropped. */
  giveUp(number: number, error: Error): void {
    this.#settled(number)?.reject(error);
  }

  /**
   * Answers a call with the result of its handler or of the stream's reader: a value, or a promise of a value.
   * @param scope the call's, if the handler asked for it @param typed the dispatch id of a handler of values
   */
  reply(to: Endpoint, number: number, value: unknown, scope: AbortableCall | undefined, typed: Typed): void {
    const promise = value === undefined || ArrayBuffer.isView(value) ? undefined : promised(value);
    if (promise === undefined) {
      scope?.answered();
      this.#replyValue(to, number, value, typed);
      return;
    }
    if (scope !== undefined) this.serveLater(scope);
    this.answering++;
    void promise.then(
      (settled) => {
        this.answering--;
        scope?.answered();
        this.#replyValue(to, number, settled, typed);
      },
      (error) => {
        this.answering--;
        scope?.answered();
        this.replyError(to, number, error);
      },
    );
  }

  #replyValue(to: Endpoint, number: number, value: unknown, typed: Typed): void {
    if (typed !== undefined) {
      this.#replyEncoded(to, number, value, typed);
      return;
    }
    if (value !== undefined && value !== null && !ArrayBuffer.isView(value)) {
      const what = `a handler returned ${show(value)} to a call: give back a view of bytes, or use dispatchId()`;
      this.replyError(to, number, new PamiError("PAMIR_INVAL", what));
      return;
    }
    // A detached view has 0 bytes.
    if (value != null && value.byteLength === 0 && isDetached(value.buffer)) {
      this.replyError(to, number, new PamiError("PAMIR_INVAL", "the buffer of a handler's reply is detached"));
      return;
    }
    this.#sendReply(to, number, REPLY_VALUE, value == null ? undefined : bytesOf(value), false);
  }

  #replyEncoded(to: Endpoint, number: number, value: unknown, { reply }: DispatchId<unknown, unknown>): void {
    let bytes: Uint8Array | undefined;
    const parts = this.#parts;
    parts.body = undefined;
    try {
      bytes = reply && encoded(reply, value, to, this.#host.checkJson, parts);
    } catch (error) {
      this.replyError(to, number, error);
      return;
    }
    const { body } = parts;
    if (body === undefined) {
      this.#sendReply(to, number, REPLY_VALUE, bytes, reply !== undefined && isTransient(reply, bytes as Uint8Array));
      return;
    }
    // The program may change its function's result afterwards.
    this.#sendReply(to, number, REPLY_PARTS, body, true, bytes);
    parts.body = undefined;
  }

  /** Answers a call with the error that its handler has thrown. */
  replyError(to: Endpoint, number: number, thrown: unknown): void {
    this.#sendReply(to, number, REPLY_ERROR, thrownBytes(thrown), false);
  }

  /** @param isTransient whether the payload is valid only during this function: it is copied if it has to wait */
  #sendReply(
    to: Endpoint,
    number: number,
    status: number,
    payload: Uint8Array | undefined,
    isTransient: boolean,
    head?: Uint8Array,
  ): void {
    this.#served.forget(to, number);
    const bytes = payload?.length ?? 0;
    const isCopied = isTransient || bytes <= PLAIN_BYTES_MAX;
    const onSent = isCopied ? undefined : (_: unknown, result: Result) => this.#replySent(to, number, bytes, result);
    this.#host.sender.sendOwn(to, DISPATCH_ID_REPLY, this.#prefix(number, status, head), payload, onSent);
  }

  /** Takes the result of a large reply. */
  #replySent(to: Endpoint, number: number, bytes: number, result: Result): void {
    if (result !== ERROR) return;
    const what = `the buffer of a reply of ${bytes} bytes was detached or shrunk, or its region was closed, before all of it was sent`;
    this.replyError(to, number, new PamiError("PAMIR_INVAL", what));
  }

  /** The header of a call or reply. Without a caller's header it is the same array each time: send() copies it. */
  #prefix(number: number, word: number, header: Uint8Array | undefined): Uint8Array {
    this.#words[0] = number;
    this.#words[1] = word;
    if (header === undefined) return this.#bytes;
    const prefixed = new Uint8Array(PREFIX_BYTES + header.length);
    prefixed.set(this.#bytes);
    prefixed.set(header, PREFIX_BYTES);
    return prefixed;
  }
}

/** The bytes of a view. */
export function bytesOf(view: ArrayBufferView): Uint8Array {
  return view instanceof Uint8Array ? view : new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
}
