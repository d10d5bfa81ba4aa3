// A pool of workers whose functions are called by name.
import {
  type AbortSignalLike,
  type Job,
  type LaunchOptions,
  launch,
  PamiError,
  type TaskExit,
  type URLLike,
  type WorkerLike,
} from "../index.js";
import { systemClock } from "../support/clock.js";
import { hardwareThreads } from "../support/cores.js";
import { after, pause } from "../support/timers.js";
import { type Exchange, exchangeOf } from "./exchange.js";
import type { Line } from "./line.js";
import { mapped } from "./map.js";
import { type Item, Queue } from "./queue.js";
import { type Remote, type RemoteSync, remoteOf, type Target } from "./remote.js";
import { Timer, type Times } from "./stats.js";
import { readStream } from "./streams.js";
import { FUNCTIONS, HELLO, LEAVE, packed, SETTLED } from "./wire.js";

/** Options of a call: those of the pool hold where a call has none. */
export interface PoolCallOptions {
  /** Aborting it rejects the call with PAMIR_CANCELED; the function's `currentCall().signal` is aborted. */
  readonly signal?: AbortSignalLike | undefined;
  /**
   * Milliseconds until the call rejects with PAMIR_TIMEDOUT, the wait for a worker and retries included. Of a stream: the
   * longest wait for a worker, and then for an answer with values. Default: no limit.
   */
  readonly timeout?: number | undefined;
  /** Calls of a higher priority are begun first (default 0). */
  readonly priority?: number | undefined;
  /**
   * How often a call is begun again when its worker dies (default 0). A function that has begun may have done a part of its
   * work: only functions that may run twice are safe. Calls that wait for a worker always go to another one. Streams are
   * not begun again.
   */
  readonly retries?: number | undefined;
}

/** Options of `pool`. */
export interface PoolOptions
  extends Pick<
    LaunchOptions,
    "kernel" | "heapBytes" | "args" | "workerOptions" | "debug" | "trace" | "top" | "onError"
  > {
  /** Number of workers (default: hardware threads less one, for the caller). With `min` and `max`, they come and go. */
  readonly workers?: number | undefined;
  /** Workers that are always there (default: `workers`). */
  readonly min?: number | undefined;
  /** Workers at the most (default: `workers`). */
  readonly max?: number | undefined;
  /** Milliseconds after which an idle worker beyond `min` ends (default 10,000). */
  readonly idleTimeout?: number | undefined;
  /** Calls that a worker works on at once (default 1): more for functions that await something. */
  readonly concurrency?: number | undefined;
  /** Calls that wait for a worker at the most (default 65,536). A call beyond rejects with PAMIR_QUEUE_FULL. */
  readonly maxQueue?: number | undefined;
  /** A worker is replaced after so many calls (default: never). */
  readonly recycleAfter?: number | undefined;
  /**
   * Milliseconds that a function may go on after its call was canceled or has timed out (default: no limit). Then its worker
   * is ended, and replaced. Until it has ended, its worker gets no further calls.
   */
  readonly killAfter?: number | undefined;
  /** Milliseconds in which a worker has to serve (default 60,000). */
  readonly startTimeout?: number | undefined;
  /** Whether the workers are processes instead of threads (default false). Only in Node. */
  readonly processes?: boolean | undefined;
  /** Milliseconds until a call rejects with PAMIR_TIMEDOUT, unless the call has its own limit (default: none). */
  readonly timeout?: number | undefined;
  /** How often a call is begun again when its worker dies, unless the call says so itself (default 0). */
  readonly retries?: number | undefined;
}

/** An event of a pool. */
export type PoolEvent =
  | { readonly type: "start" | "ready"; readonly worker: number }
  | { readonly type: "exit"; readonly worker: number; readonly exit: TaskExit }
  | { readonly type: "drain" };

/** What a pool does and has done. */
export interface PoolStats {
  /** Workers that serve. */
  readonly workers: number;
  /** Those of them that have nothing to do. */
  readonly idle: number;
  /** Calls that wait for a worker. */
  readonly queued: number;
  /** Calls that workers work on, also those that were given up. */
  readonly running: number;
  /** Calls that are over: each that was not refused at once, by PAMIR_CLOSED or PAMIR_QUEUE_FULL. */
  readonly completed: number;
  /** Those of them that were rejected. */
  readonly failed: number;
  /** Times from a call to its begin on a worker. */
  readonly waitTime: Times;
  /** Times from that begin to the call's end. */
  readonly runTime: Times;
}

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

