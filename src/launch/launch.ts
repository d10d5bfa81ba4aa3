// Starting a job: checks what is asked, makes the memory, starts the monitor.

import {
  CONTEXT_COUNT_MAX,
  ENDPOINT_COUNT_MAX,
  FIFO_COUNT_DEFAULT,
  FIFO_COUNT_MAX,
  LANE_BYTES_DEFAULT,
  LANE_BYTES_GROWN,
  LANE_BYTES_MIN,
  PAGE_SIZE,
  REGION_COUNT_DEFAULT,
  REGION_COUNT_MAX,
  SLOT_COUNT_DEFAULT,
  SLOT_COUNT_MAX,
  SLOT_COUNT_MIN,
  TASK_COUNT_MAX,
} from "../../assembly/layout.js";
import { LAYOUT_HASH } from "../../assembly/layout-hash.js";
import { VERSION } from "../generated/version.js";
import type { KernelName } from "../kernel/kernel.js";
import { selectKernel, wasmAllowed } from "../kernel/select.js";
import { wasmModule } from "../kernel/wasm.js";
import { endpointsFit, type Limits, MEMORY_BYTES_MAX } from "../memory/map.js";
import { checkInteger, PamiError, show } from "../pami/error.js";
import { hardwareThreads, isNode, nodeModule } from "../support/host.js";
import { clientOf, relayedClientOf } from "./attach.js";
import { type Connect, makeWorkers, startBrowserMonitor } from "./browser.js";
import { info, rungOf } from "./info.js";
import { Job } from "./job.js";
import type { Entry, MonitorEvents, MonitorOrders } from "./monitor.js";
import { startNodeMonitor } from "./node.js";
import { makeRoom } from "./room.js";
import { type Ticket, taskNames } from "./ticket.js";

/** Options of `launch`. */
export interface LaunchOptions {
  /** Number of tasks, the caller included if it joins (default: one for each hardware thread). */
  tasks?: number | undefined;
  /** The kernels: for all tasks, or for each (default: wasm, and the TypeScript twin where wasm is forbidden). */
  kernel?: KernelName | readonly KernelName[] | undefined;
  /** The caller is a task too, number 0: `job.client`. */
  join?: boolean | undefined;
  /** Anything that can be cloned; `client.args` in each task. */
  args?: unknown;
  /** Contexts that each task may have (default 4). */
  contexts?: number | undefined;
  /** Bytes of a new lane's ring, a power of two (default 16,384). */
  laneBytes?: number | undefined;
  /**
   * Bytes of the heap for lanes and regions; costs no memory until it is used. Default 256 MiB, or less, with a warning,
   * where the host refuses that.
   */
  heapBytes?: number | undefined;
  /** Regions that each task may have at once (default 1,024). */
  regions?: number | undefined;
  /** Injection FIFOs of each context: transfers to targets in different ones don't wait for each other (default 4). */
  fifos?: number | undefined;
  /** Slots of an injection FIFO, a power of two: a transfer takes one, and one for each callback (default 64). */
  slots?: number | undefined;
  /** Warns on the console of what is never closed, and says where it was made (default false; it costs microseconds). */
  debug?: boolean | undefined;
  /** Options for the tasks' workers, as of `worker_threads.Worker`; `workerData`, if any, is an object. */
  workerOptions?: Record<string, unknown> | undefined;
  /** Where the map begins in the memory. @internal for tests that let it straddle 2^31 */
  memoryBase?: number | undefined;
}

const HEAP_BYTES_DEFAULT = 256 * 1024 ** 2;

/**
 * Starts a job: `tasks` workers that import the module `entry`, where each calls `attach()`. Resolves when the workers
 * are being started; messages to a task that is not up yet wait for it, and a task that fails to load ends with its
 * error in `job.exited`.
 * @param entry URL of the task module: `new URL('./task.js', import.meta.url)`; in a browser also a function that makes a
 *   worker of it, for bundlers: `() => new Worker(new URL('./task.js', import.meta.url), { type: 'module' })`
 * @throws PAMIR_INVAL, PAMIR_ENTRY, PAMIR_MEMORY, PAMIR_NO_WASM, PAMIR_NO_WORKERS
 */
