// What stays where it is: functions, signals, and objects that a program has marked by proxy(). Each side lends to the other
// under a number; the other side has a function, a signal or an object that calls back.
import { type AbortSignalLike, type InPlaceCodec, PamiError, type Parts } from "../../index.js";
import { promised } from "../../support/promise.js";
import { NotCome } from "./mover.js";

/** The kind of what is lent, in the lowest bits of its number. */
const KINDS = 8;
const FUNCTION = 0;
const OBJECT = 1;
const SIGNAL = 2;
/** The other side's own: it goes back to where it is from. */
const OWN = 3;
/** Nothing that is lent: what a message moves. */
const MOVED = 4;

/** The number in a message, for the number under which it moves something, and back; undefined for what is lent. */
export const numberOfMoved = (moved: number): number => moved * KINDS + MOVED;
export const movedOf = (number: number): number | undefined =>
  number % KINDS === MOVED ? (number - MOVED) / KINDS : undefined;

/** How a side reaches the other one. */
export interface LentHost {
  /** Calls what the other side has lent. @param name of a method */
  call(number: number, name: string | null, args: readonly unknown[]): Promise<unknown>;
  /** Tells the other side that a signal of this side is aborted. */
  aborted(number: number, reason: unknown): void;
  /** Tells the other side that this one holds a thing no more, which has come in so many messages. */
  returned(number: number, messages: number): void;
}

interface Lent {
  readonly number: number;
  readonly what: object;
  /** Calls of this side whose arguments it belongs to; Infinity: until the other side returns it. */
  uses: number;
  /** Messages in which it went, and for which the other side has not returned it. */
  messages: number;
  /** Ends listening to a signal. */
  readonly forget: (() => void) | undefined;
  /** What the call lends that has lent this function. */
  readonly call: readonly Lent[] | undefined;
  /** Rejections of the function's promises that the other side awaits. */
  readonly awaited: Set<(error: PamiError) => void>;
}

/** What the other side has lent, and in how many messages it came. */
interface Borrowed {
  readonly ref: WeakRef<object>;
  messages: number;
}

/** The other side's signal, and how many calls that run have it. */
interface Signal {
  readonly controller: AbortController;
  calls: number;
}

/** An object that stays in another thread, as this one sees it: see #object(). A class of its own, so that no codec copies it. */
class Away {}
const aways = new WeakSet<object>();

/** Marks what proxy() was given. */
class Kept {
  readonly what: object;
  constructor(what: object) {
    this.what = what;
  }
}

const kept = new WeakSet<object>();

/**
 * Lets a function or an object stay in its thread, for as long as the other thread holds it: as an argument or a result, it
 * arrives as a function, or as an object whose methods are functions of this thread. They return promises, which reject
 * with PAMIR_SHUTDOWN once this thread has ended, as a pool's worker does when it is idle, replaced or closed. A function that is
 * an argument without this stays, too, and may be called until its call, or the loop over its stream, has ended. Later calls
 * of it reject with PAMIR_INVAL, which ends no thread if nothing awaits them.
 * @throws PAMIR_INVAL for what is neither
 */
export function proxy<T extends object>(what: T): T {
  if (typeof what === "function") {
    kept.add(what);
    return what;
  }
  if (typeof what !== "object" || what === null) {
    throw new PamiError("PAMIR_INVAL", `proxy() takes a function or an object, not ${String(what)}`);
  }
  return new Kept(what) as unknown as T;
}

/** Ends what a call has lent. @param error with which the call has rejected, if it has */
export type End = (error?: unknown) => void;

/** What one side has lent to another one, and what it has borrowed. */
export class Loans {
  readonly #host: LentHost;
  readonly #lent = new Map<number, Lent>();
  readonly #numbers = new Map<object, Lent>();
  readonly #borrowed = new Map<number, Borrowed>();
  /** Numbers of what was borrowed, to give back to its owner. */
  readonly #owned = new WeakMap<object, number>();
  readonly #signals = new Map<number, Signal>();
  readonly #collected: FinalizationRegistry<number>;
  #next = 0;
  /** What the call that is being written lends until it ends. */
  #ofCall: Lent[] | undefined;
  /** That of a call that has lent nothing, for the next one. */
  #unused: Lent[] | undefined;
  /** What the message lends that is being written. */
  #written: Set<Lent> | undefined;
  /** Numbers of what came with the message that is being read. */
  #read: Set<number> | undefined;
  /** Numbers of the signals of the call that is being read. */
  #taken: number[] | undefined;

