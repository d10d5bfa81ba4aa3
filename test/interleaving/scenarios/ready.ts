// Ready bits: which lanes a context looks at. None is lost, and none stays set for ever.
import {
  ATTENDED_IDLE_MAX,
  ATTENDED_KEEP,
  CONTEXT_ATTENDED_COUNT_OFFSET,
  LANE_IDLE_OFFSET,
} from "../../../assembly/layout.js";
import type { Scenario } from "../scenario.js";
import type { World } from "../world.js";
import { messages, ORIGIN, OTHER, rest, same, send, TARGET, take } from "./support.js";

/** Lanes of all six endpoints to the target, attended, and all but that of ORIGIN busy a moment ago. */
function crowd(world: World): void {
  for (let origin = 0; origin <= ATTENDED_KEEP + 1; origin++) send(world, world.open(origin, TARGET, 64, 48), 0);
  take(world);
  world.kernel.peek(world.context(TARGET));
  const lane = world.kernel.laneOf(world.context(TARGET), ORIGIN);
  world.setWord(lane + LANE_IDLE_OFFSET, ATTENDED_IDLE_MAX);
  same("attended lanes", [world.word(world.context(TARGET) + CONTEXT_ATTENDED_COUNT_OFFSET)], [ATTENDED_KEEP + 2]);
}

export const READY_SCENARIOS: readonly Scenario[] = [
  {
    name: "an idle lane loses its ready bit while its origin sends",
    setup: crowd,
    threads: [
      (world) => {
        for (let i = 0; i < 2; i++) take(world);
      },
      (world) => {
        // One message only: a second one would bring the first to light.
        send(world, world.kernel.laneOf(world.context(TARGET), ORIGIN), 0);
      },
    ],
    check(world, [taken = []]) {
      same("messages", [...taken, ...rest(world)], messages(1));
      const stale = world.bits(world.context(TARGET)).filter((bit) => !world.attended(TARGET).includes(bit));
      same("origins with a ready bit that nobody attends", stale, []);
    },
  },
  {
    name: "two origins, whose ready bits share a word, send",
    setup(world) {
      for (const origin of [ORIGIN, OTHER]) world.open(origin, TARGET, 64, 48);
    },
    threads: [
      (world) => {
        for (let i = 0; i < 2; i++) take(world);
      },
      (world) => void send(world, world.kernel.laneOf(world.context(TARGET), ORIGIN), 0),
      (world) => void send(world, world.kernel.laneOf(world.context(TARGET), OTHER), 0),
    ],
    check(world, [taken = []]) {
      same("messages", [...taken, ...rest(world)], [...messages(1), ...messages(1)]);
    },
  },
];
