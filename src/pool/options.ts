// Options of a pool and of its calls: their defaults, and which are refused.
import { type AbortSignalLike, type LaunchOptions, PamiError } from "../index.js";
import { hardwareThreads } from "../support/node/cores.js";
import { checkCount, checkFlag, checkKeys, checkSignal, checkTime, shown } from "./check.js";

/** Options of a call: those of the pool hold where a call has none. */
export interface PoolCallOptions {
  /** Aborting it rejects the call with PAMIR_CANCELED; the function's `currentCall().signal` is aborted. */
  readonly signal?: AbortSignalLike | undefined;
  /**
   * Milliseconds until the call rejects with PAMIR_TIMEDOUT, the wait for a worker and retries included. Of a stream: the
   * longest wait for a worker, and then for an answer with values. Default: no limit.
   */
  readonly timeout?: number | undefined;
  /** Calls of a higher priority are begun first (default 0). */
  readonly priority?: number | undefined;
  /**
   * How often a call is begun again when its worker dies (default 0). A function that has begun may have done a part of its
   * work: only functions that may run twice are safe. Calls that wait for a worker always go to another one. Streams are
   * not begun again.
   */
  readonly retries?: number | undefined;
}

/** Options of `pool`. */
export interface PoolOptions
  extends Pick<
    LaunchOptions,
    "kernel" | "heapBytes" | "args" | "workerOptions" | "debug" | "trace" | "top" | "onError"
  > {
  /** Number of workers (default: hardware threads less one, for the caller). With `min` and `max`, they come and go. */
  readonly workers?: number | undefined;
  /** Workers that are always there (default: `workers`). */
  readonly min?: number | undefined;
  /** Workers at the most (default: `workers`). */
  readonly max?: number | undefined;
  /** Milliseconds after which an idle worker beyond `min` ends (default 10,000). */
  readonly idleTimeout?: number | undefined;
  /** Calls that a worker works on at once (default 1): more for functions that await something. */
  readonly concurrency?: number | undefined;
  /** Calls that wait for a worker at the most (default 65,536). A call beyond rejects with PAMIR_QUEUE_FULL. */
  readonly maxQueue?: number | undefined;
  /** A worker is replaced after so many calls (default: never). */
  readonly recycleAfter?: number | undefined;
  /**
   * Milliseconds that a function may go on after its call was canceled or has timed out (default: no limit). Then its worker
   * is ended, and replaced. Until it has ended, its worker gets no further calls.
   */
  readonly killAfter?: number | undefined;
  /** Milliseconds in which a worker has to serve (default 60,000). */
  readonly startTimeout?: number | undefined;
  /** Whether the workers are processes instead of threads (default false). Only in Node. */
  readonly processes?: boolean | undefined;
  /** Milliseconds until a call rejects with PAMIR_TIMEDOUT, unless the call has its own limit (default: none). */
  readonly timeout?: number | undefined;
  /** How often a call is begun again when its worker dies, unless the call says so itself (default 0). */
  readonly retries?: number | undefined;
}

/** Defaults. */
export const IDLE_MS = 10_000;
export const QUEUE_MAX = 65_536;
/** Milliseconds in which a worker has to serve. */
export const START_MS = 60_000;

/** Workers at the least and at the most. */
export interface Sizes {
  readonly min: number;
  readonly max: number;
}

const OPTION_KEYS = new Set<string>([
  "workers",
  "min",
  "max",
  "idleTimeout",
  "concurrency",
  "maxQueue",
  "recycleAfter",
  "killAfter",
  "startTimeout",
  "processes",
  "timeout",
  "retries",
  "kernel",
  "heapBytes",
  "args",
  "workerOptions",
  "debug",
  "trace",
  "top",
  "onError",
] satisfies (keyof PoolOptions)[]);
export const CALL_KEYS = new Set<string>([
  "signal",
  "timeout",
  "priority",
  "retries",
] satisfies (keyof PoolCallOptions)[]);
export const MAP_KEYS = new Set<string>(["concurrency", "ordered"]);
const WORKERS_MAX = 500;
const RETRIES_MAX = 1000;

/** @throws PAMIR_INVAL */
export function checkCallOptions(what: string, { timeout, priority, retries, signal }: PoolCallOptions): void {
  checkSignal(`signal of ${what}`, signal);
  checkTime(`timeout of ${what}`, timeout);
  checkCount(`retries of ${what}`, retries, 0, RETRIES_MAX);
  if (priority !== undefined && !Number.isFinite(priority)) {
    throw new PamiError("PAMIR_INVAL", `priority of ${what} is ${shown(priority)}, not a finite number`);
  }
}

/** @throws PAMIR_INVAL */
export function sizesOf(options: PoolOptions): Sizes {
  checkKeys("options of pool()", options, OPTION_KEYS);
  const { workers = Math.max(1, hardwareThreads() - 1) } = options;
  checkCount("workers", workers, 1, WORKERS_MAX);
  const { max = Math.max(workers, options.min ?? 1) } = options;
  checkCount("max", max, 1, WORKERS_MAX);
  const { min = Math.min(workers, max) } = options;
  checkCount("min", min, 0, max);
  checkCount("concurrency", options.concurrency, 1, 65_536);
  checkCount("maxQueue", options.maxQueue, 0, Number.MAX_SAFE_INTEGER);
  checkCount("recycleAfter", options.recycleAfter, 1, Number.MAX_SAFE_INTEGER);
  for (const name of ["idleTimeout", "killAfter", "startTimeout"] as const) checkTime(name, options[name]);
  checkFlag("processes", options.processes);
  checkCallOptions("pool()", options);
  return { min, max };
}
