// Functions of a worker as the caller sees them: an object with a function for each name.
import { PamiError } from "../index.js";
import { untilDropped } from "./exchange/streams.js";

// biome-ignore lint/suspicious/noExplicitAny: functions of any parameters.
type AnyFunction = (...args: any[]) => any;

/** The values that an iterable of a function gives. */
type ElementOf<Result> = Awaited<Result> extends AsyncIterable<infer Value> | Iterable<infer Value> ? Value : never;

/** A function of a worker's. */
export interface RemoteFunction<F extends AnyFunction> {
  /** Calls it. Rejects with what it throws, as a RemoteError. */
  (...args: Parameters<F>): Promise<Awaited<ReturnType<F>>>;
  /**
   * Calls it, and iterates over the iterable that it returns. The worker goes on while the loop works, by two answers of up to
   * 64 values at the most. Leaving the loop ends the iterator there; so does dropping it, once it is collected. The loop waits
   * neither for that end nor for its errors: the iterator is ahead, and may wait for a value that the loop never asked for.
   */
  stream(...args: Parameters<F>): AsyncGenerator<ElementOf<ReturnType<F>>, void>;
}

/** The functions of a worker, by name. */
export type Remote<Api> = {
  readonly [Name in keyof Api as Api[Name] extends AnyFunction ? Name : never]: Api[Name] extends AnyFunction
    ? RemoteFunction<Api[Name]>
    : never;
};

/** The functions of a worker, by name, for a thread that blocks until each has its result. */
export type RemoteSync<Api> = {
  readonly [Name in keyof Api as Api[Name] extends AnyFunction ? Name : never]: Api[Name] extends AnyFunction
    ? (...args: Parameters<Api[Name]>) => Awaited<ReturnType<Api[Name]>>
    : never;
};

/** Where calls go. */
export interface Target {
  run(number: number, args: unknown[]): unknown;
  stream?(number: number, args: unknown[]): AsyncGenerator<unknown, void>;
}

/**
 * Makes the object. A name that is not served is an error that lists those that are.
 * @param other what a number or a name that is not served stands for, if anything
 */
export function remoteOf(
  names: readonly string[],
  target: Target,
  other: (name: string) => unknown = () => undefined,
): Record<string, unknown> {
  const remote = Object.create(unknownNames(names, other)) as Record<string, unknown>;
  for (const [number, name] of names.entries()) {
    const call = (...args: unknown[]): unknown => target.run(number, args);
    Object.defineProperty(call, "name", { value: name });
    const { stream } = target;
    if (stream !== undefined) {
      Object.assign(call, { stream: (...args: unknown[]) => untilDropped(stream(number, args)) });
    }
    // Also a function named __proto__ is a function.
    Object.defineProperty(remote, name, { value: call, enumerable: true, configurable: true, writable: true });
  }
  Object.defineProperty(remote, INSPECTED, { value: () => ({ ...remote }) });
  return remote;
}

/** Node shows what this method gives. Else it asks for names of its own, which no worker serves. */
const INSPECTED = Symbol.for("nodejs.util.inspect.custom");

/** Names that the language and its tools ask of any object, a promise's `then` above all. */
const ASKED = new Set([
  "then",
  "toJSON",
  "constructor",
  "asymmetricMatch",
  "nodeType",
  "tagName",
  "$$typeof",
  "inspect",
  "length",
  "toString",
  "valueOf",
]);

/** A prototype without names: what is asked of it was not found. */
function unknownNames(names: readonly string[], other: (name: string) => unknown): object {
  return new Proxy(Object.create(null) as object, {
    get(_, name) {
      if (typeof name === "symbol") return undefined;
      const found = other(name);
      if (found !== undefined || ASKED.has(name) || name.startsWith("@@")) return found;
      const listed =
        names.length > 20 ? `${names.slice(0, 20).join(", ")}, and ${names.length - 20} more` : names.join(", ");
      throw new PamiError("PAMIR_INVAL", `the worker serves no function ${JSON.stringify(name)}, but ${listed}`);
    },
  });
}
