// What a run of the tests explores of each scenario, in three sizes.
import { byEffort, type Effort, SEED, sample } from "../support/effort.js";
import type { Task } from "./explore.js";
import type { Scenario } from "./scenario.js";
import { SCENARIOS } from "./scenarios/index.js";

/** Switches of a random schedule. */
const SWITCHES = 8;

/** `test:quick`: the first schedules with one preemption, and random ones with many. They catch most of the mutants. */
export function quickTasks({ name, bound = 2 }: Scenario): Task[] {
  return [
    { scenario: name, bound: SWITCHES, schedules: 15, seed: SEED },
    { scenario: name, bound: Math.min(1, bound), schedules: 30 },
  ];
}

/** `npm test`: the same, and more of each. */
export function normalTasks({ name, bound = 2 }: Scenario): Task[] {
  return [
    { scenario: name, bound: SWITCHES, schedules: 30, seed: SEED },
    { scenario: name, bound: Math.min(1, bound), schedules: 60 },
  ];
}

/** Ten times as many: what takes seconds, before all that takes minutes. */
export function wideTasks({ name, bound = 2 }: Scenario): Task[] {
  return [
    { scenario: name, bound: SWITCHES, schedules: 600, seed: SEED },
    { scenario: name, bound: Math.min(1, bound), schedules: 1200 },
  ];
}

/** Every schedule up to the scenario's bound; the scenarios without a limit have at most 83,000. */
export function deepTasks({ name, bound = 2, atMost = 200_000 }: Scenario): Task[] {
  return [{ scenario: name, bound, schedules: atMost }];
}

const TASKS: Readonly<Record<Effort, (scenario: Scenario) => Task[]>> = {
  quick: quickTasks,
  normal: normalTasks,
  deep: deepTasks,
};

export interface Part {
  readonly kernel: "wasm" | "ts";
  readonly scenario: Scenario;
  readonly tasks: readonly Task[];
}

/** What this run explores on one kernel. */
export function partsOf(kernel: "wasm" | "ts"): Part[] {
  const all = SCENARIOS.length;
  const count = byEffort({
    quick: kernel === "wasm" ? all : all / 8,
    normal: kernel === "wasm" ? all / 3 : all / 8,
    deep: all,
  });
  return sample(SCENARIOS, Math.ceil(count), kernel).map((scenario) => ({
    kernel,
    scenario,
    tasks: byEffort(TASKS)(scenario),
  }));
}
