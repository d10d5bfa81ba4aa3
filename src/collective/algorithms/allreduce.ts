// Reductions whose result all members get in "receive", in the order of order.ts where the name does not say otherwise.
import { part, type Schedule, ScheduleBuilder, type Span, span } from "../schedule.js";
import { type ReductionShape, slices } from "../shape.js";
import { foldOf, memberOf, operandOf } from "./order.js";

type AllShape = Omit<ReductionShape, "root">;

/** The first half of a folded reduction: a member that goes on has its operand in `sum`. False: the member only waits. */
function foldIn(builder: ScheduleBuilder, { rank, size }: AllShape, sum: Span, other: Span): boolean {
  const { pairs } = foldOf(size);
  if (pairs === 0) return true;
  const isFolded = rank < 2 * pairs;
  const goesOn = !isFolded || rank % 2 === 0;
  if (!goesOn) builder.send(rank - 1, sum);
  else if (isFolded) builder.receive(rank + 1, other).reduce(sum, sum, other);
  builder.round();
  return goesOn;
}

/** The second half: those that waited get the result. @param tag the number of the round at the member that went on */
function foldOut(builder: ScheduleBuilder, { rank, size, bytes }: AllShape, result: Span, tag: number): void {
  const { pairs } = foldOf(size);
  if (rank >= 2 * pairs) return;
  if (rank % 2 === 0) builder.send(rank + 1, result, tag);
  else builder.receive(rank - 1, span("receive", 0, bytes), tag);
  builder.round();
}

/** Number of the round of foldOut(). */
const OUT = 1 << 16;

/**
 * Recursive doubling: log2 p rounds, each with a message of all bytes from each member, and two more where n is no power of
 * two. For short vectors.
 */
export function doublingAllreduce(shape: AllShape): Schedule {
  const { rank, size, bytes } = shape;
  const builder = new ScheduleBuilder();
  const fold = foldOf(size);
  const sum = builder.scratch(bytes);
  const other = builder.scratch(bytes);
  builder.copy(span("send", 0, bytes), sum).round();
  if (foldIn(builder, shape, sum, other)) {
    const own = operandOf(fold, rank);
    for (let distance = 1; distance < fold.power; distance *= 2) {
      const peer = memberOf(fold, own ^ distance);
      const isLow = (own & distance) === 0;
      builder.send(peer, sum).receive(peer, other);
      builder.reduce(sum, isLow ? sum : other, isLow ? other : sum).round();
    }
    builder.copy(sum, span("receive", 0, bytes)).round();
  }
  foldOut(builder, shape, sum, OUT);
  return builder.build();
}

/**
 * Rabenseifner's algorithm: reduce-scatter by vector halving and distance doubling, then allgather the way back: 2 log2 p
 * rounds, in which a member sends 2 (p - 1) / p of the bytes. Two rounds more where n is no power of two.
 */
export function rabenseifnerAllreduce(shape: AllShape): Schedule {
  const { rank, size, bytes, elementBytes } = shape;
  const builder = new ScheduleBuilder();
  const fold = foldOf(size);
  const sum = builder.scratch(bytes);
  const other = builder.scratch(bytes);
  builder.copy(span("send", 0, bytes), sum).round();
  if (foldIn(builder, shape, sum, other)) {
    const own = operandOf(fold, rank);
    const parts = slices(bytes, elementBytes, fold.power);
    /** The slices from `first` on, in one piece. */
    const piece = (whole: Span, first: number, count: number): Span => {
      const from = parts[first] as (typeof parts)[number];
      const last = parts[first + count - 1] as (typeof parts)[number];
      return part(whole, from.offset, last.offset + last.bytes - from.offset);
    };
    let first = 0;
    let count = fold.power;
    /** The halves that were given away, to take them back. */
    const halves: { peer: number; given: number; kept: number; count: number }[] = [];
    for (let distance = 1; distance < fold.power; distance *= 2) {
      const peer = memberOf(fold, own ^ distance);
      const isLow = (own & distance) === 0;
      count /= 2;
      const kept = isLow ? first : first + count;
      const given = isLow ? first + count : first;
      const mine = piece(sum, kept, count);
      const theirs = piece(other, kept, count);
      builder.send(peer, piece(sum, given, count)).receive(peer, theirs);
      builder.reduce(mine, isLow ? mine : theirs, isLow ? theirs : mine).round();
      halves.push({ peer, given, kept, count });
      first = kept;
    }
    for (const { peer, given, kept, count: length } of halves.reverse()) {
      builder
        .send(peer, piece(sum, kept, length))
        .receive(peer, piece(sum, given, length))
        .round();
    }
    builder.copy(sum, span("receive", 0, bytes)).round();
  }
  foldOut(builder, shape, sum, OUT);
  return builder.build();
}

/**
 * Ring: reduce-scatter, then allgather, in 2 (n - 1) rounds, in which a member sends 2 (n - 1) / n of the bytes. Each slice is
 * reduced in another order, so it is no default for floating point.
 */
export function ringAllreduce({ rank, size, bytes, elementBytes }: AllShape): Schedule {
  const builder = new ScheduleBuilder();
  const sum = builder.scratch(bytes);
  const parts = slices(bytes, elementBytes, size);
  const other = builder.scratch(Math.max(...parts.map((slice) => slice.bytes)));
  const at = (index: number): Span => {
    const slice = parts[(index + 2 * size) % size] as (typeof parts)[number];
    return part(sum, slice.offset, slice.bytes);
  };
  const next = (rank + 1) % size;
  const before = (rank - 1 + size) % size;
  builder.copy(span("send", 0, bytes), sum).round();
  for (let step = 0; step < size - 1; step++) {
    const mine = at(rank - step - 1);
    const theirs = part(other, 0, mine.bytes);
    builder
      .send(next, at(rank - step))
      .receive(before, theirs)
      .reduce(mine, theirs, mine)
      .round();
  }
  for (let step = 0; step < size - 1; step++) {
    builder
      .send(next, at(rank + 1 - step))
      .receive(before, at(rank - step))
      .round();
  }
  builder.copy(sum, span("receive", 0, bytes)).round();
  return builder.build();
}
