// How tasks of `pamir run` end, and what becomes of the processes that they have started.
import { spawnSync } from "node:child_process";
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, inject, it, vi } from "vitest";
import { cli, killAllWith, PATIENCE, processesWith, withoutWaits } from "../support/run-command.js";
import { LOCAL_SHELL, script } from "../support/ssh.js";

const programOf = (name: string): string => fileURLToPath(new URL(`programs/${name}`, import.meta.url));
const folder = mkdtempSync(join(inject("folder"), "ends-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const rsh = script(folder, "rsh", LOCAL_SHELL);

/** A mark that all processes of a job inherit, and what ends those that are left. */
function marked(): { mark: string; left: () => number[]; killAll: () => void } {
  const mark = `${process.pid}-${performance.now()}`;
  const left = () => processesWith("PAMIR_MARK", mark);
  const killAll = () => killAllWith("PAMIR_MARK", mark);
  return { mark, left, killAll };
}

/** Runs a job of two tasks. It is killed if it takes longer than a child of a task would take in time. */
function runTwo(mark: string, ...args: string[]) {
  // Files: a pipe is not over while a child of a task holds it.
  const files = ["output", "errors"].map((name) => join(folder, name));
  const [stdout, stderr] = files.map((file) => openSync(file, "w")) as [number, number];
  const { status } = spawnSync(process.execPath, [cli, "run", "-x", `PAMIR_MARK=${mark}`, ...args], {
    stdio: ["ignore", stdout, stderr],
    timeout: PATIENCE,
  });
  for (const file of [stdout, stderr]) closeSync(file);
  const [said, complained] = files.map((file) => readFileSync(file, "utf8")) as [string, string];
  return { status, stdout: said, stderr: withoutWaits(complained) };
}

/** Two tasks, each of them a process of its own. */
const PROCESSES: readonly (readonly [string, readonly string[]])[] = [
  ["--processes 2", ["-n", "2", "--processes", "2"]],
  ["--processes 2, no labels", ["-n", "2", "--processes", "2", "--no-labels"]],
  ["--nodes 2", ["-n", "2", "--nodes", "2"]],
  ["--nodes 1, no labels", ["-n", "2", "--nodes", "1", "--no-labels"]],
  ["--hosts a,b", ["--hosts", "a,b", "--rsh", rsh]],
];

describe.runIf(process.platform === "linux").each(PROCESSES)("%s", (_, way) => {
  it.each([
    ["exit", "own", 3],
    ["exit", "other", 3],
  ] as const)(
    "a task fails (%s) while a child of it (%s group) holds its output: that is printed, and the job ends",
    async (how, group, code) => {
      const { mark, left, killAll } = marked();
      try {
        const args = ["--on-error", "abort", programOf("holder.js"), how, group, "20000"];
        const { status, stdout, stderr } = runTwo(mark, ...way, ...args);
        expect(status).toBe(code);
        const label = way.includes("--no-labels") ? "" : "[1] ";
        expect(stdout.split("\n").filter((line) => line.startsWith(`${label}line `))).toHaveLength(20_000);
        expect(stdout).toMatch(label === "" ? /\nno end$/ : /\n\[1\] no end\n$/);
        expect(stderr).toMatch(/^pamir: task 1 .*, the job ends(: .*)?\n$/);
        // The child of another group goes on, as it would behind a shell.
        await vi.waitFor(() => expect(left()).toHaveLength(group === "own" ? 0 : 1), PATIENCE);
      } finally {
        killAll();
      }
    },
  );
});
