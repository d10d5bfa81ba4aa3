// Starts the agent of a process's node: on a thread of its own, or (inline-agent.ts) on the thread of the process's task.
import type { PamiError } from "../../core/error.js";
import { sharedAtomics } from "../../kernel/atomics.js";
import type { Kernel, Memory } from "../../kernel/kernel.js";
import { openMemory } from "../../kernel/open.js";
import type { Address } from "../../link/link.js";
import { readMap, taskSlot } from "../../memory/map.js";
import { sleepOn } from "../../node/bell.js";
import { hasEngineThread, interruptTask, markEngineDead } from "../../node/liveness.js";
import { taskFutexOf } from "../../process/process-memory.js";
import { systemClock } from "../../support/clock.js";
import type { NodePort } from "../../support/host.js";
import type { RemoteAgent } from "../../transport/transport.js";
import type { LinkAgentOrder, LinkAgentReport } from "./link-agent.js";
import type { ProcessNodeOrder, ProcessNodeSetup } from "./process-node.js";
import { startWorker } from "./start-worker.js";

/** Parts for the task whose thread has the agent. */
export interface InlineParts {
  readonly kernel: Kernel;
  readonly remote: RemoteAgent;
  readonly whyPrivate: string;
}

/** An agent that has opened its link. */
export interface StartedAgent {
  readonly address: string;
  /** Resolves once the agent serves the tasks of its node; with parts, if the agent serves on the thread of the node's task. */
  serve(addresses: readonly (Address | null)[]): Promise<InlineParts | undefined>;
  /** Ends an agent that does not serve, or whose job failed to start. The agent then no longer keeps this process running. */
  close(): Promise<void>;
  /** Keeps this process running until all tasks of the node have ended, and resolves then. */
  outlive(): Promise<void>;
  /** Sends the agent an order. Ports are transferred. */
  order(order: ProcessNodeOrder, ports?: NodePort[]): void;
}

/** A node's memory, for its task or for the threads beside it. */
export function memoryOf({ shared, futex }: Pick<ProcessNodeSetup, "shared" | "futex">): Memory {
  return openMemory(shared, futex && taskFutexOf(futex, shared as WebAssembly.Memory, false));
}

/** Starts the thread of a node's agent. @throws PAMIR_ADDRESS its link does not open */
export async function startAgent(setup: ProcessNodeSetup): Promise<StartedAgent> {
  const { agentSource } = await import("../../generated/agent.js");
  const worker = startWorker(agentSource, { workerData: setup, name: "pamir agent" });
  let fail: (error: Error) => void = () => {};
  worker.on("error", (error) => fail(error));
  /** The next report of the agent. */
  const next = <Report extends LinkAgentReport>(): Promise<Report> =>
    new Promise((resolve, reject) => {
      fail = reject;
      worker.once("message", resolve);
    });
  const ended = new Promise<void>((resolve) => worker.once("exit", () => resolve()));
  const { address } = await next<{ address: string }>();
  let isServing = false;
  return {
    address,
    async close() {
      if (isServing) return void interruptAgent(setup);
      worker.postMessage({ close: true } satisfies LinkAgentOrder);
      await ended;
    },
    order: (order, ports = []) => worker.postMessage(order, ports),
    outlive() {
      worker.ref();
      return ended;
    },
    async serve(addresses) {
      isServing = true;
      worker.postMessage({ addresses } satisfies LinkAgentOrder);
      await next();
      worker.unref();
      const stop = (): void => stopAgent(setup);
      process.once("exit", stop);
      worker.once("exit", () => process.off("exit", stop));
      // An agent that fails does not end the tasks: its slot tells the tasks that they are cut off. But if another node has
      // given this node up, this node counts as ended there: so its tasks end.
      fail = (error) => {
        process.off("exit", stop);
        if ((error as PamiError).code === "PAMIR_GIVEN_UP") throw error;
        process.emitWarning(`pamir: the agent of node ${setup.node} has ended: ${error.message}`);
        const memory = memoryOf(setup);
        markEngineDead(sharedAtomics(memory), readMap(memory, setup.job));
      };
      return undefined;
    },
  };
}

/**
 * Milliseconds for which an agent awaits the last acknowledgments at the most: of a node that is stopped, or cut off. With
 * 2,000, tasks of a slow host missed messages of tasks that had left.
 */
export const ACKNOWLEDGE_MS = 10_000;
/** Milliseconds for which a process that exits waits for its agent at the most. */
const EXIT_MS = ACKNOWLEDGE_MS + 1000;

/** The agent ends its turns, and the node leaves. Returns the node's memory. */
function interruptAgent(setup: ProcessNodeSetup) {
  const memory = memoryOf(setup);
  const map = readMap(memory, setup.job);
  const sync = sharedAtomics(memory);
  interruptTask(sync, map, map.tasks);
  return { memory, map, sync };
}

/**
 * At the exit of its process the agent sends its queued frames, and ends. Otherwise frames would be lost, and Node 20 aborts a
 * process that exits while a worker receives datagrams.
 */
function stopAgent(setup: ProcessNodeSetup): void {
  const { memory, map, sync } = interruptAgent(setup);
  // The agent notifies this process's task of its end.
  const slot = taskSlot(map, 0);
  const end = systemClock.now() + EXIT_MS;
  for (let left = EXIT_MS; left > 0; left = end - systemClock.now()) {
    const seen = sync.bellArm(slot);
    if (!hasEngineThread(sync, map)) return;
    sleepOn(sync, memory, slot, seen, left);
  }
}
