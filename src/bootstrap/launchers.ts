// The launchers that may have started a process: a row for each, in the order of precedence. environment.ts has the table of
// their variables. A bootstrap of its own is a file with a finder and a way, and a row here.
import type { BootstrapWay } from "./bootstrap.js";
import {
  type Environment,
  type Found,
  findKubernetes,
  findNats,
  findOpenMpi,
  findPamir,
  findPmi,
  findSlurm,
  findTorchrun,
  type Launcher,
  launcherOf,
} from "./environment.js";
import { natsWay } from "./nats/nats-way.js";
import { pmiWay } from "./pmi/pmi-way.js";
import { rendezvousWay } from "./rendezvous/rendezvous.js";

export interface LauncherRow {
  readonly name: string;
  /** Variables of which one tells that the launcher may have started a process, for errors. */
  readonly detected: readonly string[];
  /** The data of the launcher's variables; undefined: it has not started this process. @throws PAMIR_LAUNCHER */
  find(env: Environment): Found | undefined;
  /** How the processes find each other. */
  readonly way: BootstrapWay;
}

export const LAUNCHERS: readonly LauncherRow[] = [
  { name: "nats", detected: ["PAMIR_NODES"], find: findNats, way: natsWay },
  { name: "pamir", detected: ["PAMIR_RANK"], find: findPamir, way: rendezvousWay },
  { name: "pmi", detected: ["PMI_FD", "PMI_PORT"], find: findPmi, way: pmiWay },
  { name: "openmpi", detected: ["OMPI_COMM_WORLD_RANK"], find: findOpenMpi, way: rendezvousWay },
  { name: "torchrun", detected: ["RANK"], find: findTorchrun, way: rendezvousWay },
  { name: "slurm", detected: ["SLURM_STEP_ID"], find: findSlurm, way: rendezvousWay },
  { name: "kubernetes", detected: ["JOB_COMPLETION_INDEX"], find: findKubernetes, way: rendezvousWay },
];

/** The launcher of a process, and how its processes find each other. */
export interface DetectedLauncher {
  readonly launcher: Launcher;
  readonly way: BootstrapWay;
}

/**
 * Finds the launcher of this process.
 * @returns undefined if none of the detecting variables is set
 * @throws PAMIR_LAUNCHER if a variable is missing or makes no sense; the text names the variable and its value
 */
export function findLauncher(env: Environment, rows: readonly LauncherRow[] = LAUNCHERS): DetectedLauncher | undefined {
  for (const { name, find, way } of rows) {
    const found = find(env);
    if (found !== undefined) return { launcher: launcherOf(name, found, env), way };
  }
  return undefined;
}
