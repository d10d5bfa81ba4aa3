// Broadcasts. The root's bytes are in "send"; other members get them in "receive". Ranks here count from the root.
import { part, type Schedule, ScheduleBuilder, span } from "../schedule/schedule.js";
import { type RootedShape, slices } from "../schedule/shape.js";

/** Binomial tree: ceil(log2 n) rounds; n - 1 messages of all bytes, together. For short messages. */
export function binomialBroadcast(shape: RootedShape): Schedule {
  return knomialBroadcast(shape, 2);
}

/** A tree in which a member sends to `radix` - 1 others in a round: ceil(log n) rounds to that base. */
export function knomialBroadcast({ rank, size, root, bytes }: RootedShape, radix: number): Schedule {
  const own = (rank - root + size) % size;
  const all = span(own === 0 ? "send" : "receive", 0, bytes);
  const builder = new ScheduleBuilder();
  for (let reached = 1; reached < size; reached *= radix) {
    const isReached = own < reached;
    for (let other = own + reached; isReached && other < Math.min(size, reached * radix); other += reached) {
      builder.send((root + other) % size, all);
    }
    if (!isReached && own < reached * radix) builder.receive((root + (own % reached)) % size, all);
    builder.round();
  }
  return builder.build();
}

/**
 * Scatter, then a ring (van de Geijn): each member sends (n - 1) / n of the bytes in n - 1 messages, besides the scatter,
 * which the root does in n - 1 messages. For long messages.
 */
export function scatterRingBroadcast({ rank, size, root, bytes }: RootedShape): Schedule {
  const own = (rank - root + size) % size;
  const builder = new ScheduleBuilder();
  const all = span(own === 0 ? "send" : "receive", 0, bytes);
  const parts = slices(bytes, 1, size).map(({ offset, bytes: length }) => part(all, offset, length));
  const at = (index: number) => parts[(index + size) % size] as (typeof parts)[number];
  if (own === 0) for (let other = 1; other < size; other++) builder.send((root + other) % size, at(other));
  else builder.receive(root, at(own));
  builder.round();
  // In step s, a member passes on the part of the member s places before it. The root needs no part.
  for (let step = 0; step < size - 1; step++) {
    if (own !== size - 1) builder.send((rank + 1) % size, at(own - step));
    if (own !== 0) builder.receive((rank - 1 + size) % size, at(own - 1 - step));
    builder.round();
  }
  return builder.build();
}
