// Twin of assembly/buffer.ts: same functions, same order; see the comments there.
import { PAGE_SIZE, POOL_TASK_OFFSET, POOL_WANTED_OFFSET } from "../../../assembly/layout.js";
import type { SharedAtomics } from "../atomics.js";
import type { Memory } from "../kernel.js";

export function twinBuffer({ words }: Memory, { loadWord, ring, storeWord }: SharedAtomics) {
  function bufferRelease(slot: number, state: number): void {
    const pool = slot - (slot % PAGE_SIZE);
    // SYNC buffer-read (read)
    storeWord(slot, state);
    // SYNC buffer-wanted (look)
    if (loadWord(pool + POOL_WANTED_OFFSET) !== 0) ring(words[(pool + POOL_TASK_OFFSET) >>> 2] >>> 0);
  }

  function bufferWant(pool: number, wanted: number): void {
    // SYNC buffer-wanted (want)
    storeWord(pool + POOL_WANTED_OFFSET, wanted);
  }

  return { bufferRelease, bufferWant };
}
