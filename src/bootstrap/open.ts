// Opens the bootstrap of this process, for every way of starting a process.
import { PamiError } from "../core/error.js";
import { addressText } from "./address.js";
import { PmiBootstrap } from "./bootstrap.js";
import { findLauncher, type Launcher, type PmiWay, startTimeoutOf } from "./environment.js";
import { agreeOnKey, checkKey, type RemovableEnvironment, takeKey } from "./key.js";
import { type Lines, StreamLines } from "./lines.js";
import { needModule } from "./node.js";
import { PmiClient } from "./pmi/pmi-client.js";
import { PlainFraming } from "./pmi/pmi-wire.js";
import { connectSocket, openRendezvous } from "./rendezvous.js";
import { reasonText, whyOf } from "./text.js";
import { DEFAULT_TIMEOUT_MS, type OnWait } from "./waits.js";

/** Milliseconds for the connection to a launcher, which listens already. */
const CONNECT_MS = 30_000;

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
  readonly bootstrap: PmiBootstrap;
  readonly launcher: Launcher;
  /** The job key, the same in all processes; undefined with `insecure`, or if the job has one process and no key. */
  readonly key: Uint8Array | undefined;
}

/**
 * Finds the launcher of this process, and opens a bootstrap there.
 * @param env loses the variables of the job key, and PMI_FD: a child process does not have that descriptor
 * @throws PAMIR_LAUNCHER if no launcher started this process, or its variables make no sense
 * @throws PAMIR_KEY, PAMIR_PMI, PAMIR_BOOTSTRAP, PAMIR_TIMEDOUT
 */
export async function openBootstrap(
  env: RemovableEnvironment = process.env,
  options: BootstrapOptions = {},
): Promise<OpenedBootstrap> {
  let given: Uint8Array | undefined;
  let timeout: number;
  try {
    given = await takeKey(env);
    timeout = options.timeout ?? startTimeoutOf(env) ?? DEFAULT_TIMEOUT_MS;
  } catch (error) {
    await failAtLauncher(env, error);
    throw error;
  }
  const launcher = findLauncher(env);
  delete env.PMI_FD;
  if (launcher === undefined) {
    const variables = "PAMIR_RANK, PMI_FD, PMI_PORT, OMPI_COMM_WORLD_RANK, RANK, SLURM_STEP_ID, JOB_COMPLETION_INDEX";
    throw new PamiError("PAMIR_LAUNCHER", `no launcher started this process: none of ${variables} is set`);
  }
  const key = options.key === undefined ? given : checkKey("the job key", options.key);
  const { insecure, onWait, onRefused } = options;
  const { pmi, size, coordinator: address } = launcher;
  if (pmi === undefined) {
    // Only a PMI server may leave the size open.
    const all = { ...launcher, size: size as number, address, key, insecure, timeout, onWait, onRefused };
    return { bootstrap: await openRendezvous(all), launcher, key };
  }
  const bootstrap = await openPmi(launcher, pmi, timeout, onWait);
  try {
    return { bootstrap, launcher, key: await agreeOnKey(bootstrap, key) };
  } catch (error) {
    await bootstrap.fail(whyOf(error));
    throw error;
  }
}

/** This process can't even begin: a launcher that serves PMI would let the other processes wait. */
async function failAtLauncher(env: RemovableEnvironment, error: unknown): Promise<void> {
  try {
    const launcher = findLauncher(env);
    if (launcher?.pmi !== undefined) await (await openPmi(launcher, launcher.pmi, CONNECT_MS)).fail(whyOf(error));
  } catch {
    // The first error says more.
  }
}

async function openPmi(launcher: Launcher, way: PmiWay, timeout: number, onWait?: OnWait): Promise<PmiBootstrap> {
  const isPort = "address" in way;
  const server = `the PMI server at ${isPort ? addressText(way.address) : `descriptor ${way.fd} (PMI_FD)`}`;
  const lines = isPort
    ? new StreamLines(await connectSocket(way.address, CONNECT_MS), new PlainFraming())
    : linesOf(way.fd);
  // `pamir run` knows which tasks are awaited, and names them.
  const client = new PmiClient(lines, server, timeout, (wait) => {
    if (!client.isOwn) onWait?.(wait);
  });
  try {
    const { rank, size } = isPort ? await client.initack(way.id) : launcher;
    if (rank !== launcher.rank || size === undefined || size !== (launcher.size ?? size)) {
      const said = `rank ${launcher.rank} of ${launcher.size ?? "an unknown number"}`;
      throw new PamiError("PAMIR_LAUNCHER", `${server} says rank ${rank} of ${size}, the environment ${said}`);
    }
    await client.init();
    await client.getMaxes();
    await client.getMyKvsname();
    return new PmiBootstrap(client, { ...launcher, size });
  } catch (error) {
    client.destroySoon();
    throw error;
  }
}

/** Lines over an inherited descriptor. @throws PAMIR_LAUNCHER if the descriptor is no socket or pipe */
function linesOf(fd: number): Lines {
  const { Socket } = needModule("net");
  try {
    const socket = new Socket({ fd, readable: true, writable: true });
    // Waits keep the process running.
    socket.unref();
    return new StreamLines(socket, new PlainFraming());
  } catch (error) {
    const text = `PMI_FD is ${fd}, which is no open socket: ${reasonText(error)}`;
    throw new PamiError("PAMIR_LAUNCHER", text, { cause: error });
  }
}
