// A worker of a Piscina: its thread, the tasks that it has, and the ways to it.
import {
  MessageChannel,
  type MessagePort,
  receiveMessageOnPort,
  Worker,
  type WorkerOptions,
} from "node:worker_threads";
import type { DispatchId, InPlaceCodec, PamiError } from "../index.js";
import { after } from "../support/timers.js";
import type { PiscinaCrews, PoolLink } from "./crew.js";
import { TaskTimes } from "./histogram.js";
import type { FilledOptions } from "./options.js";
import { type PiscinaCall, type PiscinaWorker, THREAD } from "./task.js";
import {
  type Answer,
  bytesOf,
  clones,
  FAILED,
  JOIN_AFTER,
  JOINED,
  LATER,
  post,
  posted,
  READY,
  RUN,
  type WorkerStart,
} from "./wire.js";

/** The thread behind what a balancer has returned. */
export const threadOf = (worker: PiscinaWorker | null | undefined): Thread | undefined =>
  worker?.[THREAD] as Thread | undefined;

/** What a Piscina hears of its threads. */
export interface ThreadHost {
  readonly options: FilledOptions;
  readonly crews: PiscinaCrews;
  /** Tasks that are over. */
  readonly completed: number;
  /** Its file is loaded. */
  loaded(thread: Thread): void;
  /** A task is over. */
  answered(thread: Thread, task: PiscinaCall, isFailed: boolean, value: unknown): void;
  /** It has thrown, or its thread has ended by itself. @param hasThrown an error that is its own, not of its tasks */
  failed(thread: Thread, error: unknown, hasThrown: boolean): void;
  /** It has posted a message. */
  heard(message: unknown): void;
}

/** Requests are encoded before their calls. */
const BYTES: InPlaceCodec<Uint8Array> = { encode: (bytes) => bytes, decode: (bytes) => bytes, inPlace: true };
const RUN_ID: DispatchId<Uint8Array, unknown> = { id: RUN, request: BYTES, reply: clones };

/** One worker. */
export class Thread {
  readonly worker: Worker;
  readonly tasks = new Map<number, PiscinaCall>();
  /** The first ones get tasks at once: they wait for the file on their side. */
  isReady: boolean;
  /** Its file is loaded. */
  hasLoaded = false;
  isDestroyed = false;
  /** Resolves once the thread has ended. */
  readonly ended: Promise<void>;
  readonly times: TaskTimes | undefined;
  readonly seen: PiscinaWorker;
  readonly #host: ThreadHost;
  readonly #port: MessagePort;
  /** The Piscina's end of the port by which the worker joins. */
  #join: MessagePort | undefined;
  #link: PoolLink | undefined;
  /** Whether the worker takes calls. */
  hasJoined = false;
  /** Whether the port keeps the program running. */
  #isHeld = false;
  /** It has thrown or ended: it gets no more tasks. */
  #isLost = false;
  #stopIdle: (() => void) | undefined;

  constructor(host: ThreadHost, isReady: boolean) {
    const { argv, env, execArgv, resourceLimits, workerData, trackUnmanagedFds, ...start } = host.options;
    this.#host = host;
    this.isReady = isReady;
    this.times = start.workerHistogram ? new TaskTimes() : undefined;
    const given = { argv, env, execArgv, resourceLimits, workerData, trackUnmanagedFds } as WorkerOptions;
    this.worker = new Worker(new URL("./piscina-worker.js", import.meta.url), given);
    const port = new MessageChannel();
    this.#port = port.port1;
    const { filename, name, niceIncrement } = start;
    const first: WorkerStart = { port: port.port2, filename, name, niceIncrement };
    this.worker.postMessage(first, [port.port2]);
    this.ended = new Promise((resolve) => this.worker.once("exit", () => resolve()));
    this.#listen();
    this.seen = seenOf(this);
  }

