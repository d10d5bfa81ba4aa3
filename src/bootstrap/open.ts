// Opens the bootstrap of this process, for every way of starting a process.
import { PamiError } from "../core/error.js";
import type { Bootstrap } from "./bootstrap.js";
import { type Environment, type Launcher, startTimeoutOf } from "./environment.js";
import { agreeOnKey, checkKey, type RemovableEnvironment, takeKey } from "./key.js";
import { findLauncher, LAUNCHERS, type LauncherRow } from "./launchers.js";
import { whyOf } from "./text.js";
import { DEFAULT_TIMEOUT_MS, type OnWait } from "./waits.js";

/** Milliseconds of each wait for a launcher's server, to tell that this process can't begin. */
const TELL_MS = 30_000;

/** Variables of this process alone: processes that it starts later are none of the job's. */
const OF_PROCESS = ["PMI_FD", "PAMIR_NODES", "PAMIR_SPARE", "PAMIR_NATS_EPOCH", "PAMIR_NATS_ID"];

export interface BootstrapOptions {
  /** Milliseconds of each wait for other processes (default: the value of PAMIR_START_TIMEOUT, else 300,000). */
  readonly timeout?: number | undefined;
  /** The job key; by default that of the environment. */
  readonly key?: Uint8Array | undefined;
  /** Allows a rendezvous without a job key: every program that reaches the address may take part. */
  readonly insecure?: boolean | undefined;
  /** Called every five seconds while other processes are awaited; not under `pamir run`, which reports such waits itself. */
  readonly onWait?: OnWait | undefined;
  /** Called on rank 0 of a rendezvous when rank 0 has refused a process, with the first reasons, each once. */
  readonly onRefused?: ((why: string) => void) | undefined;
}

export interface OpenedBootstrap {
  readonly bootstrap: Bootstrap;
  readonly launcher: Launcher;
  /** The job key, the same in all processes; undefined with `insecure`, or if the job has one process and no key. */
  readonly key: Uint8Array | undefined;
}

/**
 * Finds the launcher of this process, and opens a bootstrap there.
 * @param env loses the variables of the job key and of this process, such as PMI_FD: a child process does not have that descriptor
 * @param rows launchers that may have started this process
 * @throws PAMIR_LAUNCHER if no launcher started this process, or its variables make no sense
 * @throws PAMIR_KEY, PAMIR_PMI, PAMIR_BOOTSTRAP, PAMIR_TIMEDOUT
 */
export async function openBootstrap(
  env: RemovableEnvironment = process.env,
  options: BootstrapOptions = {},
  rows: readonly LauncherRow[] = LAUNCHERS,
): Promise<OpenedBootstrap> {
  let given: Uint8Array | undefined;
  let timeout: number;
  try {
    given = await takeKey(env);
    timeout = options.timeout ?? startTimeoutOf(env) ?? DEFAULT_TIMEOUT_MS;
  } catch (error) {
    await failAtLauncher(env, rows, error);
    throw error;
  }
  const found = findLauncher(env, rows);
  const own = { ...env };
  for (const name of OF_PROCESS) delete env[name];
  if (found === undefined) {
    const names = rows.flatMap(({ detected }) => detected).join(", ");
    throw new PamiError("PAMIR_LAUNCHER", `no launcher started this process: none of ${names} is set`);
  }
  const { launcher, way } = found;
  const key = options.key === undefined ? given : checkKey("the job key", options.key);
  const { insecure, onWait, onRefused } = options;
  const bootstrap = await way.open(launcher, { env: own, timeout, key, insecure, onWait, onRefused });
  if (!way.isServed) return { bootstrap, launcher, key };
  try {
    return { bootstrap, launcher, key: await agreeOnKey(bootstrap, key) };
  } catch (error) {
    await bootstrap.fail(whyOf(error));
    throw error;
  }
}

/** This process can't even begin: a launcher with a server would let the other processes wait. */
async function failAtLauncher(env: Environment, rows: readonly LauncherRow[], error: unknown): Promise<void> {
  try {
    const found = findLauncher(env, rows);
    if (found?.way.isServed !== true) return;
    await (await found.way.open(found.launcher, { env, timeout: TELL_MS })).fail(whyOf(error));
  } catch {
    // The first error says more.
  }
}
