// Tasks that are processes find each other by PMI-1, which this launcher serves, on this machine and on others.
import type { Duplex } from "node:stream";
import { StreamLines } from "../../bootstrap/lines.js";
import { PmiServer } from "../../bootstrap/pmi-server.js";
import { PlainFraming } from "../../bootstrap/pmi-wire.js";
import type { ProcessJob } from "./job.js";
import { PMI_FD } from "./processes.js";
import type { LaunchedTask } from "./task.js";
import { missingTasks, reportWaits } from "./waiting.js";

/** Where a task runs. */
export interface TaskPlace {
  /** Tasks of the job. */
  readonly size: number;
  /** Its place among the tasks of its host, from 0, and how many these are. */
  readonly place: number;
  readonly count: number;
  /** Tasks of a node. */
  readonly perNode: number;
}

/** The variables by which a task's attach() finds this launcher. */
export function variablesOf(task: number, { size, place, count, perNode }: TaskPlace): Record<string, string> {
  return {
    PMI_FD: `${PMI_FD}`,
    PMI_RANK: `${task}`,
    PMI_SIZE: `${size}`,
    MPI_LOCALRANKID: `${place}`,
    MPI_LOCALNRANKS: `${count}`,
    PAMIR_NODE: `${Math.floor(task / perNode)}`,
  };
}

/** Serves all tasks of a job, until they have ended. @param timeout of a barrier, in milliseconds @returns the exit code */
export async function serveTasks(
  job: ProcessJob,
  tasks: readonly (LaunchedTask & { readonly pmi: Duplex | undefined })[],
  timeout: number,
): Promise<number> {
  const size = tasks.length;
  const server = new PmiServer({ size, kvsname: `pamir_${process.pid}`, barrierTimeout: timeout });
  for (const { task, pmi } of tasks) {
    if (pmi !== undefined) server.serve(new StreamLines(pmi, new PlainFraming()), task);
  }
  const stopReports = reportWaits(() => missingTasks(server.silent, job.running, size));
  try {
    return await job.run(tasks);
  } finally {
    stopReports();
    server.close();
  }
}
