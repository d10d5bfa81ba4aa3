// Makes a client, with its transport and its observers.
import type { TaskErrors } from "../core/task-errors.js";
import type { Kernel, Memory } from "../kernel/kernel.js";
import type { MemoryMap } from "../memory/map.js";
import { SlotTable } from "../node/address.js";
import { Tracer } from "../node/tracer.js";
import { Debug, type DebugLimits } from "../observe/debug.js";
import { dumpJob } from "../observe/dump.js";
import { observersOf } from "../observe/observers.js";
import { Client, type OnLeave } from "../pami/client.js";
import type { LookAtSlots } from "../protocol/slots.js";
import { Task } from "../protocol/task.js";
import { type Clock, systemClock } from "../support/clock.js";
import { sharedMemory } from "../transport/shm/shm.js";
import type { RemoteAgent } from "../transport/transport.js";

/** The parts of a client. */
export interface ClientParts {
  readonly kernel: Kernel;
  readonly memory: Memory;
  readonly map: MemoryMap;
  /** Slot of the task in the node's tables. */
  readonly task: number;
  readonly args?: unknown;
  readonly rank?: number | undefined;
  /** Debug mode: warns of regions that are never closed, and of code that takes long. */
  readonly debug?: DebugLimits | undefined;
  readonly clock?: Clock;
  /** Called once this task has left the job. */
  readonly onLeave?: OnLeave | undefined;
  /** If this task shares no memory with other tasks: the agent that stands for them, and the reason. */
  readonly remote?: RemoteAgent;
  readonly whyPrivate?: string | undefined;
  /** If tasks of other nodes have slots: looks at those slots. */
  readonly lookAtSlots?: LookAtSlots | undefined;
  /** The task's end of a channel to the launching thread. */
  readonly port?: MessagePort | undefined;
  /** The errors of dead tasks. */
  readonly errors?: TaskErrors | undefined;
}

/** Makes the part that the contexts of a task share. @throws PAMIR_CLOSED the task is up already, or has ended */
export function makeTask(parts: Omit<ClientParts, "args" | "rank" | "onLeave">): Task {
  const { kernel, memory, map, task, clock = systemClock, remote, whyPrivate, errors, lookAtSlots, port } = parts;
  const tracer = map.traceEvents > 0 ? new Tracer(memory, map, task, clock) : undefined;
  const debug = parts.debug && new Debug(parts.debug, clock, () => dumpJob(map, memory, kernel, clock));
  const number = new SlotTable(kernel, memory, map).numberOf(task);
  const observers = observersOf(number, tracer, debug);
  const transport = sharedMemory(kernel, memory, map, task, remote);
  return new Task({ kernel, memory, map, task, transport, clock, observers, errors, whyPrivate, lookAtSlots, port });
}

/** @throws PAMIR_CLOSED the task has a client already, or has ended */
export function makeClient(parts: ClientParts): Client {
  return new Client(makeTask(parts), parts.args, parts.onLeave, parts.rank);
}
