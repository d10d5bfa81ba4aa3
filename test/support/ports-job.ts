// Tasks that share no memory, all on this thread: a memory, a proxy and a client for each; frames go through ports.
import { setImmediate as nextTurn } from "node:timers/promises";
import type { KernelName } from "../../src/core/kernel-name.js";
import { selectKernel } from "../../src/kernel/select.js";
import { makePrivateNode } from "../../src/launch/private-node.js";
import type { Limits, MemoryMap } from "../../src/memory/map.js";
import { makeJobMemory } from "../../src/node/memory.js";
import type { Client } from "../../src/pami/client.js";
import type { Task } from "../../src/protocol/task.js";
import { PortPipe } from "../../src/transport/net/port-pipe.js";
import type { NetProxy } from "../../src/transport/net/proxy.js";

/** One task. */
export interface PrivateTask {
  readonly client: Client;
  readonly task: Task;
  readonly proxy: NetProxy;
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

/** Frames go through the ports of channels. */
export function portsJob(limits: Limits, kernels: readonly KernelName[]): PrivateJob {
  const tasks: PrivateTask[] = [];
  const all: PortPipe[] = [];
  const end = (ended: number, hasLeft: boolean): void => {
    for (const { proxy } of tasks) if (proxy.task !== ended) proxy.ended(ended, hasLeft);
  };
  for (let task = 0; task < limits.tasks; task++) {
    const kernel = kernels[task % kernels.length] as KernelName;
    const { map, shared, memory } = makeJobMemory({ limits, isFixed: true, base: 0 }, kernel === "wasm");
    const inner = selectKernel(kernel, shared, memory);
    const ports = new PortPipe(map, (to, port) => (all[to] as PortPipe).accept(task, port));
    const parts = { kernel: inner, memory, map, task, pipe: ports, whyPrivate: "a test" };
    const node = makePrivateNode({ ...parts, onLeave: () => end(task, true) });
    all.push(ports);
    tasks.push({ ...node, map, free: () => inner.heapFreePages(map.job) });
  }
  return { tasks, turn: () => nextTurn(), end: (task) => end(task, false) };
}
