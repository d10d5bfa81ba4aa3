// Twin of assembly/completion.ts: same functions, same order; see the comments there.
import * as L from "../../../assembly/layout.js";
import type { SharedAtomics } from "../atomics.js";
import type { Memory } from "../kernel.js";

export type Completion = ReturnType<typeof twinCompletion>;

export function twinCompletion({ words }: Memory, { clearBits, loadWord, setBitsOf }: SharedAtomics) {
  function slotOf(fifo: number, slot: number): number {
    return ((words[(fifo + L.INJECTION_FIRST_OFFSET) >>> 2] >>> 0) + (slot << L.DESCRIPTOR_SHIFT)) >>> 0;
  }

  function completionSet(fifo: number, word: number, bits: number): void {
    let mask = fifo + L.INJECTION_MASK_OFFSET;
    let level = (words[(fifo + L.INJECTION_SLOTS_OFFSET) >>> 2] + 31) >>> 5;
    let place = word;
    let set = bits;
    // SYNC completion (set)
    while (setBitsOf(mask + (place << 2), set) === 0 && level > L.MASK_TOP_WORDS) {
      mask += level << 2;
      level = (level + 31) >>> 5;
      set = 1 << (place & 31);
      place >>>= 5;
    }
  }

  function completionClear(fifo: number, slot: number): void {
    clearBits(fifo + L.INJECTION_MASK_OFFSET + ((slot >>> 5) << 2), 1 << (slot & 31));
  }

  function clearAbove(fifo: number, slot: number): void {
    const taken = (fifo + L.INJECTION_TAKEN_OFFSET) >>> 2;
    let mask = fifo + L.INJECTION_MASK_OFFSET;
    let level = (words[(fifo + L.INJECTION_SLOTS_OFFSET) >>> 2] + 31) >>> 5;
    let bit = words[taken] >>> 5;
    let next = slot >>> 5;
    while (level > L.MASK_TOP_WORDS && bit !== next && loadWord(mask + (bit << 2)) === 0) {
      const above = mask + (level << 2);
      // SYNC completion (clear)
      clearBits(above + ((bit >>> 5) << 2), 1 << (bit & 31));
      if (loadWord(mask + (bit << 2)) !== 0) {
        setBitsOf(above + ((bit >>> 5) << 2), 1 << (bit & 31));
        break;
      }
      mask = above;
      level = (level + 31) >>> 5;
      bit >>>= 5;
      next >>>= 5;
    }
    words[taken] = slot;
  }

  function nextSet(mask: number, level: number, from: number): number {
    let word = from >>> 5;
    if (word >= level) return L.NONE;
    // SYNC completion (look)
    let bits = loadWord(mask + (word << 2)) & (-1 << (from & 31));
    while (bits === 0) {
      word = level > L.MASK_TOP_WORDS ? nextSet(mask + (level << 2), (level + 31) >>> 5, word + 1) : word + 1;
      if (word >= level) return L.NONE;
      bits = loadWord(mask + (word << 2));
    }
    return (word << 5) + 31 - Math.clz32(bits & -bits);
  }

  function nextDone(fifo: number, first: number): number {
    const mask = fifo + L.INJECTION_MASK_OFFSET;
    const level = (words[(fifo + L.INJECTION_SLOTS_OFFSET) >>> 2] + 31) >>> 5;
    const slot = nextSet(mask, level, first);
    return slot === L.NONE ? nextSet(mask, level, 0) : slot;
  }

  function completionTake(fifo: number): number {
    const slots = words[(fifo + L.INJECTION_SLOTS_OFFSET) >>> 2];
    const oldest = words[(fifo + L.INJECTION_OLDEST_OFFSET) >>> 2];
    const first = oldest & (slots - 1);
    let slot = nextDone(fifo, first);
    if (slot === L.NONE) return L.NONE;
    // SYNC completion (oldest)
    if (slot < first || slot >>> 5 !== first >>> 5) slot = nextDone(fifo, first);
    const result = words[(slotOf(fifo, slot) + L.DESCRIPTOR_BYTES_OFFSET) >>> 2];
    clearBits(fifo + L.INJECTION_MASK_OFFSET + ((slot >>> 5) << 2), 1 << (slot & 31));
    clearAbove(fifo, slot);
    const pending = words[(fifo + L.INJECTION_PENDING_OFFSET) >>> 2];
    words[(fifo + L.INJECTION_OLDEST_OFFSET) >>> 2] = oldest + ((slot - first) & (slots - 1)) + 1;
    words[(fifo + L.INJECTION_PENDING_OFFSET) >>> 2] = Math.max(0, pending - 1);
    return (slot | (result << L.COMPLETION_RESULT_SHIFT)) >>> 0;
  }

  return { slotOf, completionSet, completionClear, completionTake };
}
