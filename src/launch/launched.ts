// attach() in the main thread of a process that `pamir run` has started for one task. It takes no messages: the process
// inherits the memory, and a variable says the rest.
import { openMemory } from "../kernel/select.js";
import { noProcesses, openFfi } from "../process/ffi.js";
import { mapProcessMemory } from "../process/mapping.js";
import { taskFutexOf } from "../process/process-memory.js";
import { nodeModule } from "../support/host.js";
import { LAUNCHED, type LaunchedTask } from "./bootstrap.js";
import type { Joined } from "./joined.js";
import { recordErrors } from "./record-errors.js";

/** @throws PAMIR_NO_PROCESSES */
export function joinLaunched(text: string): Joined {
  // Processes that this one starts are no tasks.
  delete process.env[LAUNCHED];
  const { start, memory: setup, parent } = JSON.parse(text) as LaunchedTask;
  if (parent !== undefined) openFfi(setup.ffi).dieWithParent();
  if (parent !== undefined && process.ppid !== parent)
    throw noProcesses(`process ${parent}, which started this one, has ended`);
  const { shared, futex } = mapProcessMemory(setup, start.job);
  (nodeModule("fs") as typeof import("node:fs")).closeSync(setup.descriptor);
  const memory = openMemory(shared, taskFutexOf(futex, shared, false));
  const onLeave = recordErrors(memory, start.job, start.task);
  return { start: { ...start, memory: shared, futex }, memory, lookAtSlots: undefined, onLeave, agent: undefined };
}
