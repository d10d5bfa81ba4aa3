// Tasks that are processes find each other by PMI-1, which this launcher serves, on this machine and on others. The launcher
// tells the agents of nodes which other nodes have ended, and starts tasks that have failed again.
import { START_TIMEOUT_MAX } from "../../bootstrap/environment.js";
import { JOIN_BARRIERS, LATER, LATER_BEGUN, type Later } from "../../bootstrap/later.js";
import { StreamLines } from "../../bootstrap/lines.js";
import { storedText } from "../../bootstrap/pmi/pmi-client.js";
import { PmiServer } from "../../bootstrap/pmi/pmi-server.js";
import { PlainFraming } from "../../bootstrap/pmi/pmi-wire.js";
import { GRACE_MS } from "../../bootstrap/waits.js";
import { say } from "../usage.js";
import { EXIT_TIMEOUT, type JobOptions, ProcessJob, type Running } from "./job.js";
import { NEWS_FD, PMI_FD } from "./processes.js";
import type { Restarts } from "./restarts.js";
import type { AskSignal, RunTask, TaskEnd, UserSignal } from "./task.js";
import { missingTasks, reportWaits, tasksText } from "./waiting.js";

/** Where a task runs. */
export interface TaskPlace {
  /** Its place among the tasks of its host, from 0, and how many these are. */
  readonly place: number;
  readonly count: number;
  /** Tasks of a node. */
  readonly perNode: number;
}

/** A task that comes later. */
export interface LaterTask {
  readonly task: number;
  readonly rank: number;
  readonly env: Record<string, string>;
}

export interface ServedOptions extends Pick<JobOptions, "onError" | "labels"> {
  /** Tasks with which the job begins. */
  readonly size: number;
  /** Of a barrier, in milliseconds. */
  readonly timeout: number;
  readonly restarts: Restarts;
  /** Starts a process for a task that comes later. @throws UsageError */
  readonly start: (later: LaterTask) => Promise<RunTask>;
}

export class ServedJob implements Pick<Running, "end" | "endNow"> {
  readonly #options: ServedOptions;
  readonly #server: PmiServer;
  readonly #job: ProcessJob;
  readonly #running = new Map<number, RunTask>();
  /** Nodes that have ended. */
  readonly #ended = new Set<number>();
  /** Tasks whose processes have ended. Not those of a host whose connection has ended: they may go on for a while. */
  readonly #gone = new Set<number>();
  /** Tasks of each node with which the job began, once they have been counted: before any node comes later. */
  #found: number | undefined;
  #next: number;

