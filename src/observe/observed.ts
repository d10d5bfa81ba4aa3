// The parts of a context whose job is traced, or in debug mode. They do the same as the plain parts, and also record or time
// it. So the plain parts check nothing on their hot paths.
//
// An arrow goes from a send to its handler. Both sides count the messages of an origin, a target and a dispatch id, which
// come in the order sent. A call and its reply have a number of their own.
import * as L from "../../assembly/layout.js";
import { CompletionQueue } from "../core/completion.js";
import { contextOf, type Endpoint, nameOf } from "../core/endpoint.js";
import type { Handler } from "../core/message/dispatch.js";
import type { Activity } from "../core/progress.js";
import { type Callback, type Result, SUCCESS } from "../core/result.js";
import { WorkQueue } from "../core/work.js";

import type { GivenRegion } from "../memory/regions.js";
import type { Tracer } from "../node/tracer.js";
import { Receiver } from "../protocol/eager/receiver.js";
import type { SendParameters } from "../protocol/eager/send-parameters.js";
import { Sender } from "../protocol/eager/sender.js";
import type { Taken } from "../protocol/eager/unexpected.js";
import type { PutParameters, RmwParameters } from "../protocol/rma/parameters.js";
import { Rma } from "../protocol/rma/rma.js";
import type { Debug } from "./debug.js";

/** Counters by endpoint and dispatch id. */
class Counts {
  readonly #counts = new Map<Endpoint, Int32Array>();
  /** The endpoint of the last message, and its counters: most messages are of the same endpoint as the one before. */
  #endpoint: Endpoint | undefined;
  #last: Int32Array = new Int32Array(0);

  /** Number of the next message, from 0, modulo 2^32. */
  next(endpoint: Endpoint, id: number): number {
    if (endpoint !== this.#endpoint) {
      this.#endpoint = endpoint;
      this.#last = this.#counts.get(endpoint) ?? new Int32Array(L.META_DISPATCH_MASK + 1);
      this.#counts.set(endpoint, this.#last);
    }
    const count = this.#last[id] as number;
    this.#last[id] = count + 1;
    return count;
  }
}

/** The length of a Uint8Array is read in place; `byteLength` of any view is a call into V8 (5 ns). */
const bytesIn = (view: ArrayBufferView | null | undefined): number =>
  view instanceof Uint8Array ? view.length : view == null ? 0 : view.byteLength;

/** Records the events of a context, for its task. */
export class ContextTracer {
  readonly tracer: Tracer;
  /** Number of this context. */
  readonly context: number;
  readonly #sent: Counts;
  readonly #came: Counts;
  /** Number of the call whose handler is about to be called; -1: none. */
  call = -1;
  #fences = 0;

  constructor(tracer: Tracer, own: Endpoint) {
    this.tracer = tracer;
    this.context = contextOf(own);
    this.#sent = new Counts();
    this.#came = new Counts();
  }

