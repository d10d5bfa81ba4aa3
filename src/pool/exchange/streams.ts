// Streams: what an iterator of one side gives, in the other side's loop. The receiver asks for more when it has room.
import { type AbortSignalLike, type Endpoint, PamiError } from "../../index.js";
import { promised } from "../../support/promise.js";
import { pause } from "../../support/timers.js";
import { shown } from "../check.js";
import { type ServedCall, within } from "./current-call.js";
import { answer, batchOf, type Line, type Listener } from "./line.js";
import { isMoved } from "./move.js";
import { PULL, STOP, STREAM } from "./wire.js";

/** Values of one answer at the most. */
const BATCH = 64;
/** Milliseconds after which an answer goes with the values that it has. */
const BATCH_MS = 2;

type AnyIterator = AsyncIterator<unknown> | Iterator<unknown>;
type Pulled = [values: unknown[], isOver: boolean];

/** An iterator that a caller reads. */
class Source {
  readonly call: ServedCall;
  /** Forgets what its arguments have lent. */
  readonly onOver: (() => void) | undefined;
  /** undefined: its function has not given it yet. */
  iterator: AnyIterator | undefined;
  /** Whether it is no async iterator: then its values may be promises. */
  isSync = false;
  /** Values that belong before all others: the last answer went without them. */
  readonly kept: IteratorResult<unknown>[] = [];
  /** A value that was asked for and has not come when the last answer went. */
  pending: Promise<IteratorResult<unknown>> | undefined;
  /** The answer that it works on. */
  pulling: Promise<unknown> | undefined;
  readonly #stopped = new AbortController();

  constructor(caller: Endpoint, onOver: (() => void) | undefined) {
    this.onOver = onOver;
    this.call = { caller, signal: this.#stopped.signal as ServedCall["signal"] };
  }

  get isStopped(): boolean {
    return this.#stopped.signal.aborted;
  }

  /** The next value. A promise that a sync iterator gives is awaited, as `for await` does. */
  next(): unknown {
    const next = within(this.call, () => (this.iterator as AnyIterator).next());
    if (!this.isSync) return next;
    const value = promised((next as IteratorResult<unknown>).value);
    return value === undefined ? next : this.#settled(value, (next as IteratorResult<unknown>).done === true);
  }

  async #settled(value: Promise<unknown>, done: boolean): Promise<IteratorResult<unknown>> {
    try {
      return { value: await value, done };
    } catch (error) {
      if (!done) this.#return();
      throw error;
    }
  }

  /** Ends the iterator. @returns a promise of its end, if that takes longer */
  stop(): Promise<unknown> | undefined {
    this.#stopped.abort(left());
    const { pulling } = this;
    // What the iterator throws concerns no one: its reader has gone.
    const ended = promised(this.#return())?.catch(() => {});
    return pulling === undefined ? ended : Promise.allSettled([pulling, ended]);
  }

  #return(): unknown {
    try {
      return this.iterator?.return?.();
    } catch {
      return undefined;
    }
  }
}

const left = (): PamiError => new PamiError("PAMIR_CANCELED", "the reader of a stream has left it");

/** The iterators of a worker that others read. */
export class ServedStreams {
  readonly #sources = new Map<Endpoint, Map<number, Source>>();
  /** Ends of iterators whose readers have left. */
  readonly #ending = new Map<Promise<unknown>, Endpoint>();
  readonly #run: (number: number, args: unknown[]) => unknown;

  /** @param run calls a function by its number */
  constructor(run: (number: number, args: unknown[]) => unknown) {
    this.#run = run;
  }

  serve(exchange: Listener): void {
    exchange.answer(STREAM, ({ line, value, end }, origin) => {
      const [stream, number, args] = value as [number, number, unknown[]];
      const source = this.#add(line, stream, end);
      const begun = this.#begin(source, number, args);
      source.pulling = begun;
      begun.catch(() => this.#forget(origin, stream));
      return begun;
    });
    exchange.answer(PULL, (arrived, origin) =>
      answer(arrived, (value) => {
        const source = this.#sources.get(origin)?.get(value as number);
        if (source === undefined) throw new PamiError("PAMIR_INVAL", `stream ${value} is over`);
        source.pulling = this.#pull(source, {
          forget: () => this.#forget(origin, value as number),
          restore: () => void this.#sources.get(origin)?.set(value as number, source),
        });
        return source.pulling;
      }),
    );
    exchange.hear(STOP, ({ to }, stream) => this.#stop(to, stream as number));
  }

