// Reduce-scatter by vector halving and distance doubling (Rabenseifner), in the order of order.ts: the first part of several
// reductions.
import { part, type ScheduleBuilder, type Span } from "../schedule/schedule.js";
import type { ReductionShape } from "../schedule/shape.js";
import type { Fold } from "./order.js";

/** A slice of a vector. */
export interface Slice {
  readonly offset: number;
  readonly bytes: number;
}

/**
 * The slices that a member has given to another member in a round, and the slices that it has kept: from `given` and `kept` on.
 */
export interface Half {
  readonly distance: number;
  readonly given: number;
  readonly kept: number;
  readonly count: number;
}

/** The slices from `first` on, in one piece. */
export function piece(whole: Span, slices: readonly Slice[], first: number, count: number): Span {
  const from = slices[first] as Slice;
  const last = slices[first + count - 1] as Slice;
  return part(whole, from.offset, last.offset + last.bytes - from.offset);
}

/** The first member of an operand goes on with it, or the second member if that is `root`. */
export function goesOn({ pairs }: Fold, rank: number, root: number): boolean {
  return rank >= 2 * pairs || rank === root || (rank % 2 === 0 && rank + 1 !== root);
}

/**
 * Folds members to a power of two, in one round. Afterwards a member that goes on has its operand in `sum`; `other` is scratch
 * memory.
 * @param input the member's own vector, from which `sum` is filled unless both are the same
 */
export function foldIn(
  builder: ScheduleBuilder,
  { rank, root }: Pick<ReductionShape, "rank" | "root">,
  fold: Fold,
  input: Span,
  sum: Span,
  other: Span,
): void {
  const isFolded = rank < 2 * fold.pairs;
  const isLow = rank % 2 === 0;
  if (goesOn(fold, rank, root)) builder.copy(input, sum);
  builder.round();
  if (fold.pairs === 0) return;
  if (!goesOn(fold, rank, root)) builder.send(rank ^ 1, input);
  else if (isFolded) builder.receive(rank ^ 1, other).reduce(sum, isLow ? sum : other, isLow ? other : sum);
  builder.round();
}

/**
 * Halves the vector in each round: a member gives one half away, and reduces the other half. At the end the member has one
 * reduced slice: the slice whose number has the bits of the member's operand in reverse.
 * @param memberOf the member that goes on with an operand
 */
export function halve(
  builder: ScheduleBuilder,
  own: number,
  memberOf: (operand: number) => number,
  slices: readonly Slice[],
  sum: Span,
  other: Span,
): Half[] {
  const halves: Half[] = [];
  let first = 0;
  let count = slices.length;
  for (let distance = 1; distance < slices.length; distance *= 2) {
    const isLow = (own & distance) === 0;
    count /= 2;
    const kept = isLow ? first : first + count;
    const given = isLow ? first + count : first;
    const mine = piece(sum, slices, kept, count);
    const theirs = piece(other, slices, kept, count);
    const peer = memberOf(own ^ distance);
    builder.send(peer, piece(sum, slices, given, count)).receive(peer, theirs);
    builder.reduce(mine, isLow ? mine : theirs, isLow ? theirs : mine).round();
    halves.push({ distance, given, kept, count });
    first = kept;
  }
  return halves;
}
