// The monitor of Node: a worker that starts the tasks' workers and then waits in its event loop, so that it hears of
// their end whatever the launching thread does. It marks the dead, mends what they held, and rings everybody. A worker
// that somebody else has started holds one end of a channel: the other end, here, is closed when that worker is gone.
import { TASK_ABSENT, TASK_CLOSED, TASK_STATE_OFFSET } from "../../assembly/layout.js";
import { memoryOf } from "../kernel/kernel.js";
import type { SharedMemory } from "../kernel/select.js";
import { twinSync } from "../kernel/twin/sync.js";
import { readMap, taskSlot } from "../memory/map.js";
import { dumpData } from "../pami/dump.js";
import { interruptTask } from "../pami/notice.js";
import { systemClock } from "../support/clock.js";
import { after, type NodePort, nodeModule } from "../support/host.js";
import { bury, buryEngine } from "./bury.js";
import type { EngineSetup } from "./engine-worker.js";
import type { MonitorOrders, TaskExit } from "./monitor.js";
import { TICKET, type Ticket } from "./ticket.js";
import { becomeVisible } from "./visible.js";

/** From the monitor to the launcher. */
export type MonitorReport =
  | { readonly ended: TaskExit }
  | { readonly started: true }
  /** The engine thread has ended, of what. */
  | { readonly engineEnded: string };
/** What the monitor is started with. */
export interface MonitorSetup {
  readonly orders: MonitorOrders;
  readonly shared: SharedMemory;
  /** Pointer to the job header. */
  readonly job: number;
  /** Where `pamir top` may look at it: how the process was started. */
  readonly program: readonly string[] | undefined;
  /** Source of the engine thread, and the kernels for it, if the job has one. */
  readonly engine: { readonly source: string; readonly module: WebAssembly.Module | undefined } | undefined;
}
/** From the launcher to the monitor. */
export type MonitorOrder =
  | { readonly start: MonitorOrders }
  | { readonly adopt: Ticket; readonly life: NodePort }
  | { readonly terminate: number | "all" | "engine" }
  | { readonly close: true };

const { Worker, parentPort, workerData, threadId } = nodeModule(
  "worker_threads",
) as typeof import("node:worker_threads");
const { orders, shared, job, program, engine } = workerData as MonitorSetup;
const memory = memoryOf((shared instanceof SharedArrayBuffer ? shared : shared.buffer) as SharedArrayBuffer);
const map = readMap(memory, job);
const sync = twinSync(memory);
const running = new Map<number, InstanceType<typeof Worker>>();
const adopted = new Map<number, NodePort>();
const terminated = new Set<number>();

/**
 * Node 20 aborts the whole process if a worker is terminated just as a module with a top-level await begins (V8, "Check
 * failed: (location_) != nullptr"; 1 in 500 at a random moment of the first 40 ms). For a task this is over once it has
 * attached; whoever does not attach is waited for this long after its start, in milliseconds.
 */
const BEGINNING_MS = 1000;
/** Between two looks whether it has attached. */
const LOOK_MS = 1;
/** Milliseconds in which an adopted worker hears that it is asked to leave, and in which it does so. */
const BLOCKED_MS = 100;
const LEAVE_MS = 1000;

function start(entry: string, ticket: Ticket, workerOptions: Record<string, unknown>): void {
  const { task } = ticket;
  const { workerData: userData, ...options } = workerOptions;
  const failures: unknown[] = [];
  const ended = (code: number): void => {
    running.delete(task);
    bury(sync, map, task);
    report(task, code, failures[0]);
  };
  try {
    const worker = new Worker(new URL(entry), {
      ...options,
      workerData: { ...(userData as object | undefined), [TICKET]: ticket },
    });
    running.set(task, worker);
    worker.on("error", (error) => failures.push(error));
    worker.on("exit", ended);
  } catch (error) {
    failures.push(error);
    ended(1);
  }
}

