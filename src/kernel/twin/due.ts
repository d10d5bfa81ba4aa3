// Twin of assembly/due.ts: same functions, same order; see the comments there.
import {
  JOB_CONTEXTS_OFFSET,
  JOB_DUE_OFFSET,
  JOB_ENGINE_OFFSET,
  JOB_TASKS_BASE_OFFSET,
  TASK_CLOSED,
  TASK_SIZE,
  TASK_STATE_OFFSET,
} from "../../../assembly/layout.js";
import type { SharedAtomics } from "../atomics.js";
import type { Memory } from "../kernel.js";

export type Due = ReturnType<typeof twinDue>;

export function twinDue({ words }: Memory, { loadWord, ring, setBits }: SharedAtomics) {
  function taskOf(job: number, ordinal: number): number {
    const task = Math.floor((ordinal >>> 0) / (words[(job + JOB_CONTEXTS_OFFSET) >>> 2] as number));
    return ((words[(job + JOB_TASKS_BASE_OFFSET) >>> 2] as number) >>> 0) + task * TASK_SIZE;
  }

  function hasEnded(task: number): boolean {
    // SYNC task-state (look)
    return loadWord(task + TASK_STATE_OFFSET) >= TASK_CLOSED;
  }

  function engineThread(job: number): number {
    const engine = (words[(job + JOB_ENGINE_OFFSET) >>> 2] as number) >>> 0;
    return engine !== 0 && !hasEnded(engine) ? engine : 0;
  }

  function engineCall(job: number, ordinal: number): void {
    const engine = engineThread(job);
    if (engine === 0) {
      ring(taskOf(job, ordinal));
      return;
    }
    const word = job + JOB_DUE_OFFSET + ((ordinal >>> 5) << 2);
    const bit = 1 << (ordinal & 31);
    // SYNC engine-call (call)
    if ((loadWord(word) & bit) !== 0) return;
    setBits(word, bit);
    ring(engine);
  }

  return { taskOf, hasEnded, engineThread, engineCall };
}
