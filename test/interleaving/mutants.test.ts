// Whether the explorer finds what it is for: deliberate bugs, each caught by some scenario.
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { explore } from "./explore.js";
import { compiled, MUTANTS } from "./mutants.js";
import { SCENARIOS } from "./scenarios.js";

it("without a mutant the sources give the module that ships, byte for byte", async () => {
  const shipped = readFileSync(new URL("../../dist/pamir.wasm", import.meta.url));
  expect(Buffer.compare(shipped, await compiled())).toBe(0);
});

it.each(MUTANTS)("caught: $name", { timeout: 120_000 }, async (mutant) => {
  const wasm = await compiled(mutant);
  for (const scenario of SCENARIOS) {
    const { failure } = await explore({ scenario, kernel: "wasm", wasm }, { bound: 2, schedules: 1e6 });
    if (failure !== undefined) {
      expect(failure.trace.length).toBeGreaterThan(0);
      return;
    }
  }
  throw new Error("no scenario sees it");
});
