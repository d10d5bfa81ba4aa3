// Barriers. In each round of the dissemination barrier, a member tells one member further away that it, and all of whom it
// has heard, have come (Hensgen, Finkel, Manber 1988): ceil(log2 n) rounds, a message of no bytes per member and round.
import { type Schedule, ScheduleBuilder } from "../schedule/schedule.js";
import type { Shape } from "../schedule/shape.js";

export function dissemination({ rank, size }: Shape): Schedule {
  const builder = new ScheduleBuilder();
  for (let distance = 1; distance < size; distance *= 2) {
    builder
      .signal((rank + distance) % size)
      .hear((rank - distance + size) % size)
      .round();
  }
  return builder.build();
}
