// Gathers and scatters. A block's place in the root's buffer is given by counts and offsets.
import { part, type Schedule, ScheduleBuilder, type Span, span } from "../schedule/schedule.js";
import type { RootedShape, VectorShape } from "../schedule/shape.js";

/** Linear gather: the root gets n - 1 messages in one round, straight into their places. */
export function linearGather({ rank, size, root, counts, offsets }: VectorShape & { root: number }): Schedule {
  const builder = new ScheduleBuilder();
  const own = span("send", 0, counts[rank] as number);
  if (rank !== root) return builder.send(root, own).build();
  for (let member = 0; member < size; member++) {
    const place = span("receive", offsets[member] as number, counts[member] as number);
    if (member === root) builder.copy(own, place);
    else builder.receive(member, place);
  }
  return builder.round().build();
}

/** Linear scatter: the root sends n - 1 messages in one round, straight from their places. */
export function linearScatter({ rank, size, root, counts, offsets }: VectorShape & { root: number }): Schedule {
  const builder = new ScheduleBuilder();
  const own = span("receive", 0, counts[rank] as number);
  if (rank !== root) return builder.receive(root, own).build();
  for (let member = 0; member < size; member++) {
    const place = span("send", offsets[member] as number, counts[member] as number);
    if (member === root) builder.copy(place, own);
    else builder.send(member, place);
  }
  return builder.round().build();
}

/** The number of members in the subtree of `own` in a binomial tree. Places are counted from the root. */
function subtree(own: number, size: number): number {
  const lowest = own === 0 ? size : own & -own;
  return Math.min(lowest, size - own);
}

/**
 * Binomial gather: ceil(log2 n) rounds; a member passes on the blocks of its subtree. Blocks stay in the order of ranks counted
 * from the root, which then turns them. For short blocks.
 */
export function binomialGather({ rank, size, root, bytes }: RootedShape): Schedule {
  const builder = new ScheduleBuilder();
  const own = (rank - root + size) % size;
  const blocks = builder.scratch(subtree(own, size) * bytes);
  builder.copy(span("send", 0, bytes), part(blocks, 0, bytes)).round();
  for (let distance = 1; distance < size; distance *= 2) {
    if (own % (2 * distance) === distance) builder.send((rank - distance + size) % size, blocks);
    else if (own % (2 * distance) === 0 && own + distance < size) {
      const count = Math.min(distance, size - own - distance);
      builder.receive((rank + distance) % size, part(blocks, distance * bytes, count * bytes));
    }
    builder.round();
  }
  if (own === 0) turn(builder, blocks, "receive", size, root, bytes, false);
  return builder.build();
}

/** Binomial scatter: like binomialGather(), in the other direction. */
export function binomialScatter({ rank, size, root, bytes }: RootedShape): Schedule {
  const builder = new ScheduleBuilder();
  const own = (rank - root + size) % size;
  const blocks = builder.scratch(subtree(own, size) * bytes);
  if (own === 0) turn(builder, blocks, "send", size, root, bytes, true);
  builder.round();
  let top = 1;
  while (top < size) top *= 2;
  for (let distance = top / 2; distance >= 1; distance /= 2) {
    if (own % (2 * distance) === distance) builder.receive((rank - distance + size) % size, blocks);
    else if (own % (2 * distance) === 0 && own + distance < size) {
      const count = Math.min(distance, size - own - distance);
      builder.send((rank + distance) % size, part(blocks, distance * bytes, count * bytes));
    }
    builder.round();
  }
  builder.copy(part(blocks, 0, bytes), span("receive", 0, bytes));
  return builder.build();
}

/** Copies all blocks between the order of ranks and that of ranks counted from the root. */
function turn(
  builder: ScheduleBuilder,
  blocks: Span,
  buffer: "send" | "receive",
  size: number,
  root: number,
  bytes: number,
  isIn: boolean,
): void {
  const head = (size - root) * bytes;
  const pairs = [
    [part(blocks, 0, head), span(buffer, root * bytes, head)],
    [part(blocks, head, root * bytes), span(buffer, 0, root * bytes)],
  ] as const;
  for (const [inner, outer] of pairs) {
    if (isIn) builder.copy(outer, inner);
    else builder.copy(inner, outer);
  }
}
