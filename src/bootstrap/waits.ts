// While a process looks for the other processes of its job, reports every five seconds what it awaits.
import { systemClock } from "../support/clock.js";
import { after } from "../support/timers.js";

/** Default milliseconds of a wait for other processes. A batch system may start processes minutes apart. */
export const DEFAULT_TIMEOUT_MS = 300_000;
/**
 * Milliseconds that a process waits longer than the server of its barrier, so that the server's error arrives, which says more.
 */
export const GRACE_MS = 5000;
/** Milliseconds between calls of `onWait`. */
const REPORT_MS = 5000;

/** The knowledge of a process that still waits for other processes. */
export interface BootstrapWait {
  /** Milliseconds so far, and at most. */
  readonly waited: number;
  readonly most: number;
  /** The awaited thing in words: "ranks 2, 5-9", or the address and why the last attempt failed. */
  readonly what: string;
}

export type OnWait = (wait: BootstrapWait) => void;

/** Calls `onWait` every five seconds. @param most milliseconds that the wait takes @returns a function that ends the calls */
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
