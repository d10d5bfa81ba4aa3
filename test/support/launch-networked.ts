// launch() of tasks on nodes of a simulated network, all on this thread: each has an instance of the task module of
// its own, and virtual time goes on with the event loop. `attach` is to be that of "pamir" in those modules.
import { AsyncLocalStorage } from "node:async_hooks";
import {
  FIFO_COUNT_DEFAULT,
  LANE_BYTES_DEFAULT,
  REGION_COUNT_DEFAULT,
  SLOT_COUNT_DEFAULT,
} from "../../assembly/layout.js";
import type { KernelName } from "../../src/core/kernel-name.js";
import { sharedAtomics } from "../../src/kernel/atomics.js";
import type { Limits } from "../../src/memory/map.js";
import type { Client } from "../../src/pami/client.js";
import { Job } from "../../src/start/job.js";
import type { LaunchOptions } from "../../src/start/launch-options.js";
import type { Monitor, MonitorEvents, TaskExit } from "../../src/start/tasks/monitor.js";
import { type Networked, NetworkedJob, type NetworkedOptions, type Wire } from "./networked.js";

/** Of virtual time, in each turn of the event loop. */
const TURN_MICROSECONDS = 1000;
/** Events that each task keeps. */
const TRACE_EVENTS = 1024;
/** The task of whoever launches. */
const CALLER = 0;

/** What runs as a task: all that its module does, and what comes of it. */
interface Running {
  readonly client: Client;
  /** It has failed, of what. */
  readonly fail: (error: unknown) => void;
}

const current = new AsyncLocalStorage<Running>();

/** As `attach` of pamir, in a module that launchNetworked() has started. */
export function attach(): Promise<Client> {
  return Promise.resolve((current.getStore() as Running).client);
}

/** A rejection that nobody handles ends the task that it is of, as it would a worker; others are for whoever listened. */
function watchRejections(): void {
  const others = process.listeners("unhandledRejection");
  process.removeAllListeners("unhandledRejection");
  process.on("unhandledRejection", (reason, rejected) => {
    const running = current.getStore();
    if (running !== undefined) running.fail(reason);
    else for (const listener of others) listener.call(process, reason, rejected);
  });
}

let jobs = 0;

/** The network: what of it is not of each job. */
export interface NetworkedLaunch extends Omit<NetworkedOptions, "limits" | "kernels" | "args" | "onLeave" | "wire"> {
  /** Opens links for so many nodes, instead of the simulated network. */
  readonly open?: (nodes: number) => Promise<Wire & { close(): void }>;
}

/** As `launch` of pamir, for a caller that joins. */
export function launchNetworked(network: NetworkedLaunch): (entry: URL, options: LaunchOptions) => Promise<Job> {
  return async (entry, options) => {
    if (jobs++ === 0) watchRejections();
    const limits = limitsOf(options);
    const kernels = options.kernel as readonly KernelName[];
    let job: Job | undefined;
    const onLeave = (task: number): void => {
      if (task === CALLER) job?.callerLeft();
    };
    const wire = await network.open?.(Math.ceil(limits.tasks / (network.tasksPerNode ?? 1)));
    const nodes = new NetworkedJob({ ...network, wire, limits, kernels, args: options.args, onLeave });
    const { map, memory, client } = nodes.tasks[CALLER] as Networked;
    job = new Job({
      monitor: (events) => startMonitor(nodes, `${entry.href}?job=${jobs}`, events, () => wire?.close()),
      client,
      hasEngine: false,
      launched: limits.tasks,
      oneMore: () => {
        throw new Error("a network that is simulated has no spare nodes");
      },
      onExit: options.onExit,
      onError: options.onError ?? "ignore",
      map,
      memory,
      sync: sharedAtomics(memory),
    });
    await job.started;
    return job;
  };
}

function limitsOf({
  tasks = 2,
  contexts = 4,
  laneBytes = LANE_BYTES_DEFAULT,
  heapBytes,
  trace,
}: LaunchOptions): Limits {
  return {
    tasks,
    contexts,
    laneBytes,
    heapBytes: heapBytes as number,
    regions: REGION_COUNT_DEFAULT,
    fifos: FIFO_COUNT_DEFAULT,
    slots: SLOT_COUNT_DEFAULT,
    traceEvents: trace === true ? TRACE_EVENTS : 0,
  };
}

/** Starts all tasks but the caller. It tells the job of their ends, and nobody else: that is what the network is for. */
function startMonitor(nodes: NetworkedJob, entry: string, events: MonitorEvents, close: () => void): Monitor {
  const running = new Set<number>();
  let isOver = false;

  function end(exit: TaskExit): void {
    if (!running.delete(exit.task)) return;
    // Who has left stays until all has been heard that it said.
    if (!(nodes.tasks[exit.task] as Networked).client.closed) nodes.end(exit.task);
    events.ended(exit, undefined);
  }

  function start({ client }: Networked, task: number): void {
    running.add(task);
    const fail = (thrown: unknown): void => {
      const { name = "Error", message = String(thrown), code, stack } = (thrown ?? {}) as Error & { code?: string };
      end({ task, code: 1, cause: "error", error: `${name}: ${message}`, errorCode: code, stack });
    };
    void current.run({ client, fail }, () =>
      import(/* @vite-ignore */ `${entry}&task=${task}`).then(() => end({ task, code: 0, cause: "exit" }), fail),
    );
  }

  function pump(): void {
    // The caller goes on alone, and hears only then that the others have ended.
    if (isOver && (nodes.tasks[CALLER] as Networked).client.closed) {
      close();
      return;
    }
    nodes.run(TURN_MICROSECONDS);
    setImmediate(pump);
  }

  for (const [task, node] of nodes.tasks.entries()) if (task !== CALLER) start(node, task);
  setImmediate(pump);
  queueMicrotask(() => events.started());
  return {
    start() {},
    adopt() {},
    close() {
      isOver = true;
      events.over("");
    },
    terminate(which) {
      for (const task of [...running]) {
        if (which !== "all" && which !== task) continue;
        nodes.end(task);
        end({ task, code: 1, cause: "terminated" });
      }
    },
    interrupt: (task) => {
      const { agent } = nodes.tasks[task] as Networked;
      agent.interrupt(agent.addresses.slotOf(task));
    },
    ref() {},
    unref() {},
  };
}
