import { defineConfig } from "vitest/config";
import { EFFORT } from "./test/support/effort.js";
import { LongestFirst } from "./test/support/longest-first.js";
import { leftOut, NATIVE, reportersFor, seed } from "./test/support/run-options.js";

const isDeep = EFFORT === "deep";

const ALL = "test/**/*.test.ts";
const EXPLORED = "test/interleaving/**/*.test.ts";

/** It mocks a module: only Vite does so for Node 20. */
const MOCKING = "test/conformance/network.test.ts";

const mocking = { extends: true as const, test: { name: "mocking", include: [MOCKING], maxWorkers: 2 } };

/** In test:deep one worker explores: threads that hand each other the turn take ten times as long where a third one wants a core. */
const DEEP_PROJECTS = [
  {
    extends: true as const,
    test: { ...NATIVE, name: "explored", include: [EXPLORED], maxWorkers: 1, sequence: { groupOrder: 0 } },
  },
  {
    extends: true as const,
    test: {
      ...NATIVE,
      name: "other",
      include: [ALL],
      exclude: [EXPLORED, MOCKING],
      maxWorkers: 2,
      sequence: { groupOrder: 1 },
    },
  },
  { ...mocking, test: { ...mocking.test, sequence: { groupOrder: 1 } } },
];

const PROJECTS = [
  { extends: true as const, test: { ...NATIVE, name: "all", include: [ALL], exclude: [MOCKING], maxWorkers: 2 } },
  mocking,
];

// Two workers: many tests start threads of their own.
export default defineConfig({
  test: {
    exclude: [...leftOut, "test/browser/**", "test/pages/**"],
    maxWorkers: 2,
    projects: isDeep ? DEEP_PROJECTS : PROJECTS,
    // To load the sources anew takes longer than the tests of most files do.
    isolate: false,
    globalSetup: "./test/support/folder.mjs",
    sequence: { sequencer: LongestFirst },
    runner: "./test/support/runner.ts",
    env: { PAMIR_SEED: seed },
    reporters: reportersFor(process.env.PAMIR_TEST_JSON),
    // A shard may have no test of a file.
    passWithNoTests: true,
    // Who waits gives up by itself, and says for what. This ends what hangs: the slowest take 6 s where nothing else runs.
    testTimeout: isDeep ? 900_000 : 120_000,
    hookTimeout: 120_000,
    // Vitest's own second is too short where others have the cores.
    expect: { poll: { timeout: 60_000 } },
  },
});
