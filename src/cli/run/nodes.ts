// `pamir run --nodes`: each task is a process of this machine. The processes of a node share memory; a link joins nodes.
import { availableParallelism } from "node:os";
import { makeKey } from "../../bootstrap/key.js";
import { Guard } from "../../start/process/guard.js";
import { say, UsageError } from "../usage.js";
import type { Running } from "./job.js";
import {
  changeFolder,
  checkAddresses,
  checkMaySpawn,
  count,
  HOST_TASKS_MAX,
  labelsOf,
  memoriesOf,
  OF_THREADS,
  oneOf,
  programOf,
  refuse,
  startTimeout,
  taskVariables,
  type Values,
} from "./options.js";
import { startProcesses, TaskProcess } from "./processes.js";
import { Restarts } from "./restarts.js";
import { ServedJob } from "./served.js";

export async function runNodes(app: string, args: string[], values: Values): Promise<Running> {
  refuse(values, OF_THREADS, "--nodes");
  checkMaySpawn();
  const nodes = count("--nodes", values.nodes) as number;
  const size = count("--tasks", values.tasks) ?? Math.ceil(availableParallelism() / nodes) * nodes;
  if (size > HOST_TASKS_MAX) {
    throw new UsageError(`--tasks is ${size}: a launcher starts at most ${HOST_TASKS_MAX} tasks on a host`);
  }
  if (size % nodes !== 0) throw new UsageError(`--tasks is ${size}, not a multiple of --nodes, which is ${nodes}`);
  const onError = oneOf("--on-error", values["on-error"], ["report", "abort"]) ?? "report";
  const restarts = new Restarts(values, size);
  const timeout = startTimeout(values);
  const local = size / nodes;
  const program = {
    app: programOf(app),
    args,
    execArgv: process.execArgv,
    argv0: process.argv0,
    env: { ...process.env, ...(await taskVariables(values, nodes, local, process.env)) },
    key: makeKey(),
    hasLabels: values["no-labels"] !== true,
  };
  if (values.cwd !== undefined) changeFolder(values.cwd);
  checkAddresses(memoriesOf(nodes + restarts.spare, local, program.env.PAMIR_OPTIONS));
  const guard = new Guard((why) => {
    say(`pamir run: if this process is killed, its tasks go on, since sh can't be started: ${why}`);
  });
  const job = new ServedJob({
    size,
    timeout,
    restarts,
    onError,
    labels: labelsOf(values),
    start: async ({ task, rank, env }) => new TaskProcess(program, { task, input: inputOf(rank), env }, guard),
  });
  const orders = Array.from({ length: size }, (_, task) => ({
    task,
    input: inputOf(task),
    env: job.variablesOf(task, { place: task % local, count: local, perNode: local }),
  }));
  const tasks = startProcesses(program, orders, guard);
  const ended = job.run(tasks).finally(() => guard.close());
  return {
    ended,
    end: (signal) => job.end(signal),
    pass: (signal) => job.pass(signal),
    endNow: () => job.endNow(),
  };
}

/** Where the standard input of a rank comes from: rank 0 has that of this process. */
function inputOf(rank: number): "inherit" | "ignore" {
  return rank === 0 ? "inherit" : "ignore";
}
