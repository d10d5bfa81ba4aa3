// The monitor in a browser: on the thread that launched the job, a page's or a worker's, whose event loop goes on. No
// event tells of a worker that was killed or has closed itself, but the Web Lock that each task holds is free then.
import { PamiError, show } from "../core/error.js";
import type { ErrorParts, TaskErrors } from "../core/task-errors.js";
import { sharedAtomics } from "../kernel/atomics.js";
import type { Memory } from "../kernel/kernel.js";
import type { MemoryMap } from "../memory/map.js";
import { hasLeft, interruptTask, markDead, markEngineDead } from "../node/liveness.js";
import { after } from "../support/host.js";
import { BOOTSTRAP, type TaskBootstrap, type TaskNews, type TaskReport } from "./bootstrap.js";
import type { EngineSetup } from "./engine-worker.js";
import { Lifecycle } from "./lifecycle.js";
import type { Entry, Monitor, MonitorEvents, MonitorOrders, TaskExit } from "./monitor.js";
import type { Switchboard } from "./switchboard.js";

/** A task's worker that gives no reason for its failure: what it probably is. */
const NO_REASON =
  "its script was not loaded: it does not exist (404), or is served without Cross-Origin-Embedder-Policy: require-corp, or not as JavaScript";

/** Milliseconds in which word comes that a task has closed its client, after its lock is free. */
const WORD_MS = 100;

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

/** What the engine thread is started with, and its code. */
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
    // Not before: not every browser has read it by then.
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
  /** Those of them whose worker is somebody else's. */
  const adopted = new Set<number>();
  /** Those of them whose worker is being terminated, and how they end by that. */
  const dying = new Map<number, TaskExit>();
  /** Ends the listening to a task's worker. */
  const unlisten = new Map<number, () => void>();
  const interrupt = (task: number): void => {
    if (board === undefined) interruptTask(sync, map, task);
    else board.interrupt(task);
  };

  const host = {
    hasLeft: (task: number): boolean => board?.hasLeft(task) ?? hasLeft(sync, map, task),
    interrupt,
    markDead(task: number) {
      const worker = running.get(task);
      running.delete(task);
      // A worker that was adopted may join another job.
      unlisten.get(task)?.();
      unlisten.delete(task);
      if (!adopted.delete(task)) (worker as Worker).terminate();
      if (board === undefined) markDead(sync, map, task);
    },
    ended(exit: TaskExit, error: ErrorParts | undefined) {
      board?.ended(exit.task, error);
      events.ended(exit);
    },
  };
  const lifecycle = new Lifecycle(errors, host);

  /**
   * Terminates a task's worker. The task has ended once that is gone: Chromium lets one that is busy or blocked go on for
   * 2 s, in which it writes into memory that would be another's. Who sleeps is woken, so that its worker goes sooner.
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
    // That it has left comes another way, maybe later.
    if (board === undefined || dying.has(task)) lifecycle.end(exit);
    else after(WORD_MS, () => board.hasLeft(task) || lifecycle.end(exit));
  }

  /** @param entry of its worker, for what is said of a failure */
  function start(bootstrap: TaskBootstrap, worker: Worker | MessagePort, entry: Entry | null): void {
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
        ? { askToLeave, terminate: () => lifecycle.end(terminated) }
        : // Where all tasks end, the memory goes to no other task.
          { terminate: (isAll) => (isAll ? lifecycle.end(dying.get(task) ?? terminated) : kill(terminated, lock)) },
    );
    const hear = (given: Event): void => {
      const event = given as MessageEvent;
      const report = (event.data as { [BOOTSTRAP]?: TaskReport } | null)?.[BOOTSTRAP];
      if (report === undefined) return;
      event.stopImmediatePropagation();
      if (report === "attach") worker.postMessage({ [BOOTSTRAP]: bootstrap });
      else if (report === "held") {
        void navigator.locks?.request(lock, () => gone(task));
        listens = true;
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
    // What goes wrong in somebody else's worker is theirs.
    if (adopted.has(task)) {
      worker.postMessage({ [BOOTSTRAP]: bootstrap });
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

  /** Chromium lets a worker that is busy or blocked go on for 2 s after terminate(): so it is asked to return. */
  function askEngine(): void {
    if (engine) interruptTask(sync, map, map.tasks);
  }

  for (const [i, bootstrap] of bootstraps.entries()) start(bootstrap, workers[i] as Worker, entry);
  queueMicrotask(() => events.started());
  return {
    start({ entry: other, bootstraps: more, workerOptions }) {
      const names = more.map(({ lock }) => lock);
      const made = makeWorkers(other as Entry, workerOptions, names);
      for (const [i, bootstrap] of more.entries()) start(bootstrap, made[i] as Worker, other);
    },
    adopt(bootstrap, target) {
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
