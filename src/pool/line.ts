// What two endpoints that call each other's functions share: the codec of their values, and what each has lent.
import {
  type CallOptions,
  type CallSyncOptions,
  type Codec,
  type Context,
  codecs,
  type DispatchId,
  EAGAIN,
  type Endpoint,
  type InPlaceCodec,
  type Message,
  SUCCESS,
} from "../index.js";
import { promise, promised } from "../support/promise.js";
import { Loans } from "./lent.js";
import { ABORTED, LENT, RETURNED } from "./wire.js";

/** Bytes up to which those of an InPlaceCodec are its own. */
const IN_PLACE_MAX = 1 << 20;

/** What this side shares with one endpoint. */
export class Line {
  readonly #context: Context;
  readonly #onLent: () => void;
  readonly to: Endpoint;
  readonly loans: Loans;
  readonly #cloner = codecs.clone<unknown>({
    numberOf: (part) => this.loans.numberOf(part),
    partOf: (number) => this.loans.partOf(number),
  });
  /** For requests and their replies here: both are encoded and decoded at once. */
  readonly #inPlace: InPlaceCodec<unknown> = {
    encode: (value) => this.loans.write(this.#cloner, value),
    decode: (bytes) => this.loans.read(this.#cloner, bytes),
    inPlace: true,
  };
  /** As #inPlace. Its bytes stay as they are: they may wait for room. */
  readonly codec: Codec<unknown> = {
    encode: (value) => {
      const bytes = this.#inPlace.encode(value);
      return bytes.length > IN_PLACE_MAX ? bytes : bytes.slice();
    },
    decode: (bytes) => this.#inPlace.decode(bytes),
  };
  /** Dispatch ids of the other side's functions, by their numbers. */
  readonly #ids: DispatchId<unknown, unknown>[] = [];
  readonly #onEnd = new Set<() => void>();
  /** Messages whose bytes are on their way. */
  readonly #coming = new Set<Promise<void>>();
  /** The next stream's number. */
  #stream = 0;

  /** @param onLent called when something is lent: the other side may call it from then on */
  constructor(context: Context, to: Endpoint, onLent: () => void) {
    this.#context = context;
    this.to = to;
    this.#onLent = onLent;
    this.loans = new Loans({
      call: (number, name, args) => this.ask(LENT, [number, name, args]),
      aborted: (number, reason) => this.#tellAborted(number, reason),
      returned: (number, messages) => this.tell(RETURNED, [number, messages]),
    });
  }

  /** A number for a stream of the other side's. */
  nextStream(): number {
    return this.#stream++;
  }

  /** Calls a dispatch id of the other side. */
  ask(id: number, value: unknown, options?: CallOptions): Promise<unknown> {
    const { reply, end } = this.askOpen(id, value, options);
    return end === undefined ? reply : reply.finally(end);
  }

  /** As ask(). What the value lends stays lent until `end` is called. */
  askOpen(
    id: number,
    value: unknown,
    options?: CallOptions,
  ): { readonly reply: Promise<unknown>; readonly end: (() => void) | undefined } {
    let typed = this.#ids[id];
    if (typed === undefined) {
      typed = { id, request: this.#inPlace, reply: this.#inPlace };
      this.#ids[id] = typed;
    }
    const known = typed;
    const { value: reply, end } = this.loans.during(() => this.#context.call(this.to, known, value, options));
    if (this.loans.size > 0) this.#onLent();
    return { reply, end };
  }

  /** As ask(), but blocks the thread. */
  askSync(id: number, value: unknown, options: CallSyncOptions): unknown {
    const typed = { id, request: this.#inPlace, reply: this.#inPlace };
    const { value: reply, end } = this.loans.during(() => this.#context.callSync(this.to, typed, value, options));
    end?.();
    return reply;
  }

  /** Sends a message that needs no answer. If the other side has ended, nothing needs it. */
  tell(id: number, value: unknown): void {
    const payload = this.codec.encode(value);
    const context = this.#context;
    if (context.closed || context.send({ to: this.to, dispatch: id, payload }) !== EAGAIN) return;
    context.sendWhenRoom({ to: this.to, dispatch: id, payload }).catch(() => {});
  }

  #tellAborted(number: number, reason: unknown): void {
    try {
      this.tell(ABORTED, [number, reason]);
    } catch (error) {
      // A reason that can't be copied keeps no signal from being aborted.
      this.tell(ABORTED, [number, new Error("the reason of the signal can't be copied", { cause: String(error) })]);
    }
  }

  /** Reads the value of a call that has come. @returns it, and what forgets the signals in it, once the call has ended */
  read(bytes: Uint8Array): { readonly value: unknown; readonly end: (() => void) | undefined } {
    return this.loans.taking(() => this.codec.decode(bytes));
  }

  /** Answers a call: what `make` gives for the value that has come, or a promise of it. */
  answer(bytes: Uint8Array, make: (value: unknown) => unknown): Uint8Array | Promise<Uint8Array> {
    const { value, end } = this.read(bytes);
    let settled: Promise<Uint8Array> | undefined;
    try {
      const made = make(value);
      settled = promised(made)?.then((result) => this.codec.encode(result));
      if (settled === undefined) return this.codec.encode(made);
    } finally {
      if (settled === undefined) end?.();
    }
    return end === undefined ? settled : settled.finally(end);
  }

  /**
   * Gives the bytes of a message to `take`, at once or when all are here. They are in place: valid until `take` returns. The
   * promise of a message whose sender ends meanwhile stays pending.
   */
  whole<T>(message: Message, take: (bytes: Uint8Array) => T): T | Promise<T> {
    if (message.immediate) return take(message.payload);
    const bytes = new Uint8Array(message.payloadBytes);
    const [received, tell] = promise<void>();
    this.#coming.add(received);
    return new Promise((resolve, reject) => {
      message.receive(bytes, (_, result) => {
        this.#coming.delete(received);
        try {
          if (result === SUCCESS) resolve(take(bytes));
        } catch (error) {
          reject(error as Error);
        }
        tell();
      });
    });
  }

  /** Calls `heard` once all messages are taken that were sent before the one that is being read: it may be about one of them. */
  inTurn(heard: () => void): void {
    if (this.#coming.size === 0) heard();
    else void Promise.all(this.#coming).then(heard);
  }

  /** Calls back once the other side has ended. @returns what forgets that */
  whenEnded(onEnd: () => void): () => void {
    this.#onEnd.add(onEnd);
    return () => void this.#onEnd.delete(onEnd);
  }

  ended(): void {
    this.loans.close();
    for (const onEnd of this.#onEnd) onEnd();
    this.#onEnd.clear();
  }
}
