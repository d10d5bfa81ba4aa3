import { defineConfig } from "vitest/config";
import { leftOut, NATIVE, reportersFor, seed } from "./test/support/run-options.js";

const report = process.env.PAMIR_PAGES_JSON;

// Tests that serve pages and open them in a Chromium.
export default defineConfig({
  test: {
    include: ["test/pages/**/*.test.ts"],
    exclude: [...leftOut],
    passWithNoTests: true,
    ...NATIVE,
    env: { PAMIR_SEED: seed },
    reporters: reportersFor(report),
    maxWorkers: 1,
    // One browser for all files.
    isolate: false,
    // Longer than any wait within a test: that says what is missing.
    testTimeout: 240_000,
    hookTimeout: 240_000,
    // Vitest's own second is too short where others have the cores.
    expect: { poll: { timeout: 60_000 } },
  },
});
