// As interleaving.test.ts, with one preemption more, and with random schedules of many.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { replayNote, SEED } from "../support/seed.js";
import { describeFailure, Explorer, type Task } from "./explore.js";
import { SCENARIOS } from "./scenarios/index.js";

/** `PAMIR_SCHEDULES=…`: of a scenario. All scenarios take some 3 minutes so, half of them at 3,000 a second. */
const SCHEDULES = Number(process.env.PAMIR_SCHEDULES ?? 8_000);
const RANDOM_SCHEDULES = SCHEDULES / 5;
const RANDOM_SWITCHES = 8;

describe.each(["wasm", "ts"] as const)("%s", (kernel) => {
  let explorer: Explorer;
  beforeAll(async () => {
    explorer = await Explorer.start(kernel, undefined, 800_000);
  });
  afterAll(() => explorer.close());

  async function explore(task: Task): Promise<void> {
    const exploration = await explorer.explore(task);
    if (exploration.failure !== undefined) throw new Error(describeFailure(kernel, task, exploration));
    const { schedules, complete, steps, runs, milliseconds } = exploration;
    expect(complete || schedules === task.schedules).toBe(true);
    const rate = `${Math.round(runs / milliseconds)}/ms, ${Math.round(steps / runs)} steps each`;
    console.log(`${kernel}, ${task.scenario}: ${schedules} schedules${complete ? ", all" : ""} (${rate})`);
  }

  it.each(SCENARIOS)("one preemption more: $name", async ({ name, bound = 2 }) => {
    await explore({ scenario: name, bound: bound + 1, schedules: SCHEDULES });
  });

  it.each(SCENARIOS)(`random schedules, ${replayNote()}: $name`, async ({ name }) => {
    await explore({ scenario: name, bound: RANDOM_SWITCHES, schedules: RANDOM_SCHEDULES, seed: SEED });
  });
});
