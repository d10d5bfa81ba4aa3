// Prefix reductions by recursive doubling: ceil(log2 n) rounds. Member r gets the reduction of members 0 to r, or to r - 1.
import { type Schedule, ScheduleBuilder, span } from "../schedule/schedule.js";
import type { ReductionShape } from "../schedule/shape.js";

/**
 * @param isExclusive whether a member's own operand is left out; member 0 then gets nothing, and its "receive" stays as it is
 */
export function doublingScan({ rank, size, bytes }: Omit<ReductionShape, "root">, isExclusive: boolean): Schedule {
  const builder = new ScheduleBuilder();
  /**
   * The reduction of the last `distance` members up to this member. In an inclusive scan, this reduction becomes the result.
   */
  const recent = builder.scratch(bytes);
  const other = builder.scratch(bytes);
  const result = isExclusive ? builder.scratch(bytes) : recent;
  if (!isExclusive || rank + 1 < size) builder.copy(span("send", 0, bytes), recent);
  builder.round();
  for (let distance = 1; distance < size; distance *= 2) {
    if (rank + distance < size) builder.send(rank + distance, recent);
    if (rank >= distance) {
      // The first operand that comes begins the result of an exclusive scan.
      const lower = isExclusive && distance === 1 ? result : other;
      builder.receive(rank - distance, lower);
      if (isExclusive && distance > 1) builder.reduce(result, other, result);
      if (!isExclusive || rank + 2 * distance < size) builder.reduce(recent, lower, recent);
    }
    builder.round();
  }
  if (!isExclusive || rank > 0) builder.copy(result, span("receive", 0, bytes));
  return builder.build();
}
