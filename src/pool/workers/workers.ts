// The workers of a pool, each in its place: their start, the calls that each takes, their replacement and their end.
import { PamiError, type TaskExit } from "../../index.js";
import { after, pause } from "../../support/timers.js";
import { LEAVE } from "../exchange/wire.js";
import { IDLE_MS, type PoolOptions, type Sizes, START_MS } from "../options.js";
import { type Crew, Crews, closedError, type Entry, nameOf, PoolWorker } from "./crew.js";
import { Events } from "./events.js";
import { PriorityQueue } from "./queue.js";
import { Tally } from "./stats.js";
import { now, type PoolCall, type Waiting, waitFor } from "./waiting.js";

/** Workers in a row that fail before they are ready: then waiting calls reject. */
const FAILURES_MAX = 3;
/** Pauses in milliseconds before a worker is replaced, while workers die and no call ends: each is twice the one before. */
const PAUSE_MS = 10;
const PAUSE_MAX_MS = 5000;
/** Milliseconds in which a worker that was asked to leave has to end. */
const LEAVE_MS = 1000;

/** The workers, and the calls that wait for one of them. */
export class Workers {
  readonly #entry: Entry;
  readonly #options: PoolOptions;
  readonly #min: number;
  readonly #concurrency: number;
  readonly #workers: (PoolWorker | undefined)[];
  /** Places whose workers are starting. */
  readonly #starting = new Set<number>();
  readonly #crews: Crews;
  readonly queue = new PriorityQueue<Waiting>();
  readonly tally = new Tally();
  readonly events = new Events();
  /** Names of the functions, once a worker has told them. */
  names: readonly string[] | undefined;
  readonly #onNames: { resolve(): void; reject(error: unknown): void }[] = [];
  /** Workers in a row that have ended before they were ready, and why the last one did. */
  #failures = 0;
  #failure: unknown;
  #onReady: (() => void)[] = [];
  /** Workers that have died since the last call that ended on a worker. */
  #deaths = 0;
  /** When workers may be started again, and what ends the wait for that. */
  #pauseEnd = 0;
  #stopPause: (() => void) | undefined;
  /** Whether calls are taken no more. */
  isClosed = false;

  constructor(entry: Entry, options: PoolOptions, { min, max }: Sizes) {
    this.#entry = entry;
    this.#options = options;
    this.#min = min;
    this.#concurrency = options.concurrency ?? 1;
    this.#workers = new Array<PoolWorker | undefined>(max).fill(undefined);
    this.#crews = new Crews(entry, options, max, (crew, exit) => this.#ended(crew, exit));
  }

  get size(): number {
    return this.#workers.length;
  }

  /** Calls that all workers work on at once. */
  get capacity(): number {
    return this.size * this.#concurrency;
  }

  /** Those that serve. */
  get ready(): PoolWorker[] {
    return this.#workers.filter((worker) => worker !== undefined);
  }

  get isTerminated(): boolean {
    return this.#crews.isTerminated;
  }

  // ── Their start

  /** Starts the first workers. Resolves once one of them serves. @throws why none does */
  async begin(): Promise<void> {
    const served = new Promise<void>((resolve, reject) => this.#onNames.push({ resolve, reject }));
    const count = Math.max(1, this.#min);
    for (let place = 0; place < count; place++) this.#starting.add(place);
    const crew = await this.#crews.first(count);
    for (let place = 0; place < count; place++) this.#greet(place, 1 + place, crew);
    await served;
  }

  /** Starts a worker in a place that has none. */
  async #start(place: number): Promise<void> {
    this.#starting.add(place);
    try {
      const { crew, task } = await this.#crews.spawn();
      this.#greet(place, task, crew);
    } catch (error) {
      this.#starting.delete(place);
      this.#startFailed(error);
    }
  }

  #greet(place: number, task: number, crew: Crew): void {
    const worker = new PoolWorker(place, task, crew);
    crew.workers.set(task, worker);
    this.events.tell({ type: "start", worker: place });
    const timeout = this.#options.startTimeout ?? START_MS;
    worker.line.hello(crew.job.port(task) as MessagePort | undefined, { timeout }).then(
      (names) => {
        // It has died behind its answer, and its place is free.
        if (crew.workers.has(task)) this.#greeted(worker, names);
        else this.#unplaced(worker);
      },
      (error) => {
        this.#starting.delete(place);
        const isLate = (error as PamiError).code === "PAMIR_TIMEDOUT";
        if (!isLate) this.lost(worker);
        this.#startFailed(this.#unserved(worker, timeout, error as PamiError));
        if (isLate) void worker.terminate();
      },
    );
  }

