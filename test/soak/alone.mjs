// @ts-check
// A round in a process of its own: whatever it does to that, the soak goes on.
import { runLinkedRound } from "./linked-round.js";
import { runRound } from "./round.js";

process.once("message", async (given) => {
  const round = /** @type {import("./draw.js").Round} */ (given);
  const outcome = await (round.tasksPerNode > 0 ? runLinkedRound : runRound)(round);
  process.send?.(outcome, () => process.exit());
});
