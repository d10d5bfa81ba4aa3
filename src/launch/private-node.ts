// Puts a node of one task together: a memory of its own, and in it the transport that stands for the tasks of other memories.
import { TaskErrors } from "../core/task-errors.js";
import { announceClose, interruptTask, markDead } from "../node/liveness.js";
import { Client } from "../pami/client.js";
import type { Task } from "../protocol/task.js";
import type { Pipe } from "../transport/net/frames.js";
import { PortPipe } from "../transport/net/port-pipe.js";
import { NetProxy } from "../transport/net/proxy.js";
import { type ClientParts, makeTask } from "./client.js";

/** What a node of one task is made from, besides its client's parts. */
export interface PrivateParts extends Omit<ClientParts, "remote"> {
  /** Carries what goes to other nodes. */
  readonly pipe: Pipe;
  /** Why nothing comes while the thread blocks. */
  readonly whyPrivate: string;
}

/** @throws PAMIR_CLOSED the task has a client already, or has ended */
export function makePrivateNode(parts: PrivateParts): {
  readonly client: Client;
  readonly task: Task;
  readonly proxy: NetProxy;
} {
  const { kernel, memory, map, task: number } = parts;
  const proxy = new NetProxy(kernel, memory, map, number, parts.pipe, {
    markDead: (ended) => markDead(kernel, map, ended),
    retire: (ordinal) => announceClose(kernel, map, ordinal),
    interrupt: () => interruptTask(kernel, map, number),
  });
  const task = makeTask({ ...parts, kernel: proxy.kernel, remote: proxy });
  return { proxy, task, client: new Client(task, parts.args, parts.onLeave) };
}

/** A node of one task whose frames go through the ports of channels. */
export interface PortsNode {
  readonly client: Client;
  readonly proxy: NetProxy;
  readonly ports: PortPipe;
  /** The errors of dead tasks, as this node hears of them. */
  readonly errors: TaskErrors;
}

/** @param connect brings a port to another task @throws as makePrivateNode() */
export function makePortsNode(
  parts: Omit<PrivateParts, "pipe" | "errors">,
  connect: (task: number, port: MessagePort) => void,
): PortsNode {
  const { map } = parts;
  const ports = new PortPipe(map, connect);
  const errors = new TaskErrors(new ArrayBuffer(TaskErrors.bytesFor(map.tasks)));
  return { ...makePrivateNode({ ...parts, pipe: ports, errors }), ports, errors };
}
