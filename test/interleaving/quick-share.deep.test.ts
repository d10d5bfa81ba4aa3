// How many of the mutants `npm run test:quick` catches: its explorations are run against each of them. The conformance and
// differential suites, which catch others, do not count here.
// `npm run test:deep -- test/interleaving/quick-share` prints the figure.
import { expect, it } from "vitest";
import { SEED } from "../support/effort.js";
import { Explorer } from "./explore.js";
import { changed, compiled, MUTANTS, SCENARIOS_OF } from "./mutants.js";
import { quickTasks } from "./plan.js";

const PARTS = 8;
let [caughtOfAll, all] = [0, 0];

it.each(Array.from({ length: PARTS }, (_, part) => part))(
  "the explorations of test:quick catch at least 60 % of the mutants: every eighth, from %i",
  { timeout: 1_800_000 },
  async (part) => {
    const mutants = MUTANTS.filter((_, i) => i % PARTS === part);
    const missed: string[] = [];
    for (const mutant of mutants) {
      const explorer = await Explorer.start("wasm", await compiled(mutant), undefined, changed(mutant));
      try {
        const { scenarios = SCENARIOS_OF[mutant.file] ?? [] } = mutant;
        let isCaught = false;
        for (const task of scenarios.flatMap(quickTasks)) {
          isCaught = (await explorer.explore(task)).failure !== undefined;
          if (isCaught) break;
        }
        if (!isCaught) missed.push(mutant.name);
      } finally {
        await explorer.close();
      }
    }
    all += mutants.length;
    caughtOfAll += mutants.length - missed.length;
    const percent = Math.round((100 * caughtOfAll) / all);
    console.log(
      [
        `test:quick with PAMIR_SEED=${SEED} catches ${caughtOfAll} of ${all} mutants so far, ${percent} %`,
        ...missed,
      ].join("\nnot: "),
    );
    expect(missed.length / mutants.length).toBeLessThanOrEqual(0.4);
  },
);
