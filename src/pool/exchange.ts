// Calls by name between this context and other endpoints, in both directions: what each side serves, and what it has lent.
import { type Context, type Endpoint, PamiError } from "../index.js";
import { type ServedCall, within } from "./current-call.js";
import { Line } from "./line.js";
import { ServedStreams } from "./streams.js";
import { ABORTED, FUNCTIONS, FUNCTIONS_MAX, HELLO, LEAVE, LENT, RETURNED, SETTLED, unpacked } from "./wire.js";

/** The functions of an object, by their numbers. */
export interface Served {
  readonly names: readonly string[];
  readonly functions: object;
}

/** Calls whose functions have not ended. */
class Answering {
  readonly #calls = new Map<Promise<unknown>, ServedCall>();

  add(answered: Promise<unknown>, call: ServedCall): void {
    this.#calls.set(answered, call);
    const over = (): void => void this.#calls.delete(answered);
    answered.then(over, over);
  }

  /** Those that a caller has given up. */
  givenUp(caller: Endpoint): Promise<unknown>[] {
    const all: Promise<unknown>[] = [];
    for (const [answered, call] of this.#calls) {
      if (call.caller === caller && call.signal.aborted) all.push(answered);
    }
    return all;
  }
}

const exchanges = new WeakMap<Context, Exchange>();

/** The exchange of a context: the same for all that serve or connect there. */
export function exchangeOf(context: Context): Exchange {
  let exchange = exchanges.get(context);
  if (exchange === undefined) {
    exchange = new Exchange(context);
    exchanges.set(context, exchange);
  }
  return exchange;
}

/** One context's calls by name. */
export class Exchange {
  readonly context: Context;
  readonly #lines = new Map<Endpoint, Line>();
  #served: Served | undefined;
  #isAdvancing = false;

  constructor(context: Context) {
    this.context = context;
    const call = (id: number, handler: (line: Line, value: unknown) => unknown): void => {
      context.dispatch(id, (message) => {
        const line = this.lineTo(message.origin);
        return line.whole(message, (bytes) => line.answer(bytes, (value) => handler(line, value)));
      });
    };
    const hear = (id: number, handler: (line: Line, value: unknown) => void): void => {
      context.dispatch(id, (message) => {
        const line = this.lineTo(message.origin);
        return line.whole(message, (bytes) => {
          const value = line.codec.decode(bytes);
          line.inTurn(() => handler(line, value));
        });
      });
    };
    call(LENT, (line, value) => {
      const [number, name, args] = value as [number, string | null, unknown[]];
      return line.loans.call(number, name, args);
    });
    hear(RETURNED, (line, value) => {
      const [number, messages] = value as [number, number];
      line.loans.takeBack(number, messages);
    });
    hear(ABORTED, (line, value) => {
      const [number, reason] = value as [number, unknown];
      line.loans.abort(number, reason);
    });
  }

  /** Answers calls to these functions. @param onLeave a caller has asked this side to leave */
  serve(served: Served, onLeave: () => void): void {
    if (this.#served !== undefined) throw new PamiError("PAMIR_INVAL", "this context serves functions already");
    const { names, functions } = served;
    if (names.length > FUNCTIONS_MAX) {
      throw new PamiError("PAMIR_TOO_LARGE", `${names.length} functions are served, at most ${FUNCTIONS_MAX} can be`);
    }
    this.#served = served;
    const { context } = this;
    const methods = functions as Record<string, (...args: unknown[]) => unknown>;
    const answering = new Answering();
    context.dispatch(HELLO, (message) => this.lineTo(message.origin).codec.encode(names));
    context.dispatch(LEAVE, onLeave);
    const streams = new ServedStreams(
      (origin) => this.lineTo(origin),
      (number, args) => methods[names[number] as string]?.(...args),
    );
    streams.serve(context);
    context.dispatch(SETTLED, async ({ origin }) => {
      await Promise.allSettled([...answering.givenUp(origin), ...streams.ending(origin)]);
      return this.lineTo(origin).codec.encode(undefined);
    });
    for (const [i, name] of names.entries()) {
      context.dispatch(FUNCTIONS + i, (message) => {
        const { origin, scope } = message;
        const line = this.lineTo(origin);
        const call: ServedCall = {
          caller: origin,
          get signal() {
            return scope.signal;
          },
        };
        const answered = line.whole(message, (bytes) =>
          line.answer(bytes, (value) => within(call, () => methods[name]?.(...unpacked(value)))),
        );
        if (answered instanceof Promise) answering.add(answered, call);
        return answered;
      });
    }
  }

  /** What this side shares with an endpoint. */
  lineTo(endpoint: Endpoint): Line {
    let line = this.#lines.get(endpoint);
    if (line === undefined) {
      line = new Line(this.context, endpoint, () => this.advance());
      this.#lines.set(endpoint, line);
      this.context.whenEnded(endpoint, () => {
        this.#lines.get(endpoint)?.ended();
        this.#lines.delete(endpoint);
      });
    }
    return line;
  }

  /** Advances the context while something is lent: the others may call it, or give it back, at any time. */
  advance(): void {
    if (this.#isAdvancing) return;
    this.#isAdvancing = true;
    void this.#advanceWhileLent();
  }

  async #advanceWhileLent(): Promise<void> {
    try {
      while ([...this.#lines.values()].some((line) => line.loans.size > 0)) await this.context.progress();
    } catch (error) {
      const { code } = error as { code?: string };
      if (code !== "PAMIR_CLOSED" && code !== "PAMIR_INTERRUPTED") throw error;
    } finally {
      this.#isAdvancing = false;
    }
  }
}
