// A job to be made: the options that launch() has checked, and the parts that it has opened and loaded.
import type { OpenKernel } from "../kernel/open.js";
import type { Limits } from "../memory/map.js";
import type { JobMemory } from "../node/memory.js";
import type { ProcessMemories } from "../process/process-memory.js";
import type { PrivateNodes } from "./attach.js";
import type { LaunchOptions } from "./launch-options.js";
import type { ProcessNodes } from "./node/process-nodes.js";
import type { TaskEntry } from "./tasks/monitor.js";

/** The code of the threads that a job has besides its tasks, and the kernels of a caller that joins. */
export interface Sources {
  readonly engine: string;
  readonly monitor: string;
  readonly process: string;
  readonly openKernel: OpenKernel;
}

export interface JobPlan {
  readonly entry: TaskEntry | null;
  /** Tasks with which the job begins, the caller included if it joins. */
  readonly count: number;
  readonly limits: Limits;
  readonly options: LaunchOptions;
  /** By task: the name of its Web Worker and Web Lock. */
  readonly names: readonly string[];
  readonly sources: Sources;
  /** In a browser: workers that load already. */
  readonly workers?: readonly Worker[];
  /** Where tasks share no memory and talk by ports. */
  readonly nodes?: PrivateNodes | undefined;
  /** Where the map lies in another program's memory. */
  readonly guest?: JobMemory | undefined;
  /** Where processes share the memory. */
  readonly processes?: ProcessMemories | undefined;
  /** The link that joins processes without shared memory. */
  readonly link?: ProcessNodes | undefined;
}

/** Whether each task is the main thread of a process, where processes share memory. Such a launcher does not join. */
export function areMain({ launcher, processes }: LaunchOptions, tasks: number): boolean {
  return launcher?.mainThreads === true && processes === tasks;
}
