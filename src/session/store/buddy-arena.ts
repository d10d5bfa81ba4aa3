// The memory of a node's sessions: a binary buddy allocator. Blocks are powers of two. When both halves of a block are free,
// they become one block again, so memory that was split for small blocks serves large ones later.
import type { Arena } from "./arena.js";

/** The smallest block has 2^6 = 64 bytes. */
const BLOCK_SHIFT_MIN = 6;

export class BuddyArena implements Arena {
  readonly #base: number;
  /** Offsets of free blocks, by order: a block of order n has 2^n bytes. */
  readonly #free: Set<number>[];
  /** Bytes of allocated blocks. */
  used = 0;

  /** @param base pointer to the memory, which the arena owns from now on @param bytes its size, a power of two */
  constructor(base: number, bytes: number) {
    this.#base = base;
    const top = 31 - Math.clz32(bytes);
    this.#free = Array.from({ length: top + 1 }, () => new Set<number>());
    (this.#free[top] as Set<number>).add(0);
  }

  allocate(bytes: number): number {
    const order = orderOf(bytes);
    let from = order;
    while (this.#free[from]?.size === 0) from++;
    const blocks = this.#free[from];
    if (blocks === undefined) return 0;
    const [offset = 0] = blocks;
    blocks.delete(offset);
    // A larger block is split: its upper halves stay free.
    while (from > order) (this.#free[--from] as Set<number>).add(offset + 2 ** from);
    this.used += 2 ** order;
    return this.#base + offset;
  }

  free(pointer: number, bytes: number): void {
    let order = orderOf(bytes);
    let offset = pointer - this.#base;
    this.used -= 2 ** order;
    while (this.#free[order]?.delete(offset ^ (2 ** order)) && order + 1 < this.#free.length) {
      offset &= ~(2 ** order);
      order++;
    }
    (this.#free[order] as Set<number>).add(offset);
  }
}

/** Order of the smallest block that holds this many bytes. */
function orderOf(bytes: number): number {
  return Math.max(BLOCK_SHIFT_MIN, 32 - Math.clz32(bytes - 1));
}
