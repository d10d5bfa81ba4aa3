// Whether the explorer finds what it is for: deliberate bugs, each caught by some scenario.
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { byEffort, sample } from "../support/effort.js";
import { Explorer, TOUCHING } from "./explore.js";
import { changed, compiled, MUTANTS, misplaced, SCENARIOS_OF } from "./mutants.js";
import { deepTasks, normalTasks, quickTasks, wideTasks } from "./plan.js";

/** As in interleaving.test.ts: some go through scenarios for 55 s until one sees them. */
const LIMIT = 600_000;

it("without a mutant the sources give the module that ships, byte for byte", async () => {
  const shipped = readFileSync(new URL("../../dist/pamir.wasm", import.meta.url));
  expect(Buffer.compare(shipped, await compiled())).toBe(0);
});

it("each mutant has its place in the sources", () => {
  expect(misplaced()).toEqual([]);
});

it("each mutant of src/ is in a source that the explorer instruments", () => {
  const files = MUTANTS.map(({ file }) => file).filter((file) => file.startsWith("src/"));
  expect(files.filter((file) => !TOUCHING.test(file))).toEqual([]);
});

/** In this run: in test:deep all of them. */
const drawn = sample(MUTANTS, byEffort({ quick: 1, normal: 1, deep: MUTANTS.length }), "mutants");

it.each(drawn.map((mutant) => [mutant.name, mutant] as const))("caught: %s", { timeout: LIMIT }, async (_, mutant) => {
  const explorer = await Explorer.start("wasm", await compiled(mutant), undefined, changed(mutant));
  try {
    const { scenarios = SCENARIOS_OF[mutant.file] ?? [] } = mutant;
    // Most are found soon, so what is quick comes first.
    const tasks = [quickTasks, normalTasks, wideTasks, deepTasks].flatMap((of) => scenarios.flatMap(of));
    for (const task of tasks) {
      const { failure } = await explorer.explore(task);
      if (failure === undefined) continue;
      // What was found once is found again: by its schedule alone, and step for step.
      const again = await explorer.explore({ ...task, replay: failure.replay });
      expect(again.schedules).toBe(0);
      expect(again.failure?.text.split("\n")[0]).toBe(failure.text.split("\n")[0]);
      expect(again.failure?.trace).toEqual(failure.trace);
      return;
    }
  } finally {
    await explorer.close();
  }
  throw new Error("no scenario sees it");
});
