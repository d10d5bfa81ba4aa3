// The entry pool(): an object with the functions of the workers by name, and the pool's own methods.
import { PamiError, type URLLike, type WorkerLike } from "../index.js";
import { checkCount, checkFlag, checkKeys, shown } from "./check.js";
import { CALL_KEYS, checkCallOptions, MAP_KEYS, type PoolCallOptions, type PoolOptions, sizesOf } from "./options.js";
import { type Remote, type RemoteSync, remoteOf, type Target } from "./remote.js";
import { PoolCalls } from "./workers/calls.js";
import type { PoolEvent } from "./workers/events.js";
import { mapped } from "./workers/map.js";
import type { PoolStats } from "./workers/stats.js";
import { Workers } from "./workers/workers.js";

/** What every pool has beside the functions of its workers. */
export interface PoolMethods<Api> {
  /** The functions of one worker: a place from 0 on. A worker that has ended is replaced in its place. */
  readonly [place: number]: Remote<Api>;
  /** Calls a function on every worker that runs: `workers.all.load(path)`. Resolves with the results, by their places. */
  readonly all: {
    readonly [Name in keyof Remote<Api>]: (...args: ArgsOf<Api, Name>) => Promise<ResultOf<Api, Name>[]>;
  };
  /** The functions for a thread that blocks until each has its result. */
  readonly sync: RemoteSync<Api>;
  /** The functions of the worker that belongs to a key: the same for the same key, as long as the worker lives. */
  by(key: string | number | bigint): Remote<Api>;
  /** The functions, with options for their calls. */
  with(options: PoolCallOptions): Remote<Api>;
  /**
   * Calls `work` for each item, so many at once, and iterates over the results. The items are taken as there is room.
   * @param options `concurrency` (default: as many calls as the workers work on at once) and `ordered` (default true)
   */
  map<Item, Result>(
    items: Iterable<Item> | AsyncIterable<Item>,
    work: (item: Item, place: number) => PromiseLike<Result> | Result,
    options?: { readonly concurrency?: number | undefined; readonly ordered?: boolean | undefined },
  ): AsyncGenerator<Awaited<Result>, void>;
  /** Resolves once `max` workers are ready. */
  warmUp(): Promise<void>;
  /** Listens to what happens to the workers. @returns what ends that */
  events(listener: (event: PoolEvent) => void): () => void;
  /** What the pool does now, and has done. */
  readonly stats: PoolStats;
  /** Takes no more calls, lets those end that were made, and then the workers. */
  close(): Promise<void>;
  /** Ends the workers now. Calls that are not over reject with PAMIR_CLOSED or PAMIR_SHUTDOWN. */
  terminate(): Promise<void>;
  /** close(), at the end of a block with `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
}

type ArgsOf<Api, Name> = Name extends keyof Api
  ? Api[Name] extends (...args: infer Args) => unknown
    ? Args
    : never
  : never;
type ResultOf<Api, Name> = Name extends keyof Api
  ? Api[Name] extends (...args: never[]) => infer Result
    ? Awaited<Result>
    : never
  : never;

/** A pool: the functions of its workers by name, and its own methods. */
export type Pool<Api> = Remote<Api> & PoolMethods<Api>;

/**
 * Starts a pool of workers, each of which imports the module `entry` and calls `serve()` there. Resolves once one of them
 * serves; calls wait for the others. The functions of the module are called by name: `await workers.square(12)` runs on the
 * next worker that is free. Arguments and results are copied as structured clone does it; functions and signals among the
 * arguments stay with the caller, and are called back. A worker that dies is replaced; while workers die and no call ends,
 * behind pauses that grow from 10 ms to 5 s. Only calls that are not over keep the program running.
 * @param entry as of `launch()`: `new URL("./worker.js", import.meta.url)`, or a function that makes a browser's worker
 * @throws PAMIR_INVAL; as launch(); PAMIR_SHUTDOWN with the cause if the first worker ends before it serves
 */
export async function pool<Api>(
  entry: URLLike | string | (() => WorkerLike),
  options: PoolOptions = {},
): Promise<Pool<Api>> {
  const workers = new Workers(entry, options, sizesOf(options));
  try {
    await workers.begin();
  } catch (error) {
    await workers.terminate();
    throw error;
  }
  const names = workers.names as readonly string[];
  const calls = new PoolCalls(workers, options);
  const remoteWith = (given: PoolCallOptions, place?: number): Remote<Api> =>
    remoteOf(names, targetOf(calls, given, place)) as Remote<Api>;
  const byPlace = new Map<number, Remote<Api>>();
  const atPlace = (place: number): Remote<Api> => {
    let remote = byPlace.get(place);
    if (remote === undefined) {
      remote = remoteWith({}, place);
      byPlace.set(place, remote);
    }
    return remote;
  };
  const remote = remoteOf(names, targetOf(calls, {}), (name) => {
    if (!/^\d+$/.test(name)) return undefined;
    checkCount("the place of a worker", Number(name), 0, workers.size - 1);
    return atPlace(Number(name));
  });
  const methods = {
    all: remoteOf(names, { run: (number, args) => calls.runAll(number, args) }),
    sync: remoteOf(names, { run: (number, args) => calls.runSync(number, args) }),
    by: (key: unknown) => atPlace(placeOf(key, workers.size)),
    with(given: PoolCallOptions) {
      checkKeys("options of with()", given, CALL_KEYS);
      checkCallOptions("with()", given);
      return remoteWith(given);
    },
    ...ownMethods(workers, calls),
  };
  Object.defineProperties(remote, Object.getOwnPropertyDescriptors(methods));
  Object.defineProperty(remote, "stats", { get: () => calls.stats });
  return remote as unknown as Pool<Api>;
}

/** Where the calls of an object go. @param place the only worker's */
function targetOf(calls: PoolCalls, given: PoolCallOptions, place?: number): Target {
  return {
    run: (number, args) => calls.run(number, args, given, place),
    stream: (number, args) => calls.stream(number, args, given, place),
  };
}

/** Methods of a pool that need no functions of its workers. */
function ownMethods(workers: Workers, calls: PoolCalls): object {
  return {
    map(items: never, work: never, given: { concurrency?: number; ordered?: boolean } = {}) {
      checkKeys("options of map()", given, MAP_KEYS);
      checkFlag("ordered of map()", given.ordered);
      return mapped(items, work, given.concurrency ?? workers.capacity, given.ordered ?? true);
    },
    warmUp: () => workers.warmUp(),
    events: (listener: (event: PoolEvent) => void) => workers.events.listen(listener),
    close: () => calls.close(),
    terminate: () => workers.terminate(),
    [Symbol.asyncDispose]: () => calls.close(),
  };
}

/** The place of the worker that belongs to a key. @throws PAMIR_INVAL */
function placeOf(key: unknown, size: number): number {
  if (!["string", "number", "bigint"].includes(typeof key)) {
    throw new PamiError("PAMIR_INVAL", `the key of by() is ${shown(key)}, not a string, a number or a bigint`);
  }
  const text = String(key);
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return (hash >>> 0) % size;
}
