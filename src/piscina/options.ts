// The options of a Piscina: checks, and what holds where there is none.
import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import type { ResourceLimits, WorkerOptions } from "node:worker_threads";
import { ArrayTaskQueue, isTaskQueue, type PiscinaLoadBalancer, type TaskQueue } from "./task.js";

/** Options of a Piscina. */
export interface Options {
  /** The workers' file: an absolute path, or the text of a `file:` URL. Tasks may name another one. */
  filename?: string | null | undefined;
  /** The file's export that runs tasks (default `default`). */
  name?: string | undefined;
  /** Workers that are always there (default: half of the hardware threads). */
  minThreads?: number | undefined;
  /** Workers at the most (default: one and a half for each hardware thread). */
  maxThreads?: number | undefined;
  /** Milliseconds after which an idle worker beyond `minThreads` ends (default 0). */
  idleTimeout?: number | undefined;
  /** Tasks that wait at the most (default: any number). `auto`: the square of `maxThreads`. */
  maxQueue?: number | "auto" | undefined;
  /** Tasks that a worker has at once (default 1). */
  concurrentTasksPerWorker?: number | undefined;
  /** Has no effect: workers always have their event loop between tasks, and sleep where nothing happens. */
  atomics?: "sync" | "async" | "disabled" | undefined;
  /** As of `new Worker()`. */
  resourceLimits?: ResourceLimits | undefined;
  /** As of `new Worker()`. */
  argv?: string[] | undefined;
  /** As of `new Worker()`. */
  execArgv?: string[] | undefined;
  /** As of `new Worker()`. */
  env?: WorkerOptions["env"] | undefined;
  /** `Piscina.workerData` of the workers: a copy. */
  // biome-ignore lint/suspicious/noExplicitAny: any value.
  workerData?: any;
  /** Where tasks wait for a worker (default: in their order). */
  taskQueue?: TaskQueue | undefined;
  /** What is added to the workers' nice value (default 0). Linux has one for each thread; elsewhere it has no effect. */
  niceIncrement?: number | undefined;
  /** As of `new Worker()` (default true). */
  trackUnmanagedFds?: boolean | undefined;
  /** Milliseconds that `close()` waits for tasks (default 30,000). */
  closeTimeout?: number | undefined;
  /** Whether `histogram` and `utilization` have times (default true). */
  recordTiming?: boolean | undefined;
  /** Has no effect: tasks always begin in the order of the queue. */
  stricterFIFO?: boolean | undefined;
  /** Picks the worker of a task (default: the one with the fewest tasks). */
  loadBalancer?: PiscinaLoadBalancer | undefined;
  /** Whether a balancer sees a histogram of each worker's times (default false). */
  workerHistogram?: boolean | undefined;
}

/** Options that hold where the program gives none. */
type Defaults =
  | "name"
  | "minThreads"
  | "maxThreads"
  | "idleTimeout"
  | "concurrentTasksPerWorker"
  | "atomics"
  | "taskQueue"
  | "niceIncrement"
  | "closeTimeout"
  | "recordTiming"
  | "stricterFIFO"
  | "workerHistogram";

/** Options with all that holds. */
export type FilledOptions = Omit<Options, Defaults | "filename" | "maxQueue"> & {
  [Name in Defaults]: NonNullable<Options[Name]>;
} & { filename: string | null; maxQueue: number };

type Check = (value: never) => boolean;

const isText: Check = (value: unknown) => value === null || typeof value === "string";
const isFlag: Check = (value: unknown) => typeof value === "boolean";
const from =
  (least: number): Check =>
  (value: unknown) =>
    typeof value === "number" && value >= least;
const NATURAL = "must be a non-negative integer";
const POSITIVE = "must be a positive integer";

/** What each option must be. */
const CHECKS: readonly (readonly [name: keyof Options, isRight: Check, text: string])[] = [
  ["filename", isText, "must be a string or null"],
  ["name", isText, "must be a string or null"],
  ["minThreads", from(0), NATURAL],
  ["maxThreads", from(1), POSITIVE],
  ["idleTimeout", from(0), NATURAL],
  ["maxQueue", ((value: unknown) => value === "auto" || from(0)(value as never)) as Check, NATURAL],
  ["concurrentTasksPerWorker", from(1), POSITIVE],
  [
    "atomics",
    ((value: unknown) => value === null || ["sync", "async", "disabled"].includes(value as string)) as Check,
    "should be a value of sync, sync or disabled.",
  ],
  ["resourceLimits", ((value: unknown) => typeof value === "object" && value !== null) as Check, "must be an object"],
  ["taskQueue", isTaskQueue as Check, "must be a TaskQueue object"],
  [
    "niceIncrement",
    ((value: unknown) => typeof value === "number" && (value >= 0 || process.platform === "win32")) as Check,
    "must be a non-negative integer on Unix systems",
  ],
  ["trackUnmanagedFds", isFlag, "must be a boolean value"],
  ["closeTimeout", from(0), NATURAL],
  [
    "loadBalancer",
    ((value: unknown) => typeof value === "function" && value.length > 0) as Check,
    "must be a function with at least two args",
  ],
  ["workerHistogram", isFlag, "must be a boolean"],
  ["stricterFIFO", isFlag, "must be a boolean"],
];

/** @throws TypeError, RangeError */
export function checkOptions(options: Options): void {
  for (const [name, isRight, text] of CHECKS) {
    const value = options[name];
    if (value !== undefined && !isRight(value as never)) throw new TypeError(`options.${name} ${text}`);
  }
  const { minThreads, maxThreads } = options;
  if (minThreads !== undefined && maxThreads !== undefined && minThreads > maxThreads) {
    throw new RangeError("options.minThreads and options.maxThreads must not conflict");
  }
}

/** The path of a file that may be named by a URL. */
export const pathOf = (filename: string): string =>
  filename.startsWith("file:") ? fileURLToPath(new URL(filename)) : filename;

/** The options, with what holds where there is none. */
export function filled(options: Options): FilledOptions {
  const cores = availableParallelism();
  const given = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as Options;
  const all = {
    name: "default",
    minThreads: Math.max(Math.floor(cores / 2), 1),
    maxThreads: cores * 1.5,
    idleTimeout: 0,
    concurrentTasksPerWorker: 1,
    atomics: "sync",
    taskQueue: new ArrayTaskQueue(),
    niceIncrement: 0,
    trackUnmanagedFds: true,
    closeTimeout: 30_000,
    recordTiming: true,
    stricterFIFO: false,
    workerHistogram: false,
    ...given,
    filename: typeof given.filename === "string" ? pathOf(given.filename) : null,
    maxQueue: 0,
  } as FilledOptions;
  if (given.maxThreads !== undefined) all.minThreads = Math.min(all.minThreads, given.maxThreads);
  if (given.minThreads !== undefined) all.maxThreads = Math.max(all.maxThreads, given.minThreads);
  all.maxQueue = given.maxQueue === "auto" ? all.maxThreads ** 2 : (given.maxQueue ?? Number.POSITIVE_INFINITY);
  return Object.assign(Object.create(null) as FilledOptions, all);
}
