// The order of a reduction is the same for every algorithm, and depends only on the number of members. So a sum of
// floating-point numbers has the same bits wherever the members are.
//
// With p the largest power of two that is not above n, the first 2 (n - p) members are folded in pairs, which leaves p
// operands. The p operands are combined as a perfect binary tree. Operands stay in the order of ranks, so that operations need
// not commute.
//
//   n = 6, p = 4:   ((0 1) (2 3)) (4 5)          folded: 01, 23; then 4, 5

import { powerBelow } from "../schedule/shape.js";

/** How members are folded to a power of two. */
export interface Fold {
  /** Operands after the fold: a power of two. */
  readonly power: number;
  /** Pairs that are folded: members 0 to 2 × pairs - 1. */
  readonly pairs: number;
}

export function foldOf(size: number): Fold {
  const power = powerBelow(size);
  return { power, pairs: size - power };
}

/** The first member of an operand. */
export function memberOf({ pairs }: Fold, operand: number): number {
  return operand < pairs ? 2 * operand : operand + pairs;
}

/** The operand to which a member belongs. */
export function operandOf({ pairs }: Fold, rank: number): number {
  return rank < 2 * pairs ? rank >>> 1 : rank - pairs;
}
