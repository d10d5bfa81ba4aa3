// Runs the soak as a user calls it.
import { spawnSync } from "node:child_process";
import { expect } from "vitest";

const NONE = "lost 0, repeated 0, reordered 0, torn 0, hung 0, sums 0, contents 0, calls 0, memory 0, others 0";
const SUMMARY = new RegExp(`^soak: seed (\\d+), (\\d+) rounds, (\\d+) operations, (\\d+) kills, ${NONE}$`, "m");

export function soak(args: readonly string[], env: Record<string, string> = {}) {
  const { status, stdout, stderr } = spawnSync(process.execPath, ["test/soak/soak.mjs", ...args], {
    encoding: "utf8",
    env: { ...process.env, ...env },
    timeout: 400_000,
  });
  return { status, stdout, stderr };
}

/** Runs rounds that find nothing. */
export function expectClean(args: readonly string[]): { operations: number; kills: number } {
  const { status, stdout, stderr } = soak(args);
  // Once in some 1,000 kills Node aborts a round by an assertion of its own, and says so; it is run again.
  const hasAborted = /^round \d+: Node aborted by an assertion of its own: once more$/m.test(stdout);
  const told = hasAborted ? expect.stringMatching(/Assertion failed/) : "";
  expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: expect.stringMatching(SUMMARY), stderr: told });
  const [rounds, operations, kills] = (SUMMARY.exec(stdout) ?? []).slice(2).map(Number) as [number, number, number];
  expect(rounds).toBeGreaterThan(0);
  expect(stdout.match(/^round \d+: .*: ok$/gm)).toHaveLength(rounds);
  return { operations, kills };
}
