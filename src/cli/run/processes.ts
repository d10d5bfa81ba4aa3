// Processes of this machine, one for each task. Each leads a process group, which ends with it if the job is ended.
import { type ChildProcess, spawn } from "node:child_process";
import { type Duplex, Readable, type Writable } from "node:stream";
import { drained, outputsOf } from "../../start/output/labels.js";
import type { Guard } from "../../start/process/guard.js";
import { withPreload } from "../../start/process/preload.js";
import { descriptorsText, processesText } from "../../start/process/start-limits.js";
import { UsageError } from "../usage.js";
import { PRELOAD } from "./options.js";
import type { EndSignal, RunTask, TaskEnd, UserSignal } from "./task.js";

/** The descriptors of a task's process behind its standard streams. */
export const KEY_FD = 3;
export const PMI_FD = 4;
export const NEWS_FD = 5;

/** What the processes of this machine have in common. */
export interface Program {
  /** Path of the module. */
  readonly app: string;
  readonly args: readonly string[];
  /** Options of Node. */
  readonly execArgv: readonly string[];
  /** The name by which the user has called Node. */
  readonly argv0: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The job key: each process inherits a descriptor from which it reads the key. Undefined: there is none. */
  readonly key: Uint8Array | undefined;
  /** Whether lines of output get labels. */
  readonly hasLabels: boolean;
}

export interface ProcessOptions {
  readonly task: number;
  /** Variables for this process alone. */
  readonly env: Readonly<Record<string, string>>;
  readonly input: "inherit" | "pipe" | "ignore";
}

/** Variables by which another launcher, or another job, would be found. */
const OTHERS =
  /^(PAMIR_(RANK|SIZE|LOCAL_RANK|LOCAL_SIZE|RENDEZVOUS|SERVED|JOB|BIND|NODES?|NATS_(EPOCH|ID)|KEY_FILE|KEY_FD|LATER|LAUNCHED)|PMI_\w+)$/;

export class TaskProcess implements RunTask {
  readonly task: number;
  readonly stdout: Readable;
  readonly stderr: Readable;
  /** Only with `input: "pipe"`. */
  readonly stdin: Writable | undefined;
  /** The launcher's end of PMI_FD, or of the report of a node (StartReport). */
  readonly pmi: Duplex;
  readonly exited: Promise<void>;
  readonly ended: Promise<TaskEnd>;
  readonly #child: ChildProcess;
  readonly #news: Duplex;
  #hasEnded = false;
  /** Whether the process and those that it has started have been asked to end, and may take their time. */
  #isAsked = false;

  constructor({ app, args, execArgv, argv0, env, key, hasLabels }: Program, options: ProcessOptions, guard: Guard) {
    this.task = options.task;
    const inherited = Object.entries(env).filter(([name]) => !OTHERS.test(name));
    const keyed = key === undefined ? {} : { PAMIR_KEY_FD: `${KEY_FD}` };
    const child = spawn(process.execPath, [...execArgv, app, ...args], {
      argv0,
      detached: true,
      env: withPreload({ ...Object.fromEntries(inherited), ...options.env, ...keyed }, PRELOAD),
      // Node makes a pair of sockets of each further pipe: no other process reaches them.
      stdio: [options.input, ...outputsOf(hasLabels), "pipe", "pipe", "pipe"],
    });
    this.#child = child;
    const { pid } = child;
    if (pid === undefined) {
      // Its text comes later. Node makes no streams if this process has too many open files.
      child.on("error", () => {});
      const why = child.stdio === undefined ? descriptorsText() : processesText();
      throw new UsageError(`task ${options.task} can't be started: ${why}`);
    }
    guard.add(pid);
    const [secret, pmi, news] = (child.stdio as unknown[]).slice(3) as [Duplex, Duplex, Duplex];
    // A program that never attaches closes them unread.
    for (const one of [secret, news]) one.on("error", () => {}).resume();
    secret.end(key ?? "");
    this.#news = news;
    this.stdout = child.stdout ?? Readable.from([]);
    this.stderr = child.stderr ?? Readable.from([]);
    this.stdin = child.stdin ?? undefined;
    this.stdin?.on("error", () => {});
    this.pmi = pmi;
    this.exited = new Promise((resolve) => child.on("exit", () => resolve()));
    this.ended = new Promise((resolve) => {
      // Errors of a process that runs are those of kill().
      child.on("error", () => {});
      child.on("exit", (code, signal) => {
        if (code === 0 || this.#isAsked) return;
        // A failure awaits no processes that this one has started. The guard ends those that go on, at the end of the job.
        this.kill("SIGTERM");
        void drained([this.stdout, this.stderr]).then(() => resolve({ code, signal }));
      });
      // Otherwise not at "exit": the process group goes on while other processes of it hold the output.
      child.on("close", (code, signal) => {
        this.#hasEnded = true;
        guard.remove(pid);
        resolve({ code, signal });
      });
    });
  }

  tell(news: string): void {
    if (!this.#hasEnded) this.#news.write(news);
  }

  kill(signal: EndSignal): void {
    const { pid } = this.#child;
    if (pid === undefined || this.#hasEnded) return;
    this.#isAsked = signal !== "SIGKILL";
    try {
      process.kill(-pid, signal);
    } catch {
      // It has just ended, or this system has no process groups.
      this.#child.kill(signal);
    }
  }

  pass(signal: UserSignal): void {
    if (!this.#hasEnded) this.#child.kill(signal);
  }
}

/** Starts all of these processes, or none. @throws UsageError */
export function startProcesses(program: Program, all: readonly ProcessOptions[], guard: Guard): TaskProcess[] {
  const started: TaskProcess[] = [];
  try {
    for (const options of all) started.push(new TaskProcess(program, options, guard));
  } catch (error) {
    for (const one of started) one.kill("SIGKILL");
    throw error;
  }
  return started;
}
