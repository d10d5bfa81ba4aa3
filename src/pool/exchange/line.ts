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
  PamiError,
  type Parts,
  type Place,
} from "../../index.js";
import { promised } from "../../support/promise.js";
import { type End, Loans, movedOf, numberOfMoved } from "./lent.js";
import { checkCopied, checkMoved, detachMoved, isMoved, type Moved, nested, postMoved } from "./move.js";
import { NotCome, PortMover } from "./mover.js";
import { ABORTED, argsOf, HELLO, LENT, placesOfReply, placesOfRequest, RETURNED, SETTLED, withArgs } from "./wire.js";

/** The value of a call that has come. */
export interface Arrived {
  readonly line: Line;
  readonly value: unknown;
  /** Forgets the signals in the value, once the call has ended. */
  readonly end: (() => void) | undefined;
  /** What it moves has not come yet: the value is read then. */
  readonly late?: Promise<Arrived> | undefined;
}

/** The value of a reply that moves what has not come yet. */
class Late {
  readonly whole: Promise<unknown>;
  constructor(whole: Promise<unknown>) {
    this.whole = whole;
  }
}

const wholeOf = (value: unknown): unknown => (value instanceof Late ? value.whole : value);

/** Thrown by the codec of a value that move() has marked parts of: it is written in another way. */
const MOVES = new Error("the value moves something");

