// What a task sees of the command line and of the environment, however it is started: what the user gave, and no more.
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { byEffort, sample } from "../support/effort.js";
import { cli, withoutWaits } from "../support/run-command.js";

const program = fileURLToPath(new URL("programs/sees.js", import.meta.url));
const run = (...way: string[]): string[] => [cli, "run", "-n", "2", "--no-labels", ...way, program, "task", "more"];
const WAYS: readonly (readonly [string, readonly string[]])[] = [
  ["pamir run, threads", run()],
  ["launch, threads", [program, "launch", "threads"]],
];
const OF_LINUX: typeof WAYS = [
  ["pamir run --processes 1", run("--processes", "1")],
  ["pamir run --processes 2", run("--processes", "2")],
  ["pamir run --nodes 2", run("--nodes", "2")],
  ["pamir run --hosts", run("--hosts", "localhost:2")],
  ["launch, a process", [program, "launch", "1"]],
  ["launch, processes", [program, "launch", "2"]],
];
const ways = [...WAYS, ...(process.platform === "linux" ? OF_LINUX : [])];

it.each(sample(ways, byEffort({ quick: 1, normal: 4, deep: ways.length }), "arguments of tasks"))(
  "%s: tasks, their children and their threads see the options of Node that the user gave",
  (_, args) => {
    // Of the process, and of each thread.
    const options = ["--max-old-space-size=500", "--no-warnings"];
    const { stdout, stderr } = spawnSync(process.execPath, [...options, ...args], {
      encoding: "utf8",
      timeout: 60_000,
      argv0: "node",
    });
    expect(withoutWaits(stderr)).toBe("");
    const given = JSON.stringify(options);
    const lines = stdout.trim().split("\n");
    expect(JSON.parse(lines[0] as string)).toEqual({
      execArgv: options,
      argv: [program, "task", "more"],
      argv0: "node",
    });
    expect(lines.slice(1)).toEqual([
      `before ["PAMIR_NOT_IN_JOB",${given}]`,
      `after ["PAMIR_NOT_IN_JOB",${given}]`,
      `thread ${given}`,
    ]);
  },
);
