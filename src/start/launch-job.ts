// Starts a job: checks the options, loads the parts that they need, has the job made. Threads that launch no job do not load
// this module.

import { TASK_COUNT_MAX } from "../../assembly/layout.js";
import { checkCallback, checkFlag, checkKeys, checkObject, checkSignal, type Keys } from "../core/check.js";
import { checkInteger, PamiError, show } from "../core/error.js";
import type { KernelName } from "../core/kernel-name.js";
import { VERSION } from "../generated/version.js";
import { eitherOpener, kernelOpener } from "../kernel/open.js";
import { MEMORY_BYTES_MAX } from "../memory/map.js";
import { checkDebug } from "../observe/debug.js";
import { hearAbort } from "../support/abort.js";
import { diagnostics } from "../support/diagnostics.js";
import { isNode } from "../support/host.js";
import type { AbortSignalLike, URLLike, WorkerLike } from "../support/like.js";
import { hardwareThreads } from "../support/node/cores.js";
import { checkEntry } from "./entry.js";
import { hostModeOf, info } from "./info.js";
import type { Job } from "./job.js";
import { areMain, type JobPlan, type Sources } from "./job-plan.js";
import type { LaunchOptions } from "./launch-options.js";
import { checkLimits } from "./limits.js";
import { makeJob } from "./make-job.js";
import type { SharedProcesses } from "./process/processes.js";
import { taskNames } from "./start-message.js";
import { checkArgs, checkCopied, checkKernels, checkWorkerOptions } from "./task-options.js";
import { checkOnError } from "./tasks/failure.js";
import type { TaskEntry } from "./tasks/monitor.js";
import { makeWorkers } from "./tasks/monitor-browser.js";

const LAUNCH_KEYS: Keys<Omit<LaunchOptions, "launcher">> = {
  tasks: true,
  maxTasks: true,
  kernel: true,
  processes: true,
  link: true,
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
  memory: true,
  memoryBase: true,
  bytes: true,
};
/** As launch(). */
export async function launchJob(
  entry: URLLike | string | (() => WorkerLike) | null,
  options: LaunchOptions,
): Promise<Job> {
  const checked = checkLaunch(entry, options);
  const { signal } = options;
  if (signal?.aborted) throw new PamiError("PAMIR_CANCELED", "launch() was canceled", { cause: signal.reason });
  const plan = options.memory === undefined ? checked : await asGuest(checked);
  return isNode() ? launchInNode(plan) : launchInBrowser(plan);
}

/** Finds room in another program's memory. @throws PAMIR_INVAL, PAMIR_MEMORY, PAMIR_NOT_ISOLATED */
async function asGuest(checked: CheckedLaunch): Promise<CheckedLaunch> {
  const { options, limits } = checked;
  const { mode, why } = hostModeOf();
  if (mode !== "shared")
    throw new PamiError("PAMIR_NOT_ISOLATED", `memory is given, and no thread can share it: ${why}`);
  if (options.processes !== undefined)
    throw new PamiError(
      "PAMIR_INVAL",
      `processes is ${options.processes}: processes can't share the memory of a program`,
    );
  const { makeGuestMemory } = await import("../node/guest-memory.js");
  const guest = makeGuestMemory(options, limits);
  return { ...checked, guest, limits: { ...limits, heapBytes: guest.map.heapBytes } };
}

/** The parts of a plan that the options alone give. */
type CheckedLaunch = Pick<JobPlan, "entry" | "count" | "limits" | "options" | "names" | "guest">;