/** A request that is being sent. */
interface Request {
  readonly id: number;
  readonly value: unknown;
  readonly options: CallOptions | undefined;
  /** What it moves and is copied: it is detached once the request is sent. */
  copied: readonly Moved[] | undefined;
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
  readonly mover = new PortMover();
  readonly #cloner = codecs.clone<unknown>({
    numberOf: (part) => (isMoved(part) ? this.#numberOfMoved(part) : this.loans.numberOf(part)),
    partOf: (number) => {
      const moved = movedOf(number);
      return moved === undefined ? this.loans.partOf(number) : this.mover.take(moved);
    },
    placesOf: (value) => this.#placesOf(value),
  });
  /** Of calls and their replies. */
  readonly codec: InPlaceCodec<unknown> = {
    encode: (value, _, parts) => this.#encode(value, parts, this.#request?.value === value ? this.#request : undefined),
    decode: (bytes, _, body) => this.#decodeReply(bytes, body),
    inPlace: true,
    hasParts: true,
  };
  /** Dispatch ids of the other side's functions, by their numbers. */
  readonly #ids: DispatchId<unknown, unknown>[] = [];
  readonly #onEnd = new Set<() => void>();
  /** The next stream's number. */
  #stream = 0;
  /** The request that is being sent. */
  #request: Request | undefined;
  /** What is being written: a request, or a reply to a dispatch id. */
  #writing: Request | number | undefined;
  /** What the message moves that is being written, and its number. */
  #moving: { readonly number: number; readonly all: readonly Moved[] } | undefined;
  /** Resolves once the messages that have come are begun: later ones wait for one whose moved parts have not come. */
  #turn: Promise<unknown> | undefined;
  #hasEnded = false;

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
    if (end === undefined) return reply;
    return reply.then(
      (value) => {
        end();
        return value;
      },
      (error) => {
        end(error);
        throw error;
      },
    );
  }

  /** As ask(). What the value lends stays lent until `end` is called. */
  askOpen(
    id: number,
    value: unknown,
    options?: CallOptions,
  ): { readonly reply: Promise<unknown>; readonly end: End | undefined } {
    let typed = this.#ids[id];
    if (typed === undefined) {
      typed = { id, request: this.codec, reply: this.codec };
      this.#ids[id] = typed;
    }
    const known = typed;
    const request: Request = { id, value, options, copied: undefined };
    const before = this.#request;
    this.#request = request;
    const outer = this.loans.enter();
    // It throws nothing, but rejects.
    const reply = this.#context.call(this.to, known, value, options);
    const end = this.loans.leave(outer);
    this.#request = before;
    if (request.copied !== undefined) detachOnceSent(request.copied, reply);
    if (this.loans.size > 0) this.#onLent();
    return { reply: this.mover.isLate ? reply.then(wholeOf) : reply, end };
  }

  /** As ask(), but blocks the thread. */
  askSync(id: number, value: unknown, options: CallSyncOptions): unknown {
    const typed = { id, request: this.codec, reply: this.codec };
    const request: Request = { id, value, options: undefined, copied: undefined };
    const before = this.#request;
    this.#request = request;
    const outer = this.loans.enter();
    let reply: unknown;
    let failure: unknown;
    try {
      reply = this.#context.callSync(this.to, typed, value, options);
    } catch (error) {
      failure = error;
      throw error;
    } finally {
      this.loans.leave(outer)?.(failure);
      this.#request = before;
      const isRefused = (failure as PamiError | undefined)?.code === "PAMIR_TOO_LARGE";
      if (request.copied !== undefined) settleCopied(request.copied, isRefused);
    }
    if (!(reply instanceof Late)) return reply;
    reply.whole.catch(() => {});
    const text = "sync: the result is moved, and an event brings it here: await the call, or let the function copy it";
    throw new PamiError("PAMIR_WOULD_BLOCK", text);
  }

  /** Asks what the other side serves, and opens the port that leads there, if any. */
  async hello(port: MessagePort | undefined, options?: CallOptions): Promise<readonly string[]> {
    const [names, hasPort] = (await this.ask(HELLO, port !== undefined, options)) as [string[], boolean];
    if (hasPort && port !== undefined) this.mover.open(port);
    return names;
  }

  /** Resolves once all calls have ended on the other side that were given up here. */
  async settled(options?: CallOptions): Promise<void> {
    this.mover.dropTo((await this.ask(SETTLED, undefined, options)) as number);
  }

  /** Writes a reply to a call of a dispatch id. */
  encodeReply(id: number, value: unknown, parts: Parts | undefined): Uint8Array {
    try {
      return this.#encode(value, parts, id);
    } catch (error) {
      const less = shorter.get(Object(value))?.();
      if (less === undefined) throw error;
      return this.encodeReply(id, less, parts);
    }
  }

  #encode(value: unknown, parts: Parts | undefined, writing: Request | number | undefined): Uint8Array {
    const before = this.#writing;
    this.#writing = writing;
    try {
      return this.loans.write(this.#cloner, value, parts, typeof writing === "object");
    } catch (error) {
      if (error !== MOVES) throw error;
      return this.#encodeMoving(value, parts, typeof writing === "object" ? writing : undefined);
    } finally {
      this.#writing = before;
    }
  }

  #placesOf(value: unknown): readonly Place[] | undefined {
    const writing = this.#writing;
    if (typeof writing === "number") return placesOfReply(writing, value);
    return writing && placesOfRequest(writing.id, value);
  }

  #numberOfMoved(part: Moved): number {
    if (this.#moving === undefined) throw MOVES;
    if (!this.#moving.all.includes(part)) throw nested();
    return numberOfMoved(this.#moving.number);
  }

  /** Writes a value of which parts are moved: by the port, or else as copies. */
  #encodeMoving(value: unknown, parts: Parts | undefined, request: Request | undefined): Uint8Array {
    const places = request === undefined ? valuesOf(value) : argsOf(request.id, value);
    const all = places.filter(isMoved);
    if (all.length === 0) throw nested();
    checkMoved(all);
    const rebuilt = (made: readonly unknown[]): unknown =>
      request === undefined ? withValues(value, made) : withArgs(request.id, value, made);
    const { port } = this.mover;
    const before = this.#moving;
    this.#moving = { number: this.mover.next(request === undefined), all };
    try {
      if (port !== undefined) {
        const bytes = this.loans.write(this.#cloner, rebuilt(places), parts, request !== undefined);
        if (this.#isSent(request)) postMoved(port, this.#moving.number, all);
        return bytes;
      }
      checkCopied(all);
      const copied = places.map((place) => (isMoved(place) ? place.value : place));
      const bytes = this.loans.write(this.#cloner, rebuilt(copied), parts, request !== undefined);
      if (!this.#isSent(request)) return bytes;
      for (const moved of all) moved.isGiven = true;
      // A reply is sent behind this.
      if (request === undefined) queueMicrotask(() => detachMoved(all));
      else request.copied = all;
      return bytes;
    } finally {
      this.#moving = before;
    }
  }

  /** Whether a message is sent once it is written. */
  #isSent(request: Request | undefined): boolean {
    return !this.#hasEnded && !this.#context.closed && request?.options?.signal?.aborted !== true;
  }

  #decodeReply(bytes: Uint8Array, body: Uint8Array | undefined): unknown {
    try {
      return this.loans.read(this.#cloner, bytes, body);
    } catch (error) {
      if (!(error instanceof NotCome)) throw error;
      const copy = bytes.slice();
      const copyOfBody = body?.slice();
      return new Late(error.come.then(() => this.loans.read(this.#cloner, copy, copyOfBody)));
    }
  }

  /** Whether what has come is begun at once. */
  isFree({ late }: Arrived): boolean {
    return this.#turn === undefined && late === undefined;
  }

  /** Begins to answer what has come: behind what has come before, and once it is whole. */
  inTurn(arrived: Arrived, begin: (whole: Arrived) => unknown): Promise<unknown> {
    const whole = (this.#turn ?? Promise.resolve()).then(() => arrived.late ?? arrived);
    const answered = whole.then(begin);
    const turn: Promise<unknown> = whole.then(
      () => this.#endTurn(turn),
      () => this.#endTurn(turn),
    );
    this.#turn = turn;
    return answered;
  }

  #endTurn(turn: Promise<unknown>): void {
    if (this.#turn === turn) this.#turn = undefined;
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
    try {
      const { value, end } = this.loans.taking(() => this.loans.read(this.#cloner, bytes, body));
      return { line: this, value, end };
    } catch (error) {
      if (!(error instanceof NotCome)) throw error;
      const copy = bytes.slice();
      const copyOfBody = body?.slice();
      const late = error.come.then(() => this.read(copy, copyOfBody));
      // It is awaited in its turn.
      late.catch(() => {});
      return { line: this, value: undefined, end: undefined, late };
    }
  }

  /** Calls back once the other side has ended. @returns what forgets that */
  whenEnded(onEnd: () => void): () => void {
    this.#onEnd.add(onEnd);
    return () => void this.#onEnd.delete(onEnd);
  }

  ended(): void {
    this.#hasEnded = true;
    this.mover.close();
    this.loans.close();
    for (const onEnd of this.#onEnd) onEnd();
    this.#onEnd.clear();
  }
}

/** A request with copies of what it moves was sent, or refused. */
function settleCopied(copied: readonly Moved[], isRefused: boolean): void {
  if (!isRefused) detachMoved(copied);
  else for (const moved of copied) moved.isGiven = false;
}

/** As settleCopied(), for a call: one that could not be sent has rejected at once. */
function detachOnceSent(copied: readonly Moved[], reply: Promise<unknown>): void {
  let isRefused = false;
  reply.catch(() => {
    isRefused = true;
  });
  queueMicrotask(() => settleCopied(copied, isRefused));
}

/** Values of one answer of a stream of which some are moved. */
const batches = new WeakSet<object>();

/** What makes a shorter answer of a stream, if one of its values can't be copied. */
const shorter = new WeakMap<object, () => [values: unknown[], isOver: boolean]>();

/**
 * Lets values of an answer of a stream be moved.
 * @param shorten makes an answer of fewer values, from the first on; undefined: there is only one
 */
export function batchOf(
  values: unknown[],
  isOver: boolean,
  shorten: (() => [values: unknown[], isOver: boolean]) | undefined,
): [values: unknown[], isOver: boolean] {
  const batch: [unknown[], boolean] = [values, isOver];
  if (values.some(isMoved)) batches.add(batch);
  if (shorten !== undefined) shorter.set(batch, shorten);
  return batch;
}

/** The values of a reply that may be moved. */
const valuesOf = (reply: unknown): readonly unknown[] =>
  batches.has(Object(reply)) ? ((reply as unknown[])[0] as unknown[]) : [reply];

/** A reply with other values. */
const withValues = (reply: unknown, values: readonly unknown[]): unknown =>
  batches.has(Object(reply)) ? [values, (reply as unknown[])[1]] : values[0];