/** Starts the engine thread. It keeps nothing running, and goes with the monitor. */
function startEngine({ source, module }: NonNullable<MonitorSetup["engine"]>): void {
  let failure = "it was terminated";
  const setup: EngineSetup = { shared, module, job };
  const worker = new Worker(source, { eval: true, workerData: setup, name: "pamir engine" });
  worker.on("error", (error) => {
    failure = String(error);
  });
  worker.on("exit", () => {
    buryEngine(sync, map);
    parentPort?.postMessage({ engineEnded: failure } satisfies MonitorReport);
  });
  worker.unref();
  engineThread = worker;
}

function startAll({ entry, tickets, workerOptions }: MonitorOrders): void {
  begunBy = systemClock.now() + BEGINNING_MS;
  for (const ticket of tickets) start(entry as string, ticket, workerOptions);
}

function adopt({ task }: Ticket, life: NodePort): void {
  adopted.set(task, life);
  life.on("close", () => {
    if (!adopted.delete(task)) return;
    const hasLeft = sync.loadWord(taskSlot(map, task) + TASK_STATE_OFFSET) === TASK_CLOSED;
    bury(sync, map, task);
    const cause = terminated.has(task) ? "terminated" : "exit";
    const error = hasLeft ? undefined : "its worker ended without closing the client";
    tell({ task, code: hasLeft ? 0 : 1, cause, error });
  });
}

/**
 * Nobody else's worker is terminated: it is asked to leave, by a message, and by an interrupt where it blocks and so has
 * not read that. Who does not leave is not waited for.
 */
function dismiss(task: number, life: NodePort): void {
  terminated.add(task);
  life.postMessage({ leave: true });
  const stops = [after(BLOCKED_MS, () => interruptTask(sync, map, task)), after(LEAVE_MS, () => life.close())];
  life.on("close", () => {
    for (const stop of stops) stop();
  });
}

function report(task: number, code: number, failure: unknown): void {
  const error = failure as { name?: string; message?: string; code?: string; stack?: string } | undefined;
  const outOfMemory = error?.code === "ERR_WORKER_OUT_OF_MEMORY";
  const cause = terminated.has(task) ? "terminated" : failure === undefined ? "exit" : outOfMemory ? "memory" : "error";
  const text =
    failure instanceof Error || error?.message !== undefined ? `${error?.name}: ${error?.message}` : String(failure);
  tell({
    task,
    code,
    cause,
    error: failure === undefined ? undefined : text,
    errorCode: error?.code,
    stack: error?.stack,
  });
}

function tell(ended: TaskExit): void {
  parentPort?.postMessage({ ended } satisfies MonitorReport);
}

parentPort?.on("message", (order: MonitorOrder) => {
  if ("start" in order) startAll(order.start);
  else if ("adopt" in order) adopt(order.adopt, order.life);
  else if ("close" in order) leave();
  else if (order.terminate === "engine") void engineThread?.terminate();
  else {
    const isMeant = (task: number): boolean => order.terminate === "all" || order.terminate === task;
    for (const [task, worker] of running) {
      if (!isMeant(task)) continue;
      terminated.add(task);
      terminateOnceBegun(task, worker);
    }
    for (const [task, life] of adopted) if (isMeant(task)) dismiss(task, life);
  }
});

/** Ends this thread. Deno's `parentPort` has no `close`; nothing that was posted is lost there by exit(). */
function leave(): void {
  if (typeof parentPort?.close === "function") parentPort.close();
  else process.exit(0);
}

function terminateOnceBegun(task: number, worker: InstanceType<typeof Worker>): void {
  const isAbsent = sync.loadWord(taskSlot(map, task) + TASK_STATE_OFFSET) === TASK_ABSENT;
  if (isAbsent && systemClock.now() < begunBy) after(LOOK_MS, () => terminateOnceBegun(task, worker));
  else void worker.terminate();
}

let begunBy = 0;
let engineThread: InstanceType<typeof Worker> | undefined;
if (engine !== undefined) startEngine(engine);
startAll(orders);
if (program !== undefined) becomeVisible(threadId, program, () => dumpData(map, memory, sync, systemClock));
parentPort?.postMessage({ started: true } satisfies MonitorReport);
