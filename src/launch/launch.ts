// Starts a job: checks the options, makes the memory, starts the monitor.

import { JOB_STARTED_OFFSET, JOB_WORLD_OFFSET, TASK_COUNT_MAX } from "../../assembly/layout.js";
import { LAYOUT_HASH } from "../../assembly/layout-hash.js";
import { checkCallback, checkFlag, checkKeys, checkObject, checkSignal, type Keys } from "../core/check.js";
import { checkInteger, PamiError, show } from "../core/error.js";
import type { KernelName } from "../core/kernel-name.js";
import { VERSION } from "../generated/version.js";
import { checkedKernel, wasmAllowed } from "../kernel/select.js";
import { wasmModule } from "../kernel/wasm.js";
import { type Limits, MEMORY_BYTES_MAX } from "../memory/map.js";
import { makeJobMemory, taskErrorsIn } from "../node/memory.js";
import { checkDebug, type DebugOptions } from "../observe/debug.js";
import { writeAtEnd } from "../observe/trace.js";
import { visibleProgram } from "../observe/visible.js";
import type { Client } from "../pami/client.js";
import type { ProcessMemories } from "../process/process-memory.js";
import { hearAbort } from "../support/abort.js";
import { hardwareThreads } from "../support/cores.js";
import { diagnostics } from "../support/diagnostics.js";
import { environment, hasColors, isNode, nodeModule } from "../support/host.js";
import type { AbortSignalLike, URLLike, WorkerLike } from "../support/like.js";
import { clientOf, type PrivateNodes, portsNodeOf } from "./attach.js";
import { type TaskBootstrap, taskNames } from "./bootstrap.js";
import { makeWorkers, startBrowserMonitor } from "./browser.js";
import { checkEntry } from "./entry.js";
import { checkOnError, type OnError } from "./failure.js";
import { bareScope, type HostMode, hostModeOf, info } from "./info.js";
import { type AdoptOptions, Job, type SpawnOptions } from "./job.js";
import type { JoinedMemory } from "./joined.js";
import { checkLimits } from "./limits.js";
import type { Link } from "./linked.js";
import type { Entry, MonitorEvents, MonitorOrders, TaskExit } from "./monitor.js";
import { startNodeMonitor } from "./node.js";
import type { Shared } from "./processes.js";
import { TaskPorts } from "./task-ports.js";

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
   * The kernels of all tasks, or an array with those of each. Default: wasm, or the TypeScript twin if wasm is forbidden.
   * If tasks share no memory, a task that is refused a `WebAssembly.Memory` also runs the twin, with a warning: Chromium 156
   * gives all threads of a page 124.
   */
  kernel?: KernelName | readonly KernelName[] | undefined;
  /**
   * Number of processes that run the tasks, at most their number (default: the tasks are threads of this process). They share
   * memory, and so the calls and their speed are those of threads. A process that dies ends its own tasks only. If one of the first processes can't be started, all tasks end. A caller that
   * joins is task 0 in its own process. Values such as `args` are copied: they can't be shared memory or ports.
   *
   * Shared memory takes Linux and the package `koffi`. Without these, each task has a memory of its own, and a sealed link on
   * loopback (UDP) joins them, with the same calls. A warning with the code PAMIR_LINK says so once, and `info()` why. Then
   * `launch` resolves once all processes are up, and `job.adopt` is refused.
   */
  processes?: number | undefined;
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
  /** Slots of an injection FIFO, a power of two (default 64). A transfer takes one, and one more for each callback. */
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
   * `job.terminate` resolve. It may `spawn` another task. Once the job is over, `spawn` throws PAMIR_CLOSED, which `onExit` need
   * not catch. Its other errors are uncaught, as those of any event.
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
   * Members of a geometry compare what they call, and wait for each other in every operation. Default false. It costs some 100 ns per message.
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
   * terminal (default false). Lines stay whole up to 65,536 characters. With `processes` it is up to 4,096 bytes, label
   * included: the processes write to one pipe. Only in Node.
   */
  labels?: boolean | undefined;
  /** Options of the tasks' workers, as for `worker_threads.Worker`. `workerData` must be an object. */
  workerOptions?: Record<string, unknown> | undefined;
  /** Offset of the map in the memory. @internal for tests that let it straddle 2^31 */
  memoryBase?: number | undefined;
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

