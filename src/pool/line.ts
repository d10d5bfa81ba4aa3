// What two endpoints that call each other's functions share: the codec of their values, and what each has lent.
import {
  type CallOptions,
  type CallScope,
  type CallSyncOptions,
  type Context,
  codecs,
  type DispatchId,
  EAGAIN,
  type Endpoint,
  type InPlaceCodec,
} from "../index.js";
import { promised } from "../support/promise.js";
import { Loans } from "./lent.js";
import { ABORTED, LENT, RETURNED } from "./wire.js";

/** The value of a call that has come. */
export interface Arrived {
  readonly line: Line;
  readonly value: unknown;
  /** Forgets the signals in the value, once the call has ended. */
  readonly end: (() => void) | undefined;
}

/** What sets handlers of calls and messages by their dispatch ids. */
export interface Listener {
  /** Of calls: the handler gives the reply, or a promise of it. */
  answer(id: number, handler: (arrived: Arrived, origin: Endpoint, call: CallScope) => unknown): void;
  /** Of messages. */
  hear(id: number, handler: (line: Line, value: unknown) => void): void;
}

/** Answers a call: with what `make` gives for the value that has come, or a promise of it. */
export function answer({ value, end }: Arrived, make: (value: unknown) => unknown): unknown {
  if (end === undefined) return make(value);
  let settled: Promise<unknown> | undefined;
  try {
    const made = make(value);
    settled = promised(made)?.finally(end);
    return settled ?? made;
  } finally {
    if (settled === undefined) end();
  }
}

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
  /** Of calls and their replies. */
  readonly codec: InPlaceCodec<unknown> = {
    encode: (value, _, parts) => this.loans.write(this.#cloner, value, parts),
    decode: (bytes, _, body) => this.loans.read(this.#cloner, bytes, body),
    inPlace: true,
    hasParts: true,
  };
  /** Dispatch ids of the other side's functions, by their numbers. */
  readonly #ids: DispatchId<unknown, unknown>[] = [];
  readonly #onEnd = new Set<() => void>();
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
      typed = { id, request: this.codec, reply: this.codec };
      this.#ids[id] = typed;
    }
    const known = typed;
    const { value: reply, end } = this.loans.during(() => this.#context.call(this.to, known, value, options));
    if (this.loans.size > 0) this.#onLent();
    return { reply, end };
  }

  /** As ask(), but blocks the thread. */
  askSync(id: number, value: unknown, options: CallSyncOptions): unknown {
    const typed = { id, request: this.codec, reply: this.codec };
    const { value: reply, end } = this.loans.during(() => this.#context.callSync(this.to, typed, value, options));
    end?.();
    return reply;
  }

  /** Sends a message that needs no answer. If the other side has ended, nothing needs it. */
  tell(id: number, value: unknown): void {
    const payload = this.codec.encode(value).slice();
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

  /** Reads the value of a call that has come. */
  read(bytes: Uint8Array, body?: Uint8Array): Arrived {
    const { value, end } = this.loans.taking(() => this.codec.decode(bytes, undefined, body));
    return { line: this, value, end };
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
