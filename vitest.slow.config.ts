import { defineConfig } from "vitest/config";

// What takes minutes: not part of `npm test`.
export default defineConfig({
  test: {
    include: ["test/**/*.slow.test.ts"],
    maxWorkers: 2,
    passWithNoTests: true,
    testTimeout: 900_000,
    hookTimeout: 60_000,
  },
});
