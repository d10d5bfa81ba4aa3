// @ts-check
// A round in a process of its own: whatever it does to that, the soak goes on.
import { runCollectiveRound } from "./collectives/round.js";
import { runLinkedRound } from "./linked-round.js";
import { runRound } from "./round.js";

process.once("message", async (given) => {
  const round = /** @type {import("./run-alone.js").AnyRound} */ (given);
  const outcome =
    "kind" in round
      ? await runCollectiveRound(round)
      : await (round.tasksPerNode > 0 ? runLinkedRound : runRound)(round);
  process.send?.(outcome, () => process.exit());
});
