// The options of launch().
import type { KernelName } from "../core/kernel-name.js";
import type { DebugOptions } from "../observe/debug.js";
import type { AbortSignalLike, WasmMemoryLike } from "../support/like.js";
import type { TaskExit } from "./tasks/monitor.js";

/** Options of `launch`. */
export interface LaunchOptions {
  /** Number of tasks, including the caller if it joins (default: one per hardware thread, at least 2). */
  tasks?: number | undefined;
  /**
   * Limit of tasks over the job's life, including tasks that have ended (default: `tasks`). `job.spawn` and `job.adopt` add
   * tasks up to it. If tasks share memory, `maxTasks` × `contexts` is at most 1,024.
   */
  maxTasks?: number | undefined;
  /**
   * The kernels of all tasks, or an array with those of each. Default: wasm, or the TypeScript twin if wasm is forbidden. If
   * tasks share no memory, a task whose `WebAssembly.Memory` the host refuses also runs the twin, with a warning: Chromium 156
   * allows 124 memories for all threads of a page.
   */
  kernel?: KernelName | readonly KernelName[] | undefined;
  /**
   * Number of processes that run the tasks, at most their number (default: the tasks are threads of this process). The processes
   * share memory, and so the calls and their speed are those of threads. A process that dies ends its own tasks only. If one of
   * the first processes can't be started, all tasks end. A caller that joins is task 0 in its own process. Values such as `args`
   * are copied: they can't be shared memory or ports.
   *
   * Shared memory takes Linux and the package `koffi`. Without these, each task has a memory of its own, and a sealed link on
   * loopback joins them, with the same calls. A warning with the code PAMIR_LINK reports the link once, and `info()` has
   * the reason. Then `launch` resolves once all processes are up, and `job.adopt` is refused.
   */
  processes?: number | undefined;
  /**
   * Name of the link that joins processes which share no memory (default `"udp"`): `"websocket"` with the package `ws`, or that of
   * the module in PAMIR_LINK_MODULE. Only with `processes`.
   */
  link?: string | undefined;
  /** Makes the caller task 0: `job.client` (default false). */
  join?: boolean | undefined;
  /** A value for `client.args` of each task. It must be cloneable. */
  args?: unknown;
  /**
   * Joins each task that is a thread of this process to this thread by a MessageChannel, for what can't be copied: `job.port()`
   * and `client.port` (default false, which costs nothing).
   */
  ports?: boolean | undefined;
  /** Limit of contexts per task (default 4). */
  contexts?: number | undefined;
  /** Size of a new lane's ring in bytes, a power of two (default 16,384). */
  laneBytes?: number | undefined;
  /**
   * Size of the heap for lanes and regions, in bytes. Unused parts cost no memory. Default: 256 MiB in Node, 32 MiB in a
   * browser, or less, with a warning, if the host refuses that.
   */
  heapBytes?: number | undefined;
  /** Limit of regions that a task has at once (default 1,024). */
  regions?: number | undefined;
  /** Injection FIFOs per context (default 4). Transfers in different FIFOs do not wait for each other. */
  fifos?: number | undefined;
  /**
   * Slots of an injection FIFO, a power of two (default 64). A transfer takes one slot, and one more slot for each callback.
   */
  slots?: number | undefined;
  /**
   * The engine of long transfers: puts and gets of more than 4,096 bytes, and offered payloads. With `inline` (the default)
   * each task moves them in its own `advance()`. With `thread` one thread moves them for all tasks. That thread uses a core
   * while it moves bytes, and sleeps otherwise. It does not start if tasks share no memory, or if a Content-Security-Policy
   * forbids workers from `blob:`. Then the job works as with `inline`; `job.engine` tells.
   */
  engine?: "inline" | "thread" | undefined;
  /**
   * Called on this thread when a task has ended, before a `call` to that task rejects here, and before `job.exited` and
   * `job.terminate` resolve. It may `spawn` another task. Once the job is over, `spawn` throws PAMIR_CLOSED, which `onExit`
   * need not catch. Other errors that `onExit` throws are uncaught, like errors of any event listener.
   */
  onExit?: ((exit: TaskExit) => void) | undefined;
  /**
   * The reaction to a task that fails: it ends by an error, or with an exit code other than 0. `report` (the default) prints
   * the error with its stack, also while this thread is blocked. Without an `onExit`, which handles the end, it sets
   * `process.exitCode` to the task's code (1 for an error) unless that is set. The other tasks go on. In a browser it calls
   * `console.error`. `abort` sets that code in any case, and terminates all tasks; the wait of a joined caller ends with
   * INTERRUPTED, and its client is closed. `ignore` (the default with an `onExit`) does nothing.
   */
  onError?: "report" | "abort" | "ignore" | undefined;
  /** Aborting it terminates the job. */
  signal?: AbortSignalLike | undefined;
  /**
   * Warns on the console of regions that are never closed, with the place that made them; of handlers, callbacks and other
   * code that block a context; and of long waits, with a dump. `codecs.json()` refuses what it would lose.
   * Members of a geometry compare what they call, and wait for each other in every operation. Default false. Each message takes longer.
   */
  debug?: boolean | DebugOptions | undefined;
  /**
   * Records the events of every task. Each task keeps its last events, by default 65,536 of 16 bytes. `job.trace()` returns
   * them. In Node, `PAMIR_TRACE=file` in the environment traces every job and writes the file when the job is over. Default
   * false, which costs nothing.
   */
  trace?: boolean | TraceOptions | undefined;
  /** Lets `pamir top` show this job (default: if `PAMIR_TOP=1` is in the environment). Only in Node. */
  top?: boolean | undefined;
  /**
   * Begins each line that a task writes to standard output or error with its number, as `[3] `, with `true` in color on a
   * terminal (default false). Lines stay whole up to 65,536 characters. With `processes` the limit is 4,096 bytes, label
   * included: the processes write to one pipe. Only in Node.
   */
  labels?: boolean | undefined;
  /** Options of the tasks' workers, as for `worker_threads.Worker`. `workerData` must be an object. */
  workerOptions?: Record<string, unknown> | undefined;
  /**
   * Memory of another program, a shared one: the job lies in a block of it, and its tasks are threads of that program. Their
   * messages and regions lie there too, where each thread of the program can read them. Default: a memory of the job's own.
   * The memory may grow. Once `job.exited` has resolved and a joined caller has closed its client, the program may use the block
   * for anything else. Not with `processes`.
   */
  memory?: WasmMemoryLike | undefined;
  /** Where the block begins in `memory`: a multiple of 128, from 128. */
  memoryBase?: number | undefined;
  /** Bytes of the block. Without `heapBytes`, the heap gets what the rest of the job's data leaves. */
  bytes?: number | undefined;
  /** @internal for `pamir run` */
  launcher?: LauncherOptions | undefined;
}

/** Options of a launcher whose tasks don't launch jobs of their own. */
export interface LauncherOptions {
  /** Tasks may be main threads of their processes, if each has one. */
  readonly mainThreads: boolean;
  /** Processes go on if the launcher dies. */
  readonly detached: boolean;
  /** Name of the channel by which rank 0 gets standard input, if it is a thread: see input.ts. */
  readonly input: string;
  /** Path of a module that Node loads first where tasks are main threads. */
  readonly preload: string;
}

/** Options of a trace. */
export interface TraceOptions {
  /** Number of events that each task keeps: a power of two from 64 to 16,777,216 (default 65,536). */
  events?: number | undefined;
}
