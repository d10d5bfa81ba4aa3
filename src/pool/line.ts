// What two endpoints that call each other's functions share: the codec of their values, and what each has lent.
import {
  type CallOptions,
  type CallSyncOptions,
  type Context,
  codecs,
  type DispatchId,
  EAGAIN,
  type Endpoint,
  type Message,
  SUCCESS,
} from "../index.js";
import { promised } from "../support/promise.js";
import { Loans } from "./lent.js";
import { ABORTED, FUNCTIONS, LENT, packed, RETURNED } from "./wire.js";

/** What this side shares with one endpoint. */
export class Line {
  readonly #context: Context;
  readonly #onLent: () => void;
  readonly to: Endpoint;
  readonly loans: Loans;
  readonly codec = codecs.clone<unknown>({
    numberOf: (part) => this.loans.numberOf(part),
    partOf: (number) => this.loans.partOf(number),
  });
  /** Dispatch ids of the other side's functions, by their numbers. */
  readonly #ids: DispatchId<unknown, unknown>[] = [];
  readonly #onEnd = new Set<() => void>();

  /** @param onLent called when something is lent: the other side may call it from then on */
  constructor(context: Context, to: Endpoint, onLent: () => void) {
    this.#context = context;
    this.to = to;
    this.#onLent = onLent;
    this.loans = new Loans({
      call: (number, name, args) => this.ask(LENT, [number, name, args]),
      aborted: (number, reason) => this.tell(ABORTED, [number, reason]),
      returned: (number) => this.tell(RETURNED, [number]),
    });
  }

  /** Calls a function of the other side by its number. */
  call(number: number, args: readonly unknown[], options?: CallOptions): Promise<unknown> {
    return this.ask(FUNCTIONS + number, packed(args), options);
  }

  /** Calls a dispatch id of the other side. */
  ask(id: number, value: unknown, options?: CallOptions): Promise<unknown> {
    let typed = this.#ids[id];
    if (typed === undefined) {
      typed = { id, request: this.codec, reply: this.codec };
      this.#ids[id] = typed;
    }
    const known = typed;
    const { value: reply, end } = this.loans.during(() => this.#context.call(this.to, known, value, options));
    if (this.loans.size > 0) this.#onLent();
    return end === undefined ? reply : reply.finally(end);
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
    const payload = this.codec.encode(value);
    const context = this.#context;
    if (context.closed || context.send({ to: this.to, dispatch: id, payload }) !== EAGAIN) return;
    context.sendWhenRoom({ to: this.to, dispatch: id, payload }).catch(() => {});
  }

  /** Answers a call: what `make` gives for the value that has come, or a promise of it. */
  answer(bytes: Uint8Array, make: (value: unknown) => unknown): Uint8Array | Promise<Uint8Array> {
    const { value, end } = this.loans.taking(() => this.codec.decode(bytes));
    const made = make(value);
    const awaited = promised(made);
    if (awaited === undefined) {
      end?.();
      return this.codec.encode(made);
    }
    const settled = awaited.then((result) => this.codec.encode(result));
    return end === undefined ? settled : settled.finally(end);
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

/** Gives the bytes of a message to `take`, at once or when all are here. They are in place: valid until `take` returns. */
export function whole<T>(message: Message, take: (bytes: Uint8Array) => T): T | Promise<T> {
  if (message.immediate) return take(message.payload);
  const bytes = new Uint8Array(message.payloadBytes);
  return new Promise((resolve, reject) => {
    message.receive(bytes, (_, result) => {
      if (result !== SUCCESS) return;
      try {
        resolve(take(bytes));
      } catch (error) {
        reject(error as Error);
      }
    });
  });
}
