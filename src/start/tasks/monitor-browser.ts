// The monitor in a browser. The monitor runs on the thread that launched the job, a page's or a worker's, whose event loop goes
// on. No event reports that a worker was killed or has closed itself, but then the Web Lock of its task is free.

import { PamiError, show } from "../../core/error.js";
import type { ErrorParts, TaskErrors } from "../../core/task-errors.js";
import { sharedAtomics } from "../../kernel/atomics.js";
import type { Memory } from "../../kernel/kernel.js";
import type { MemoryMap } from "../../memory/map.js";
import { hasLeft, interruptTask, markDead, markEngineDead } from "../../node/liveness.js";
import { after } from "../../support/timers.js";
import { BOOTSTRAP, type TaskBootstrap, type TaskNews, type TaskReport } from "../start-message.js";
import type { EngineSetup } from "./engine-worker.js";
import { watchStart } from "./late-start.js";
import { Lifecycle } from "./lifecycle.js";
import type { Monitor, MonitorEvents, MonitorOrders, TaskEntry, TaskExit } from "./monitor.js";
import type { Switchboard } from "./switchboard.js";
import { portsOf } from "./task-ports.js";

/** The probable reason of a failure for which a task's worker gives none. */
const NO_REASON =
  "its script was not loaded: it does not exist (404), or is served without Cross-Origin-Embedder-Policy: require-corp, or not as JavaScript";

/** Milliseconds in which a task's message "left" comes after its lock is free. */
const WORD_MS = 100;

/**
 * Makes the workers of tasks with these names, which begin to load. launch() makes the workers first, because loading takes
 * longest.
 * @throws PAMIR_ENTRY; then no worker exists
 */
