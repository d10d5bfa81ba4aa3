// Memory of simulated nodes. They share one arena; a restart frees what the previous incarnation held.

import type { Arena } from "../../src/session/store/arena.js";
import { BuddyArena } from "../../src/session/store/buddy-arena.js";

const PAGE = 65536;

/** Shared memory with an arena behind its first page, since 0 is no pointer. @param bytes of the arena, a power of two */
export function memoryWithArena(bytes: number): { shared: WebAssembly.Memory; arena: BuddyArena } {
  const pages = bytes / PAGE + 1;
  const shared = new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true });
  return { shared, arena: new BuddyArena(PAGE, bytes) };
}

/** The blocks that one incarnation of a node holds. */
export class IncarnationArena implements Arena {
  readonly #arena: Arena;
  readonly #held = new Map<number, number>();

  constructor(arena: Arena) {
    this.#arena = arena;
  }

  allocate(bytes: number): number {
    const pointer = this.#arena.allocate(bytes);
    if (pointer !== 0) this.#held.set(pointer, bytes);
    return pointer;
  }

  free(pointer: number, bytes: number): void {
    if (this.#held.get(pointer) !== bytes)
      throw new Error(`${bytes} bytes at ${pointer} are given back, and are not held`);
    this.#held.delete(pointer);
    this.#arena.free(pointer, bytes);
  }

  /** Frees all of them. */
  end(): void {
    for (const [pointer, bytes] of this.#held) this.free(pointer, bytes);
  }
}
