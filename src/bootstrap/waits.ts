// Tells every five seconds what a process awaits that finds the others of its job.
import { systemClock } from "../support/clock.js";
import { after } from "../support/timers.js";

/** Milliseconds of a wait for other processes, if nothing says otherwise. A batch system may start them minutes apart. */
export const DEFAULT_TIMEOUT_MS = 300_000;
/** What a process waits longer than the server of its barrier, so that the server's error arrives, which says more. */
export const GRACE_MS = 5000;
/** Milliseconds between calls of `onWait`. */
const REPORT_MS = 5000;

/** What a process that still waits for others knows. */
export interface BootstrapWait {
  /** Milliseconds so far, and at most. */
  readonly waited: number;
  readonly most: number;
  /** What is awaited, in words: "ranks 2, 5-9", or the address and why the last attempt failed. */
  readonly what: string;
}

export type OnWait = (wait: BootstrapWait) => void;

/** Calls `onWait` now and then. @param most milliseconds that the wait takes @returns what ends that */
export function reportWait(onWait: OnWait | undefined, most: number, what: () => string): () => void {
  if (onWait === undefined) return () => {};
  const began = systemClock.now();
  let stop: () => void;
  const report = (): void => {
    onWait({ waited: systemClock.now() - began, most, what: what() });
    stop = after(REPORT_MS, report);
  };
  stop = after(REPORT_MS, report);
  return () => stop();
}