  /** Recorded after the send: the message takes longer to arrive than this call. */
  sent(to: Endpoint, id: number, bytes: number): void {
    this.tracer.event(L.TRACE_SEND, this.context, id, to, this.#sent.next(to, id), bytes);
  }

  /** A message has come to a handler, or to the reader of a stream. The next message, or settle(), ends its event. */
  came(origin: Endpoint, id: number, bytes: number, call: number): void {
    if (call < 0) this.tracer.event(L.TRACE_HANDLER, this.context, id, origin, this.#came.next(origin, id), bytes);
    else this.tracer.event(L.TRACE_HANDLER, this.context, L.DISPATCH_ID_CALL, origin, call, bytes);
  }

  transferred(kind: number, to: Endpoint, bytes: number): void {
    this.tracer.event(kind, this.context, 0, to, 0, bytes);
  }

  /** Wraps a fence's callback. */
  fence(to: number, done: Callback): Callback {
    const number = this.#fences++;
    this.tracer.event(L.TRACE_FENCE, this.context, 0, to, number, 0);
    return (cookie, result) => {
      this.tracer.event(L.TRACE_FENCED, this.context, 0, to, number, 0);
      done(cookie, result);
    };
  }

  /** Wraps a handler: records when it runs. */
  handler(id: number, handler: Handler): Handler {
    return (message) => {
      this.came(message.origin, id, message.payloadBytes, this.call);
      this.call = -1;
      return handler(message);
    };
  }

  /** As handler(), for a protocol's handler. */
  ownHandler(id: number, handler: Handler): Handler {
    if (id !== L.DISPATCH_ID_REPLY) return this.handler(id, handler);
    return (message) => {
      const number = message.headerWord(0);
      this.tracer.event(
        L.TRACE_HANDLER,
        this.context,
        L.DISPATCH_ID_REPLY,
        message.origin,
        number,
        message.payloadBytes,
      );
      handler(message);
    };
  }

  /** A message was taken out of a stream. */
  took({ origin, payload, call }: Taken, id: number): void {
    this.came(origin, id, payload.length, call ?? -1);
    this.tracer.settle();
  }
}

export class TracedSender extends Sender {
  readonly #tracing: ContextTracer;
  /** Dispatch id and bytes of the open reservations, by endpoint. */
  readonly #reserved = new Map<Endpoint, { readonly id: number; readonly bytes: number }>();

  constructor(tracing: ContextTracer, ...given: ConstructorParameters<typeof Sender>) {
    super(...given);
    this.#tracing = tracing;
  }

  override sendImmediate(
    to: Endpoint,
    dispatch: number,
    header: ArrayBufferView | null | undefined,
    payload: ArrayBufferView | null | undefined,
    queue: boolean,
  ): Result {
    const result = super.sendImmediate(to, dispatch, header, payload, queue);
    if (result === SUCCESS) this.#tracing.sent(to, dispatch, bytesIn(payload));
    return result;
  }

  override send(parameters: SendParameters): Result {
    const result = super.send(parameters);
    if (result === SUCCESS) this.#tracing.sent(parameters.to, parameters.dispatch, bytesIn(parameters.payload));
    return result;
  }

  override sendOwn(
    to: Endpoint,
    dispatch: number,
    header: Uint8Array,
    payload: Uint8Array | undefined,
    onLocal: Callback | undefined,
    gift?: GivenRegion,
  ): Result {
    const isNumbered = dispatch === L.DISPATCH_ID_CALL || dispatch === L.DISPATCH_ID_REPLY;
    const number = isNumbered ? new DataView(header.buffer, header.byteOffset).getUint32(0, true) : 0;
    const result = super.sendOwn(to, dispatch, header, payload, onLocal, gift);
    if (result !== SUCCESS) return result;
    if (!isNumbered) this.#tracing.sent(to, dispatch, bytesIn(payload));
    else this.#tracing.tracer.event(L.TRACE_SEND, this.#tracing.context, dispatch, to, number, bytesIn(payload));
    return result;
  }

  override reserve(to: Endpoint, id: number, payloadBytes: number, headerBytes: number): number {
    const pointer = super.reserve(to, id, payloadBytes, headerBytes);
    if (pointer > 0) this.#reserved.set(to, { id, bytes: payloadBytes });
    return pointer;
  }

  override commit(to: Endpoint, payloadBytes: number | undefined): void {
    super.commit(to, payloadBytes);
    const { id, bytes } = this.#reserved.get(to) as { id: number; bytes: number };
    this.#tracing.sent(to, id, payloadBytes ?? bytes);
  }
}

export class ObservedReceiver extends Receiver {
  readonly #tracing: ContextTracer | undefined;
  readonly #debug: Debug | undefined;
  readonly #own: Endpoint;

  constructor(
    tracing: ContextTracer | undefined,
    debug: Debug | undefined,
    own: Endpoint,
    ...given: ConstructorParameters<typeof Receiver>
  ) {
    super(...given);
    this.#tracing = tracing;
    this.#debug = debug;
    this.#own = own;
    if (tracing === undefined) return;
    const { handlers } = given[0];
    const { serve } = handlers;
    // The calls have registered their server: a context makes them before its receiver.
    handlers.serve = (handler, message) => {
      tracing.call = message.headerWord(0);
      serve(handler, message);
      tracing.call = -1;
    };
  }

  override advance(rounds: number, errors: unknown[]): number {
    const debug = this.#debug;
    const start = debug === undefined ? 0 : debug.clock.now();
    const found = super.advance(rounds, errors);
    this.#tracing?.tracer.settle();
    if (debug === undefined) return found;
    debug.waitsForHandler(this.#own, this.unexpected.handlerless);
    if (found > 0) debug.found(this.#own, start);
    debug.ended(this.#own);
    return found;
  }
}

/** In debug mode: reports callbacks that take long. */
export class TimedCompletions extends CompletionQueue {
  readonly #debug: Debug;
  readonly #name: string;

  constructor(debug: Debug, own: Endpoint, activity: Activity) {
    super(activity);
    this.#debug = debug;
    this.#name = `a callback in ${nameOf(own)}`;
  }

  override run(errors: unknown[]): number {
    return this.#debug.ran(this.#name, () => super.run(errors));
  }
}

/** In debug mode: reports posted work that takes long. */
export class TimedWork extends WorkQueue {
  readonly #debug: Debug;
  readonly #name: string;

  constructor(debug: Debug, own: Endpoint, activity: Activity) {
    super(activity);
    this.#debug = debug;
    this.#name = `posted work in ${nameOf(own)}`;
  }

  override run(errors: unknown[]): number {
    return this.#debug.ran(this.#name, () => super.run(errors));
  }
}

export class TracedRma extends Rma {
  readonly #tracing: ContextTracer;

  constructor(tracing: ContextTracer, ...given: ConstructorParameters<typeof Rma>) {
    super(...given);
    this.#tracing = tracing;
  }

  override transfer(call: "put" | "get", parameters: PutParameters): Result {
    const result = super.transfer(call, parameters);
    const { to, bytes, local, localOffset = 0 } = parameters;
    const moved = bytes ?? local.length - localOffset;
    if (result === SUCCESS) this.#tracing.transferred(call === "put" ? L.TRACE_PUT : L.TRACE_GET, to, moved);
    return result;
  }

  override rmw(parameters: RmwParameters): Result {
    const result = super.rmw(parameters);
    if (result === SUCCESS) this.#tracing.transferred(L.TRACE_RMW, parameters.to, 0);
    return result;
  }

  override fence(to: Endpoint, onDone: Callback, cookie: unknown): Result {
    return super.fence(to, typeof onDone === "function" ? this.#tracing.fence(to, onDone) : onDone, cookie);
  }

  override fenceAll(onDone: Callback, cookie: unknown): Result {
    return super.fenceAll(typeof onDone === "function" ? this.#tracing.fence(L.NONE, onDone) : onDone, cookie);
  }
}