export function makeWorkers(
  entry: TaskEntry,
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

/** The engine thread's setup, and its code. */
type EngineOrder = EngineSetup & { readonly source: string };

/**
 * Starts the engine thread.
 * @param ended called when it has ended, or could not be started: a Content-Security-Policy may forbid it
 * @returns ends its worker
 */
function startEngine({ source, ...setup }: EngineOrder, ended: (error: string) => void): () => void {
  const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  let worker: Worker | undefined;
  const stop = (): void => {
    worker?.terminate();
    // Not earlier: some browsers read the URL late.
    URL.revokeObjectURL(url);
  };
  const over = (error: string): void => {
    stop();
    ended(error);
  };
  try {
    worker = new Worker(url, { name: "pamir engine" });
    worker.addEventListener("error", (event) => {
      event.preventDefault();
      over(event.message || "its script was not loaded: does the Content-Security-Policy allow worker-src blob:?");
    });
    worker.addEventListener("message", () => over("it was asked to end"));
    worker.postMessage(setup);
  } catch (error) {
    queueMicrotask(() => over((error as Error).message));
  }
  return stop;
}

/**
 * @param workers one for each bootstrap
 * @param errors where the errors of dead tasks are written, if tasks share memory
 * @param board brings tasks news of each other, if they share no memory
 */
export function startBrowserMonitor(
  { entry, bootstraps }: MonitorOrders,
  workers: readonly Worker[],
  events: MonitorEvents,
  map: MemoryMap,
  memory: Memory,
  errors: TaskErrors | undefined,
  engine: EngineOrder | undefined,
  board: Switchboard | undefined,
): Monitor {
  const sync = sharedAtomics(memory);
  const running = new Map<number, Worker | MessagePort>();
  /** Tasks whose worker the program has started. */
  const adopted = new Set<number>();
  const attached = new Set<number>();
  /** Tasks whose worker is being terminated, with the exit that they get. */
  const dying = new Map<number, TaskExit>();
  /** By task: stops listening to its worker. */
  const unlisten = new Map<number, () => void>();
  const interrupt = (task: number): void => {
    if (board === undefined) interruptTask(sync, map, task);
    else board.interrupt(task);
  };

  /** Stops listening to a worker. An adopted worker may join another job. */
  const forget = (task: number): void => {
    running.delete(task);
    unlisten.get(task)?.();
    unlisten.delete(task);
  };

  const host = {
    hasLeft: (task: number): boolean => board?.hasLeft(task) ?? hasLeft(sync, map, task),
    interrupt,
    markDead(task: number) {
      const worker = running.get(task);
      forget(task);
      if (!adopted.delete(task)) (worker as Worker).terminate();
      if (board === undefined) markDead(sync, map, task);
    },
    stays: (task: number, why: string): void => events.stays(task, why),
    ended(exit: TaskExit, error: ErrorParts | undefined) {
      board?.ended(exit.task, error);
      events.ended(exit, error);
    },
  };
  const lifecycle = new Lifecycle(errors, host);

  /**
   * Terminates a task's worker. The task has ended once the worker is gone. Chromium lets a busy or blocked worker go on for
   * 2 s, in which it would write into memory that another task uses. A sleeping task is woken, so that its worker goes
   * sooner.
   */
  function kill(exit: TaskExit, lock: string): void {
    const { task } = exit;
    const worker = running.get(task);
    if (worker === undefined || dying.has(task)) return;
    if (board !== undefined || navigator.locks === undefined) {
      lifecycle.end(exit);
      return;
    }
    dying.set(task, exit);
    (worker as Worker).terminate();
    interruptTask(sync, map, task);
    void navigator.locks.request(lock, () => gone(task));
  }

  /** The task's lock is free: it has closed its client, or its worker is gone. */
  function gone(task: number): void {
    const exit = dying.get(task) ?? lifecycle.silentExit(task);
    // The message "left" comes another way, maybe later.
    if (board === undefined || dying.has(task)) lifecycle.end(exit);
    else after(WORD_MS, () => board.hasLeft(task) || lifecycle.end(exit));
  }

  /** @param entry of its worker, for the text of a failure */
  function start(bootstrap: TaskBootstrap, worker: Worker | MessagePort, entry: TaskEntry | null): void {
    const { task, lock } = bootstrap;
    running.set(task, worker);
    const tell = (news: TaskNews, ports: MessagePort[] = []): void => worker.postMessage({ [BOOTSTRAP]: news }, ports);
    board?.add(task, tell);
    let listens = false;
    let isToLeave = false;
    const askToLeave = (): void => {
      if (listens) tell({ leave: true });
      isToLeave = true;
    };
    const terminated: TaskExit = { task, code: 1, cause: "terminated" };
    lifecycle.add(
      task,
      adopted.has(task)
        ? { askToLeave, terminate: () => forget(task) }
        : // Where all tasks end, the memory goes to no other task.
          { terminate: (isAll) => (isAll ? lifecycle.end(dying.get(task) ?? terminated) : kill(terminated, lock)) },
    );
    let isPortGiven = false;
    const give = (): void => {
      // A worker that gets its bootstrap twice has taken the first one.
      if (isPortGiven) return;
      const ports = portsOf([bootstrap]);
      isPortGiven = ports.length > 0;
      worker.postMessage({ [BOOTSTRAP]: bootstrap }, ports);
    };
    const hear = (given: Event): void => {
      const event = given as MessageEvent;
      const report = (event.data as { [BOOTSTRAP]?: TaskReport } | null)?.[BOOTSTRAP];
      if (report === undefined) return;
      event.stopImmediatePropagation();
      if (report === "attach") give();
      else if (report === "held") {
        void navigator.locks?.request(lock, () => gone(task));
        listens = true;
        attached.add(task);
        board?.listens(task);
        if (isToLeave) tell({ leave: true });
      } else if (report === "left") {
        if (board === undefined) return;
        board.left(task, () =>
          lifecycle.end({ task, code: 0, cause: lifecycle.isTerminated(task) ? "terminated" : "exit" }),
        );
      } else if (!("message" in report)) board?.hear(task, report, event.ports);
      else {
        const { name, message, code, stack } = report;
        const cause = name === "RangeError" && /memory/i.test(message) ? "memory" : "error";
        kill({ task, code: 1, cause, error: `${name}: ${message}`, errorCode: code, stack }, lock);
      }
    };
    (worker as EventTarget).addEventListener("message", hear);
    unlisten.set(task, () => (worker as EventTarget).removeEventListener("message", hear));
    // Errors in a worker that the program has started are the program's.
    if (adopted.has(task)) {
      if (bootstrap.port === undefined || "start" in worker) give();
      // The worker may not listen yet, and its own report may have come too early.
      else tell({ offer: true });
      return;
    }
    worker.addEventListener("error", (event) => {
      event.preventDefault();
      const { message, filename, lineno } = event as Partial<ErrorEvent>;
      const text = message
        ? `${message} (${filename}:${lineno})`
        : `${typeof entry === "function" ? `task ${task}` : entry}: ${NO_REASON}`;
      kill({ task, code: 1, cause: "error", error: text }, lock);
    });
  }

  const stopEngine = engine && startEngine(engine, engineEnded);

  function engineEnded(error: string): void {
    markEngineDead(sync, map);
    events.engineEnded(error);
  }

  /** Chromium lets a busy or blocked worker go on for 2 s after terminate(). So this asks the engine thread to return. */
  function askEngine(): void {
    if (engine) interruptTask(sync, map, map.tasks);
  }

  /** Tells of tasks that do not attach. */
  function watch(tasks: readonly TaskBootstrap[]): void {
    const isAbsent = (task: number): boolean => lifecycle.isRunning(task) && !attached.has(task);
    const numbers = tasks.map(({ task }) => task);
    watchStart(numbers, isAbsent, (text) => console.warn(text), true);
  }

  watch(bootstraps);
  for (const [i, bootstrap] of bootstraps.entries()) start(bootstrap, workers[i] as Worker, entry);
  queueMicrotask(() => events.started());
  return {
    start({ entry: other, bootstraps: more, workerOptions }) {
      watch(more);
      const names = more.map(({ lock }) => lock);
      const made = makeWorkers(other as TaskEntry, workerOptions, names);
      for (const [i, bootstrap] of more.entries()) start(bootstrap, made[i] as Worker, other);
    },
    adopt(bootstrap, target) {
      watch([bootstrap]);
      adopted.add(bootstrap.task);
      start(bootstrap, target as Worker | MessagePort, null);
      if ("start" in target) (target as MessagePort).start();
    },
    close: () => {
      askEngine();
      stopEngine?.();
      events.over("");
    },
    ...(board !== undefined && { interrupt, nodes: board }),
    terminate(which) {
      if (which === "engine") askEngine();
      else lifecycle.terminate(which);
    },
    ref() {},
    unref() {},
  };
}
