// Puts a node of one task together: a memory of its own, and in it the transport that stands for the tasks of other memories.
import { TaskErrors } from "../core/task-errors.js";
import type { Kernel, Memory } from "../kernel/kernel.js";
import type { MemoryMap } from "../memory/map.js";
import { announceClose, interruptTask, markDead } from "../node/liveness.js";
import { Client } from "../pami/client.js";
import type { Task } from "../protocol/task.js";
import type { Courier } from "../transport/net/frames.js";
import { Ports } from "../transport/net/ports.js";
import { Relay } from "../transport/net/proxy.js";
import { type ClientParts, makeTask } from "./client.js";

/** What a node of one task is made from, besides its client's parts. */
export interface PrivateParts extends Omit<ClientParts, "remote"> {
  readonly kernel: Kernel;
  readonly memory: Memory;
  readonly map: MemoryMap;
  /** Carries what goes to other nodes. */
  readonly courier: Courier;
  /** Why nothing comes while the thread blocks. */
  readonly whyPrivate: string;
}

/** @throws PAMIR_CLOSED the task has a client already, or has ended */
export function makePrivateNode(parts: PrivateParts): {
  readonly client: Client;
  readonly task: Task;
  readonly relay: Relay;
} {
  const { kernel, memory, map, task: number } = parts;
  const relay = new Relay(kernel, memory, map, number, parts.courier, {
    markDead: (ended) => markDead(kernel, map, ended),
    retire: (ordinal) => announceClose(kernel, map, ordinal),
    interrupt: () => interruptTask(kernel, map, number),
  });
  const task = makeTask({ ...parts, kernel: relay.kernel, remote: relay });
  return { relay, task, client: new Client(task, parts.args, parts.onLeave) };
}

/** A node of one task whose frames go through the ports of channels. */
export interface PortsNode {
  readonly client: Client;
  readonly relay: Relay;
  readonly ports: Ports;
  /** The errors of dead tasks, as this node hears of them. */
  readonly errors: TaskErrors;
}

/** @param connect brings a port to another task @throws as makePrivateNode() */
export function makePortsNode(
  parts: Omit<PrivateParts, "courier" | "errors">,
  connect: (task: number, port: MessagePort) => void,
): PortsNode {
  const { map } = parts;
  const ports = new Ports(map, connect);
  const errors = new TaskErrors(new ArrayBuffer(TaskErrors.bytesFor(map.tasks)));
  return { ...makePrivateNode({ ...parts, courier: ports, errors }), ports, errors };
}
