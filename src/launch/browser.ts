// The monitor in a browser: on the thread that launched the job, a page's or a worker's, whose event loop goes on. No
// event tells of a worker that was killed or has closed itself, but the Web Lock that each task holds is free then.
import { TASK_CLOSED, TASK_STATE_OFFSET } from "../../assembly/layout.js";
import type { Memory } from "../kernel/kernel.js";
import { twinSync } from "../kernel/twin/sync.js";
import { type MemoryMap, taskSlot } from "../memory/map.js";
import { PamiError, show } from "../pami/error.js";
import { bury } from "./bury.js";
import type { Monitor, MonitorEvents, MonitorOrders, TaskExit } from "./monitor.js";
import { type TaskReport, TICKET, type Ticket, workerName } from "./ticket.js";

/** A task's worker that gives no reason for its failure: what it probably is. */
const NO_REASON =
  "its script was not loaded: it does not exist (404), or is served without Cross-Origin-Embedder-Policy: require-corp, or not as JavaScript";

export function startBrowserMonitor(
  orders: MonitorOrders,
  events: MonitorEvents,
  map: MemoryMap,
  memory: Memory,
): Monitor {
  const { entry, tickets, workerOptions } = orders;
  const sync = twinSync(memory);
  const running = new Map<number, Worker>();

  function end(exit: TaskExit): void {
    const worker = running.get(exit.task);
    if (worker === undefined) return;
    running.delete(exit.task);
    worker.terminate();
    bury(sync, map, exit.task);
    events.ended(exit);
    if (running.size === 0) events.over("");
  }

  /** The task's lock is free: it has closed its client, or its worker is gone. */
  function gone(task: number): void {
    if (sync.loadWord(taskSlot(map, task) + TASK_STATE_OFFSET) === TASK_CLOSED) end({ task, code: 0, cause: "exit" });
    else end({ task, code: 1, cause: "exit", error: "its worker ended without closing the client" });
  }

  function makeWorker(task: number): Worker {
    if (typeof entry === "string")
      return new Worker(entry, { ...workerOptions, type: "module", name: workerName(task) });
    const worker: unknown = entry();
    if (worker instanceof Worker) return worker;
    throw new TypeError(`entry() gave ${show(worker)}, not a Worker`);
  }

  function start(ticket: Ticket, worker: Worker): void {
    const { task, lock } = ticket;
    worker.addEventListener("message", (event: MessageEvent) => {
      const report = (event.data as { [TICKET]?: TaskReport } | null)?.[TICKET];
      if (report === undefined) return;
      event.stopImmediatePropagation();
      if (report === "attach") worker.postMessage({ [TICKET]: ticket });
      else if (report === "held") void navigator.locks?.request(lock, () => gone(task));
      else {
        const { name, message, code, stack } = report;
        const cause = name === "RangeError" && /memory/i.test(message) ? "memory" : "error";
        end({ task, code: 1, cause, error: `${name}: ${message}`, errorCode: code, stack });
      }
    });
    worker.addEventListener("error", (event) => {
      event.preventDefault();
      const { message, filename, lineno } = event as Partial<ErrorEvent>;
      const text = message
        ? `${message} (${filename}:${lineno})`
        : `${typeof entry === "function" ? `task ${task}` : entry}: ${NO_REASON}`;
      end({ task, code: 1, cause: "error", error: text });
    });
  }

  try {
    structuredClone(tickets[0]?.args);
  } catch (cause) {
    throw new PamiError("PAMIR_INVAL", `args can't be sent to a worker: ${(cause as Error).message}`, { cause });
  }
  try {
    for (const { task } of tickets) running.set(task, makeWorker(task));
  } catch (cause) {
    for (const worker of running.values()) worker.terminate();
    throw new PamiError("PAMIR_ENTRY", `no worker can be made: ${(cause as Error).message}`, { cause });
  }
  for (const ticket of tickets) start(ticket, running.get(ticket.task) as Worker);
  queueMicrotask(() => {
    events.started();
    if (running.size === 0) events.over("");
  });
  return {
    terminate() {
      for (const task of [...running.keys()]) end({ task, code: 1, cause: "terminated" });
    },
    ref() {},
    unref() {},
  };
}
