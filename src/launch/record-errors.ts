// The error that ends a process whose main thread is a task: recorded for the other tasks.
import { textsOf } from "../core/thrown.js";
import type { Memory } from "../kernel/kernel.js";
import { readMap } from "../memory/map.js";
import { taskErrorsIn } from "../node/memory.js";

/** Records the error that ends this process, for the others. Returns what ends that. @param task its number in the job */
export function recordErrors(memory: Memory, job: number, task: number): () => void {
  const errors = taskErrorsIn(memory, readMap(memory, job));
  const record = (thrown: unknown): void => {
    errors.write(task, textsOf(thrown));
  };
  process.on("uncaughtExceptionMonitor", record);
  return () => process.off("uncaughtExceptionMonitor", record);
}
