// A job that a process names itself, by attach(): its processes meet at a NATS server.
import { PROCESS_COUNT_MAX } from "../../bootstrap/environment.js";
import { checkKeys, type Keys } from "../../core/check.js";
import { checkInteger, PamiError, show } from "../../core/error.js";

/** Where a process finds its job, without a launcher: at a NATS server (docs/cluster.md). The package @nats-io/transport-node is needed. */
export interface NatsJob {
  /** The server: `nats://HOST:4222`, or several of one cluster with commas. */
  readonly nats: string;
  /** The job's name: 1 to 64 letters, digits, "_" and "-". */
  readonly job: string;
  /** Processes of the job, each a task. Those of one machine share memory if they can. */
  readonly nodes: number;
}

const KEYS: Keys<NatsJob> = { nats: true, job: true, nodes: true };

/**
 * Sets the variables by which a process finds its job at a server, in place of those of another launcher.
 * @param env gets `link: "nats"` in PAMIR_OPTIONS, unless a link is there @throws PAMIR_INVAL
 */
export function meetAt(place: NatsJob, env: Record<string, string | undefined>): void {
  const name = "the job of attach()";
  checkKeys(name, place, KEYS);
  const { nats, job, nodes } = place;
  for (const [key, value] of Object.entries({ nats, job }))
    if (typeof value !== "string")
      throw new PamiError("PAMIR_INVAL", `${key} of ${name} is ${show(value)}, not a text`);
  checkInteger(`nodes of ${name}`, nodes, 1, PROCESS_COUNT_MAX);
  delete env.PAMIR_NATS_EPOCH;
  Object.assign(env, { PAMIR_NATS: nats, PAMIR_JOB: job, PAMIR_NODES: `${nodes}` });
  try {
    const options: unknown = JSON.parse(env.PAMIR_OPTIONS ?? "{}");
    if (typeof options === "object" && options !== null && !("link" in options))
      env.PAMIR_OPTIONS = JSON.stringify({ ...options, link: "nats" });
  } catch {
    // joinOptions() refuses the text.
  }
}
