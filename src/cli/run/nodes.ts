// `pamir run --nodes`: each task is a process of this machine. The processes of a node share memory; nodes talk by UDP.
import { availableParallelism } from "node:os";
import { makeKey } from "../../bootstrap/key.js";
import { StreamLines } from "../../bootstrap/lines.js";
import { PmiServer } from "../../bootstrap/pmi-server.js";
import { PlainFraming } from "../../bootstrap/pmi-wire.js";
import { DEFAULT_TIMEOUT_MS } from "../../bootstrap/rendezvous.js";
import { UsageError } from "../usage.js";
import { Guard } from "./guard.js";
import { ProcessJob, type Running } from "./job.js";
import { changeFolder, count, labelsOf, oneOf, programOf, refuse, type Values, variables } from "./options.js";
import { PMI_FD, startProcesses } from "./processes.js";
import { missingTasks, reportWaits } from "./waiting.js";

/** Options of threads, which share one memory. */
export const OF_THREADS = ["processes", "kernel", "engine", "contexts", "heap-bytes", "trace", "top"] as const;

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
    env: { ...process.env, ...variables(values.variable) },
    key: makeKey(),
  };
  if (values.cwd !== undefined) changeFolder(values.cwd);
  const guard = new Guard((why) => {
    process.stderr.write(`pamir run: if this process is killed, its tasks go on, since sh can't be started: ${why}\n`);
  });
  const server = new PmiServer({ size, kvsname: `pamir_${process.pid}`, barrierTimeout: DEFAULT_TIMEOUT_MS });
  const local = size / nodes;
  const orders = Array.from({ length: size }, (_, task) => ({
    task,
    input: task === 0 ? ("inherit" as const) : ("ignore" as const),
    hasPmi: true,
    env: {
      PMI_FD: `${PMI_FD}`,
      PMI_RANK: `${task}`,
      PMI_SIZE: `${size}`,
      MPI_LOCALRANKID: `${task % local}`,
      MPI_LOCALNRANKS: `${local}`,
      PAMIR_NODE: `${Math.floor(task / local)}`,
    },
  }));
  const tasks = startProcesses(program, orders, guard);
  for (const { task, pmi } of tasks) {
    if (pmi !== undefined) server.serve(new StreamLines(pmi, new PlainFraming()), task);
  }
  const job = new ProcessJob({ onError, labels: labelsOf(values) });
  const stopReports = reportWaits(() => missingTasks(server.silent, job.running, size));
  const ended = job.run(tasks).finally(() => {
    stopReports();
    server.close();
    guard.close();
  });
  return { ended, end: () => job.end(), endNow: () => job.endNow() };
}
