// A task whose process a launcher has started, here or on another host.
import type { Duplex, Readable } from "node:stream";

/** How a process ended: with an exit code, or by a signal. */
export interface TaskEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** Why nothing is known of the process, such as a lost connection to its host. */
  readonly lost?: string;
}

/** The signals by which tasks are asked to end. They may take GRACE_MS, and say good-bye in handlers. */
export type AskSignal = "SIGTERM" | "SIGINT" | "SIGHUP";
/** The signals by which tasks are ended: first asked, then without a choice. */
export type EndSignal = AskSignal | "SIGKILL";
/** The signals that say to a program what it has agreed on. */
export type UserSignal = "SIGUSR1" | "SIGUSR2";

export interface RunTask {
  readonly task: number;
  readonly stdout: Readable;
  readonly stderr: Readable;
  /** By which the process speaks PMI. */
  readonly pmi: Duplex;
  /** Resolves once the process has ended, whatever is left to read. Undefined: what is left is taken at its end. */
  readonly exited?: Promise<void>;
  /**
   * Resolves once the process has ended and its streams have no more to read. If it fails, other processes that hold those may
   * write on.
   */
  readonly ended: Promise<TaskEnd>;
  /** Gives news to the agent of the process's node, if that is a thread of this process. @param news lines of LinkAgentOrder */
  tell(news: string): void;
  /** Sends a signal to the process and those that it has started; after its end, nothing. */
  kill(signal: EndSignal): void;
  /** Sends a signal to the process alone; after its end, nothing. */
  pass(signal: UserSignal): void;
}
