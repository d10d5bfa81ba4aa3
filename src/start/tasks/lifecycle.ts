// The life cycle of tasks, whichever host runs them. A host adds the worker of each task and says how the worker ended; the
// lifecycle records the error, marks the task dead, and tells the job. A worker that pamir has started is terminated. A worker
// that a program has started is asked to leave by a message. In case it blocks, and reads no message, it also gets an
// interrupt.
import type { ErrorParts, TaskErrors } from "../../core/task-errors.js";
import { after } from "../../support/timers.js";
import { errorOf } from "./exit-error.js";
import type { TaskExit } from "./monitor.js";

/** Milliseconds in which a program's worker reads the message to leave, and in which it leaves. */
const BLOCKED_MS = 100;
const LEAVE_MS = 1000;

/** The worker of a task. */
export interface TaskWorker {
  /** Asks a worker that the program has started to leave; undefined: pamir has started it. */
  readonly askToLeave?: (() => void) | undefined;
  /**
   * Ends the worker: the host calls end() once it is gone. Forgets a worker of the program that has not left when every task
   * ends.
   * @param isAll whether every task ends: then no task reuses this one's memory
   */
  terminate(isAll: boolean): void;
  /**
   * Sends a signal to the task's process. If the signal is to end it, also to processes that it has started. Undefined: the
   * task has no process of its own.
   */
  signal?(name: string, isEnd: boolean): void;
}

/** The work of a host for the tasks. At the end of a task, the last two functions are called, in this order. */
export interface LifecycleHost {
  /** Whether a task has closed its client. */
  hasLeft(task: number): boolean;
  /** Ends a task's current wait. */
  interrupt(task: number): void;
  /** Releases the worker, marks the task dead in this memory, and tells its contexts. */
  markDead(task: number): void;
  /**
   * A task was to end, but its worker, which the program has started, has not left. The task goes on. @param why in a sentence
   */
  stays(task: number, why: string): void;
  /** Tells the job, and prints a failure. @param shown the error as it is printed */
  ended(exit: TaskExit, error: ErrorParts | undefined, shown: string | undefined): void;
}

export class Lifecycle {
  readonly #workers = new Map<number, TaskWorker>();
  /** Tasks that terminate() ends, or has ended. */
  readonly #terminated = new Set<number>();
  /** Whether every task ends. */
  #isEnding = false;
  /** Tasks that are marked dead, and have not ended, with their errors. */
  readonly #dead = new Map<number, ErrorParts | undefined>();
  /** Stops of the timers of tasks that are asked to leave. */
  readonly #timers = new Map<number, readonly (() => void)[]>();
  readonly #errors: Pick<TaskErrors, "write"> | undefined;
  readonly #host: LifecycleHost;

  /** @param errors where the errors of dead tasks are written */
  constructor(errors: Pick<TaskErrors, "write"> | undefined, host: LifecycleHost) {
    this.#errors = errors;
    this.#host = host;
  }

  /** A task begins. */
  add(task: number, worker: TaskWorker): void {
    this.#workers.set(task, worker);
  }

  /** Whether a task has begun, and has not ended. */
  isRunning(task: number): boolean {
    return this.#workers.has(task) && !this.#dead.has(task);
  }

  /** Whether terminate() was called for a task. */
  isTerminated(task: number): boolean {
    return this.#terminated.has(task);
  }

  /** The exit of a task whose worker is gone without a last message. */
  silentExit(task: number): TaskExit {
    const cause = this.isTerminated(task) ? "terminated" : "exit";
    if (this.#host.hasLeft(task)) return { task, code: 0, cause };
    return { task, code: 1, cause, error: "its worker ended without closing the client" };
  }

  /** Another monitor has ended a task, recorded the error, and marked the task dead. */
  relay(exit: TaskExit, error: ErrorParts | undefined, shown: string | undefined): void {
    if (!this.#workers.delete(exit.task)) return;
    this.#host.ended(exit, error, shown);
  }

  /** A task's thread is gone, and other tasks learn of its end. Its host calls end() later, once its output is out. */
  die(exit: TaskExit): void {
    const { task } = exit;
    if (!this.#workers.has(task) || this.#dead.has(task)) return;
    this.#dead.set(task, errorOf(exit, this.#host.hasLeft(task)));
    const error = this.#dead.get(task);
    if (error !== undefined) this.#errors?.write(task, error);
    this.#host.markDead(task);
  }

  /** A task has ended. A second report of the same task changes nothing. */
  end(exit: TaskExit, shown?: string): void {
    const { task } = exit;
    this.die(exit);
    const error = this.#dead.get(task);
    this.#dead.delete(task);
    if (!this.#workers.delete(task)) return;
    for (const stop of this.#timers.get(task) ?? []) stop();
    this.#timers.delete(task);
    this.#host.ended(exit, error, shown);
  }

  /**
   * Sends a signal to all tasks with a process of their own. @param isEnd whether the signal is to end the tasks, which
   * then do not fail
   */
  signal(name: string, isEnd: boolean): void {
    for (const [task, worker] of [...this.#workers]) {
      if (isEnd) this.#terminated.add(task);
      worker.signal?.(name, isEnd);
    }
  }

  /** Ends one task, or all of them. */
  terminate(which: number | "all"): void {
    const isAll = which === "all";
    this.#isEnding ||= isAll;
    for (const [task, worker] of [...this.#workers]) {
      if (!isAll && which !== task) continue;
      this.#terminated.add(task);
      if (worker.askToLeave === undefined) worker.terminate(isAll);
      else if (!this.#timers.has(task)) {
        worker.askToLeave();
        const interrupt = after(BLOCKED_MS, () => this.#host.interrupt(task));
        this.#timers.set(task, [interrupt, after(LEAVE_MS, () => this.#stays(task, worker))]);
      }
    }
  }

  /**
   * A worker of the program has not left in time. Its thread may go on, and use the task's memory: so the task is not marked
   * dead, and no other task gets that memory. The task ends when the worker ends. If every task ends, the job ends without
   * waiting for the worker.
   */
  #stays(task: number, worker: TaskWorker): void {
    this.#timers.delete(task);
    const why = `its worker, which the program has started, has not left within ${LEAVE_MS} ms`;
    if (!this.#isEnding) {
      this.#host.stays(task, `${why}: it blocks, or computes. The task goes on until that worker ends`);
      return;
    }
    this.#workers.delete(task);
    worker.terminate(true);
    const exit: TaskExit = { task, code: 1, cause: "terminated", error: why };
    this.#host.ended(exit, errorOf(exit, this.#host.hasLeft(task)), undefined);
  }
}
