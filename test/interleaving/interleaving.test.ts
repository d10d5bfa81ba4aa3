// The lock-free parts under every schedule up to a number of preemptions; see README.md.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { describeFailure, Explorer, type Task } from "./explore.js";
import { SCENARIOS } from "./scenarios/index.js";

/** What a failure printed: this one schedule is run again, and nothing else. */
const { PAMIR_REPLAY: replay } = process.env;

if (replay !== undefined) {
  it("the schedule in PAMIR_REPLAY", async () => {
    const { kernel, ...task } = JSON.parse(replay) as Task & { kernel: "wasm" | "ts" };
    const explorer = await Explorer.start(kernel);
    const exploration = await explorer.explore(task);
    await explorer.close();
    if (exploration.failure !== undefined) throw new Error(describeFailure(kernel, task, exploration));
  });
}

describe.each(["wasm", "ts"] as const)("every schedule: %s", (kernel) => {
  let explorer: Explorer;
  beforeAll(async () => {
    explorer = await Explorer.start(kernel);
  });
  afterAll(() => explorer.close());

  it.skipIf(replay !== undefined).each(SCENARIOS)("$name", { timeout: 120_000 }, async ({ name, bound = 2 }) => {
    const task = { scenario: name, bound };
    const exploration = await explorer.explore(task);
    if (exploration.failure !== undefined) throw new Error(describeFailure(kernel, task, exploration));
    expect(exploration.complete).toBe(true);
    expect(exploration.schedules).toBeGreaterThan(5);
  });
});