const LAUNCH_KEYS: Keys<Omit<LaunchOptions, "memoryBase" | "launcher">> = {
  tasks: true,
  maxTasks: true,
  kernel: true,
  processes: true,
  join: true,
  args: true,
  ports: true,
  contexts: true,
  laneBytes: true,
  heapBytes: true,
  regions: true,
  fifos: true,
  slots: true,
  engine: true,
  onExit: true,
  onError: true,
  signal: true,
  debug: true,
  trace: true,
  top: true,
  labels: true,
  workerOptions: true,
};
const ADOPT_KEYS: Keys<AdoptOptions> = { args: true, kernel: true };
const SPAWN_KEYS: Keys<SpawnOptions> = { ...ADOPT_KEYS, rank: true, entry: true, workerOptions: true };

/** Options of a trace. */
export interface TraceOptions {
  /** Number of events that each task keeps: a power of two from 64 to 16,777,216 (default 65,536). */
  events?: number | undefined;
}

/**
 * Starts a job: `tasks` workers that import the module `entry`, where each calls `attach()`. Resolves while the workers are
 * starting. Without `join: true` the caller is no task: it watches and ends the job, but sends tasks nothing and hears nothing
 * from them. With it the caller is task 0, which `tasks` counts: `tasks: 4` starts three workers, and `job.client` is its
 * client. Messages to a task that is not up yet wait for it. A task that fails to load ends with its error in
 * `job.exited`. In a browser, call it on the page: in Firefox 153, about one in a hundred workers that start workers hangs.
 * @param entry URL of the task module: `new URL('./task.js', import.meta.url)`. In a browser also a function that makes its
 *   worker, for bundlers: `() => new Worker(new URL('./task.js', import.meta.url), { type: 'module' })`. With
 *   `tasks: 1, join: true` it may be null
 * @throws PAMIR_INVAL, PAMIR_ENTRY, PAMIR_MEMORY, PAMIR_NO_WASM, PAMIR_NO_WORKERS, PAMIR_NO_PROCESSES, PAMIR_CANCELED
 */
export async function launch(
  entry: URLLike | string | (() => WorkerLike) | null,
  options: LaunchOptions = {},
): Promise<Job> {
  checkObject("options of launch()", options);
  const { memoryBase, launcher, ...given } = options;
  checkKeys("options of launch()", given, LAUNCH_KEYS);
  if (memoryBase !== undefined) checkInteger("memoryBase", memoryBase, 0, MEMORY_BYTES_MAX);
  const { join = false, workerOptions = {}, signal, tasks = Math.max(2, hardwareThreads()) } = options;
  checkFlag("join", options.join);
  checkFlag("top", options.top);
  checkFlag("labels", options.labels);
  checkFlag("ports", options.ports);
  checkCallback("onExit", options.onExit);
  checkSignal("launch()", signal);
  checkInteger("tasks", tasks, 1, TASK_COUNT_MAX);
  const limits = checkLimits(options, tasks);
  const mode = checkMode(tasks, join);
  const checked = join && tasks === 1 && entry === null ? null : checkEntry(entry);
  checkWorkerOptions(workerOptions);
  checkDebug(options.debug);
  checkOnError(options.onError);
  if (signal?.aborted) throw new PamiError("PAMIR_CANCELED", "launch() was canceled", { cause: signal.reason });
  const names = taskNames(limits.tasks);
  const first = join ? 1 : 0;
  if (options.processes !== undefined) checkInteger("processes", options.processes, 1, Math.max(1, tasks - first));
  const sources = await loadSources(options, tasks);
  if (isNode()) {
    const { processes, link }: Shared =
      options.processes === undefined ? {} : await loadProcesses(options, tasks, checked);
    try {
      const { job, mapped } = makeJob(checked, tasks, limits, options, names, [], sources, undefined, processes, link);
      void job.exited.then(() => processes?.close());
      await started(job, signal);
      if (join) await link?.join(job, mapped);
      return job;
    } catch (error) {
      processes?.close();
      throw error;
    }
  }
  if (options.processes !== undefined) {
    throw new PamiError("PAMIR_NO_PROCESSES", `processes is ${options.processes}: this host starts none`);
  }
  checkArgs(options.args);
  // Loaded before the workers start: their first messages must find a listener.
  const nodes = mode !== "shared" ? await import("./private-node.js") : undefined;
  // The workers load while the rest is prepared.
  const workers = checked === null ? [] : makeWorkers(checked, workerOptions, names.slice(first, tasks));
  try {
    sayMode();
    return await started(makeJob(checked, tasks, limits, options, names, workers, sources, nodes).job, signal);
  } catch (error) {
    for (const worker of workers) worker.terminate();
    throw error;
  }
}

