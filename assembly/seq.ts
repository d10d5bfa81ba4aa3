// Arithmetic on u32 positions that wrap at 2^32 (serial-number arithmetic, RFC 1982). Compiled by asc and imported by
// TypeScript: it must stay portable, so it forces results with `| 0` and `>>> 0`, never with a cast.

/** Bytes from `b` to `a`; negative if `a` precedes `b`. Right while they are less than 2^31 apart. */
export function seqDelta(a: u32, b: u32): i32 {
  return (a - b) | 0;
}

/** The position `bytes` after `a`. */
export function seqAdd(a: u32, bytes: u32): u32 {
  return (a + bytes) >>> 0;
}

/** `bytes` rounded up to the next multiple of `unit`, a power of two. */
export function alignUp(bytes: u32, unit: u32): u32 {
  return ((bytes + unit - 1) & ~(unit - 1)) >>> 0;
}
