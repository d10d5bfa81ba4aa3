// Records for other tasks how a process ends whose main thread is a task: by an error, or with its client open.
import { textsOf } from "../../core/thrown.js";
import type { Memory } from "../../kernel/kernel.js";
import { readMap } from "../../memory/map.js";
import { taskErrorsIn } from "../../node/liveness.js";
import { errorOf } from "../tasks/exit-error.js";

/**
 * Records the error or the exit code that ends this process, for the other tasks.
 * @param task its number in the job
 * @returns a function that ends the recording
 */
export function recordErrors(memory: Memory, job: number, task: number): () => void {
  const errors = taskErrorsIn(memory, readMap(memory, job));
  const record = (thrown: unknown): void => {
    errors.write(task, textsOf(thrown));
  };
  // An error that was recorded before stays.
  const recordExit = (code: number): void => {
    const end = errorOf({ task, code, cause: "exit" }, false);
    if (end !== undefined) errors.write(task, end);
  };
  process.on("uncaughtExceptionMonitor", record);
  process.on("exit", recordExit);
  return () => {
    process.off("uncaughtExceptionMonitor", record);
    process.off("exit", recordExit);
  };
}
