// A task, and the queues where tasks wait for a worker.
import { AsyncResource, type AsyncResourceOptions } from "node:async_hooks";
import { systemClock } from "../support/clock.js";
import type { HistogramSummary } from "./histogram.js";
import { isMoved, moved, queueOptionsSymbol } from "./transfer.js";
import type { TaskRequest } from "./wire.js";

/** Why a task was aborted: the `cause` is the signal's reason. */
export class AbortError extends Error {
  constructor(reason: unknown) {
    super("The task has been aborted", { cause: reason });
  }

  override get name(): string {
    return "AbortError";
  }
}

/** A signal of a task: an AbortSignal, or an EventEmitter with an `abort` event. */
export type AbortSignalAny =
  | (Pick<EventTarget, "addEventListener" | "removeEventListener"> & {
      readonly aborted?: boolean;
      readonly reason?: unknown;
    })
  | (Pick<NodeJS.EventEmitter, "once" | "removeListener"> & { readonly aborted?: boolean; readonly reason?: unknown });

/** A task as a queue has it. */
export interface QueuedTask {
  /** What the task has under `queueOptionsSymbol`, or null. */
  readonly [queueOptionsSymbol]: object | null;
}

/** A task as a queue and a balancer see it. */
export interface PiscinaTask extends QueuedTask {
  /** Number of the task. */
  readonly taskId: number;
  /** Its file. */
  readonly filename: string;
  /** The export of that file. */
  readonly name: string;
  /** When it was given to `run()`, in milliseconds of `performance.now()`. */
  readonly created: number;
  /** Whether it has a signal: then it has a worker of its own. */
  readonly isAbortable: boolean;
}

export const THREAD: unique symbol = Symbol("pamir.piscina.thread") as never;

/** A worker as a balancer and events see it. */
export interface PiscinaWorker {
  /** Its `threadId`. */
  readonly id: number;
  /** Tasks that it has; Infinity if one of them has a signal. */
  readonly currentUsage: number;
  /** Whether one of them has a signal. */
  readonly isRunningAbortableTask: boolean;
  /** Times of its tasks, with `workerHistogram`. */
  readonly histogram: HistogramSummary | null;
  /** Whether it is being ended. */
  readonly terminating: boolean;
  /** Whether it was ended. */
  readonly destroyed: boolean;
  /** @internal */
  readonly [THREAD]: object;
}

/** Picks the worker of a task, or none: then it waits. */
export type PiscinaLoadBalancer = (task: PiscinaTask, workers: PiscinaWorker[]) => PiscinaWorker | null;

/** Where tasks wait. */
export interface TaskQueue {
  /** Tasks that wait. */
  readonly size: number;
  /** Takes out the next task. */
  shift(): QueuedTask | null | undefined;
  /** Takes out a task. */
  remove(task: QueuedTask): void;
  /** Adds a task. */
  push(task: QueuedTask): void;
  /** Adds a task before all others. */
  unshift?(task: QueuedTask): void;
}

/** @returns whether it can be a `taskQueue` */
export function isTaskQueue(value: unknown): value is TaskQueue {
  if (typeof value !== "object" || value === null || !("size" in value)) return false;
  const { shift, remove, push } = value as Partial<TaskQueue>;
  return typeof shift === "function" && typeof remove === "function" && typeof push === "function";
}

/** Tasks in their order, in an array. */
export class ArrayTaskQueue implements TaskQueue {
  readonly #tasks: QueuedTask[] = [];

  /** Tasks that wait. */
  get size(): number {
    return this.#tasks.length;
  }

  /** Takes out the next task. */
  shift(): QueuedTask | null {
    return this.#tasks.shift() ?? null;
  }

  /** Adds a task behind all others. */
  push(task: QueuedTask): void {
    this.#tasks.push(task);
  }

  /** Adds a task before all others. */
  unshift(task: QueuedTask): void {
    this.#tasks.unshift(task);
  }

  /** Takes out a task, if it is there. */
  remove(task: QueuedTask): void {
    const place = this.#tasks.indexOf(task);
    if (place >= 0) this.#tasks.splice(place, 1);
  }
}

/** Tasks in their order, for queues of any length: the queue of a Piscina that is given none. */
export class FixedQueue implements TaskQueue {
  /** Undefined: was removed. */
  #tasks: (QueuedTask | undefined)[] = [];
  /** Place of each task, counted from the first one that ever came. */
  readonly #places = new Map<QueuedTask, number>();
  #first = 0;
  /** Tasks before `#tasks[0]`. */
  #gone = 0;

  /** Tasks that wait. */
  get size(): number {
    return this.#places.size;
  }

