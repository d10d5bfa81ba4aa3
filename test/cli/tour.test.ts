// `pamir tour`, what `npm start` runs: what it prints, and its exit codes.
import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { missedShare, usualShare } from "../../src/cli/crowd.js";
import { WAYS } from "../../src/cli/stream/ways.js";
import { type TourRow, verdict } from "../../src/cli/tour.js";

let folder = "";

beforeAll(() => {
  folder = mkdtempSync(join(inject("folder"), "tour-"));
});
afterAll(() => rmSync(folder, { recursive: true }));

function tour(...args: string[]): { status: number | null; stdout: string; stderr: string } {
  return spawnSync(process.execPath, ["dist/cli.js", "tour", ...args], { encoding: "utf8", timeout: 110_000 });
}

describe("pamir tour", () => {
  it("shows a program's output, files, figures, a verdict and what is next, in 40 lines of 80 columns", () => {
    const file = join(folder, "some.bin");
    writeFileSync(file, randomBytes(200_001));
    const { status, stdout, stderr } = tour("--quick", file);
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    const lines = stdout.trimEnd().split("\n");
    expect(lines.length).toBeLessThanOrEqual(40);
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(80);
    expect(stdout).toContain(
      "   12 squared is 144, says a worker\n   41538 primes below 500,000, counted by two workers",
    );
    expect(stdout).toContain("   the shared array, filled by both of them: 7, 14, 21, 28\n");
    expect(stdout.match(/^│ (pamir|postMessage), [^│]+ │ +1 │ +200,001 │ +[\d.]+ │ all equal │$/gm)).toHaveLength(4);
    for (const system of ["pamir", "postMessage"])
      expect(stdout).toMatch(new RegExp(`│ ${system} +│ +[\\d,]+ ns │ +[\\d.]+ M │ +[\\d.]+ µs │`));
    expect(stdout).toMatch(/^(Against postMessage\(\), on this machine:\ncalls .* times|This machine is busy: )/m);
    expect(stdout).toMatch(/^Next:$/m);
  });

  it.each([
    { what: "a file that is missing", args: ["missing"], says: /missing: ENOENT/ },
    { what: "an option that is unknown", args: ["--nope"], says: /--nope/ },
  ])("$what: one line that names it, exit code 2", ({ args, says }) => {
    const { status, stdout, stderr } = tour(...args);
    expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
    expect(stderr).toMatch(says);
    expect(stderr.trimEnd().split("\n")).toHaveLength(1);
  });

  it("says how many times as fast as postMessage() it is, or that the machine is too busy to say", () => {
    const rows: TourRow[] = [
      { name: "pamir", system: "pamir-wasm", nanoseconds: 200, rate: 1e7, call: 5 },
      { name: "postMessage", system: "postMessage", nanoseconds: 16_000, rate: 3e5, call: 47.5 },
    ];
    const files = [{ path: "file", content: Buffer.alloc(1000), digest: "x" }];
    const rates = { put: 4e9, send: 2e9, clone: 1e9, transfer: 1.6e9 };
    const streamed = new Map(
      WAYS.filter(({ kernel }) => kernel !== "ts").map((way) => [way, [{ digest: "x", rate: rates[way.move] }]]),
    );
    expect(verdict(rows, files, streamed, 0)).toBe(
      "Against postMessage(), on this machine:\ncalls 9.5 times, messages 80 times, files 2.5 times as fast.",
    );
    expect(verdict(rows, files, streamed, 0.48)).toMatch(/^This machine is busy: a thread had no core for 48 %/);
  });

  it("sees the time that a thread had no core", () => {
    const { now } = performance;
    let time = 0;
    let reading = 0;
    try {
      // Each tenth reading comes 3 ms late.
      performance.now = () => {
        time += ++reading % 10 === 0 ? 3 : 0.01;
        return time;
      };
      expect(missedShare(60)).toBeCloseTo(3 / 3.09, 1);
      expect(usualShare(100)).toBeCloseTo(3 / 3.09, 1);
      // One long pause is the thread's own.
      const start = time;
      performance.now = () => {
        time += time - start > 30 && time - start < 31 ? 40 : 0.01;
        return time;
      };
      expect(usualShare(100)).toBe(0);
      performance.now = () => {
        time += 0.01;
        return time;
      };
      expect(missedShare(60)).toBe(0);
    } finally {
      performance.now = now;
    }
  });
});