/** Tasks of a job over its life: a pool makes another job when they are used up. */
const JOB_TASKS = 256;
/** Workers in a row that fail before they are ready: then waiting calls reject. */
const FAILURES_MAX = 3;
/** Milliseconds in which a worker that was asked to leave has to end. */
const LEAVE_MS = 1000;

/** Milliseconds in which a worker has to serve (default of `startTimeout`). */
const START_MS = 60_000;
const IDLE_MS = 10_000;
const QUEUE_MAX = 65_536;

/** A job, and the caller's side of it. */
interface Crew {
  readonly job: Job;
  readonly exchange: Exchange;
  /** Its workers that have not ended, by their tasks. */
  readonly workers: Map<number, PoolWorker>;
  /** Called when the last of them has ended. */
  onEmpty: (() => void) | undefined;
}

class PoolWorker {
  readonly place: number;
  readonly task: number;
  readonly crew: Crew;
  readonly line: Line;
  /** Calls that it works on, also those that were given up. */
  running = 0;
  /** Calls that it has begun. */
  begun = 0;
  isReady = false;
  isLeaving = false;
  /** Ends the wait for its idle time. */
  stopIdle: (() => void) | undefined;

  constructor(place: number, task: number, crew: Crew) {
    this.place = place;
    this.task = task;
    this.crew = crew;
    this.line = crew.exchange.lineTo(crew.job.client.endpoint(task));
  }
}

/** A call that waits for a worker. */
class Waiting implements Item<Waiting> {
  readonly place: number | undefined;
  readonly priority: number;
  readonly resolve: (worker: PoolWorker) => void;
  readonly reject: (error: unknown) => void;
  order = 0;
  previous: Waiting | undefined;
  next: Waiting | undefined;

  constructor(
    place: number | undefined,
    priority: number,
    resolve: (worker: PoolWorker) => void,
    reject: (error: unknown) => void,
  ) {
    this.place = place;
    this.priority = priority;
    this.resolve = resolve;
    this.reject = reject;
  }
}

/** A call that the pool has taken. */
interface Call {
  readonly number: number;
  readonly args: unknown[];
  readonly options: PoolCallOptions;
  /** The only place where it may run; undefined: any. */
  readonly place: number | undefined;
  /** When it was made, and when it times out. */
  readonly since: number;
  readonly deadline: number;
  /** How often it may still be begun again. */
  retries: number;
}

interface Sizes {
  readonly min: number;
  readonly max: number;
}

type Entry = URLLike | string | (() => WorkerLike);

const now = (): number => systemClock.now();

/** Calls on workers that come and go. */
class Workers {
  readonly #entry: Entry;
  readonly #options: PoolOptions;
  readonly #min: number;
  readonly #concurrency: number;
  readonly #workers: (PoolWorker | undefined)[];
  /** Places whose workers are starting. */
  readonly #starting = new Set<number>();
  readonly #queue = new Queue<Waiting>();
  readonly #waitTime = new Timer();
  readonly #runTime = new Timer();
  readonly #listeners = new Set<(event: PoolEvent) => void>();
  readonly #crews = new Set<Crew>();
  /** The crew that gets the next worker. */
  #crew: Promise<Crew> | undefined;
  /** Names of the functions, once a worker has told them. */
  names: readonly string[] | undefined;
  readonly #onNames: { resolve(): void; reject(error: unknown): void }[] = [];
  /** Workers in a row that have ended before they were ready, and why the last one did. */
  #failures = 0;
  #failure: unknown;
  /** Calls that are not over. */
  #open = 0;
  #running = 0;
  #completed = 0;
  #failed = 0;
  #isClosed = false;
  #isTerminated = false;
  #closing: Promise<void> | undefined;
  #onQuiet: (() => void)[] = [];
  #onReady: (() => void)[] = [];

  constructor(entry: Entry, options: PoolOptions, { min, max }: Sizes) {
    this.#entry = entry;
    this.#options = options;
    this.#min = min;
    this.#concurrency = options.concurrency ?? 1;
    this.#workers = new Array<PoolWorker | undefined>(max).fill(undefined);
  }

  get size(): number {
    return this.#workers.length;
  }

  /** Calls that all workers work on at once. */
  get capacity(): number {
    return this.size * this.#concurrency;
  }

