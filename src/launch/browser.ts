// The monitor in a browser: on the thread that launched the job, a page's or a worker's, whose event loop goes on. No
// event tells of a worker that was killed or has closed itself, but the Web Lock that each task holds is free then.
import { TASK_CLOSED, TASK_STATE_OFFSET } from "../../assembly/layout.js";
import type { Memory } from "../kernel/kernel.js";
import { twinSync } from "../kernel/twin/sync.js";
import { type MemoryMap, taskSlot } from "../memory/map.js";
import { PamiError, show } from "../pami/error.js";
import { interruptTask } from "../pami/notice.js";
import { after } from "../support/host.js";
import type { Relay } from "../transport/relay.js";
import { bury } from "./bury.js";
import type { Entry, Monitor, MonitorEvents, MonitorOrders, TaskExit } from "./monitor.js";
import { type TaskNews, type TaskReport, TICKET, type Ticket } from "./ticket.js";

/** A task's worker that gives no reason for its failure: what it probably is. */
const NO_REASON =
  "its script was not loaded: it does not exist (404), or is served without Cross-Origin-Embedder-Policy: require-corp, or not as JavaScript";

/** Milliseconds in which word comes that a task has closed its client, after its lock is free. */
const WORD_MS = 100;

/** Milliseconds in which an adopted worker hears that it is asked to leave, and in which it does so. */
const BLOCKED_MS = 100;
const LEAVE_MS = 1000;

/** The task on the thread that launched the job, if that joined. */
const CALLER = 0;

/** Brings a port to another task's relay. */
export type Connect = (task: number, port: MessagePort) => void;

/** Something for a worker: news, and a port that goes with it. */
type Delivery = readonly [news: TaskNews, ports: MessagePort[]];

/**
 * The workers of tasks with these names, which begin to load: the first thing that launch() does, for it takes longest.
 * @throws PAMIR_ENTRY; then there is none
 */
export function makeWorkers(
  entry: Entry,
  workerOptions: Record<string, unknown>,
  names: readonly string[],
): readonly Worker[] {
  const workers: Worker[] = [];
  try {
    for (const name of names) {
      const worker: unknown =
        typeof entry === "string" ? new Worker(entry, { ...workerOptions, type: "module", name }) : entry();
      if (!(worker instanceof Worker)) throw new TypeError(`entry() gave ${show(worker)}, not a Worker`);
      workers.push(worker);
    }
  } catch (cause) {
    for (const worker of workers) worker.terminate();
    throw new PamiError("PAMIR_ENTRY", `no worker can be made: ${(cause as Error).message}`, { cause });
  }
  return workers;
}

/**
 * @param workers one for each ticket
 * @param relay of the task that is on this thread, if there is one and tasks share no memory: it calls `connect` where it
 *   has something to say, and `leave` when it has left
 */
