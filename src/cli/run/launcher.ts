// What `pamir info` says of launchers and of processes.
import { info, launch, type PamiError } from "pamir";
import { type Address, addressText } from "../../bootstrap/address.js";
import { findLauncher, type PmiWay } from "../../bootstrap/environment.js";
import { findPackage } from "../../support/packages.js";

/** What attach() finds in the environment. */
export interface FoundLauncher {
  /** Undefined: no launcher started this process. */
  readonly name: string | undefined;
  readonly rank?: number;
  /** Undefined: the launcher's PMI server tells it. */
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
    const { launcher: name, rank, size, pmi, coordinator } = found;
    return { name, rank, size, meets: meetingOf(pmi ?? coordinator) };
  } catch (error) {
    return { name: undefined, error: (error as Error).message };
  }
}

/** Where the optional packages are that this command would use. They are looked up, and not loaded. */
export function optionalPackages(): { koffi: string | null; ws: string | null } {
  return { koffi: findPackage("koffi") ?? null, ws: findPackage("ws") ?? null };
}

function meetingOf(place: PmiWay | Address | undefined): string | undefined {
  if (place === undefined) return undefined;
  if ("fd" in place) return `PMI, descriptor ${place.fd}`;
  return "address" in place ? `PMI, ${addressText(place.address)}` : `rendezvous, ${addressText(place)}`;
}

/** Why the processes of this host can't share memory; empty if they can. Finds out by starting one. */
export async function whyNoProcesses(): Promise<string> {
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
