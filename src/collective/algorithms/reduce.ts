// Reductions to one member. The operands of all are in "send"; the root gets the result in "receive".
import { part, type Schedule, ScheduleBuilder, type Span, span } from "../schedule.js";
import { prefixSums, type ReductionShape, type Shape } from "../shape.js";
import { foldOf, memberOf, operandOf } from "./order.js";

/**
 * Binomial tree in the order of order.ts: 1 + log2 p rounds at most; n - 1 messages of all bytes, together. A subtree's
 * result is with the root if that belongs to it, else with the subtree's first member. So the order does not depend on the
 * root.
 */
export function binomialReduce({ rank, size, root, bytes }: ReductionShape): Schedule {
  const builder = new ScheduleBuilder();
  const fold = foldOf(size);
  const sum = builder.scratch(bytes);
  const other = builder.scratch(bytes);
  builder.copy(span("send", 0, bytes), sum).round();
  /** Merges two results: that of the lower ranks, at `low`, and that of the higher ones, at `high`; it is then at `to`. */
  const merge = (low: number, high: number, to: number): void => {
    if (rank === to) {
      const isLow = to === low;
      builder.receive(isLow ? high : low, other);
      builder.reduce(sum, isLow ? sum : other, isLow ? other : sum);
    } else if (rank === low || rank === high) builder.send(to, sum);
  };
  const own = operandOf(fold, rank);
  const rootOperand = operandOf(fold, root);
  if (fold.pairs > 0) {
    if (own < fold.pairs) merge(2 * own, 2 * own + 1, own === rootOperand ? root : 2 * own);
    builder.round();
  }
  /** The member with the result of the operands from `first` on. */
  const holder = (first: number, count: number): number =>
    rootOperand >= first && rootOperand < first + count ? root : memberOf(fold, first);
  for (let count = 1; count < fold.power; count *= 2) {
    const first = own - (own % (2 * count));
    const low = holder(first, count);
    const high = holder(first + count, count);
    const to = holder(first, 2 * count);
    if (rank === low || rank === high) merge(low, high, to);
    builder.round();
  }
  if (rank === root) builder.copy(sum, span("receive", 0, bytes)).round();
  return builder.build();
}

/** The blocks of all members, one after the other, reduced in the order of order.ts into the first; `at` names them. */
export function reduceInOrder(builder: ScheduleBuilder, size: number, at: (rank: number) => Span): Span {
  const fold = foldOf(size);
  for (let pair = 0; pair < fold.pairs; pair++) {
    builder.reduce(at(2 * pair), at(2 * pair), at(2 * pair + 1));
  }
  const operand = (index: number): Span => at(memberOf(fold, index));
  for (let count = 1; count < fold.power; count *= 2) {
    for (let first = 0; first < fold.power; first += 2 * count) {
      builder.reduce(operand(first), operand(first), operand(first + count));
    }
  }
  return at(0);
}

export interface ReduceScatterShape extends Shape {
  /** Bytes of the block that each member gets. */
  readonly counts: readonly number[];
}

/**
 * Reduce-scatter by pairwise exchange: each member gets its block of each other one, in one round of n - 1 messages, and
 * reduces. It receives (n - 1) × its own bytes.
 */
export function pairwiseReduceScatter({ rank, size, counts }: ReduceScatterShape): Schedule {
  const builder = new ScheduleBuilder();
  const offsets = prefixSums(counts);
  const blockOf = (member: number): Span => span("send", offsets[member] as number, counts[member] as number);
  const own = counts[rank] as number;
  const blocks = Array.from({ length: size }, () => builder.scratch(own));
  const at = (member: number): Span => blocks[member] as Span;
  for (let distance = 1; distance < size; distance++) {
    const to = (rank + distance) % size;
    const from = (rank - distance + size) % size;
    builder.send(to, blockOf(to)).receive(from, at(from));
  }
  builder.copy(blockOf(rank), at(rank));
  builder.copy(reduceInOrder(builder, size, at), part(span("receive", 0, own), 0, own)).round();
  return builder.build();
}
