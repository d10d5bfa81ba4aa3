// Memory for simulated nodes.
import type { Arena } from "../../src/wire/streams.js";

/** Memory by size: what was given back is the next of its size. */
export class Heap implements Arena {
  #end = 4096;
  readonly #limit: number;
  readonly #free = new Map<number, number[]>();
  /** Bytes that are in use. */
  used = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  allocate(bytes: number): number {
    const size = (bytes + 63) & ~63;
    const again = this.#free.get(size)?.pop();
    if (again === undefined && this.#end + size > this.#limit) return 0;
    this.used += size;
    if (again !== undefined) return again;
    this.#end += size;
    return this.#end - size;
  }

  free(pointer: number, bytes: number): void {
    const size = (bytes + 63) & ~63;
    this.used -= size;
    const list = this.#free.get(size);
    if (list === undefined) this.#free.set(size, [pointer]);
    else list.push(pointer);
  }
}

/** What a node has of the heap in one life: with that it is over. */
export class Life implements Arena {
  readonly #heap: Heap;
  readonly #held = new Map<number, number>();

  constructor(heap: Heap) {
    this.#heap = heap;
  }

  allocate(bytes: number): number {
    const pointer = this.#heap.allocate(bytes);
    if (pointer !== 0) this.#held.set(pointer, bytes);
    return pointer;
  }

  free(pointer: number, bytes: number): void {
    if (this.#held.get(pointer) !== bytes)
      throw new Error(`${bytes} bytes at ${pointer} are given back, and are not held`);
    this.#held.delete(pointer);
    this.#heap.free(pointer, bytes);
  }

  end(): void {
    for (const [pointer, bytes] of this.#held) this.free(pointer, bytes);
  }
}