  constructor(options: ServedOptions) {
    const { size, timeout, restarts, onError, labels } = options;
    this.#options = options;
    this.#next = size;
    const kvsname = `pamir_${process.pid}`;
    const onTimedOut = (missing: readonly number[]): void => this.#giveUp(missing);
    this.#server = new PmiServer({ size, later: restarts.spare, kvsname, barrierTimeout: timeout, onTimedOut });
    this.#job = new ProcessJob({
      onError,
      labels,
      onEnd: (task, end) => this.#onEnd(task, end),
      cause: () => this.#server.brokenBy,
      replace: (task) => this.#replace(task),
    });
  }

  /** The variables by which a task's attach() finds this launcher. */
  variablesOf(task: number, { place, count, perNode }: TaskPlace): Record<string, string> {
    return {
      ...this.#variables(task, this.#options.size, {}),
      MPI_LOCALRANKID: `${place}`,
      MPI_LOCALNRANKS: `${count}`,
      PAMIR_NODE: `${Math.floor(task / perNode)}`,
    };
  }

  #variables(task: number, size: number, more: Pick<Later, "rank" | "ended" | "gone">): Record<string, string> {
    const later: Later = { world: this.#options.size, most: this.#most, news: NEWS_FD, ...more };
    return {
      PMI_FD: `${PMI_FD}`,
      PMI_RANK: `${task}`,
      PMI_SIZE: `${size}`,
      [LATER]: JSON.stringify(later),
      PAMIR_START_TIMEOUT: `${Math.min(START_TIMEOUT_MAX, Math.ceil((this.#options.timeout + GRACE_MS) / 1000))}`,
    };
  }

  get #most(): number {
    return this.#options.size + this.#options.restarts.spare;
  }

  /** Serves the tasks with which the job begins, until all have ended. @returns the exit code */
  async run(tasks: readonly RunTask[]): Promise<number> {
    for (const task of tasks) this.#serve(task);
    const stopReports = reportWaits(() => missingTasks(this.#server, this.#job.running, this.#options.size));
    try {
      return await this.#job.run(tasks);
    } finally {
      stopReports();
      this.#server.close();
    }
  }

  end(signal?: AskSignal): void {
    this.#job.end(undefined, signal);
  }

  pass(signal: UserSignal): void {
    this.#job.pass(signal);
  }

  /** Tasks have attached, and wait for others that go on without that. */
  #giveUp(missing: readonly number[]): void {
    const time = `within ${this.#options.timeout / 1000} s (--start-timeout)`;
    say(`pamir run: ${tasksText(missing)} did not attach ${time}: the job ends`);
    this.#job.end(EXIT_TIMEOUT);
  }

  endNow(): void {
    this.#job.endNow();
  }

  #serve(task: RunTask): void {
    this.#running.set(task.task, task);
    this.#server.serve(new StreamLines(task.pmi, new PlainFraming()), task.task);
  }

  /** Tasks of each node with which the job began, as the tasks have agreed. Undefined: not all have attached so far. */
  get #perNode(): number | undefined {
    const { size } = this.#options;
    if (this.#found !== undefined || this.#server.barriers < JOIN_BARRIERS) return this.#found;
    let nodes = 0;
    while (nodes < size && this.#server.has(`address-${nodes}`)) nodes++;
    this.#found = size / nodes;
    return this.#found;
  }

  #onEnd(task: number, { code, lost: why }: TaskEnd): void {
    this.#running.delete(task);
    const isCertain = why === undefined;
    if (isCertain) this.#gone.add(task);
    const perNode = this.#perNode;
    if (perNode === undefined) return;
    const { size, restarts } = this.#options;
    const isLater = task >= size;
    if (isCertain && code !== 0 && !this.#job.isEnding) this.#tell({ gone: task });
    // The process of a node's first task has its agent.
    if (!isLater && task % perNode !== 0) return;
    const lost = isLater ? size / perNode + task - size : task / perNode;
    this.#ended.add(lost);
    if (code === 0 || this.#job.isEnding) return;
    this.#tell({ lost });
    if (isLater || restarts.spare === 0) return;
    // The node's other tasks are cut off: they are started again, too.
    for (let other = task + 1; other < task + perNode; other++) this.#running.get(other)?.kill("SIGKILL");
  }

  /** Tells the agents of all nodes. */
  #tell(order: { readonly gone: number } | { readonly lost: number }): void {
    for (const other of this.#running.values()) other.tell(`${JSON.stringify(order)}\n`);
  }

  /** Starts a task in the place of one that has failed. */
  #replace(failed: number): Promise<RunTask> | undefined {
    const { restarts, start } = this.#options;
    if (restarts.spare === 0) return undefined;
    if (this.#perNode === undefined) {
      say(`pamir run: task ${failed} is not started again: not all tasks have attached before`);
      return undefined;
    }
    const later = restarts.replace(failed, () => this.#next++);
    if (later === undefined) return undefined;
    this.#server.store(LATER_BEGUN, storedText(Buffer.from(`${this.#next - this.#options.size}`)));
    const [ended, gone] = [[...this.#ended], [...this.#gone]];
    const env = this.#variables(later.task, this.#most, { rank: later.rank, ended, gone });
    return start({ ...later, env }).then((task) => {
      this.#serve(task);
      // Another host takes its time to start a task: its variables lack the tasks and nodes that have ended meanwhile.
      for (const one of this.#gone) if (!gone.includes(one)) task.tell(`${JSON.stringify({ gone: one })}\n`);
      for (const lost of this.#ended) if (!ended.includes(lost)) task.tell(`${JSON.stringify({ lost })}\n`);
      return task;
    });
  }
}
