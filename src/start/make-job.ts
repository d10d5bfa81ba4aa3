// Makes a job of the plan that launch() has checked: the memory, the caller's client if it joins, and the monitor, which starts
// the tasks.
import { JOB_STARTED_OFFSET, JOB_WORLD_OFFSET } from "../../assembly/layout.js";
import { sharedAtomics } from "../kernel/atomics.js";
import { wasmAllowed } from "../kernel/open.js";
import { wasmModule } from "../kernel/wasm.js";
import { taskErrorsIn } from "../node/liveness.js";
import { type JobMemory, type JobMemoryRequest, makeJobMemory } from "../node/memory.js";
import { writeAtEnd } from "../observe/trace.js";
import { visibleProgram } from "../observe/visible.js";
import type { Client } from "../pami/client.js";
import { environment, hasColors, isNode } from "../support/host.js";
import { clientOf, portsNodeOf, withYield } from "./attach.js";
import { hostModeOf } from "./info.js";
import { Job } from "./job.js";
import { areMain, type JobPlan } from "./job-plan.js";
import type { JoinedMemory } from "./join/node-memory.js";
import { StartMessages } from "./make-start-messages.js";
import type { StartMessage } from "./start-message.js";
import { checkKernels } from "./task-options.js";
import type { OnError } from "./tasks/failure.js";
import type { Monitor, MonitorEvents, MonitorOrders } from "./tasks/monitor.js";
import { BrowserMonitor } from "./tasks/monitor-browser.js";
import { startNodeMonitor } from "./tasks/monitor-thread.js";
import type { Switchboard, TellLauncher } from "./tasks/switchboard.js";
import { TaskPorts } from "./tasks/task-ports.js";

/** Where the tasks of a job to be made have their data. */
interface JobRoom {
  readonly request: JobMemoryRequest;
  readonly room: JobMemory;
  /** The compiled kernels, for tasks and engine of this process. */
  readonly module: WebAssembly.Module | undefined;
}

/** @throws PAMIR_MEMORY, PAMIR_NO_WORKERS */
export function makeJob(plan: JobPlan): { job: Job; mapped: JoinedMemory } {
  const { count, options, link, sources } = plan;
  const { request, room, module } = makeRoom(plan);
  const { map, shared, memory } = room;
  const ports = options.ports ? new TaskPorts() : undefined;
  const messages = new StartMessages({ plan, request, room, module, ports });
  const isShared = hostModeOf().mode === "shared";
  const engine = isShared && link === undefined && map.engine ? { source: sources.engine, module } : undefined;
  const sync = sharedAtomics(memory);
  sync.storeWord(map.job + JOB_STARTED_OFFSET, count);
  sync.storeWord(map.job + JOB_WORLD_OFFSET, count);
  const board = plan.nodes && new plan.nodes.Switchboard(count);
  let job: Job | undefined;
  const client = joinCaller(plan, room, messages.first, board, () => {
    board?.callerLeft();
    link?.callerLeft();
    job?.callerLeft();
  });
  const onError: OnError = options.onError ?? (options.onExit === undefined ? "report" : "ignore");
  const monitor = (events: MonitorEvents): Monitor => {
    if (isNode()) return nodeMonitor(plan, room, { orders: messages.orders, engine, onError }, events);
    const setup = engine && { ...engine, shared, job: map.job };
    const errors = isShared ? taskErrorsIn(memory, map) : undefined;
    return new BrowserMonitor(messages.orders, plan.workers ?? [], events, { map, sync, errors, board, engine: setup });
  };
  job = new Job({
    launched: count,
    oneMore: (task, more, isAdopted) => messages.oneMore(task, more, isAdopted),
    hasEngine: engine !== undefined,
    ports,
    onExit: options.onExit,
    onError,
    map,
    memory,
    sync,
    monitor,
    client,
  });
  const file = environment("PAMIR_TRACE");
  if (file && map.traceEvents > 0) writeAtEnd(job, file);
  return { job, mapped: { shared, futex: undefined, job: map.job } };
}

/** Makes the memory, and compiles the kernels once for all. */
function makeRoom({ count, limits, options, nodes, processes, link, guest }: JobPlan): JobRoom {
  const kernels = checkKernels(options.kernel, count);
  const isShared = hostModeOf().mode === "shared";
  const { nodeLimits } = nodes ?? link ?? {};
  const request = {
    limits: nodeLimits === undefined ? limits : nodeLimits({ ...limits, jobTasks: limits.tasks }, 1),
    isFixed: options.heapBytes !== undefined,
    // Tasks that share memory have one memory for kernels of both kinds.
    mayBeTwins: !isShared && options.kernel === undefined,
    base: options.memoryBase,
  };
  // A task that comes later may run wasm, which needs a WebAssembly.Memory.
  const mayGrow = limits.tasks > count && wasmAllowed();
  // Linked tasks have memories of their own, too.
  const isWasm = isShared && link === undefined ? mayGrow || kernels.includes("wasm") : kernels[0] === "wasm";
  const room = guest ?? makeJobMemory(request, isWasm, processes?.make);
  // Processes compile the kernels themselves. Compiling here would delay the start of the processes by 5 ms.
  const isCompiled = kernels.includes("wasm") && (processes === undefined || room.map.engine);
  return { request, room, module: isCompiled ? wasmModule() : undefined };
}

/** Makes the caller task 0, if it joins. @param left to call once its client is closed */
function joinCaller(
  { nodes, link, options, sources }: JobPlan,
  room: JobMemory,
  own: StartMessage,
  board: Switchboard | undefined,
  left: () => void,
): Client | undefined {
  if (!options.join) return undefined;
  if (nodes !== undefined && board !== undefined) {
    const tell: TellLauncher = (report, ports = []) => board.hear(0, report, ports);
    const node = portsNodeOf(nodes, own, room, { openKernel: sources.openKernel, tell, onLeave: left });
    board.join(node.hear);
    return node.client;
  }
  const { memory, map } = room;
  const client = clientOf(own, memory, sources.openKernel, { onLeave: left, lookAtSlots: link?.lookAtSlots });
  void withYield(memory, map.job);
  return client;
}

/** The monitor in Node, and its data about the job. */
function nodeMonitor(
  { count, options, sources, processes, link }: JobPlan,
  { map, shared }: JobMemory,
  parts: {
    readonly orders: MonitorOrders;
    readonly engine: { readonly source: string; readonly module: WebAssembly.Module | undefined } | undefined;
    readonly onError: OnError;
  },
  events: MonitorEvents,
): Monitor {
  const { launcher, join = false, labels } = options;
  const setup = {
    ...parts,
    shared,
    job: map.job,
    // Linked nodes answer `pamir top` themselves.
    program: link === undefined ? visibleProgram(options.top) : undefined,
    isJoined: join,
    labels: labels ? hasColors() : undefined,
    futex: processes?.futex,
    processes: (processes ?? link) && {
      count: options.processes as number,
      isMain: link === undefined && areMain(options, count),
      source: link?.source ?? sources.process,
      preload: launcher?.preload,
      isDetached: launcher?.detached === true,
      job: map.job,
      memory: processes?.setup,
      link: link?.setup,
    },
  };
  return startNodeMonitor(sources.monitor, setup, events, link);
}
