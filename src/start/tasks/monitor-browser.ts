// The monitor in a browser. The monitor runs on the thread that launched the job, a page's or a worker's, whose event loop goes
// on. No event reports that a worker was killed or has closed itself, but then the Web Lock of its task is free.

import { PamiError, show } from "../../core/error.js";
import type { TaskErrors } from "../../core/task-errors.js";
import type { SharedAtomics } from "../../kernel/atomics.js";
import type { MemoryMap } from "../../memory/map.js";
import { hasLeft, interruptTask, markDead, markEngineDead } from "../../node/liveness.js";
import { webLocks } from "../../support/host.js";
import { after } from "../../support/timers.js";
import { BOOTSTRAP, type StartMessage, type TaskNews, type TaskReport } from "../start-message.js";
import type { EngineSetup } from "./engine-worker.js";
import { watchStart } from "./late-start.js";
import { Lifecycle } from "./lifecycle.js";
import type { AdoptTarget, Monitor, MonitorEvents, MonitorOrders, TaskEntry, TaskExit } from "./monitor.js";
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

/** The data of a browser's monitor about its job. */
export interface BrowserJob {
  readonly map: MemoryMap;
  readonly sync: SharedAtomics;
  /** Where the errors of dead tasks are written, if tasks share memory. */
  readonly errors: TaskErrors | undefined;
  /** Brings tasks news of each other, if they share no memory. */
  readonly board: Switchboard | undefined;
  readonly engine: EngineOrder | undefined;
}

export class BrowserMonitor implements Monitor {
  readonly #job: BrowserJob;
  readonly #events: MonitorEvents;
  readonly #tasks = new Map<number, BrowserTask>();
  readonly #lifecycle: Lifecycle;
  readonly #stopEngine: (() => void) | undefined;
  /** Only where tasks share no memory. */
  readonly interrupt?: (task: number) => void;
  readonly nodes?: Switchboard;

  /** @param workers one for each task of the orders */
  constructor(
    { entry, bootstraps }: MonitorOrders,
    workers: readonly Worker[],
    events: MonitorEvents,
    job: BrowserJob,
  ) {
    const { board, engine, errors, sync, map } = job;
    this.#job = job;
    this.#events = events;
    this.#lifecycle = new Lifecycle(errors, {
      hasLeft: (task) => board?.hasLeft(task) ?? hasLeft(sync, map, task),
      interrupt: (task) => this.#interrupt(task),
      markDead: (task) => this.#markDead(task),
      stays: (task, why) => events.stays(task, why),
      ended(exit, error) {
        board?.ended(exit.task, error);
        events.ended(exit, error);
      },
    });
    if (board !== undefined) {
      this.interrupt = (task) => board.interrupt(task);
      this.nodes = board;
    }
    this.#stopEngine = engine && startEngine(engine, (error) => this.#engineEnded(error));
    this.#watch(bootstraps);
    for (const [i, bootstrap] of bootstraps.entries()) this.#add(bootstrap, workers[i] as Worker, entry);
    queueMicrotask(() => events.started());
  }

  start({ entry, bootstraps, workerOptions }: MonitorOrders): void {
    this.#watch(bootstraps);
    const names = bootstraps.map(({ lock }) => lock);
    const made = makeWorkers(entry as TaskEntry, workerOptions, names);
    for (const [i, bootstrap] of bootstraps.entries()) this.#add(bootstrap, made[i] as Worker, entry);
  }

  adopt(bootstrap: StartMessage, target: AdoptTarget): void {
    this.#watch([bootstrap]);
    this.#add(bootstrap, target as Worker | MessagePort, undefined);
    if ("start" in target) (target as MessagePort).start();
  }

  close(): void {
    this.#askEngine();
    this.#stopEngine?.();
    this.#events.over("");
  }

  terminate(which: number | "all" | "engine"): void {
    if (which === "engine") this.#askEngine();
    else this.#lifecycle.terminate(which);
  }

  ref(): void {}
  unref(): void {}

  /** @param entry of its worker; undefined: the program has started the worker */
  #add(bootstrap: StartMessage, worker: Worker | MessagePort, entry: TaskEntry | null | undefined): void {
    const task = new BrowserTask(bootstrap, worker, { ...this.#job, lifecycle: this.#lifecycle });
    this.#tasks.set(bootstrap.task, task);
    task.begin(entry);
  }

  #interrupt(task: number): void {
    const { board, sync, map } = this.#job;
    if (board === undefined) interruptTask(sync, map, task);
    else board.interrupt(task);
  }

  #markDead(task: number): void {
    const { board, sync, map } = this.#job;
    this.#tasks.get(task)?.end();
    this.#tasks.delete(task);
    if (board === undefined) markDead(sync, map, task);
  }

  #engineEnded(error: string): void {
    const { sync, map } = this.#job;
    markEngineDead(sync, map);
    this.#events.engineEnded(error);
  }

  /** Chromium lets a busy or blocked worker go on for 2 s after terminate(). So the engine thread is asked to return. */
  #askEngine(): void {
    const { engine, sync, map } = this.#job;
    if (engine) interruptTask(sync, map, map.tasks);
  }

  /** Tells of tasks that do not attach. */
  #watch(tasks: readonly StartMessage[]): void {
    const isUnattached = (task: number): boolean =>
      this.#lifecycle.isRunning(task) && this.#tasks.get(task)?.isAttached === false;
    const numbers = tasks.map(({ task }) => task);
    watchStart(numbers, isUnattached, (text) => console.warn(text), true);
  }
}

/** A task's worker, from its start to its end. */
class BrowserTask {
  /** Whether the task holds its lock, and hears news. */
  isAttached = false;

