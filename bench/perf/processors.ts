// Which two processors the threads are bound to. Where the system does not allow it, nothing is bound: not the peers
// either.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { needPath } from "../../src/cli/commands.js";

/** "0-2,5" as numbers. */
export function parseList(list: string): number[] {
  return list
    .trim()
    .split(",")
    .filter((range) => range !== "")
    .flatMap((range) => {
      const [first = 0, last = first] = range.split("-").map(Number);
      return Array.from({ length: last - first + 1 }, (_, i) => first + i);
    });
}

/** Two processors of different cores, if there are such, that this process may use; empty: do not bind. */
export function choosePair(): number[] {
  if (process.platform !== "linux") return [];
  try {
    const allowed = parseList(/Cpus_allowed_list:\s*(\S+)/.exec(readFileSync("/proc/self/status", "utf8"))?.[1] ?? "");
    execFileSync(needPath("taskset"), ["-pc", String(process.pid)], { stdio: "ignore" });
    const [first] = allowed;
    if (first === undefined || allowed.length < 2) return [];
    const siblings = siblingsOf(first);
    return [first, allowed.find((cpu) => !siblings.includes(cpu)) ?? (allowed[1] as number)];
  } catch {
    return [];
  }
}

function siblingsOf(cpu: number): number[] {
  try {
    return parseList(readFileSync(`/sys/devices/system/cpu/cpu${cpu}/topology/thread_siblings_list`, "utf8"));
  } catch {
    return [cpu];
  }
}
