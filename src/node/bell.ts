// How a thread that may block sleeps on its bell: by Atomics.wait(), or by a futex where processes share the memory.
import { TASK_BELL_OFFSET } from "../../assembly/layout.js";
import type { Kernel, Memory } from "../kernel/kernel.js";

/**
 * Sleeps until the bell no longer reads `seen`, or for `milliseconds` (Infinity: without a limit). It may return earlier, so
 * the caller looks again at what it waits for.
 */
export function sleepOn(
  kernel: Pick<Kernel, "bellWait">,
  { futex }: Memory,
  slot: number,
  seen: number,
  milliseconds: number,
): void {
  // SYNC park (sleep): pairs with ringAlways().
  if (futex !== undefined) futex.wait(slot + TASK_BELL_OFFSET, seen, milliseconds);
  else kernel.bellWait(slot, seen, milliseconds === Number.POSITIVE_INFINITY ? -1 : milliseconds);
}
