// A context: the unit of progress. It belongs to the thread that made it.
import {
  checkFlag,
  checkFunction,
  checkKeys,
  checkObject,
  checkSignal,
  isMet,
  type Keys,
  NO_OPTIONS,
} from "../core/check.js";
import type { Endpoint } from "../core/endpoint.js";
import { nameOf, taskOf } from "../core/endpoint.js";
import { checkInteger, markCopy, PamiError, show } from "../core/error.js";
import {
  type DispatchId,
  decoded,
  encoded,
  encodedForGood,
  numberOf,
  type Parts,
  type TypedHandler,
  unasked,
  untyped,
} from "../core/message/codec.js";
import { DISPATCH_ID_MAX, type DispatchHints, type Handler } from "../core/message/dispatch.js";
import { bodyBytes, CALL_HAS_PARTS } from "../core/message/message.js";
import { checkOwn, type MemRegion } from "../core/region.js";
import {
  type Callback,
  EAGAIN,
  ENOMEM,
  INTERRUPTED,
  type Result,
  SHUTDOWN,
  SUCCESS,
  TIMEDOUT,
} from "../core/result.js";
import { carrierOf, type TransferType } from "../core/transfer-type.js";
import type { Work } from "../core/work.js";
import type { Awaited } from "../node/park.js";
import type { Spins } from "../node/spins.js";
import type { WaitName } from "../node/wait-kinds.js";
import { bytesOf, type PendingCall } from "../protocol/call.js";
import { ContextCore, type CoreOwner } from "../protocol/context-core.js";
import type { DispatchIds } from "../protocol/eager/dispatch-ids.js";
import type { Receiver } from "../protocol/eager/receiver.js";
import { SEND_KEYS, type SendParameters, type TypedSendParameters } from "../protocol/eager/send-parameters.js";
import type { Sender } from "../protocol/eager/sender.js";
import type { Taken } from "../protocol/eager/unexpected.js";
import {
  PUT_KEYS,
  type PutParameters,
  RMW_KEYS,
  type RmwParameters,
  TRANSFER_KEYS,
  type TransferParameters,
} from "../protocol/rma/parameters.js";
import type { Rma } from "../protocol/rma/rma.js";
import { ABORT_CANCELED, ABORT_INTERRUPTED, ABORT_TIMEDOUT } from "../protocol/served-calls.js";
import type { Task } from "../protocol/task.js";
import { hearAbort } from "../support/abort.js";
import { diagnostics } from "../support/diagnostics.js";
import type { AbortSignalLike, HostAbortSignal } from "../support/like.js";
import { promised } from "../support/promise.js";
import { after } from "../support/timers.js";
import { Producers } from "./producers.js";
import { RoomQueues, type WaitingSend } from "./room-queues.js";
import {
  checkProgress,
  checkTimeout,
  checkWait,
  PROGRESS_KEYS,
  type ProgressOptions,
  type WaitOptions,
  Waits,
} from "./waits.js";

/** Options of `client.createContext`. */
export interface ContextOptions {
  /** Bytes that the pending queue may copy (default 1 MiB). Calls and replies may exceed it. */
  pendingBytes?: number | undefined;
  /** Bytes kept of messages without a handler (default 1 MiB). A larger message waits at its origin for its handler. */
  unexpectedBytes?: number | undefined;
  /** Milliseconds that a wait spins before it parks (default 0.05). With 0, it parks at once. */
  spin?: number | undefined;
  /** Default of `fragment` in `message.receive`: bytes, 64 … 2^30 (default 262,144). A payload has at most 1,024 fragments. */
  fragment?: number | undefined;
  /** Default of `depth` in `message.receive`: fragments requested at a time, 1 … 4 (default 2). */
  depth?: number | undefined;
  /**
   * Whether progress() may block this thread, at most 10 ms at a time, while its event loop waits for nothing else: no promise
   * of a handler of calls, no timer, no I/O, no port with a listener (default false). Events then come sooner. What Node does
   * not list is late by 10 ms at most: `unref()`ed handles, and outside of handlers zlib and crypto. It has an effect in
   * workers of Node only.
   */
  mayBlock?: boolean | undefined;
}

/** What a geometry needs of its context. */
export interface GeometryContext {
  readonly task: Task;
  readonly core: ContextCore;
  /** Calls `look` for a while, and advances now and then. @returns whether it has become true; false also if no spin pays */
  spin(look: () => boolean): boolean;
  /** Statistics of the spins of its waits. */
  readonly spins: Spins;
  advanceUntil(condition: () => boolean, options: WaitOptions): Result;
  /** @param keepsErrors whether what handlers throw does not end the wait: the context throws it after that */
  until(condition: () => boolean, options: ProgressOptions, keepsErrors?: boolean): Promise<void>;
}

/** Options of `context.call`. */
export interface CallOptions extends ProgressOptions {
  /** The handler's `message.header`: at most 65,527 bytes. Only for a dispatch id that is a number. */
  header?: ArrayBufferView | null | undefined;
  /**
   * `true` gives away the whole region that holds the request, as `transfer` of `send` does, without a copy. Once the call has
   * begun, the region is closed here and belongs to the target, also if the call is given up later. Its handler reads the
   * request in place, and may `keep()` it. Only for a dispatch id that is a number.
   */
  transfer?: boolean | undefined;
}

/** Options of `context.callSync`. */
export interface CallSyncOptions extends WaitOptions {
  /** As of `context.call`. */
  header?: ArrayBufferView | null | undefined;
  /** As of `context.call`. */
  transfer?: boolean | undefined;
}

/** Options of `context.messages`. */
export interface MessagesOptions extends ProgressOptions {
  /**
   * Endpoints whose end ends the loop, wherever they are. The number of a task is the endpoint of its context 0. The loop
   * gives messages of other endpoints, too.
   */
  from?: readonly Endpoint[] | undefined;
}

/** A message of `context.messages`. Its bytes are copies that belong to the caller. */
export interface Received<T> {
  /** The endpoint that sent it. */
  readonly origin: Endpoint;
  /** The task that sent it. */
  readonly task: number;
  /** A copy of its header. */
  readonly header: Uint8Array;
  /** A copy of its payload: bytes, or the value that the codec decoded. */
  readonly payload: T;
  /**
   * Replies to a call, with a value or a promise of one; undefined for other messages. Use it once: a call without a reply
   * keeps its caller waiting.
   */
  readonly reply: ((value: unknown) => void) | undefined;
  /** Of a call: aborted once the caller has given it up or has ended, before it got its reply. See `CallScope`. */
  readonly signal: HostAbortSignal | undefined;
}

const CONTEXT_KEYS: Keys<ContextOptions> = {
  pendingBytes: true,
  unexpectedBytes: true,
  spin: true,
  fragment: true,
  depth: true,
  mayBlock: true,
};
const MESSAGES_KEYS: Keys<MessagesOptions> = { ...PROGRESS_KEYS, from: true };
const CALL_KEYS: Keys<CallOptions> = { ...PROGRESS_KEYS, header: true, transfer: true };
const CALL_SYNC_KEYS: Keys<CallSyncOptions> = { timeout: true, header: true, transfer: true };

