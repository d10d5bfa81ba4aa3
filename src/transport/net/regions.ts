// Resolves bytes of regions to pointers, or to the reason why there are none. These are the kernels' checks, for accesses
// that do not go through a kernel.
import {
  REGION_BASE_OFFSET,
  REGION_BYTES_OFFSET,
  REGION_GENERATION_OFFSET,
  REGION_SIZE,
  TASK_CLOSED,
  TASK_STATE_OFFSET,
  TRANSFER_DONE,
  TRANSFER_ENDED,
  TRANSFER_LOCAL_BOUNDS,
  TRANSFER_LOCAL_CLOSED,
  TRANSFER_REMOTE_BOUNDS,
  TRANSFER_REMOTE_CLOSED,
} from "../../../assembly/layout.js";
import type { Kernel, Memory } from "../../kernel/kernel.js";
import { type MemoryMap, taskSlot } from "../../memory/map.js";

/** Pointer to bytes of a region of this memory, or why there is none: TRANSFER_…. */
export interface Resolved {
  readonly result: number;
  readonly pointer: number;
}

/** Resolves bytes of a region of this memory. */
export function resolveRegion(
  kernel: Pick<Kernel, "loadWord">,
  { words }: Memory,
  map: MemoryMap,
  index: number,
  generation: number,
  offset: number,
  bytes: number,
): Resolved {
  const word = (pointer: number): number => (words[pointer >>> 2] as number) >>> 0;
  if (index >= map.locals * map.regions) return { result: TRANSFER_LOCAL_CLOSED, pointer: 0 };
  const entry = map.regionsBase + index * REGION_SIZE;
  const owner = taskSlot(map, Math.floor(index / map.regions));
  // SYNC task-state (look): pairs with the task's own store and the monitor's. Another task may use an ended task's memory
  // by now.
  if (kernel.loadWord(owner + TASK_STATE_OFFSET) >= TASK_CLOSED) return { result: TRANSFER_ENDED, pointer: 0 };
  const isOpen =
    (generation & 1) === 1 &&
    // SYNC region (look): pairs with regionOpen() and regionClose() of the kernels.
    kernel.loadWord(entry + REGION_GENERATION_OFFSET) >>> 0 === generation;
  if (!isOpen) return { result: TRANSFER_LOCAL_CLOSED, pointer: 0 };
  if (offset + bytes > word(entry + REGION_BYTES_OFFSET)) return { result: TRANSFER_LOCAL_BOUNDS, pointer: 0 };
  return { result: TRANSFER_DONE, pointer: word(entry + REGION_BASE_OFFSET) + offset };
}

/** The result for the other side: its local region is the remote region of this one. */
export function remoteResult(result: number): number {
  if (result === TRANSFER_LOCAL_CLOSED) return TRANSFER_REMOTE_CLOSED;
  return result === TRANSFER_LOCAL_BOUNDS ? TRANSFER_REMOTE_BOUNDS : result;
}
