// The output of `pamir run` behind a slow reader: tasks are held back, nothing is lost, and a signal ends the job.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, inject, it } from "vitest";
import { byEffort, sample } from "../support/effort.js";
import { cli, withoutWaits } from "../support/run-command.js";
import { LOCAL_SHELL, script } from "../support/ssh.js";

const program = fileURLToPath(new URL("programs/polite.js", import.meta.url));
const slowReader = fileURLToPath(new URL("programs/slow-reader.js", import.meta.url));
/** Tasks of a job, more than the 10 listeners that Node allows on a stream without a warning. */
const TASKS = 12;
/** Lines of 65 KB that may be on their way from a task: in pipes, and in the streams of two threads. */
const HELD_MAX = 32;
/** Milliseconds without a new line after which a job is held back. */
const QUIET_MS = 500;

const rsh = script(mkdtempSync(join(inject("folder"), "output-")), "rsh", LOCAL_SHELL);

/** Options of a job of so many tasks. */
const WAYS: readonly (readonly [string, (tasks: number) => readonly string[]])[] = [
  ["threads", () => []],
  ["threads of a process", () => ["--processes", "1"]],
  ["processes", (tasks) => ["--processes", `${tasks}`]],
  ["processes, no labels", (tasks) => ["--processes", `${tasks}`, "--no-labels"]],
  ["nodes", () => ["--nodes", "2"]],
  ["nodes, no labels", () => ["--nodes", "2", "--no-labels"]],
  ["hosts", (tasks) => ["--hosts", `a:${tasks / 2},b:${tasks / 2}`, "--rsh", rsh]],
  ["hosts, no labels", (tasks) => ["--hosts", `a:${tasks / 2},b:${tasks / 2}`, "--rsh", rsh, "--no-labels"]],
];
const HERE = process.platform === "linux" ? WAYS : WAYS.slice(0, 1);

const drawn = sample(HERE, byEffort({ quick: 1, normal: 2, deep: HERE.length }), "pamir run behind a slow reader");
describe.each(drawn)("%s", (name, way) => {
  const started: ChildProcess[] = [];
  afterEach(() => {
    for (const child of started.splice(0)) child.kill("SIGKILL");
  });

  /** Starts a job, and waits until it writes no more. Nothing is read. */
  async function startHeld(manner: string, tasks: number, lines: number): Promise<[ChildProcess, () => number]> {
    const noted = join(mkdtempSync(join(inject("folder"), "output-")), "noted");
    const args = [cli, "run", "-n", `${tasks}`, ...way(tasks), program, manner, `${lines}`, noted];
    const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"] });
    started.push(child);
    const count = (): number => (existsSync(noted) ? statSync(noted).size : 0);
    for (let last = -1; last <= 0 || count() > last; ) {
      last = count();
      await new Promise((resolve) => setTimeout(resolve, QUIET_MS));
    }
    return [child, count];
  }

  /** Reads a job's output to its end. @returns how many lines came of each task; they have come in order */
  async function readAll({ stdout, stderr }: ChildProcess): Promise<number[]> {
    let [output, errors] = ["", ""];
    (stdout as Readable).setEncoding("latin1").on("data", (text: string) => {
      output += text.replace(/x{2,}/g, (all) => (all.length < 1000 ? all : `<${all.length}>`));
    });
    (stderr as Readable).setEncoding("utf8").on("data", (text: string) => {
      errors += text;
    });
    await Promise.all([once(stdout as Readable, "end"), once(stderr as Readable, "end")]);
    expect(withoutWaits(errors)).toBe("");
    const counts: number[] = [];
    if (name.endsWith("no labels")) return [output.split("\n").length - 1];
    for (const line of output.trimEnd().split("\n")) {
      const [, task, index, rest] = /^\[(\d+)\] (\d+) (.*)$/.exec(line) ?? [];
      expect(Number(index)).toBe(counts[Number(task)] ?? 0);
      const length = (rest as string).replace(/<(\d+)>/g, (_, size) => "x".repeat(Number(size))).length;
      expect(length).toBe(65_000);
      counts[Number(task)] = Number(index) + 1;
    }
    return counts;
  }

  it("a task that waits for its output is held back; all of it comes out once it is read", async () => {
    const lines = 4 * HELD_MAX;
    const [child, count] = await startHeld("polite", 2, lines);
    expect(count()).toBeLessThan(2 * HELD_MAX);
    const closed = once(child, "close");
    expect((await readAll(child)).reduce((sum, one) => sum + one)).toBe(2 * lines);
    expect(await closed).toEqual([0, null]);
  });

  it("the last output of many tasks that have ended, or wait for nothing but that, comes out whole", async () => {
    const [child] = await startHeld("hasty", TASKS, 8);
    const closed = once(child, "close");
    expect((await readAll(child)).reduce((sum, one) => sum + one)).toBe(8 * TASKS);
    expect(await closed).toEqual([0, null]);
  });

  it("SIGTERM ends a job that is held back, though nothing is read", async () => {
    const [child] = await startHeld("polite", 2, 1e6);
    child.kill("SIGTERM");
    expect(await once(child, "exit")).toEqual([143, null]);
  });

  it("the end of its reader ends a job that is held back", async () => {
    const [child] = await startHeld("polite", 2, 1e6);
    child.stdout?.destroy();
    expect(await once(child, "exit")).toEqual([141, null]);
  });
});

