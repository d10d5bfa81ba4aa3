// Memory of a node's sessions: queues and packets that wait. Pieces are powers of two; two halves that are both free are
// one again (buddies), so that what was cut up for small ones is there for large ones later.
import type { Arena } from "./streams.js";

/** Bytes of the smallest piece, as a power of two. */
const PIECE_SHIFT = 6;

export class BuddyArena implements Arena {
  readonly #base: number;
  /** Offsets of free pieces, by power of two. */
  readonly #free: Set<number>[];
  /** Bytes that are in use. */
  used = 0;

  /** @param base pointer to memory that nobody else uses @param bytes of it: a power of two */
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
    const pieces = this.#free[from];
    if (pieces === undefined) return 0;
    const [offset = 0] = pieces;
    pieces.delete(offset);
    // What is behind it is given back, half by half.
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

/** Power of two of the piece for so many bytes. */
function orderOf(bytes: number): number {
  return Math.max(PIECE_SHIFT, 32 - Math.clz32(bytes - 1));
}
