// A worker of a Piscina: its thread, the tasks that it has, and the way to it.
import { MessageChannel, Worker, type WorkerOptions } from "node:worker_threads";
import type { PamiError } from "../index.js";
import { after } from "../support/timers.js";
import type { Crews, Link } from "./crew.js";
import { Times } from "./histogram.js";
import type { FilledOptions } from "./options.js";
import { type PiscinaWorker, type Task, THREAD } from "./task.js";
import { FAILED, READY, RUN, Values, type WorkerStart } from "./wire.js";

/** The thread behind what a balancer has returned. */
export const threadOf = (worker: PiscinaWorker | null | undefined): Thread | undefined =>
  worker?.[THREAD] as Thread | undefined;

/** What a Piscina hears of its threads. */
export interface ThreadHost {
  readonly options: FilledOptions;
  readonly crews: Crews;
  /** Its file is loaded. */
  loaded(thread: Thread): void;
  /** A task is over. */
  answered(thread: Thread, task: Task, isFailed: boolean, value: unknown): void;
  /** It has thrown, or its thread has ended by itself. @param hasThrown an error that is its own, not of its tasks */
  failed(thread: Thread, error: unknown, hasThrown: boolean): void;
  /** It has posted a message. */
  heard(message: unknown): void;
}

/** One worker. */
export class Thread {
  readonly worker: Worker;
  readonly tasks = new Set<Task>();
  /** The first ones get tasks at once: they wait for the file on their side. */
  isReady: boolean;
  hasLoaded = false;
  isDestroyed = false;
  /** Resolves once the thread has ended. */
  readonly ended: Promise<void>;
  readonly times: Times | undefined;
  readonly seen: PiscinaWorker;
  readonly #host: ThreadHost;
  readonly #values: Values;
  readonly #closePorts: () => void;
  #link: Link | undefined;
  readonly #linked: Promise<Link>;
  #stopIdle: (() => void) | undefined;

  constructor(host: ThreadHost, isReady: boolean) {
    const { argv, env, execArgv, resourceLimits, workerData, trackUnmanagedFds, ...start } = host.options;
    this.#host = host;
    this.isReady = isReady;
    this.times = start.workerHistogram ? new Times() : undefined;
    const given = { argv, env, execArgv, resourceLimits, workerData, trackUnmanagedFds } as WorkerOptions;
    this.worker = new Worker(new URL("./piscina-worker.js", import.meta.url), given);
    const parcels = new MessageChannel();
    const join = new MessageChannel();
    this.#values = new Values(parcels.port1);
    this.#closePorts = () => {
      parcels.port1.close();
      join.port1.close();
    };
    const { filename, name, niceIncrement } = start;
    const first: WorkerStart = { join: join.port2, parcels: parcels.port2, filename, name, niceIncrement };
    this.worker.postMessage(first, [join.port2, parcels.port2]);
    this.ended = new Promise((resolve) => this.worker.once("exit", () => resolve()));
    this.#listen();
    this.#linked = host.crews.join(join.port1);
    this.#linked.then(
      (link) => {
        if (this.isDestroyed) void this.ended.then(link.leave);
        else this.#link = link;
      },
      (error) => this.#fail(error, true),
    );
    this.seen = seenOf(this);
    this.worker.unref();
  }

  #listen(): void {
    const { worker } = this;
    worker.on("message", (message: { [READY]?: true } | null) => {
      if (typeof message !== "object" || message?.[READY] !== true) return this.#host.heard(message);
      if (this.isDestroyed) return;
      this.hasLoaded = true;
      worker.unref();
      this.#host.loaded(this);
    });
    worker.on("error", (error) => this.#fail(error, true));
    worker.on("exit", (code) => {
      this.#link?.leave();
      this.#fail(new Error(`worker exited with code: ${code}`), false);
    });
  }

  #fail(error: unknown, hasThrown: boolean): void {
    if (!this.isDestroyed) this.#host.failed(this, error, hasThrown);
  }

  get isRunningAbortableTask(): boolean {
    if (this.tasks.size !== 1) return false;
    const [task] = this.tasks;
    return task?.isAbortable === true;
  }

  get usage(): number {
    return this.isRunningAbortableTask ? Number.POSITIVE_INFINITY : this.tasks.size;
  }

  /** Gives it a task. */
  post(task: Task): void {
    let bytes: Uint8Array;
    try {
      bytes = this.#values.pack(task.key, task.take(), task.transfer);
    } catch (error) {
      task.done(true, error);
      return;
    }
    this.#stopIdle?.();
    task.thread = this;
    this.tasks.add(task);
    // Nothing else keeps the program running until the thread has joined.
    if (!this.hasLoaded) this.worker.ref();
    const link = this.#link;
    const reply =
      link === undefined
        ? this.#linked.then(({ context, to }) => context.call(to, RUN, bytes))
        : link.context.call(link.to, RUN, bytes);
    reply.then(
      (answer) => this.#answered(task, answer),
      (error) => this.#unanswered(task, error as PamiError),
    );
  }

  #answered(task: Task, answer: Uint8Array): void {
    if (!this.tasks.delete(task)) return;
    const [head, value] = this.#values.unpack<number>(answer);
    this.#host.answered(this, task, head === FAILED, value);
  }

  /** The end of a thread is told by its events, which say why. */
  #unanswered(task: Task, error: PamiError): void {
    if (["PAMIR_SHUTDOWN", "PAMIR_CLOSED"].includes(error.code) || !this.tasks.delete(task)) return;
    this.#host.answered(this, task, true, error);
  }

  /** Ends it after some time, unless it gets a task. */
  idle(milliseconds: number, end: () => void): void {
    this.#stopIdle?.();
    const stop = after(milliseconds, end, false);
    this.#stopIdle = () => {
      stop();
      this.#stopIdle = undefined;
    };
  }

  /** Ends it now. @returns the tasks that it had */
  destroy(): Task[] {
    this.isDestroyed = true;
    this.#stopIdle?.();
    const tasks = [...this.tasks];
    this.tasks.clear();
    // Its end is waited for.
    this.worker.ref();
    void this.worker.terminate();
    this.#closePorts();
    return tasks;
  }
}

function seenOf(thread: Thread): PiscinaWorker {
  return {
    get id() {
      return thread.worker.threadId;
    },
    get currentUsage() {
      return thread.usage;
    },
    get isRunningAbortableTask() {
      return thread.isRunningAbortableTask;
    },
    get histogram() {
      return thread.times?.summary ?? null;
    },
    terminating: false,
    get destroyed() {
      return thread.isDestroyed;
    },
    [THREAD]: thread,
  };
}
