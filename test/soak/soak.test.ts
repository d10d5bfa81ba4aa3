// The soak, as a user calls it: a few seconds find nothing, and its model is not blind.
import { spawnSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { FAULTS } from "./model.js";

const SUMMARY =
  /^soak: seed 5, (\d+) rounds, (\d+) operations, \d+ kills, lost 0, repeated 0, reordered 0, torn 0, hung 0, sums 0, contents 0, calls 0, memory 0, others 0$/m;

function soak(args: readonly string[], env: Record<string, string> = {}) {
  const { status, stdout, stderr } = spawnSync(process.execPath, ["test/soak/soak.mjs", ...args], {
    encoding: "utf8",
    env: { ...process.env, ...env },
    timeout: 120_000,
  });
  return { status, stdout, stderr };
}

describe("npm run soak", () => {
  it("goes on until its time is over, and tells what it has seen", { timeout: 150_000 }, () => {
    const { status, stdout, stderr } = soak(["--minutes", "0.05", "--seed", "5", "--seconds", "1"]);
    // Once in some 1,000 kills Node aborts a round by an assertion of its own, and says so; it is run again.
    const hasAborted = /^round \d+: Node aborted by an assertion of its own: once more$/m.test(stdout);
    const told = hasAborted ? expect.stringMatching(/Assertion failed/) : "";
    expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: expect.stringMatching(SUMMARY), stderr: told });
    const [, rounds, operations] = SUMMARY.exec(stdout) ?? [];
    expect(Number(rounds)).toBeGreaterThan(0);
    expect(Number(operations)).toBeGreaterThan(100);
    expect(stdout.match(/^round \d+: .*: ok$/gm)).toHaveLength(Number(rounds));
  });

  it.each(Object.entries(FAULTS))(
    "is not blind: a fault that is injected, %s, is %s",
    { timeout: 150_000 },
    (fault, name) => {
      const options = ["--round", "3", "--seed", "5", "--seconds", "60", "--tasks", "2"];
      if (name === "hung") options.push("--patience", "4");
      const { status, stdout } = soak(options, { PAMIR_SOAK_FAULT: fault });
      expect({ status, stdout }).toEqual({ status: 1, stdout: expect.stringMatching(new RegExp(`, ${name} [1-9]`)) });
      expect(stdout).toContain(`\n  ${name}: `);
      expect(stdout).toContain("again: npm run soak -- --seed 5 --round 3 --kernels wasm,ts --tasks 2..2 --seconds 60");
    },
  );

  it.each([
    [["--minutes", "-1"], "'--minutes' argument"],
    [["--minutes", "x"], '--minutes is "x": a number from 0 to 100000'],
    [["--seed", "1.5"], '--seed is "1.5": a whole number from 0 to 2147483647'],
    [["--round", "9999999999"], '--round is "9999999999": a whole number from 0 to 2147483647'],
    [["--kernels", "wasm,c"], '--kernels is "wasm,c": a list of wasm and ts'],
    [["--tasks", "4..2"], '--tasks is "4..2": a number or range from 1 to 8, as 3 or 2..4'],
    [["--tasks", "9"], '--tasks is "9"'],
    [["--seconds", "0"], '--seconds is "0": a number from 0.1 to 3600'],
    [["--hours", "1"], "Unknown option '--hours'"],
    [["more"], "Unexpected argument 'more'"],
  ])("%j: says what is wrong", (args, says) => {
    const { status, stdout, stderr } = soak(args);
    expect({ status, stdout, stderr }).toEqual({ status: 2, stdout: "", stderr: expect.stringContaining(says) });
  });

  it("--help names every option", () => {
    const { status, stdout } = soak(["--help"]);
    expect(status).toBe(0);
    for (const option of ["minutes", "seed", "round", "kernels", "tasks", "seconds", "patience"]) {
      expect(stdout).toContain(`--${option}`);
    }
  });
});
