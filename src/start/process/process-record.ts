// Which process runs which task, in the task slots of a job whose tasks go on without their launcher. Each process finds the
// other processes there once the launcher has ended. A task whose process is not recorded by then has ended. A process that
// comes too late for the record ends.
import {
  JOB_STARTED_OFFSET,
  NONE,
  TASK_DEAD,
  TASK_PROCESS_OFFSET,
  TASK_PROCESS_STARTED_OFFSET,
  TASK_STATE_OFFSET,
  TASK_TOLD_OFFSET,
} from "../../../assembly/layout.js";
import type { SharedAtomics } from "../../kernel/atomics.js";
import { type MemoryMap, taskSlot } from "../../memory/map.js";
import { noProcesses } from "../../process/ffi.js";
import { type ProcessIdentity, startTimeOf } from "../../process/identity.js";

type Sync = Pick<SharedAtomics, "loadWord" | "storeWord" | "exchangeIf">;

/** The tasks of one process. Without a process, the tasks never come. */
export interface RecordedTasks {
  readonly process: ProcessIdentity | undefined;
  readonly tasks: readonly number[];
}

/**
 * Records the process of a task. The launcher records a process that it has started, and the process records itself, since the
 * launcher may die in between.
 * @returns false: other tasks have learned already that the task never comes
 */
export function recordProcess(sync: Sync, map: MemoryMap, task: number, pid: number): boolean {
  const slot = taskSlot(map, task);
  sync.storeWord(slot + TASK_PROCESS_STARTED_OFFSET, startTimeOf(pid));
  // SYNC process (record): pairs with recordedTasks().
  const known = sync.exchangeIf(slot + TASK_PROCESS_OFFSET, 0, pid);
  return known === 0 || known === pid;
}

/** In a process of a task: records this process. @throws PAMIR_NO_PROCESSES if the process comes too late */
export function recordOwnProcess(sync: Sync, map: MemoryMap, task: number, launcher: ProcessIdentity): void {
  if (recordProcess(sync, map, task, process.pid)) return;
  throw noProcesses(`process ${launcher.pid}, which started this one for task ${task}, had ended before it was known`);
}

/** The launcher has ended: the tasks whose ends other tasks may not know, grouped by process. */
export function recordedTasks(sync: Sync, map: MemoryMap): RecordedTasks[] {
  const started = sync.loadWord(map.job + JOB_STARTED_OFFSET);
  const byProcess = new Map<number, { process: ProcessIdentity | undefined; tasks: number[] }>();
  for (let task = 0; task < map.locals; task++) {
    const slot = taskSlot(map, task);
    // SYNC process (give up): pairs with recordProcess().
    const pid = sync.exchangeIf(slot + TASK_PROCESS_OFFSET, 0, NONE | 0);
    const isRecorded = pid !== 0 && pid !== (NONE | 0);
    if (!isRecorded && task >= started) continue;
    const isDead = sync.loadWord(slot + TASK_STATE_OFFSET) === TASK_DEAD;
    if (isDead && sync.loadWord(slot + TASK_TOLD_OFFSET) !== 0) continue;
    const since = sync.loadWord(slot + TASK_PROCESS_STARTED_OFFSET) >>> 0;
    const known = byProcess.get(isRecorded ? pid : 0);
    if (known !== undefined) known.tasks.push(task);
    else if (isRecorded) byProcess.set(pid, { process: { pid, started: since }, tasks: [task] });
    else byProcess.set(0, { process: undefined, tasks: [task] });
  }
  return [...byProcess.values()];
}
