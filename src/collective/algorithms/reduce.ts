// Reductions to one member. The operands of all members are in "send"; the root gets the result in "receive".
import { part, type Schedule, ScheduleBuilder, type Span, span } from "../schedule/schedule.js";
import { prefixSums, type ReductionShape, type Shape, slices, sumOf } from "../schedule/shape.js";
import { foldIn, goesOn, halve, piece, type Slice } from "./halving.js";
import { foldOf, memberOf, operandOf } from "./order.js";

/** Binomial tree in the order of order.ts: ceil(log2 n) rounds; n - 1 messages of all bytes, together. */
export function binomialReduce(shape: ReductionShape): Schedule {
  return knomialReduce(shape, 2);
}

/**
 * A tree in the order of order.ts, in which a member receives from `radix` - 1 others in a round. A subtree's result is with
 * the root if the root belongs to the subtree, else with the subtree's first member. So the order does not depend on the root.
 * @param radix a power of two
 */
export function knomialReduce({ rank, size, root, bytes }: ReductionShape, radix: number): Schedule {
  const builder = new ScheduleBuilder();
  const fold = foldOf(size);
  const input = span("send", 0, bytes);
  /** The member's partial result: its input, until another member's operand comes. */
  let sum = input;
  const free: Span[] = [];
  /** The members whose results are merged, in their order. The member at `to` gets all results. */
  const merge = (members: readonly number[], to: number): void => {
    if (rank !== to) {
      builder.send(to, sum);
      return;
    }
    if (sum === input) {
      sum = builder.scratch(bytes);
      builder.copy(input, sum);
    }
    const places = members.map((member) => (member === rank ? sum : (free.pop() ?? builder.scratch(bytes))));
    for (const [i, member] of members.entries()) if (member !== rank) builder.receive(member, places[i] as Span);
    for (let count = 1; count < places.length; count *= 2) {
      for (let i = 0; i < places.length; i += 2 * count) {
        builder.reduce(places[i] as Span, places[i] as Span, places[i + count] as Span);
      }
    }
    sum = places[0] as Span;
    free.push(...places.slice(1));
  };
  const own = operandOf(fold, rank);
  const rootOperand = operandOf(fold, root);
  if (fold.pairs > 0) {
    if (own < fold.pairs) merge([2 * own, 2 * own + 1], own === rootOperand ? root : 2 * own);
    builder.round();
  }
  /** The member with the result of the operands from `first` on. */
  const holder = (first: number, count: number): number =>
    rootOperand >= first && rootOperand < first + count ? root : memberOf(fold, first);
  for (let count = 1; count < fold.power; ) {
    const ways = Math.min(radix, fold.power / count);
    const first = own - (own % (ways * count));
    const members = Array.from({ length: ways }, (_, way) => holder(first + way * count, count));
    if (members.includes(rank)) merge(members, holder(first, ways * count));
    builder.round();
    count *= ways;
  }
  if (rank === root) builder.copy(sum, span("receive", 0, bytes));
  return builder.build();
}

/**
 * Rabenseifner's algorithm: reduce-scatter by vector halving and distance doubling, then a binomial gather: 2 log2 p rounds,
 * and one more if n is no power of two. For long vectors.
 */