  /** Starts the first workers. Resolves once one of them serves. @throws why none does */
  async begin(): Promise<void> {
    const served = new Promise<void>((resolve, reject) => this.#onNames.push({ resolve, reject }));
    const count = Math.max(1, this.#min);
    for (let place = 0; place < count; place++) this.#starting.add(place);
    const crew = await this.#launch(count);
    this.#crew = Promise.resolve(crew);
    for (let place = 0; place < count; place++) this.#greet(place, 1 + place, crew);
    await served;
  }

  // ── Starting and ending of workers

  async #launch(count: number): Promise<Crew> {
    const { processes = false, kernel, heapBytes, args, workerOptions, debug, trace, top, onError } = this.#options;
    const early: TaskExit[] = [];
    let crew: Crew | undefined;
    const job = await launch(this.#entry, {
      tasks: 1 + count,
      maxTasks: Math.max(JOB_TASKS, 1 + 2 * this.size),
      contexts: 2,
      join: true,
      onExit: (exit) => (crew === undefined ? void early.push(exit) : this.#ended(crew, exit)),
      processes: processes ? count : undefined,
      kernel,
      heapBytes,
      args,
      workerOptions,
      debug,
      trace,
      top,
      onError,
    });
    crew = { job, exchange: exchangeOf(job.client.createContext()), workers: new Map(), onEmpty: undefined };
    this.#crews.add(crew);
    if (this.#isTerminated) {
      await this.#terminateCrew(crew);
      throw closedError();
    }
    job.unref();
    for (const exit of early) this.#ended(crew, exit);
    return crew;
  }

  /** Starts a worker in a place that has none. */
  async #start(place: number): Promise<void> {
    this.#starting.add(place);
    try {
      let crew = await this.#crew?.catch(() => undefined);
      let task: number | undefined;
      try {
        task = crew?.job.spawn();
      } catch (error) {
        // The job has had all of its tasks, or is over.
        if (!["PAMIR_INVAL", "PAMIR_CLOSED"].includes((error as PamiError).code)) throw error;
      }
      if (crew === undefined || task === undefined) {
        crew = await this.#launchNext();
        task = 1;
      }
      this.#greet(place, task, crew);
    } catch (error) {
      this.#starting.delete(place);
      this.#startFailed(error);
    }
  }

  /** Launches the crew that gets the next workers. */
  async #launchNext(): Promise<Crew> {
    const crew = this.#launch(1);
    this.#crew = crew;
    try {
      return await crew;
    } catch (error) {
      // The next worker tries anew.
      if (this.#crew === crew) this.#crew = undefined;
      throw error;
    }
  }

