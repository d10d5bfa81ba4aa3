// Streams: what an iterator of one side gives, in the other side's loop. The receiver asks for more when it has room.
import { type Context, type Endpoint, PamiError } from "../index.js";
import { promised } from "../support/promise.js";
import { pause } from "../support/timers.js";
import { type Line, whole } from "./line.js";
import { PULL, STOP, STREAM } from "./wire.js";

/** Values of one answer at the most. */
const BATCH = 64;
/** Milliseconds after which an answer goes with the values that it has. */
const BATCH_MS = 2;

type AnyIterator = AsyncIterator<unknown> | Iterator<unknown>;

interface Source {
  readonly iterator: AnyIterator;
  /** Ends listening to the end of the receiver. */
  readonly forget: () => void;
  /** A value that was asked for and has not come when the last answer went. */
  pending: Promise<IteratorResult<unknown>> | undefined;
}

/** The iterators of a worker that others read. */
export class ServedStreams {
  readonly #sources = new Map<number, Source>();
  readonly #whenEnded: (endpoint: Endpoint, onEnd: () => void) => () => void;
  #next = 0;

  constructor(whenEnded: (endpoint: Endpoint, onEnd: () => void) => () => void) {
    this.#whenEnded = whenEnded;
  }

  /** @param run calls a function by its number */
  serve(context: Context, lineTo: (origin: Endpoint) => Line, run: (number: number, args: unknown[]) => unknown): void {
    context.dispatch(STREAM, (message) => {
      const { origin } = message;
      const line = lineTo(origin);
      return whole(message, (bytes) =>
        line.answer(bytes, async (value) => {
          const [number, args] = value as [number, unknown[]];
          return this.#begin(origin, await run(number, args));
        }),
      );
    });
    context.dispatch(PULL, (message) => {
      const line = lineTo(message.origin);
      return whole(message, (bytes) => line.answer(bytes, (value) => this.#pull(value as number)));
    });
    context.dispatch(STOP, (message) => {
      const line = lineTo(message.origin);
      return whole(message, (bytes) => this.#stop(line.codec.decode(bytes) as number));
    });
  }

  #begin(origin: Endpoint, made: unknown): number {
    const number = this.#next++;
    const iterator = iteratorOf(made);
    this.#sources.set(number, {
      iterator,
      forget: this.#whenEnded(origin, () => this.#stop(number)),
      pending: undefined,
    });
    return number;
  }

  async #pull(number: number): Promise<[values: unknown[], isOver: boolean]> {
    const source = this.#sources.get(number);
    if (source === undefined) throw new PamiError("PAMIR_INVAL", `stream ${number} is over`);
    const values: unknown[] = [];
    let late: Promise<undefined> | undefined;
    try {
      while (values.length < BATCH) {
        const next = source.pending ?? source.iterator.next();
        const awaited = promised(next) as Promise<IteratorResult<unknown>> | undefined;
        source.pending = undefined;
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
        if (result.done === true) {
          this.#forget(number);
          return [values, true];
        }
        values.push(result.value);
      }
    } catch (error) {
      if (values.length === 0) {
        this.#forget(number);
        throw error;
      }
      // Behind the values before it.
      source.pending = Promise.reject(error as Error);
      source.pending.catch(() => {});
    }
    return [values, false];
  }

  #forget(number: number): void {
    this.#sources.get(number)?.forget();
    this.#sources.delete(number);
  }

  #stop(number: number): void {
    const source = this.#sources.get(number);
    this.#forget(number);
    // What it throws concerns no one: its reader has gone.
    void Promise.resolve(source?.iterator.return?.()).catch(() => {});
  }
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

/** The values of a stream of the other side. One answer is asked for ahead: the source is that much faster, and waits then. */
export async function* readStream(
  line: Line,
  number: number,
  args: readonly unknown[],
  options: { signal?: AbortSignal | undefined },
): AsyncGenerator<unknown, void> {
  const stream = (await line.ask(STREAM, [number, args], options)) as number;
  let isOver = false;
  try {
    let next = line.ask(PULL, stream, options) as Promise<[unknown[], boolean]>;
    while (!isOver) {
      const [values, last] = await next;
      isOver = last;
      if (!last) {
        next = line.ask(PULL, stream, options) as Promise<[unknown[], boolean]>;
        // It is awaited behind these values, or never.
        next.catch(() => {});
      }
      yield* values;
    }
  } finally {
    if (!isOver) line.tell(STOP, stream);
  }
}
