import { defineConfig } from "vitest/config";
import { EFFORT } from "./test/support/effort.js";
import { LongestFirst } from "./test/support/longest-first.js";
import { leftOut, reportersFor, seed } from "./test/support/run-options.js";

const isDeep = EFFORT === "deep";

// Two workers: many tests start threads of their own.
export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    exclude: [...leftOut, "test/browser/**", "test/pages/**"],
    // In test:deep one: threads that hand each other the turn take ten times as long where a third one wants a core.
    maxWorkers: isDeep ? 1 : 2,
    sequence: { sequencer: LongestFirst },
    runner: "./test/support/runner.ts",
    env: { PAMIR_SEED: seed },
    reporters: reportersFor(process.env.PAMIR_TEST_JSON),
    // A shard may have no test of a file.
    passWithNoTests: true,
    // Who waits gives up by itself, and says for what. This ends what hangs: the slowest take 6 s where nothing else runs.
    testTimeout: isDeep ? 900_000 : 120_000,
    hookTimeout: 120_000,
  },
});
