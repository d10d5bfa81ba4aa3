// What the processes of a job share, found out before it is launched: a memory, or else a link. Only for Node.
import type { PamiError } from "../core/error.js";
import type { KernelName } from "../core/kernel-name.js";
import { memoryMap } from "../memory/map.js";
import { HEAP_BYTES_LEAST } from "../node/memory.js";
import { checkMaySpawn, ProcessMemories, probeProcesses } from "../process/process-memory.js";
import { noteProcesses } from "./info.js";
import { checkLimits } from "./limits.js";
import type { Link, NodeOptions } from "./linked.js";

/** A memory, or a link; neither if the job's tasks are threads of this process. */
export interface Shared {
  readonly processes?: ProcessMemories;
  readonly link?: Link;
}

/** Options of `launch`. */
type ProcessOptions = NodeOptions & {
  readonly maxTasks?: number | undefined;
  readonly join?: boolean | undefined;
  readonly top?: boolean | undefined;
  readonly memoryBase?: number | undefined;
};

let hasWarned = false;

/** @param kernel of the first task @throws PAMIR_NO_PROCESSES */
export async function openProcesses(options: ProcessOptions, tasks: number, kernel: KernelName): Promise<Shared> {
  checkMaySpawn();
  const { end } = memoryMap(
    { ...checkLimits(options, tasks), heapBytes: options.heapBytes ?? HEAP_BYTES_LEAST },
    options.memoryBase ?? 0,
  );
  const failure = whyNoMemory(end);
  noteProcesses(failure?.message ?? "");
  if (failure === undefined) return { processes: new ProcessMemories() };
  const { message } = failure;
  const { maxTasks = tasks, join = false } = options;
  // The caller alone has no node to be joined with, and its monitor ends at once.
  if (join && maxTasks === 1) return {};
  if (!hasWarned) process.emitWarning(`${message}; a link on loopback joins them instead`, { code: "PAMIR_LINK" });
  hasWarned = true;
  const { openLink } = await import("./linked.js");
  return { link: await openLink({ world: tasks, most: maxTasks }, options, kernel, join) };
}

/** @param least bytes of the smallest memory that will do */
function whyNoMemory(least: number): PamiError | undefined {
  try {
    probeProcesses(least);
    return undefined;
  } catch (error) {
    if ((error as PamiError).code === "PAMIR_NO_PROCESSES") return error as PamiError;
    throw error;
  }
}
