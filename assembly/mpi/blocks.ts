// Memory of a matching engine: blocks of 2^class bytes, cut from its memory in order, and kept in a list for each class once
// they are free. A block never becomes smaller or larger, so that taking and giving back are a few instructions. Each class
// takes at most what it once had in use at the same time: all that is given back serves again.
import {
  MPI_BLOCK_CLASS_MAX,
  MPI_BLOCK_CLASS_MIN,
  MPI_ENGINE_END_OFFSET,
  MPI_ENGINE_FREE_OFFSET,
  MPI_ENGINE_NEXT_OFFSET,
} from "../layout";

/** Size class of a block for `bytes` bytes. */
function classOf(bytes: u32): u32 {
  return bytes <= 1 << MPI_BLOCK_CLASS_MIN ? MPI_BLOCK_CLASS_MIN : 32 - clz<u32>(bytes - 1);
}

/** Pointer to a block of at least `bytes` bytes, at most those of the largest class; 0: the engine needs more memory. */
export function takeBlock(engine: usize, bytes: u32): usize {
  const sizeClass = classOf(bytes);
  const list = engine + MPI_ENGINE_FREE_OFFSET + (sizeClass << 2);
  const block = load<usize>(list);
  if (block != 0) {
    store<usize>(list, load<usize>(block));
    return block;
  }
  const next = load<u32>(engine, MPI_ENGINE_NEXT_OFFSET);
  if (load<u32>(engine, MPI_ENGINE_END_OFFSET) - next < 1 << sizeClass) return 0;
  store<u32>(engine, next + (1 << sizeClass), MPI_ENGINE_NEXT_OFFSET);
  return next;
}

/** Gives a block back. @param bytes as of takeBlock() */
export function giveBlock(engine: usize, block: usize, bytes: u32): void {
  const list = engine + MPI_ENGINE_FREE_OFFSET + (classOf(bytes) << 2);
  store<usize>(block, load<usize>(list));
  store<usize>(list, block);
}

/** Makes free blocks of the engine's memory that was never part of one, the largest first. Less than the smallest block is lost. */
export function divideRest(engine: usize): void {
  let block = load<u32>(engine, MPI_ENGINE_NEXT_OFFSET);
  const end = load<u32>(engine, MPI_ENGINE_END_OFFSET);
  while (end - block >= 1 << MPI_BLOCK_CLASS_MIN) {
    const bytes: u32 = 1 << min(31 - clz(end - block), MPI_BLOCK_CLASS_MAX);
    giveBlock(engine, block, bytes);
    block += bytes;
  }
  store<u32>(engine, block, MPI_ENGINE_NEXT_OFFSET);
}
