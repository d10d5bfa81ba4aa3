// The first step of joining: each process stores its introduction, and reads the introductions of all other processes.
import { ENDPOINT_COUNT_MAX } from "../../../assembly/layout.js";
import { LAYOUT_HASH } from "../../../assembly/layout-hash.js";
import type { Bootstrap } from "../../bootstrap/bootstrap.js";
import { ranksText, runsOf } from "../../bootstrap/text.js";
import { PamiError } from "../../core/error.js";
import { VERSION } from "../../generated/version.js";
import type { LinkKinds } from "../../link/registry.js";
import { visibleProgram } from "../../observe/visible.js";
import { noProcesses } from "../../process/ffi.js";
import { hostIdentity, machineIdentity, networkIdentity, startTimeOf } from "../../process/identity.js";
import { whyNoProcesses } from "../../process/process-memory.js";
import { environment, nodeModule } from "../../support/host.js";
import { randomWords } from "../../support/randomness.js";
import { noteProcesses } from "../info.js";
import { checkLimits } from "../limits.js";
import { leastBytes } from "../process/least-memory.js";
import { joinOptions, type ProcessJoinOptions } from "./join-options.js";
import { get, put } from "./values.js";

/** The introduction of a process. */
export interface Introduction {
  /** Processes with the same text are to share memory; empty: this process is to share memory with no other. */
  readonly host: string;
  /** Why this process can't share memory; empty if it can. */
  readonly why: string;
  /** The running system. */
  readonly machine: string;
  /** The network namespace within the host. */
  readonly network: string;
  readonly pid: number;
  /** See startTimeOf(). */
  readonly started: number;
  readonly version: string;
  readonly layoutHash: number;
  /** A random number: rank 0's number is the job's fingerprint. */
  readonly random: number;
  /** The text of PAMIR_OPTIONS: rank 0's text holds for the job. */
  readonly options: ProcessJoinOptions;
  /** Whether `pamir top` may see the job: rank 0's answer holds for the job. */
  readonly isVisible: boolean;
}

/** Exchanges introductions. @returns the introductions of the tasks with which the job begins @throws PAMIR_VERSION */
export async function introduce(
  bootstrap: Bootstrap,
  linked: { readonly options: ProcessJoinOptions; readonly program: readonly string[] | undefined } | undefined,
  world: number,
  kinds: LinkKinds,
): Promise<Introduction[]> {
  const { rank } = bootstrap;
  const options = linked?.options ?? joinOptions(kinds);
  const own: Introduction = {
    ...(linked === undefined ? sharing(options, rank >= world ? 1 : bootstrap.localSize) : { host: "", why: "" }),
    machine: machineIdentity(),
    network: networkIdentity(),
    pid: process.pid,
    started: startTimeOf(process.pid),
    version: VERSION,
    layoutHash: LAYOUT_HASH,
    random: randomWords()(),
    options,
    isVisible: (linked === undefined ? visibleProgram() : linked.program) !== undefined,
  };
  await put(bootstrap, `task-${rank}`, own);
  await bootstrap.barrier();
  const all: Introduction[] = [];
  for (let task = 0; task < world; task++) all.push(await get<Introduction>(bootstrap, `task-${task}`));
  for (const [task, { version, layoutHash }] of all.entries()) {
    if (layoutHash === LAYOUT_HASH) continue;
    const text = `task ${task} has pamir ${version} (layout ${layoutHash}), this one ${VERSION} (layout ${LAYOUT_HASH})`;
    throw new PamiError("PAMIR_VERSION", `${text}: use one copy`);
  }
  return all;
}

/**
 * Names the processes that are to share memory with this process, and tries to share it. PAMIR_NODE divides the processes of a
 * host.
 * @param localSize processes on this host; undefined: the launcher does not say
 */
function sharing(options: ProcessJoinOptions, localSize: number | undefined): Pick<Introduction, "host" | "why"> {
  const identity = hostIdentity();
  // Processes of several nodes may have more endpoints than one memory.
  const { contexts } = checkLimits(options, 1);
  const tasks = localSize !== undefined && localSize * contexts <= ENDPOINT_COUNT_MAX ? localSize : 1;
  // A process alone on its node skips the attempt, for whose memory V8 reserves 10 GiB of addresses.
  const why = localSize === 1 ? undefined : whyNoProcesses(leastBytes(options, tasks))?.message;
  const { hostname } = nodeModule("os") as typeof import("node:os");
  return {
    host: `${identity === "" ? hostname() : identity} ${environment("PAMIR_NODE") ?? ""}`,
    why: why ?? (identity === "" ? noProcesses("/proc does not name this system and its processes").message : ""),
  };
}

/** The tasks of each host, if there are several that are to share memory. */
function hostsOf(all: readonly Introduction[]): number[][] {
  const hosts = new Map<string, number[]>();
  for (const [task, { host }] of all.entries()) if (host !== "") hosts.set(host, [...(hosts.get(host) ?? []), task]);
  return [...hosts.values()].filter((tasks) => tasks.length > 1);
}

const WHY_INLINE = 'agent of PAMIR_OPTIONS is "inline", so that each process is a node of its own';

/**
 * Notes whether the processes of this host share memory. For the job, the first process that does not share memory gives the
 * reason.
 */
export function noteSharing(all: readonly Introduction[], rank: number, perNode: number): void {
  if (all[0]?.options.agent === "inline") {
    noteProcesses(WHY_INLINE);
    return;
  }
  let hasWarned = false;
  for (const tasks of hostsOf(all)) {
    const unable = tasks.find((task) => all[task]?.why !== "");
    const parts = `${ranksText(runsOf(tasks))} of one host are nodes of ${perNode}, which share no memory`;
    const uneven = tasks.length > perNode ? `${parts}: nodes have equally many tasks, with numbers in a row` : "";
    const why = unable === undefined ? uneven : (all[unable] as Introduction).why;
    if (tasks.includes(rank)) noteProcesses(why);
    if (why === "") continue;
    if (!hasWarned && (unable ?? tasks[0]) === rank)
      process.emitWarning(`${why}; a link joins them instead`, { code: "PAMIR_LINK" });
    hasWarned = true;
  }
}

/** Whether this process sees the number of a process with this introduction. */
export function isOfThisHost(host: string): boolean {
  const identity = hostIdentity();
  return identity !== "" && host.startsWith(`${identity} `);
}
