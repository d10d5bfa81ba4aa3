// The thread that does the engine's work: the engine thread if the job has one, else the context's own task.
import {
  JOB_CONTEXTS_OFFSET,
  JOB_DUE_OFFSET,
  JOB_ENGINE_OFFSET,
  JOB_TASKS_BASE_OFFSET,
  TASK_CLOSED,
  TASK_SIZE,
  TASK_STATE_OFFSET,
} from "./layout";
import { loadWord, ring, setBits } from "./sync";

/** Pointer to the task slot of an endpoint's ordinal. */
export function taskOf(job: usize, ordinal: u32): usize {
  return load<usize>(job, JOB_TASKS_BASE_OFFSET) + (ordinal / load<u32>(job, JOB_CONTEXTS_OFFSET)) * TASK_SIZE;
}

/** Whether the owner of a task slot has ended. Its memory may be reused soon. */
export function hasEnded(task: usize): bool {
  // SYNC task-state (look): pairs with the store of the task or the monitor.
  return loadWord(task + TASK_STATE_OFFSET) >= TASK_CLOSED;
}

/** Pointer to the slot of the engine thread. 0: there is none, or it has ended; then each task is its own engine. */
export function engineThread(job: usize): usize {
  const engine = load<usize>(job, JOB_ENGINE_OFFSET);
  return engine != 0 && !hasEnded(engine) ? engine : 0;
}

/** Asks the engine to look at a context, given its ordinal. Call it after the store that makes the work visible. */
export function engineCall(job: usize, ordinal: u32): void {
  const engine = engineThread(job);
  if (engine == 0) {
    ring(taskOf(job, ordinal));
    return;
  }
  const word = job + JOB_DUE_OFFSET + ((ordinal >>> 5) << 2);
  const bit: u32 = 1 << (ordinal & 31);
  // SYNC engine-call (call): pairs with engineServe(), which clears the bit and then looks once more. The caller's store
  // precedes this load: if the bit is still set, that look is yet to come.
  if ((loadWord(word) & bit) != 0) return;
  setBits(word, bit);
  ring(engine);
}