export async function launch(entry: URL | string | (() => Worker), options: LaunchOptions = {}): Promise<Job> {
  const { join = false, workerOptions = {}, debug = false } = options;
  const checked = checkEntry(entry);
  const limits = checkLimits(options);
  const { rung, why } = rungOf();
  if (rung === "alone" && limits.tasks > (join ? 1 : 0)) {
    throw new PamiError(
      "PAMIR_NO_WORKERS",
      `launch() of ${limits.tasks} tasks: ${why}. One task with join: true works`,
    );
  }
  checkWorkerOptions(workerOptions);
  if (typeof debug !== "boolean") throw new PamiError("PAMIR_INVAL", `debug is ${show(debug)}, not a boolean`);
  const names = taskNames(limits.tasks);
  if (isNode()) return started(makeJob(checked, limits, options, names, []));
  checkArgs(options.args);
  // They load while the rest is prepared.
  const workers = makeWorkers(checked, workerOptions, join ? names.slice(1) : names);
  try {
    sayRung();
    return await started(makeJob(checked, limits, options, names, workers));
  } catch (error) {
    for (const worker of workers) worker.terminate();
    throw error;
  }
}

async function started(job: Job): Promise<Job> {
  await job.started;
  return job;
}

/** The memory, the caller's client if it joins, and the monitor, which has the tasks. */
function makeJob(
  entry: Entry,
  limits: Limits,
  options: LaunchOptions,
  names: readonly string[],
  workers: readonly Worker[],
): Job {
  const { join = false, args, workerOptions = {}, debug = false } = options;
  const kernels = checkKernels(options.kernel, limits.tasks);
  const { rung, why } = rungOf();
  const isShared = rung === "shared";
  const request = { limits, isFixed: options.heapBytes !== undefined, base: options.memoryBase ?? 0 };
  const room = makeRoom(request, kernels.includes("wasm"));
  const { map, shared, memory } = room;
  const module = kernels.includes("wasm") ? wasmModule() : undefined;
  const tickets = kernels.map(
    (kernel, task): Ticket => ({
      version: VERSION,
      layoutHash: LAYOUT_HASH,
      memory: isShared ? shared : undefined,
      room: request,
      job: map.job,
      why,
      module,
      task,
      kernel,
      args,
      debug,
      lock: names[task] as string,
    }),
  );
  const orders: MonitorOrders = { entry, tickets: join ? tickets.slice(1) : tickets, workerOptions };
  const kernel = selectKernel(kernels[0] as KernelName, shared, memory, module);
  const own = tickets[0] as Ticket;
  if (isNode() || isShared) {
    const client = join ? clientOf(own, shared) : undefined;
    const monitor = (events: MonitorEvents) =>
      isNode() ? startNodeMonitor(orders, events) : startBrowserMonitor(orders, workers, events, map, memory);
    return new Job({ monitor, client, map, memory, kernel });
  }
  let made: ReturnType<typeof startBrowserMonitor> | undefined;
  const connect: Connect = (task, port) => made?.connect(task, port);
  const relayed = join ? relayedClientOf(own, room, connect, () => made?.leave()) : undefined;
  const monitor = (events: MonitorEvents) => {
    made = startBrowserMonitor(orders, workers, events, map, memory, relayed?.relay);
    return made;
  };
  return new Job({ monitor, client: relayed?.client, map, memory, kernel });
}

let said = false;

/** One line on a page's console, once. */
function sayRung(): void {
  if (said) return;
  said = true;
  const { rung, kernel, why } = info();
  const what =
    rung === "shared" ? "tasks share memory" : rung === "messages" ? "tasks talk by messages" : "one task only";
  console.info(`pamir ${VERSION}: ${what}, ${kernel} kernels${why === "" ? "" : `; ${why}`}`);
}