/** @throws PAMIR_NO_WORKERS */
function checkMode(tasks: number, join: boolean): HostMode {
  const { mode, why } = hostModeOf();
  if (mode !== "alone" || (tasks === 1 && join && bareScope() === undefined)) return mode;
  const wayOut = bareScope() === undefined ? ". One task with join: true works" : "";
  throw new PamiError("PAMIR_NO_WORKERS", `launch() of ${tasks} tasks: ${why}${wayOut}`);
}

/** The code of the threads that a job has besides its tasks. Only the launching thread loads it. */
interface Sources {
  readonly engine: string;
  readonly monitor: string;
  readonly process: string;
}

/** Whether each task is the main thread of a process, where processes share memory. Such a launcher does not join. */
function areMain({ launcher, processes }: LaunchOptions, tasks: number): boolean {
  return launcher?.mainThreads === true && processes === tasks;
}

async function loadSources(options: LaunchOptions, tasks: number): Promise<Sources> {
  const { engine, processes } = options;
  const [{ engineSource }, { monitorSource }, { processSource }] = await Promise.all([
    engine === "thread" && hostModeOf().mode === "shared" ? import("../generated/engine.js") : { engineSource: "" },
    isNode() ? import("../generated/monitor.js") : { monitorSource: "" },
    processes === undefined || areMain(options, tasks) ? { processSource: "" } : import("../generated/process.js"),
  ]);
  return { engine: engineSource, monitor: monitorSource, process: processSource };
}

/** @throws PAMIR_NO_PROCESSES, PAMIR_INVAL for a value that can't be copied to another process */
async function loadProcesses(options: LaunchOptions, tasks: number, entry: Entry | null): Promise<Shared> {
  checkCopied(options.args, options.workerOptions);
  const [kernel] = checkKernels(options.kernel, tasks);
  return (await import("./processes.js")).openProcesses(
    options,
    tasks,
    kernel as KernelName,
    typeof entry === "string" ? entry : undefined,
  );
}

/** Checks that another process can have copies. @throws PAMIR_INVAL */
function checkCopied(args: unknown, workerOptions: unknown): void {
  try {
    nodeModule("v8")?.serialize([args, workerOptions]);
  } catch (cause) {
    const text = `args or workerOptions can't be sent to a process: ${(cause as Error).message}`;
    throw new PamiError("PAMIR_INVAL", text, { cause });
  }
}

async function started(job: Job, signal: AbortSignalLike | undefined): Promise<Job> {
  if (diagnostics.launch.hasSubscribers) diagnostics.launch.publish({ job });
  const abort = (): void => void job.terminate();
  const forget = hearAbort(signal, abort);
  void job.exited.then(forget);
  await job.started;
  return job;
}