  #greeted(worker: PoolWorker, names: readonly string[]): void {
    this.#starting.delete(worker.place);
    this.#failures = 0;
    this.#workers[worker.place] = worker;
    if (this.names === undefined) {
      this.names = names;
      for (const { resolve } of this.#onNames.splice(0)) resolve();
    }
    this.events.tell({ type: "ready", worker: worker.place });
    if (this.isClosed && this.tally.open === 0) this.#leave(worker);
    else this.#next(worker);
    for (const look of this.#onReady) look();
  }

  /** A worker has served and died before its place had it. */
  #unplaced({ place, task }: PoolWorker): void {
    this.#starting.delete(place);
    this.#startFailed(new PamiError("PAMIR_SHUTDOWN", `worker ${place} (task ${task}) has ended at once`));
  }

  /** Why a worker does not serve. */
  #unserved({ place }: PoolWorker, timeout: number, error: PamiError): Error {
    const { code, cause } = error;
    if (code === "PAMIR_TIMEDOUT") {
      return new PamiError(code, `worker ${place} has not called serve() within ${timeout} ms`, { cause: error });
    }
    // It has ended by itself, without an error.
    if (code !== "PAMIR_SHUTDOWN" || (cause as { exitCode?: number } | undefined)?.exitCode !== 0) return error;
    return new PamiError(code, `worker ${place} has ended without a call of serve(): ${nameOf(this.#entry)}`, {
      cause,
    });
  }

  #startFailed(error: unknown): void {
    this.#failures++;
    this.#failure = error;
    for (const { reject } of this.#onNames.splice(0)) reject(error);
    if (this.#failures >= FAILURES_MAX || this.names === undefined) {
      for (const { reject } of this.queue.clear()) reject(error);
    } else this.#grow();
    for (const look of this.#onReady) look();
  }

  /** Starts the workers that are needed: `min` of them, those whose places calls wait for, and one more if others wait. */
  #grow(): void {
    if (this.#failures >= FAILURES_MAX || this.isTerminated || this.#pauses()) return;
    const isMissing = (place: number): boolean => this.#workers[place] === undefined && !this.#starting.has(place);
    for (const place of this.queue.places) if (isMissing(place)) void this.#start(place);
    let count = this.#starting.size;
    for (const worker of this.#workers) if (worker !== undefined) count++;
    const isShort = this.queue.hasAny && this.queue.size > this.#starting.size;
    const wanted = Math.min(this.size, Math.max(this.isClosed ? 0 : this.#min, isShort ? count + 1 : 0));
    for (let place = 0; place < this.size && count < wanted; place++) {
      if (!isMissing(place)) continue;
      count++;
      void this.#start(place);
    }
  }

  /** Whether no worker is started now. The wait keeps the program running as long as calls do. */
  #pauses(): boolean {
    this.#stopPause?.();
    this.#stopPause = undefined;
    const left = this.#pauseEnd - now();
    if (left <= 0) return false;
    this.#stopPause = after(left, () => this.#grow(), this.tally.open > 0);
    return true;
  }

  /** A worker has died. The first two of each place are replaced at once. */
  lost(worker: PoolWorker): void {
    this.retire(worker);
    if (worker.isExpected) return;
    worker.isExpected = true;
    const doublings = ++this.#deaths - 2 * this.size - 1;
    if (doublings >= 0) this.#pauseEnd = now() + Math.min(PAUSE_MAX_MS, PAUSE_MS * 2 ** doublings);
  }

  /** Starts all workers that the pool may have. Resolves once they serve. */
  async warmUp(): Promise<void> {
    if (this.isClosed) throw closedError();
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

  // ── Their calls

  /** A worker that takes a call now, for which it is counted. */
  take(place: number | undefined): PoolWorker | undefined {
    const free = place === undefined ? this.leastBusy() : this.#workers[place];
    if (free === undefined || free.running >= this.#concurrency) return undefined;
    this.occupy(free);
    return free;
  }

  /** The first of the workers that work on the fewest calls. */
  leastBusy(): PoolWorker | undefined {
    let free: PoolWorker | undefined;
    for (const worker of this.#workers) {
      if (worker === undefined || worker.isDismissed) continue;
      if (free === undefined || worker.running < free.running) free = worker;
      if (free.running === 0) break;
    }
    return free;
  }

  /** Counts a call for a worker. */
  occupy(worker: PoolWorker): void {
    worker.running++;
    worker.crew.running++;
    worker.begun++;
    worker.stopIdle?.();
    this.tally.running++;
  }

  /**
   * A worker for a call, which is counted there. No call waits that a free worker would take: so a call may take one at once.
   */
  workerFor(call: PoolCall): Promise<PoolWorker> {
    const free = this.take(call.place);
    if (free !== undefined) return Promise.resolve(free);
    if (this.isTerminated) return Promise.reject(closedError());
    if (this.#failures >= FAILURES_MAX) this.#failures = FAILURES_MAX - 1; // One more attempt for this call.
    const worker = waitFor(this.queue, call);
    this.#grow();
    return worker;
  }

  /** Whether a worker takes a call now. */
  isFree(place: number | undefined): boolean {
    const isFree = (worker: PoolWorker | undefined): boolean =>
      worker !== undefined && worker.running < this.#concurrency;
    return place === undefined ? this.#workers.some(isFree) : isFree(this.#workers[place]);
  }

  /** A call of a worker is over. */
  release(worker: PoolWorker): void {
    worker.running--;
    worker.crew.running--;
    this.tally.running--;
    if (!worker.isDismissed) this.#deaths = 0;
    const { recycleAfter = Number.POSITIVE_INFINITY } = this.#options;
    if (worker.begun >= recycleAfter) this.retire(worker);
    if (worker.isDismissed) {
      if (worker.running === 0) this.#leave(worker);
      void this.#crews.dismiss(worker.crew);
      this.#grow();
    } else this.#next(worker);
  }

  /** A worker is free for a call more. */
  #next(worker: PoolWorker): void {
    while (this.queue.size > 0 && !worker.isDismissed && worker.running < this.#concurrency) {
      const waiting = this.queue.take(worker.place);
      if (waiting === undefined) break;
      this.occupy(worker);
      waiting.resolve(worker);
    }
    if (worker.running === 0 && this.size > this.#min) this.#idle(worker);
  }

  #idle(worker: PoolWorker): void {
    if (this.isClosed || worker.isDismissed) return;
    const isSpare = (): boolean => this.ready.length > this.#min;
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

  // ── Their end

  #ended(crew: Crew, exit: TaskExit): void {
    const worker = crew.workers.get(exit.task);
    crew.workers.delete(exit.task);
    if (worker !== undefined) {
      this.lost(worker);
      this.events.tell({ type: "exit", worker: worker.place, exit });
    }
    void this.#crews.dismiss(crew);
    this.#grow();
  }

  /** A worker gets no calls any more, and its place is free for another one. */
  retire(worker: PoolWorker): void {
    worker.isDismissed = true;
    worker.stopIdle?.();
    if (this.#workers[worker.place] === worker) this.#workers[worker.place] = undefined;
  }

  /** Asks a worker to end. */
  #leave(worker: PoolWorker): void {
    this.retire(worker);
    worker.isExpected = true;
    if (!worker.crew.workers.has(worker.task)) return;
    worker.line.tell(LEAVE, undefined);
    after(LEAVE_MS, () => void worker.terminate(), false);
  }

  /** Asks all workers to end, and ends them soon. */
  async close(): Promise<void> {
    const closed = this.#crews.close(() => pause(LEAVE_MS, false));
    for (const worker of this.ready) this.#leave(worker);
    await closed;
  }

  /** Ends all workers now, and refuses the calls that wait. */
  async terminate(): Promise<void> {
    this.isClosed = true;
    this.#stopPause?.();
    const terminated = this.#crews.terminate();
    for (const { reject } of this.queue.clear()) reject(closedError());
    await terminated;
  }
}
