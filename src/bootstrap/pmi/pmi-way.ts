// The bootstrap of launchers that serve PMI-1: mpiexec of MPICH and Intel MPI, srun --mpi=pmi2, `pamir run`.
import { PamiError } from "../../core/error.js";
import { addressText } from "../address.js";
import { type BootstrapSetup, type BootstrapWay, PmiBootstrap } from "../bootstrap.js";
import type { Launcher, PmiWay } from "../environment.js";
import { type Lines, StreamLines } from "../lines.js";
import { needModule } from "../node.js";
import { connectSocket } from "../rendezvous/rendezvous-place.js";
import { reasonText } from "../text.js";
import { PmiClient } from "./pmi-client.js";
import { PlainFraming } from "./pmi-wire.js";

/** Milliseconds for the connection to a launcher, which listens already. */
const CONNECT_MS = 30_000;

export const pmiWay: BootstrapWay = {
  isServed: true,
  meets: ({ pmi }) => pmi && `PMI, ${"fd" in pmi ? `descriptor ${pmi.fd}` : addressText(pmi.address)}`,
  open: openPmi,
};

async function openPmi(launcher: Launcher, { timeout, onWait }: BootstrapSetup): Promise<PmiBootstrap> {
  const way = launcher.pmi as PmiWay;
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
    if (rank === undefined || rank !== launcher.rank || size === undefined || size !== (launcher.size ?? size)) {
      const said = `rank ${launcher.rank} of ${launcher.size ?? "an unknown number"}`;
      throw new PamiError("PAMIR_LAUNCHER", `${server} says rank ${rank} of ${size}, the environment ${said}`);
    }
    await client.init();
    await client.getMaxes();
    await client.getMyKvsname();
    return new PmiBootstrap(client, { ...launcher, rank, size });
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