  /** Ends of iterators that a caller has left. */
  ending(caller: Endpoint): Promise<unknown>[] {
    return [...this.#ending].flatMap(([ended, of]) => (of === caller ? [ended] : []));
  }

  #add(line: Line, stream: number, onOver: (() => void) | undefined): Source {
    const { to: origin } = line;
    let sources = this.#sources.get(origin);
    if (sources === undefined) {
      sources = new Map();
      this.#sources.set(origin, sources);
      line.whenEnded(() => {
        for (const number of [...(this.#sources.get(origin)?.keys() ?? [])]) this.#stop(origin, number);
        this.#sources.delete(origin);
      });
    }
    const source = new Source(origin, onOver);
    sources.set(stream, source);
    return source;
  }

  async #begin(source: Source, number: number, args: unknown[]): Promise<void> {
    const made = await within(source.call, () => this.#run(number, args));
    source.iterator = iteratorOf(made);
    source.isSync = !isAsync(made);
    // Its reader has left meanwhile.
    if (source.isStopped) await source.iterator.return?.();
  }

  async #pull(source: Source, { forget, restore }: { forget(): void; restore(): void }): Promise<Pulled> {
    const values: unknown[] = [];
    let late: Promise<undefined> | undefined;
    try {
      while (values.length < BATCH && !source.isStopped) {
        const kept = source.kept.shift();
        const next = kept ?? source.pending ?? source.next();
        const awaited = promised(next) as Promise<IteratorResult<unknown>> | undefined;
        if (kept === undefined) source.pending = undefined;
        let result = next as IteratorResult<unknown>;
        if (awaited !== undefined) {
          // The first value is awaited for as long as it takes, others for a moment.
          if (values.length > 0) late ??= pause(BATCH_MS) as Promise<undefined>;
          const come = await (values.length === 0 ? awaited : Promise.race([awaited, late]));
          if (come === undefined) {
            source.pending = awaited;
            source.pending.catch(() => {});
            break;
          }
          result = come;
        }
        if (Object(result) !== result)
          throw new TypeError(`next() of a stream's iterator gave ${shown(result)}, not an object`);
        if (result.done === true) {
          forget();
          return answerOf(source, values, restore);
        }
        // Answers that move something have nothing else: see mover.ts.
        if (values.length > 0 && isMoved(values[0]) !== isMoved(result.value)) {
          if (kept === undefined) source.pending = Promise.resolve(result);
          else source.kept.unshift(kept);
          break;
        }
        values.push(result.value);
      }
    } catch (error) {
      if (values.length === 0) {
        forget();
        throw error;
      }
      // Behind the values before it.
      source.pending = Promise.reject(error as Error);
      source.pending.catch(() => {});
    }
    return answerOf(source, values, undefined);
  }

  #forget(origin: Endpoint, stream: number): void {
    const sources = this.#sources.get(origin);
    sources?.get(stream)?.onOver?.();
    sources?.delete(stream);
  }

  #stop(origin: Endpoint, stream: number): void {
    const ended = this.#sources.get(origin)?.get(stream)?.stop();
    this.#forget(origin, stream);
    if (ended === undefined) return;
    this.#ending.set(ended, origin);
    void ended.then(() => this.#ending.delete(ended));
  }
}

/**
 * An answer. If one of its values can't be copied, half of them go, and so on: those before that value come before its error.
 * @param restore of a stream that is over: makes it one that is not
 */
function answerOf(source: Source, values: unknown[], restore: (() => void) | undefined): Pulled {
  const half = values.length >> 1;
  const shorten = (): Pulled => {
    source.kept.unshift(...values.slice(half).map((value) => ({ value, done: false })));
    if (restore !== undefined) {
      source.kept.push({ value: undefined, done: true });
      restore();
    }
    return answerOf(source, values.slice(0, half), undefined);
  };
  return batchOf(values, restore !== undefined, half > 0 ? shorten : undefined);
}

function isAsync(made: unknown): boolean {
  return typeof (Object(made) as Partial<AsyncIterable<unknown>>)[Symbol.asyncIterator] === "function";
}

function iteratorOf(made: unknown): AnyIterator {
  const { [Symbol.asyncIterator]: ofAsync, [Symbol.iterator]: ofSync } = Object(made) as Partial<
    AsyncIterable<unknown> & Iterable<unknown>
  >;
  if (typeof ofAsync === "function") return ofAsync.call(made as AsyncIterable<unknown>);
  if (typeof ofSync === "function") return ofSync.call(made as Iterable<unknown>);
  throw new PamiError(
    "PAMIR_INVAL",
    `stream() of a function that gave ${typeof made}: it gives an iterable, as function* does`,
  );
}

/**
 * The values of a stream of the other side. One answer is asked for ahead: the source is that much faster, and waits then.
 * @param options `timeout`: the longest time for an answer
 */
export async function* readStream(
  line: Line,
  number: number,
  args: readonly unknown[],
  options: { signal?: AbortSignalLike | undefined; timeout?: number | undefined },
): AsyncGenerator<unknown, void> {
  const stream = line.nextStream();
  let isOver = false;
  let failure: unknown;
  const { reply, end } = line.askOpen(STREAM, [stream, number, args], options);
  try {
    await reply;
    let next = line.ask(PULL, stream, options) as Promise<Pulled>;
    while (!isOver) {
      const [values, last] = await next;
      isOver = last;
      if (!last) {
        next = line.ask(PULL, stream, options) as Promise<Pulled>;
        // It is awaited behind these values, or never.
        next.catch(() => {});
      }
      yield* values;
    }
  } catch (error) {
    failure = error;
    throw error;
  } finally {
    if (!isOver) line.tell(STOP, stream);
    end?.(isOver ? undefined : (failure ?? left()));
  }
}

/** Streams of which the program has dropped the iterator: they end as if its loop was left. */
const dropped = new FinalizationRegistry<AsyncGenerator<unknown, void>>((values) => {
  values.return().catch(() => {});
});

/** The iterator that the program has of a stream. Nothing else holds it, so that it is collected once the program has dropped it. */
class Held {
  readonly #values: AsyncGenerator<unknown, void>;

  constructor(values: AsyncGenerator<unknown, void>) {
    this.#values = values;
    dropped.register(this, values);
  }

  next(): Promise<IteratorResult<unknown, void>> {
    return this.#values.next();
  }

  return(value?: unknown): Promise<IteratorResult<unknown, void>> {
    return this.#values.return(value as undefined);
  }

  throw(error: unknown): Promise<IteratorResult<unknown, void>> {
    return this.#values.throw(error);
  }
}

// What the language gives each async generator: an iterator of itself, its name, and in newer hosts its disposal.
Object.setPrototypeOf(Held.prototype, Object.getPrototypeOf(async function* () {}.prototype));

/** A stream that ends once the program has dropped it, though its loop was never left. */
export const untilDropped = (values: AsyncGenerator<unknown, void>): AsyncGenerator<unknown, void> =>
  new Held(values) as unknown as AsyncGenerator<unknown, void>;
