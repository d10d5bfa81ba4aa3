import { defineConfig } from "vitest/config";
import { LongestFirst } from "./test/support/longest-first.js";

/** Where a machine that counts wants its report. */
const report = process.env.PAMIR_TEST_JSON;

// What takes minutes: not part of `npm test`.
export default defineConfig({
  test: {
    include: ["test/**/*.slow.test.ts"],
    // One file at a time: threads that hand each other the turn take ten times as long where a third one wants a core.
    maxWorkers: 1,
    sequence: { sequencer: LongestFirst },
    reporters: report === undefined ? ["default"] : ["default", ["json", { outputFile: report }]],
    passWithNoTests: true,
    testTimeout: 900_000,
    hookTimeout: 60_000,
  },
});
