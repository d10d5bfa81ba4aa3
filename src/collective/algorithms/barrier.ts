// Barriers. In each round of the dissemination barrier, a member tells one member further away that it, and all of whom it
// has heard, have come (Hensgen, Finkel, Manber 1988): ceil(log2 n) rounds, a message of no bytes per member and round.
import { type Schedule, ScheduleBuilder, span } from "../schedule.js";
import type { Shape } from "../shape.js";

const NOTHING = span("scratch", 0, 0);

export function dissemination({ rank, size }: Shape): Schedule {
  const builder = new ScheduleBuilder();
  for (let distance = 1; distance < size; distance *= 2) {
    builder
      .send((rank + distance) % size, NOTHING)
      .receive((rank - distance + size) % size, NOTHING)
      .round();
  }
  return builder.build();
}
