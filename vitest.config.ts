import { defineConfig } from "vitest/config";
import { LongestFirst } from "./test/support/longest-first.js";

/** Where a machine that counts wants its report. */
const report = process.env.PAMIR_TEST_JSON;

// Two workers: many tests start threads of their own.
export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    exclude: ["test/**/*.slow.test.ts", "test/browser/**", "test/pages/**"],
    maxWorkers: 2,
    sequence: { sequencer: LongestFirst },
    reporters: report === undefined ? ["default"] : ["default", ["json", { outputFile: report }]],
    // Who waits gives up by itself, and says for what. This ends what hangs: the slowest take 6 s where nothing else runs.
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});
