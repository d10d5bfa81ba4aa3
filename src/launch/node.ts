// The monitor in Node: a worker started from a string, so that no bundler can lose its file.
import { monitorSource } from "../generated/monitor.js";
import { PamiError } from "../pami/error.js";
import { nodeModule } from "../support/host.js";
import type { Monitor, MonitorEvents, MonitorOrders } from "./monitor.js";
import type { MonitorOrder, MonitorReport } from "./node-monitor.js";

export function startNodeMonitor(orders: MonitorOrders, events: MonitorEvents): Monitor {
  const { Worker } = nodeModule("worker_threads") as typeof import("node:worker_threads");
  let monitor: InstanceType<typeof Worker>;
  try {
    monitor = new Worker(monitorSource, { eval: true, workerData: orders, name: "pamir monitor" });
  } catch (error) {
    throw new PamiError("PAMIR_INVAL", `args or workerOptions can't be sent to a worker: ${(error as Error).message}`, {
      cause: error,
    });
  }
  let failure = "the monitor was terminated";
  monitor.on("message", (report: MonitorReport) => {
    if ("started" in report) events.started();
    else events.ended(report.ended);
  });
  monitor.on("error", (error) => {
    failure = String(error);
  });
  monitor.on("exit", () => events.over(failure));
  return {
    terminate: () => monitor.postMessage({ terminate: "all" } satisfies MonitorOrder),
    ref: () => monitor.ref(),
    unref: () => monitor.unref(),
  };
}
