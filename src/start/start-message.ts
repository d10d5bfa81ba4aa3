// The data that a task's worker gets at its start: everything that attach() needs.

import type { KernelName } from "../core/kernel-name.js";
import type { ErrorParts } from "../core/task-errors.js";
import type { SharedMemory } from "../kernel/open.js";
import type { JobMemoryRequest } from "../node/memory.js";
import type { DebugLimits } from "../observe/debug.js";
import type { DumpData } from "../observe/dump.js";
import type { Recorded } from "../observe/trace.js";
import type { FutexSetup } from "../process/futex.js";
import type { ProcessIdentity } from "../process/identity.js";
import type { ProcessMemorySetup } from "../process/mapping.js";
import { uniqueName } from "../support/host.js";

/** Key of the bootstrap in a worker's `workerData`. */
export const BOOTSTRAP = "pamir:task";

export interface StartMessage {
  /** Version and layout of the pamir that launched the job. */
  readonly version: string;
  readonly layoutHash: number;
  /** The job's memory; undefined if tasks can't share memory: then each task makes its own. */
  readonly memory: SharedMemory | undefined;
  /** The memory to make; undefined in a process that maps a memory. */
  readonly room: JobMemoryRequest | undefined;
  /** Why tasks share no memory; empty if they share memory. */
  readonly why: string;
  /** Pointer to the job header. */
  readonly job: number;
  readonly module: WebAssembly.Module | undefined;
  readonly task: number;
  /** Number of the first task of its node, if a link joins the nodes; then the node's tasks have slots from 0. */
  readonly first?: number | undefined;
  /** `client.rank` (default: the number). */
  readonly rank?: number | undefined;
  /** Tasks of the job so far, for a node with a memory of its own. */
  readonly started: number;
  readonly kernel: KernelName;
  readonly args: unknown;
  /** Name of the channel by which the task gets the standard input of its process, if it gets any: see input.ts. */
  readonly input?: string | undefined;
  readonly debug: DebugLimits | undefined;
  /** Whether the program has started its worker. */
  readonly isAdopted?: boolean;
  /** Name of the Web Lock that the task holds while it lives, in a browser. */
  readonly lock: string;
  /** The task's end of the channel to the launching thread, if the job has `ports`. */
  readonly port?: MessagePort | undefined;
  /** How threads of several processes sleep on the memory; undefined if the memory belongs to one process. */
  readonly futex: FutexSetup | undefined;
}

/** Name of the variable by which the main thread of a process learns its task: a LaunchedTask, as JSON. */
export const LAUNCHED = "PAMIR_LAUNCHED";

export interface LaunchedTask {
  /** Without the fields that only threads of one process can share. */
  readonly start: StartMessage;
  readonly memory: ProcessMemorySetup;
  /** The process that has started this process. */
  readonly launcher: ProcessIdentity;
  /** Whether this process goes on if its parent dies. */
  readonly isDetached: boolean;
}

/** The messages of a task's Web Worker to the thread that started it, under the key BOOTSTRAP. */
export type TaskReport =
  /** attach() was called, and waits for the bootstrap. */
  | "attach"
  /** The task's Web Lock is held. */
  | "held"
  /** The task has closed its client. */
  | "left"
  /** The port that comes with the message is for this task's node. */
  | { readonly connect: number }
  /** The answer to an `ask`. */
  | { readonly answer: number; readonly given: DumpData | readonly Recorded[] }
  /** An uncaught error. */
  | { readonly name: string; readonly message: string; readonly code?: string; readonly stack?: string };

/** The last message of an adopted worker to the monitor of Node: how the worker ends, as far as it knows. */
export interface LastWord {
  readonly code: number;
  readonly cause: "exit" | "error";
  readonly error?: string | undefined;
  readonly errorCode?: string | undefined;
  readonly stack?: string | undefined;
}

/**
 * The messages of the thread that started a task to it, under the key BOOTSTRAP. All but `leave` only if tasks share no
 * memory.
 */
export type TaskNews =
  /**
   * An adopted worker is to say whether it waits for its bootstrap. The worker's port goes with the bootstrap, and can be
   * transferred only once.
   */
  | { readonly offer: true }
  /** An adopted worker is to close its client. */
  | { readonly leave: true }
  /** The port that comes with the message is this task's end of a channel. */
  | { readonly from: number }
  /** A task has ended: by closing its client, or otherwise, maybe with an error. */
  | { readonly ended: number; readonly hasLeft: boolean; readonly error?: ErrorParts | undefined }
  /** Asks for the dump or the trace of its node. The answer has the same number. */
  | { readonly ask: number; readonly what: "dump" | "trace"; readonly events?: number | undefined }
  /** One more task has come: the number of tasks that the job has had. */
  | { readonly started: number }
  | { readonly interrupt: true };

const WORKER_NAME = "pamir task ";

/** The names of a job's tasks, for their Web Workers and Web Locks. No other job has the same names. */
export function taskNames(tasks: number): string[] {
  const job = uniqueName();
  return Array.from({ length: tasks }, (_, task) => `${WORKER_NAME}${task} of ${job}`);
}

/** Whether a worker was started by launch() with its URL: then its name is its task's. */
export function isTaskName(name: string | undefined): boolean {
  return name?.startsWith(WORKER_NAME) ?? false;
}
