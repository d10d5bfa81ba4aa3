// The completion bit mask of an injection FIFO. The engine sets the bit of a completion descriptor's slot; the owner finds
// the bit, clears it, and so frees the slot. Where there are many words, a level above them marks those that are not 0.
import {
  COMPLETION_RESULT_SHIFT,
  DESCRIPTOR_BYTES_OFFSET,
  DESCRIPTOR_SHIFT,
  INJECTION_FIRST_OFFSET,
  INJECTION_MASK_OFFSET,
  INJECTION_OLDEST_OFFSET,
  INJECTION_PENDING_OFFSET,
  INJECTION_SLOTS_OFFSET,
  INJECTION_TAKEN_OFFSET,
  MASK_TOP_WORDS,
  NONE,
} from "./layout";
import { clearBits, loadWord, setBitsOf } from "./sync";

/** Pointer to a slot. */
export function slotOf(fifo: usize, slot: u32): usize {
  return load<usize>(fifo, INJECTION_FIRST_OFFSET) + (slot << DESCRIPTOR_SHIFT);
}

/** Engine: sets bits in one word of the mask, given its number, and the bits for it in the levels above. */
export function completionSet(fifo: usize, word: u32, bits: u32): void {
  let words = fifo + INJECTION_MASK_OFFSET;
  let level = load<u32>(fifo, INJECTION_SLOTS_OFFSET);
  for (;;) {
    level = (level + 31) >>> 5;
    // SYNC completion (set): makes all bytes of the transfers before it visible; pairs with completionTake().
    const before = setBitsOf(words + (word << 2), bits);
    if (before != 0 || level <= MASK_TOP_WORDS) return;
    words += level << 2;
    bits = 1 << (word & 31);
    word >>>= 5;
  }
}

/** Owner, once the engine thread has ended: clears the bit of a slot. That thread may have set it without the bits above. */
export function completionClear(fifo: usize, slot: u32): void {
  clearBits(fifo + INJECTION_MASK_OFFSET + ((slot >>> 5) << 2), 1 << (slot & 31));
}

/**
 * Owner: clears the bits above the completion taken last, unless they are above `slot` too. It does so only now: the
 * next completion is mostly in the same word, and then those bits stay (1,000,000 pending: 38 → 24 ns).
 */
function clearAbove(fifo: usize, slot: u32): void {
  let words = fifo + INJECTION_MASK_OFFSET;
  let level = (load<u32>(fifo, INJECTION_SLOTS_OFFSET) + 31) >>> 5;
  let bit = load<u32>(fifo, INJECTION_TAKEN_OFFSET) >>> 5;
  let next = slot >>> 5;
  while (level > MASK_TOP_WORDS && bit != next && loadWord(words + (bit << 2)) == 0) {
    const above = words + (level << 2);
    // SYNC completion (clear): clears first, then looks at the word once more, as for a ready bit.
    clearBits(above + ((bit >>> 5) << 2), 1 << (bit & 31));
    if (loadWord(words + (bit << 2)) != 0) {
      setBitsOf(above + ((bit >>> 5) << 2), 1 << (bit & 31));
      break;
    }
    words = above;
    level = (level + 31) >>> 5;
    bit >>>= 5;
    next >>>= 5;
  }
  store<u32>(fifo, slot, INJECTION_TAKEN_OFFSET);
}

/** The first set bit of a level, from `from` on; NONE. The level above tells which words it may skip. */
function nextSet(words: usize, level: u32, from: u32): u32 {
  let word = from >>> 5;
  if (word >= level) return NONE;
  // SYNC completion (look): pairs with completionSet().
  let bits = loadWord(words + (word << 2)) & (NONE << (from & 31));
  while (bits == 0) {
    word = level > MASK_TOP_WORDS ? nextSet(words + (level << 2), (level + 31) >>> 5, word + 1) : word + 1;
    if (word >= level) return NONE;
    bits = loadWord(words + (word << 2));
  }
  return (word << 5) + ctz<u32>(bits);
}

/** The next set bit from slot `first` on, around the ring; NONE. */
function nextDone(fifo: usize, first: u32): u32 {
  const words = (load<u32>(fifo, INJECTION_SLOTS_OFFSET) + 31) >>> 5;
  const slot = nextSet(fifo + INJECTION_MASK_OFFSET, words, first);
  return slot == NONE ? nextSet(fifo + INJECTION_MASK_OFFSET, words, 0) : slot;
}

/**
 * Owner: takes the oldest completion. Clears its bit; frees its slot and all slots before it.
 * @returns slot | result << COMPLETION_RESULT_SHIFT; NONE: no bit is set
 */
export function completionTake(fifo: usize): u32 {
  const slots = load<u32>(fifo, INJECTION_SLOTS_OFFSET);
  const oldest = load<u32>(fifo, INJECTION_OLDEST_OFFSET);
  const first = oldest & (slots - 1);
  let slot = nextDone(fifo, first);
  if (slot == NONE) return NONE;
  // SYNC completion (oldest): the engine thread may have set an older bit after this thread looked at its word. It sets bits
  // in order, so every older bit is set by now, and a second look finds the oldest.
  if (slot < first || slot >>> 5 != first >>> 5) slot = nextDone(fifo, first);
  const result = load<u32>(slotOf(fifo, slot), DESCRIPTOR_BYTES_OFFSET); // plain: ordered by the bit
  clearBits(fifo + INJECTION_MASK_OFFSET + ((slot >>> 5) << 2), 1 << (slot & 31));
  clearAbove(fifo, slot);
  const pending = load<u32>(fifo, INJECTION_PENDING_OFFSET);
  store<u32>(fifo, oldest + ((slot - first) & (slots - 1)) + 1, INJECTION_OLDEST_OFFSET);
  store<u32>(fifo, pending == 0 ? 0 : pending - 1, INJECTION_PENDING_OFFSET);
  return slot | (result << COMPLETION_RESULT_SHIFT);
}
