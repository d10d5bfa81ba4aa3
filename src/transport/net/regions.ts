// Where bytes of regions are, and what is wrong with those that are nowhere: the kernels' checks, for what does not go by them.
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

/** Where bytes of a region of this memory are, or why there are none: TRANSFER_…. */
export interface Resolved {
  readonly result: number;
  readonly pointer: number;
}

/** Where bytes of a region of this memory are. */
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
  // SYNC task-state (look): pairs with the task's own store and the monitor's: what an ended task had may be another's by now.
  if (kernel.loadWord(owner + TASK_STATE_OFFSET) >= TASK_CLOSED) return { result: TRANSFER_ENDED, pointer: 0 };
  const isOpen =
    (generation & 1) === 1 &&
    // SYNC region (look): pairs with regionOpen() and regionClose() of the kernels.
    kernel.loadWord(entry + REGION_GENERATION_OFFSET) >>> 0 === generation;
  if (!isOpen) return { result: TRANSFER_LOCAL_CLOSED, pointer: 0 };
  if (offset + bytes > word(entry + REGION_BYTES_OFFSET)) return { result: TRANSFER_LOCAL_BOUNDS, pointer: 0 };
  return { result: TRANSFER_DONE, pointer: word(entry + REGION_BASE_OFFSET) + offset };
}

/** The same of the other side's region. */
export function remoteResult(result: number): number {
  if (result === TRANSFER_LOCAL_CLOSED) return TRANSFER_REMOTE_CLOSED;
  return result === TRANSFER_LOCAL_BOUNDS ? TRANSFER_REMOTE_BOUNDS : result;
}
