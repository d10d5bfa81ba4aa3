// The monitor in Node: a worker started from a string, so that no bundler can lose its file. `pamir run --processes` has the
// monitor on its main thread, which never blocks: the processes of the tasks start 30 ms sooner than by a worker.

import { PamiError } from "../../core/error.js";
import { type NodePort, type NodeWorker, nodeModule } from "../../support/host.js";
import type { ProcessNodes } from "../node/process-nodes.js";
import { descriptorsText } from "../process/start-limits.js";
import { BOOTSTRAP } from "../start-message.js";
import type { Monitor, MonitorEvents } from "./monitor.js";
import type { MonitorOrder, MonitorReport, MonitorSetup } from "./monitor-node.js";
import { portsOf } from "./task-ports.js";

/** The common part of a worker and a port. */
interface Poster {
  postMessage(message: unknown, ports: NodePort[]): void;
}

/** The error for a worker that could not be started. */
function notStarted(cause: Error & { code?: string }): PamiError {
  const { code, message } = cause;
  if (code === "ERR_ACCESS_DENIED") {
    const text = "this process may start no workers: node --permission takes --allow-worker for that";
    return new PamiError("PAMIR_NO_WORKERS", text, { cause });
  }
  if (code === "ERR_WORKER_INIT_FAILED") {
    const text = `the system starts no thread (${message}): see ulimit -u, ulimit -v, and the limits of a container`;
    return new PamiError("PAMIR_NO_WORKERS", text, { cause });
  }
  return new PamiError("PAMIR_INVAL", `args or workerOptions can't be sent to a worker: ${message}`, { cause });
}

type MonitorThread = Pick<NodeWorker, "on" | "postMessage" | "ref" | "unref">;

function monitorThread(source: string, setup: MonitorSetup, link: ProcessNodes | undefined): MonitorThread {
  const { Worker } = nodeModule("worker_threads") as typeof import("node:worker_threads");
  try {
    const transferList = [...(link?.ports ?? []), ...portsOf(setup.orders.bootstraps)] as NodePort[];
    return new Worker(source, { eval: true, workerData: setup, transferList, name: "pamir monitor" });
  } catch (error) {
    throw notStarted(error as Error & { code?: string });
  }
}

/** Runs the monitor on this thread. @returns the launcher's end of its port */
function monitorHere(source: string, setup: MonitorSetup): MonitorThread {
  const { port1, port2 } = new MessageChannel();
  const global = globalThis as { pamirMonitor?: unknown };
  global.pamirMonitor = { port: port2, setup };
  try {
    (nodeModule("vm") as typeof import("node:vm")).runInThisContext(source, { filename: "pamir monitor" });
  } finally {
    delete global.pamirMonitor;
  }
  return port1 as unknown as MonitorThread;
}

/**
 * @param source its code
 * @param link of the nodes, if tasks share no memory
 */
export function startNodeMonitor(
  source: string,
  setup: MonitorSetup,
  events: MonitorEvents,
  link?: ProcessNodes,
): Monitor {
  const { MessageChannel } = nodeModule("worker_threads") as typeof import("node:worker_threads");
  const monitor = setup.processes?.isMain ? monitorHere(source, setup) : monitorThread(source, setup, link);
  let failure = "the monitor was terminated";
  monitor.on("message", (report: MonitorReport) => {
    if ("started" in report) events.started();
    else if ("report" in report) link?.board.hear(report.from, report.report);
    else if ("stays" in report) events.stays(report.stays, report.why);
    else if ("engineEnded" in report) events.engineEnded(report.engineEnded);
    else {
      link?.board.ended(report.ended.task);
      events.ended(report.ended, report.error);
    }
  });
  monitor.on("error", (error: Error & { code?: string }) => {
    // The code decides how `pamir run` exits.
    if (/EMFILE/.test(error.message)) failure = descriptorsText("tasks");
    else failure = error.code?.startsWith("PAMIR_") ? `${error.message} (${error.code})` : String(error);
  });
  monitor.on("exit", () => events.over(failure));
  monitor.on("close", () => events.over(failure));
  const order = (given: MonitorOrder, ports: NodePort[] = []): void => {
    try {
      monitor.postMessage(given, ports);
    } catch (cause) {
      const text = `args or workerOptions can't be sent to a worker: ${(cause as Error).message}`;
      throw new PamiError("PAMIR_INVAL", text, { cause });
    }
  };
  return {
    start: (more) => order({ start: more }, portsOf(more.bootstraps) as unknown[] as NodePort[]),
    adopt: (bootstrap, target) => {
      const { port1: theirs, port2: ours } = new MessageChannel();
      const ends = [theirs, ...(portsOf([bootstrap]) as unknown[] as NodePort[])];
      (target as Poster).postMessage({ [BOOTSTRAP]: bootstrap, life: theirs }, ends);
      order({ adopt: { ...bootstrap, port: undefined }, life: ours }, [ours]);
    },
    close: () => order({ close: true }),
    aborts: true,
    terminate: (task) => order({ terminate: task }),
    signal: (signal, isEnd) => order({ signal, isEnd }),
    ref: () => monitor.ref(),
    unref: () => monitor.unref(),
    ...link?.monitorOf(order, setup.orders.bootstraps),
  };
}
