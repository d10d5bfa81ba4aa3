// @ts-check
// A round in a process of its own: whatever it does to that, the soak goes on.
import { runRound } from "./round.js";

process.once("message", async (round) => {
  const outcome = await runRound(/** @type {import("./draw.js").Round} */ (round));
  process.send?.(outcome, () => process.exit());
});
