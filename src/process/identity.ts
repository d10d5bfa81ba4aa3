// What identifies a process and the host that it runs on.
import { nodeModule } from "../support/host.js";

const fs = (): typeof import("node:fs") => nodeModule("fs") as typeof import("node:fs");

/**
 * When a process began, in ticks since the system began, modulo 2^32 (497 days): with its number, it tells a process from all
 * others. 0: the process is gone, or /proc may not be read.
 */
export function startTimeOf(pid: number): number {
  try {
    // The name of the program, in parentheses, may hold spaces and parentheses; field 22 is the twentieth behind it.
    const stat = fs().readFileSync(`/proc/${pid}/stat`, "utf8");
    return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19]) >>> 0;
  } catch {
    return 0;
  }
}

/** A process, also once its number may be that of another one. */
export interface ProcessIdentity {
  readonly pid: number;
  /** See startTimeOf(). */
  readonly started: number;
}

/** Whether a process of this host has ended for certain. A zombie has; one that can't be seen may go on. */
export function hasEnded({ pid, started }: ProcessIdentity): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    // EPERM: it is there, and another user's.
    return (error as { code?: string }).code === "ESRCH";
  }
  const since = startTimeOf(pid);
  if (since !== 0 && since !== started) return true;
  try {
    const stat = fs().readFileSync(`/proc/${pid}/stat`, "utf8");
    return stat[stat.lastIndexOf(")") + 2] === "Z";
  } catch {
    return false;
  }
}

/** Names the running system: it is the same in all containers of a machine. Empty: it is unknown. */
export function machineIdentity(): string {
  try {
    return fs().readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  } catch {
    return "";
  }
}

/** Names the network namespace within the system: processes for which both are the same reach each other by loopback. */
export function networkIdentity(): string {
  try {
    return fs().readlinkSync("/proc/self/ns/net");
  } catch {
    return "";
  }
}

/**
 * Names the system, the process numbers and the user: processes for which it is the same see each other's numbers, and may
 * open each other's descriptors.
 */
export function hostIdentity(): string {
  try {
    return `${machineIdentity()} ${fs().readlinkSync("/proc/self/ns/pid")} ${process.getuid?.()}`;
  } catch {
    return "";
  }
}
