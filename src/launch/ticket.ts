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
}
