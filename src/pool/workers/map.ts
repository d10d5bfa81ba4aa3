// A bounded number of calls at once over the items of an iterable.
import { PamiError } from "../../index.js";

/**
 * Calls `work` for each item, at most `concurrency` at once, and gives the results: in the order of the items, or as they come.
 * The first error ends it: no further item is taken, and the calls that have begun go on. An error of the items comes behind
 * the results of those before it.
 */
export async function* mapped<Item, Result>(
  items: Iterable<Item> | AsyncIterable<Item>,
  work: (item: Item, place: number) => PromiseLike<Result> | Result,
  concurrency: number,
  ordered: boolean,
): AsyncGenerator<Awaited<Result>, void> {
  if (!(Number.isInteger(concurrency) && concurrency > 0)) {
    throw new PamiError("PAMIR_INVAL", `concurrency of map() is ${String(concurrency)}, not an integer from 1 on`);
  }
  if (typeof work !== "function") throw new PamiError("PAMIR_INVAL", `work of map() is ${typeof work}, not a function`);
  const source = iteratorOf(items);
  const begun = new Map<number, Promise<{ readonly place: number; readonly value: Awaited<Result> }>>();
  let taken = 0;
  let given = 0;
  let isOver = false;
  /** Why the items have ended, if by an error: it is thrown behind the results of the items before. */
  let failure: { readonly error: unknown } | undefined;
  const take = async (): Promise<{ readonly value: Item } | undefined> => {
    try {
      const next = await source.next();
      if (next.done !== true) return next;
    } catch (error) {
      failure = { error };
    }
    isOver = true;
    return undefined;
  };
  try {
    for (;;) {
      while (!isOver && begun.size < concurrency) {
        const next = await take();
        if (next === undefined) break;
        const place = taken++;
        const { value: item } = next;
        const result = (async () => ({ place, value: await work(item, place) }))();
        // It is awaited in its turn.
        result.catch(() => {});
        begun.set(place, result);
      }
      if (begun.size === 0) {
        if (failure !== undefined) throw failure.error;
        return;
      }
      const { place, value } = await (ordered
        ? (begun.get(given) as typeof begun extends Map<number, infer P> ? P : never)
        : Promise.race(begun.values()));
      begun.delete(place);
      given++;
      yield value;
    }
  } finally {
    if (!isOver) await source.return?.();
  }
}

function iteratorOf<Item>(items: Iterable<Item> | AsyncIterable<Item>): AsyncIterator<Item> | Iterator<Item> {
  const { [Symbol.asyncIterator]: ofAsync, [Symbol.iterator]: ofSync } = Object(items) as Partial<
    AsyncIterable<Item> & Iterable<Item>
  >;
  if (typeof ofAsync === "function") return ofAsync.call(items as AsyncIterable<Item>);
  if (typeof ofSync === "function") return ofSync.call(items as Iterable<Item>);
  throw new PamiError("PAMIR_INVAL", `items of map() are ${typeof items}, not an iterable`);
}
