// Makes a node that shares no memory with other nodes: its memory, its agent, and the clients of its tasks.
import { JOB_STARTED_OFFSET, JOB_WORLD_OFFSET } from "../../../assembly/layout.js";
import { TaskErrors } from "../../core/task-errors.js";
import { dumpData } from "../../observe/dump.js";
import { recorded } from "../../observe/trace.js";
import { Client } from "../../pami/client.js";
import { lookAtSlots } from "../../protocol/slots.js";
import type { Task } from "../../protocol/task.js";
import { systemClock } from "../../support/clock.js";
import { Agent } from "../../transport/net/agent.js";
import { PortPipe } from "../../transport/net/port-pipe.js";
import { type ClientParts, makeTask } from "../client.js";
import type { Hear, TellLauncher } from "../tasks/switchboard.js";

export { nodeLimits } from "../../node/limits.js";
export { makeJobMemory } from "../../node/memory.js";
export { lookAtSlots } from "../../protocol/slots.js";
export { Switchboard } from "../tasks/switchboard.js";

/** A task of a node, and its client. */
export interface NodeTask {
  readonly client: Client;
  readonly task: Task;
}

/** @param parts `task` is the task's slot @throws PAMIR_CLOSED the task has a client already, or has ended */
export function makeNodeTask(parts: Omit<ClientParts, "remote" | "lookAtSlots">, agent: Agent): NodeTask {
  const task = makeTask({ ...parts, remote: agent, lookAtSlots });
  return { task, client: new Client(task, parts.args, parts.onLeave, parts.rank) };
}

/** A node of one task whose frames go through the ports of channels. */
export interface PortsNode {
  readonly client: Client;
  /** Takes news from the thread that launched the job. */
  readonly hear: Hear;
}

/**
 * @param started tasks of the job so far
 * @param tell sends a report to the thread that launched the job
 * @throws as makeNodeTask()
 */
export function makePortsNode(
  parts: Omit<ClientParts, "task" | "remote" | "lookAtSlots" | "errors">,
  started: number,
  tell: TellLauncher,
): PortsNode {
  const { kernel, memory, map } = parts;
  const ports = new PortPipe((connect, port) => tell({ connect }, [port]));
  const errors = new TaskErrors(new ArrayBuffer(TaskErrors.bytesFor(map.jobTasks)));
  const agent = new Agent(kernel, memory, map, ports, true);
  kernel.storeWord(map.job + JOB_STARTED_OFFSET, started);
  kernel.storeWord(map.job + JOB_WORLD_OFFSET, started);
  const { client } = makeNodeTask({ ...parts, task: 0, errors }, agent);
  const hear: Hear = (news, [port]) => {
    if ("from" in news) ports.accept(news.from, port as MessagePort);
    else if ("ended" in news) {
      if (news.error !== undefined) errors.write(news.ended, news.error);
      agent.ended(news.ended, news.hasLeft);
    } else if ("ask" in news) {
      const isTrace = news.what === "trace";
      const given = isTrace
        ? recorded(map, memory, kernel, 0, news.events)
        : dumpData(map, memory, kernel, systemClock);
      tell({ answer: news.ask, given });
    } else if ("started" in news) agent.hasStarted(news.started - 1);
    else if ("interrupt" in news) agent.interrupt(0);
    else client.close();
  };
  return { client, hear };
}