  readonly #bootstrap: StartMessage;
  readonly #worker: Worker | MessagePort;
  readonly #job: BrowserJob & { readonly lifecycle: Lifecycle };
  /** The exit that the task gets, while its worker is being terminated. */
  #dying: TaskExit | undefined;
  /** Whether the program has started the worker. */
  #isAdopted = false;
  #isToLeave = false;
  #isPortGiven = false;
  readonly #hear = (event: Event): void => this.#heard(event as MessageEvent);

  constructor(bootstrap: StartMessage, worker: Worker | MessagePort, job: BrowserJob & { lifecycle: Lifecycle }) {
    this.#bootstrap = bootstrap;
    this.#worker = worker;
    this.#job = job;
  }

  /** @param entry of its worker, for the text of a failure; undefined: the program has started the worker */
  begin(entry: TaskEntry | null | undefined): void {
    const { task, lock, port } = this.#bootstrap;
    const { board, lifecycle } = this.#job;
    const worker = this.#worker;
    this.#isAdopted = entry === undefined;
    board?.add(task, (news, ports) => this.#tell(news, ports));
    const terminated: TaskExit = { task, code: 1, cause: "terminated" };
    lifecycle.add(
      task,
      this.#isAdopted
        ? { askToLeave: () => this.#askToLeave(), terminate: () => this.#forget() }
        : {
            // Where all tasks end, the memory goes to no other task.
            terminate: (isAll) => (isAll ? lifecycle.end(this.#dying ?? terminated) : this.#kill(terminated, lock)),
          },
    );
    (worker as EventTarget).addEventListener("message", this.#hear);
    // Errors in a worker that the program has started are the program's.
    if (this.#isAdopted) {
      if (port === undefined || "start" in worker) this.#give();
      // The worker may not listen yet, and its own report may have come too early.
      else this.#tell({ offer: true });
      return;
    }
    worker.addEventListener("error", (event) => {
      event.preventDefault();
      const { message, filename, lineno } = event as Partial<ErrorEvent>;
      const text = message
        ? `${message} (${filename}:${lineno})`
        : `${typeof entry === "function" ? `task ${task}` : entry}: ${NO_REASON}`;
      this.#kill({ task, code: 1, cause: "error", error: text }, lock);
    });
  }

  /** The task is dead: its worker ends, unless the program has started it. */
  end(): void {
    this.#forget();
    if (!this.#isAdopted) (this.#worker as Worker).terminate();
  }

  /** Listens to the worker no more. An adopted one may join another job. */
  #forget(): void {
    (this.#worker as EventTarget).removeEventListener("message", this.#hear);
  }

  #tell(news: TaskNews, ports: MessagePort[] = []): void {
    this.#worker.postMessage({ [BOOTSTRAP]: news }, ports);
  }

  #askToLeave(): void {
    if (this.isAttached) this.#tell({ leave: true });
    this.#isToLeave = true;
  }

  #give(): void {
    // A worker that gets its bootstrap twice has taken the first one.
    if (this.#isPortGiven) return;
    const ports = portsOf([this.#bootstrap]);
    this.#isPortGiven = ports.length > 0;
    this.#worker.postMessage({ [BOOTSTRAP]: this.#bootstrap }, ports);
  }

  #heard(event: MessageEvent): void {
    const report = (event.data as { [BOOTSTRAP]?: TaskReport } | null)?.[BOOTSTRAP];
    if (report === undefined) return;
    event.stopImmediatePropagation();
    const { board, lifecycle } = this.#job;
    const { task, lock } = this.#bootstrap;
    if (report === "attach") this.#give();
    else if (report === "held") {
      void webLocks()?.request(lock, () => this.#gone());
      this.isAttached = true;
      board?.listens(task);
      if (this.#isToLeave) this.#tell({ leave: true });
    } else if (report === "left") {
      if (board === undefined) return;
      board.left(task, () =>
        lifecycle.end({ task, code: 0, cause: lifecycle.isTerminated(task) ? "terminated" : "exit" }),
      );
    } else if (!("message" in report)) board?.hear(task, report, event.ports);
    else {
      const { name, message, code, stack } = report;
      const cause = name === "RangeError" && /memory/i.test(message) ? "memory" : "error";
      this.#kill({ task, code: 1, cause, error: `${name}: ${message}`, errorCode: code, stack }, lock);
    }
  }

  /**
   * Terminates the worker. The task has ended once the worker is gone. Chromium lets a busy or blocked worker go on for 2 s, in
   * which it would write into memory that another task uses. A sleeping task is woken, so that its worker goes sooner.
   */
  #kill(exit: TaskExit, lock: string): void {
    const { board, lifecycle, sync, map } = this.#job;
    if (!lifecycle.isRunning(exit.task) || this.#dying !== undefined) return;
    const locks = webLocks();
    if (board !== undefined || locks === undefined) {
      lifecycle.end(exit);
      return;
    }
    this.#dying = exit;
    (this.#worker as Worker).terminate();
    interruptTask(sync, map, exit.task);
    void locks.request(lock, () => this.#gone());
  }

  /** The task's lock is free: it has closed its client, or its worker is gone. */
  #gone(): void {
    const { task } = this.#bootstrap;
    const { board, lifecycle } = this.#job;
    const exit = this.#dying ?? lifecycle.silentExit(task);
    // The message "left" comes another way, maybe later.
    if (board === undefined || this.#dying !== undefined) lifecycle.end(exit);
    else after(WORD_MS, () => board.hasLeft(task) || lifecycle.end(exit));
  }
}
