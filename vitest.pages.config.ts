import { defineConfig } from "vitest/config";

const report = process.env.PAMIR_PAGES_JSON;

// Tests that serve pages and open them in a Chromium.
export default defineConfig({
  test: {
    include: ["test/pages/**/*.test.ts"],
    reporters: report === undefined ? ["default"] : ["default", ["json", { outputFile: report }]],
    maxWorkers: 1,
    // Longer than any wait within a test: that says what is missing.
    testTimeout: 240_000,
    hookTimeout: 120_000,
  },
});
