// npm run sim, as it is called.
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const script = fileURLToPath(new URL("../../scripts/sim.mjs", import.meta.url));
const sim = (...args: string[]) => spawnSync(process.execPath, [script, ...args], { encoding: "utf8" });

describe("npm run sim", () => {
  it("says what each seed drew and what came of it, the same each time", () => {
    const [first, second] = [
      sim("--seed", "7", "--nodes", "3", "--count", "2"),
      sim("--seed", "7", "--nodes", "3", "--count", "2"),
    ];
    expect(first.stderr).toBe("");
    expect(first.status).toBe(0);
    for (const seed of [7, 8]) {
      expect(first.stdout).toContain(`seed ${seed}, sessions: drew {"nodes":3,`);
      expect(first.stdout).toContain(`seed ${seed}, sessions: came to {"sent":`);
      expect(first.stdout).toContain(`seed ${seed}, API: drew {"tasks":3,`);
      expect(first.stdout).toContain(`seed ${seed}, API: came to {"operations":`);
    }
    expect(second.stdout).toBe(first.stdout);
  });

  it("--help says how", () => {
    const { status, stdout } = sim("--help");
    expect(status).toBe(0);
    expect(stdout).toMatch(/^Usage: npm run sim/);
  });

  it.each([
    [["--seed", "x"], '--seed is "x", not an integer from -2147483648 to 2147483647'],
    [["--nodes", "1"], '--nodes is "1", not an integer from 2 to 1000'],
    [["--count", "0"], '--count is "0", not an integer from 1 to 1000000000'],
    [["--sed", "1"], "Unknown option '--sed'"],
    [["7"], "Unexpected argument '7'"],
  ])("%j: exit code 2, and what is wrong", (args, message) => {
    const { status, stderr } = sim(...args);
    expect(status).toBe(2);
    expect(stderr).toContain(message);
    expect(stderr).toContain("Usage: npm run sim");
  });
});
