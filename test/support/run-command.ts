// `pamir run` in a process of its own, and what its tasks say (test/cli/programs/app.js).
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { constants } from "node:os";
import { fileURLToPath } from "node:url";
import { expect } from "vitest";

export const cli = fileURLToPath(new URL("../../dist/cli.js", import.meta.url));
export const app = fileURLToPath(new URL("../cli/programs/app.js", import.meta.url));

/** Milliseconds for what takes a few where nothing else runs: it ends a wait for what never comes, and no slow one. */
export const PATIENCE = 60_000;

/** Errors without the lines about what a launcher or attach() has awaited: whether there are any depends on the machine's load. */
export function withoutWaits(stderr: string): string {
  return stderr.replace(/^pamir(?: run)?: for \d+ (?:of \d+ )?s, .*\n/gm, "");
}

/** Runs `pamir run` to its end. */
export function run(...args: string[]): { status: number | null; stdout: string; stderr: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, [cli, "run", ...args], {
    encoding: "utf8",
    timeout: 110_000,
  });
  return { status, stdout, stderr: withoutWaits(stderr) };
}

export interface Said {
  readonly task: number;
  readonly pid: number;
  readonly args: readonly string[];
  readonly x?: string;
}

/** What the tasks said, by task; each line has its task's label. */
export function saidBy(stdout: string): Said[] {
  const lines = stdout.split("\n").filter((line) => line.includes("{"));
  return lines
    .map((line) => {
      const [, label, text] = /^\[(\d+)\] (.*)$/.exec(line) ?? [];
      const said = JSON.parse(text as string) as Said;
      expect(said.task).toBe(Number(label));
      return said;
    })
    .sort((a, b) => a.task - b.task);
}

/** Whether a process has ended. What adopted it may not have waited for it yet. Systems without /proc are not looked at. */
export function isGone(pid: number): boolean {
  if (process.platform !== "linux") return true;
  try {
    return /State:\s+Z/.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return true;
  }
}

/** Processes that have this variable, which all of a job inherit. */
export function processesWith(name: string, value: string): number[] {
  return readdirSync("/proc")
    .filter((entry) => /^\d+$/.test(entry))
    .map(Number)
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/environ`, "latin1").split("\0").includes(`${name}=${value}`) && !isGone(pid);
      } catch {
        return false;
      }
    });
}

/** Ends the processes that have this variable. Some may end meanwhile, since others have. */
export function killAllWith(name: string, value: string): void {
  for (const pid of processesWith(name, value)) kill(pid);
}

/** Ends a process, if it is still there. */
export function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

/** Resolves once a process has taken a signal. Of two that are pending, the one with the lower number is taken first. */
export async function whenTaken(pid: number, signal: "SIGINT" | "SIGTERM"): Promise<void> {
  const bit = 1n << BigInt(constants.signals[signal] - 1);
  const isPending = (): boolean => {
    const pending = /^ShdPnd:\s+([\da-f]+)$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
    return (BigInt(`0x${pending}`) & bit) !== 0n;
  };
  while (!isGone(pid) && isPending()) await new Promise((resolve) => setTimeout(resolve, 5));
}

/** Processes of the tasks that a launcher has started: all of its children but the guard, in their order. */
export function tasksOf(launcher: number): number[] {
  return readFileSync(`/proc/${launcher}/task/${launcher}/children`, "utf8")
    .trim()
    .split(" ")
    .map(Number)
    .filter((pid) => pid > 0 && !readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("pamir-guard"));
}
