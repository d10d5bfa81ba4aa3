// What runs the tasks of a Piscina: its threads, and the queue before them.
import type { AsyncResourceOptions } from "node:async_hooks";
import type { EventEmitterAsyncResource } from "node:events";
import { systemClock } from "../support/clock.js";
import { pause } from "../support/timers.js";
import { PiscinaCrews } from "./crew.js";
import { TaskTimes } from "./histogram.js";
import { type FilledOptions, filled, type Options, pathOf } from "./options.js";
import {
  AbortError,
  FixedQueue,
  PiscinaCall,
  type QueuedTask,
  type TaskOptions,
  type TaskOwner,
  type TaskQueue,
} from "./task.js";
import { Thread, type ThreadHost, threadOf } from "./thread.js";

/** Options of a task, as the program gives them. */
export interface GivenTaskOptions extends Omit<TaskOptions, "filename" | "name" | "isNamed"> {
  readonly filename: string | null;
  readonly name: string | null;
}

/** A queue, and the task that was taken out of it and has found no worker. */
class Line {
  readonly #queue: TaskQueue;
  #first: QueuedTask | undefined;

  constructor(queue: TaskQueue) {
    this.#queue = queue;
  }

  get size(): number {
    return this.#queue.size + (this.#first === undefined ? 0 : 1);
  }

  push(task: PiscinaCall): void {
    this.#queue.push(task);
  }

  shift(): PiscinaCall | undefined {
    const task = this.#first ?? this.#queue.shift() ?? undefined;
    this.#first = undefined;
    return task as PiscinaCall | undefined;
  }

  unshift(task: PiscinaCall): void {
    this.#first = task;
  }

  remove(task: PiscinaCall): void {
    if (this.#first === task) this.#first = undefined;
    else this.#queue.remove(task);
  }

  /** Takes out all tasks. */
  clear(): PiscinaCall[] {
    const all: PiscinaCall[] = [];
    for (let task = this.shift(); task !== undefined; task = this.shift()) all.push(task);
    return all;
  }
}

export class ThreadPool implements ThreadHost, TaskOwner {
  readonly options: FilledOptions;
  readonly crews: PiscinaCrews;
  readonly threads = new Set<Thread>();
  readonly runTimes: TaskTimes | undefined;
  readonly waitTimes: TaskTimes | undefined;
  readonly start = systemClock.now();
  readonly resourceOptions: AsyncResourceOptions;
  completed = 0;
  needsDrain = false;
  readonly #events: EventEmitterAsyncResource;
  readonly #line: Line;
  /** Tasks that workers have. */
  #running = 0;
  #isClosing = false;
  #destruction: Promise<void> | undefined;
  /** A file that fails is not loaded over and over. */
  #failsAtLoad = false;
  #onQuiet: (() => void)[] = [];

  constructor(events: EventEmitterAsyncResource, options: Options) {
    this.#events = events;
    this.resourceOptions = { requireManualDestroy: true, triggerAsyncId: events.asyncId };
    this.options = filled(options);
    this.crews = new PiscinaCrews(this.options.maxThreads);
    this.#line = new Line(options.taskQueue ?? new FixedQueue());
    if (this.options.recordTiming) {
      this.runTimes = new TaskTimes();
      this.waitTimes = new TaskTimes();
    }
    while (this.threads.size < this.options.minThreads) this.#add(true);
  }

  // ── Threads

  #add(isReady = false): void {
    if (this.#isClosing) return;
    const thread = new Thread(this, isReady);
    this.threads.add(thread);
    // Behind the constructor of the Piscina, so that the program can listen.
    if (isReady) queueMicrotask(() => this.#ready(thread));
  }

  #ready(thread: Thread): void {
    thread.isReady = true;
    this.#events.emit("workerCreate", thread.seen);
    this.#available(thread);
  }

  loaded(thread: Thread): void {
    this.#failsAtLoad = false;
    if (!thread.isReady) this.#ready(thread);
  }

  heard(message: unknown): void {
    this.#events.emit("message", message);
  }

  #ensureMinimum(): void {
    if (this.#isClosing || this.#destruction !== undefined) return;
    while (this.threads.size < this.options.minThreads) this.#add();
  }

  failed(thread: Thread, error: unknown, hasThrown: boolean): void {
    const tasks = this.#remove(thread);
    if (thread.isReady && !this.#failsAtLoad) this.#ensureMinimum();
    else this.#failsAtLoad = true;
    for (const task of tasks) task.done(true, error);
    let isTold = tasks.length > 0;
    if (!this.#failsAtLoad) this.#grow();
    else if (this.threads.size === 0) {
      for (const task of this.#line.clear()) {
        isTold = true;
        task.done(true, error);
      }
    }
    if (!isTold && hasThrown) this.#events.emit("error", error);
    this.#look();
  }

  /** @returns the tasks that it had */
  #remove(thread: Thread): PiscinaCall[] {
    const tasks = thread.destroy();
    this.#running -= tasks.length;
    this.threads.delete(thread);
    this.#events.emit("workerDestroy", thread.seen);
    return tasks;
  }

  /** Starts threads for the tasks that wait. */
  #grow(): void {
    while (
      this.threads.size < this.options.maxThreads &&
      this.#line.size > this.pendingCapacity &&
      !this.#isClosing &&
      this.#destruction === undefined
    )
      this.#add();
  }

  /** Tasks that threads will take which are not ready. */
  get pendingCapacity(): number {
    let count = 0;
    for (const { isReady } of this.threads) if (!isReady) count++;
    return count * this.options.concurrentTasksPerWorker;
  }

  get idleThreads(): number {
    let count = 0;
    for (const { isReady, tasks } of this.threads) if (isReady && tasks.size === 0) count++;
    return count;
  }

  // ── Tasks

