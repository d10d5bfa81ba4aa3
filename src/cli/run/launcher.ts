// What `pamir info` says of launchers and of processes.
import { readFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { dirname, join } from "node:path";
import { info, launch, type PamiError } from "pamir";
import { findLauncher } from "../../bootstrap/launchers.js";
import { LINK_PACKAGES } from "../../link/registry.js";
import { findPackage } from "../../support/node/packages.js";

/** What attach() finds in the environment. */
export interface FoundLauncher {
  /** Undefined: no launcher started this process. */
  readonly name: string | undefined;
  /** Undefined: the bootstrap tells it. */
  readonly rank?: number | undefined;
  /** Undefined: the bootstrap tells it. */
  readonly size?: number | undefined;
  /** Where the processes of the job find each other. */
  readonly meets?: string | undefined;
  /** What is wrong with the launcher's variables. */
  readonly error?: string;
}

/** The launcher that started this process. */
export function launcherHere(): FoundLauncher {
  try {
    const found = findLauncher(process.env);
    if (found === undefined) return { name: undefined };
    const { launcher, way } = found;
    const { launcher: name, rank, size } = launcher;
    return { name, rank, size, meets: way.meets(launcher) };
  } catch (error) {
    return { name: undefined, error: (error as Error).message };
  }
}

/** An optional package that this command would use. */
export interface FoundPackage {
  /** As its package.json says; undefined: it says none that is a text. */
  readonly version: string | undefined;
  /** The file that would be loaded. */
  readonly path: string;
}

/** The optional packages, and null for those that are not installed. Nothing loads them: `pamir info` runs no code of theirs. */
export function optionalPackages(): { koffi: FoundPackage | null; [name: string]: FoundPackage | null } {
  const ofLinks = LINK_PACKAGES.map((name) => [name, foundPackage(name)]);
  return { koffi: foundPackage("koffi"), ...Object.fromEntries(ofLinks) };
}

function foundPackage(name: string): FoundPackage | null {
  const path = findPackage(name);
  return path === undefined ? null : { version: versionOf(name, path), path };
}

/** What the package.json above a file says, if it is that of the package. */
function versionOf(name: string, path: string): string | undefined {
  for (let folder = dirname(path); folder !== dirname(folder); folder = dirname(folder)) {
    try {
      const said = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
      if (said?.name === name) return typeof said.version === "string" ? said.version : undefined;
    } catch {
      // There is none here, or none that can be read.
    }
  }
  return undefined;
}

/** Whether the processes of this host share memory. */
export interface ProcessesHere {
  readonly shareMemory: boolean;
  /** Why they don't; empty if they do. */
  readonly why: string;
  /** Whether processes were started to find out. Otherwise this is what is installed. */
  readonly tried: boolean;
}

/** Whether what is installed lets processes share a memory. No code of koffi runs. */
export function processesHere(koffi: FoundPackage | null): ProcessesHere {
  const why = whyNot(koffi);
  return { shareMemory: why === "", why, tried: false };
}

function whyNot(koffi: FoundPackage | null): string {
  const { platform, arch, execArgv, env } = process;
  if (platform !== "linux" || !["x64", "arm64"].includes(arch)) {
    return `this is ${platform} on ${arch}, and it takes Linux on x64 or arm64`;
  }
  if (koffi === null) {
    return isBuiltin("node:ffi")
      ? ""
      : "the package koffi is not installed (npm install koffi), and this Node has no node:ffi";
  }
  const options = [...execArgv, ...(env.NODE_OPTIONS ?? "").split(/\s+/)];
  return options.includes("--no-addons") ? "node --no-addons does not load koffi" : "";
}

/** The same, by starting a job of one process, which loads koffi. */
export async function tryProcesses(): Promise<ProcessesHere> {
  const why = await whyNoProcesses();
  return { shareMemory: why === "", why, tried: true };
}

async function whyNoProcesses(): Promise<string> {
  muteLinkWarning();
  try {
    const entry = new URL("data:text/javascript,");
    const job = await launch(entry, { tasks: 1, processes: 1, heapBytes: 2 ** 20, onError: "report" });
    await job.exited;
    const { processes, why } = info();
    return processes === "link" ? why : "";
  } catch (error) {
    return (error as PamiError).message;
  }
}

/** What this command shows has the same text. */
function muteLinkWarning(): void {
  const others = process.listeners("warning");
  process.removeAllListeners("warning");
  process.on("warning", (warning: NodeJS.ErrnoException) => {
    if (warning.code !== "PAMIR_LINK") for (const other of others) other(warning);
  });
}
