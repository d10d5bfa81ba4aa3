// pamir/piscina: the pool of piscina, whose workers are reached by pamir. Programs for piscina run unchanged; the workers' files too.
import { EventEmitterAsyncResource } from "node:events";
import type { MessagePort, Worker } from "node:worker_threads";
import { VERSION } from "../index.js";
import { systemClock } from "../support/clock.js";
import type { HistogramSummary } from "./histogram.js";
import { checkOptions, type FilledOptions, type Options } from "./options.js";
import { workerState } from "./state.js";
import { type AbortSignalAny, ArrayTaskQueue, FixedQueue } from "./task.js";
import { type GivenTaskOptions, ThreadPool } from "./thread-pool.js";
import {
  move,
  queueOptionsSymbol,
  type Transferable,
  type TransferListItem,
  transferableSymbol,
  valueSymbol,
} from "./transfer.js";

/** Options of `piscina.run`. */
export interface RunOptions {
  /** What the task transfers instead of copying. */
  transferList?: readonly TransferListItem[] | undefined;
  /** The file of this task (default: the Piscina's). */
  filename?: string | null | undefined;
  /** Aborting it rejects with an AbortError. If a worker has the task, that worker is ended, and replaced. */
  signal?: AbortSignalAny | null | undefined;
  /** The file's export that runs this task (default: the Piscina's). */
  name?: string | null | undefined;
}

/** Options of `piscina.close`. */
export interface CloseOptions {
  /** Whether tasks that wait are rejected (default false: they are run). */
  force?: boolean | undefined;
}

/** Times of the tasks of a Piscina. */
export interface PiscinaHistogram {
  /** From the time when a worker gets a task to its end. */
  readonly runTime: HistogramSummary | undefined;
  /** From `run()` to the time when a worker gets the task. */
  readonly waitTime: HistogramSummary | undefined;
  /** Forgets the run times. */
  resetRunTime(): void;
  /** Forgets the wait times. */
  resetWaitTime(): void;
}

const isObject = (value: unknown): value is object => typeof value === "object" && value !== null;

/** An own property: none that the program has given to all objects. */
const own = <O extends object, K extends keyof O>(options: O, name: K): O[K] | undefined =>
  Object.hasOwn(options, name) ? options[name] : undefined;

const NONE: GivenTaskOptions = { transferList: undefined, filename: null, name: null, signal: null };

/** Checks of the options of `run`. @throws TypeError */
function taskOptions(options: RunOptions): GivenTaskOptions {
  if (!isObject(options)) throw new TypeError("options must be an object");
  const transferList = own(options, "transferList");
  const filename = own(options, "filename") ?? null;
  const name = own(options, "name") ?? null;
  const signal = own(options, "signal") ?? null;
  if (transferList !== undefined && !Array.isArray(transferList)) {
    throw new TypeError("transferList argument must be an Array");
  }
  if (filename !== null && typeof filename !== "string") throw new TypeError("filename argument must be a string");
  if (name !== null && typeof name !== "string") throw new TypeError("name argument must be a string");
  if (signal !== null && typeof signal !== "object") throw new TypeError("signal argument must be an object");
  return { transferList, filename, name, signal };
}

/**
 * A pool of worker threads, each of which runs the function that a file exports. Events: `drain`, `needsDrain`, `error`,
 * `message`, `close`, `workerCreate` and `workerDestroy`. Workers that have nothing to do don't keep the program running.
 *
 * Programs for piscina 5 run unchanged. The first hundred tasks go by a MessagePort, as in piscina. Then the pool launches a
 * job, which its workers join: one more thread. What differs:
 *
 * | what                               | in piscina                                       | here                                   |
 * | ---------------------------------- | ------------------------------------------------ | -------------------------------------- |
 * | a result that can't be copied      | ends its worker; rejects with `{}`               | rejects with a DataCloneError          |
 * | own fields and names of errors     | are lost                                         | arrive                                 |
 * | `throw null`                       | resolves with null                               | rejects with null                      |
 * | a view of a longer buffer          | arrives over a copy of the buffer                | over its own bytes, if it comes alone  |
 * | a histogram, a BlockList of Node's | is copied                                        | arrives as a plain object              |
 * | tasks that find no worker          | go behind the others, without `stricterFIFO`     | keep their order                       |
 * | what `maxQueue: 0` has refused     | rejects, and is run later                        | rejects                                |
 * | a queue of the program's           | gets tasks back by `push` or `unshift`           | is asked by `shift`, `push`, `remove`  |
 * | `needsDrain`                       | changes a microtask later                        | changes at once                        |
 * | timers of a worker between tasks   | stand still, unless `atomics` says otherwise     | run                                    |
 * | `atomics`, `stricterFIFO`          | choose how workers wait and queues are kept      | are checked, and have no effect        |
 * | `niceIncrement`                    | needs `@napi-rs/nice`                            | needs Linux                            |
 * | NaN as an option                   | is taken                                         | is a TypeError                         |
 * | `Piscina.version`                  | is piscina's                                     | is pamir's                             |
 */
// biome-ignore lint/suspicious/noExplicitAny: tasks and results of any type, as piscina has them.
export class Piscina<T = any, R = any> extends EventEmitterAsyncResource {
  readonly #pool: ThreadPool;
  readonly #histogram: PiscinaHistogram;

