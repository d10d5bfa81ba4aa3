// Puts a node together that shares no memory with other nodes: a memory of its own, its agent, and the clients of its tasks.
import { TaskErrors } from "../core/task-errors.js";
import type { Kernel, Memory } from "../kernel/kernel.js";
import type { MemoryMap } from "../memory/map.js";
import { Client } from "../pami/client.js";
import { lookAtSlots } from "../protocol/slots.js";
import type { Task } from "../protocol/task.js";
import { Agent } from "../transport/net/agent.js";
import type { Pipe } from "../transport/net/frames.js";
import { PortPipe } from "../transport/net/port-pipe.js";
import { type ClientParts, makeTask } from "./client.js";

/** Makes a node's agent, which works inline. The memory is laid out by nodeLimits(). */
export function makeAgent(kernel: Kernel, memory: Memory, map: MemoryMap, pipe: Pipe): Agent {
  return new Agent(kernel, memory, map, pipe, true);
}

/** A task of a node, and its client. */
export interface NodeTask {
  readonly client: Client;
  readonly task: Task;
}

/** @param parts `task` is the task's slot @throws PAMIR_CLOSED the task has a client already, or has ended */
export function makeNodeTask(parts: Omit<ClientParts, "remote" | "lookAtSlots">, agent: Agent): NodeTask {
  const task = makeTask({ ...parts, remote: agent, lookAtSlots });
  return { task, client: new Client(task, parts.args, parts.onLeave) };
}

/** A node of one task whose frames go through the ports of channels. */
export interface PortsNode {
  readonly client: Client;
  readonly agent: Agent;
  readonly ports: PortPipe;
  /** The errors of dead tasks, as this node hears of them. */
  readonly errors: TaskErrors;
}

/** @param connect brings a port to another task @throws as makeNodeTask() */
export function makePortsNode(
  parts: Omit<ClientParts, "task" | "remote" | "lookAtSlots" | "errors">,
  connect: (task: number, port: MessagePort) => void,
): PortsNode {
  const { kernel, memory, map } = parts;
  const ports = new PortPipe(connect);
  const errors = new TaskErrors(new ArrayBuffer(TaskErrors.bytesFor(map.jobTasks)));
  const agent = makeAgent(kernel, memory, map, ports);
  const { client } = makeNodeTask({ ...parts, task: 0, errors }, agent);
  return { client, agent, ports, errors };
}