  constructor(host: LentHost) {
    this.#host = host;
    this.#collected = new FinalizationRegistry((number) => {
      const borrowed = this.#borrowed.get(number);
      // It may have come once more since then.
      if (borrowed === undefined || borrowed.ref.deref() !== undefined) return;
      this.#borrowed.delete(number);
      host.returned(number, borrowed.messages);
    });
  }

  /** Things that this side has lent, and the other has not returned. */
  get size(): number {
    return this.#lent.size;
  }

  /** Writes a message. The same thing counts once, however often it is in there, or the writer begins anew. */
  write(codec: InPlaceCodec<unknown>, value: unknown, parts: Parts | undefined, isRequest: boolean): Uint8Array {
    const before = this.#written;
    const call = this.#ofCall;
    this.#written = undefined;
    // While a call blocks, its thread answers others: what they get belongs to no call.
    if (!isRequest) this.#ofCall = undefined;
    try {
      return codec.encode(value, undefined, parts);
    } catch (error) {
      for (const lent of this.#written ?? NOTHING) this.#less(lent, 1);
      throw error;
    } finally {
      this.#ofCall = call;
      this.#written = before;
    }
  }

  /** Reads a message. */
  read(codec: InPlaceCodec<unknown>, bytes: Uint8Array, body?: Uint8Array): unknown {
    const before = this.#read;
    this.#read = undefined;
    try {
      return codec.decode(bytes, undefined, body);
    } catch (error) {
      // It is read again.
      if (error instanceof NotCome) for (const number of this.#read ?? []) this.#unread(number);
      throw error;
    } finally {
      this.#read = before;
    }
  }

  #unread(number: number): void {
    const borrowed = this.#borrowed.get(number);
    if (borrowed !== undefined) borrowed.messages--;
  }

  /** What is lent from here on belongs to a call, until leave(). @returns what leave() takes */
  enter(): Lent[] | undefined {
    const before = this.#ofCall;
    this.#ofCall = this.#unused ?? [];
    this.#unused = undefined;
    return before;
  }

  /** @returns what ends what the call lends, if it lends anything */
  leave(before: Lent[] | undefined): End | undefined {
    const lent = this.#ofCall as Lent[];
    this.#ofCall = before;
    if (lent.length > 0) return (error) => this.#endOf(lent, error);
    this.#unused = lent;
    return undefined;
  }

  /** A call is over. If it was given up, its function awaits no callback any more: one may never settle. */
  #endOf(all: readonly Lent[], error: unknown): void {
    const isGivenUp = error instanceof PamiError && GIVEN_UP.has(error.code);
    for (const lent of all) {
      if (--lent.uses > 0) continue;
      this.#forget(lent);
      if (isGivenUp) for (const reject of lent.awaited) reject(givenUp(lent.number, error));
    }
  }

  /** So many messages with a thing are returned, or were not sent. */
  #less(lent: Lent, messages: number): void {
    lent.messages -= messages;
    if (lent.messages <= 0) this.#forget(lent);
  }

  #forget({ number, what, forget }: Lent): void {
    this.#lent.delete(number);
    if (this.#numbers.get(what)?.number === number) this.#numbers.delete(what);
    forget?.();
  }

  /** The number that goes instead of a part of a value; undefined: it is copied, or refused. */
  numberOf(part: unknown): number | undefined {
    if (typeof part === "function") return this.#lend(part, FUNCTION, kept.has(part));
    if (typeof part !== "object" || part === null) return undefined;
    if (part instanceof Kept) return this.#lend(part.what, OBJECT, true);
    const owned = this.#owned.get(part);
    if (owned !== undefined) return owned;
    // It stays in a third thread: this one passes calls on.
    if (aways.has(part)) return this.#lend(part, OBJECT, true);
    return isSignal(part) ? this.#lend(part, SIGNAL, false) : undefined;
  }

  #lend(what: object, kind: number, isKept: boolean): number | undefined {
    const owned = this.#owned.get(what);
    if (owned !== undefined) return owned;
    // A function of a result or a message has no call that would end it.
    if (!isKept && this.#ofCall === undefined) return undefined;
    let lent = this.#numbers.get(what);
    // Each call lends a function anew: so the end of one of them is that of its own callbacks.
    const isAnew = kind === FUNCTION && !isKept && lent?.call !== this.#ofCall;
    if (lent === undefined || (isAnew && lent.uses !== Number.POSITIVE_INFINITY)) {
      const number = this.#next++ * KINDS + kind;
      lent = {
        number,
        what,
        uses: 0,
        messages: 0,
        forget: kind === SIGNAL ? this.#hear(what as AbortSignalLike, number) : undefined,
        call: this.#ofCall,
        awaited: new Set(),
      };
      this.#lent.set(number, lent);
      this.#numbers.set(what, lent);
    }
    this.#written ??= new Set();
    if (!this.#written.has(lent)) {
      this.#written.add(lent);
      lent.messages++;
    }
    if (isKept) lent.uses = Number.POSITIVE_INFINITY;
    else if (lent.uses !== Number.POSITIVE_INFINITY) {
      lent.uses++;
      this.#ofCall?.push(lent);
    }
    return lent.number;
  }

  #hear(signal: AbortSignalLike, number: number): () => void {
    const tell = (): void => this.#host.aborted(number, signal.reason);
    // Behind the call, whose message is being written.
    if (signal.aborted) queueMicrotask(tell);
    else signal.addEventListener("abort", tell, { once: true });
    return () => signal.removeEventListener("abort", tell);
  }

  /** What a number stands for that the other side has sent. @throws PAMIR_INVAL for this side's own, if lent no more */
  partOf(number: number): unknown {
    const kind = number % KINDS;
    if (kind === OWN) {
      const base = number - OWN;
      const own = this.#lent.get(base + FUNCTION) ?? this.#lent.get(base + OBJECT);
      if (own === undefined) throw lentNoMore(base);
      return own.what;
    }
    if (kind === SIGNAL) return this.#signal(number);
    let borrowed = this.#borrowed.get(number);
    let made = borrowed?.ref.deref();
    if (borrowed === undefined || made === undefined) {
      made = kind === FUNCTION ? this.#function(number) : this.#object(number);
      // If the one before was collected, and that is not told yet: its messages count for this one.
      borrowed = { ref: new WeakRef(made), messages: borrowed?.messages ?? 0 };
      this.#borrowed.set(number, borrowed);
      this.#owned.set(made, number - kind + OWN);
      this.#collected.register(made, number);
    }
    this.#read ??= new Set();
    if (!this.#read.has(number)) {
      this.#read.add(number);
      borrowed.messages++;
    }
    return made;
  }

  #function(number: number): (...args: unknown[]) => Promise<unknown> {
    const isOfCall = this.#taken !== undefined;
    return (...args) => this.#call(number, null, args, isOfCall);
  }

  /** Calls the other side. A call that comes too late rejects; if nothing awaits it, that ends no thread. */
  #call(number: number, name: string | null, args: readonly unknown[], isOfCall: boolean): Promise<unknown> {
    const called: Promise<unknown> = this.#host.call(number, name, args).catch((error: unknown) => {
      // A promise that has a handler before it rejects is no unhandled rejection.
      if (isTooLate(error, isOfCall)) called.catch(() => {});
      throw error;
    });
    return called;
  }

  /** An object, each name of which is a method of the other side's. */
  #object(number: number): object {
    const methods = new Map<string, unknown>();
    const isOfCall = this.#taken !== undefined;
    const away = new Proxy(new Away(), {
      get: (_, name) => {
        // A promise that resolves to it asks for a method `then`.
        if (typeof name !== "string" || name === "then") return undefined;
        let method = methods.get(name);
        if (method === undefined) {
          method = (...args: unknown[]) => this.#call(number, name, args, isOfCall);
          methods.set(name, method);
        }
        return method;
      },
    });
    aways.add(away);
    return away;
  }

  /** @returns the value that `decode` reads, and what forgets the signals in it, once its call has ended */
  taking<T>(decode: () => T): { readonly value: T; readonly end: (() => void) | undefined } {
    const before = this.#taken;
    const taken: number[] = [];
    this.#taken = taken;
    try {
      const value = decode();
      const end = (): void => {
        for (const number of taken) this.#endSignal(number);
      };
      return { value, end: taken.length === 0 ? undefined : end };
    } catch (error) {
      for (const number of taken) this.#endSignal(number);
      throw error;
    } finally {
      this.#taken = before;
    }
  }

  #signal(number: number): AbortSignal {
    let signal = this.#signals.get(number);
    if (signal === undefined) {
      signal = { controller: new AbortController(), calls: 0 };
      this.#signals.set(number, signal);
    }
    signal.calls++;
    this.#taken?.push(number);
    return signal.controller.signal;
  }

  /** A call with a signal has ended. */
  #endSignal(number: number): void {
    const signal = this.#signals.get(number);
    if (signal !== undefined && --signal.calls === 0) this.#signals.delete(number);
  }

  /** The other side's signal is aborted. */
  abort(number: number, reason: unknown): void {
    this.#signals.get(number)?.controller.abort(reason);
  }

  /** The other side holds a thing no more. */
  takeBack(number: number, messages: number): void {
    const lent = this.#lent.get(number);
    // While another message with it is on its way, it stays lent.
    if (lent !== undefined) this.#less(lent, messages);
  }

  /** The other side calls. @throws PAMIR_INVAL if what it calls is lent no more */
  call(number: number, name: string | null, args: readonly unknown[]): unknown {
    const lent = this.#lent.get(number);
    if (lent === undefined) throw lentNoMore(number);
    const { what } = lent;
    const kind = number % KINDS;
    if (kind === FUNCTION && name === null) {
      const made = (what as (...args: readonly unknown[]) => unknown)(...args);
      // The call that has lent it blocks this thread.
      if (lent.call !== undefined && lent.call === this.#ofCall) checkNoPromise(number, made);
      return untilGivenUp(lent, made);
    }
    const method = kind === OBJECT ? methodOf(what, name) : undefined;
    if (method === undefined) {
      throw new PamiError("PAMIR_INVAL", `what is lent has no method ${JSON.stringify(name) ?? String(name)}`);
    }
    return Reflect.apply(method, what, args);
  }

  /** The other side has ended. */
  close(): void {
    for (const lent of [...this.#lent.values()]) this.#forget(lent);
    for (const { controller } of this.#signals.values()) controller.abort();
    this.#signals.clear();
  }
}

/**
 * A method of an object that is kept: its own, or one of its classes. What every object has of the language is none: by
 * `constructor` and `__defineGetter__`, the other side would compile functions here, and change the object.
 */
function methodOf(what: object, name: unknown): ((...args: readonly unknown[]) => unknown) | undefined {
  if (typeof name !== "string" || name === "constructor") return undefined;
  // It stays in a third thread, which decides.
  let isOwn = aways.has(what);
  let owner: object | null = what;
  for (; !isOwn && owner !== null && owner !== Object.prototype; owner = Object.getPrototypeOf(owner)) {
    isOwn = Object.hasOwn(owner, name);
  }
  const method = isOwn ? (what as Record<string, unknown>)[name] : undefined;
  return typeof method === "function" ? (method as (...args: readonly unknown[]) => unknown) : undefined;
}

const NOTHING: ReadonlySet<Lent> = new Set();

/** Codes with which a caller gives a call up. */
const GIVEN_UP: ReadonlySet<string> = new Set(["PAMIR_CANCELED", "PAMIR_TIMEDOUT", "PAMIR_INTERRUPTED"]);

/** What a lent function has given. A promise of it rejects once the call is given up that has lent the function. */
function untilGivenUp({ uses, awaited }: Lent, made: unknown): unknown {
  const settled = uses === Number.POSITIVE_INFINITY ? undefined : promised(made);
  if (settled === undefined) return made;
  return new Promise((resolve, reject) => {
    awaited.add(reject);
    settled.finally(() => awaited.delete(reject)).then(resolve, reject);
  });
}

function givenUp(number: number, error: PamiError): PamiError {
  return new PamiError(error.code, `callback ${number} is lent no more: its call was given up`, { cause: error });
}

function lentNoMore(number: number): PamiError {
  const why = "its call has ended, and proxy() would have kept it";
  return new PamiError("PAMIR_INVAL", `callback ${number} is lent no more: ${why}`);
}

/** @throws PAMIR_WOULD_BLOCK a promise never settles while its thread is blocked */
function checkNoPromise(number: number, made: unknown): void {
  const settled = promised(made);
  if (settled === undefined) return;
  settled.catch(() => {});
  const why = "its call by sync blocks this thread, so that would never settle. Await the call instead";
  throw new PamiError("PAMIR_WOULD_BLOCK", `callback ${number} gives a promise: ${why}`);
}

/** Errors that may come when nothing awaits the callback any more, or never did. */
const UNAWAITED = /^callback \d+ (?:is lent no more|gives a promise): /;

/**
 * Whether a call came behind the end of the call that had lent what it calls.
 * @param isOfCall whether an argument has lent it: then that call has also ended once one of the two sides has
 */
function isTooLate(error: unknown, isOfCall: boolean): boolean {
  const { code, message } = Object(error) as { code?: unknown; message?: unknown };
  if (typeof code === "string" && UNAWAITED.test(String(message))) return true;
  return isOfCall && error instanceof PamiError && (code === "PAMIR_SHUTDOWN" || code === "PAMIR_CLOSED");
}

function isSignal(part: object): boolean {
  return typeof AbortSignal === "function" && part instanceof AbortSignal;
}