/** Ways in which each task is a process, and what is written at its end. */
const ENDS = [
  ["exit", 0, ""],
  ["throw", 1, "Error: the last word"],
  ["abort", 134, "by SIGABRT"],
  ["kill", 137, "by SIGKILL"],
] as const;
const PROCESSES = HERE.filter(([name]) => /^(processes|nodes|hosts)$/.test(name));
const ended = sample(
  PROCESSES.flatMap(([name, way]) => ENDS.map(([manner, ...end]) => [name, manner, way, ...end] as const)),
  byEffort({ quick: 1, normal: 3, deep: 12 }),
  "the last output of a task",
);
it.each(ended)("%s, %s: nothing that a task has written is lost at its end", async (_, manner, way, code, said) => {
  const lastWords = fileURLToPath(new URL("programs/last-words.js", import.meta.url));
  const args = [cli, "run", "-n", "2", ...way(2), lastWords, manner];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"] });
  const closed = once(child, "close");
  const [output, errors] = await Promise.all([text(child.stdout), text(child.stderr)]);
  const linesOf = (all: string, kind: string, task: number): number[] =>
    Array.from(all.matchAll(new RegExp(`^\\[${task}\\] ${kind} (\\d+)$`, "gm")), ([, line]) => Number(line));
  const whole = Array.from({ length: 300 }, (_, line) => line);
  for (const task of [0, 1]) {
    expect(linesOf(output, "out", task)).toEqual(whole);
    expect(linesOf(errors, "err", task)).toEqual(whole);
  }
  expect(output.replace(/[^x]/g, "").length).toBe(2_000_000);
  expect(errors.includes(said)).toBe(true);
  expect((await closed)[0]).toBe(code);
});

/** The longest line that a process writes in one piece, with its label and end: PIPE_BUF of Linux. */
const WHOLE_MAX = 4096;

it.runIf(process.platform === "linux").each([WHOLE_MAX, 3000, 60])(
  "threads of several processes write to one pipe: lines of up to %d bytes stay whole behind a slow reader",
  async (length) => {
    const [tasks, lines] = [4, Math.floor(250_000 / length)];
    const noted = join(mkdtempSync(join(inject("folder"), "output-")), "noted");
    const filling = length - `[0] ${lines - 1} \n`.length;
    const args = ["-n", `${tasks}`, "--processes", "2", program, "hasty", `${lines}`, noted, `${filling}`];
    // Through a shell, since what Node makes for `stdio: "pipe"` is a socket.
    const command = ["-c", '"$@" | "$1" "$0"', slowReader, process.execPath, cli, "run", ...args];
    const child = spawn("sh", command, { stdio: ["ignore", "pipe", "inherit"] });
    const output = await text(child.stdout);
    const counts = new Array(tasks).fill(0);
    for (const line of output.trimEnd().split("\n")) {
      const [, task, index, rest] = /^\[(\d)\] (\d+) (x+)$/.exec(line) ?? [];
      const begin = line.slice(0, 20);
      expect({ begin, index: Number(index), filling: rest?.length }).toEqual({
        begin,
        index: counts[Number(task)],
        filling,
      });
      counts[Number(task)]++;
    }
    expect(counts).toEqual(new Array(tasks).fill(lines));
  },
);

describe.runIf(process.platform === "linux")("several hosts", () => {
  it("behind a task whose output is not read, those of its host go on: attach(), messages, errors, ends", async () => {
    const flood = fileURLToPath(new URL("programs/flood.js", import.meta.url));
    const args = [cli, "run", "--hosts", "a:2,b:2", "--rsh", rsh, flood];
    const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"] });
    try {
      let errors = "";
      // Task 0 never ends by itself; nothing is read of what it writes.
      await new Promise<void>((resolve) => {
        (child.stderr as Readable).setEncoding("utf8").on("data", (text: string) => {
          errors += text;
          if (errors.includes("task 3 exited") && errors.includes("heard")) resolve();
        });
      });
      expect(
        withoutWaits(errors)
          .split("\n")
          .filter((line) => line !== "")
          .sort(),
      ).toEqual(["[1] heard 100 messages of task 3", "pamir: task 3 exited with code 9"]);
    } finally {
      child.kill("SIGTERM");
    }
    expect(await once(child, "exit")).toEqual([143, null]);
  });
});
