// The two halves of the sync point `pipe`, as functions of the shared words: a thread that falls asleep by reading its pipe, and
// a thread that rings it. Either the sleeper sees the ring, or the ringing thread sees the pipe.
import { TASK_BELL_OFFSET, TASK_PIPE_PROCESS_OFFSET } from "../../assembly/layout.js";
import type { SharedAtomics } from "../kernel/atomics.js";

/** The words of the shared memory. */
export type SharedWords = Pick<SharedAtomics, "loadWord" | "storeWord">;

/**
 * The thread of a task slot is about to sleep by its pipe.
 * @param seen its bell, from before the last look at what it waits for @param pid its process
 * @returns whether it was rung meanwhile: then it does not sleep
 */
export function pipeSleep(words: SharedWords, slot: number, seen: number, pid: number): boolean {
  words.storeWord(slot + TASK_PIPE_PROCESS_OFFSET, pid); // SYNC pipe (sleep): pairs with pipeOf().
  return words.loadWord(slot + TASK_BELL_OFFSET) !== seen;
}

/** The thread is awake. */
export function pipeAwake(words: SharedWords, slot: number): void {
  words.storeWord(slot + TASK_PIPE_PROCESS_OFFSET, 0);
}

/** The process of a thread that sleeps by its pipe; 0: it does not. The caller has changed its bell. */
export function pipeOf(words: SharedWords, slot: number): number {
  return words.loadWord(slot + TASK_PIPE_PROCESS_OFFSET); // SYNC pipe (ring): pairs with pipeSleep().
}
