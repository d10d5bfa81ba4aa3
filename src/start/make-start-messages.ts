// The start messages of a job's tasks: of the first tasks, and of each task that comes later.
import { LAYOUT_HASH } from "../../assembly/layout-hash.js";
import { checkKeys, type Keys } from "../core/check.js";
import { checkInteger, PamiError } from "../core/error.js";
import type { KernelName } from "../core/kernel-name.js";
import { VERSION } from "../generated/version.js";
import type { JobMemory, JobMemoryRequest } from "../node/memory.js";
import { checkDebug, type DebugLimits } from "../observe/debug.js";
import { isNode } from "../support/host.js";
import { checkEntry } from "./entry.js";
import { hostModeOf } from "./info.js";
import type { AdoptOptions, SpawnOptions } from "./job.js";
import type { JobPlan } from "./job-plan.js";
import type { StartMessage } from "./start-message.js";
import { checkArgs, checkCopied, checkKernels, checkWorkerOptions } from "./task-options.js";
import type { MonitorOrders } from "./tasks/monitor.js";
import type { TaskPorts } from "./tasks/task-ports.js";

const ADOPT_KEYS: Keys<AdoptOptions> = { args: true, kernel: true };
const SPAWN_KEYS: Keys<SpawnOptions> = { ...ADOPT_KEYS, rank: true, entry: true, workerOptions: true };

/** The data of which start messages are made. */
interface MessageParts {
  readonly plan: JobPlan;
  readonly request: JobMemoryRequest;
  readonly room: JobMemory;
  readonly module: WebAssembly.Module | undefined;
  readonly ports: TaskPorts | undefined;
}

/** One task more: its start message, and the order that starts the task. */
export interface OneMore {
  readonly bootstrap: StartMessage;
  readonly orders: MonitorOrders;
}

export class StartMessages {
  /** That of task 0. */
  readonly first: StartMessage;
  /** Of the tasks that the monitor starts at first. */
  readonly orders: MonitorOrders;

  readonly #parts: MessageParts;
  readonly #debug: DebugLimits | undefined;
  /** The start messages of the tasks with which the job begins. */
  readonly #kernels: readonly KernelName[];

  constructor(parts: MessageParts) {
    this.#parts = parts;
    const { entry, count, options } = parts.plan;
    const { join = false, args, workerOptions = {} } = options;
    this.#debug = checkDebug(options.debug);
    this.#kernels = checkKernels(options.kernel, count);
    const all = this.#kernels.map((kernel, task) => ({
      ...this.#bootstrap(task, kernel, args),
      port: this.#areThreads && !(join && task === 0) ? parts.ports?.open(task) : undefined,
    }));
    this.first = all[0] as StartMessage;
    this.orders = { entry, bootstraps: join ? all.slice(1) : all, workerOptions };
  }

  /** Whether tasks are threads of this process. */
  get #areThreads(): boolean {
    return this.#parts.plan.options.processes === undefined;
  }

  #bootstrap(task: number, kernel: KernelName, args: unknown, rank?: number): StartMessage {
    const { plan, request, room, module } = this.#parts;
    const { mode, why } = hostModeOf();
    return {
      version: VERSION,
      layoutHash: LAYOUT_HASH,
      memory: mode === "shared" ? room.shared : undefined,
      room: request,
      job: room.map.job,
      why,
      module,
      task,
      started: Math.max(plan.count, task + 1),
      kernel,
      args,
      rank,
      input: (rank ?? task) === 0 ? plan.options.launcher?.input : undefined,
      debug: this.#debug,
      lock: plan.names[task] as string,
      futex: plan.processes?.futex,
    };
  }

  /**
   * Checks the options of one more task, and makes its start message.
   * @throws PAMIR_INVAL, PAMIR_ENTRY, PAMIR_NO_WASM, PAMIR_NO_WORKERS
   */
  oneMore(task: number, more: SpawnOptions, isAdopted: boolean): OneMore {
    const { plan, request, ports } = this.#parts;
    const { entry, limits, options } = plan;
    const { mode, why } = hostModeOf();
    if (mode === "alone" && !isAdopted) throw new PamiError("PAMIR_NO_WORKERS", `spawn() of task ${task}: ${why}`);
    checkKeys(`options of ${isAdopted ? "adopt" : "spawn"}()`, more, isAdopted ? ADOPT_KEYS : SPAWN_KEYS);
    const { kernel: name = this.#kernels[0], args = options.args, workerOptions = options.workerOptions ?? {} } = more;
    const asked = isAdopted
      ? null
      : more.entry === undefined && entry !== null
        ? entry
        : checkEntry(more.entry ?? null);
    checkWorkerOptions(workerOptions);
    if (more.rank !== undefined) checkInteger("rank", more.rank, 0, limits.tasks - 1);
    const [kernel] = checkKernels(name, 1);
    if (!isNode()) checkArgs(args);
    else if (!this.#areThreads && !isAdopted) checkCopied(args, workerOptions);
    const bootstrap = {
      ...this.#bootstrap(task, kernel as KernelName, args, more.rank),
      room: { ...request, mayBeTwins: request.mayBeTwins === true && more.kernel === undefined },
      isAdopted,
      port: this.#areThreads || isAdopted ? ports?.open(task) : undefined,
    };
    return { bootstrap, orders: { entry: asked, bootstraps: [bootstrap], workerOptions } };
  }
}
