// How a thread that may block sleeps on its bell: by Atomics.wait(), or by a futex where processes share the memory.
import { TASK_BELL_OFFSET, TASK_PARKED_OFFSET } from "../../assembly/layout.js";
import type { Kernel, Memory } from "../kernel/kernel.js";

/**
 * Sleeps until the bell no longer reads `seen`, or for `milliseconds` (Infinity: without a limit). It may return earlier, so
 * the caller looks again at what it waits for.
 */
export function sleepOn(
  kernel: Pick<Kernel, "bellWait" | "loadWord">,
  { futex }: Memory,
  slot: number,
  seen: number,
  milliseconds: number,
): void {
  // SYNC park (sleep): pairs with ringAlways().
  if (futex === undefined) {
    kernel.bellWait(slot, seen, milliseconds === Number.POSITIVE_INFINITY ? -1 : milliseconds);
    return;
  }
  let left = milliseconds;
  let slept = 0;
  do {
    slept = futex.wait(slot + TASK_BELL_OFFSET, seen, left);
    left -= slept;
    // SYNC park (asleep): pairs with ring(). If the flag is down, a ring follows. But the process that has taken the flag
    // down may be stopped first, and then no other process rings: so the caller looks again.
  } while (slept > 0 && left > 0 && kernel.loadWord(slot + TASK_PARKED_OFFSET) !== 0);
}
