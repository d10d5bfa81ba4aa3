// A context: the unit of progress. It belongs to the thread that made it.
import {
  ADVANCE_EVENTS_MASK,
  ADVANCE_NOTICE,
  CONTEXT_CALLS_OFFSET,
  CONTEXT_CLOSED,
  CONTEXT_OPEN,
  CONTEXT_STATE_OFFSET,
  TRACE_DEATH,
  WAIT_ADVANCE_UNTIL,
  WAIT_DRAIN,
  WAIT_ENDED,
  WAIT_FLUSH,
  WAIT_MESSAGES,
  WAIT_ROOM,
  WAIT_WORD,
} from "../../assembly/layout.js";
import { checkFlag, checkFunction, checkKeys, checkObject, checkSignal, type Keys, NO_OPTIONS } from "../core/check.js";
import { type DispatchId, encoded, numberOf, type TypedHandler, untyped } from "../core/codec.js";
import { CompletionQueue } from "../core/completion.js";
import type { DispatchHints, Handler } from "../core/dispatch.js";
import type { Endpoint } from "../core/endpoint.js";
import { endpointOf, nameOf, taskOf } from "../core/endpoint.js";
import { checkInteger, PamiError, show } from "../core/error.js";
import { bodyBytes } from "../core/message.js";
import type { MemRegion } from "../core/region.js";
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
import { type Work, WorkQueue } from "../core/work.js";
import type { Kernel, Memory } from "../kernel/kernel.js";
import { contextBlock, isClosed, type MemoryMap, ordinalOf } from "../memory/map.js";
import type { RegionTable } from "../memory/regions.js";
import { endpointCount, taskAt } from "../node/address.js";
import { ContextEngine } from "../node/engine.js";
import { type Awaited, SHORT_LOOKS } from "../node/park.js";
import type { Tracer } from "../node/tracer.js";
import { ObservedReceiver, TimedCompletions, TimedWork, TracedRma, TracedSender, Trail } from "../observe/observed.js";
import { bytesOf, Calls } from "../protocol/call.js";
import { checkSendHints, Receiver } from "../protocol/eager/receiver.js";
import { SEND_KEYS, Sender, type SendParameters, type TypedSendParameters } from "../protocol/eager/sender.js";
import { Rendezvous } from "../protocol/rendezvous/rendezvous.js";
import {
  PUT_KEYS,
  type PutParameters,
  RMW_KEYS,
  Rma,
  type RmwParameters,
  TRANSFER_KEYS,
  type TransferParameters,
} from "../protocol/rma/rma.js";
import { diagnostics } from "../support/diagnostics.js";
import type { AbortSignalLike } from "../support/like.js";
import type { Chains } from "../transport/net/remote-rendezvous.js";
import type { Buffers } from "../transport/shm/buffers.js";
import { ShmLanes } from "../transport/shm/lanes.js";
import {
  checkProgress,
  checkTimeout,
  checkWait,
  PROGRESS_KEYS,
  type ProgressOptions,
  type WaitHost,
  type WaitOptions,
  Waits,
} from "./waits.js";

/** Options of `client.createContext`. */
export interface ContextOptions {
  /** Bytes that the pending queue may copy (default 1 MiB); calls and replies may go beyond. */
  pendingBytes?: number | undefined;
  /** Bytes of messages without a handler that are kept (default 1 MiB); a larger one waits with its origin for its handler. */
  unexpectedBytes?: number | undefined;
  /** Milliseconds that a wait spins before it parks (default 0.05; 0: parks at once). */
  spin?: number | undefined;
  /** Of payloads that its handlers receive: bytes of a fragment, 64 … 2^30 (default 262,144). At most 1,024 of them. */
  fragment?: number | undefined;
  /** Of the same: fragments that are asked for at a time, 1 … 4 (default 2). */
  depth?: number | undefined;
}

/** Options of `context.call`. */
export interface CallOptions extends ProgressOptions {
  /** At most 65,527 bytes; the handler's `message.header`. Only with a dispatch id that is a number. */
  header?: ArrayBufferView | null | undefined;
}

/** What `context.messages` gives: copies, yours. */
export interface Received<T> {
  /** The endpoint that sent it. */
  readonly origin: Endpoint;
  /** The task that sent it. */
  readonly task: number;
  /** Its header: a copy. */
  readonly header: Uint8Array;
  /** Bytes, or what the codec made of them. */
  readonly payload: T;
  /** Answers it, if it is a call; else undefined. Once; what is not answered keeps its caller waiting. */
  readonly reply: ((value: unknown) => void) | undefined;
}

/** What a context needs from its client. @internal */
export interface ContextHost extends WaitHost {
  readonly kernel: Kernel;
  readonly memory: Memory;
  readonly map: MemoryMap;
  readonly task: number;
  /** Where the job is traced. */
  readonly tracer: Tracer | undefined;
  /** Looks at the task table again: which tasks have ended, and the count of interrupts. */
  refresh(): number;
  /** Whether a task has ended. */
  hasEnded(task: number): boolean;
  /** The error by which a task has ended, if it is known. */
  errorOf(task: number): Error | undefined;
  /** The regions of its task. */
  readonly regions: RegionTable;
  /** The pool of its task. */
  readonly buffers: Buffers;
  /** Gives the heap back what this task has closed and nothing uses any more, and what its pool has idle. */
  reclaim(): void;
  /** The relay's, where tasks share no memory. */
  readonly chains: Chains | undefined;
  contextClosed(context: Context, ordinal: number): void;
}