  /** Takes out the next task. */
  shift(): QueuedTask | null {
    while (this.#first < this.#tasks.length) {
      const task = this.#tasks[this.#first];
      this.#tasks[this.#first++] = undefined;
      // Half of them at once: a task is moved once at most, on the average.
      if (this.#first > 1024 && this.#first * 2 > this.#tasks.length) {
        this.#tasks = this.#tasks.slice(this.#first);
        this.#gone += this.#first;
        this.#first = 0;
      }
      if (task === undefined) continue;
      this.#places.delete(task);
      return task;
    }
    return null;
  }

  /** Whether no task waits. */
  isEmpty(): boolean {
    return this.size === 0;
  }

  /** Adds a task before all others. */
  unshift(task: QueuedTask): void {
    if (this.#first === 0) {
      // As many places as there are tasks: a task is moved once at most, on the average.
      const places = Math.max(16, this.#tasks.length);
      this.#tasks = [...new Array<undefined>(places), ...this.#tasks];
      this.#first = places;
      this.#gone -= places;
    }
    this.#tasks[--this.#first] = task;
    this.#places.set(task, this.#gone + this.#first);
  }

  /** Adds a task behind all others. */
  push(task: QueuedTask): void {
    this.#places.set(task, this.#gone + this.#tasks.length);
    this.#tasks.push(task);
  }

  /** Takes out a task, if it is there. */
  remove(task: QueuedTask): void {
    const place = this.#places.get(task);
    if (place === undefined) return;
    this.#places.delete(task);
    this.#tasks[place - this.#gone] = undefined;
  }
}

let count = 0;
const NOTHING: readonly unknown[] = [];

/** Options of a task, where the Piscina's are filled in. */
export interface TaskOptions {
  readonly filename: string;
  readonly name: string;
  /** Whether the file or the name is another one than the Piscina's. */
  readonly isNamed: boolean;
  readonly transferList: readonly unknown[] | undefined;
  readonly signal: AbortSignalAny | null;
}

/** What a task tells of its end. */
export interface TaskOwner {
  readonly resourceOptions: AsyncResourceOptions;
  /** A task is over. */
  over(task: PiscinaCall): void;
}

/** A task of a Piscina. */
export class PiscinaCall extends AsyncResource implements PiscinaTask {
  readonly taskId = count++;
  readonly created = systemClock.now();
  readonly filename: string;
  readonly name: string;
  readonly signal: AbortSignalAny | null;
  readonly [queueOptionsSymbol]: object | null;
  readonly #owner: TaskOwner;
  readonly #isNamed: boolean;
  #resolve!: (value: unknown) => void;
  #reject!: (error: unknown) => void;
  /** Of its result. */
  readonly promise: Promise<unknown>;
  /** Its value, until a worker gets it. */
  task: unknown;
  readonly transfer: readonly unknown[];
  /** When a worker got it; 0: it waits. */
  started = 0;
  isAborted = false;
  /** The thread that has it. */
  thread: object | undefined;
  #forget: (() => void) | undefined;

  constructor(owner: TaskOwner, value: unknown, options: TaskOptions) {
    super("Piscina.Task", owner.resourceOptions);
    this.#owner = owner;
    const { transferList = NOTHING } = options;
    this.task = value;
    this.transfer = transferList;
    if (isMoved(value)) [this.task, this.transfer] = moved(value, transferList);
    this.#isNamed = options.isNamed;
    this.filename = options.filename;
    this.name = options.name;
    this.signal = options.signal;
    this[queueOptionsSymbol] =
      (this.task as { [queueOptionsSymbol]?: object } | null | undefined)?.[queueOptionsSymbol] ?? null;
    this.promise = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  get isAbortable(): boolean {
    return this.signal !== null;
  }

  /** What the worker gets. The task has its value no more. */
  take(): TaskRequest {
    const { task: value } = this;
    this.task = undefined;
    return this.#isNamed ? [this.taskId, value, this.filename, this.name] : [this.taskId, value];
  }

  /** Rejects when the signal is aborted, and then calls back, once. */
  onAbort(signal: AbortSignalAny, listener: () => void): void {
    const hear = (): void => {
      this.isAborted = true;
      this.refuse(new AbortError((signal as { reason?: unknown }).reason));
      listener();
    };
    if ("addEventListener" in signal) {
      signal.addEventListener("abort", hear, { once: true });
      this.#forget = () => signal.removeEventListener("abort", hear);
    } else {
      signal.once("abort", hear);
      this.#forget = () => void signal.removeListener("abort", hear);
    }
  }

  /** Rejects. It is not over for that. */
  refuse(error: unknown): void {
    this.#reject(error);
  }

  /** Ends it. @param value its result, or its error */
  done(isFailed: boolean, value: unknown): void {
    this.#forget?.();
    this.runInAsyncScope(this.#settle, this, isFailed, value);
    this.emitDestroy();
  }

  #settle(isFailed: boolean, value: unknown): void {
    this.#owner.over(this);
    if (isFailed) this.#reject(value);
    else this.#resolve(value);
  }
}
