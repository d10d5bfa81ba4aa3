// What stays where it is: functions, signals, and objects that a program has marked by proxy(). Each side lends to the other
// under a number; the other side has a function, a signal or an object that calls back.
import { type AbortSignalLike, PamiError } from "../index.js";

/** The kind of what is lent, in the lowest bits of its number. */
const KINDS = 4;
const FUNCTION = 0;
const OBJECT = 1;
const SIGNAL = 2;
/** The other side's own: it goes back to where it is from. */
const OWN = 3;

/** How a side reaches the other one. */
export interface LentHost {
  /** Calls what the other side has lent. @param name of a method */
  call(number: number, name: string | null, args: readonly unknown[]): Promise<unknown>;
  /** Tells the other side that a signal of this side is aborted. */
  aborted(number: number, reason: unknown): void;
  /** Tells the other side that this one holds a thing no more. */
  returned(number: number): void;
}

interface Lent {
  readonly number: number;
  readonly what: object;
  /** Calls of this side whose arguments it belongs to; Infinity: until the other side returns it. */
  uses: number;
  /** Ends listening to a signal. */
  readonly forget: (() => void) | undefined;
}

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
 * arrives as a function, or as an object whose methods are functions of this thread. They return promises. A function that
 * is an argument without this stays, too, and may be called until its call has ended.
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

/** What one side has lent to another one, and what it has borrowed. */
export class Loans {
  readonly #host: LentHost;
  readonly #lent = new Map<number, Lent>();
  readonly #numbers = new Map<object, Lent>();
  readonly #borrowed = new Map<number, WeakRef<object>>();
  /** Numbers of what was borrowed, to give back to its owner. */
  readonly #owned = new WeakMap<object, number>();
  readonly #signals = new Map<number, AbortController>();
  readonly #collected: FinalizationRegistry<number>;
  #next = 0;
  /** What the call that is being written lends until it ends. */
  #ofCall: Lent[] | undefined;
  /** Numbers of the signals of the call that is being read. */
  #taken: number[] | undefined;