/** Parameters of the calls that check their names in debug mode only. */
const HOT_KEYS = { send: SEND_KEYS, put: PUT_KEYS, get: TRANSFER_KEYS, rmw: RMW_KEYS };

/** Looks of a collective operation before its wait becomes one of advanceUntil(): each 10 to 20 ns. */
const SPIN_LOOKS = 512;
/** Looks after which messages are looked for, too. */
const LOOKS_PER_ADVANCE = 32;
/** Names of functions, for the texts of errors. */
const CONDITION = "condition of advanceUntil()";
const PREDICATE = "predicate of waitWord()";
const SPIN_MS = 0.05;
/** Of the request that is being encoded. */
const PARTS: Parts = { body: undefined };
const QUEUE_BYTES = 1024 * 1024;

/**
 * The unit of progress. Its handlers and callbacks run only in `advance()`, and in the waits, which call `advance()`. A
 * context belongs to the thread that made it. After close() its methods throw, or reject with, PAMIR_CLOSED.
 */
export class Context {
  /** Number of this context in its task. */
  readonly index: number;
  /** Endpoint of this context: the address to which other tasks send. */
  readonly endpoint: Endpoint;

  readonly #task: Task;
  readonly #core: ContextCore;
  /** Parts of the core: here too, one load less for each message. */
  readonly #sender: Sender;
  readonly #receiver: Receiver;
  readonly #ids: DispatchIds;
  readonly #rma: Rma;
  readonly #waits: Waits;
  readonly #rooms: RoomQueues;
  readonly #spin: number;
  #inFenceRegion = false;
  /** The dispatch id of the last call, whose codecs were checked. */
  #checkedId: DispatchId<unknown, unknown> | undefined;
  #closed = false;
  /** Whether hot calls are looked at more closely: closed, or debug mode, which refuses parameters that do not exist. */
  #isGuarded: boolean;

