// The monitor of Node: a worker that starts the tasks' workers and then waits in its event loop, so that it hears of their end
// whatever the launching thread does. It marks the dead, mends what they held, and rings everybody.
import { TASK_ABSENT, TASK_STATE_OFFSET } from "../../assembly/layout.js";
import { memoryOf } from "../kernel/kernel.js";
import type { SharedMemory } from "../kernel/select.js";
import { twinSync } from "../kernel/twin/sync.js";
import { readMap, taskSlot } from "../memory/map.js";
import { systemClock } from "../support/clock.js";
import { after, nodeModule } from "../support/host.js";
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
const shared = first.memory as SharedMemory;
const memory = memoryOf((shared instanceof SharedArrayBuffer ? shared : shared.buffer) as SharedArrayBuffer);
const map = readMap(memory, first.job);
const sync = twinSync(memory);
const running = new Map<number, InstanceType<typeof Worker>>();
const terminated = new Set<number>();

/**
 * Node 20 aborts the whole process if a worker is terminated just as a module with a top-level await begins (V8, "Check
 * failed: (location_) != nullptr"; 1 in 500 at a random moment of the first 40 ms). For a task this is over once it has
 * attached; whoever does not attach is waited for this long after its start, in milliseconds.
 */
const BEGINNING_MS = 1000;
/** Between two looks whether it has attached. */
const LOOK_MS = 1;

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
    terminateOnceBegun(task, worker);
  }
});

function terminateOnceBegun(task: number, worker: InstanceType<typeof Worker>): void {
  const isAbsent = sync.loadWord(taskSlot(map, task) + TASK_STATE_OFFSET) === TASK_ABSENT;
  if (isAbsent && systemClock.now() < begunBy) after(LOOK_MS, () => terminateOnceBegun(task, worker));
  else void worker.terminate();
}

const begunBy = systemClock.now() + BEGINNING_MS;
for (const ticket of tickets) start(ticket);
parentPort?.postMessage({ started: true } satisfies MonitorReport);
