// Memory regions: entries that map a handle (index and generation) to memory. Only the owner opens and closes.
import { hasEnded } from "./due";
import {
  JOB_LOCALS_OFFSET,
  JOB_REGIONS_BASE_OFFSET,
  JOB_REGIONS_OFFSET,
  JOB_TASKS_BASE_OFFSET,
  JOB_TASKS_OFFSET,
  REGION_BASE_OFFSET,
  REGION_BYTES_OFFSET,
  REGION_GENERATION_OFFSET,
  REGION_SHIFT,
  TASK_SIZE,
} from "./layout";
import { loadWord, ring, storeWord } from "./sync";

/** Pointer to the entry of an index. The index is in range. */
function entryOf(job: usize, index: u32): usize {
  return load<usize>(job, JOB_REGIONS_BASE_OFFSET) + (index << REGION_SHIFT);
}

/** Owner: opens a closed entry over one of its extents. Returns the entry's generation. */
export function regionOpen(job: usize, index: u32, base: usize, bytes: u32): u32 {
  const entry = entryOf(job, index);
  store<usize>(entry, base, REGION_BASE_OFFSET);
  store<u32>(entry, bytes, REGION_BYTES_OFFSET);
  const generation = load<u32>(entry, REGION_GENERATION_OFFSET) + 1;
  // SYNC region (open): pairs with regionOf().
  storeWord(entry + REGION_GENERATION_OFFSET, generation);
  return generation;
}

/** Owner: closes an open entry. Other threads may still be using the region: see REGION. */
export function regionClose(job: usize, index: u32): void {
  const entry = entryOf(job, index);
  // SYNC region (close): pairs with regionOf().
  storeWord(entry + REGION_GENERATION_OFFSET, load<u32>(entry, REGION_GENERATION_OFFSET) + 1);
}

/** The entry of a handle, or 0 if it is stale or forged. */
export function regionOf(job: usize, index: u32, generation: u32): usize {
  if (index >= load<u32>(job, JOB_LOCALS_OFFSET) * load<u32>(job, JOB_REGIONS_OFFSET)) return 0;
  const entry = entryOf(job, index);
  // SYNC region (look): pairs with regionOpen() and regionClose().
  if (loadWord(entry + REGION_GENERATION_OFFSET) != generation || (generation & 1) == 0) return 0;
  return entry;
}

/** Whether a region's index belongs to a task of another node. */
export function isRemote(job: usize, index: u32): bool {
  const task = index / load<u32>(job, JOB_REGIONS_OFFSET);
  return task >= load<u32>(job, JOB_LOCALS_OFFSET) && task < load<u32>(job, JOB_TASKS_OFFSET);
}

/** Whether the task that owns a region's index has not ended. True for an index that is out of range. */
export function isOwnerUp(job: usize, index: u32): bool {
  const task = index / load<u32>(job, JOB_REGIONS_OFFSET);
  if (task >= load<u32>(job, JOB_TASKS_OFFSET)) return true;
  return !hasEnded(load<usize>(job, JOB_TASKS_BASE_OFFSET) + task * TASK_SIZE);
}

/** Wakes the task that owns a region's index. The index is in range. */
export function ringOwner(job: usize, index: u32): void {
  ring(load<usize>(job, JOB_TASKS_BASE_OFFSET) + (index / load<u32>(job, JOB_REGIONS_OFFSET)) * TASK_SIZE);
}

/** Pointer to `bytes` at an offset in an entry's region; 0 if they are not all within it. */
export function regionPlace(entry: usize, offset: u32, bytes: u32): usize {
  const size = load<u32>(entry, REGION_BYTES_OFFSET);
  if (bytes > size || offset > size - bytes) return 0;
  return load<usize>(entry, REGION_BASE_OFFSET) + offset;
}

/** Pointer to `bytes` at an offset in a handle's region; 0 if the handle is stale or the bytes are not all within it. */
export function placeOf(job: usize, index: u32, generation: u32, offset: u32, bytes: u32): usize {
  const entry = regionOf(job, index, generation);
  return entry == 0 ? 0 : regionPlace(entry, offset, bytes);
}
