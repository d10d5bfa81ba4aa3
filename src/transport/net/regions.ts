// Resolves bytes of regions to pointers, or to the reason why there are none.
import {
  TASK_CLOSED,
  TASK_STATE_OFFSET,
  TRANSFER_DONE,
  TRANSFER_ENDED,
  TRANSFER_LOCAL_BOUNDS,
  TRANSFER_REMOTE_BOUNDS,
} from "../../../assembly/layout.js";
import type { Kernel } from "../../kernel/kernel.js";
import { type MemoryMap, taskSlot } from "../../memory/map.js";

/** Pointer to bytes of a region of this memory, or the result TRANSFER_… if the region has no such bytes. */
export interface Resolved {
  readonly result: number;
  readonly pointer: number;
}

/** Resolves bytes of a region of this memory. */
export function resolveRegion(
  kernel: Pick<Kernel, "loadWord" | "placeOf">,
  map: MemoryMap,
  index: number,
  generation: number,
  offset: number,
  bytes: number,
): Resolved {
  const owner = Math.floor(index / map.regions);
  // SYNC task-state (look): pairs with the task's own store and the monitor's. Another task may use an ended task's memory
  // by now.
  const hasEnded = owner < map.locals && kernel.loadWord(taskSlot(map, owner) + TASK_STATE_OFFSET) >= TASK_CLOSED;
  if (hasEnded) return { result: TRANSFER_ENDED, pointer: 0 };
  const pointer = kernel.placeOf(map.job, index, generation, offset, bytes);
  return { result: pointer === 0 ? TRANSFER_LOCAL_BOUNDS : TRANSFER_DONE, pointer };
}

/** The result for the other side, where local and remote regions change places. */
export function remoteResult(result: number): number {
  return result === TRANSFER_LOCAL_BOUNDS ? TRANSFER_REMOTE_BOUNDS : result;
}
