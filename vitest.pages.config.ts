import { defineConfig } from "vitest/config";

const report = process.env.PAMIR_PAGES_JSON;

// Tests that serve pages and open them in a Chromium.
export default defineConfig({
  test: {
    include: ["test/pages/**/*.test.ts"],
    reporters: report === undefined ? ["default"] : ["default", ["json", { outputFile: report }]],
    maxWorkers: 1,
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
