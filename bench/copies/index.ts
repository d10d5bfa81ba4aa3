// Ways to copy, for the table of kernel.bench.mjs: each `times` times in a row. Compiled there, with the kernels' flags.

/** A call, whatever the size. */
export function memoryCopy(to: usize, from: usize, bytes: u32, times: u32): void {
  for (; times != 0; times--) memory.copy(to, from, bytes);
}

/** As move() in assembly/engine.ts: from both ends, all loads first; up to 128 bytes. */
export function inline(to: usize, from: usize, bytes: u32, times: u32): void {
  for (; times != 0; times--) {
    if (bytes > 64) {
      const a = v128.load(from);
      const b = v128.load(from, 16);
      const c = v128.load(from, 32);
      const d = v128.load(from, 48);
      const w = v128.load(from + bytes - 64);
      const x = v128.load(from + bytes - 48);
      const y = v128.load(from + bytes - 32);
      const z = v128.load(from + bytes - 16);
      v128.store(to, a);
      v128.store(to, b, 16);
      v128.store(to, c, 32);
      v128.store(to, d, 48);
      v128.store(to + bytes - 64, w);
      v128.store(to + bytes - 48, x);
      v128.store(to + bytes - 32, y);
      v128.store(to + bytes - 16, z);
    } else if (bytes >= 32) {
      const a = v128.load(from);
      const b = v128.load(from, 16);
      const y = v128.load(from + bytes - 32);
      const z = v128.load(from + bytes - 16);
      v128.store(to, a);
      v128.store(to, b, 16);
      v128.store(to + bytes - 32, y);
      v128.store(to + bytes - 16, z);
    } else if (bytes >= 16) {
      const a = v128.load(from);
      const z = v128.load(from + bytes - 16);
      v128.store(to, a);
      v128.store(to + bytes - 16, z);
    } else {
      const a = load<u64>(from);
      const z = load<u64>(from + bytes - 8);
      store<u64>(to, a);
      store<u64>(to + bytes - 8, z);
    }
  }
}

/** 64 bytes at a time, the rest from the end; from 64 bytes on. */
export function loop(to: usize, from: usize, bytes: u32, times: u32): void {
  for (; times != 0; times--) {
    const last = bytes - 64;
    for (let at: u32 = 0; at < last; at += 64) four(to + at, from + at);
    four(to + last, from + last);
  }
}

function four(to: usize, from: usize): void {
  const a = v128.load(from);
  const b = v128.load(from, 16);
  const c = v128.load(from, 32);
  const d = v128.load(from, 48);
  v128.store(to, a);
  v128.store(to, b, 16);
  v128.store(to, c, 32);
  v128.store(to, d, 48);
}