/** Makes the memory, the caller's client if it joins, and the monitor, which starts the tasks. */
function makeJob(
  entry: Entry | null,
  count: number,
  limits: Limits,
  options: LaunchOptions,
  names: readonly string[],
  workers: readonly Worker[],
  sources: Sources,
  nodes?: PrivateNodes,
  processes?: ProcessMemories,
  link?: Link,
): { job: Job; mapped: JoinedMemory } {
  const { join = false, args, workerOptions = {} } = options;
  const debug = checkDebug(options.debug);
  const kernels = checkKernels(options.kernel, count);
  const { mode, why } = hostModeOf();
  const isShared = mode === "shared";
  const { nodeLimits } = nodes ?? link ?? {};
  const request = {
    limits: nodeLimits === undefined ? limits : nodeLimits({ ...limits, jobTasks: limits.tasks }, 1),
    isFixed: options.heapBytes !== undefined,
    // Tasks that share memory have one memory for kernels of both kinds.
    mayBeTwins: !isShared && options.kernel === undefined,
    base: options.memoryBase ?? 0,
  };
  // A task that comes later may run wasm, which needs a WebAssembly.Memory.
  const mayGrow = limits.tasks > count && wasmAllowed();
  // Linked tasks have memories of their own, too.
  const isWasm = isShared && link === undefined ? mayGrow || kernels.includes("wasm") : kernels[0] === "wasm";
  const room = makeJobMemory(request, isWasm, processes?.make);
  const { map, shared, memory, kernel } = room;
  // Processes compile the kernels themselves. To do so here would take 5 ms before they start.
  const module = kernels.includes("wasm") && (processes === undefined || map.engine) ? wasmModule() : undefined;
  const onError: OnError = options.onError ?? (options.onExit === undefined ? "report" : "ignore");
  const ports = options.ports ? new TaskPorts() : undefined;
  const isThread = options.processes === undefined;
  const bootstrap = (task: number, kernel: KernelName, given: unknown, rank?: number): TaskBootstrap => ({
    version: VERSION,
    layoutHash: LAYOUT_HASH,
    memory: isShared ? shared : undefined,
    room: request,
    job: map.job,
    why,
    module,
    task,
    started: Math.max(count, task + 1),
    kernel,
    args: given,
    rank,
    input: (rank ?? task) === 0 ? options.launcher?.input : undefined,
    debug,
    lock: names[task] as string,
    futex: processes?.futex,
  });
  const bootstraps = kernels.map((name, task) => ({
    ...bootstrap(task, name, args),
    port: isThread && !(join && task === 0) ? ports?.open(task) : undefined,
  }));
  const orders: MonitorOrders = { entry, bootstraps: join ? bootstraps.slice(1) : bootstraps, workerOptions };
  const oneMore = (task: number, more: SpawnOptions, isAdopted: boolean) => {
    if (mode === "alone" && !isAdopted) throw new PamiError("PAMIR_NO_WORKERS", `spawn() of task ${task}: ${why}`);
    checkKeys(`options of ${isAdopted ? "adopt" : "spawn"}()`, more, isAdopted ? ADOPT_KEYS : SPAWN_KEYS);
    const { kernel: name = kernels[0], args: given = args, workerOptions: userOptions = workerOptions } = more;
    const asked = isAdopted
      ? null
      : more.entry === undefined && entry !== null
        ? entry
        : checkEntry(more.entry ?? null);
    checkWorkerOptions(userOptions);
    if (more.rank !== undefined) checkInteger("rank", more.rank, 0, limits.tasks - 1);
    const [kernelName] = checkKernels(name, 1);
    if (!isNode()) checkArgs(given);
    else if (options.processes !== undefined && !isAdopted) checkCopied(given, userOptions);
    const wanted = { ...request, mayBeTwins: request.mayBeTwins && more.kernel === undefined };
    const made = {
      ...bootstrap(task, kernelName as KernelName, given, more.rank),
      room: wanted,
      isAdopted,
      port: isThread || isAdopted ? ports?.open(task) : undefined,
    };
    return { bootstrap: made, orders: { entry: asked, bootstraps: [made], workerOptions: userOptions } };
  };
  const engine = isShared && link === undefined && map.engine ? { source: sources.engine, module } : undefined;
  kernel.storeWord(map.job + JOB_STARTED_OFFSET, count);
  kernel.storeWord(map.job + JOB_WORLD_OFFSET, count);
  const own = bootstraps[0] as TaskBootstrap;
  const parts = {
    launched: count,
    oneMore,
    hasEngine: engine !== undefined,
    ports,
    onExit: options.onExit,
    onError,
    map,
    memory,
    kernel,
  };
  let job: Job | undefined;
  const board = nodes && new nodes.Switchboard(count);
  const left = (): void => {
    board?.callerLeft();
    link?.callerLeft();
    job?.callerLeft();
  };
  let client: Client | undefined;
  if (join && nodes !== undefined && board !== undefined) {
    const node = portsNodeOf(nodes, own, room, (report, ports = []) => board.hear(0, report, ports), left);
    board.join(node.hear);
    client = node.client;
  } else if (join) client = clientOf(own, memory, left, link?.lookAtSlots);
  // Linked nodes answer `pamir top` themselves.
  const program = link === undefined ? visibleProgram(options.top) : undefined;
  const monitor = (events: MonitorEvents) =>
    isNode()
      ? startNodeMonitor(
          sources.monitor,
          {
            orders,
            shared,
            job: map.job,
            program,
            engine,
            onError,
            isJoined: join,
            labels: options.labels ? hasColors() : undefined,
            futex: processes?.futex,
            processes: (processes ?? link) && {
              count: options.processes as number,
              isMain: link === undefined && areMain(options, count),
              source: link?.source ?? sources.process,
              preload: options.launcher?.preload,
              isDetached: options.launcher?.detached === true,
              job: map.job,
              memory: processes?.setup,
              link: link?.setup,
            },
          },
          events,
          link,
        )
      : startBrowserMonitor(
          orders,
          workers,
          events,
          map,
          memory,
          isShared ? taskErrorsIn(memory, map) : undefined,
          engine && { ...engine, shared, job: map.job },
          board,
        );
  job = new Job({ ...parts, monitor, client });
  const file = environment("PAMIR_TRACE");
  if (file && map.traceEvents > 0) writeAtEnd(job, file);
  return { job, mapped: { shared, futex: undefined, job: map.job } };
}

