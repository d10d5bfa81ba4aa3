// Tasks that share no memory, all on this thread: a memory, a relay and a client for each; letters go through ports.
import { setImmediate as nextTurn } from "node:timers/promises";
import type { KernelName } from "../../src/core/kernel-name.js";
import { selectKernel } from "../../src/kernel/select.js";
import { makePrivateNode } from "../../src/launch/private-node.js";
import type { Limits, MemoryMap } from "../../src/memory/map.js";
import { makeRoom } from "../../src/node/memory.js";
import type { Client } from "../../src/pami/client.js";
import type { Task } from "../../src/protocol/task.js";
import { Ports } from "../../src/transport/net/ports.js";
import type { Relay } from "../../src/transport/net/proxy.js";

/** One task. */
export interface Relayed {
  readonly client: Client;
  readonly task: Task;
  readonly relay: Relay;
  readonly map: MemoryMap;
  /** Free pages of its heap. */
  free(): number;
}

/** A job of tasks that share no memory; close the clients that are left. */
export interface RelayedJob {
  readonly tasks: readonly Relayed[];
  /** Has letters that are under way arrive, or come closer. */
  turn(): Promise<void>;
  /** A task ends without a word. */
  end(task: number): void;
}

/** Letters go through the ports of channels. */
export function portsJob(limits: Limits, kernels: readonly KernelName[]): RelayedJob {
  const tasks: Relayed[] = [];
  const all: Ports[] = [];
  const end = (ended: number, hasLeft: boolean): void => {
    for (const { relay } of tasks) if (relay.task !== ended) relay.ended(ended, hasLeft);
  };
  for (let task = 0; task < limits.tasks; task++) {
    const kernel = kernels[task % kernels.length] as KernelName;
    const { map, shared, memory } = makeRoom({ limits, isFixed: true, base: 0 }, kernel === "wasm");
    const inner = selectKernel(kernel, shared, memory);
    const ports = new Ports(map, (to, port) => (all[to] as Ports).accept(task, port));
    const parts = { kernel: inner, memory, map, task, courier: ports, whyPrivate: "a test" };
    const node = makePrivateNode({ ...parts, onLeave: () => end(task, true) });
    all.push(ports);
    tasks.push({ ...node, map, free: () => inner.heapFreePages(map.job) });
  }
  return { tasks, turn: () => nextTurn(), end: (task) => end(task, false) };
}
