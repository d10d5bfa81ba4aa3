// The monitor watches over the tasks of a job: it starts their workers, and learns of their end. In Node the monitor is a
// worker of its own (monitor-node.ts). In a browser it is the launching thread, which never blocks there (monitor-browser.ts).
import type { ErrorParts } from "../../core/task-errors.js";
import type { NodeDump } from "../../observe/dump.js";
import type { Trace } from "../../observe/trace.js";
import type { MessagePortLike, WorkerLike } from "../../support/like.js";
import type { StartMessage } from "../start-message.js";

/**
 * The task module: its URL, or, in a browser, a function that makes its worker. Bundlers recognize the expression in such a
 * function, `new Worker(new URL("./task.js", import.meta.url), { type: "module" })`, and bundle the module too.
 */
export type TaskEntry = string | (() => WorkerLike);

/** Tasks to start. */
export interface MonitorOrders {
  /** Null if there is no worker to start. */
  readonly entry: TaskEntry | null;
  readonly bootstraps: readonly StartMessage[];
  readonly workerOptions: Record<string, unknown>;
}

/** The end of a task. */
export interface TaskExit {
  /** Number of the task. */
  readonly task: number;
  /** Exit code of the task's worker: 0 for a normal end; 128 plus the signal's number if the task's process was killed. */
  readonly code: number;
  /**
   * `exit`: the task ended by itself. `error`: it threw. `memory`: it ran out of memory. `terminated`: by `job.terminate()`.
   * `process`: its process ended. `monitor`: the job's monitor ended.
   */
  readonly cause: "exit" | "error" | "memory" | "terminated" | "process" | "monitor";
  /**
   * Name and text of the error, for `error`, `memory`, `process` and `monitor`. For `terminated`, set if an adopted task has
   * not left in time, and its worker goes on.
   */
  readonly error?: string | undefined;
  /** Name of the signal that killed the task's process, for `process`. */
  readonly signal?: string | undefined;
  /** `code` of the error, if it has one. */
  readonly errorCode?: string | undefined;
  /** Stack of the error, if it has one. */
  readonly stack?: string | undefined;
}

/** The events that a monitor reports to its job. */
export interface MonitorEvents {
  started(): void;
  /** @param error the end as an error for other tasks; undefined: the task had closed its client, and ended well */
  ended(exit: TaskExit, error: ErrorParts | undefined): void;
  /** A task that terminate() was to end goes on. @param why in a sentence */
  stays(task: number, why: string): void;
  /** The engine thread has ended with this error. */
  engineEnded(error: string): void;
  /** The monitor has ended: by close(), or with an error. */
  over(error: string): void;
}

/** A worker that the program started, or a port whose other end is in that worker. */
export type AdoptTarget = WorkerLike | MessagePortLike;

/** The nodes of a job. The result names a node that does not answer in time. */
export interface Nodes {
  dumpAll(timeout: number): Promise<NodeDump[]>;
  traceAll(timeout: number, events: number | undefined): Promise<Trace>;
}

/** A monitor as the job sees it. */
export interface Monitor {
  /** Starts more tasks. @throws PAMIR_INVAL, PAMIR_ENTRY */
  start(orders: MonitorOrders): void;
  /** Makes a task of a worker that the program has started. @throws PAMIR_INVAL */
  adopt(bootstrap: StartMessage, target: AdoptTarget): void;
  /** No task is left, and none comes. */
  close(): void;
  /** Whether, with `onError: "abort"`, the monitor ends all tasks by itself before it reports the failure of one. */
  readonly aborts?: boolean;
  /** Ends one task, or all of them. */
  terminate(task: number | "all" | "engine"): void;
  /** Sends a signal to all tasks with a process of their own. @param isEnd whether the signal is to end the tasks */
  signal?(name: string, isEnd: boolean): void;
  /** Interrupts a task; only where tasks share no memory. */
  interrupt?(task: number): void;
  /** Asks all nodes; only where tasks share no memory. */
  readonly nodes?: Nodes;
  /** Keeps the process running, or not. */
  ref(): void;
  unref(): void;
}
