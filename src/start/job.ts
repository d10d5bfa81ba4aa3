// A job, as the launching thread sees it.
import { JOB_STARTED_OFFSET, TASK_DEAD, TASK_STATE_OFFSET } from "../../assembly/layout.js";
import { checkKeys, type Keys, NO_OPTIONS } from "../core/check.js";
import { checkInteger, PamiError, RemoteError, show } from "../core/error.js";
import type { KernelName } from "../core/kernel-name.js";
import type { ErrorParts } from "../core/task-errors.js";
import type { SharedAtomics } from "../kernel/atomics.js";
import type { Memory } from "../kernel/kernel.js";
import { type MemoryMap, taskSlot } from "../memory/map.js";
import {
  announceEnds,
  announceStart,
  hadEngineBegun,
  hasEngineThread,
  interruptTask,
  markEngineDead,
} from "../node/liveness.js";
import { type Dump, dumpJob, type NodeDump } from "../observe/dump.js";
import { type Trace, type TraceReadOptions, traceOf } from "../observe/trace.js";
import type { Client } from "../pami/client.js";
import { checkTimeout, checkWait } from "../pami/waits.js";
import { systemClock } from "../support/clock.js";
import { diagnostics } from "../support/diagnostics.js";
import { failProcess, isNode } from "../support/host.js";
import type { HostMessagePort, URLLike, WorkerLike } from "../support/like.js";
import { promise, promised } from "../support/promise.js";
import { TRACE_EVENTS_MAX } from "./limits.js";
import type { StartMessage } from "./start-message.js";
import { failureText, isFailure, type OnError } from "./tasks/failure.js";
import type { AdoptTarget, Monitor, MonitorEvents, MonitorOrders, TaskExit } from "./tasks/monitor.js";
import type { TaskPorts } from "./tasks/task-ports.js";

/** Options of `job.adopt`. */
export interface AdoptOptions {
  /** `client.args` of the task (default: the job's). */
  args?: unknown;
  /** Kernels of the task (default: those of the job's first task). */
  kernel?: KernelName | undefined;
}

/** Options of `job.spawn`. */
export interface SpawnOptions extends AdoptOptions {
  /** `client.rank` of the task (default: its number). A task that replaces another one may have the rank of that task. */
  rank?: number | undefined;
  /** Task module (default: the job's). */
  entry?: URLLike | string | (() => WorkerLike) | undefined;
  /** Options of the worker, as for `launch` (default: the job's). */
  workerOptions?: Record<string, unknown> | undefined;
}

/** Options of `job.dumpAll` and `job.traceAll`. */
export interface AskOptions {
  /** Milliseconds in which a node has to answer (default 1,000). */
  timeout?: number | undefined;
}

/** Milliseconds in which a node has to answer by default. */
const ANSWER_MS = 1000;
const TRACE_KEYS: Keys<TraceReadOptions> = { events: true };
const TRACE_ALL_KEYS: Keys<AskOptions & TraceReadOptions> = { timeout: true, events: true };

/** @throws PAMIR_INVAL */
function timeoutOf(call: string, options: AskOptions): number {
  checkWait(call, options);
  return options.timeout ?? ANSWER_MS;
}

export interface JobParts {
  readonly monitor: (events: MonitorEvents) => Monitor;
  readonly client: Client | undefined;
  /** Tasks that are launched, the caller included if it joins. */
  readonly launched: number;
  /**
   * Checks the options of one more task, and makes its bootstrap. @throws PAMIR_INVAL, PAMIR_ENTRY, PAMIR_NO_WASM,
   * PAMIR_NO_WORKERS
   */
  readonly oneMore: (
    task: number,
    options: SpawnOptions,
    isAdopted: boolean,
  ) => { readonly bootstrap: StartMessage; readonly orders: MonitorOrders };
  /** Whether the job has an engine thread. */
  readonly hasEngine: boolean;
  /** By task, if the job has ports: the launching thread's end of its channel. */
  readonly ports?: TaskPorts | undefined;
  readonly onExit: ((exit: TaskExit) => void) | undefined;
  readonly onError: OnError;
  readonly map: MemoryMap;
  readonly memory: Memory;
  readonly sync: SharedAtomics;
}

/** A waiter for the end of a task. The monitor also tells the waiter if the task goes on. */
interface Awaited {
  readonly task: number;
  readonly ended: (exit: TaskExit) => void;
  readonly stays?: ((why: string) => void) | undefined;
}

