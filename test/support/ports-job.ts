// Tasks that share no memory, all on this thread: a memory, an agent and a client for each; frames go through ports.
import { setImmediate as nextTurn } from "node:timers/promises";
import type { KernelName } from "../../src/core/kernel-name.js";
import type { Kernel } from "../../src/kernel/kernel.js";
import { selectKernel } from "../../src/kernel/select.js";
import type { Limits, MemoryMap } from "../../src/memory/map.js";
import { nodeLimits } from "../../src/node/limits.js";
import { makeJobMemory } from "../../src/node/memory.js";
import type { DebugLimits } from "../../src/observe/debug.js";
import type { Client } from "../../src/pami/client.js";
import type { Task } from "../../src/protocol/task.js";
import { makeNodeTask } from "../../src/start/node/private-node.js";
import { Agent } from "../../src/transport/net/agent.js";
import { PortPipe } from "../../src/transport/net/port-pipe.js";

/** One task. */
export interface PrivateTask {
  readonly client: Client;
  readonly task: Task;
  readonly agent: Agent;
  readonly map: MemoryMap;
  /** Free pages of its heap. */
  free(): number;
}

/** A job of tasks that share no memory; close the clients that are left. */
export interface PrivateJob {
  readonly tasks: readonly PrivateTask[];
  /** Has frames that are under way arrive, or come closer. */
  turn(): Promise<void>;
  /** A task ends without a word. */
  end(task: number): void;
}

/**
 * Frames go through the ports of channels.
 * @param around what a task has instead of its kernel, which its agent has
 * @param debug debug mode
 */
export function portsJob(
  limits: Limits,
  kernels: readonly KernelName[],
  around: (kernel: Kernel, task: number) => Kernel = (kernel) => kernel,
  debug?: DebugLimits,
): PrivateJob {
  const tasks: PrivateTask[] = [];
  const all: PortPipe[] = [];
  const end = (ended: number, hasLeft: boolean): void => {
    for (const [task, { agent }] of tasks.entries()) if (task !== ended) agent.ended(ended, hasLeft);
  };
  for (let task = 0; task < limits.tasks; task++) {
    const name = kernels[task % kernels.length] as KernelName;
    const ownLimits = nodeLimits(limits, 1, limits.tasks - 1);
    const { map, shared, memory } = makeJobMemory(
      { limits: ownLimits, isFixed: true, base: 0, first: task },
      name === "wasm",
    );
    const kernel = selectKernel(name, shared, memory);
    const ports = new PortPipe((to, port) => (all[to] as PortPipe).accept(task, port));
    const agent = new Agent(kernel, memory, map, ports, true);
    const own = around(kernel, task);
    const parts = { kernel: own, memory, map, task: 0, debug, whyPrivate: "a test", onLeave: () => end(task, true) };
    all.push(ports);
    tasks.push({ ...makeNodeTask(parts, agent), agent, map, free: () => kernel.heapFreePages(map.job) });
  }
  return { tasks, turn: () => nextTurn(), end: (task) => end(task, false) };
}
