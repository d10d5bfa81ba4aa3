// What `pamir run --nats` was asked for, checked.
import { availableParallelism } from "node:os";
import { PROCESS_COUNT_MAX } from "../../../bootstrap/environment.js";
import { takeKey } from "../../../bootstrap/key.js";
import { checkNatsKey } from "../../../bootstrap/nats/nats-way.js";
import { checkJob, type NatsPlace, natsPlace } from "../../../nats/place.js";
import { natsVariables } from "../../../nats/variables.js";
import { UsageError } from "../../usage.js";
import {
  asUsageError,
  checkMaySpawn,
  count,
  HOST_TASKS_MAX,
  OF_THREADS,
  oneOf,
  programOf,
  refuse,
  startTimeout,
  taskVariables,
  type Values,
} from "../options.js";
import type { Program } from "../processes.js";
import { Restarts } from "../restarts.js";

export interface NatsPlan {
  readonly place: NatsPlace;
  readonly key: Uint8Array | undefined;
  /** Launchers with which the job begins; undefined: this one only comes later. */
  readonly nodes: number | undefined;
  /** Tasks of this launcher. */
  readonly local: number;
  /** Whether this launcher's tasks come later, if the job has begun. */
  readonly isLater: boolean;
  readonly restarts: Restarts;
  readonly timeout: number;
  readonly onError: "report" | "abort";
  readonly values: Values;
  readonly program: Program;
}

/** @throws UsageError */
export async function natsPlanOf(app: string, args: string[], values: Values): Promise<NatsPlan> {
  refuse(values, OF_THREADS, "--nats");
  checkMaySpawn();
  const isLater = values.later === true;
  const nodes = count("--nodes", values.nodes);
  if (nodes === undefined && !isLater)
    throw new UsageError(
      "--nats takes --nodes: the number of machines that start pamir run; or --later, where the job has begun",
    );
  if (nodes === undefined) refuse(values, ["spare"], "--later without --nodes: the job has its numbers");
  const local = localOf(values, nodes);
  const { PAMIR_JOB: named } = process.env;
  const job = values.job ?? named;
  if (job === undefined) throw new UsageError("--nats takes --job: the name under which the machines meet");
  const timeout = startTimeout(values);
  const onError = oneOf("--on-error", values["on-error"], ["report", "abort"]) ?? "report";
  const restarts = new Restarts(values, (nodes ?? 1) * local, PROCESS_COUNT_MAX, "", true);
  try {
    checkJob(job);
    const place = natsPlace({ ...natsVariables(), nats: values.nats, job });
    const env = {
      ...process.env,
      ...(await taskVariables({ ...values, link: values.link ?? "nats" }, nodes ?? 1, local, process.env)),
    };
    // The key goes to the tasks by a descriptor.
    const key = await takeKey(process.env);
    checkNatsKey(place, key, process.env.PAMIR_INSECURE === "1", isLater || restarts.spare > 0);
    const hasLabels = values["no-labels"] !== true;
    const { execArgv, argv0 } = process;
    const program = { app: programOf(app), args, execArgv, argv0, env, key, hasLabels };
    return { place, key, nodes, local, isLater, restarts, timeout, onError, values, program };
  } catch (error) {
    throw asUsageError(error);
  }
}

/** Tasks of this launcher. */
function localOf(values: Values, nodes: number | undefined): number {
  const parts = nodes ?? 1;
  const size = count("--tasks", values.tasks) ?? (nodes === undefined ? 1 : availableParallelism() * nodes);
  if (size % parts !== 0) throw new UsageError(`--tasks is ${size}, not a multiple of --nodes, which is ${parts}`);
  if (size > PROCESS_COUNT_MAX) throw new UsageError(`--tasks is ${size}: a job has at most ${PROCESS_COUNT_MAX}`);
  const local = size / parts;
  if (local > HOST_TASKS_MAX)
    throw new UsageError(`--tasks is ${size}, ${local} for a node: a launcher starts at most ${HOST_TASKS_MAX}`);
  return local;
}