/** A job, as the launching thread sees it. If that thread joined, its own task is in `client`. */
export class Job {
  /**
   * Resolves with the end of each task except a joined caller, by task number, once no task runs and none can come. If
   * `maxTasks` allows more tasks and the caller has joined, it also waits until the caller closes its client. Never rejects.
   */
  readonly exited: Promise<TaskExit[]>;
  /** @internal Resolves when the monitor runs. */
  readonly started: Promise<void>;

  readonly #parts: JobParts;
  readonly #monitor: Monitor;
  readonly #exits = new Map<number, TaskExit>();
  /** The ends of tasks that ended by an error, or did not close their clients. */
  readonly #errors = new Map<number, ErrorParts>();
  /** Tasks that exist so far. */
  #tasks: number;
  /** Tasks that have not ended, without a joined caller. */
  #running: number;
  #isTerminated = false;
  #isReferenced = true;
  /** Calls of terminate() that have not settled. */
  #ending = 0;
  /** Waiters for the end of one task, and for the call of its onExit() before that. */
  readonly #awaited = new Set<Awaited>();
  /** Errors of spawn() and adopt() once the job is over. */
  readonly #refusals = new WeakSet<object>();
  /** Whether no task runs and none comes any more. */
  #isOver = false;
  /** Whether the monitor has been told that the job is over. */
  #isClosing = false;
  /** Resolves `exited`. */
  readonly #haveExited: () => void;

