import { defineConfig } from "vitest/config";
import { LongestFirst } from "./test/support/longest-first.js";

/** Where a machine that counts wants its report. */
const report = process.env.PAMIR_TEST_JSON;

// What takes minutes: not part of `npm test`.
export default defineConfig({
  test: {
    include: ["test/**/*.slow.test.ts"],
    maxWorkers: 2,
    sequence: { sequencer: LongestFirst },
    reporters: report === undefined ? ["default"] : ["default", ["json", { outputFile: report }]],
    passWithNoTests: true,
    testTimeout: 900_000,
    hookTimeout: 60_000,
  },
});
