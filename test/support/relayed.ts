// Tasks that share no memory, all on this thread: a memory, a relay and a client for each.
import type { KernelName } from "../../src/kernel/kernel.js";
import { selectKernel } from "../../src/kernel/select.js";
import { bury } from "../../src/launch/bury.js";
import { makeRoom } from "../../src/launch/room.js";
import type { Limits, MemoryMap } from "../../src/memory/map.js";
import { Client } from "../../src/pami/client.js";
import { interruptTask, tellOfClose } from "../../src/pami/notice.js";
import { Ports } from "../../src/transport/ports.js";
import { Relay } from "../../src/transport/relay.js";

/** One task. */
export interface Relayed {
  readonly client: Client;
  readonly relay: Relay;
  readonly ports: Ports;
  readonly map: MemoryMap;
  /** Free pages of its heap. */
  free(): number;
}

/** A job of such tasks; `close()` what is left of them. */
export function relayedJob(limits: Limits, kernels: readonly KernelName[]): Relayed[] {
  const tasks: Relayed[] = [];
  for (let task = 0; task < limits.tasks; task++) {
    const kernel = kernels[task % kernels.length] as KernelName;
    const { map, shared, memory } = makeRoom({ limits, isFixed: true, base: 0 }, kernel === "wasm");
    const inner = selectKernel(kernel, shared, memory);
    const ports = new Ports(map.contexts, (to, port) => (tasks[to] as Relayed).ports.accept(task, port));
    const relay = new Relay(inner, memory, map, task, ports, {
      bury: (ended) => bury(inner, map, ended),
      retire: (ordinal) => tellOfClose(inner, map, ordinal),
      interrupt: () => interruptTask(inner, map, task),
    });
    const parts = { kernel: relay.kernel, memory, map, task, args: undefined, relay, whyRelay: "a test" };
    const onLeave = () => end(tasks, task, true);
    tasks.push({
      client: new Client({ ...parts, onLeave }),
      relay,
      ports,
      map,
      free: () => inner.heapFreePages(map.job),
    });
  }
  return tasks;
}

/** Tells all the others that a task has ended. */
export function end(tasks: readonly Relayed[], task: number, hasLeft: boolean): void {
  for (const { relay } of tasks) if (relay.task !== task) relay.ended(task, hasLeft);
}