  #greet(place: number, task: number, crew: Crew): void {
    const worker = new PoolWorker(place, task, crew);
    crew.workers.set(task, worker);
    this.#tell({ type: "start", worker: place });
    const timeout = this.#options.startTimeout ?? START_MS;
    worker.line.ask(HELLO, undefined, { timeout }).then(
      (names) => this.#greeted(worker, names as string[]),
      (error) => {
        this.#starting.delete(place);
        if ((error as PamiError).code === "PAMIR_TIMEDOUT") {
          const text = `worker ${place} has not called serve() within ${timeout} ms`;
          this.#startFailed(new PamiError("PAMIR_TIMEDOUT", text, { cause: error }));
          void crew.job.terminate(task).catch(() => {});
        } else this.#startFailed(error);
      },
    );
  }

  #greeted(worker: PoolWorker, names: readonly string[]): void {
    this.#starting.delete(worker.place);
    this.#failures = 0;
    worker.isReady = true;
    this.#workers[worker.place] = worker;
    if (this.names === undefined) {
      this.names = names;
      for (const { resolve } of this.#onNames.splice(0)) resolve();
    }
    this.#tell({ type: "ready", worker: worker.place });
    if (this.#isClosed && this.#open === 0) this.#leave(worker);
    else this.#next(worker);
    for (const look of this.#onReady) look();
  }

  #startFailed(error: unknown): void {
    this.#failures++;
    this.#failure = error;
    for (const { reject } of this.#onNames.splice(0)) reject(error);
    if (this.#failures >= FAILURES_MAX || this.names === undefined) {
      for (const { reject } of this.#queue.clear()) reject(error);
    } else this.#grow();
    for (const look of this.#onReady) look();
  }

  /** Starts the workers that are needed: `min` of them, those whose places calls wait for, and one more if others wait. */
  #grow(): void {
    if (this.#failures >= FAILURES_MAX || this.#isTerminated) return;
    const isMissing = (place: number): boolean => this.#workers[place] === undefined && !this.#starting.has(place);
    for (const place of this.#queue.places) if (isMissing(place)) void this.#start(place);
    let count = this.#starting.size;
    for (const worker of this.#workers) if (worker !== undefined) count++;
    const isShort = this.#queue.hasAny && this.#queue.size > this.#starting.size;
    const wanted = Math.min(this.size, Math.max(this.#isClosed ? 0 : this.#min, isShort ? count + 1 : 0));
    for (let place = 0; place < this.size && count < wanted; place++) {
      if (!isMissing(place)) continue;
      count++;
      void this.#start(place);
    }
  }

  #ended(crew: Crew, exit: TaskExit): void {
    const worker = crew.workers.get(exit.task);
    crew.workers.delete(exit.task);
    if (worker !== undefined) {
      this.#retire(worker);
      this.#tell({ type: "exit", worker: worker.place, exit });
    }
    if (crew.workers.size === 0) {
      crew.onEmpty?.();
      void this.#dismiss(crew);
    }
    this.#grow();
  }

  /** Ends a crew without workers that gets no more. */
  async #dismiss(crew: Crew): Promise<void> {
    if (!this.#isClosed && (await this.#crew?.catch(() => undefined)) === crew) return;
    this.#crews.delete(crew);
    await crew.job.terminate();
  }

  /** Ends a crew, and keeps the program running until it has ended. */
  async #terminateCrew({ job }: Crew): Promise<void> {
    job.ref();
    await job.terminate();
  }

  /** A worker gets no calls any more, and its place is free for another one. */
  #retire(worker: PoolWorker): void {
    worker.isLeaving = true;
    worker.stopIdle?.();
    if (this.#workers[worker.place] === worker) this.#workers[worker.place] = undefined;
  }

  /** Asks a worker to end. */
  #leave(worker: PoolWorker): void {
    this.#retire(worker);
    if (!worker.crew.workers.has(worker.task)) return;
    worker.line.tell(LEAVE, undefined);
    after(LEAVE_MS, () => void worker.crew.job.terminate(worker.task).catch(() => {}), false);
  }

  // ── Calls

  /** A worker that takes a call now, for which it is counted. */
  #take(place: number | undefined): PoolWorker | undefined {
    let free: PoolWorker | undefined;
    if (place !== undefined) free = this.#workers[place];
    else {
      for (const worker of this.#workers) {
        if (worker === undefined || worker.isLeaving) continue;
        if (free === undefined || worker.running < free.running) free = worker;
        if (free.running === 0) break;
      }
    }
    if (free === undefined || free.running >= this.#concurrency) return undefined;
    this.#occupy(free);
    return free;
  }

  #occupy(worker: PoolWorker): void {
    worker.running++;
    worker.begun++;
    worker.stopIdle?.();
    this.#running++;
  }

  /**
   * A worker for a call, which is counted there. No call waits that a free worker would take: so a call may take one at once.
   */
  #worker(place: number | undefined, options: PoolCallOptions, deadline: number): Promise<PoolWorker> {
    const free = this.#take(place);
    if (free !== undefined) return Promise.resolve(free);
    if (this.#isTerminated) return Promise.reject(closedError());
    const { signal, priority = 0 } = options;
    if (signal?.aborted === true) return Promise.reject(canceledError(signal));
    if (this.#failures >= FAILURES_MAX) this.#failures = FAILURES_MAX - 1; // One more attempt for this call.
    return new Promise((resolve, reject) => {
      let stopTimer = (): void => {};
      const forget = (): void => {
        stopTimer();
        signal?.removeEventListener("abort", cancel);
      };
      const waiting = new Waiting(
        place,
        priority,
        (worker) => {
          forget();
          resolve(worker);
        },
        (error) => {
          forget();
          reject(error as Error);
        },
      );
      const cancel = (): void => {
        if (this.#queue.remove(waiting)) waiting.reject(canceledError(signal as AbortSignalLike));
      };
      if (deadline !== Number.POSITIVE_INFINITY) {
        const late = (): void => {
          const text = "no worker was free for a call within its timeout";
          if (this.#queue.remove(waiting)) waiting.reject(new PamiError("PAMIR_TIMEDOUT", text));
        };
        stopTimer = after(Math.max(0, deadline - now()), late);
      }
      signal?.addEventListener("abort", cancel, { once: true });
      this.#queue.push(waiting);
      this.#grow();
    });
  }

  /** A worker is free for a call more. */
  #next(worker: PoolWorker): void {
    while (!worker.isLeaving && worker.running < this.#concurrency) {
      const waiting = this.#queue.take(worker.place);
      if (waiting === undefined) break;
      this.#occupy(worker);
      waiting.resolve(worker);
    }
    if (worker.running === 0) this.#idle(worker);
  }

  #idle(worker: PoolWorker): void {
    if (this.#isClosed || worker.isLeaving) return;
    const isSpare = (): boolean => this.#workers.filter((one) => one !== undefined).length > this.#min;
    if (!isSpare()) return;
    worker.stopIdle?.();
    const spare = (): void => {
      if (worker.running === 0 && isSpare()) this.#leave(worker);
    };
    const stop = after(this.#options.idleTimeout ?? IDLE_MS, spare, false);
    worker.stopIdle = () => {
      stop();
      worker.stopIdle = undefined;
    };
  }

  /** A call of a worker is over. */
  #release(worker: PoolWorker): void {
    worker.running--;
    this.#running--;
    const { recycleAfter = Number.POSITIVE_INFINITY } = this.#options;
    if (worker.begun >= recycleAfter) this.#retire(worker);
    if (worker.isLeaving) {
      if (worker.running === 0) this.#leave(worker);
      this.#grow();
    } else this.#next(worker);
  }

  /** A call is over for its caller. */
  #settled(hasFailed: boolean): void {
    this.#completed++;
    if (hasFailed) this.#failed++;
    if (--this.#open > 0) return;
    this.#tell({ type: "drain" });
    for (const resolve of this.#onQuiet.splice(0)) resolve();
  }

  /** The error for a call that the pool does not take. */
  #refusal(place: number | undefined): PamiError | undefined {
    if (this.#isClosed) return closedError();
    const { maxQueue = QUEUE_MAX } = this.#options;
    if (this.#queue.size < maxQueue || this.#isFree(place)) return undefined;
    return new PamiError("PAMIR_QUEUE_FULL", `${maxQueue} calls wait for a worker (maxQueue)`);
  }

  #isFree(place: number | undefined): boolean {
    const isFree = (worker: PoolWorker | undefined): boolean =>
      worker !== undefined && worker.running < this.#concurrency;
    return place === undefined ? this.#workers.some(isFree) : isFree(this.#workers[place]);
  }

  #call(number: number, args: unknown[], options: PoolCallOptions, place: number | undefined): Call {
    const { timeout = this.#options.timeout, retries = this.#options.retries ?? 0 } = options;
    const since = now();
    return { number, args, options, place, since, deadline: since + (timeout ?? Number.POSITIVE_INFINITY), retries };
  }

  /** Calls a function on a worker. @param place the only one where it may run */
  run(number: number, args: unknown[], options: PoolCallOptions, place: number | undefined): Promise<unknown> {
    const refusal = this.#refusal(place);
    if (refusal !== undefined) return Promise.reject(refusal);
    const call = this.#call(number, args, options, place);
    this.#open++;
    const worker = call.retries === 0 ? this.#take(place) : undefined;
    return worker === undefined ? this.#runLater(call) : this.#runOn(worker, call);
  }

  /** Calls a function once a worker is free, and again if that worker dies. */
  async #runLater(call: Call): Promise<unknown> {
    for (;;) {
      let worker: PoolWorker;
      try {
        worker = await this.#worker(call.place, call.options, call.deadline);
      } catch (error) {
        this.#settled(true);
        throw error;
      }
      try {
        return await this.#runOn(worker, call);
      } catch (error) {
        if (!this.#isRetried(call, error)) throw error;
        call.retries--;
      }
    }
  }

  /** Whether a call is begun again. */
  #isRetried({ retries, options, deadline }: Call, error: unknown): boolean {
    if (retries === 0 || codeOf(error) !== "PAMIR_SHUTDOWN") return false;
    return options.signal?.aborted !== true && now() < deadline && !this.#isTerminated;
  }

  /** Calls a function on a worker that #take() has given. */
  #runOn(worker: PoolWorker, call: Call): Promise<unknown> {
    const begin = now();
    this.#waitTime.add(begin - call.since);
    const { signal } = call.options;
    const timeout = Math.max(0, call.deadline - begin);
    const isPlain = signal === undefined && timeout === Number.POSITIVE_INFINITY;
    const reply = worker.line.ask(
      FUNCTIONS + call.number,
      packed(call.args),
      isPlain ? undefined : { signal, timeout },
    );
    return reply.then(
      (value) => {
        this.#over(worker, begin);
        this.#settled(false);
        return value;
      },
      (error) => {
        this.#failedOn(worker, begin, error);
        if (!this.#isRetried(call, error)) this.#settled(true);
        throw error;
      },
    );
  }

  /** A call has ended on its worker. */
  #over(worker: PoolWorker, begin: number): void {
    this.#runTime.add(now() - begin);
    this.#release(worker);
  }

  #failedOn(worker: PoolWorker, begin: number, error: unknown): void {
    const code = codeOf(error);
    if (code === "PAMIR_CANCELED" || code === "PAMIR_TIMEDOUT") return void this.#settle(worker, begin);
    // The job tells of its end later: until then, it would be given calls.
    if (code === "PAMIR_SHUTDOWN") this.#retire(worker);
    this.#over(worker, begin);
  }

  /** Waits until a call that was given up has ended on its worker, and ends the worker if that takes too long. */
  async #settle(worker: PoolWorker, begin: number): Promise<void> {
    try {
      await worker.line.ask(SETTLED, undefined, { timeout: this.#options.killAfter });
    } catch (error) {
      this.#retire(worker);
      // It rejects if the job has ended.
      if (codeOf(error) === "PAMIR_TIMEDOUT") await worker.crew.job.terminate(worker.task).catch(() => {});
    }
    this.#over(worker, begin);
  }

  /** Calls a function on a worker, and iterates over what it returns. */
  async *stream(
    number: number,
    args: unknown[],
    options: PoolCallOptions,
    place: number | undefined,
  ): AsyncGenerator<unknown, void> {
    const refusal = this.#refusal(place);
    if (refusal !== undefined) throw refusal;
    const { since, deadline } = this.#call(number, args, options, place);
    const { timeout = this.#options.timeout, signal } = options;
    let hasFailed = true;
    this.#open++;
    try {
      const worker = await this.#worker(place, options, deadline);
      this.#waitTime.add(now() - since);
      hasFailed = false;
      yield* this.#streamOn(worker, readStream(worker.line, number, args, { signal, timeout }));
    } catch (error) {
      hasFailed = true;
      throw error;
    } finally {
      this.#settled(hasFailed);
    }
  }

  async *#streamOn(worker: PoolWorker, values: AsyncGenerator<unknown, void>): AsyncGenerator<unknown, void> {
    const begin = now();
    let isOver = false;
    try {
      yield* values;
      isOver = true;
    } catch (error) {
      isOver = true;
      this.#failedOn(worker, begin, error);
      throw error;
    } finally {
      // Its loop was left: the worker's iterator may take time to end.
      if (!isOver) void this.#settle(worker, begin);
    }
    this.#over(worker, begin);
  }

  /** Calls a function, and blocks until it has ended. */
  runSync(number: number, args: unknown[]): unknown {
    if (this.#isClosed) throw closedError();
    let worker: PoolWorker | undefined;
    for (const one of this.#workers) {
      if (one !== undefined && (worker === undefined || one.running < worker.running)) worker = one;
    }
    if (worker === undefined)
      throw new PamiError("PAMIR_WOULD_BLOCK", "sync: no worker is ready: await warmUp() before");
    this.#occupy(worker);
    this.#open++;
    const begin = now();
    let hasFailed = true;
    try {
      const value = worker.line.askSync(FUNCTIONS + number, packed(args), { timeout: this.#options.timeout });
      hasFailed = false;
      this.#over(worker, begin);
      return value;
    } catch (error) {
      this.#failedOn(worker, begin, error);
      throw error;
    } finally {
      this.#settled(hasFailed);
    }
  }

  /** Calls a function on each worker that runs. */
  runAll(number: number, args: unknown[]): Promise<unknown[]> {
    const places = [...this.#workers.keys()].filter((place) => this.#workers[place] !== undefined);
    return Promise.all(places.map((place) => this.run(number, args, {}, place)));
  }

  placeOf(key: unknown): number {
    const text = String(key);
    let hash = 0x811c9dc5;
    for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
    return (hash >>> 0) % this.size;
  }

  async warmUp(): Promise<void> {
    if (this.#isClosed) throw closedError();
    for (let place = 0; place < this.size; place++) {
      if (this.#workers[place] === undefined && !this.#starting.has(place)) void this.#start(place);
    }
    await new Promise<void>((resolve, reject) => {
      const look = (): void => {
        if (this.#starting.size > 0) return;
        this.#onReady = this.#onReady.filter((one) => one !== look);
        if (this.#failures > 0) reject(this.#failure as Error);
        else resolve();
      };
      this.#onReady.push(look);
      look();
    });
  }

  #tell(event: PoolEvent): void {
    for (const listener of this.#listeners) {
      try {
        listener(event);
      } catch (error) {
        // It is uncaught, and the pool goes on.
        queueMicrotask(() => {
          throw error;
        });
      }
    }
  }

  listen(listener: (event: PoolEvent) => void): () => void {
    if (typeof listener !== "function") {
      throw new PamiError("PAMIR_INVAL", `events() takes a function, not ${shown(listener)}`);
    }
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  get stats(): PoolStats {
    const all = this.#workers.filter((worker) => worker !== undefined);
    return {
      workers: all.length,
      idle: all.filter(({ running }) => running === 0).length,
      queued: this.#queue.size,
      running: this.#running,
      completed: this.#completed,
      failed: this.#failed,
      waitTime: this.#waitTime.times,
      runTime: this.#runTime.times,
    };
  }

  close(): Promise<void> {
    this.#isClosed = true;
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    if (this.#open > 0) await new Promise<void>((resolve) => this.#onQuiet.push(resolve));
    for (const crew of this.#crews) crew.job.ref();
    for (const worker of this.#workers) if (worker !== undefined) this.#leave(worker);
    const ends = [...this.#crews].map(async (crew) => {
      const empty = new Promise<void>((resolve) => {
        if (crew.workers.size === 0) resolve();
        else crew.onEmpty = resolve;
      });
      await Promise.race([empty, pause(LEAVE_MS, false)]);
      await crew.job.terminate();
    });
    // Workers that start meanwhile find no calls.
    this.#isTerminated = true;
    await Promise.all(ends);
  }

  async terminate(): Promise<void> {
    this.#isClosed = true;
    this.#isTerminated = true;
    for (const { reject } of this.#queue.clear()) reject(closedError());
    await Promise.all([...this.#crews].map((crew) => this.#terminateCrew(crew)));
  }
}

const closedError = (): PamiError => new PamiError("PAMIR_CLOSED", "the pool is closed");
const canceledError = (signal: AbortSignalLike): PamiError =>
  new PamiError("PAMIR_CANCELED", "a call was canceled that waited for a worker", { cause: signal.reason });

/** The code of an error of pamir's own; undefined for what a function has thrown, whatever code that has. */
const codeOf = (error: unknown): string | undefined => (error instanceof PamiError ? error.code : undefined);

const OPTION_KEYS = new Set<string>([
  "workers",
  "min",
  "max",
  "idleTimeout",
  "concurrency",
  "maxQueue",
  "recycleAfter",
  "killAfter",
  "startTimeout",
  "processes",
  "timeout",
  "retries",
  "kernel",
  "heapBytes",
  "args",
  "workerOptions",
  "debug",
  "trace",
  "top",
  "onError",
] satisfies (keyof PoolOptions)[]);
const CALL_KEYS = new Set<string>(["signal", "timeout", "priority", "retries"] satisfies (keyof PoolCallOptions)[]);
const MAP_KEYS = new Set<string>(["concurrency", "ordered"]);
const WORKERS_MAX = 500;
const RETRIES_MAX = 1000;

/** A value in an error's text. */
function shown(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value);
  return (typeof value === "object" && value !== null) || typeof value === "function"
    ? `a ${typeof value}`
    : String(value);
}

function checkCount(name: string, value: number | undefined, least: number, most: number): void {
  if (value === undefined || (Number.isInteger(value) && value >= least && value <= most)) return;
  throw new PamiError("PAMIR_INVAL", `${name} is ${shown(value)}, not an integer from ${least} to ${most}`);
}

function checkTime(name: string, value: number | undefined): void {
  if (value === undefined || (typeof value === "number" && value >= 0)) return;
  throw new PamiError("PAMIR_INVAL", `${name} is ${shown(value)}, not a number of milliseconds from 0 on`);
}

export function checkKeys(what: string, options: object, keys: ReadonlySet<string>): void {
  if (typeof options !== "object" || options === null) {
    throw new PamiError("PAMIR_INVAL", `${what} are ${shown(options)}, not an object`);
  }
  for (const key in options) {
    if (!keys.has(key)) {
      throw new PamiError("PAMIR_INVAL", `${what}: there is no ${JSON.stringify(key)}, but ${[...keys].join(", ")}`);
    }
  }
}

function checkSignal(what: string, signal: AbortSignalLike | undefined): void {
  if (signal === undefined) return;
  const { aborted, addEventListener } = (signal ?? {}) as Partial<AbortSignalLike>;
  if (typeof aborted === "boolean" && typeof addEventListener === "function") return;
  throw new PamiError("PAMIR_INVAL", `signal of ${what} is ${shown(signal)}, not an AbortSignal`);
}

/** @throws PAMIR_INVAL */
export function checkCallOptions(what: string, { timeout, priority, retries, signal }: PoolCallOptions): void {
  checkSignal(what, signal);
  checkTime(`timeout of ${what}`, timeout);
  checkCount(`retries of ${what}`, retries, 0, RETRIES_MAX);
  if (priority !== undefined && !Number.isFinite(priority)) {
    throw new PamiError("PAMIR_INVAL", `priority of ${what} is ${shown(priority)}, not a finite number`);
  }
}

/** @throws PAMIR_INVAL */
function sizesOf(options: PoolOptions): Sizes {
  checkKeys("options of pool()", options, OPTION_KEYS);
  const { workers = Math.max(1, hardwareThreads() - 1) } = options;
  checkCount("workers", workers, 1, WORKERS_MAX);
  const { max = Math.max(workers, options.min ?? 1) } = options;
  checkCount("max", max, 1, WORKERS_MAX);
  const { min = Math.min(workers, max) } = options;
  checkCount("min", min, 0, max);
  checkCount("concurrency", options.concurrency, 1, 65_536);
  checkCount("maxQueue", options.maxQueue, 0, Number.MAX_SAFE_INTEGER);
  checkCount("recycleAfter", options.recycleAfter, 1, Number.MAX_SAFE_INTEGER);
  for (const name of ["idleTimeout", "killAfter", "startTimeout"] as const) checkTime(name, options[name]);
  if (options.processes !== undefined && typeof options.processes !== "boolean") {
    throw new PamiError("PAMIR_INVAL", `processes is ${shown(options.processes)}, not a boolean`);
  }
  checkCallOptions("pool()", options);
  return { min, max };
}

/**
 * Starts a pool of workers, each of which imports the module `entry` and calls `serve()` there. Resolves once one of them
 * serves; calls wait for the others. The functions of the module are called by name: `await workers.square(12)` runs on the
 * next worker that is free. Arguments and results are copied as structured clone does it; functions and signals among the
 * arguments stay with the caller, and are called back. Only calls that are not over keep the program running.
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
  const targetOf = (given: PoolCallOptions, place?: number): Target => ({
    run: (number, args) => workers.run(number, args, given, place),
    stream: (number, args) => workers.stream(number, args, given, place),
  });
  const remoteWith = (given: PoolCallOptions, place?: number): Remote<Api> =>
    remoteOf(names, targetOf(given, place)) as Remote<Api>;
  const byPlace = new Map<number, Remote<Api>>();
  const atPlace = (place: number): Remote<Api> => {
    let remote = byPlace.get(place);
    if (remote === undefined) {
      remote = remoteWith({}, place);
      byPlace.set(place, remote);
    }
    return remote;
  };
  const remote = remoteOf(names, targetOf({}), (name) => {
    if (!/^\d+$/.test(name)) return undefined;
    checkCount("the place of a worker", Number(name), 0, workers.size - 1);
    return atPlace(Number(name));
  });
  const methods = {
    all: remoteOf(names, { run: (number, args) => workers.runAll(number, args) }),
    sync: remoteOf(names, { run: (number, args) => workers.runSync(number, args) }),
    by: (key: unknown) => atPlace(workers.placeOf(key)),
    with(given: PoolCallOptions) {
      checkKeys("options of with()", given, CALL_KEYS);
      checkCallOptions("with()", given);
      return remoteWith(given);
    },
    map(items: never, work: never, given: { concurrency?: number; ordered?: boolean } = {}) {
      checkKeys("options of map()", given, MAP_KEYS);
      return mapped(items, work, given.concurrency ?? workers.capacity, given.ordered ?? true);
    },
    warmUp: () => workers.warmUp(),
    events: (listener: (event: PoolEvent) => void) => workers.listen(listener),
    close: () => workers.close(),
    terminate: () => workers.terminate(),
    [Symbol.asyncDispose]: () => workers.close(),
  };
  Object.defineProperties(remote, Object.getOwnPropertyDescriptors(methods));
  Object.defineProperty(remote, "stats", { get: () => workers.stats });
  return remote as unknown as Pool<Api>;
}
