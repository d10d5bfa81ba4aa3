// Finds out before a launch how the processes of a job are joined: by a memory, or else by a link. Only for Node.
import type { KernelName } from "../../core/kernel-name.js";
import { checkMaySpawn, ProcessMemories, whyNoProcesses } from "../../process/process-memory.js";
import { noteProcesses } from "../info.js";
import type { NodeOptions, ProcessNodes } from "../node/process-nodes.js";
import { leastBytes } from "./least-memory.js";

/** A memory or a link; undefined fields if the job's tasks are threads of this process. */
export interface SharedProcesses {
  readonly processes?: ProcessMemories;
  readonly link?: ProcessNodes;
}

/** Options of `launch`. */
type ProcessOptions = NodeOptions & {
  readonly maxTasks?: number | undefined;
  readonly join?: boolean | undefined;
  readonly top?: boolean | undefined;
  readonly memoryBase?: number | undefined;
};

let hasWarned = false;

/**
 * @param kernel of the first task
 * @param entry URL of the task module, beside which koffi may lie
 * @throws PAMIR_NO_PROCESSES; PAMIR_INVAL, PAMIR_LINK_MODULE, PAMIR_ADDRESS `link` is none that joins processes here
 */
export async function openProcesses(
  options: ProcessOptions,
  tasks: number,
  kernel: KernelName,
  entry?: string,
): Promise<SharedProcesses> {
  checkMaySpawn();
  const packages =
    options.link === undefined
      ? undefined
      : await (await import("../node/process-nodes.js")).packagesOfLink(options.link);
  const failure = whyNoProcesses(leastBytes(options, tasks), entry);
  noteProcesses(failure?.message ?? "");
  if (failure === undefined) return { processes: new ProcessMemories(entry) };
  const { message } = failure;
  const { maxTasks = tasks, join = false } = options;
  // A caller without other tasks has no node to join, and its monitor ends at once.
  if (join && maxTasks === 1) return {};
  if (!hasWarned) process.emitWarning(`${message}; a link on loopback joins them instead`, { code: "PAMIR_LINK" });
  hasWarned = true;
  const { makeProcessNodes } = await import("../node/process-nodes.js");
  return { link: await makeProcessNodes({ world: tasks, most: maxTasks }, { ...options, packages }, kernel, join) };
}