const CONTEXT_KEYS: Keys<ContextOptions> = {
  pendingBytes: true,
  unexpectedBytes: true,
  spin: true,
  fragment: true,
  depth: true,
};
const CALL_KEYS: Keys<CallOptions> = { ...PROGRESS_KEYS, header: true };

/** Parameters of the calls that check their names in debug mode only. */
const HOT_KEYS = { send: SEND_KEYS, put: PUT_KEYS, get: TRANSFER_KEYS, rmw: RMW_KEYS };

const SPIN_MS = 0.05;
const QUEUE_BYTES = 1024 * 1024;
const NO_HEADER = new Uint8Array(0);

/**
 * The unit of progress: nothing happens on it but in `advance()`, and in the waits, which call that. It belongs to the
 * thread that made it. After close() its methods throw, or reject with, PAMIR_CLOSED.
 */
export class Context {
  /** Number of this context in its task. */
  readonly index: number;
  /** Its endpoint: what other tasks send to. */
  readonly endpoint: Endpoint;

  readonly #host: ContextHost;
  readonly #ordinal: number;
  readonly #block: number;
  readonly #engine: ContextEngine;
  readonly #lanes: ShmLanes;
  readonly #sender: Sender;
  readonly #receiver: Receiver;
  readonly #rma: Rma;
  readonly #rendezvous: Rendezvous;
  readonly #calls: Calls;
  readonly #trail: Trail | undefined;
  /** Who wants to know of an endpoint's end. */
  #watchers: { readonly to: Endpoint; readonly callback: Callback; readonly cookie: unknown }[] = [];
  #inFenceRegion = false;
  readonly #completions: CompletionQueue;
  readonly #work: WorkQueue;
  readonly #spin: number;
  /** Tasks of whose end was told. */
  readonly #endedSeen: Uint8Array;
  /** What handlers and callbacks threw in the round in hand; empty between rounds. */
  readonly #errors: unknown[] = [];
  #advancing = false;
  /** Events processed so far, modulo 2^32. */
  #events = 0;
  #closed = false;
  /** Whether hot calls are looked at more closely: closed, or debug mode, which refuses parameters that do not exist. */
  #isGuarded: boolean;
  readonly #waits: Waits;