  /** @internal @param onClose called once it reads and writes nothing any more */
  constructor(task: Task, index: number, options: ContextOptions, onClose: (context: Context) => void) {
    checkKeys("options of createContext()", options, CONTEXT_KEYS);
    const { pendingBytes = QUEUE_BYTES, unexpectedBytes = QUEUE_BYTES, spin = SPIN_MS, fragment, depth } = options;
    const { mayBlock = false } = options;
    checkFlag("mayBlock", mayBlock);
    checkInteger("pendingBytes", pendingBytes, 0, 2 ** 31);
    checkInteger("unexpectedBytes", unexpectedBytes, 0, 2 ** 31);
    if (typeof spin !== "number" || !(spin >= 0)) {
      throw new PamiError("PAMIR_INVAL", `spin is ${show(spin)}, not a number of milliseconds from 0`);
    }
    const owner: CoreOwner = {
      // Before the waits are made, no call begins.
      advanceSoon() {},
      taskEnded: (ended) => {
        if (diagnostics.ended.hasSubscribers) diagnostics.ended.publish({ context: this, task: ended });
      },
      closed: () => onClose(this),
    };
    const core = new ContextCore(task, index, { pendingBytes, unexpectedBytes, fragment, depth }, owner);
    this.index = index;
    this.endpoint = core.endpoint;
    this.#task = task;
    this.#core = core;
    this.#sender = core.sender;
    this.#receiver = core.receiver;
    this.#ids = core.receiver.ids;
    this.#rma = core.rma;
    this.#spin = spin;
    this.#isGuarded = task.observers.isStrict;
    this.#waits = new Waits(
      task,
      core,
      spin,
      (call) => this.#checkOpen(call),
      (rounds) => this.advance(rounds),
      mayBlock,
    );
    owner.advanceSoon = this.#waits.advanceForCalls;
    const isClosed = (): boolean => this.#closed;
    this.#rooms = new RoomQueues({
      send: (parameters) => this.send(parameters),
      until: (condition) => this.#waits.until("whenRoom()", condition, NO_OPTIONS),
      ring: () => task.parker.ring(),
      get isClosed() {
        return isClosed();
      },
    });
  }

  /**
   * Sets the handler of a dispatch id (0 … 4095). Each id takes one handler. The next `advance()` first delivers the
   * messages that came before.
   * @throws PAMIR_INVAL, PAMIR_DISPATCH_TAKEN, PAMIR_HINT
   */
  dispatch(id: number, handler: Handler, hints?: DispatchHints): void;
  dispatch<Request, Reply>(
    id: DispatchId<Request, Reply>,
    handler: TypedHandler<Request, Reply>,
    hints?: DispatchHints,
  ): void;
  dispatch(
    id: number | DispatchId<unknown, unknown>,
    handler: Handler | TypedHandler<unknown, unknown>,
    hints: DispatchHints = NO_OPTIONS,
  ): void {
    this.#checkOpen("dispatch");
    checkObject("hints of dispatch()", hints);
    checkFunction("handler", handler);
    const number = numberOf(id);
    const plain =
      typeof id === "object" ? untyped(id, handler as TypedHandler<unknown, unknown>) : (handler as Handler);
    this.#receiver.dispatch(number, this.#core.parts.handler(number, plain), hints);
  }

  /**
   * Says that this context has all its handlers: from now on, a call to a dispatch id without one is refused, and rejects with
   * PAMIR_NO_HANDLER, which names the ids that have one. So are calls that came before. Without this, they wait for their
   * handler. Messages without a handler wait in any case. A handler may still be added, for later calls. An id whose messages
   * a loop over `messages()` has read counts as one with a handler.
   * @throws PAMIR_CLOSED
   */
  ready(): void {
    this.#checkOpen("ready");
    this.#receiver.ready();
    this.#task.parker.ring();
  }

  /**
   * Sends a request and resolves with the value that the target's handler returns. This context advances meanwhile, as in
   * progress(). Calls made together go out together. The caller may reuse the request's bytes once this returns, unless it
   * gives them away. Requests that find no room wait in order, without a limit. If the call is given up first, its reply is
   * dropped; the handler may have run, and its `signal` is aborted. While a target blocks in `advanceUntil()`, it replies
   * with values that handlers return, not with promises.
   * @param id a number, for a request and a reply that are views of bytes or nothing; or a `DispatchId`
   * @throws the handler's error, as a RemoteError with its name, code, stack, cause and fields; PAMIR_SHUTDOWN if the target
   *   has ended (the cause says how); PAMIR_NO_HANDLER if the target is `ready()` without a handler of this id; PAMIR_CANCELED
   *   by the signal (the cause is its reason); PAMIR_TIMEDOUT, PAMIR_INTERRUPTED, PAMIR_CLOSED, PAMIR_INVAL, PAMIR_TOO_LARGE,
   *   PAMIR_NO_MEMORY
   */
  call(to: Endpoint, id: number, request?: ArrayBufferView | null, options?: CallOptions): Promise<Uint8Array>;
  call<Request, Reply>(
    to: Endpoint,
    id: DispatchId<Request, Reply>,
    request: Request,
    options?: ProgressOptions,
  ): Promise<Reply>;
  call(
    to: Endpoint,
    id: number | DispatchId<unknown, unknown>,
    request?: unknown,
    options: CallOptions = NO_OPTIONS,
  ): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.#call("call()", to, id, request, options, { blocks: false, resolve, reject });
    });
  }

  /**
   * As call(), but blocks the thread until the reply has come: for threads that may block, where nothing can be awaited. This
   * context advances meanwhile, so its handlers run.
   * @param options `timeout` in milliseconds; `header` and `transfer` for a dispatch id that is a number
   * @returns the reply
   * @throws as call(), and as advanceUntil()
   */
  callSync(to: Endpoint, id: number, request?: ArrayBufferView | null, options?: CallSyncOptions): Uint8Array;
  callSync<Request, Reply>(
    to: Endpoint,
    id: DispatchId<Request, Reply>,
    request: Request,
    options?: WaitOptions,
  ): Reply;
  callSync(
    to: Endpoint,
    id: number | DispatchId<unknown, unknown>,
    request?: unknown,
    options: CallSyncOptions = NO_OPTIONS,
  ): unknown {
    let isOver = false;
    let reply: unknown;
    let failure: unknown;
    const number = this.#call("callSync()", to, id, request, options, {
      blocks: true,
      resolve(value) {
        isOver = true;
        reply = value;
      },
      reject(error) {
        isOver = true;
        failure = error ?? new PamiError("PAMIR_INVAL", "a call was rejected without an error");
      },
    });
    const { timeout } = options;
    if (!isOver) {
      try {
        const waited = this.#advanceUntil("call()", () => isOver, { timeout });
        if (waited !== SUCCESS)
          this.#core.calls.abandon(
            number,
            this.#waits.unanswered(to, waited),
            waited === TIMEDOUT ? ABORT_TIMEDOUT : ABORT_INTERRUPTED,
          );
      } catch (error) {
        this.#core.calls.abandon(number, error as Error, ABORT_CANCELED);
        throw error;
      }
    }
    if (failure !== undefined) throw failure;
    return reply;
  }

  /** Begins a call, and settles it once its reply has come. @returns its number @throws instead, if it can't begin */
  #call(
    name: string,
    to: Endpoint,
    id: number | DispatchId<unknown, unknown>,
    request: unknown,
    options: CallOptions,
    settle: { readonly blocks: boolean; resolve(reply: unknown): void; reject(error: unknown): void },
  ): number {
    if (this.#closed) this.#checkOpen("call");
    this.#sender.checkEndpoint(to);
    let dispatch: number;
    let typed: DispatchId<unknown, unknown> | undefined;
    if (typeof id === "number" && id === (id & DISPATCH_ID_MAX)) dispatch = id;
    else if (typeof id === "object" && id === this.#checkedId) {
      dispatch = id.id;
      typed = id;
    } else {
      dispatch = numberOf(id);
      if (typeof id === "object") typed = id;
      this.#checkedId = typed;
    }
    let signal: AbortSignalLike | undefined;
    let milliseconds = Number.POSITIVE_INFINITY;
    let headerBytes: Uint8Array | undefined;
    if (options !== NO_OPTIONS) {
      checkKeys(`options of ${name}`, options, settle.blocks ? CALL_SYNC_KEYS : CALL_KEYS);
      signal = options.signal;
      checkSignal(name, signal);
      milliseconds = checkTimeout(options.timeout);
      headerBytes = viewBytes("header", options.header);
    }
    let payload: Uint8Array | undefined;
    let kind = 0;
    if (typed === undefined) payload = request instanceof Uint8Array ? request : viewBytes("request", request);
    else {
      payload = encoded(typed.request, request, to, this.#task.observers.checkJson, headerBytes ? undefined : PARTS);
      if (PARTS.body !== undefined) {
        kind = CALL_HAS_PARTS;
        headerBytes = payload;
        payload = PARTS.body;
        PARTS.body = undefined;
      }
    }
    if (this.#ids.hints[dispatch] !== undefined) {
      const headerLength = headerBytes?.length ?? 0;
      this.#ids.checkSend(dispatch, headerLength, bodyBytes(headerLength, payload?.length ?? 0));
    }
    if (signal?.aborted) throw this.#waits.canceled(name, signal);
    // What a codec has encoded lies in no region.
    const gift = options.transfer === undefined ? undefined : this.#sender.giftOf(options.transfer, false, payload);
    const abort = (): void => {
      this.#core.calls.abandon(number, this.#waits.canceled(name, signal as AbortSignalLike), ABORT_CANCELED);
      this.#task.parker.ring();
    };
    let forget: (() => void) | undefined;
    const pending: PendingCall = {
      to,
      deadline: milliseconds === Number.POSITIVE_INFINITY ? milliseconds : this.#task.clock.now() + milliseconds,
      inPlace: typed?.reply?.inPlace === true,
      blocks: settle.blocks,
      resolve: (reply, body) => {
        this.#waits.settled();
        forget?.();
        try {
          if (typed?.reply === undefined && body !== undefined) throw unasked(to);
          if (typed === undefined) settle.resolve(reply);
          else settle.resolve(typed.reply && decoded(typed.reply, reply, to, body));
        } catch (error) {
          settle.reject(error);
        }
      },
      reject: (error) => {
        this.#waits.settled();
        forget?.();
        settle.reject(error);
      },
    };
    const number = this.#core.calls.begin(dispatch | kind, headerBytes, payload, pending, gift);
    // A call that was refused at once is settled already.
    if (signal !== undefined && this.#core.calls.isPending(number)) forget = hearAbort(signal, abort);
    return number;
  }

  /**
   * Iterates over the messages to a dispatch id, as copies. The id must have no handler. This context advances while the
   * iterator waits. Messages that come meanwhile wait in the unexpected queue. While that queue is full, the context stops
   * reading origins whose messages find no place; the iterator's next message has a place at any length. Messages left
   * after the loop stay for another loop or a handler.
   *
   * The loop ends once no task can send any more, behind the last message: all other tasks have ended, and the job has had
   * `maxTasks`. If one of them failed, the loop throws instead. With `from`, only the end of these endpoints counts. Without
   * it, the loop has no end in a job of one task, and in one with more tasks than its nodes have slots.
   * @param options `timeout` for each message, in milliseconds, `signal`, and `from`
   * @throws as progress(); PAMIR_DISPATCH_TAKEN; at the end, PAMIR_SHUTDOWN if a task was killed, threw, or exited with a
   *   code other than 0 (the cause says so; the ends of other nodes' tasks are known on the launching thread only)
   */
  messages(id: number, options?: MessagesOptions): AsyncGenerator<Received<Uint8Array>, void>;
  messages<Request, Reply>(
    id: DispatchId<Request, Reply>,
    options?: MessagesOptions,
  ): AsyncGenerator<Received<Request>, void>;
  messages(
    id: number | DispatchId<unknown, unknown>,
    options: MessagesOptions = NO_OPTIONS,
  ): AsyncGenerator<Received<unknown>, void> {
    const dispatch = numberOf(id);
    checkKeys("options of messages()", options, MESSAGES_KEYS);
    const { from, ...wait } = options;
    checkProgress("messages()", wait);
    if (from !== undefined && !Array.isArray(from)) {
      throw new PamiError("PAMIR_INVAL", `from of messages() is ${show(from)}, not an array of endpoints`);
    }
    for (const one of from ?? []) this.#sender.checkEndpoint(one);
    return this.#messages(dispatch, typeof id === "object" ? id : undefined, wait, from?.slice());
  }

  async *#messages(
    dispatch: number,
    typed: DispatchId<unknown, unknown> | undefined,
    options: ProgressOptions,
    from: readonly Endpoint[] | undefined,
  ): AsyncGenerator<Received<unknown>, void> {
    this.#checkOpen("messages");
    const { unexpected } = this.#receiver;
    unexpected.open(dispatch);
    const producers = new Producers(this.#task, this.#core, from);
    try {
      while (!producers.isOver(dispatch)) {
        await this.#waits.until(
          "messages()",
          () => unexpected.hasNext(dispatch) || producers.isOver(dispatch),
          options,
        );
        for (let next = unexpected.take(dispatch); next !== undefined; next = unexpected.take(dispatch)) {
          this.#core.parts.took(next, dispatch);
          const received = this.#received(next, typed);
          if (received !== undefined) yield received;
        }
      }
    } finally {
      producers.close();
      unexpected.close(dispatch);
    }
    await Promise.all(producers.endpoints.map((to) => this.#told(to)));
    const failure = producers.failure("messages()");
    if (failure !== undefined) throw failure;
  }

  /** A message of a stream; undefined: a call whose request is refused, which its caller learns. @throws of the codec */
  #received(taken: Taken, typed: DispatchId<unknown, unknown> | undefined): Received<unknown> | undefined {
    const { origin, header, payload, call } = taken;
    const { calls } = this.#core;
    const task = taskOf(origin);
    let value: unknown = payload;
    try {
      if (typed !== undefined) value = decoded(typed.request, payload, origin);
    } catch (error) {
      if (call === undefined) throw error;
      calls.replyError(origin, call, error);
      return undefined;
    }
    if (call === undefined) return { origin, task, header, payload: value, reply: undefined, signal: undefined };
    const scope = calls.scopeOf(origin, call);
    calls.serveLater(scope);
    const reply = (given: unknown): void => {
      // What is no promise is encoded at once: the reader gets the codec's error, and may reply otherwise.
      const isNow = typed?.reply !== undefined && promised(given) === undefined;
      if (isNow)
        calls.reply(
          origin,
          call,
          encodedForGood(typed.reply, given, origin, this.#task.observers.checkJson),
          scope,
          undefined,
        );
      else calls.reply(origin, call, given, scope, typed?.reply && typed);
    };
    return {
      origin,
      task,
      header,
      payload: value,
      reply,
      get signal() {
        return scope.signal;
      },
    };
  }

  /**
   * Sends a message of up to SEND_IMMEDIATE_MAX bytes (header padded to 8, plus payload). Both are copied before this
   * returns. It allocates nothing while there is room. Messages from one endpoint to another are dispatched in the order
   * sent.
   * @param queueImmediate false: without room, return EAGAIN instead of using the pending queue
   * @returns SUCCESS (sent, or in the pending queue), EAGAIN (no room, and the queue is full), SHUTDOWN (the target has
   *   ended), ENOMEM (no memory for a lane)
   * @throws PAMIR_INVAL, PAMIR_TOO_LARGE, PAMIR_CLOSED
   */
  sendImmediate(
    to: Endpoint,
    dispatch: number,
    header?: ArrayBufferView | null,
    payload?: ArrayBufferView | null,
    queueImmediate = true,
  ): Result {
    if (this.#closed || typeof queueImmediate !== "boolean") this.#checkImmediate(queueImmediate);
    return this.#sender.sendImmediate(to, dispatch, header, payload, queueImmediate);
  }

  /**
   * Sends a message of any size, from any view. If there is no room, it waits in the pending queue. The queue copies the
   * header, and also the payload unless there is an `onLocal`. Callbacks run in a later `advance()`, never before this
   * returns.
   * @param parameters if `dispatch` is a `DispatchId`, its codec encodes `payload`; the handler gets the value and sends
   *   no reply
   * @returns SUCCESS, EAGAIN, SHUTDOWN or ENOMEM; with EAGAIN or ENOMEM no callback is called
   * @throws PAMIR_INVAL, PAMIR_TOO_LARGE, PAMIR_CLOSED; what the codec throws
   */
  send(parameters: SendParameters): Result;
  send<Request, Reply>(parameters: TypedSendParameters<Request, Reply>): Result;
  send(given: SendParameters | TypedSendParameters<unknown, unknown>): Result {
    if (this.#isGuarded || typeof given !== "object" || given === null) this.#guard("send", given);
    if (typeof given.dispatch === "object") return this.#sendTyped(given as TypedSendParameters<unknown, unknown>);
    const parameters = given as SendParameters;
    const { type } = parameters;
    if (type !== undefined) return carrierOf("type of send()", type).send(parameters, this);
    if (this.#ids.hints[parameters.dispatch] !== undefined) {
      const headerBytes = parameters.header?.byteLength ?? 0;
      const total = bodyBytes(headerBytes, parameters.payload?.byteLength ?? 0);
      this.#ids.checkSend(parameters.dispatch, headerBytes, total);
    }
    return this.#sender.send(parameters);
  }

  /**
   * Sends as send() does. Without room, it advances until there is some, and sleeps in between, instead of returning
   * EAGAIN. For threads that compute. Blocks the thread, as advanceUntil() does.
   * @param options `timeout` in milliseconds
   * @returns SUCCESS, SHUTDOWN or ENOMEM as send(); TIMEDOUT or INTERRUPTED if nothing was sent
   * @throws as send(); PAMIR_REENTRANT within a handler or callback; PAMIR_WOULD_BLOCK, PAMIR_NOT_ISOLATED; what
   *   `advance()` throws
   */
  sendSync(parameters: SendParameters, options?: WaitOptions): Result;
  sendSync<Request, Reply>(parameters: TypedSendParameters<Request, Reply>, options?: WaitOptions): Result;
  sendSync(given: SendParameters | TypedSendParameters<unknown, unknown>, options: WaitOptions = NO_OPTIONS): Result {
    checkWait("sendSync()", options);
    const parameters = given as SendParameters;
    let result = this.send(parameters);
    if (result !== EAGAIN) return result;
    const isAccepted = (): boolean => {
      result = this.send(parameters);
      return result !== EAGAIN;
    };
    const waited = this.#advanceUntil("whenRoom()", isAccepted, options);
    return waited === SUCCESS ? result : waited;
  }

  /**
   * Sends as send() does, and waits for room instead of returning EAGAIN: resolves once the message is sent, or is in the
   * pending queue. Advances meanwhile. Messages to one endpoint that wait here go out in the order of their calls; a send()
   * may overtake them. The payload and the header belong to the call until it resolves; behind that, as for send().
   * @throws as send() and progress(); PAMIR_SHUTDOWN if the target has ended (the cause says how); PAMIR_NO_MEMORY if there
   *   is no memory for a lane. If it rejects, nothing was sent, and no callback is called
   */
  sendWhenRoom(parameters: SendParameters, options?: ProgressOptions): Promise<void>;
  sendWhenRoom<Request, Reply>(
    parameters: TypedSendParameters<Request, Reply>,
    options?: ProgressOptions,
  ): Promise<void>;
  async sendWhenRoom(
    given: SendParameters | TypedSendParameters<unknown, unknown>,
    options: ProgressOptions = NO_OPTIONS,
  ): Promise<void> {
    this.#guard("send", given);
    checkProgress("sendWhenRoom()", options);
    if (options.signal?.aborted) throw this.#waits.canceled("sendWhenRoom()", options.signal);
    // The caller may reuse the object, and a codec encodes once.
    const parameters =
      typeof given.dispatch === "object"
        ? this.#encodedSend(given as TypedSendParameters<unknown, unknown>)
        : { ...(given as SendParameters) };
    const { to } = parameters;
    let result = this.#rooms.has(to) ? EAGAIN : this.send(parameters);
    if (result === EAGAIN) result = await this.#sendLater(parameters, options);
    if (result === SUCCESS) return;
    if (result === ENOMEM) {
      throw new PamiError("PAMIR_NO_MEMORY", `sendWhenRoom(): no memory for a lane to ${nameOf(to)}`);
    }
    await this.#told(to);
    throw this.#task.shutdownError(`sendWhenRoom(): ${nameOf(to)} has ended`, to);
  }

  #sendLater(parameters: SendParameters, { timeout, signal }: ProgressOptions): Promise<Result> {
    return new Promise((resolve, reject) => {
      const over = (): void => {
        stop();
        forget();
        this.#waits.settled();
      };
      const send: WaitingSend = {
        parameters,
        accepted: (result) => {
          over();
          resolve(result);
        },
        failed: (error) => {
          over();
          reject(error);
        },
      };
      const giveUp = (error: Error): void => {
        if (this.#rooms.remove(send)) send.failed(error);
      };
      const what = `sendWhenRoom() to ${nameOf(parameters.to)}`;
      const abort = (): void => giveUp(this.#waits.canceled("sendWhenRoom()", signal as AbortSignalLike));
      const late = (): void => giveUp(new PamiError("PAMIR_TIMEDOUT", `${what}: no room after ${timeout} ms`));
      // The wait itself keeps the thread running.
      const stop = after(timeout ?? Number.POSITIVE_INFINITY, late);
      const forget = hearAbort(signal, abort);
      this.#rooms.add(send);
    });
  }

  #encodedSend(parameters: TypedSendParameters<unknown, unknown>): SendParameters {
    const dispatch = numberOf(parameters.dispatch);
    const payload = encodedForGood(
      parameters.dispatch.request,
      parameters.payload,
      parameters.to,
      this.#task.observers.checkJson,
    );
    return { ...parameters, dispatch, payload };
  }

  #sendTyped(parameters: TypedSendParameters<unknown, unknown>): Result {
    return this.send(this.#encodedSend(parameters));
  }

  /**
   * Returns a size in bytes, header (padded to 8) plus payload: a message to this endpoint up to that size is certain to be
   * accepted now. A larger one may be accepted too, by a larger lane or in a buffer. The size stays below 16 KiB while the
   * target has its limit of large payloads unread. It does not apply to offered payloads (`rendezvous`).
   * @throws PAMIR_INVAL, PAMIR_CLOSED
   */
  room(to: Endpoint): number {
    this.#checkOpen("room");
    return this.#sender.room(to);
  }

  /**
   * Calls `onRoom` in an `advance()` once a message of `bytes` would be accepted. Its result is SUCCESS, SHUTDOWN if the
   * target ends, or ENOMEM if there is no memory for its lane. Without a callback, returns a promise and advances meanwhile.
   *
   * If the last send got EAGAIN because its target had 8 offered payloads, this waits until one more may be offered. If it
   * was refused for lack of memory or of a place in the pending queue, this waits until there is either. For `bytes` beyond
   * RECV_IMMEDIATE_MAX, it then waits as long as others hold the memory.
   * @param bytes header, padded to 8, plus payload
   * @throws PAMIR_INVAL; the promise as progress(), PAMIR_SHUTDOWN and PAMIR_NO_MEMORY
   */
  whenRoom(to: Endpoint, bytes: number, options?: ProgressOptions): Promise<void>;
  whenRoom(to: Endpoint, bytes: number, onRoom: Callback, cookie?: unknown): void;
  whenRoom(
    to: Endpoint,
    bytes: number,
    onRoom: Callback | ProgressOptions = NO_OPTIONS,
    cookie?: unknown,
  ): Promise<void> | undefined {
    if (typeof onRoom !== "function") return this.#awaitRoom(to, bytes, onRoom);
    this.#checkOpen("whenRoom");
    this.#sender.whenRoom(to, bytes, onRoom, cookie);
    this.#task.parker.ring();
    return undefined;
  }

  async #awaitRoom(to: Endpoint, bytes: number, options: ProgressOptions): Promise<void> {
    this.#checkOpen("whenRoom");
    checkProgress("whenRoom()", options);
    let came: Result | undefined;
    const told: Callback = (_, result) => {
      came = result;
    };
    this.#sender.whenRoom(to, bytes, told, undefined);
    try {
      await this.#waits.until("whenRoom()", () => came !== undefined, options);
    } finally {
      if (came === undefined && !this.#closed) this.#sender.forgetRoom(to, told);
    }
    if (came === SUCCESS) return;
    if (came === ENOMEM) {
      throw new PamiError(
        "PAMIR_NO_MEMORY",
        `whenRoom(): no memory for a lane to ${nameOf(to)} that takes ${bytes} bytes`,
      );
    }
    await this.#told(to);
    throw this.#task.shutdownError(`${nameOf(to)} ended before there was room for ${bytes} bytes`, to);
  }

  /**
   * Calls `onEnd` in an `advance()`, with SHUTDOWN, once an endpoint has ended and everything it sent is delivered. An
   * endpoint ends when its context is closed or its task ends. Without a callback, returns a promise and advances
   * meanwhile.
   * @throws PAMIR_INVAL; the promise as progress()
   */
  whenEnded(to: Endpoint, options?: ProgressOptions): Promise<void>;
  whenEnded(to: Endpoint, onEnd: Callback, cookie?: unknown): void;
  whenEnded(to: Endpoint, onEnd: Callback | ProgressOptions = NO_OPTIONS, cookie?: unknown): Promise<void> | undefined {
    this.#checkOpen("whenEnded");
    this.#sender.checkEndpoint(to);
    if (typeof onEnd !== "function") checkProgress("whenEnded()", onEnd);
    let hasEnded = false;
    const told: Callback = () => {
      hasEnded = true;
    };
    const callback = typeof onEnd === "function" ? onEnd : told;
    this.#core.watch(to, callback, cookie);
    if (typeof onEnd === "function") return undefined;
    return this.#waits.until("whenEnded()", () => hasEnded, onEnd).finally(() => this.#core.unwatch(told));
  }

  /**
   * Resolves once the job has a task of this number. It may have none yet if the job was launched with `maxTasks`: then
   * `job.spawn`, `job.adopt` or `pamir run --restart` starts it. Advances meanwhile.
   * @throws PAMIR_INVAL for a number beyond `maxTasks`; as progress()
   */
  async whenStarted(task: number, options: ProgressOptions = NO_OPTIONS): Promise<void> {
    this.#checkOpen("whenStarted");
    checkInteger("task", task, 0, this.#task.map.jobTasks - 1);
    checkProgress("whenStarted()", options);
    await this.#waits.until("whenStarted()", () => this.#task.size > task, options);
  }

  /**
   * Reserves space in the lane to an endpoint, to be written in place. The caller writes the header into `client.bytes`, and
   * the payload behind the header padded to 8. Until commit() or abort(), other messages to that endpoint wait; other
   * endpoints are not delayed. Each endpoint takes one reservation at a time.
   * @returns the offset in `client.bytes` (a multiple of 8), or a negated result: -EAGAIN, -SHUTDOWN, -ENOMEM
   * @throws PAMIR_INVAL (also for more than RECV_IMMEDIATE_MAX, header and payload together), PAMIR_CLOSED
   */
  reserve(to: Endpoint, dispatch: number, payloadBytes: number, headerBytes = 0): number {
    this.#checkOpen("reserve");
    return this.#sender.reserve(to, dispatch, payloadBytes, headerBytes);
  }

  /**
   * Sends the reserved message. If the target has ended meanwhile, the message is dropped.
   * @param payloadBytes bytes of the payload, at most as many as were reserved (default: all)
   * @throws PAMIR_INVAL without a reservation, or for more than were reserved
   */
  commit(to: Endpoint, payloadBytes?: number): void {
    this.#checkOpen("commit");
    this.#sender.commit(to, payloadBytes);
  }

  /** Gives the reservation back and sends nothing. @throws PAMIR_INVAL without a reservation */
  abort(to: Endpoint): void {
    this.#checkOpen("abort");
    this.#sender.abort(to);
  }

  /**
   * Writes bytes of a local region into a region of the target's task. The target need not do anything, and its context
   * may be closed. Without callbacks, up to 262,144 bytes (4,096 if the job has an engine thread) are written before this
   * returns, unless an earlier transfer is unfinished. Other puts go on in this context's `advance()`, or in the engine
   * thread, and end with this task.
   *
   * Only fences order puts: they are not ordered with messages or rmws. `notify` tells the target after the bytes, by a
   * message or a word, and wakes it. The message goes out once the bytes are there, at the latest in an `advance()` of this
   * context. The word changes with the bytes, unless they were refused. Without `notify` the target is not woken.
   *
   * The caller may reuse the parameter object once this returns, and the local bytes after `onLocal` or a fence.
   * @returns SUCCESS, EAGAIN (no free slot, and no place in the pending queue), SHUTDOWN (the target's task has ended)
   * @throws PAMIR_INVAL, PAMIR_BOUNDS, PAMIR_STALE, PAMIR_CLOSED; with a type, to another node: PAMIR_NO_MEMORY, PAMIR_BUSY (no
   *   region for what is packed), PAMIR_TOO_LARGE (`remoteType` has more than 16,384 runs)
   */
  put(parameters: PutParameters): Result {
    if (this.#isGuarded || typeof parameters !== "object" || parameters === null) this.#guard("put", parameters);
    const type = parameters.localType ?? parameters.remoteType;
    if (type !== undefined) return this.#transferTyped("put", type, parameters);
    return this.#rma.transfer("put", parameters);
  }

  /** As put(), in the other direction. `onLocal` is called when the bytes are in the local region. */
  get(parameters: TransferParameters): Result {
    if (this.#isGuarded || typeof parameters !== "object" || parameters === null) this.#guard("get", parameters);
    const type = parameters.localType ?? parameters.remoteType;
    if (type !== undefined) return this.#transferTyped("get", type, parameters);
    return this.#rma.transfer("get", parameters);
  }

  #transferTyped(call: "put" | "get", type: TransferType, parameters: TransferParameters): Result {
    return carrierOf(`type of a ${call}`, type).transfer(call, parameters, this, this.#rma);
  }

  /**
   * Changes one word of a region of the target's task, atomically with respect to the rmws of all tasks. Rmws are
   * unordered. `notify: true` wakes that task; other values of `notify` tell it as for put(). Without `onDone`, and without
   * a `notify` other than `true`, the change is done, and the old value stored, when this returns.
   * @returns as put()
   * @throws as put(), and PAMIR_INVAL for an unknown operation or type, or a word that is not aligned
   */
  rmw(parameters: RmwParameters): Result {
    if (this.#isGuarded || typeof parameters !== "object" || parameters === null) this.#guard("rmw", parameters);
    return this.#rma.rmw(parameters);
  }

  /**
   * Calls `done` in an `advance()` once every transfer that this context issued before to an endpoint is complete: visible
   * at the target to all tasks. Later transfers are not waited for. `done` gets ERROR if a transfer since the last fence was
   * refused because its region had been closed, and SHUTDOWN if one was not begun because its target had ended. Endpoints
   * that share an injection FIFO share these results.
   * @returns SUCCESS, or EAGAIN (no place in the pending queue: advance, and try again)
   * @throws PAMIR_INVAL, PAMIR_CLOSED
   */
  fence(to: Endpoint, done: Callback, cookie?: unknown): Result {
    this.#checkOpen("fence");
    return this.#rma.fence(to, done, cookie);
  }

  /** As fence(), for all endpoints. Always returns SUCCESS. `done` gets SUCCESS only if every endpoint's fence does. */
  fenceAll(done: Callback, cookie?: unknown): Result {
    this.#checkOpen("fenceAll");
    return this.#rma.fenceAll(done, cookie);
  }

  /** Begins a fence region. PAMI has fence regions; fences here do not need them. @throws PAMIR_FENCE within a fence region */
  fenceBegin(): void {
    this.#checkOpen("fenceBegin");
    if (this.#inFenceRegion) throw new PamiError("PAMIR_FENCE", "fenceBegin() within a fence region: they do not nest");
    this.#inFenceRegion = true;
  }

  /** Ends a fence region, without a wait. @throws PAMIR_FENCE outside of a fence region */
  fenceEnd(): void {
    this.#checkOpen("fenceEnd");
    if (!this.#inFenceRegion) throw new PamiError("PAMIR_FENCE", "fenceEnd() without fenceBegin()");
    this.#inFenceRegion = false;
  }

  /**
   * Resolves once every transfer issued before is complete. Advances meanwhile.
   * @throws as progress(); PAMIR_STALE if a transfer was refused because its region had been closed, or because the engine
   *   thread had ended; PAMIR_SHUTDOWN if a transfer was not begun because its target had ended
   */
  async flush(options: ProgressOptions = NO_OPTIONS): Promise<void> {
    checkProgress("flush()", options);
    let came: Result | undefined;
    this.fenceAll((_, result) => {
      came = result;
    });
    await this.#waits.until("flush()", () => came !== undefined, options);
    if (came === SHUTDOWN) {
      throw new PamiError("PAMIR_SHUTDOWN", "flush(): a transfer was not begun, its target ended");
    }
    if (came === SUCCESS) return;
    throw new PamiError(
      "PAMIR_STALE",
      "flush(): a transfer was refused: its region was closed, or the engine thread ended",
    );
  }

  /**
   * As flush(), but blocks the thread, as advanceUntil() does, and returns a result.
   * @param options `timeout` in milliseconds
   * @returns SUCCESS, ERROR (a transfer was refused), SHUTDOWN (a transfer was not begun), TIMEDOUT, INTERRUPTED
   * @throws PAMIR_INVAL, PAMIR_CLOSED; PAMIR_REENTRANT within a handler or callback; PAMIR_WOULD_BLOCK, PAMIR_NOT_ISOLATED;
   *   what `advance()` throws
   */
  flushSync(options: WaitOptions = NO_OPTIONS): Result {
    this.#checkAdvance(1);
    checkWait("flushSync()", options);
    let came: Result | undefined;
    this.fenceAll((_, result) => {
      came = result;
    });
    const waited = this.#advanceUntil("flush()", () => came !== undefined, options);
    return came ?? waited;
  }

  /**
   * Releases the lanes to endpoints that this context will not send to for a while, 24 KiB or more each, and the idle
   * buffers of its task. A target frees a lane once it has read the messages in it. The next message to an endpoint makes
   * its lane again.
   * @returns SUCCESS, or EAGAIN (a lane is full, the others are released: advance, and try again)
   * @throws PAMIR_INVAL for this context's own endpoint, or while a message or a reservation is under way to an endpoint
   */
  purge(endpoints: readonly Endpoint[]): Result {
    this.#checkOpen("purge");
    return this.#sender.purge(endpoints, this.endpoint);
  }

  /**
   * Makes the lanes to endpoints, after purge() or for the first time, so that the next message need not.
   * @returns SUCCESS, EAGAIN (the target has not yet read the messages from before purge()), ENOMEM or SHUTDOWN; of several
   *   endpoints, the last result other than SUCCESS
   * @throws PAMIR_INVAL
   */
  resume(endpoints: readonly Endpoint[]): Result {
    this.#checkOpen("resume");
    return this.#sender.resume(endpoints, this.endpoint);
  }

  /**
   * Whether everything issued here is out: no message waits for room, no transfer is under way, no callback is due. A task
   * that ends earlier loses its pending messages and transfers.
   */
  get drained(): boolean {
    return this.#core.drained;
  }

  /**
   * Resolves once `drained` is true. Advances meanwhile. It also waits for operations that are issued meanwhile, such as
   * replies. Set a `timeout` if other tasks go on calling this one.
   * @throws as progress()
   */
  async drain(options: ProgressOptions = NO_OPTIONS): Promise<void> {
    await this.drainUntil(() => this.drained, options);
  }

  /** @internal Advances until the condition holds, which is about several contexts. */
  drainUntil(isOut: () => boolean, options: ProgressOptions): Promise<void> {
    return this.#waits.until("drain()", isOut, options);
  }

  /**
   * Calls `work` in the next `advance()`, and again in each one while it returns EAGAIN. Only for the thread of this
   * context: another thread sends a message instead.
   * @throws PAMIR_INVAL, PAMIR_CLOSED
   */
  post(work: Work): void {
    this.#checkOpen("post");
    checkFunction("work", work);
    this.#core.work.push(work);
  }

  /**
   * Makes progress: calls handlers, callbacks and posted work. Returns after the first round with an event, or after `max`
   * rounds without one.
   * @returns the number of events processed
   * @throws PAMIR_REENTRANT within a handler or callback; an error that a handler or callback threw, once the round is
   *   over (several errors: an AggregateError, in order; its text has the first)
   */
  advance(max = 1): number {
    if (this.#core.isAdvancing || this.#closed || !isCount(max)) this.#checkAdvance(max);
    return this.#core.advance(max);
  }

  /**
   * Advances until `condition()` is true: it spins for a while, then sleeps. Blocks the thread, so that its timers, I/O and
   * console stand still. `condition` is called first, then after each round, and once more before a sleep. The first true
   * ends the wait, so `condition` may have side effects.
   * @returns SUCCESS, TIMEDOUT, or INTERRUPTED (by `job.interrupt`, or because a handler closed the context)
   * @throws PAMIR_WOULD_BLOCK on a page's own thread, which must not block; PAMIR_NOT_ISOLATED if tasks share no memory;
   *   what `advance()` throws
   */
  advanceUntil(condition: () => boolean, options: WaitOptions = NO_OPTIONS): Result {
    return this.#advanceUntil("advanceUntil()", condition, options);
  }

  /**
   * Resolves with an i32 word of a region of this task, once `predicate` is true of it. Advances meanwhile. The task that
   * changes the word must wake this one: by a put or rmw with `notify`, or by a message after the change. Bytes written
   * before the word changed are visible. `predicate` is called as often as the condition of `advanceUntil()`.
   * @param offset byte offset of the word in the region, a multiple of 4
   * @throws PAMIR_INVAL, PAMIR_BOUNDS; PAMIR_CLOSED also if the region is closed meanwhile; as progress()
   */
  async waitWord(
    region: MemRegion,
    offset: number,
    predicate: (value: number) => boolean,
    options: ProgressOptions = NO_OPTIONS,
  ): Promise<number> {
    const read = this.#wordReader("waitWord", region, offset, predicate);
    let value = 0;
    await this.#waits.until(
      "waitWord()",
      () => {
        value = read();
        return isMet(PREDICATE, predicate(value));
      },
      options,
    );
    return value;
  }

  /**
   * As waitWord(), but blocks the thread, as advanceUntil() does.
   * @returns as advanceUntil()
   * @throws PAMIR_INVAL, PAMIR_BOUNDS, PAMIR_CLOSED; as advanceUntil()
   */
  waitWordSync(
    region: MemRegion,
    offset: number,
    predicate: (value: number) => boolean,
    options: WaitOptions = NO_OPTIONS,
  ): Result {
    const read = this.#wordReader("waitWordSync", region, offset, predicate);
    return this.#advanceUntil("waitWord()", () => isMet(PREDICATE, predicate(read())), options);
  }

  /** Reads a word of a region of this task, as long as that is open. */
  #wordReader(call: string, region: unknown, offset: unknown, predicate: unknown): () => number {
    this.#checkOpen(call);
    checkOwn(`region of ${call}()`, region, this.#task.memory.words);
    checkFunction(`predicate of ${call}()`, predicate);
    if (typeof offset !== "number" || offset !== offset >>> 0 || offset % 4 !== 0) {
      throw new PamiError("PAMIR_INVAL", `offset of ${call}() is ${show(offset)}, not a multiple of 4 from 0`);
    }
    if (offset + 4 > region.length) {
      throw new PamiError("PAMIR_BOUNDS", `${call}() of a word at offset ${offset} of a region of ${region.length}`);
    }
    const pointer = region.bytes.byteOffset + offset;
    return () => {
      if (region.closed) throw new PamiError("PAMIR_CLOSED", `${call}(): the region is closed`);
      // SYNC park (word): pairs with the change and the ring of an rmw with RMW_NOTIFY, as of what a sleeper looks at.
      return this.#task.kernel.loadWord(pointer) | 0;
    };
  }

  #advanceUntil(wait: WaitName, condition: () => boolean, options: WaitOptions): Result {
    this.#checkAdvance(1);
    checkFunction(CONDITION, condition);
    const timeout = checkWait("advanceUntil()", options);
    const { mayBlock, whyPrivate } = this.#task.parker;
    if (whyPrivate !== "") {
      throw new PamiError(
        "PAMIR_NOT_ISOLATED",
        `advanceUntil() would get no messages: ${whyPrivate}. Await progress()`,
      );
    }
    if (!mayBlock) {
      throw new PamiError("PAMIR_WOULD_BLOCK", "advanceUntil() on a thread that must not block: await progress()");
    }
    // A condition may do something each time it is asked, as a lock by compare-set does: the first true must not be lost.
    if (isMet(CONDITION, condition())) return SUCCESS;
    const { parker } = this.#task;
    const interrupts = this.#task.interruptsTaken;
    // The same loop as a caller's of advance(), without an object for the wait: what mostly comes soon costs no more.
    const looked = timeout > 0 && parker.mayLook(this.#waits.spins, this.#spin, false);
    let found = false;
    for (let look = 0; looked && look < parker.shortLooks && !this.#isInterrupted(interrupts); look++) {
      if (this.advance() > 0) found = true;
      if (!isMet(CONDITION, condition())) continue;
      // An event of the first look is no gain of a spin: on one core, a woken peer answers before this thread goes on. Such
      // wins paid for 3,500 lost spins a second; now some 30 are lost.
      if (look > 0) parker.won(this.#waits.spins);
      else parker.stayedAwake();
      return SUCCESS;
    }
    return this.#waitUntil(wait, condition, timeout, looked, found, interrupts);
  }

  #spinOn(look: () => boolean): boolean {
    this.#checkAdvance(1);
    const { parker } = this.#task;
    if (!parker.mayBlock || !parker.mayLook(this.#waits.spins, this.#spin, false)) return false;
    for (let count = 1; count <= SPIN_LOOKS && !this.#closed; count++) {
      if (!look()) {
        if (count % LOOKS_PER_ADVANCE === 0) this.advance();
        continue;
      }
      // As in #advanceUntil().
      if (count > 1) parker.won(this.#waits.spins);
      else parker.stayedAwake();
      return true;
    }
    return false;
  }

  /** What advanceUntil() does behind its first looks. @param interrupts those of before its begin */
  #waitUntil(
    wait: WaitName,
    condition: () => boolean,
    timeout: number,
    looked: boolean,
    found: boolean,
    interrupts: number,
  ): Result {
    const isStopped = () => this.#isInterrupted(interrupts);
    const core = this.#core;
    let satisfied = false;
    const awaited: Awaited = this.#waits.awaited(
      wait,
      (rounds) => {
        // True where the last look before the sleep has found it so.
        if (satisfied || isStopped()) return true;
        if (this.advance(rounds) > 0) awaited.found = true;
        satisfied = isMet(CONDITION, condition());
        // An advance without events has seen the interrupt, and no task rings for it again.
        return satisfied || isStopped();
      },
      () => {
        if (isStopped() || core.arm()) return true;
        // Once more, now that the bell is armed: it may be about what others do, as to another context that it advances.
        satisfied = isMet(CONDITION, condition());
        if (satisfied || isStopped()) return true;
        return core.activity.busy !== 0 && core.hasOwnWork();
      },
      found,
    );
    const over = this.#task.parker.wait(awaited, timeout, this.#spin, looked);
    if (satisfied) return SUCCESS;
    if (!over) return TIMEDOUT;
    this.#task.takeInterrupts();
    return INTERRUPTED;
  }

  /** Whether a wait ends without what it waits for. @param interrupts those of before its begin */
  #isInterrupted(interrupts: number): boolean {
    return this.#closed || this.#task.interrupts !== interrupts;
  }

  /**
   * Waits for an event without blocking the thread. The event is processed here or in another wait of this context. It also
   * resolves, with 0 events, when another wait of this context resolves, because the code behind that wait may have made
   * the caller's condition true.
   * @returns the number of events
   * @throws PAMIR_TIMEDOUT, PAMIR_CANCELED (the cause is the signal's reason), PAMIR_INTERRUPTED, PAMIR_CLOSED; what
   *   `advance()` throws
   */
  progress(options: ProgressOptions = NO_OPTIONS): Promise<number> {
    return this.#waits.progress(options);
  }

  /**
   * Ends the context. No handler or callback of it is called any more. Its pending queue is dropped, and so are messages
   * that came but were not dispatched. Messages that it sent are still delivered. Then its endpoint has ended for the other
   * tasks: their sends to it complete with SHUTDOWN. Within a handler or callback, the rest of the round is dropped, and the
   * context ends with the round.
   */
  close(): void {
    this.#closed = true;
    this.#isGuarded = true;
    this.#core.close();
  }

  /** Whether close() has been called. */
  get closed(): boolean {
    return this.#closed;
  }

  /** @internal What a geometry of this context needs of it. */
  get host(): GeometryContext {
    return {
      task: this.#task,
      core: this.#core,
      spin: (look) => this.#spinOn(look),
      spins: this.#waits.spins,
      advanceUntil: (condition, options) => this.#advanceUntil("collective()", condition, options),
      until: (condition, options, keepsErrors) => this.#waits.until("collective()", condition, options, keepsErrors),
    };
  }

  /** @internal `client.port` of its client. */
  get port(): MessagePort | undefined {
    return this.#task.port;
  }

  /** @internal Whether a client made it. */
  isOf(task: Task): boolean {
    return this.#task === task;
  }

  /** Resolves once the program has been told of the end of an endpoint's task: see Task.onceTold(). */
  #told(to: Endpoint): Promise<void> {
    return new Promise((resolve) => this.#task.onceTold(to, resolve));
  }

  #checkOpen(call: string): void {
    if (this.#closed) throw new PamiError("PAMIR_CLOSED", `${call}() of a context that is closed`);
  }

  /** What a hot call leaves to this: a context that is closed, no parameters, and in debug mode unknown ones. */
  #guard(call: keyof typeof HOT_KEYS, parameters: unknown): void {
    this.#checkOpen(call);
    if (this.#task.observers.isStrict) checkKeys(`parameters of ${call}()`, parameters, HOT_KEYS[call]);
    else checkObject(`parameters of ${call}()`, parameters);
  }

  #checkImmediate(queueImmediate: unknown): void {
    this.#checkOpen("sendImmediate");
    checkFlag("queueImmediate", queueImmediate);
  }

  #checkAdvance(max: number): void {
    if (this.#core.isAdvancing) {
      const where = this.#task.observers.running ?? "a handler or callback";
      throw new PamiError("PAMIR_REENTRANT", `advance() from within ${where}: it is not re-entrant`);
    }
    this.#checkOpen("advance");
    checkInteger("max", max, 1, 2 ** 31);
  }
}

/** Whether it is an integer from 1. */
function isCount(value: number): boolean {
  return typeof value === "number" && value === value >>> 0 && value !== 0;
}

/** A view's bytes, or undefined for none. */
function viewBytes(name: string, view: unknown): Uint8Array | undefined {
  if (view === undefined || view === null) return undefined;
  if (!ArrayBuffer.isView(view)) throw new PamiError("PAMIR_INVAL", `${name} is ${show(view)}, not an ArrayBufferView`);
  return bytesOf(view);
}

markCopy(Context);
