// What a task's worker is given at its start: everything that attach() needs.
import type { KernelName } from "../kernel/kernel.js";
import type { SharedMemory } from "../kernel/select.js";

/** Key of the ticket in a worker's `workerData`. */
export const TICKET = "pamir:task";

export interface Ticket {
  /** Version and layout of the pamir that launched the job. */
  readonly version: string;
  readonly layoutHash: number;
  readonly memory: SharedMemory;
  /** Pointer to the job header. */
  readonly job: number;
  readonly module: WebAssembly.Module | undefined;
  readonly task: number;
  readonly kernel: KernelName;
  readonly args: unknown;
  readonly debug: boolean;
  /** Name of the Web Lock that the task holds while it lives, in a browser. */
  readonly lock: string;
}

/** What a task's Web Worker posts to the thread that started it, under the key TICKET. */
export type TaskReport =
  /** attach() was called: the ticket is wanted. */
  | "attach"
  /** The task's Web Lock is held. */
  | "held"
  /** An error that nobody caught. */
  | { readonly name: string; readonly message: string; readonly code?: string; readonly stack?: string };

const WORKER_NAME = "pamir task ";

/** Name of a task's Web Worker: by it attach() knows that it is in a job. */
export function workerName(task: number): string {
  return `${WORKER_NAME}${task}`;
}

export function isWorkerName(name: string | undefined): boolean {
  return name?.startsWith(WORKER_NAME) ?? false;
}
