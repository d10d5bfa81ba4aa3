// Broadcasts. The root's bytes are in "send"; the others get them in "receive". Ranks here count from the root.
import { part, type Schedule, ScheduleBuilder, span } from "../schedule.js";
import { type RootedShape, slices } from "../shape.js";

/** Binomial tree: ceil(log2 n) rounds; n - 1 messages of all bytes, together. For short messages. */
export function binomialBroadcast({ rank, size, root, bytes }: RootedShape): Schedule {
  const own = (rank - root + size) % size;
  const all = span(own === 0 ? "send" : "receive", 0, bytes);
  const builder = new ScheduleBuilder();
  for (let distance = 1; distance < size; distance *= 2) {
    if (own < distance && own + distance < size) builder.send((rank + distance) % size, all);
    else if (own >= distance && own < 2 * distance) builder.receive((rank - distance + size) % size, all);
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
  // In step s, a member passes on the part of the one s before it. The root needs none.
  for (let step = 0; step < size - 1; step++) {
    if (own !== size - 1) builder.send((rank + 1) % size, at(own - step));
    if (own !== 0) builder.receive((rank - 1 + size) % size, at(own - 1 - step));
    builder.round();
  }
  return builder.build();
}