  constructor(host: LentHost) {
    this.#host = host;
    this.#collected = new FinalizationRegistry((number) => {
      if (this.#borrowed.get(number)?.deref() !== undefined) return;
      this.#borrowed.delete(number);
      host.returned(number);
    });
  }

  /** Things that this side has lent, and the other has not returned. */
  get size(): number {
    return this.#lent.size;
  }

  /** What is lent while `encode` runs belongs to a call. @returns what ends that, if anything was lent */
  during<T>(encode: () => T): { readonly value: T; readonly end: (() => void) | undefined } {
    const before = this.#ofCall;
    const lent: Lent[] = [];
    this.#ofCall = lent;
    try {
      const value = encode();
      return { value, end: lent.length === 0 ? undefined : () => this.#endOf(lent) };
    } catch (error) {
      this.#endOf(lent);
      throw error;
    } finally {
      this.#ofCall = before;
    }
  }

  #endOf(all: readonly Lent[]): void {
    for (const lent of all) if (--lent.uses <= 0) this.#forget(lent);
  }

  #forget({ number, what, forget }: Lent): void {
    this.#lent.delete(number);
    this.#numbers.delete(what);
    forget?.();
  }

  /** The number that goes instead of a part of a value; undefined: it is copied, or refused. */
  numberOf(part: unknown): number | undefined {
    if (typeof part === "function") return this.#lend(part, FUNCTION, kept.has(part));
    if (typeof part !== "object" || part === null) return undefined;
    if (part instanceof Kept) return this.#lend(part.what, OBJECT, true);
    const owned = this.#owned.get(part);
    if (owned !== undefined) return owned;
    return isSignal(part) ? this.#lend(part, SIGNAL, false) : undefined;
  }

  #lend(what: object, kind: number, isKept: boolean): number | undefined {
    const owned = this.#owned.get(what);
    if (owned !== undefined) return owned;
    // A function of a result or a message has no call that would end it.
    if (!isKept && this.#ofCall === undefined) return undefined;
    let lent = this.#numbers.get(what);
    if (lent === undefined) {
      const number = this.#next++ * KINDS + kind;
      lent = {
        number,
        what,
        uses: 0,
        forget: kind === SIGNAL ? this.#hear(what as AbortSignalLike, number) : undefined,
      };
      this.#lent.set(number, lent);
      this.#numbers.set(what, lent);
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

  /** What a number stands for that the other side has sent. */
  partOf(number: number): unknown {
    const kind = number % KINDS;
    if (kind === OWN)
      return this.#lent.get(number - OWN + FUNCTION)?.what ?? this.#lent.get(number - OWN + OBJECT)?.what;
    if (kind === SIGNAL) return this.#signal(number).signal;
    const known = this.#borrowed.get(number)?.deref();
    if (known !== undefined) return known;
    const made = kind === FUNCTION ? this.#function(number) : this.#object(number);
    this.#borrowed.set(number, new WeakRef(made));
    this.#owned.set(made, number - kind + OWN);
    this.#collected.register(made, number);
    return made;
  }

  #function(number: number): (...args: unknown[]) => Promise<unknown> {
    return (...args) => this.#host.call(number, null, args);
  }

  /** An object, each name of which is a method of the other side's. */
  #object(number: number): object {
    const methods = new Map<string, unknown>();
    return new Proxy(Object.create(null) as object, {
      get: (_, name) => {
        // A promise that resolves to it asks for a method `then`.
        if (typeof name !== "string" || name === "then") return undefined;
        let method = methods.get(name);
        if (method === undefined) {
          method = (...args: unknown[]) => this.#host.call(number, name, args);
          methods.set(name, method);
        }
        return method;
      },
    });
  }

  /** @returns the value that `decode` reads, and what forgets the signals in it, once its call has ended */
  taking<T>(decode: () => T): { readonly value: T; readonly end: (() => void) | undefined } {
    const before = this.#taken;
    const taken: number[] = [];
    this.#taken = taken;
    try {
      const value = decode();
      const end = (): void => {
        for (const number of taken) this.#signals.delete(number);
      };
      return { value, end: taken.length === 0 ? undefined : end };
    } finally {
      this.#taken = before;
    }
  }

  #signal(number: number): AbortController {
    this.#taken?.push(number);
    let controller = this.#signals.get(number);
    if (controller === undefined) {
      controller = new AbortController();
      this.#signals.set(number, controller);
    }
    return controller;
  }

  /** The other side's signal is aborted. */
  abort(number: number, reason: unknown): void {
    this.#signals.get(number)?.abort(reason);
    this.#signals.delete(number);
  }

  /** The other side holds a thing no more. */
  takeBack(number: number): void {
    const lent = this.#lent.get(number);
    if (lent !== undefined) this.#forget(lent);
  }

  /** The other side calls. @throws PAMIR_INVAL if what it calls is lent no more */
  call(number: number, name: string | null, args: readonly unknown[]): unknown {
    const what = this.#lent.get(number)?.what;
    if (what === undefined) {
      const why = "its call has ended, and proxy() would have kept it";
      throw new PamiError("PAMIR_INVAL", `callback ${number} is lent no more: ${why}`);
    }
    if (name === null) return (what as (...args: readonly unknown[]) => unknown)(...args);
    const method = (what as Record<string, unknown>)[name];
    if (typeof method !== "function") {
      throw new PamiError("PAMIR_INVAL", `an object that proxy() keeps has no method ${JSON.stringify(name)}`);
    }
    return Reflect.apply(method, what, args);
  }

  /** The other side has ended. */
  close(): void {
    for (const lent of [...this.#lent.values()]) this.#forget(lent);
    for (const controller of this.#signals.values()) controller.abort();
    this.#signals.clear();
  }
}

function isSignal(part: object): boolean {
  return typeof AbortSignal === "function" && part instanceof AbortSignal;
}
