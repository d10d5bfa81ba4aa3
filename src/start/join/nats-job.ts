// A job that a process names itself, by attach(): its processes meet at a NATS server.
import { NODES_LATER, nodesOrLater, PROCESS_COUNT_MAX } from "../../bootstrap/environment.js";
import { checkKeys, type Keys } from "../../core/check.js";
import { checkInteger, PamiError, show } from "../../core/error.js";

/** Where a process finds its job, without a launcher: at a NATS server (docs/cluster.md). The package @nats-io/transport-node is needed. */
export interface NatsJob {
  /** The server: `nats://HOST:4222`, or several of one cluster with commas. */
  readonly nats: string;
  /** The job's name: 1 to 64 letters, digits, "_" and "-". */
  readonly job: string;
  /** Processes with which the job begins, each a task. Those of one machine share memory if they can. */
  readonly nodes?: number;
  /** Tasks that may come later (default: none), a number that all processes with which the job begins give. */
  readonly spare?: number;
  /**
   * Without `nodes`: this process comes later to a job that has begun with `spare`, or with `--spare` or `--restart` of `pamir run
   * --nats`, as a node of its own. It waits until that job has begun. With `nodes`: it does so if the job has begun, and else
   * takes part in the start.
   */
  readonly later?: boolean;
}

const KEYS: Keys<NatsJob> = { nats: true, job: true, nodes: true, spare: true, later: true };

/**
 * Sets the variables by which a process finds its job at a server, in place of those of another launcher.
 * @param env gets `link: "nats"` in PAMIR_OPTIONS, unless a link is there @throws PAMIR_INVAL
 */
export function meetAt(place: NatsJob, env: Record<string, string | undefined>): void {
  const name = "the job of attach()";
  checkKeys(name, place, KEYS);
  const { nats, job, nodes, spare, later = false } = place;
  for (const [key, value] of Object.entries({ nats, job }))
    if (typeof value !== "string")
      throw new PamiError("PAMIR_INVAL", `${key} of ${name} is ${show(value)}, not a text`);
  if (typeof later !== "boolean")
    throw new PamiError("PAMIR_INVAL", `later of ${name} is ${show(later)}, not true or false`);
  const isLate = later && nodes === undefined;
  if (isLate && spare !== undefined)
    throw new PamiError("PAMIR_INVAL", `spare of ${name} is ${show(spare)}: it is for processes with nodes`);
  if (!isLate) {
    checkInteger(`nodes of ${name}`, nodes, 1, PROCESS_COUNT_MAX);
    checkInteger(`spare of ${name}`, spare ?? 0, 0, PROCESS_COUNT_MAX - (nodes as number));
  }
  delete env.PAMIR_NATS_EPOCH;
  const begins = later ? nodesOrLater(nodes as number) : `${nodes}`;
  Object.assign(env, { PAMIR_NATS: nats, PAMIR_JOB: job, PAMIR_NODES: isLate ? NODES_LATER : begins });
  if (spare === undefined) delete env.PAMIR_SPARE;
  else env.PAMIR_SPARE = `${spare}`;
  // The options of the job hold.
  if (isLate) return;
  try {
    const options: unknown = JSON.parse(env.PAMIR_OPTIONS ?? "{}");
    if (typeof options === "object" && options !== null && !("link" in options))
      env.PAMIR_OPTIONS = JSON.stringify({ ...options, link: "nats" });
  } catch {
    // joinOptions() refuses the text.
  }
}
