// Buffers: the origin copies a payload once, into an extent of its own, and the target reads it in place. See BUFFER and
// POOL in layout/lane.ts. Invariants: the origin alone stores BUFFER_SENT, into a slot that no record names. From then on,
// the target alone stores into the slot, once.
import { PAGE_SIZE, POOL_TASK_OFFSET, POOL_WANTED_OFFSET } from "./layout";
import { loadWord, ring, storeWord } from "./sync";

/** Target: declares that it has read a buffer. @param state BUFFER_FREE or BUFFER_GONE */
export function bufferRelease(slot: usize, state: u32): void {
  const pool = slot & ~(<usize>PAGE_SIZE - 1);
  // SYNC buffer-read (read): gives the buffer, or its slot, back; pairs with the origin's look in Buffers.
  storeWord(slot, state);
  // SYNC buffer-wanted (look): the store to the slot precedes this load, as the origin's request precedes its next look at
  // the slots.
  if (loadWord(pool + POOL_WANTED_OFFSET) != 0) ring(load<usize>(pool, POOL_TASK_OFFSET));
}

/**
 * Origin: asks its targets to ring when they have read a buffer (1), or stops asking (0). After asking, it looks at its
 * slots once more.
 */
export function bufferWant(pool: usize, wanted: u32): void {
  // SYNC buffer-wanted (want): pairs with the look in bufferRelease().
  storeWord(pool + POOL_WANTED_OFFSET, wanted);
}
