// Calls by name between this context and other endpoints, in both directions: what each side serves, and what it has lent.
import { type CallScope, type Context, type Endpoint, type InPlaceCodec, PamiError } from "../../index.js";
import { promised } from "../../support/promise.js";
import { type ServedCall, within } from "./current-call.js";
import { type Arrived, answer, Line, type Listener } from "./line.js";
import { ServedStreams } from "./streams.js";
import { ABORTED, FUNCTIONS, FUNCTIONS_MAX, HELLO, LEAVE, LENT, RETURNED, SETTLED, unpacked } from "./wire.js";

function neverEncodes(): never {
  throw new PamiError("PAMIR_INVAL", "a request is encoded by its caller's line");
}

function neverDecodes(): never {
  throw new PamiError("PAMIR_INVAL", "a reply is decoded by its caller's line");
}

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
export class Exchange implements Listener {
  readonly context: Context;
  readonly #lines = new Map<Endpoint, Line>();
  #served: Served | undefined;
  #isAdvancing = false;

  /** Values of calls from all endpoints, each by its line's codec. */
  readonly #requests: InPlaceCodec<Arrived> = {
    encode: neverEncodes,
    decode: (bytes, peer, body) => this.lineTo(peer as Endpoint).read(bytes, body),
    inPlace: true,
    hasParts: true,
  };
  constructor(context: Context) {
    this.context = context;
    this.answer(LENT, (arrived) =>
      answer(arrived, (value) => {
        const [number, name, args] = value as [number, string | null, unknown[]];
        return arrived.line.loans.call(number, name, args);
      }),
    );
    this.hear(RETURNED, ({ loans }, value) => {
      const [number, messages] = value as [number, number];
      loans.takeBack(number, messages);
    });
    this.hear(ABORTED, ({ loans }, value) => {
      const [number, reason] = value as [number, unknown];
      loans.abort(number, reason);
    });
  }

  /** Of the replies to calls of one dispatch id. */
  #repliesTo(id: number): InPlaceCodec<unknown> {
    return {
      encode: (value, peer, parts) => this.lineTo(peer as Endpoint).encodeReply(id, value, parts),
      decode: neverDecodes,
      inPlace: true,
      hasParts: true,
    };
  }

  answer(id: number, handler: (arrived: Arrived, origin: Endpoint, call: CallScope) => unknown): void {
    this.context.dispatch({ id, request: this.#requests, reply: this.#repliesTo(id) }, (arrived, origin, scope) =>
      arrived.line.isFree(arrived)
        ? handler(arrived, origin, scope)
        : arrived.line.inTurn(arrived, (whole) => handler(whole, origin, scope)),
    );
  }

  hear(id: number, handler: (line: Line, value: unknown) => void): void {
    this.context.dispatch(id, (message) => {
      const line = this.lineTo(message.origin);
      const value = line.codec.decode(message.payload);
      const arrived = { line, value, end: undefined };
      if (line.isFree(arrived)) handler(line, value);
      else void line.inTurn(arrived, () => handler(line, value));
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
    this.answer(HELLO, ({ line, value }) => {
      const { port } = context;
      if (value !== true || port === undefined) return [names, false];
      line.mover.open(port);
      return [names, true];
    });
    context.dispatch(LEAVE, onLeave);
    const streams = new ServedStreams((number, args) => methods[names[number] as string]?.(...args));
    streams.serve(this);
    this.answer(SETTLED, async ({ line }, origin) => {
      await Promise.allSettled([...answering.givenUp(origin), ...streams.ending(origin)]);
      return line.mover.lastReply;
    });
    for (const [i, name] of names.entries()) {
      this.answer(FUNCTIONS + i, (arrived, origin, scope) => {
        const call: ServedCall = {
          caller: origin,
          get signal() {
            return scope.signal;
          },
        };
        const answered = answer(arrived, (value) => within(call, () => methods[name]?.(...unpacked(value))));
        const settled = promised(answered);
        if (settled !== undefined) answering.add(settled, call);
        return settled ?? answered;
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
