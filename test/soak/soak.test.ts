// The soak, as a user calls it: a few seconds find nothing, and its model is not blind.
import { describe, expect, it } from "vitest";
import { byEffort, SEED } from "../support/effort.js";
import { Book, FAULTS } from "./model.js";
import { expectClean, soak } from "./support.js";

describe("npm run soak", () => {
  it("collective operations of tasks that end come to their results, or to SHUTDOWN", { timeout: 420_000 }, () => {
    const options = ["--only", "collectives", "--seed", `${SEED >>> 1}`, "--seconds", "1"];
    const { operations, kills } = expectClean([
      "--minutes",
      byEffort({ quick: "0.05", normal: "0.1", deep: "1.5" }),
      ...options,
    ]);
    expect(operations).toBeGreaterThan(20);
    expect(kills).toBeGreaterThan(0);
  });

  it("more tasks than cores: calls, streams and barriers while tasks end", { timeout: 420_000 }, () => {
    const { operations, kills } = expectClean([
      "--minutes",
      "0.05",
      "--seed",
      `${SEED >>> 1}`,
      "--seconds",
      "2",
      "--crowd",
    ]);
    expect(operations).toBeGreaterThan(100);
    expect(kills).toBeGreaterThan(0);
  });

  it("goes on until its time is over, and tells what it has seen", { timeout: 420_000 }, () => {
    const { operations } = expectClean(["--minutes", "0.05", "--seed", "5", "--seconds", "1"]);
    expect(operations).toBeGreaterThan(100);
  });

  it("a thread that was broken off in the midst of a step counts no failure any more, and others do", () => {
    const buffer = new SharedArrayBuffer(Book.bytes(2, 1));
    const [broken, whole] = [new Book(buffer, 2, 1), new Book(buffer, 2, 1)];
    broken.breakOff(1);
    broken.fail("others", "advance() is not re-entrant");
    expect(whole.hasFailed).toBe(false);
    expect([0, 1].map((task) => whole.isBroken(task))).toEqual([false, true]);
    whole.fail("others", "a message is lost");
    expect(whole.notes).toEqual(["others: a message is lost"]);
  });

  it.each(Object.entries(FAULTS))(
    "is not blind: a fault that is injected, %s, is %s",
    { timeout: 420_000 },
    (fault, name) => {
      const options = ["--only", "traffic", "--round", "3", "--seed", "5", "--seconds", "60", "--tasks", "2"];
      if (name === "hung") options.push("--patience", "4");
      const { status, stdout } = soak(options, { PAMIR_SOAK_FAULT: fault });
      expect({ status, stdout }).toEqual({ status: 1, stdout: expect.stringMatching(new RegExp(`, ${name} [1-9]`)) });
      expect(stdout).toContain(`\n  ${name}: `);
      expect(stdout).toContain(
        "again: npm run soak -- --seed 5 --round 3 --only traffic --kernels wasm,ts --tasks 2..2 --seconds 60",
      );
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
    [["--tasks", "65", "--crowd"], '--tasks is "65": a number or range from 1 to 64'],
    [["--crowd", "--link", "udp"], "--crowd does not go with --link"],
    [["--crowd", "--only", "collectives"], "--only collectives does not go with --crowd"],
    [["--seconds", "0"], '--seconds is "0": a number from 0.1 to 3600'],
    [["--link", "tcp"], '--link is "tcp": there are udp and nats'],
    [["--link", "udp", "--processes"], "--link does not go with --processes"],
    [["--only", "all"], '--only is "all": there are traffic and collectives'],
    [["--only", "collectives", "--link", "udp"], "--only collectives does not go with --link"],
    [["--hours", "1"], "Unknown option '--hours'"],
    [["more"], "Unexpected argument 'more'"],
  ])("%j: says what is wrong", (args, says) => {
    const { status, stdout, stderr } = soak(args);
    expect({ status, stdout, stderr }).toEqual({ status: 2, stdout: "", stderr: expect.stringContaining(says) });
  });

  it("--help names every option", () => {
    const { status, stdout } = soak(["--help"]);
    expect(status).toBe(0);
    for (const option of [
      "minutes",
      "seed",
      "round",
      "only",
      "kernels",
      "tasks",
      "crowd",
      "processes",
      "link",
      "seconds",
      "patience",
    ]) {
      expect(stdout).toContain(`--${option}`);
    }
  });
});
