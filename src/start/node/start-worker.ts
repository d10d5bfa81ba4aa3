// Threads that serve a node: its agent, its watch, and the thread that answers `pamir top`. Only for Node.
import { PamiError } from "../../core/error.js";
import { type NodeWorker, nodeModule } from "../../support/host.js";
import { descriptorsReason } from "../process/start-limits.js";

type Options = ConstructorParameters<typeof import("node:worker_threads")["Worker"]>[1];

/** @param source its code @throws PAMIR_NO_WORKERS */
export function startWorker(source: string, options: Options): NodeWorker {
  const { Worker } = nodeModule("worker_threads") as typeof import("node:worker_threads");
  try {
    return new Worker(source, { ...options, eval: true, execArgv: [] });
  } catch (cause) {
    throw startError(cause as Error);
  }
}

/** Why a thread does not start. @param cause an error of Node, which may also come as the worker's event */
export function startError(cause: Error & { code?: string }): PamiError {
  const { code, message } = cause;
  // Some failures appear only once the thread runs.
  if (/(EMFILE|errno 24)$/.test(message)) {
    return new PamiError("PAMIR_DESCRIPTORS", `a thread can't be started: ${descriptorsReason("tasks")}`, { cause });
  }
  const why =
    code === "ERR_ACCESS_DENIED"
      ? "this process may start no workers: node --permission takes --allow-worker for that"
      : `the system starts no thread (${message}): see ulimit -u, ulimit -v, and the limits of a container`;
  return new PamiError("PAMIR_NO_WORKERS", why, { cause });
}
