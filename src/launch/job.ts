// A job as the thread that launched it sees it.
import { TASK_DEAD, TASK_STATE_OFFSET } from "../../assembly/layout.js";
import type { Kernel, Memory } from "../kernel/kernel.js";
import { type MemoryMap, taskSlot } from "../memory/map.js";
import type { Client } from "../pami/client.js";
import { checkInteger, PamiError } from "../pami/error.js";
import { interruptTask, tellOfEnd } from "../pami/notice.js";
import { promise } from "../support/promise.js";
import { type Dump, dumpJob } from "./dump.js";
import type { Monitor, MonitorEvents, TaskExit } from "./monitor.js";

export interface JobParts {
  readonly monitor: (events: MonitorEvents) => Monitor;
  readonly client: Client | undefined;
  readonly map: MemoryMap;
  readonly memory: Memory;
  readonly kernel: Kernel;
}

export class Job {
  /** Number of tasks. */
  readonly tasks: number;
  /** How each task but a joined caller ended, by task number; resolves when all of them have. Never rejects. */
  readonly exited: Promise<TaskExit[]>;
  /** @internal Resolves when the monitor runs. */
  readonly started: Promise<void>;

  readonly #parts: JobParts;
  readonly #monitor: Monitor;
  readonly #exits = new Map<number, TaskExit>();

  /** @internal */
  constructor(parts: JobParts) {
    const { client, map } = parts;
    this.#parts = parts;
    this.tasks = map.tasks;
    const joined = client === undefined ? 0 : 1;
    const [started, isStarted] = promise<void>();
    const [exited, haveExited] = promise<TaskExit[]>();
    this.started = started;
    this.exited = exited;
    this.#monitor = parts.monitor({
      started: isStarted,
      ended: (exit) => void this.#exits.set(exit.task, exit),
      over: (error) => {
        this.#monitorEnded(joined, error);
        isStarted();
        haveExited([...this.#exits.values()].sort((a, b) => a.task - b.task));
      },
    });
  }

  /** The caller's client, if it joined. */
  get client(): Client {
    const { client } = this.#parts;
    if (client === undefined)
      throw new PamiError("PAMIR_NOT_IN_JOB", "job.client of a job launched without join: true");
    return client;
  }

  /** Ends the wait in which a task is, if any, or its next one: it comes to INTERRUPTED. */
  interrupt(task: number): void {
    checkInteger("task", task, 0, this.tasks - 1);
    if (this.#monitor.interrupt !== undefined) this.#monitor.interrupt(task);
    else interruptTask(this.#parts.kernel, this.#parts.map, task);
  }

  /**
   * What is queued where and who is parked, read from the shared memory while the tasks go on. Where tasks share none, it
   * is what this thread has.
   */
  dump(): Dump {
    const { map, memory, kernel } = this.#parts;
    return dumpJob(map, memory, kernel);
  }

  /** Ends all tasks now; a joined caller's client is closed. Resolves as `exited`. */
  async terminate(): Promise<TaskExit[]> {
    this.#monitor.terminate();
    const exits = await this.exited;
    this.#parts.client?.close();
    return exits;
  }

  /** The job keeps the process running (the default). */
  ref(): void {
    this.#monitor.ref();
  }

  /** The job does not keep the process running. */
  unref(): void {
    this.#monitor.unref();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.terminate();
  }

  /** Without its monitor a job has no tasks: whoever is not accounted for is dead. */
  #monitorEnded(joined: number, error: string): void {
    const { kernel, map } = this.#parts;
    const lost: number[] = [];
    for (let task = joined; task < map.tasks; task++) {
      if (this.#exits.has(task)) continue;
      lost.push(task);
      this.#exits.set(task, { task, code: 1, cause: "monitor", error });
      kernel.storeWord(taskSlot(map, task) + TASK_STATE_OFFSET, TASK_DEAD);
    }
    if (lost.length > 0) tellOfEnd(kernel, map, lost);
  }
}