/** @throws PAMIR_INVAL, PAMIR_ENTRY, PAMIR_NO_WORKERS */
function checkLaunch(entry: Parameters<typeof launchJob>[0], options: LaunchOptions): CheckedLaunch {
  checkObject("options of launch()", options);
  const { launcher, ...given } = options;
  checkKeys("options of launch()", given, LAUNCH_KEYS);
  const { memory, memoryBase, bytes } = given;
  // Tests have their map at any place of a memory of its own.
  if (memoryBase !== undefined && memory === undefined) checkInteger("memoryBase", memoryBase, 0, MEMORY_BYTES_MAX);
  if (bytes !== undefined && memory === undefined)
    throw new PamiError("PAMIR_INVAL", `bytes is ${show(bytes)}, of no memory: heapBytes is the size of the job's own`);
  const { join = false, workerOptions = {}, signal, tasks = Math.max(2, hardwareThreads()), processes } = options;
  checkFlag("join", options.join);
  checkFlag("top", options.top);
  checkFlag("labels", options.labels);
  checkFlag("ports", options.ports);
  checkCallback("onExit", options.onExit);
  checkSignal("launch()", signal);
  checkInteger("tasks", tasks, 1, TASK_COUNT_MAX);
  const limits = checkLimits(options, tasks);
  checkMode(tasks, join);
  const checked = join && tasks === 1 && entry === null ? null : checkEntry(entry);
  checkWorkerOptions(workerOptions);
  checkDebug(options.debug);
  checkOnError(options.onError);
  if (processes !== undefined) checkInteger("processes", processes, 1, Math.max(1, join ? tasks - 1 : tasks));
  return { entry: checked, count: tasks, limits, options, names: taskNames(limits.tasks) };
}

async function launchInNode(checked: CheckedLaunch): Promise<Job> {
  const { options, entry, count } = checked;
  const sources = await loadSources(options, count);
  const { processes, link }: SharedProcesses =
    options.processes === undefined ? {} : await loadProcesses(options, count, entry);
  try {
    const { job, mapped } = makeJob({ ...checked, sources, processes, link });
    void job.exited.then(() => processes?.close());
    await started(job, options.signal);
    if (options.join) await link?.join(job, mapped);
    return job;
  } catch (error) {
    processes?.close();
    throw error;
  }
}

async function launchInBrowser(checked: CheckedLaunch): Promise<Job> {
  const { options, entry, count, names } = checked;
  const { join = false, workerOptions = {} } = options;
  const sources = await loadSources(options, count);
  if (options.processes !== undefined) {
    throw new PamiError("PAMIR_NO_PROCESSES", `processes is ${options.processes}: this host starts none`);
  }
  checkArgs(options.args);
  // Loaded before the workers start: their first messages must find a listener.
  const nodes = hostModeOf().mode === "shared" ? undefined : await import("./node/private-node.js");
  // The workers load while the rest is prepared.
  const workers = entry === null ? [] : makeWorkers(entry, workerOptions, names.slice(join ? 1 : 0, count));
  try {
    sayMode();
    const { job } = makeJob({ ...checked, sources, workers, nodes });
    return await started(job, options.signal);
  } catch (error) {
    for (const worker of workers) worker.terminate();
    throw error;
  }
}

/** @throws PAMIR_NO_WORKERS */
function checkMode(tasks: number, join: boolean): void {
  const { mode, why } = hostModeOf();
  if (mode !== "alone" || (tasks === 1 && join)) return;
  throw new PamiError("PAMIR_NO_WORKERS", `launch() of ${tasks} tasks: ${why}. One task with join: true works`);
}

async function loadSources(options: LaunchOptions, tasks: number): Promise<Sources> {
  const { engine, processes } = options;
  const [kernel] = checkKernels(options.kernel, tasks);
  const [{ engineSource }, { monitorSource }, { processSource }, openKernel] = await Promise.all([
    engine === "thread" && hostModeOf().mode === "shared" ? import("../generated/engine.js") : { engineSource: "" },
    isNode() ? import("../generated/monitor.js") : { monitorSource: "" },
    processes === undefined || areMain(options, tasks) ? { processSource: "" } : import("../generated/process.js"),
    (hostModeOf().mode === "shared" ? kernelOpener : eitherOpener)(kernel as KernelName),
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

async function started(job: Job, signal: AbortSignalLike | undefined): Promise<Job> {
  if (diagnostics.launch.hasSubscribers) diagnostics.launch.publish({ job });
  const abort = (): void => void job.terminate();
  const forget = hearAbort(signal, abort);
  void job.exited.then(forget);
  await job.started;
  return job;
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