  /** @internal */
  constructor(parts: JobParts) {
    this.#parts = parts;
    this.#tasks = parts.launched;
    this.#running = parts.launched - this.#joined;
    const [started, isStarted] = promise<void>();
    const [exited, haveExited] = promise<TaskExit[]>();
    this.started = started;
    this.exited = exited;
    this.#haveExited = () => {
      parts.ports?.close();
      if (this.#isTerminated) parts.client?.close();
      haveExited([...this.#exits.values()].sort((a, b) => a.task - b.task));
    };
    parts.client?.hearExits({
      whenTold: (task, then) => (this.#exits.has(task) || this.#isOver ? undefined : this.#onceEnded(task, then)),
      errorOf: (task) => this.#errorOf(task),
    });
    this.#monitor = parts.monitor({
      started: () => {
        isStarted();
        this.#settle();
      },
      ended: (exit, error) => this.#ended(exit, error),
      stays: (task, why) => this.#stays(task, why),
      engineEnded: (error) => this.#engineEnded(error),
      over: (error) => {
        this.#isOver = true;
        this.#isClosing = true;
        this.#monitorEnded(error);
        isStarted();
        this.#haveExited();
      },
    });
  }

  /** @internal The caller has closed its client. */
  callerLeft(): void {
    this.#settle();
  }

  /**
   * The engine of long transfers. `inline`: each task moves them in its `advance()`. `thread`: the engine thread moves them.
   * `ended`: the engine thread has ended or could not start, and each task moves them in its `advance()`.
   */
  get engine(): "inline" | "thread" | "ended" {
    const { sync, map } = this.#parts;
    if (!this.#parts.hasEngine) return "inline";
    return hasEngineThread(sync, map) ? "thread" : "ended";
  }

  /** Number of tasks that the job has had so far. */
  get tasks(): number {
    return this.#tasks;
  }

  /**
   * Starts one more task, up to `maxTasks` of `launch`. It gets the next number, by which other tasks reach it. Called in
   * `onExit`, it can replace a task that has ended.
   * @returns the number of the task
   * @throws PAMIR_INVAL (the job has had `maxTasks` tasks, or a wrong option), PAMIR_CLOSED (the job is over), PAMIR_ENTRY,
   *   PAMIR_NO_WASM, PAMIR_NO_WORKERS
   */
  spawn(options: SpawnOptions = {}): number {
    const task = this.#nextTask("spawn");
    this.#monitor.start(this.#parts.oneMore(task, options, false).orders);
    return this.#added();
  }

  /**
   * Makes a task of a worker that the program started, for instance a worker of a pool. `attach(port)` in that worker waits for
   * this call. `terminate()` asks an adopted task to close its client, and does not end its worker. The task ends with that at
   * the latest.
   * @param target the worker, or a port whose other end is in the worker
   * @returns the number of the task
   * @throws as spawn()
   */
  adopt(target: AdoptTarget, options: AdoptOptions = {}): number {
    if (typeof (target as Partial<Worker> | null)?.postMessage !== "function") {
      const text = "not a Worker or MessagePort: spawn() takes the URL of a module";
      throw new PamiError("PAMIR_INVAL", `target of adopt() is ${show(target)}, ${text}`);
    }
    const task = this.#nextTask("adopt");
    this.#monitor.adopt(this.#parts.oneMore(task, options, true).bootstrap, target);
    return this.#added();
  }

  /** The caller's client. @throws PAMIR_NOT_IN_JOB unless the job was launched with `join: true` */
  get client(): Client {
    const { client } = this.#parts;
    if (client === undefined)
      throw new PamiError("PAMIR_NOT_IN_JOB", "job.client of a job launched without join: true");
    return client;
  }

  /**
   * This thread's end of a channel to a task, whose end is `client.port` there: for what can't be copied, such as a MessagePort
   * or an ImageBitmap. Its messages come by events of the host, not by contexts, and in no order with theirs. It keeps no
   * process running until the program listens to it; `unref()` ends that. It is closed when the job is over; when a task has
   * ended, the port gives what it has received before.
   * @returns undefined unless the job was launched with `ports`, and for a task that is the caller or in another process
   * @throws PAMIR_INVAL for a task that does not exist
   */
  port(task: number): HostMessagePort | undefined {
    checkInteger("task", task, 0, this.#tasks - 1);
    return this.#parts.ports?.of(task) as HostMessagePort | undefined;
  }

  /**
   * Ends a task's current wait, or its next one, with INTERRUPTED.
   * @throws PAMIR_INVAL for a task that does not exist
   */
  interrupt(task: number): void {
    checkInteger("task", task, 0, this.#tasks - 1);
    if (this.#monitor.interrupt !== undefined) this.#monitor.interrupt(task);
    else interruptTask(this.#parts.sync, this.#parts.map, task);
  }

  /**
   * Returns the state of the whole job: queues, sleeping tasks, and operations that stand still. It is read from the shared
   * memory while the tasks run. If tasks share no memory, it covers this thread only: see `dumpAll()`.
   */
  dump(): Dump {
    const { map, memory, sync } = this.#parts;
    return dumpJob(map, memory, sync, systemClock);
  }

  /**
   * Resolves with a dump of each node: of every task by itself if tasks share no memory, else of all tasks at once, as
   * `dump()`. The dumps are copies, each of its own moment. A node that has ended, or does not answer in time, is named
   * without one.
   * @throws PAMIR_INVAL for a wrong option
   */
  async dumpAll(options: AskOptions = NO_OPTIONS): Promise<NodeDump[]> {
    const timeout = timeoutOf("dumpAll()", options);
    const { nodes } = this.#monitor;
    if (nodes !== undefined) return nodes.dumpAll(timeout);
    const tasks = Array.from({ length: Math.min(this.#tasks, this.#parts.map.locals) }, (_, task) => task);
    return [{ tasks, state: "answered", dump: this.dump() }];
  }

  /**
   * Resolves with the last events of the tasks of all nodes, as `trace()` if tasks share memory. A task whose node has
   * ended, or does not answer in time, has no events, and `not read` behind its name.
   * @throws PAMIR_INVAL unless the job was launched with `trace`, or for a wrong option
   */
  async traceAll(options: AskOptions & TraceReadOptions = NO_OPTIONS): Promise<Trace> {
    checkKeys("options of traceAll()", options, TRACE_ALL_KEYS);
    const { timeout = ANSWER_MS, events } = options;
    checkTimeout(timeout);
    this.#checkTraced(events);
    return this.#monitor.nodes?.traceAll(timeout, events) ?? this.trace({ events });
  }

  /**
   * Returns the last events of every task, as a trace whose text Perfetto and chrome://tracing show. If tasks share no
   * memory, it covers this thread only: see `traceAll()`. A live view reads a part of each ring, by `events`.
   * @throws PAMIR_INVAL unless the job was launched with `trace`, or for a wrong option
   */
  trace(options: TraceReadOptions = NO_OPTIONS): Trace {
    const { map, memory, sync } = this.#parts;
    checkKeys("options of trace()", options, TRACE_KEYS);
    const { events } = options;
    this.#checkTraced(events);
    return traceOf(map, memory, sync, this.#tasks, events);
  }

  #checkTraced(events: number | undefined): void {
    if (events !== undefined) checkInteger("events", events, 1, TRACE_EVENTS_MAX);
    if (this.#parts.map.traceEvents > 0) return;
    throw new PamiError("PAMIR_INVAL", "trace() of a job that was launched without trace");
  }

  /**
   * Ends all tasks now, and closes a joined caller's client. Resolves as `exited`. With a number, it ends that task and
   * resolves with the end of that task, even if the task ended by itself first. An adopted task has a second to leave. If it has
   * not, `terminate(task)` rejects, and the task goes on; `terminate()` resolves, and its exit has an error that says so.
   * @throws PAMIR_INVAL for a task that does not exist, or is the caller; PAMIR_TIMEDOUT an adopted task has not left
   */
  terminate(): Promise<TaskExit[]>;
  terminate(task: number): Promise<TaskExit>;
  async terminate(task?: number): Promise<TaskExit[] | TaskExit> {
    // Also holds an unref()ed job. Otherwise the process would end before this promise resolves, with code 13 if the program
    // awaits the promise.
    this.#ending++;
    this.#monitor.ref();
    try {
      if (task !== undefined) return await this.#terminateOne(task);
      if (!this.#isOver) this.#monitor.terminate("all");
      return await this.#terminated();
    } finally {
      this.#ending--;
      if (this.#ending === 0 && !this.#isReferenced) this.#monitor.unref();
    }
  }

  /** All tasks are being ended. */
  async #terminated(): Promise<TaskExit[]> {
    this.#isTerminated = true;
    this.#settle();
    const exits = await this.exited;
    this.#parts.client?.close();
    return exits;
  }

  #terminateOne(task: number): Promise<TaskExit> {
    checkInteger("task", task, this.#joined, this.#tasks - 1);
    const exit = this.#exits.get(task);
    if (exit !== undefined) return Promise.resolve(exit);
    // First: in a browser, the task may have ended when terminate() returns.
    const ended = new Promise<TaskExit>((resolve, reject) => {
      const stays = (why: string): void =>
        reject(new PamiError("PAMIR_TIMEDOUT", `terminate() of task ${task}: ${why}`));
      this.#onceEnded(task, resolve, stays);
    });
    this.#monitor.terminate(task);
    return ended;
  }

  /** Calls `ended` with the end of a task that runs. @returns a function that prevents that call */
  #onceEnded(task: number, ended: Awaited["ended"], stays?: Awaited["stays"]): () => void {
    const awaited: Awaited = { task, ended, stays };
    this.#awaited.add(awaited);
    return () => void this.#awaited.delete(awaited);
  }

  /** A task that terminate() was to end goes on. */
  #stays(task: number, why: string): void {
    for (const awaited of this.#awaited) {
      if (awaited.task !== task || awaited.stays === undefined) continue;
      this.#awaited.delete(awaited);
      awaited.stays(why);
    }
  }

  /** @internal Sends a signal to the tasks that have a process of their own: `pamir run` does. */
  signal(name: string, isEnd: boolean): void {
    this.#monitor.signal?.(name, isEnd);
  }

  #errorOf(task: number): RemoteError | undefined {
    const error = this.#errors.get(task);
    return error && new RemoteError(error, `task ${task}`);
  }

  /** @internal Ends the engine thread, for tests of its death. */
  endEngine(): void {
    this.#monitor.terminate("engine");
  }

  /** Lets the job keep the process running (the default). */
  ref(): void {
    this.#isReferenced = true;
    this.#monitor.ref();
    this.#settle();
  }

  /** Stops the job from keeping the process running, except while it is being terminated. */
  unref(): void {
    this.#isReferenced = false;
    if (this.#ending === 0) this.#monitor.unref();
  }

  /** Calls terminate() at the end of a block with `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.terminate();
  }

  get #joined(): number {
    return this.#parts.client === undefined ? 0 : 1;
  }

  #nextTask(call: string): number {
    const { jobTasks } = this.#parts.map;
    if (this.#isOver || this.#isTerminated) {
      const refusal = new PamiError("PAMIR_CLOSED", `${call}(): the job is over`);
      this.#refusals.add(refusal);
      throw refusal;
    }
    if (this.#tasks >= jobTasks) {
      throw new PamiError(
        "PAMIR_INVAL",
        `${call}() of task ${this.#tasks}: the job has had ${jobTasks} tasks, see launch({ maxTasks })`,
      );
    }
    return this.#tasks;
  }

  #added(): number {
    const { sync, map } = this.#parts;
    this.#running++;
    sync.storeWord(map.job + JOB_STARTED_OFFSET, this.#tasks + 1);
    announceStart(sync, map);
    if (this.#isReferenced) this.#monitor.ref();
    return this.#tasks++;
  }

  #ended(exit: TaskExit, error: ErrorParts | undefined): void {
    this.#exits.set(exit.task, exit);
    if (error !== undefined) this.#errors.set(exit.task, error);
    this.#running--;
    if (diagnostics.exit.hasSubscribers) diagnostics.exit.publish({ job: this, exit });
    if (isFailure(exit)) this.#failed(exit);
    try {
      this.#tell(exit);
    } finally {
      this.#settle();
    }
  }

  /** Calls onExit(), then what waits for this end. */
  #tell(exit: TaskExit): void {
    try {
      this.#callOnExit(exit);
    } finally {
      for (const awaited of this.#awaited) {
        if (awaited.task !== exit.task) continue;
        this.#awaited.delete(awaited);
        awaited.ended(exit);
      }
    }
  }

  /** onExit() need not catch the error of spawn() or adopt() that reports the end of the job. */
  #callOnExit(exit: TaskExit): void {
    const pass = (error: unknown): void => {
      if (!this.#refusals.has(error as object)) throw error;
    };
    try {
      void promised(this.#parts.onExit?.(exit))?.catch(pass);
    } catch (error) {
      pass(error);
    }
  }

  /** A task has failed. In Node the monitor has printed that already, unless the monitor itself has ended. */
  #failed(exit: TaskExit): void {
    const { onError, onExit } = this.#parts;
    if (onError === "ignore") return;
    if (!isNode() || exit.cause === "monitor") console.error(failureText(exit, onError));
    // A failure that the program handles itself does not set its exit code.
    if (onExit === undefined || onError === "abort") failProcess(exit.code);
    if (onError === "abort" && !this.#isTerminated) void (this.#monitor.aborts ? this.#terminated() : this.terminate());
  }

  #engineEnded(error: string): void {
    if (this.#isClosing || this.#isTerminated) return;
    const { sync, map } = this.#parts;
    console.warn(
      hadEngineBegun(sync, map)
        ? `pamir: the engine thread has ended: ${error}. What it had not finished comes to ERROR; each task is its own engine now`
        : `pamir: there is no engine thread: ${error}. Each task is its own engine`,
    );
  }

  /** Ends the monitor if no task is left and none can come. */
  #settle(): void {
    if (this.#isClosing || this.#running > 0) return;
    const { client, map } = this.#parts;
    const isCallerThere = client !== undefined && !client.closed && !this.#isTerminated;
    if (!this.#isOver && isCallerThere && this.#tasks < map.jobTasks) {
      // A job without running tasks keeps no process running.
      this.#monitor.unref();
      return;
    }
    this.#isOver = true;
    if (isCallerThere && this.#parts.hasEngine) {
      // The caller goes on alone, and the engine thread works for it.
      this.#monitor.unref();
      this.#haveExited();
      return;
    }
    this.#isClosing = true;
    // The process must live until `exited` resolves. The monitor may not have kept it running until now.
    if (this.#isReferenced) this.#monitor.ref();
    this.#monitor.close();
  }

  /** Without its monitor, a job has no tasks: every task without an exit counts as dead. */
  #monitorEnded(error: string): void {
    const { sync, map } = this.#parts;
    if (this.#parts.hasEngine) markEngineDead(sync, map);
    const lost: number[] = [];
    for (let task = this.#joined; task < this.#tasks; task++) {
      if (this.#exits.has(task)) continue;
      lost.push(task);
      const exit: TaskExit = { task, code: 1, cause: "monitor", error };
      this.#exits.set(task, exit);
      this.#failed(exit);
      if (map.locals === map.jobTasks) sync.storeWord(taskSlot(map, task) + TASK_STATE_OFFSET, TASK_DEAD);
    }
    if (lost.length > 0 && map.locals === map.jobTasks) announceEnds(sync, map, lost);
    // Each call has a microtask of its own: an error in one onExit() does not prevent the calls for other tasks.
    for (const task of lost) queueMicrotask(() => this.#tell(this.#exits.get(task) as TaskExit));
  }
}
