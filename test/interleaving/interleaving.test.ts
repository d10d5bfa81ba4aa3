// The lock-free parts under schedules that are chosen: in test:deep every one up to a number of preemptions, else a part of
// them, and random ones; see README.md and plan.ts.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { describeFailure, Explorer, type Task } from "./explore.js";
import { partsOf } from "./plan.js";

/**
 * Milliseconds that a scenario may take: some take 30 s on two cores where all tests run, and threads that hand each other
 * the turn take many times as long where others want the cores too. What goes wrong is found by counting steps, not by this.
 */
const LIMIT = 600_000;

/** What a failure printed: this one schedule is run again, and nothing else. */
const { PAMIR_REPLAY: replay } = process.env;

if (replay !== undefined) {
  it("the schedule in PAMIR_REPLAY", { timeout: LIMIT }, async () => {
    const { kernel, ...task } = JSON.parse(replay) as Task & { kernel: "wasm" | "ts" };
    const explorer = await Explorer.start(kernel);
    const exploration = await explorer.explore(task);
    await explorer.close();
    if (exploration.failure !== undefined) throw new Error(describeFailure(kernel, task, exploration));
  });
}

describe.each(["wasm", "ts"] as const)("schedules: %s", (kernel) => {
  let explorer: Explorer;
  beforeAll(async () => {
    explorer = await Explorer.start(kernel);
  });
  afterAll(() => explorer.close());

  for (const { scenario, tasks } of partsOf(kernel)) {
    it.skipIf(replay !== undefined)(`${kernel}: ${scenario.name}`, { timeout: LIMIT }, async () => {
      for (const task of tasks) {
        const exploration = await explorer.explore(task);
        if (exploration.failure !== undefined) throw new Error(describeFailure(kernel, task, exploration));
        const { complete, schedules } = exploration;
        expect(complete || schedules === task.schedules).toBe(true);
        expect(schedules).toBeGreaterThan(3);
      }
    });
  }
});