export function rabenseifnerReduce({ rank, size, root, bytes, elementBytes }: ReductionShape): Schedule {
  const builder = new ScheduleBuilder();
  const fold = foldOf(size);
  const parts = slices(bytes, elementBytes, fold.power);
  const input = span("send", 0, bytes);
  const isOn = goesOn(fold, rank, root);
  const sum = isOn ? builder.scratch(bytes) : input;
  const other = isOn ? builder.scratch(bytes) : input;
  foldIn(builder, { rank, root }, fold, input, sum, other);
  if (!isOn) return builder.build();
  const own = operandOf(fold, rank);
  const rootOperand = operandOf(fold, root);
  const member = (operand: number): number => (operand === rootOperand ? root : memberOf(fold, operand));
  // On the way back, the member that is nearer to the root takes the other member's slices.
  let hasAll = true;
  for (const { distance, given, kept, count } of halve(builder, own, member, parts, sum, other).reverse()) {
    const isNearer = (own & distance) === (rootOperand & distance);
    if (hasAll && isNearer) builder.receive(member(own ^ distance), piece(sum, parts, given, count));
    else if (hasAll) builder.send(member(own ^ distance), piece(sum, parts, kept, count));
    hasAll &&= isNearer;
    builder.round();
  }
  if (rank === root) builder.copy(sum, span("receive", 0, bytes));
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
 * Reduce-scatter by pairwise exchange: each member gets its block from each other member, in one round of n - 1 messages, and
 * reduces. A member receives (n - 1) × its own bytes.
 * @param segment bytes of a block, whole elements, that go in a round; further bytes follow in a round of their own
 */
export function pairwiseReduceScatter(
  { rank, size, counts }: ReduceScatterShape,
  segment = Math.max(1, ...counts),
): Schedule {
  const builder = new ScheduleBuilder();
  const offsets = prefixSums(counts);
  const longest = Math.max(...counts);
  const own = Math.min(segment, counts[rank] as number);
  const blocks = Array.from({ length: size }, () => builder.scratch(own));
  let from = 0;
  do {
    const lengthOf = (member: number): number => Math.max(0, Math.min(segment, (counts[member] as number) - from));
    const blockOf = (member: number): Span => span("send", (offsets[member] as number) + from, lengthOf(member));
    const at = (member: number): Span => part(blocks[member] as Span, 0, lengthOf(rank));
    for (let distance = 1; distance < size; distance++) {
      const to = (rank + distance) % size;
      const before = (rank - distance + size) % size;
      builder.send(to, blockOf(to)).receive(before, at(before));
    }
    builder.copy(blockOf(rank), at(rank));
    builder.copy(reduceInOrder(builder, size, at), span("receive", from, lengthOf(rank))).round();
    from += segment;
  } while (from < longest);
  return builder.build();
}

/** Number of the round in which members that were folded get their blocks. */
const OUT = 1 << 16;

/**
 * Reduce-scatter by vector halving and distance doubling: log2 p rounds, and two more if n is no power of two. Blocks are first
 * copied to another order, so that each member ends with its own block, and the reduction has the order of order.ts.
 */
export function halvingReduceScatter({ rank, size, counts }: ReduceScatterShape): Schedule {
  const builder = new ScheduleBuilder();
  const fold = foldOf(size);
  const offsets = prefixSums(counts);
  const lengthOf = (member: number): number => counts[member] as number;
  const sum = builder.scratch(sumOf(counts));
  const other = builder.scratch(sum.bytes);
  /** The operand whose blocks are in a slice: the operand whose number has the slice's bits in reverse. */
  const operands = bitReversed(fold.power);
  let end = 0;
  const parts = operands.map((operand) => {
    const first = memberOf(fold, operand);
    const members = operand < fold.pairs ? [first, first + 1] : [first];
    const offset = end;
    for (const member of members) {
      builder.copy(span("send", offsets[member] as number, lengthOf(member)), part(sum, end, lengthOf(member)));
      end += lengthOf(member);
    }
    return { offset, bytes: end - offset };
  });
  const result = span("receive", 0, lengthOf(rank));
  foldIn(builder, { rank, root: 0 }, fold, sum, sum, other);
  if (!goesOn(fold, rank, 0)) return builder.receive(rank - 1, result, OUT).build();
  const own = operandOf(fold, rank);
  halve(builder, own, (operand) => memberOf(fold, operand), parts, sum, other);
  const { offset } = parts[operands.indexOf(own)] as Slice;
  if (own < fold.pairs) builder.send(rank + 1, part(sum, offset + result.bytes, lengthOf(rank + 1)), OUT);
  return builder.copy(part(sum, offset, result.bytes), result).build();
}

/** The numbers below a power of two, in the order of their bits in reverse: 0, 4, 2, 6, 1, 5, 3, 7. */
function bitReversed(power: number): number[] {
  if (power === 1) return [0];
  const half = bitReversed(power / 2).map((number) => 2 * number);
  return [...half, ...half.map((number) => number + 1)];
}
