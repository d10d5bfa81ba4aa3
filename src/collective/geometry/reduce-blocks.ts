// The result of amReduce() at its root: the reduction of blocks that one member has.
import { copyInto } from "../../support/copy.js";
import type { Reducer } from "../operation.js";
import type { Scratch } from "../scratch.js";
import { partialBytes, reduceOperands } from "../shared/shared-steps.js";

/**
 * Reduces blocks that this member has, in the order of algorithms/order.ts. @throws PAMIR_NO_MEMORY; errors of the user's code
 */
export function reduceBlocks(
  scratch: Scratch,
  blocks: readonly Uint8Array[],
  bytes: number,
  reducer: Reducer,
): Uint8Array {
  if (blocks.length === 1) return blocks[0] as Uint8Array;
  const space = (bytes + 15) & ~15;
  const whole = (blocks.length + 1) * space + partialBytes(reducer, blocks.length, bytes);
  const piece = scratch.takeAnywhere(whole);
  const { elsewhere } = piece;
  const there: Reducer = {
    ...reducer,
    reduce: (to, left, right, length) => reducer.reduce(to, left, right, length, elsewhere),
  };
  try {
    for (const [rank, block] of blocks.entries()) copyInto(piece.bytes, rank * space, block);
    const operandOf = (rank: number): number => piece.pointer + rank * space;
    const out = blocks.length * space;
    reduceOperands(there, blocks.length, { operandOf }, piece.pointer + out, bytes, piece.pointer + out + space);
    return piece.bytes.slice(out, out + bytes);
  } finally {
    scratch.giveBack(piece);
  }
}