  /** Makes the pool, and starts `minThreads` workers. @throws TypeError, RangeError */
  constructor(options: Options = {}) {
    const own: Options = Object.assign(Object.create(null), options);
    super({ name: "Piscina" });
    checkOptions(own);
    const pool = new ThreadPool(this, own);
    this.#pool = pool;
    this.#histogram = {
      get runTime() {
        return pool.runTimes?.summary;
      },
      get waitTime() {
        return pool.waitTimes?.summary;
      },
      resetRunTime: () => pool.runTimes?.reset(),
      resetWaitTime: () => pool.waitTimes?.reset(),
    };
  }

  /**
   * Runs a task on the next worker that has room. Rejects with what the function throws; with an AbortError; with why the
   * worker has ended; with an Error if `maxQueue` tasks wait.
   */
  run(task: T, options?: RunOptions): Promise<R> {
    if (options === undefined) return this.#pool.run(task, NONE) as Promise<R>;
    try {
      return this.#pool.run(task, taskOptions(options)) as Promise<R>;
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** Takes no more tasks, waits for those that it has, up to `closeTimeout`, and ends the workers. */
  async close(options: CloseOptions = {}): Promise<void> {
    if (!isObject(options)) throw new TypeError("options must be an object");
    const force = own(options, "force") ?? false;
    if (typeof force !== "boolean") throw new TypeError("force argument must be a boolean");
    await this.#pool.close(force);
  }

  /** Ends the workers now. Tasks that are not over reject. */
  destroy(): Promise<void> {
    return this.#pool.destroy();
  }

  /** close(), at the end of a block with `using`: it is not awaited. */
  [Symbol.dispose](): void {
    void this.close();
  }

  /** close(), at the end of a block with `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** Workers at the most. */
  get maxThreads(): number {
    return this.#pool.options.maxThreads;
  }

  /** Workers that are always there. */
  get minThreads(): number {
    return this.#pool.options.minThreads;
  }

  /** The options that hold. */
  get options(): FilledOptions {
    return this.#pool.options;
  }

  /** The workers. */
  get threads(): Worker[] {
    return [...this.#pool.threads].map(({ worker }) => worker);
  }

  /** Workers that have no task. */
  get idleThreads(): number {
    return this.#pool.idleThreads;
  }

  /** Tasks that wait, but for those that starting workers will take. */
  get queueSize(): number {
    return this.#pool.queueSize;
  }

  /** Tasks that are over, also those that have failed. */
  get completed(): number {
    return this.#pool.completed;
  }

  /** Times of the tasks. */
  get histogram(): PiscinaHistogram {
    return this.#histogram;
  }

  /** The part of the time of `maxThreads` workers that was spent on tasks: 0 to 1. */
  get utilization(): number {
    const { runTimes, options } = this.#pool;
    if (runTimes === undefined || runTimes.count === 0) return 0;
    return (runTimes.summary.mean * runTimes.count) / (this.duration * options.maxThreads);
  }

  /** Milliseconds since the pool was made. */
  get duration(): number {
    return systemClock.now() - this.#pool.start;
  }

  /** Whether all workers have all the tasks that they take. */
  get needsDrain(): boolean {
    return this.#pool.needsDrain;
  }

  /** Whether this thread is a worker of a Piscina. */
  static get isWorkerThread(): boolean {
    return workerState() !== undefined;
  }

  /** The option `workerData`, in a worker. */
  // biome-ignore lint/suspicious/noExplicitAny: any value.
  static get workerData(): any {
    return workerState()?.workerData;
  }

  /** The version of pamir. */
  static get version(): string {
    return VERSION;
  }

  /** This class. */
  static get Piscina(): typeof Piscina {
    // biome-ignore lint/complexity/noThisInStatic: a name of its own makes esbuild rename the class.
    return this;
  }

  /** A queue of any length. */
  static get FixedQueue(): typeof FixedQueue {
    return FixedQueue;
  }

  /** A queue in an array. */
  static get ArrayTaskQueue(): typeof ArrayTaskQueue {
    return ArrayTaskQueue;
  }

  /** Marks a task or a result to be transferred: see `move()`. */
  static move(
    value: Transferable | TransferListItem | ArrayBufferView | ArrayBuffer | MessagePort,
  ): ArrayBuffer | ArrayBufferView | MessagePort | Transferable {
    return move(value);
  }

  /** Key of what a `Transferable` transfers. */
  static get transferableSymbol(): typeof transferableSymbol {
    return transferableSymbol;
  }

  /** Key of the value that goes instead of a `Transferable`. */
  static get valueSymbol(): typeof valueSymbol {
    return valueSymbol;
  }

  /** Key of a task's options for the queue. */
  static get queueOptionsSymbol(): typeof queueOptionsSymbol {
    return queueOptionsSymbol;
  }
}

/** Whether this thread is a worker of a Piscina. */
export const isWorkerThread: boolean = workerState() !== undefined;
/** The option `workerData`, in a worker. */
// biome-ignore lint/suspicious/noExplicitAny: any value.
export const workerData: any = workerState()?.workerData;
/** The version of pamir. */
export const version: string = VERSION;

export type { HistogramSummary } from "./histogram.js";
export type { FilledOptions, Options } from "./options.js";
export {
  type AbortSignalAny,
  ArrayTaskQueue,
  FixedQueue,
  type PiscinaLoadBalancer,
  type PiscinaTask,
  type PiscinaWorker,
  type QueuedTask,
  type TaskQueue,
} from "./task.js";
export {
  move,
  queueOptionsSymbol,
  type Transferable,
  type TransferListItem,
  transferableSymbol,
  valueSymbol,
} from "./transfer.js";
export { Piscina as default, Piscina as "module.exports" };