function checkEntry(entry: URL | string | (() => Worker)): Entry {
  if (typeof entry === "function" && !isNode()) return entry;
  if (typeof entry === "function") {
    throw new PamiError("PAMIR_ENTRY", "entry is a function: in Node it is the URL of the task module");
  }
  let url: URL;
  try {
    url = new URL(entry);
  } catch (cause) {
    throw new PamiError(
      "PAMIR_ENTRY",
      `entry is ${show(entry)}, not a URL: use new URL('./task.js', import.meta.url)`,
      {
        cause,
      },
    );
  }
  if (url.protocol === "file:" && nodeModule("fs")?.existsSync(url) === false) {
    throw new PamiError("PAMIR_ENTRY", `the task module ${nodeModule("url")?.fileURLToPath(url)} does not exist`);
  }
  return url.href;
}

function checkLimits(options: LaunchOptions): Limits {
  const {
    tasks = Math.max(2, hardwareThreads()),
    contexts = 4,
    laneBytes = LANE_BYTES_DEFAULT,
    heapBytes = HEAP_BYTES_DEFAULT,
    regions = REGION_COUNT_DEFAULT,
    fifos = FIFO_COUNT_DEFAULT,
    slots = SLOT_COUNT_DEFAULT,
  } = options;
  checkInteger("tasks", tasks, 1, TASK_COUNT_MAX);
  checkInteger("contexts", contexts, 1, CONTEXT_COUNT_MAX);
  checkInteger("laneBytes", laneBytes, LANE_BYTES_MIN, 2 ** 26);
  checkInteger("heapBytes", heapBytes, PAGE_SIZE, MEMORY_BYTES_MAX);
  checkInteger("regions", regions, 1, REGION_COUNT_MAX);
  checkInteger("fifos", fifos, 1, FIFO_COUNT_MAX);
  checkInteger("slots", slots, SLOT_COUNT_MIN, SLOT_COUNT_MAX);
  for (const [name, value] of Object.entries({ laneBytes, slots })) {
    if ((value & (value - 1)) !== 0) throw new PamiError("PAMIR_INVAL", `${name} is ${value}, not a power of two`);
  }
  const limits = { tasks, contexts, laneBytes, heapBytes, regions, fifos, slots };
  if (!endpointsFit(limits)) {
    throw new PamiError(
      "PAMIR_MEMORY",
      `${tasks} tasks with ${contexts} contexts are ${tasks * contexts} endpoints, the limit is ${ENDPOINT_COUNT_MAX}`,
    );
  }
  if (heapBytes < laneBytes + LANE_BYTES_GROWN) {
    throw new PamiError(
      "PAMIR_MEMORY",
      `heapBytes is ${heapBytes}: one lane of ${laneBytes} and one for large messages need ${laneBytes + LANE_BYTES_GROWN}`,
    );
  }
  return limits;
}

function checkKernels(kernel: LaunchOptions["kernel"], tasks: number): KernelName[] {
  const allowed = wasmAllowed();
  const kernels =
    typeof kernel === "object" ? [...kernel] : new Array<KernelName>(tasks).fill(kernel ?? (allowed ? "wasm" : "ts"));
  if (kernels.length !== tasks) {
    throw new PamiError("PAMIR_INVAL", `kernel has ${kernels.length} entries for ${tasks} tasks`);
  }
  for (const name of kernels) {
    if (name !== "wasm" && name !== "ts") {
      throw new PamiError("PAMIR_INVAL", `kernel is ${show(name)}, not "wasm" or "ts"`);
    }
    if (name === "wasm" && !allowed) {
      throw new PamiError("PAMIR_NO_WASM", `kernel: "wasm", but this host does not compile WebAssembly`);
    }
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
  const { workerData, eval: code } = workerOptions;
  if (workerData !== undefined && (typeof workerData !== "object" || workerData === null)) {
    throw new PamiError("PAMIR_INVAL", `workerOptions.workerData is ${show(workerData)}: an object, or use args`);
  }
  if (code) throw new PamiError("PAMIR_INVAL", "workerOptions.eval: the entry is the URL of a module");
}