export function startBrowserMonitor(
  { entry, tickets }: MonitorOrders,
  workers: readonly Worker[],
  events: MonitorEvents,
  map: MemoryMap,
  memory: Memory,
  relay?: Relay,
): Monitor & { connect: Connect; leave: () => void } {
  const sync = twinSync(memory);
  const running = new Map<number, Worker | MessagePort>();
  /** Those of them whose worker is somebody else's. */
  const adopted = new Set<number>();
  const isShared = relay === undefined && tickets.every((ticket) => ticket.memory !== undefined);
  /** Where tasks share no memory: what a worker that has not called attach() yet will hear. */
  const undelivered = new Map<number, Delivery[]>();
  const left = new Set<number>();

  function deliver(task: number, news: TaskNews, ports: MessagePort[] = []): void {
    const waiting = undelivered.get(task);
    if (waiting !== undefined) waiting.push([news, ports]);
    else running.get(task)?.postMessage({ [TICKET]: news }, ports);
  }

  function connect(from: number, task: number, port: MessagePort): void {
    if (relay !== undefined && task === CALLER) relay.accept(from, port);
    else deliver(task, { from }, [port]);
  }

  function end(exit: TaskExit): void {
    const { task } = exit;
    const worker = running.get(task);
    if (worker === undefined) return;
    running.delete(task);
    if (!adopted.delete(task)) (worker as Worker).terminate();
    if (relay === undefined) bury(sync, map, task);
    else relay.ended(task, left.has(task));
    if (!isShared) for (const other of running.keys()) deliver(other, { ended: task, hasLeft: left.has(task) });
    events.ended(exit);
  }

  /** The task's lock is free: it has closed its client, or its worker is gone. */
  function gone(task: number): void {
    const killed: TaskExit = { task, code: 1, cause: "exit", error: "its worker ended without closing the client" };
    if (sync.loadWord(taskSlot(map, task) + TASK_STATE_OFFSET) === TASK_CLOSED) end({ task, code: 0, cause: "exit" });
    else if (isShared) end(killed);
    // That it has left comes another way, maybe later.
    else after(WORD_MS, () => end(killed));
  }

  function start(ticket: Ticket, worker: Worker | MessagePort): void {
    const { task, lock } = ticket;
    running.set(task, worker);
    (worker as EventTarget).addEventListener("message", (given) => {
      const event = given as MessageEvent;
      const report = (event.data as { [TICKET]?: TaskReport } | null)?.[TICKET];
      if (report === undefined) return;
      event.stopImmediatePropagation();
      if (report === "attach") worker.postMessage({ [TICKET]: ticket });
      else if (report === "held") {
        void navigator.locks?.request(lock, () => gone(task));
        // From now on it listens.
        const waiting = undelivered.get(task) ?? [];
        undelivered.delete(task);
        for (const [news, ports] of waiting) deliver(task, news, ports);
      } else if (report === "left") {
        if (isShared) return;
        left.add(task);
        end({ task, code: 0, cause: "exit" });
      } else if (typeof report === "object" && "connect" in report) {
        connect(task, report.connect, event.ports[0] as MessagePort);
      } else {
        const { name, message, code, stack } = report;
        const cause = name === "RangeError" && /memory/i.test(message) ? "memory" : "error";
        end({ task, code: 1, cause, error: `${name}: ${message}`, errorCode: code, stack });
      }
    });
    // What goes wrong in somebody else's worker is theirs.
    if (adopted.has(task)) {
      worker.postMessage({ [TICKET]: ticket });
      return;
    }
    worker.addEventListener("error", (event) => {
      event.preventDefault();
      const { message, filename, lineno } = event as Partial<ErrorEvent>;
      const text = message
        ? `${message} (${filename}:${lineno})`
        : `${typeof entry === "function" ? `task ${task}` : entry}: ${NO_REASON}`;
      end({ task, code: 1, cause: "error", error: text });
    });
  }

  if (!isShared) for (const { task } of tickets) undelivered.set(task, []);
  for (const [i, ticket] of tickets.entries()) start(ticket, workers[i] as Worker);
  queueMicrotask(() => events.started());
  return {
    start({ entry: other, tickets: more, workerOptions }) {
      const names = more.map(({ lock }) => lock);
      const made = makeWorkers(other as Entry, workerOptions, names);
      for (const [i, ticket] of more.entries()) start(ticket, made[i] as Worker);
    },
    adopt(ticket, target) {
      adopted.add(ticket.task);
      start(ticket, target as Worker | MessagePort);
      if ("start" in target) (target as MessagePort).start();
    },
    close: () => events.over(""),
    connect: (task, port) => connect(CALLER, task, port),
    leave() {
      for (const task of running.keys()) deliver(task, { ended: CALLER, hasLeft: true });
    },
    ...(!isShared && {
      interrupt: (task: number) => {
        if (relay !== undefined && task === CALLER) relay.interrupt();
        else deliver(task, { interrupt: true });
      },
    }),
    terminate(which) {
      for (const task of [...running.keys()]) {
        if (which !== "all" && which !== task) continue;
        const terminated = (): void => end({ task, code: 1, cause: "terminated" });
        if (!adopted.has(task)) terminated();
        else {
          // As in node-monitor.ts.
          deliver(task, { leave: true });
          after(BLOCKED_MS, () => interruptTask(sync, map, task));
          after(LEAVE_MS, terminated);
        }
      }
    },
    ref() {},
    unref() {},
  };
}
