// Copies of payloads, most of which are a few words.

/** Bytes that are copied by loads and stores. */
const COPY_SHORT: u32 = 64;

/** Copies bytes between ranges that don't overlap. */
export function copyPayload(to: usize, from: usize, bytes: u32): void {
  // memory.copy() leaves wasm: too long a way for a few words.
  if (bytes > COPY_SHORT) {
    memory.copy(to, from, bytes);
    return;
  }
  let at: u32 = 0;
  for (; at + 8 <= bytes; at += 8) store<u64>(to + at, load<u64>(from + at));
  for (; at < bytes; at++) store<u8>(to + at, load<u8>(from + at));
}
