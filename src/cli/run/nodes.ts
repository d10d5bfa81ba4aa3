// `pamir run --nodes`: each task is a process of this machine. The processes of a node share memory; nodes talk by UDP.
import { availableParallelism } from "node:os";
import { makeKey } from "../../bootstrap/key.js";
import { DEFAULT_TIMEOUT_MS } from "../../bootstrap/rendezvous.js";
import { Guard } from "../../launch/guard.js";
import { UsageError } from "../usage.js";
import { ProcessJob, type Running } from "./job.js";
import {
  changeFolder,
  count,
  labelsOf,
  OF_THREADS,
  oneOf,
  programOf,
  refuse,
  type Values,
  variablesWithTop,
} from "./options.js";
import { startProcesses } from "./processes.js";
import { serveTasks, variablesOf } from "./served.js";

export async function runNodes(app: string, args: string[], values: Values): Promise<Running> {
  refuse(values, OF_THREADS, "--nodes");
  const nodes = count("--nodes", values.nodes) as number;
  const size = count("--tasks", values.tasks) ?? Math.ceil(availableParallelism() / nodes) * nodes;
  if (size % nodes !== 0) throw new UsageError(`--tasks is ${size}, not a multiple of --nodes, which is ${nodes}`);
  const onError = oneOf("--on-error", values["on-error"], ["report", "abort"]) ?? "report";
  const program = {
    app: programOf(app),
    args,
    execArgv: process.execArgv,
    env: { ...process.env, ...variablesWithTop(values) },
    key: makeKey(),
  };
  if (values.cwd !== undefined) changeFolder(values.cwd);
  const guard = new Guard((why) => {
    process.stderr.write(`pamir run: if this process is killed, its tasks go on, since sh can't be started: ${why}\n`);
  });
  const local = size / nodes;
  const orders = Array.from({ length: size }, (_, task) => ({
    task,
    input: task === 0 ? ("inherit" as const) : ("ignore" as const),
    hasPmi: true,
    env: variablesOf(task, { size, place: task % local, count: local, perNode: local }),
  }));
  const tasks = startProcesses(program, orders, guard);
  const job = new ProcessJob({ onError, labels: labelsOf(values) });
  const ended = serveTasks(job, tasks, DEFAULT_TIMEOUT_MS).finally(() => guard.close());
  return { ended, end: () => job.end(), endNow: () => job.endNow() };
}
