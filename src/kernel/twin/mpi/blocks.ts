// Twin of assembly/mpi/blocks.ts; see the comments there.
import * as L from "../../../../assembly/layout.js";
import type { Memory } from "../../kernel.js";

export type MpiBlocks = ReturnType<typeof twinBlocks>;

export function twinBlocks({ words }: Memory) {
  /** Place in `words` of the first free block of those that hold so many bytes. */
  function listOf(engine: number, sizeClass: number): number {
    return ((engine + L.MPI_ENGINE_FREE_OFFSET) >>> 2) + sizeClass;
  }

  function classOf(bytes: number): number {
    let sizeClass = L.MPI_BLOCK_CLASS_MIN;
    while (2 ** sizeClass < bytes) sizeClass++;
    return sizeClass;
  }

  function push(list: number, block: number): void {
    words[block >>> 2] = words[list] as number;
    words[list] = block;
  }

  function takeBlock(engine: number, bytes: number): number {
    const sizeClass = classOf(bytes);
    const list = listOf(engine, sizeClass);
    const block = (words[list] as number) >>> 0;
    if (block !== 0) {
      words[list] = words[block >>> 2] as number;
      return block;
    }
    const next = (engine + L.MPI_ENGINE_NEXT_OFFSET) >>> 2;
    const fresh = (words[next] as number) >>> 0;
    const left = ((words[(engine + L.MPI_ENGINE_END_OFFSET) >>> 2] as number) - fresh) >>> 0;
    if (left < 2 ** sizeClass) return 0;
    words[next] = fresh + 2 ** sizeClass;
    return fresh;
  }

  function giveBlock(engine: number, block: number, bytes: number): void {
    push(listOf(engine, classOf(bytes)), block);
  }

  function divideRest(engine: number): void {
    const next = (engine + L.MPI_ENGINE_NEXT_OFFSET) >>> 2;
    let block = (words[next] as number) >>> 0;
    let left = ((words[(engine + L.MPI_ENGINE_END_OFFSET) >>> 2] as number) - block) >>> 0;
    for (let sizeClass = L.MPI_BLOCK_CLASS_MAX; sizeClass >= L.MPI_BLOCK_CLASS_MIN; sizeClass--) {
      for (; left >= 2 ** sizeClass; left -= 2 ** sizeClass, block += 2 ** sizeClass)
        push(listOf(engine, sizeClass), block);
    }
    words[next] = block;
  }

  return { takeBlock, giveBlock, divideRest };
}
