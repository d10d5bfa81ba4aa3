// Gathers whose result all members get.
import { part, type Schedule, ScheduleBuilder, type Span, span } from "../schedule/schedule.js";
import { prefixSums, sumOf, type UniformShape, type VectorShape } from "../schedule/shape.js";

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

/** Recursive doubling: log2 n rounds, for powers of two. A member sends each block but one, once, to the block's place. */
export function doublingAllgather({ rank, size, bytes }: UniformShape): Schedule {
  const builder = new ScheduleBuilder();
  const at = (first: number, count: number): Span => span("receive", first * bytes, count * bytes);
  builder.copy(span("send", 0, bytes), at(rank, 1)).round();
  for (let distance = 1; distance < size; distance *= 2) {
    const first = rank - (rank % distance);
    builder
      .send(rank ^ distance, at(first, distance))
      .receive(rank ^ distance, at(first ^ distance, distance))
      .round();
  }
  return builder.build();
}

/**
 * Bruck's algorithm: ceil(log2 n) rounds for any n; a member sends each block but one, once. A member's blocks begin with its
 * own and are turned at the end. For short blocks.
 */
export function bruckAllgather({ size, bytes, ...shape }: UniformShape): Schedule {
  const counts = new Array<number>(size).fill(bytes);
  return bruckAllgatherv({ ...shape, size, counts, offsets: prefixSums(counts) });
}

/** As bruckAllgather(), of blocks of different lengths. */
export function bruckAllgatherv(shape: VectorShape): Schedule {
  const { rank, size, counts, offsets } = shape;
  if (size === 1) return ringAllgather(shape);
  const builder = new ScheduleBuilder();
  const members = Array.from({ length: size }, (_, index) => (rank + index) % size);
  const lengths = members.map((member) => counts[member] as number);
  const begins = [...prefixSums(lengths), sumOf(lengths)];
  const blocks = builder.scratch(sumOf(lengths));
  /** Blocks from `first` on, up to the block before `end`. */
  const run = (first: number, end: number): Span => {
    const from = begins[first] as number;
    return part(blocks, from, (begins[end] as number) - from);
  };
  const own = span("send", 0, lengths[0] as number);
  builder.copy(own, run(0, 1)).round();
  for (let distance = 1; distance < size; distance *= 2) {
    const count = Math.min(distance, size - distance);
    builder
      .send((rank - distance + size) % size, run(0, count))
      .receive((rank + distance) % size, run(distance, distance + count))
      .round();
  }
  for (const [index, member] of members.entries()) {
    const block = index === 0 ? own : run(index, index + 1);
    builder.copy(block, span("receive", offsets[member] as number, lengths[index] as number));
  }
  return builder.build();
}
