// The monitor of Node: a worker that starts the tasks' workers and then waits in its event loop, so that it hears of their end
// whatever the launching thread does. It marks the dead, mends what they held, and rings everybody.
import { memoryOf } from "../kernel/kernel.js";
import { twinSync } from "../kernel/twin/sync.js";
import { readMap } from "../memory/map.js";
import { nodeModule } from "../support/host.js";
import { bury } from "./bury.js";
import type { MonitorOrders, TaskExit } from "./monitor.js";
import { TICKET, type Ticket } from "./ticket.js";

/** From the monitor to the launcher. */
export type MonitorReport = { readonly ended: TaskExit } | { readonly started: true };
/** From the launcher to the monitor. */
export type MonitorOrder = { readonly terminate: number | "all" };

const { Worker, parentPort, workerData } = nodeModule("worker_threads") as typeof import("node:worker_threads");
const { entry, tickets, workerOptions } = workerData as MonitorOrders;
const first = tickets[0] as Ticket;
const memory = memoryOf(
  (first.memory instanceof SharedArrayBuffer ? first.memory : first.memory.buffer) as SharedArrayBuffer,
);
const map = readMap(memory, first.job);
const sync = twinSync(memory);
const running = new Map<number, InstanceType<typeof Worker>>();
const terminated = new Set<number>();

function start(ticket: Ticket): void {
  const { workerData: userData, ...options } = workerOptions;
  const failures: unknown[] = [];
  const worker = new Worker(new URL(entry as string), {
    ...options,
    workerData: { ...(userData as object | undefined), [TICKET]: ticket },
  });
  running.set(ticket.task, worker);
  worker.on("error", (error) => failures.push(error));
  worker.on("exit", (code) => {
    running.delete(ticket.task);
    bury(sync, map, ticket.task);
    report(ticket.task, code, failures[0]);
    if (running.size === 0) parentPort?.close();
  });
}

function report(task: number, code: number, failure: unknown): void {
  const error = failure as { name?: string; message?: string; code?: string; stack?: string } | undefined;
  const outOfMemory = error?.code === "ERR_WORKER_OUT_OF_MEMORY";
  const cause = terminated.has(task) ? "terminated" : failure === undefined ? "exit" : outOfMemory ? "memory" : "error";
  const text =
    failure instanceof Error || error?.message !== undefined ? `${error?.name}: ${error?.message}` : String(failure);
  const ended: TaskExit = {
    task,
    code,
    cause,
    error: failure === undefined ? undefined : text,
    errorCode: error?.code,
    stack: error?.stack,
  };
  parentPort?.postMessage({ ended } satisfies MonitorReport);
}

parentPort?.on("message", ({ terminate }: MonitorOrder) => {
  for (const [task, worker] of running) {
    if (terminate !== "all" && terminate !== task) continue;
    terminated.add(task);
    void worker.terminate();
  }
});
for (const ticket of tickets) start(ticket);
parentPort?.postMessage({ started: true } satisfies MonitorReport);
