// Gathers whose result all members get.
import { part, type Schedule, ScheduleBuilder, type Span, span } from "../schedule.js";
import type { UniformShape, VectorShape } from "../shape.js";

/** Ring: n - 1 rounds; a member sends each block but one, once. For long blocks, and for blocks of different lengths. */
export function ringAllgather({ rank, size, counts, offsets }: VectorShape): Schedule {
  const builder = new ScheduleBuilder();
  const at = (index: number): Span => {
    const member = (index + size) % size;
    return span("receive", offsets[member] as number, counts[member] as number);
  };
  builder.copy(span("send", 0, counts[rank] as number), at(rank)).round();
  for (let step = 0; step < size - 1; step++) {
    builder
      .send((rank + 1) % size, at(rank - step))
      .receive((rank - 1 + size) % size, at(rank - 1 - step))
      .round();
  }
  return builder.build();
}

/**
 * Bruck's algorithm: ceil(log2 n) rounds for any n; a member sends each block but one, once. A member's blocks begin with its
 * own and are turned at the end. For short blocks.
 */
export function bruckAllgather({ rank, size, bytes }: UniformShape): Schedule {
  const builder = new ScheduleBuilder();
  const blocks = builder.scratch(size * bytes);
  builder.copy(span("send", 0, bytes), part(blocks, 0, bytes)).round();
  for (let distance = 1; distance < size; distance *= 2) {
    const count = Math.min(distance, size - distance);
    builder
      .send((rank - distance + size) % size, part(blocks, 0, count * bytes))
      .receive((rank + distance) % size, part(blocks, distance * bytes, count * bytes))
      .round();
  }
  const head = (size - rank) * bytes;
  builder.copy(part(blocks, 0, head), span("receive", rank * bytes, head));
  builder.copy(part(blocks, head, rank * bytes), span("receive", 0, rank * bytes));
  return builder.build();
}
