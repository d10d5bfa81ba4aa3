// The tasks of a job whose processes this launcher has started: their output, the first failure, their end.

import { type Labels, labelLines, passOn, takeRest } from "../../start/output/labels.js";
import { codeBy, GRACE_MS, unsettledText } from "../../start/process/exit-code.js";
import { codeIn } from "../../start/process/start-limits.js";
import { after, pause } from "../../support/timers.js";
import { say } from "../usage.js";
import type { AskSignal, EndSignal, RunTask, TaskEnd, UserSignal } from "./task.js";

/** The exit code of a job whose time was up. */
export const EXIT_TIMEOUT = 124;
/** Milliseconds for which a failure waits for the end of the task that has caused it. */
const CAUSE_MS = 1000;

/** A job that runs. */
export interface Running {
  /** Resolves with the exit code of the first task that failed, or 0, once all have ended. */
  readonly ended: Promise<number>;
  /** Whether the tasks go on if this process dies. */
  readonly isDetached?: boolean;
  /** Asks all tasks to end. @param signal by which, as far as they can have one */
  end(signal?: AskSignal): void;
  /** Passes a signal on to all tasks. Undefined: none can have it. */
  readonly pass?: (signal: UserSignal) => void;
  /**
   * Ends all tasks before it returns, or before the promise that it returns resolves, as far as they don't end with this process.
   * @param code with which this process exits
   */
  endNow(code: number): unknown;
}

export interface JobOptions {
  readonly onError: "report" | "abort";
  /** Undefined: output passes as it is. */
  readonly labels: Labels | undefined;
  /** Called at the end of a task, before the job counts it. */
  readonly onEnd?: (task: number, end: TaskEnd) => void;
  /** The task whose loss made attach() fail in others, if that has happened. */
  readonly cause?: () => number | undefined;
  /** Called at the failure of a task: starts another one in its place. Undefined: the failure is the job's. */
  readonly replace?: (task: number) => Promise<RunTask> | undefined;
}

export class ProcessJob {
  readonly #options: JobOptions;
  readonly #running = new Set<RunTask>();
  #first: number | undefined;
  #isEnding = false;
  #stopTimer = (): void => {};

  constructor(options: JobOptions) {
    this.#options = options;
  }

  /** Whether the job has been told to end. */
  get isEnding(): boolean {
    return this.#isEnding;
  }

  /** Tasks that have not ended. */
  get running(): ReadonlySet<number> {
    return new Set([...this.#running].map(({ task }) => task));
  }

  /** Takes tasks. @returns the exit code of the first that failed, or 0, once all have ended */
  async run(tasks: readonly RunTask[]): Promise<number> {
    await Promise.all(tasks.map((task) => this.#watch(task)));
    this.#stopTimer();
    return this.#first ?? 0;
  }

  /** Asks all tasks to end; those that go on are killed after 5 s. @param code of the job, unless a task has failed */
  end(code?: number, signal: AskSignal = "SIGTERM"): void {
    if (this.#isEnding) return;
    this.#isEnding = true;
    this.#first ??= code;
    this.#killAll(signal);
    // A task that waits for the reader of its output could not handle the signal.
    for (const { stdout, stderr } of this.#running) for (const from of [stdout, stderr]) takeRest(from);
    // run() clears the timer once the tasks have ended: if there are none, the timer would hold this process.
    if (this.#running.size > 0) this.#stopTimer = after(GRACE_MS, () => this.#killAll("SIGKILL"));
  }

  /** Ends all tasks at once. */
  endNow(): void {
    this.#isEnding = true;
    this.#killAll("SIGKILL");
  }

  /** Passes a signal on to all tasks. */
  pass(signal: UserSignal): void {
    for (const task of this.#running) task.pass(signal);
  }

  #killAll(signal: EndSignal): void {
    for (const task of this.#running) task.kill(signal);
  }

  async #watch(task: RunTask): Promise<void> {
    const { labels } = this.#options;
    this.#running.add(task);
    const lines: (() => void)[] = [];
    for (const name of ["stdout", "stderr"] as const) {
      const [from, to] = [task[name], process[name]];
      if (labels === undefined) from.on("data", (bytes: Uint8Array) => passOn(bytes, from, to));
      else lines.push(labelLines(task.task, labels[name], from, to));
      void task.exited?.then(() => takeRest(from));
    }
    const end = await task.ended;
    for (const endLine of lines) endLine();
    this.#running.delete(task);
    this.#options.onEnd?.(task.task, end);
    const { code, signal, lost } = end;
    // Tasks that the launcher ends have not failed.
    if (code === 0 || this.#isEnding) return;
    await this.#causeOf(task.task);
    if (this.#isEnding) return;
    const aborts = this.#options.onError === "abort";
    say(`pamir: task ${task.task} ${endText(end)}${aborts ? ", the job ends" : ""}`);
    const next = this.#options.replace?.(task.task);
    if (next !== undefined && (await this.#goesOn(next))) return;
    this.#first ??= lost !== undefined ? (codeIn(lost) === undefined ? 1 : 2) : codeBy(code, signal);
    if (aborts) this.end();
  }

  /**
   * The failure of the task whose loss made another one fail is the first: resolves once its end was heard, too. If its process
   * goes on nevertheless, the wait is over soon.
   */
  async #causeOf(failed: number): Promise<void> {
    const cause = this.#options.cause?.();
    const other = [...this.#running].find(({ task }) => task === cause && task !== failed);
    if (other !== undefined) await Promise.race([other.ended, pause(CAUSE_MS, false)]);
  }

  /** Watches a task that comes in the place of another. @returns whether it was started */
  async #goesOn(next: Promise<RunTask>): Promise<boolean> {
    let task: RunTask;
    try {
      task = await next;
    } catch (error) {
      if (!this.#isEnding) say(`pamir run: ${(error as Error).message}`);
      return this.#isEnding;
    }
    if (this.#isEnding) task.kill("SIGKILL");
    await this.#watch(task);
    return true;
  }
}

/** How a task ended, in words. */
export function endText({ code, signal, lost }: TaskEnd): string {
  if (lost !== undefined) return `is lost: ${lost}`;
  return signal === null ? `exited with code ${code}${unsettledText(code)}` : `was ended by ${signal}`;
}
