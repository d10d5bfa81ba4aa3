// A task whose process a launcher has started, here or on another host.
import type { Readable } from "node:stream";

/** How a process ended: with an exit code, or by a signal. */
export interface TaskEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** Why nothing is known of the process, such as a lost connection to its host. */
  readonly lost?: string;
}

/** The signals by which tasks are ended: first asked, then without a choice. */
export type EndSignal = "SIGTERM" | "SIGKILL";

export interface LaunchedTask {
  readonly task: number;
  readonly stdout: Readable;
  readonly stderr: Readable;
  /** Resolves once the process has ended and its streams have no more to read. */
  readonly ended: Promise<TaskEnd>;
  /** Sends a signal to the process and those that it has started; after its end, nothing. */
  kill(signal: EndSignal): void;
}
