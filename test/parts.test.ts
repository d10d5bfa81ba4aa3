// How `npm test` runs its parts: scripts/parts.mjs.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { expect, inject, it, vi } from "vitest";
import type { TestCase, TestModule } from "vitest/node";
import { type Part, runParts, summaryOf } from "../scripts/parts.mjs";
import { ProgressReporter } from "./support/reporter.js";

/** A part that runs this program. */
const part = (name: string, program: string): Part => ({ name, command: [process.execPath, "-e", program] });

async function run(stages: readonly (readonly (readonly Part[])[])[]) {
  let written = "";
  const outcomes = await runParts(stages, (text) => {
    written += text;
  });
  return { outcomes, lines: written.split("\n"), summary: summaryOf(outcomes) };
}

it("a part that fails, that a signal ends, or that cannot be started does not stop the following ones", async () => {
  const { outcomes } = await run([
    [[part("one", "process.exit(3)")]],
    [[part("two", "process.kill(process.pid, 'SIGKILL')"), { name: "three", command: ["/nowhere"] }, part("four", "")]],
  ]);
  expect(outcomes.map(({ name, status }) => [name, status])).toEqual([
    ["one", 3],
    ["two", 1],
    ["three", 1],
    ["four", 0],
  ]);
});

it("what parts beside each other write comes in the order of the parts, whole", async () => {
  const { lines } = await run([
    [
      [part("a", "setTimeout(() => console.log('first'), 300)")],
      [part("b", "console.log('second')"), part("c", "console.error('third')")],
    ],
  ]);
  expect(lines.filter((line) => /^(first|second|third)$/.test(line))).toEqual(["first", "second", "third"]);
});

it("the last line says what has passed, what has failed and what was not run", async () => {
  const report = join(inject("folder"), "parts.json");
  writeFileSync(report, JSON.stringify({ numPassedTests: 5, numFailedTests: 2, numPendingTests: 1 }));
  const { summary } = await run([
    [
      [part("build", "")],
      [{ ...part("suite", "console.log('not run: \\u001b[1mFirefox\\u001b[0m'); process.exit(1)"), report }],
    ],
    [[part("pages", "console.error('not run: Firefox\\nnot run: MPI')")]],
  ]);
  expect(summary.replace(/\d+ s\)/g, "N s)")).toBe(
    "passed: build (exit code 0, N s), pages (exit code 0, N s); " +
      "failed: suite (5 tests passed, 2 failed, 1 skipped, exit code 1, N s); not run: Firefox; MPI",
  );
});

it.each(["SIGTERM", "SIGINT"] as const)("%s ends the part that runs, and the others are not run", async (signal) => {
  const program = `
    import { runParts, summaryOf } from ${JSON.stringify(new URL("../scripts/parts.mjs", import.meta.url).href)};
    const part = (name, text) => ({ name, command: [process.execPath, "-e", text] });
    // What it starts has its output, and keeps it open.
    const first = part("first", \`
      const { spawn } = require("node:child_process");
      spawn(process.execPath, ["-e", "console.log('up'); setInterval(() => {}, 1000)"], { stdio: "inherit" });\`);
    const outcomes = await runParts([[[first, part("second", "")]]], (text) => process.stdout.write(text));
    console.log(summaryOf(outcomes));`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", program], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  child.stdout.once("data", () => child.kill(signal));
  const [written] = await Promise.all([text(child.stdout), once(child, "exit")]);
  expect(written.trim().split("\n").at(-1)).toMatch(
    /^passed: nothing; failed: first .*, second .*; not run: second, since a signal came$/,
  );
});

it("the line of what runs names no test that is over, in whatever order Vitest tells of it", () => {
  const lines: string[] = [];
  vi.useFakeTimers();
  vi.spyOn(console, "log").mockImplementation((line: string) => void lines.push(line));
  try {
    const reporter = new ProgressReporter("7");
    const module = { relativeModuleId: "a.test.ts" };
    const test = (name: string, state: string) => ({ name, module, result: () => ({ state }) }) as unknown as TestCase;
    const [late, silent, running] = [test("late", "passed"), test("silent", "failed"), test("runs", "pending")];
    reporter.onTestRunStart([module]);
    reporter.onTestCaseResult(late);
    for (const one of [late, silent, running]) reporter.onTestCaseReady(one);
    vi.advanceTimersByTime(9000);
    expect(lines.at(-1)).toMatch(/^0 of 1 files, 1 tests; running: a\.test\.ts: runs \(\d+ s\)$/);
    reporter.onTestModuleEnd(module as unknown as TestModule);
    vi.advanceTimersByTime(9000);
    expect(lines.at(-1)).toBe("1 of 1 files, 1 tests");
    reporter.onTestRunEnd([]);
  } finally {
    vi.restoreAllMocks();
    vi.useRealTimers();
  }
});