  #listen(): void {
    const { worker } = this;
    worker.on("message", (message: { [READY]?: true } | null) => {
      if (typeof message !== "object" || message?.[READY] !== true) return this.#host.heard(message);
      if (this.isDestroyed) return;
      this.hasLoaded = true;
      // From here on, only tasks keep the program running.
      worker.unref();
      this.#host.loaded(this);
    });
    worker.on("error", (error) => this.#fail(error, true));
    worker.on("exit", (code) => {
      this.#link?.leave();
      this.#fail(new Error(`worker exited with code: ${code}`), false);
    });
    this.#port.on("message", (message: unknown) => this.#fromPort(message));
    // A thread that dies closes it first: the end of the thread is waited for.
    this.#port.on("close", () => worker.ref());
    this.#port.unref();
  }

  /** What it had answered before it failed comes first. */
  #fail(error: unknown, hasThrown: boolean): void {
    if (this.isDestroyed || this.#isLost) return;
    this.#isLost = true;
    this.#drain();
    if (this.#link?.context.closed === false) this.#link.context.advance();
    setImmediate(() => {
      if (!this.isDestroyed) this.#host.failed(this, error, hasThrown);
    });
  }

  get isRunningAbortableTask(): boolean {
    if (this.tasks.size !== 1) return false;
    for (const task of this.tasks.values()) return task.isAbortable;
    return false;
  }

  get usage(): number {
    return this.#isLost || this.isRunningAbortableTask ? Number.POSITIVE_INFINITY : this.tasks.size;
  }

  /** Lets it join a job, where that pays. */
  #joinSoon(): void {
    if (this.#join !== undefined || this.#host.completed < JOIN_AFTER || this.#isLost || this.isDestroyed) return;
    const { port1, port2 } = new MessageChannel();
    this.#join = port1;
    this.#port.postMessage(port2, [port2]);
    this.#host.crews.join(port1).then(
      (link) => {
        if (this.isDestroyed) void this.ended.then(link.leave);
        else this.#link = link;
      },
      (error) => this.#fail(error, true),
    );
  }

  /** Gives it a task. */
  post(task: PiscinaCall): void {
    const request = task.take();
    try {
      const bytes = task.transfer.length === 0 ? bytesOf(request) : undefined;
      const link = this.#link;
      if (link !== undefined && this.hasJoined && bytes !== undefined) this.#call(task, link, bytes);
      else post(this.#port, request, task.transfer, bytes);
    } catch (error) {
      task.done(true, error);
      return;
    }
    this.#stopIdle?.();
    task.thread = this;
    this.tasks.set(task.taskId, task);
    this.#hold();
  }

  #call(task: PiscinaCall, { context, to }: PoolLink, bytes: Uint8Array): void {
    context.call(to, RUN_ID, bytes).then(
      (reply) => {
        if (reply === LATER) this.#drain();
        else this.#answered(...(reply as Answer));
      },
      (error) => this.#unanswered(task, error as PamiError),
    );
  }

  #fromPort(message: unknown): void {
    if (message === JOINED) this.hasJoined = true;
    else {
      this.#answered(...(posted(message) as Answer));
      this.#joinSoon();
    }
  }

  /** Takes what has come by the port. */
  #drain(): void {
    for (let next = receiveMessageOnPort(this.#port); next !== undefined; next = receiveMessageOnPort(this.#port)) {
      this.#fromPort(next.message);
    }
  }

  #answered(id: number, state: number, value: unknown): void {
    const task = this.tasks.get(id);
    if (task === undefined) return;
    this.tasks.delete(id);
    this.#hold();
    this.#host.answered(this, task, state === FAILED, value);
  }

  /** The end of a thread is told by its events, which say why. */
  #unanswered(task: PiscinaCall, error: PamiError): void {
    if (!["PAMIR_SHUTDOWN", "PAMIR_CLOSED"].includes(error.code)) this.#answered(task.taskId, FAILED, error);
  }

  /** Tasks keep the program running. */
  #hold(): void {
    const isHeld = this.tasks.size > 0;
    if (isHeld === this.#isHeld || this.isDestroyed) return;
    this.#isHeld = isHeld;
    if (isHeld) this.#port.ref();
    else this.#port.unref();
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
  destroy(): PiscinaCall[] {
    this.isDestroyed = true;
    this.#stopIdle?.();
    const tasks = [...this.tasks.values()];
    this.tasks.clear();
    // Its end is waited for.
    this.worker.ref();
    void this.worker.terminate();
    this.#port.close();
    this.#join?.close();
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
