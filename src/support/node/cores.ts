// How many hardware threads this process may use at once: affinity, and the CPU quota of its container. Node 20's
// os.availableParallelism() knows of affinity alone; later versions know of both.
import { nodeModule } from "../host.js";

/** Text of a file, or undefined where it cannot be read. */
export type ReadText = (path: string) => string | undefined;

/** Where hosts mount the controller of version 1, and the one hierarchy of version 2. */
const CPU_MOUNTS = ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"];
const UNIFIED_MOUNTS = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];

let threads: number | undefined;

/** Threads that this process may run at once, at least 1. Asked of the host once. */
export function hardwareThreads(): number {
  threads ??= Math.max(1, Math.min(machineThreads(), Math.floor(cpuQuota(textOf))));
  return threads;
}

function machineThreads(): number {
  return nodeModule("os")?.availableParallelism() ?? globalThis.navigator?.hardwareConcurrency ?? 1;
}

/**
 * The CPU quota of this process' control groups, version 1 or 2: hardware threads, possibly a fraction; Infinity for none.
 * A group's quota bounds the groups below it, so the least one counts.
 */
export function cpuQuota(read: ReadText): number {
  let least = Number.POSITIVE_INFINITY;
  for (const line of (read("/proc/self/cgroup") ?? "").split("\n")) {
    // hierarchy:controllers:path; version 2 is hierarchy 0, and names no controllers.
    const [hierarchy, controllers, ...path] = line.split(":");
    const isUnified = hierarchy === "0" && controllers === "";
    if (!isUnified && controllers?.split(",").includes("cpu") !== true) continue;
    const mounts = isUnified ? UNIFIED_MOUNTS : CPU_MOUNTS;
    const quotaOf = isUnified ? unifiedQuota : firstVersionQuota;
    for (const mount of mounts) {
      for (const folder of ancestors(path.join(":"))) least = Math.min(least, quotaOf(`${mount}${folder}`, read));
    }
  }
  return least;
}

/** The folder of a group and all above it, up to the mount: "/a/b", "/a", "". In a container only the last may exist. */
function ancestors(path: string): string[] {
  const parts = path.split("/").filter((part) => part !== "" && part !== "..");
  return [...parts.map((_, i) => `/${parts.slice(0, parts.length - i).join("/")}`), ""];
}

/** `cpu.max`: "quota period" in microseconds, or "max period". */
function unifiedQuota(folder: string, read: ReadText): number {
  const [quota = "max", period = "100000"] = (read(`${folder}/cpu.max`) ?? "").trim().split(" ");
  return ratioOf(Number(quota), Number(period));
}

/** Two files, in microseconds; a quota of -1 is none. */
function firstVersionQuota(folder: string, read: ReadText): number {
  return ratioOf(Number(read(`${folder}/cpu.cfs_quota_us`)), Number(read(`${folder}/cpu.cfs_period_us`)));
}

function ratioOf(quota: number, period: number): number {
  return quota > 0 && period > 0 ? quota / period : Number.POSITIVE_INFINITY;
}

function textOf(path: string): string | undefined {
  // Deno would ask its user for leave to read; its own count knows of quotas.
  if ("Deno" in globalThis) return undefined;
  try {
    return nodeModule("fs")?.readFileSync(path, "utf8");
  } catch {
    return undefined; // no such file, no such system, or no leave to read it
  }
}
