// Prefix reductions by recursive doubling: ceil(log2 n) rounds. Member r gets the reduction of members 0 to r, or to r - 1.
import { type Schedule, ScheduleBuilder, span } from "../schedule.js";
import type { ReductionShape } from "../shape.js";

/**
 * @param isExclusive whether a member's own operand is left out; member 0 then gets nothing, and its "receive" stays as it is
 */
export function doublingScan({ rank, size, bytes }: Omit<ReductionShape, "root">, isExclusive: boolean): Schedule {
  const builder = new ScheduleBuilder();
  const own = span("send", 0, bytes);
  /** The reduction of the last `distance` members up to this one. */
  const recent = builder.scratch(bytes);
  const other = builder.scratch(bytes);
  /** What the member gets, so far: of an exclusive scan, the first bytes that come begin it. */
  const result = builder.scratch(bytes);
  let isBegun = !isExclusive;
  builder.copy(own, recent);
  if (isBegun) builder.copy(own, result);
  builder.round();
  for (let distance = 1; distance < size; distance *= 2) {
    if (rank + distance < size) builder.send(rank + distance, recent);
    if (rank >= distance) {
      builder.receive(rank - distance, other);
      if (isBegun) builder.reduce(result, other, result);
      else builder.copy(other, result);
      isBegun = true;
      builder.reduce(recent, other, recent);
    }
    builder.round();
  }
  if (isBegun) builder.copy(result, span("receive", 0, bytes));
  return builder.build();
}
