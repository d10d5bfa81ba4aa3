// Reductions whose result all members get in "receive", in the order of order.ts where the name does not say otherwise.
import { part, type Schedule, ScheduleBuilder, type Span, span } from "../schedule/schedule.js";
import { type ReductionShape, slices } from "../schedule/shape.js";
import { foldIn, goesOn, halve, piece } from "./halving.js";
import { foldOf, memberOf, operandOf } from "./order.js";

type AllShape = Omit<ReductionShape, "root">;

/** Number of the round in which members that were folded get the result. */
const OUT = 1 << 16;

/** Folds members to a power of two, lets `reduce` reduce their operands in `sum`, and gives the result to all. */
function folded(
  shape: AllShape,
  reduce: (builder: ScheduleBuilder, own: number, sum: Span, other: Span) => void,
): Schedule {
  const { rank, size, bytes } = shape;
  const builder = new ScheduleBuilder();
  const fold = foldOf(size);
  const result = span("receive", 0, bytes);
  if (size === 1) return builder.copy(span("send", 0, bytes), result).build();
  const isOn = goesOn(fold, rank, 0);
  const sum = isOn ? builder.scratch(bytes) : result;
  const other = isOn ? builder.scratch(bytes) : result;
  foldIn(builder, { rank, root: 0 }, fold, span("send", 0, bytes), sum, other);
  if (!isOn) return builder.receive(rank - 1, result, OUT).build();
  reduce(builder, operandOf(fold, rank), sum, other);
  if (rank < 2 * fold.pairs) builder.send(rank + 1, sum, OUT);
  return builder.copy(sum, result).build();
}

/**
 * Recursive doubling: log2 p rounds, each with a message of all bytes from each member, and two more where n is no power of
 * two. For short vectors.
 */
export function doublingAllreduce(shape: AllShape): Schedule {
  const fold = foldOf(shape.size);
  return folded(shape, (builder, own, sum, other) => {
    for (let distance = 1; distance < fold.power; distance *= 2) {
      const peer = memberOf(fold, own ^ distance);
      const isLow = (own & distance) === 0;
      builder.send(peer, sum).receive(peer, other);
      builder.reduce(sum, isLow ? sum : other, isLow ? other : sum).round();
    }
  });
}

/**
 * Rabenseifner's algorithm: reduce-scatter by vector halving and distance doubling, then allgather the way back: 2 log2 p
 * rounds, in which a member sends 2 (p - 1) / p of the bytes. Two rounds more where n is no power of two.
 */
export function rabenseifnerAllreduce(shape: AllShape): Schedule {
  const fold = foldOf(shape.size);
  const parts = slices(shape.bytes, shape.elementBytes, fold.power);
  const member = (operand: number): number => memberOf(fold, operand);
  return folded(shape, (builder, own, sum, other) => {
    for (const { distance, given, kept, count } of halve(builder, own, member, parts, sum, other).reverse()) {
      builder
        .send(member(own ^ distance), piece(sum, parts, kept, count))
        .receive(member(own ^ distance), piece(sum, parts, given, count))
        .round();
    }
  });
}

/**
 * Ring: reduce-scatter, then allgather, in 2 (n - 1) rounds, in which a member sends 2 (n - 1) / n of the bytes. Each slice is
 * reduced in another order, beginning with another member. So operations have to commute, and the ring is no default for
 * floating point.
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
