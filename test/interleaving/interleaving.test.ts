// The lock-free parts under every schedule with at most two preemptions; see README.md.
import { describe, expect, it } from "vitest";
import { explore } from "./explore.js";
import { SCENARIOS } from "./scenarios.js";

for (const kernel of ["wasm", "ts"] as const) {
  describe(`every schedule with two preemptions: ${kernel}`, () => {
    for (const scenario of SCENARIOS) {
      it(scenario.name, { timeout: 120_000 }, async () => {
        const { failure, complete, schedules } = await explore({ scenario, kernel }, { bound: 2, schedules: 1e6 });
        if (failure !== undefined) {
          throw new Error(`${failure.text}\nreplay: ${JSON.stringify(failure.plan)}\n${failure.trace.join("\n")}`);
        }
        expect(complete).toBe(true);
        expect(schedules).toBeGreaterThan(20);
      });
    }
  });
}
