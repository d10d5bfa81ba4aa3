// Starts a job: checks the options, makes the memory, starts the monitor.

import { JOB_STARTED_OFFSET, JOB_WORLD_OFFSET, TASK_COUNT_MAX } from "../../assembly/layout.js";
import { LAYOUT_HASH } from "../../assembly/layout-hash.js";
import { checkCallback, checkFlag, checkKeys, checkObject, checkSignal, type Keys } from "../core/check.js";
import { checkInteger, PamiError, show } from "../core/error.js";
import type { KernelName } from "../core/kernel-name.js";
import { VERSION } from "../generated/version.js";
import { sharedAtomics } from "../kernel/atomics.js";
import { checkedKernel, kernelOpener, type OpenKernel, wasmAllowed } from "../kernel/open.js";
import { wasmModule } from "../kernel/wasm.js";
import { type Limits, MEMORY_BYTES_MAX } from "../memory/map.js";
import { makeJobMemory, taskErrorsIn } from "../node/memory.js";
import { checkDebug } from "../observe/debug.js";
import { writeAtEnd } from "../observe/trace.js";
import { visibleProgram } from "../observe/visible.js";
import type { Client } from "../pami/client.js";
import type { ProcessMemories } from "../process/process-memory.js";
import { hearAbort } from "../support/abort.js";
import { diagnostics } from "../support/diagnostics.js";
import { environment, hasColors, isNode, nodeModule } from "../support/host.js";
import type { AbortSignalLike, URLLike, WorkerLike } from "../support/like.js";
import { hardwareThreads } from "../support/node/cores.js";
import { clientOf, type PrivateNodes, portsNodeOf, withYield } from "./attach.js";
import { checkEntry } from "./entry.js";
import { bareScope, type HostMode, hostModeOf, info } from "./info.js";
import { type AdoptOptions, Job, type SpawnOptions } from "./job.js";
import type { JoinedMemory } from "./join/by-launcher.js";
import type { LaunchOptions } from "./launch-options.js";
import { checkLimits } from "./limits.js";
import type { ProcessNodes } from "./node/process-nodes.js";
import type { SharedProcesses } from "./process/processes.js";
import { type TaskBootstrap, taskNames } from "./start-message.js";
import { checkOnError, type OnError } from "./tasks/failure.js";
import type { MonitorEvents, MonitorOrders, TaskEntry } from "./tasks/monitor.js";
import { makeWorkers, startBrowserMonitor } from "./tasks/monitor-browser.js";
import { startNodeMonitor } from "./tasks/monitor-thread.js";
import { TaskPorts } from "./tasks/task-ports.js";

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

/**
 * Starts a job: `tasks` workers that import the module `entry`, where each calls `attach()`. Resolves while the workers are
 * starting. Without `join: true` the caller is no task: it watches and ends the job, but sends tasks nothing and hears nothing
 * from them. With `join: true` the caller is task 0, which `tasks` counts: `tasks: 4` starts three workers, and `job.client` is
 * the caller's client. Messages to a task that is not up yet wait for it. A task that fails to load ends with its error in
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
    const { processes, link }: SharedProcesses =
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
  const nodes = mode !== "shared" ? await import("./node/private-node.js") : undefined;
  // The workers load while the rest is prepared.
  const workers = checked === null ? [] : makeWorkers(checked, workerOptions, names.slice(first, tasks));
  try {
    sayMode();
    const { job } = makeJob(checked, tasks, limits, options, names, workers, sources, nodes);
    return await started(job, signal);
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

/** The code of the threads that a job has besides its tasks, and the kernels of a caller that joins. */
interface Sources {
  readonly engine: string;
  readonly monitor: string;
  readonly process: string;
  readonly openKernel: OpenKernel;
}

/** Whether each task is the main thread of a process, where processes share memory. Such a launcher does not join. */
function areMain({ launcher, processes }: LaunchOptions, tasks: number): boolean {
  return launcher?.mainThreads === true && processes === tasks;
}

async function loadSources(options: LaunchOptions, tasks: number): Promise<Sources> {
  const { engine, processes } = options;
  const [kernel] = checkKernels(options.kernel, tasks);
  const [{ engineSource }, { monitorSource }, { processSource }, openKernel] = await Promise.all([
    engine === "thread" && hostModeOf().mode === "shared" ? import("../generated/engine.js") : { engineSource: "" },
    isNode() ? import("../generated/monitor.js") : { monitorSource: "" },
    processes === undefined || areMain(options, tasks) ? { processSource: "" } : import("../generated/process.js"),
    kernelOpener(kernel as KernelName),
  ]);
  return { engine: engineSource, monitor: monitorSource, process: processSource, openKernel };
}

/** @throws PAMIR_NO_PROCESSES, PAMIR_INVAL for a value that can't be copied to another process */
async function loadProcesses(options: LaunchOptions, tasks: number, entry: TaskEntry | null): Promise<SharedProcesses> {
  checkCopied(options.args, options.workerOptions);
  const [kernel] = checkKernels(options.kernel, tasks);
  return (await import("./process/processes.js")).openProcesses(
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
  entry: TaskEntry | null,
  count: number,
  limits: Limits,
  options: LaunchOptions,
  names: readonly string[],
  workers: readonly Worker[],
  sources: Sources,
  nodes?: PrivateNodes,
  processes?: ProcessMemories,
  link?: ProcessNodes,
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
  const { map, shared, memory } = room;
  // Processes compile the kernels themselves. Compiling here would delay the start of the processes by 5 ms.
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
  const sync = sharedAtomics(memory);
  sync.storeWord(map.job + JOB_STARTED_OFFSET, count);
  sync.storeWord(map.job + JOB_WORLD_OFFSET, count);
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
    sync,
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
  } else if (join) {
    client = clientOf(own, memory, sources.openKernel, left, link?.lookAtSlots);
    void withYield(memory, map.job);
  }
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