  /** @internal */
  constructor(host: ContextHost, index: number, options: ContextOptions) {
    const { kernel, memory, map, task, clock, tracer, debug } = host;
    checkKeys("options of createContext()", options, CONTEXT_KEYS);
    const { pendingBytes = QUEUE_BYTES, unexpectedBytes = QUEUE_BYTES, spin = SPIN_MS } = options;
    checkInteger("pendingBytes", pendingBytes, 0, 2 ** 31);
    checkInteger("unexpectedBytes", unexpectedBytes, 0, 2 ** 31);
    if (typeof spin !== "number" || !(spin >= 0)) {
      throw new PamiError("PAMIR_INVAL", `spin is ${show(spin)}, not a number of milliseconds from 0`);
    }
    const ordinal = ordinalOf(map, task, index);
    this.index = index;
    this.endpoint = endpointOf(task, index);
    const block = contextBlock(map, ordinal);
    const lanes = new ShmLanes(kernel, memory, map, ordinal, () => host.reclaim());
    const completions = debug ? new TimedCompletions(debug, this.endpoint) : new CompletionQueue();
    const engine = new ContextEngine(kernel, map, ordinal);
    const { buffers } = host;
    const base = { kernel, memory, map, clock, ordinal, block, engine, lanes, buffers, completions };
    const trail = tracer && new Trail(tracer, this.endpoint, map);
    this.#host = host;
    this.#isGuarded = debug !== undefined;
    this.#engine = engine;
    this.#spin = spin;
    this.#block = block;
    this.#ordinal = ordinal;
    this.#lanes = lanes;
    this.#endedSeen = new Uint8Array(map.tasks);
    this.#completions = completions;
    this.#trail = trail;
    this.#work = debug ? new TimedWork(debug, this.endpoint) : new WorkQueue();
    const rendezvous = new Rendezvous(base, host.regions, host.chains, options);
    this.#rendezvous = rendezvous;
    this.#sender = trail
      ? new TracedSender(trail, base, rendezvous.offers, host.regions, pendingBytes)
      : new Sender(base, rendezvous.offers, host.regions, pendingBytes);
    const tell = (to: Endpoint, id: number, payload: Uint8Array): void => {
      this.#sender.sendOwn(to, id, NO_HEADER, payload, undefined);
    };
    this.#rma = trail ? new TracedRma(trail, base, pendingBytes, tell) : new Rma(base, pendingBytes, tell);
    const calls = new Calls({
      send: (to, id, header, payload, onSent) => this.#sender.sendOwn(to, id, header, payload, onSent),
      pending: (count) => {
        memory.words[(block + CONTEXT_CALLS_OFFSET) >>> 2] = count;
      },
      advanceSoon: (isSooner) => this.#waits.advanceForCalls(isSooner),
      shutdown: (text, to) => this.#shutdown(text, to),
    });
    this.#calls = calls;
    this.#waits = new Waits(host, {
      endpoint: this.endpoint,
      block,
      spin,
      calls,
      advance: (rounds) => this.advance(rounds),
      events: () => this.#events,
      isAdvancing: () => this.#advancing,
      isClosed: () => this.#closed,
      checkOpen: (call) => this.#checkOpen(call),
      hasWork: () => this.#hasWork(),
      isRestless: () => this.#isRestless(),
    });
    const onReply = trail ? trail.replies(calls.onReply) : calls.onReply;
    const given = [
      base,
      unexpectedBytes,
      calls,
      rendezvous.intake,
      host.regions,
      onReply,
      (to: Endpoint) => this.#targetGone(to),
      () => this.#advancing,
    ] as const;
    const isPlain = trail === undefined && debug === undefined;
    this.#receiver = isPlain ? new Receiver(...given) : new ObservedReceiver(trail, debug, this.endpoint, ...given);
    // SYNC N (open): before it looks at any region; pairs with those who look which contexts may be at one.
    kernel.storeWord(this.#block + CONTEXT_STATE_OFFSET, CONTEXT_OPEN);
    host.refresh();
    for (let other = 0; other < map.tasks; other++) if (host.hasEnded(other)) this.#rma.targetEnded(other);
  }

  /**
   * Sets the handler of a dispatch id (0 … 4095), once. Messages that came before are delivered first, in the next
   * `advance()`.
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
    if (typeof handler !== "function") {
      throw new PamiError("PAMIR_INVAL", `handler is ${show(handler)}, not a function`);
    }
    const number = numberOf(id);
    let plain = typeof id === "object" ? untyped(id, handler as TypedHandler<unknown, unknown>) : (handler as Handler);
    if (this.#host.debug) plain = this.#host.debug.handler(this.endpoint, number, plain);
    if (this.#trail) plain = this.#trail.handler(number, plain);
    this.#receiver.dispatch(number, plain, hints);
  }

  /**
   * Sends a request, and resolves with what the handler of its dispatch id returns over there. Advances meanwhile, as
   * progress() does; calls that are made together go out together. The request is yours again when this returns. What
   * waits for room waits for it in order. A reply that comes after the call was given up is dropped: the handler has run all the same. A thread that blocks in `advanceUntil()`
   * answers with what a handler returns, not with what a promise of it comes to.
   * @param id a number: the request is a view of bytes, or nothing, and so is the reply; or a `DispatchId`
   * @throws the handler's error, as a RemoteError with its name, code and stack; PAMIR_SHUTDOWN (the target has ended;
   *   the error by which its task ended is the cause), PAMIR_TIMEDOUT, PAMIR_CANCELED (by the signal, whose reason is the cause), PAMIR_INTERRUPTED, PAMIR_CLOSED,
   *   PAMIR_INVAL, PAMIR_TOO_LARGE, PAMIR_NO_MEMORY
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
      this.#checkOpen("call");
      this.#sender.checkEndpoint(to);
      const dispatch = numberOf(id);
      const typed = typeof id === "object" ? id : undefined;
      checkKeys("options of call()", options, CALL_KEYS);
      const { timeout, signal, header } = options;
      checkSignal("call()", signal);
      const milliseconds = checkTimeout(timeout);
      const payload = typed === undefined ? viewBytes("request", request) : encoded(typed.request, request);
      const headerBytes = viewBytes("header", header);
      const hints = this.#receiver.hints(dispatch);
      if (hints !== undefined) {
        const headerLength = headerBytes?.length ?? 0;
        checkSendHints(dispatch, hints, headerLength, bodyBytes(headerLength, payload?.length ?? 0));
      }
      if (signal?.aborted) throw this.#waits.canceled("call()", signal);
      const abort = (): void => {
        this.#calls.giveUp(number, this.#waits.canceled("call()", signal as AbortSignalLike));
        this.#host.parker.ring();
      };
      const number = this.#calls.begin(dispatch, headerBytes, payload, {
        to,
        deadline: milliseconds === Number.POSITIVE_INFINITY ? milliseconds : this.#host.clock.now() + milliseconds,
        resolve: (reply) => {
          this.#waits.settled();
          signal?.removeEventListener("abort", abort);
          try {
            resolve(typed === undefined ? reply : typed.reply?.decode(reply));
          } catch (error) {
            reject(error);
          }
        },
        reject: (error) => {
          this.#waits.settled();
          signal?.removeEventListener("abort", abort);
          reject(error);
        },
      });
      signal?.addEventListener("abort", abort, { once: true });
    });
  }

  /**
   * The messages to a dispatch id, one after the other, as copies; the id has no handler. Advances while it waits. What
   * comes meanwhile waits in the unexpected queue: where that is full, nothing more is taken from whoever has sent too
   * much, but for the next message, however long. Leaving the loop leaves what has come there, for another loop or a
   * handler.
   * @param options timeout, for each message, and signal
   * @throws as progress(); PAMIR_DISPATCH_TAKEN
   */
  messages(id: number, options?: ProgressOptions): AsyncGenerator<Received<Uint8Array>, never>;
  messages<Request, Reply>(
    id: DispatchId<Request, Reply>,
    options?: ProgressOptions,
  ): AsyncGenerator<Received<Request>, never>;
  messages(
    id: number | DispatchId<unknown, unknown>,
    options: ProgressOptions = NO_OPTIONS,
  ): AsyncGenerator<Received<unknown>, never> {
    const dispatch = numberOf(id);
    checkProgress("messages()", options);
    return this.#messages(dispatch, typeof id === "object" ? id : undefined, options);
  }

  async *#messages(
    dispatch: number,
    typed: DispatchId<unknown, unknown> | undefined,
    options: ProgressOptions,
  ): AsyncGenerator<Received<unknown>, never> {
    this.#checkOpen("messages");
    const receiver = this.#receiver;
    receiver.openStream(dispatch);
    try {
      for (;;) {
        await this.#waits.until(WAIT_MESSAGES, () => receiver.hasNext(dispatch), options);
        for (let next = receiver.take(dispatch); next !== undefined; next = receiver.take(dispatch)) {
          this.#trail?.took(next, dispatch);
          const { origin, header, payload, call } = next;
          yield {
            origin,
            task: taskOf(origin),
            header,
            payload: typed === undefined ? payload : typed.request.decode(payload),
            reply:
              call === undefined
                ? undefined
                : (value) => this.#calls.reply(origin, call, typed?.reply ? encoded(typed.reply, value) : value),
          };
        }
      }
    } finally {
      receiver.closeStream(dispatch);
    }
  }

  /**
   * Sends a message of up to SEND_IMMEDIATE_MAX bytes (header padded to 8, and payload). Both are copied: they are yours
   * again when it returns. Allocates nothing, unless there is no room. Messages from one endpoint to another are
   * dispatched in the order sent.
   * @param queueImmediate false: EAGAIN rather than a place in the pending queue
   * @returns SUCCESS (sent, or queued here), EAGAIN (no room, and the queue is full), SHUTDOWN (the target has ended),
   *   ENOMEM (no memory for a lane)
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
   * Sends a message of any size, from any view. What has no room waits in the pending queue; the header is copied then,
   * and the payload too unless there is an `onLocal`. Callbacks come in a later `advance()`, never before this returns.
   * @param parameters `dispatch` may be a `DispatchId`, which encodes `payload`: its handler gets the value, and gives
   *   nothing back
   * @returns SUCCESS, EAGAIN, SHUTDOWN or ENOMEM; callbacks of a send that was refused with EAGAIN or ENOMEM are not
   *   called
   * @throws PAMIR_INVAL, PAMIR_TOO_LARGE, PAMIR_CLOSED; what the codec throws
   */
  send(parameters: SendParameters): Result;
  send<Request, Reply>(parameters: TypedSendParameters<Request, Reply>): Result;
  send(given: SendParameters | TypedSendParameters<unknown, unknown>): Result {
    if (this.#isGuarded || typeof given !== "object" || given === null) this.#guard("send", given);
    if (typeof given.dispatch === "object") return this.#sendTyped(given as TypedSendParameters<unknown, unknown>);
    const parameters = given as SendParameters;
    const hints = this.#receiver.hints(parameters.dispatch);
    if (hints !== undefined) {
      const headerBytes = parameters.header?.byteLength ?? 0;
      const total = bodyBytes(headerBytes, parameters.payload?.byteLength ?? 0);
      checkSendHints(parameters.dispatch, hints, headerBytes, total);
    }
    return this.#sender.send(parameters);
  }

  /**
   * As send(), but where that comes to EAGAIN it advances until there is room, asleep in between: for code that computes and
   * has nothing else to do. Blocks the thread, as advanceUntil() does.
   * @param options timeout in milliseconds
   * @returns SUCCESS, SHUTDOWN or ENOMEM as send(); TIMEDOUT or INTERRUPTED: nothing is sent
   * @throws as send(); PAMIR_REENTRANT within a handler or callback, where it must not wait; PAMIR_WOULD_BLOCK,
   *   PAMIR_NOT_ISOLATED; what `advance()` throws
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
    const waited = this.#advanceUntil(WAIT_ROOM, isAccepted, options);
    return waited === SUCCESS ? result : waited;
  }

  #sendTyped(parameters: TypedSendParameters<unknown, unknown>): Result {
    const dispatch = numberOf(parameters.dispatch);
    return this.send({ ...parameters, dispatch, payload: encoded(parameters.dispatch.request, parameters.payload) });
  }

  /**
   * Bytes of header (padded to 8) and payload of a message to an endpoint that is accepted now for certain. A larger one
   * may be accepted too: its lane may be replaced by a larger one, or its payload go in a buffer. It is less than 16 KiB
   * while the target has as many large payloads to read as it may have. Of what is offered it says nothing.
   * @throws PAMIR_INVAL, PAMIR_CLOSED
   */
  room(to: Endpoint): number {
    this.#checkOpen("room");
    return this.#sender.room(to);
  }

  /**
   * Calls `onRoom` in an `advance()` once a message of `bytes` would be accepted, with SUCCESS, with SHUTDOWN if the target
   * ends, or with ENOMEM if there is no memory for its lane. Behind a send that was refused with EAGAIN because as many
   * payloads are offered to the target as may be, once one more may be. Behind one that was refused for want of memory, or of
   * a place in the pending queue, once there is the one or the other: however long others keep that memory, where `bytes` is
   * more than RECV_IMMEDIATE_MAX. Without a callback, returns a promise of the same, and advances meanwhile.
   * @param bytes header, padded to 8, and payload
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
    this.#host.parker.ring();
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
      await this.#waits.until(WAIT_ROOM, () => came !== undefined, options);
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
    throw this.#shutdown(`${nameOf(to)} ended before there was room for ${bytes} bytes`, to);
  }

  /** PAMIR_SHUTDOWN, for the error by which a task ended. */
  #shutdown(text: string, to: Endpoint): PamiError {
    const cause = this.#host.errorOf(taskOf(to));
    return new PamiError("PAMIR_SHUTDOWN", text, cause && { cause });
  }

  /**
   * Calls `onEnd` in an `advance()` with SHUTDOWN once an endpoint has ended (its context was closed, or its task has ended
   * in whatever way) and all that it sent is delivered.
   * Without a callback, returns a promise of the same, and advances meanwhile.
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
    if (this.#receiver.isGone(to)) this.#completions.push(callback, cookie, SHUTDOWN);
    else this.#watchers.push({ to, callback, cookie });
    if (typeof onEnd === "function") return undefined;
    return this.#waits
      .until(WAIT_ENDED, () => hasEnded, onEnd)
      .finally(() => {
        const place = this.#watchers.findIndex((watcher) => watcher.callback === told);
        if (place >= 0) this.#watchers.splice(place, 1);
      });
  }

  /** An endpoint has ended, and what it had sent is delivered. */
  #targetGone(to: Endpoint): void {
    this.#calls.targetEnded(to);
    const told = this.#watchers.filter((watcher) => watcher.to === to);
    if (told.length === 0) return;
    this.#watchers = this.#watchers.filter((watcher) => watcher.to !== to);
    for (const { callback, cookie } of told) this.#completions.push(callback, cookie, SHUTDOWN);
  }

  /**
   * Reserves space in the lane to an endpoint, to be written in place: header and payload go to `client.bytes`, the
   * payload behind the header padded to 8. Until commit() or abort() nothing else goes to that endpoint; others are
   * not held up. One reservation for each endpoint.
   * @returns the offset in `client.bytes` (a multiple of 8), or a negated result: -EAGAIN, -SHUTDOWN, -ENOMEM
   * @throws PAMIR_INVAL (also for more than RECV_IMMEDIATE_MAX, header and payload together), PAMIR_CLOSED
   */
  reserve(to: Endpoint, dispatch: number, payloadBytes: number, headerBytes = 0): number {
    this.#checkOpen("reserve");
    return this.#sender.reserve(to, dispatch, payloadBytes, headerBytes);
  }

  /**
   * Sends what was written into the reservation, header and all. To a target that has ended meanwhile it goes nowhere.
   * @param payloadBytes fewer than were reserved (default: all)
   * @throws PAMIR_INVAL without a reservation, or for more than were reserved
   */
  commit(to: Endpoint, payloadBytes?: number): void {
    this.#checkOpen("commit");
    this.#sender.commit(to, payloadBytes);
  }

  /** Gives the reservation back; nothing is sent. @throws PAMIR_INVAL without a reservation */
  abort(to: Endpoint): void {
    this.#checkOpen("abort");
    this.#sender.abort(to);
  }

  /**
   * Writes bytes of a local region into a region of the target's task, which need not do anything for it. `notify` tells it,
   * behind the bytes, by a message or a word, and wakes it; without, it is neither told nor woken. A message goes out once
   * the bytes are there, at the latest in an `advance()` of this context; a word is changed by whatever moves the bytes, and
   * not if they were refused. Read before it returns, the parameter object may be used
   * again; the local bytes only after `onLocal` (or a fence). Up to 262,144 bytes without callbacks, with nothing unfinished
   * before them, are there when it returns (4,096 where the job has an engine thread); all else goes on in this context's
   * `advance()`, or in the engine thread, and ends with its task. Puts are ordered by fences alone: not with messages, nor
   * with rmws. The target's context may be closed.
   * @returns SUCCESS, EAGAIN (no room for another descriptor, nor in the pending queue), SHUTDOWN (its task has ended)
   * @throws PAMIR_INVAL, PAMIR_BOUNDS, PAMIR_STALE, PAMIR_CLOSED
   */
  put(parameters: PutParameters): Result {
    if (this.#isGuarded || typeof parameters !== "object" || parameters === null) this.#guard("put", parameters);
    return this.#rma.transfer("put", parameters);
  }

  /** As put(), the other way: `onLocal` says that the bytes are in the local region. */
  get(parameters: TransferParameters): Result {
    if (this.#isGuarded || typeof parameters !== "object" || parameters === null) this.#guard("get", parameters);
    return this.#rma.transfer("get", parameters);
  }

  /**
   * Changes one word of a region of the target's task atomically, against every task's rmw; `notify` wakes that task, or
   * tells it as a put's does. Rmws are unordered. Without `onDone` or a `notify` other than `true` it is done, and the old
   * value there, when it returns.
   * @returns as put()
   * @throws as put(), and PAMIR_INVAL for an unknown operation or type, or a word that is not aligned
   */
  rmw(parameters: RmwParameters): Result {
    if (this.#isGuarded || typeof parameters !== "object" || parameters === null) this.#guard("rmw", parameters);
    return this.#rma.rmw(parameters);
  }

  /**
   * Tells, in an `advance()`, when every transfer that this context has issued to an endpoint before this is complete:
   * at the target, for everybody to see. What is issued later is not waited for. `done` gets ERROR if a transfer was
   * refused since the last fence, because its region had been closed meanwhile (also one to another endpoint, where
   * several share an injection FIFO), and SHUTDOWN if one was not begun, because its target had ended.
   * @returns SUCCESS, or EAGAIN (no room in the pending queue: advance, and try again)
   * @throws PAMIR_INVAL, PAMIR_CLOSED
   */
  fence(to: Endpoint, done: Callback, cookie?: unknown): Result {
    this.#checkOpen("fence");
    return this.#rma.fence(to, done, cookie);
  }

  /** As fence(), to all endpoints; always SUCCESS. `done` gets SUCCESS only if each came to that. */
  fenceAll(done: Callback, cookie?: unknown): Result {
    this.#checkOpen("fenceAll");
    return this.#rma.fenceAll(done, cookie);
  }

  /** Begins a fence region, as PAMI has them; fences need none here. @throws PAMIR_FENCE within a fence region */
  fenceBegin(): void {
    this.#checkOpen("fenceBegin");
    if (this.#inFenceRegion) throw new PamiError("PAMIR_FENCE", "fenceBegin() within a fence region: they do not nest");
    this.#inFenceRegion = true;
  }

  /** Ends a fence region; nothing waits for it. @throws PAMIR_FENCE outside of a fence region */
  fenceEnd(): void {
    this.#checkOpen("fenceEnd");
    if (!this.#inFenceRegion) throw new PamiError("PAMIR_FENCE", "fenceEnd() without fenceBegin()");
    this.#inFenceRegion = false;
  }

  /**
   * Resolves once every transfer issued before this is complete; advances meanwhile.
   * @throws as progress(); PAMIR_STALE if a transfer was refused, because its region had been closed meanwhile, or the
   *   engine thread had ended, PAMIR_SHUTDOWN if one was not begun, because its target had ended
   */
  async flush(options: ProgressOptions = NO_OPTIONS): Promise<void> {
    checkProgress("flush()", options);
    let came: Result | undefined;
    this.fenceAll((_, result) => {
      came = result;
    });
    await this.#waits.until(WAIT_FLUSH, () => came !== undefined, options);
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
   * As flush(), but blocks the thread, as advanceUntil() does, and gives a result.
   * @param options timeout in milliseconds
   * @returns SUCCESS; ERROR: a transfer was refused; SHUTDOWN: one was not begun; TIMEDOUT, INTERRUPTED
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
    const waited = this.#advanceUntil(WAIT_FLUSH, () => came !== undefined, options);
    return came ?? waited;
  }

  /**
   * Lets go of what this context holds for endpoints that it will not talk to for a while: the memory of the lanes to
   * them, 24 KiB or more each, which a target frees once it has read what is in it, and the idle buffers of its task.
   * Whatever is sent later takes it up again by itself.
   * @returns SUCCESS, or EAGAIN: a lane is full, advance and try again; the others are let go of
   * @throws PAMIR_INVAL for this context's own endpoint, or while a message or a reservation is under way to one
   */
  purge(endpoints: readonly Endpoint[]): Result {
    this.#checkOpen("purge");
    return this.#sender.purge(endpoints, this.endpoint);
  }

  /**
   * Takes up again what purge() let go of, or for the first time: the next message need not.
   * @returns SUCCESS, EAGAIN (the target has not yet read what was sent before purge()), ENOMEM or SHUTDOWN, the last
   *   that was none, where endpoints differ
   * @throws PAMIR_INVAL
   */
  resume(endpoints: readonly Endpoint[]): Result {
    this.#checkOpen("resume");
    return this.#sender.resume(endpoints, this.endpoint);
  }

  /**
   * Whether all that was issued here is out: nothing waits for room, no transfer is under way, no callback is due. A task
   * that ends before takes what is pending with it.
   */
  get drained(): boolean {
    const isOut = this.#sender.busy === 0 && this.#rma.busy === 0 && this.#rendezvous.offers.count === 0;
    return isOut && this.#completions.length === 0;
  }

  /**
   * Resolves once all that was issued here is out, also what is issued meanwhile, as replies are: give a `timeout` where
   * others go on calling. Advances.
   * @throws as progress()
   */
  async drain(options: ProgressOptions = NO_OPTIONS): Promise<void> {
    await this.drainUntil(() => this.drained, options);
  }

  /** @internal Advances until the condition holds, which is about several contexts. */
  drainUntil(isOut: () => boolean, options: ProgressOptions): Promise<void> {
    return this.#waits.until(WAIT_DRAIN, isOut, options);
  }

  /**
   * Runs `work` at the next `advance()`, and again at each while it returns EAGAIN. For this thread only: another
   * thread sends a message instead.
   * @throws PAMIR_INVAL, PAMIR_CLOSED
   */
  post(work: Work): void {
    this.#checkOpen("post");
    if (typeof work !== "function") throw new PamiError("PAMIR_INVAL", `work is ${show(work)}, not a function`);
    this.#work.push(work);
    this.#host.parker.ring();
  }

  /**
   * Makes progress: calls handlers, callbacks and posted work. Returns after the first round that had any event, or
   * after `max` idle rounds.
   * @returns the number of events processed; 0: none
   * @throws PAMIR_REENTRANT within a handler or callback; what they threw, once the round is finished (several: an
   *   AggregateError in order)
   */
  advance(max = 1): number {
    if (this.#advancing || this.#closed || !isCount(max)) this.#checkAdvance(max);
    this.#advancing = true;
    const busy =
      this.#completions.length +
      this.#sender.busy +
      this.#work.length +
      this.#receiver.busy +
      this.#rma.busy +
      this.#rendezvous.busy;
    if (busy !== 0) return this.#advanceBusily();
    const errors = this.#errors;
    const found = this.#receiver.advance(max, errors);
    // A batch may have emptied the lane of a task that has ended, and a handler may have closed this.
    const unusual =
      found > ADVANCE_EVENTS_MASK || errors.length > 0 || (found !== 0 && (this.#receiver.hasOrphans || this.#closed));
    if (unusual) return this.#afterRound(found, 0, errors);
    this.#advancing = false;
    if (found !== 0) this.#events = (this.#events + found) | 0;
    return found;
  }

  /**
   * Advances until `condition()` is true, spinning for a while and then asleep. Blocks the thread: its timers, I/O and
   * console stand still. `condition` is asked first, then once after each round, and once more before a sleep; the first
   * true ends the wait, so it may do something each time it is asked.
   * @returns SUCCESS, TIMEDOUT, or INTERRUPTED (by `job.interrupt`, or because the context was closed in a handler)
   * @throws PAMIR_WOULD_BLOCK on a page's own thread, which must not block; PAMIR_NOT_ISOLATED where tasks share no memory;
   *   what `advance()` throws
   */
  advanceUntil(condition: () => boolean, options: WaitOptions = NO_OPTIONS): Result {
    return this.#advanceUntil(WAIT_ADVANCE_UNTIL, condition, options);
  }

  /**
   * Resolves with an i32 of a region of this task once `predicate` is true of it; advances meanwhile. What changes the word
   * must wake this task: a put or rmw with `notify`, or any message behind the change. What was written before the word was
   * changed is there. The predicate is asked as `advanceUntil()` asks its condition.
   * @param offset byte of the word in the region: a multiple of 4
   * @throws PAMIR_INVAL, PAMIR_BOUNDS; PAMIR_CLOSED also where the region is closed meanwhile; as progress()
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
      WAIT_WORD,
      () => {
        value = read();
        return predicate(value);
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
    return this.#advanceUntil(WAIT_WORD, () => predicate(read()), options);
  }

  /** Reads a word of a region of this task, as long as that is open. */
  #wordReader(call: string, region: unknown, offset: unknown, predicate: unknown): () => number {
    this.#checkOpen(call);
    this.#rma.checkOwn(`region of ${call}()`, region);
    if (typeof predicate !== "function") {
      throw new PamiError("PAMIR_INVAL", `predicate of ${call}() is ${show(predicate)}, not a function`);
    }
    if (typeof offset !== "number" || offset !== offset >>> 0 || offset % 4 !== 0) {
      throw new PamiError("PAMIR_INVAL", `offset of ${call}() is ${show(offset)}, not a multiple of 4 from 0`);
    }
    if (offset + 4 > region.length) {
      throw new PamiError("PAMIR_BOUNDS", `${call}() of a word at offset ${offset} of a region of ${region.length}`);
    }
    const pointer = region.bytes.byteOffset + offset;
    return () => {
      if (region.closed) throw new PamiError("PAMIR_CLOSED", `${call}(): the region is closed`);
      // SYNC P (word): pairs with the change and the ring of an rmw with RMW_NOTIFY, as of what a sleeper looks at.
      return this.#host.kernel.loadWord(pointer) | 0;
    };
  }

  #advanceUntil(kind: number, condition: () => boolean, options: WaitOptions): Result {
    this.#checkAdvance(1);
    checkFunction("condition of advanceUntil()", condition);
    const timeout = checkWait("advanceUntil()", options);
    const { mayBlock, whyPrivate } = this.#host.parker;
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
    if (condition()) return SUCCESS;
    const { parker } = this.#host;
    const interrupts = this.#host.interruptsTaken();
    // The same loop as a caller's of advance(), without an object for the wait: what mostly comes soon costs no more.
    const looked = timeout > 0 && parker.mayLook(this.#waits.spins, this.#spin, false);
    let found = false;
    for (let look = 0; looked && look < SHORT_LOOKS && !this.#isInterrupted(interrupts); look++) {
      if (this.advance() > 0) found = true;
      if (!condition()) continue;
      parker.won(this.#waits.spins);
      return SUCCESS;
    }
    return this.#waitUntil(kind, condition, timeout, looked, found, interrupts);
  }

  /** What advanceUntil() does behind its first looks. @param interrupts those of before its begin */
  #waitUntil(
    kind: number,
    condition: () => boolean,
    timeout: number,
    looked: boolean,
    found: boolean,
    interrupts: number,
  ): Result {
    const isStopped = () => this.#isInterrupted(interrupts);
    let satisfied = false;
    const awaited: Awaited = this.#waits.awaited(
      kind,
      (rounds) => {
        // True where the last look before the sleep has found it so.
        if (satisfied || isStopped()) return true;
        if (this.advance(rounds) > 0) awaited.found = true;
        satisfied = condition();
        // An interrupt is seen in an advance without events, and nobody rings for it again.
        return satisfied || isStopped();
      },
      // Once more, now that the bell is armed: it may be about what others do, as to another context that it advances.
      () => {
        satisfied = condition();
        return satisfied || isStopped() || this.#hasWork();
      },
      found,
    );
    const over = this.#host.parker.wait(awaited, timeout, this.#spin, looked);
    if (satisfied) return SUCCESS;
    if (!over) return TIMEDOUT;
    this.#host.takeInterrupts();
    return INTERRUPTED;
  }

  /** Whether a wait ends without what it waits for. @param interrupts those of before its begin */
  #isInterrupted(interrupts: number): boolean {
    return this.#closed || this.#host.interrupts() !== interrupts;
  }

  /**
   * Waits without blocking the thread until there was at least one event, and processes it, unless another wait of this
   * context has. It ends too where one of those has ended: what went on behind that one may be what the caller waits for.
   * @returns the number of events; 0 in that last case only
   * @throws PAMIR_TIMEDOUT, PAMIR_CANCELED (by the signal, whose reason is the cause), PAMIR_INTERRUPTED, PAMIR_CLOSED;
   *   what `advance()` throws
   */
  progress(options: ProgressOptions = NO_OPTIONS): Promise<number> {
    return this.#waits.progress(options);
  }

  /**
   * Ends the context: its lanes are given up, nothing of it is called any more; what is pending is dropped, and what has
   * come and was not dispatched. What it had sent is delivered still, then its endpoint has ended for the others: what they
   * send to it comes to SHUTDOWN. Within a handler or callback, the rest of the round is dropped, and the context ends with
   * the round.
   */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#isGuarded = true;
    this.#receiver.stop();
    this.#completions.stop();
    this.#rma.stop();
    if (!this.#advancing) this.#end();
  }

  /** Nobody may be reading a lane when the others are told that this context is gone: they take the lanes back. */
  #end(): void {
    this.#sender.close();
    this.#rendezvous.close();
    this.#host.kernel.storeWord(this.#block + CONTEXT_STATE_OFFSET, CONTEXT_CLOSED);
    // Those of this task to which nobody else looks: its own to itself, and those of contexts that closed before.
    this.#lanes.reclaim(this.#ordinal);
    this.#host.contextClosed(this, this.#ordinal);
    this.#calls.giveUpAll(
      () => new PamiError("PAMIR_CLOSED", `call() of ${nameOf(this.endpoint)}: the context was closed`),
    );
    this.#host.parker.ring();
  }

  /** Whether close() has been called. */
  get closed(): boolean {
    return this.#closed;
  }

  /** @internal Whether a client made it. */
  isOf(host: ContextHost): boolean {
    return this.#host === host;
  }

  /** Whether an advance would do something. */
  #hasWork(): boolean {
    if (this.#completions.length > 0 || this.#work.fresh || this.#receiver.hasDeliverable()) return true;
    if (this.#rma.hasWork || this.#rendezvous.hasWork) return true;
    if (this.#sender.hasRoom()) return true;
    return this.#host.kernel.peek(this.#block) !== 0;
  }

  /** Whether something is awaited that nobody rings for. */
  #isRestless(): boolean {
    const retry = this.#sender.takeRetrySoon();
    return retry || this.#work.length > 0;
  }

  #advanceBusily(): number {
    const errors = this.#errors;
    let events = 0;
    this.#rma.begin();
    if (this.#completions.length > 0) events += this.#completions.run(errors);
    if (this.#rma.busy > 0) events += this.#rma.advance(errors);
    if (this.#rendezvous.busy > 0) events += this.#rendezvous.advance();
    if (this.#receiver.busy > 0) events += this.#receiver.deliverUnexpected(errors);
    const found = this.#closed ? 0 : this.#receiver.advance(1, errors);
    if (this.#sender.busy > 0 && !this.#closed) events += this.#sender.flush();
    if (this.#work.length > 0 && !this.#closed) events += this.#work.run(errors);
    if (found > ADVANCE_EVENTS_MASK || errors.length > 0 || this.#closed || this.#receiver.hasOrphans) {
      return this.#afterRound(found, events, errors);
    }
    this.#advancing = false;
    this.#events = (this.#events + found + events) | 0;
    return found + events;
  }

  #afterRound(found: number, others: number, errors: unknown[]): number {
    let events = (found & ADVANCE_EVENTS_MASK) + others;
    // An interrupt moves the notice too, but is no event: it ends the waits.
    if ((found & ADVANCE_NOTICE) !== 0) events += this.#noticed();
    if (this.#receiver.hasOrphans && !this.#closed) this.#receiver.reclaimOrphans();
    this.#advancing = false;
    this.#events = (this.#events + events) | 0;
    if (this.#closed) this.#end();
    if (errors.length === 0) return events;
    const thrown = errors.splice(0);
    if (thrown.length === 1) throw thrown[0];
    throw new AggregateError(thrown, `${thrown.length} handlers or callbacks threw in one advance()`);
  }

  /** The task table has changed, or a context has closed: deals with the endpoints that have ended since. How many. */
  #noticed(): number {
    let count = 0;
    const { map, kernel } = this.#host;
    const notice = this.#host.refresh();
    const ended: number[] = [];
    for (let task = 0; task < map.tasks; task++) if (this.#host.hasEnded(task)) ended.push(task);
    if (this.#engine.hasEnded()) {
      const hadBegun = this.#engine.hadBegun();
      this.#rma.engineEnded(hadBegun);
      this.#rendezvous.engineEnded(hadBegun);
    }
    // Once the notice is acknowledged, the regions of those who have ended may be anybody's.
    for (const task of ended) {
      this.#rma.targetEnded(task);
      for (let index = 0; index < map.contexts; index++) this.#rendezvous.ended(ordinalOf(map, task, index));
      if (this.#endedSeen[task] === 0) this.#tellOfEnd(task);
    }
    this.#receiver.acknowledgeNotice(notice, ended);
    for (let ordinal = 0; ordinal < endpointCount(map); ordinal++) {
      const isOver = this.#host.hasEnded(taskAt(map, ordinal)) || isClosed(kernel, map, ordinal);
      if (!isOver || this.#receiver.hasEnded(ordinal)) continue;
      count++;
      this.#sender.targetEnded(ordinal);
      this.#rendezvous.ended(ordinal);
      this.#receiver.originEnded(ordinal);
    }
    this.#receiver.reclaimOrphans();
    return count;
  }

  /** Tells those who look on that a task has ended. */
  #tellOfEnd(task: number): void {
    this.#endedSeen[task] = 1;
    this.#host.tracer?.instant(TRACE_DEATH, task, this.#host.clock.now());
    if (diagnostics.ended.hasSubscribers) diagnostics.ended.publish({ context: this, task });
  }

  #checkOpen(call: string): void {
    if (this.#closed) throw new PamiError("PAMIR_CLOSED", `${call}() of a context that is closed`);
  }

  /** What a hot call leaves to this: a context that is closed, no parameters, and in debug mode unknown ones. */
  #guard(call: keyof typeof HOT_KEYS, parameters: unknown): void {
    this.#checkOpen(call);
    if (this.#host.debug) checkKeys(`parameters of ${call}()`, parameters, HOT_KEYS[call]);
    else checkObject(`parameters of ${call}()`, parameters);
  }

  #checkImmediate(queueImmediate: unknown): void {
    this.#checkOpen("sendImmediate");
    checkFlag("queueImmediate", queueImmediate);
  }

  #checkAdvance(max: number): void {
    if (this.#advancing) {
      const where = this.#host.debug?.running ?? "a handler or callback";
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