let said = false;

/** Prints one line on a page's console, once. */
function sayMode(): void {
  if (said) return;
  said = true;
  const { mode, kernel, why } = info();
  const what =
    mode === "shared" ? "tasks share memory" : mode === "messages" ? "tasks talk by messages" : "one task only";
  console.info(`pamir ${VERSION}: ${what}, ${kernel} kernels${why === "" ? "" : `; ${why}`}`);
}

function checkKernels(kernel: LaunchOptions["kernel"], tasks: number): KernelName[] {
  const isName = kernel === undefined || typeof kernel === "string";
  if (!isName && !Array.isArray(kernel)) {
    throw new PamiError("PAMIR_INVAL", `kernel is ${show(kernel)}, not "wasm" or "ts", nor an array of these`);
  }
  const kernels = !isName ? [...kernel] : new Array<KernelName>(tasks).fill(kernel ?? checkedKernel(kernel));
  if (kernels.length !== tasks) {
    throw new PamiError("PAMIR_INVAL", `kernel has ${kernels.length} entries for ${tasks} tasks`);
  }
  for (const name of kernels) {
    if (name !== "wasm" && name !== "ts") {
      throw new PamiError("PAMIR_INVAL", `kernel is ${show(name)}, not "wasm" or "ts"`);
    }
    checkedKernel(name);
  }
  return kernels;
}

function checkArgs(args: unknown): void {
  try {
    structuredClone(args);
  } catch (cause) {
    throw new PamiError("PAMIR_INVAL", `args can't be sent to a worker: ${(cause as Error).message}`, { cause });
  }
}

function checkWorkerOptions(workerOptions: Record<string, unknown>): void {
  checkObject("workerOptions", workerOptions);
  const { workerData, eval: code } = workerOptions;
  if (workerData !== undefined && (typeof workerData !== "object" || workerData === null)) {
    throw new PamiError("PAMIR_INVAL", `workerOptions.workerData is ${show(workerData)}: an object, or use args`);
  }
  if (code) throw new PamiError("PAMIR_INVAL", "workerOptions.eval: the entry is the URL of a module");
}
