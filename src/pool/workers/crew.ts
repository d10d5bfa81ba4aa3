// Crews: jobs whose tasks are the workers of a pool. A crew whose tasks are used up is followed by another one.
import { type Job, launch, PamiError, type TaskExit, type URLLike, type WorkerLike } from "../../index.js";
import { type Exchange, exchangeOf } from "../exchange/exchange.js";
import type { Line } from "../exchange/line.js";
import type { PoolOptions } from "../options.js";

/** The module of the workers, or what makes one. */
export type Entry = URLLike | string | (() => WorkerLike);

/** What an entry is called in an error's text. */
export function nameOf(entry: Entry): string {
  const name = typeof entry === "function" ? "made by a function" : String(entry);
  return name.length > NAME_MAX ? `${name.slice(0, NAME_MAX)}…` : name;
}

const NAME_MAX = 300;
/**
 * Tasks of a job over its life: a pool makes another job when they are used up. Half of the heap is shared among so many, for
 * payloads in buffers: with 256, results beyond 64 KB of a page went in packets (460 KB: 2.0 ms, not 1.1).
 */
const JOB_TASKS = 16;

/** A job, and the caller's side of it. */
export interface Crew {
  readonly job: Job;
  readonly exchange: Exchange;
  /** Its workers that have not ended, by their tasks. */
  readonly workers: Map<number, PoolWorker>;
  /** Calls of its workers that are not over, also of those that have ended. */
  running: number;
  /** Called when the last of both is over. */
  onEnd?: () => void;
}

/** A worker, as its pool counts on it. */
export class PoolWorker {
  readonly place: number;
  readonly task: number;
  readonly crew: Crew;
  readonly line: Line;
  /** Calls that it works on, also those that were given up. */
  running = 0;
  /** Calls that it has begun. */
  begun = 0;
  isDismissed = false;
  /** Whether its end is no surprise any more: its pool ends it, or has counted it. */
  isExpected = false;
  /** Ends the wait for its idle time. */
  stopIdle: (() => void) | undefined;

  constructor(place: number, task: number, crew: Crew) {
    this.place = place;
    this.task = task;
    this.crew = crew;
    this.line = crew.exchange.lineTo(crew.job.client.endpoint(task));
  }

  /** Ends it now. */
  async terminate(): Promise<void> {
    this.isExpected = true;
    // It rejects if the job has ended.
    await this.crew.job.terminate(this.task).catch(() => {});
  }
}

/** The crews of a pool. */
export class Crews {
  readonly #entry: Entry;
  readonly #options: PoolOptions;
  readonly #tasksMax: number;
  readonly #onExit: (crew: Crew, exit: TaskExit) => void;
  readonly #all = new Set<Crew>();
  /** The crew that gets the next worker. */
  #latest: Promise<Crew> | undefined;
  isTerminated = false;

  /** @param size workers at the most @param onExit a task of a crew has ended */
  constructor(entry: Entry, options: PoolOptions, size: number, onExit: (crew: Crew, exit: TaskExit) => void) {
    this.#entry = entry;
    this.#options = options;
    this.#tasksMax = Math.max(JOB_TASKS, 1 + 2 * size);
    this.#onExit = onExit;
  }

  /** Launches the first crew, whose tasks 1 … count are workers. */
  async first(count: number): Promise<Crew> {
    const crew = await this.#launch(count);
    this.#latest = Promise.resolve(crew);
    return crew;
  }

  async #launch(count: number): Promise<Crew> {
    const { processes = false, kernel, heapBytes, args, workerOptions, debug, trace, top, onError } = this.#options;
    const early: TaskExit[] = [];
    let crew: Crew | undefined;
    const job = await launch(this.#entry, {
      tasks: 1 + count,
      maxTasks: this.#tasksMax,
      contexts: 2,
      join: true,
      ports: !processes,
      onExit: (exit) => (crew === undefined ? void early.push(exit) : this.#onExit(crew, exit)),
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
    crew = {
      job,
      exchange: exchangeOf(job.client.createContext()),
      workers: new Map(),
      running: 0,
    };
    this.#all.add(crew);
    if (this.isTerminated) {
      await job.terminate();
      throw closedError();
    }
    job.unref();
    for (const exit of early) this.#onExit(crew, exit);
    return crew;
  }

  /** Starts a task for a worker, in another crew if this one has no more. */
  async spawn(): Promise<{ readonly crew: Crew; readonly task: number }> {
    const crew = await this.#latest?.catch(() => undefined);
    let task: number | undefined;
    try {
      task = crew?.job.spawn();
    } catch (error) {
      // The job has had all of its tasks, or is over.
      if (!["PAMIR_INVAL", "PAMIR_CLOSED"].includes((error as PamiError).code)) throw error;
    }
    return crew === undefined || task === undefined ? { crew: await this.#launchNext(), task: 1 } : { crew, task };
  }

  /** Launches the crew that gets the next workers. */
  async #launchNext(): Promise<Crew> {
    const crew = this.#launch(1);
    this.#latest = crew;
    try {
      return await crew;
    } catch (error) {
      // The next worker tries anew.
      if (this.#latest === crew) this.#latest = undefined;
      throw error;
    }
  }

  /**
   * Ends a crew, if it has neither workers nor calls, unless it gets the next ones. Its end closes its context. Calls of a worker
   * that has ended come to their ends before: the job may tell of the worker's end first, and they would end by PAMIR_CLOSED.
   */
  async dismiss(crew: Crew): Promise<void> {
    if (crew.workers.size + crew.running) return;
    crew.onEnd?.();
    if ((await this.#latest?.catch(() => undefined)) === crew) return;
    this.#all.delete(crew);
    await crew.job.terminate();
  }

  /** Ends each crew once its workers have, or after a `pause`. Keeps the program running until then. */
  async close(pause: () => Promise<void>): Promise<void> {
    const ends = [...this.#all].map(async (crew) => {
      crew.job.ref();
      await Promise.race([
        new Promise<void>((resolve) => {
          crew.onEnd = resolve;
          void this.dismiss(crew);
        }),
        pause(),
      ]);
      await crew.job.terminate();
    });
    // Workers that start meanwhile find no calls.
    this.isTerminated = true;
    await Promise.all(ends);
  }

  /** Ends all crews now. */
  async terminate(): Promise<void> {
    this.isTerminated = true;
    await Promise.all([...this.#all].map(({ job }) => job.terminate()));
  }
}

export const closedError = (): PamiError => new PamiError("PAMIR_CLOSED", "the pool is closed");