  /** A thread has room for a task. */
  #available(thread: Thread): void {
    this.#distribute();
    const { idleTimeout, minThreads } = this.options;
    const isSpare = (): boolean => thread.tasks.size === 0 && this.threads.size > minThreads && !thread.isDestroyed;
    if (idleTimeout === Number.POSITIVE_INFINITY || !isSpare()) return;
    thread.idle(idleTimeout, () => {
      if (!isSpare()) return;
      this.#remove(thread);
      this.#look();
    });
  }

  /** Gives the tasks that wait to the threads that have room. */
  #distribute(): void {
    for (let task = this.#line.shift(); task !== undefined; task = this.#line.shift()) {
      if (task.isAborted) continue;
      if (this.#give(task)) continue;
      this.#line.unshift(task);
      break;
    }
    this.#grow();
  }

  /** @returns whether a thread got it */
  #give(task: PiscinaCall): boolean {
    const thread = this.#pick(task);
    if (thread === undefined) return false;
    task.started = systemClock.now();
    this.waitTimes?.add(task.started - task.created);
    thread.post(task);
    if (task.thread === thread) this.#running++;
    return true;
  }

  #pick(task: PiscinaCall): Thread | undefined {
    const { loadBalancer, concurrentTasksPerWorker } = this.options;
    if (loadBalancer !== undefined) {
      const ready = [...this.threads].filter(({ isReady }) => isReady);
      return threadOf(
        loadBalancer(
          task,
          ready.map(({ seen }) => seen),
        ),
      );
    }
    let picked: Thread | undefined;
    let least = concurrentTasksPerWorker;
    for (const thread of this.threads) {
      if (!thread.isReady) continue;
      const { usage } = thread;
      if (usage === 0) return thread;
      if (task.isAbortable || usage >= least) continue;
      picked = thread;
      least = usage;
    }
    return picked;
  }

  answered(thread: Thread, task: PiscinaCall, isFailed: boolean, value: unknown): void {
    this.#running--;
    thread.times?.add(systemClock.now() - task.started);
    task.done(isFailed, value);
    this.#available(thread);
    this.#look();
  }

  run(value: unknown, given: GivenTaskOptions): Promise<unknown> {
    const { options } = this;
    const { signal, transferList } = given;
    const filename = given.filename === null ? options.filename : pathOf(given.filename);
    if (filename === null) {
      return Promise.reject(new Error("filename must be provided to run() or in options object"));
    }
    if (this.#isClosing || this.#destruction !== undefined) {
      return Promise.reject(new AbortError("queue is being terminated"));
    }
    if (signal?.aborted === true) return Promise.reject(new AbortError(signal.reason));
    const name = given.name ?? options.name;
    const isNamed = filename !== options.filename || name !== options.name;
    const task = new PiscinaCall(this, value, { filename, name, isNamed, transferList, signal });
    if (this.#admit(task)) {
      if (signal !== null) task.onAbort(signal, () => this.#abort(task));
      this.#look();
    }
    return task.promise;
  }

  over(task: PiscinaCall): void {
    this.completed++;
    if (task.started > 0) this.runTimes?.add(systemClock.now() - task.started);
  }

  /** Gives a task to a thread, or lets it wait. */
  #admit(task: PiscinaCall): boolean {
    if (this.#line.size === 0 && this.#give(task)) return true;
    this.#line.push(task);
    this.#grow();
    const { maxQueue } = this.options;
    if (this.#line.size <= maxQueue + this.pendingCapacity) return true;
    this.#line.remove(task);
    task.refuse(
      new Error(maxQueue === 0 ? "No task queue available and all Workers are busy" : "Task queue is at limit"),
    );
    return false;
  }

  #abort(task: PiscinaCall): void {
    const thread = task.thread as Thread | undefined;
    if (thread === undefined) {
      this.#line.remove(task);
      this.#look();
      return;
    }
    for (const other of this.#remove(thread)) other.done(true, new Error("Terminating worker thread"));
    this.#ensureMinimum();
    this.#distribute();
    this.#look();
  }

  get queueSize(): number {
    return Math.max(0, this.#line.size - this.pendingCapacity);
  }

  /** Tells when all threads have all the tasks that they take, and when they have room again. */
  #look(): void {
    if (this.#running === 0 && this.#line.size === 0) for (const resolve of this.#onQuiet.splice(0)) resolve();
    const isFull = this.#running >= this.options.maxThreads * this.options.concurrentTasksPerWorker;
    if (isFull === this.needsDrain) return;
    this.needsDrain = isFull;
    queueMicrotask(() => this.#events.emit(isFull ? "needsDrain" : "drain"));
  }

  // ── Its end

  destroy(): Promise<void> {
    this.#destruction ??= this.#destroy().finally(() => {
      this.#destruction = undefined;
    });
    return this.#destruction;
  }

  async #destroy(): Promise<void> {
    const ends = [...this.threads].map(({ ended }) => ended);
    const tasks = [...this.#line.clear(), ...[...this.threads].flatMap((thread) => this.#remove(thread))];
    for (const task of tasks) task.done(true, new Error("Terminating worker thread"));
    this.#look();
    await Promise.all(ends);
    await this.crews.end();
  }

  async close(force: boolean): Promise<void> {
    this.#isClosing = true;
    if (force) for (const task of this.#line.clear()) task.done(true, new AbortError("pool is closed"));
    const quiet = new Promise<boolean>((resolve) => this.#onQuiet.push(() => resolve(true)));
    this.#look();
    const isQuiet = await Promise.race([quiet, pause(this.options.closeTimeout, false)]);
    if (isQuiet !== true) this.#events.emit("error", new Error("Close operation timed out"));
    await this.destroy();
    this.#isClosing = false;
    this.#events.emit("close");
  }
}
