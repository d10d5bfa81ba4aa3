// The job of a launcher: whose failure is the first. The tasks are this test's, and end when it says so.
import { PassThrough } from "node:stream";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { endText, ProcessJob } from "../../src/cli/run/job.js";
import type { RunTask, TaskEnd } from "../../src/cli/run/task.js";

function fakeTask(task: number) {
  let end: (end: TaskEnd) => void = () => {};
  const ended = new Promise<TaskEnd>((resolve) => {
    end = resolve;
  });
  const [stdout, stderr, pmi] = [new PassThrough(), new PassThrough(), new PassThrough()];
  const launched: RunTask = { task, stdout, stderr, pmi, ended, tell: () => {}, kill: () => {}, pass: () => {} };
  return { launched, exit: (code: number) => end({ code, signal: null }) };
}

describe("the exit code of a job", () => {
  const said: string[] = [];
  beforeEach(() => {
    said.length = 0;
    vi.spyOn(process.stderr, "write").mockImplementation((text) => said.push(`${text}`.trim()) > 0);
  });
  afterEach(() => {
    vi.restoreAllMocks();
  });

  const jobOf = (onError: "report" | "abort", cause?: number) => {
    const tasks = [0, 1, 2].map(fakeTask);
    const job = new ProcessJob({ onError, labels: undefined, cause: () => cause });
    const code = job.run(tasks.map(({ launched }) => launched));
    return { code, exit: (task: number, how: number) => tasks[task]?.exit(how) };
  };

  it.each(["report", "abort"] as const)(
    "%s: that of the task whose loss made others fail, though they are heard first",
    async (onError) => {
      const { code, exit } = jobOf(onError, 1);
      exit(0, 1);
      exit(2, 1);
      await Promise.resolve();
      exit(1, 5);
      expect(await code).toBe(5);
      expect(said[0]).toMatch(/^pamir: task 1 exited with code 5/);
      expect(said).toHaveLength(onError === "abort" ? 1 : 3);
    },
  );

  it("that of the first one that is heard, where none made others fail, or the one that did goes on", async () => {
    for (const cause of [undefined, 1]) {
      const { code, exit } = jobOf("report", cause);
      exit(0, 3);
      if (cause === undefined) exit(1, 5);
      await vi.waitUntil(() => said.some((line) => line.includes("task 0")), { timeout: 60_000 });
      exit(1, 0);
      exit(2, 0);
      expect(await code).toBe(3);
      said.length = 0;
    }
  });
});

it.each([
  [{ code: 13, signal: null }, "exited with code 13: a top-level await of its program can't settle any more"],
  [{ code: 12, signal: null }, "exited with code 12"],
  [{ code: null, signal: "SIGKILL" }, "was ended by SIGKILL"],
] as const)("an end is told in words: %o", (end, text) => {
  expect(endText(end)).toBe(text);
});
