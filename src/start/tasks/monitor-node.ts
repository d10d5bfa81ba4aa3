// The monitor of Node: a worker that starts the tasks' workers and then waits in its event loop. So the monitor learns of their
// end whatever the launching thread does. A launching thread that never blocks runs the monitor itself (monitor-thread.ts). The
// monitor marks dead tasks, releases their locks, and rings all tasks. A worker that the program has started holds one end of a
// channel. The monitor's end closes when that worker is gone.
import { TASK_ABSENT, TASK_STATE_OFFSET } from "../../../assembly/layout.js";
import type { ErrorParts } from "../../core/task-errors.js";
import { sharedAtomics } from "../../kernel/atomics.js";
import { openMemory, type SharedMemory } from "../../kernel/open.js";
import { engineSlot, readMap, taskSlot } from "../../memory/map.js";
import { hasLeft, interruptTask, markDead, markEngineDead, taskErrorsIn } from "../../node/liveness.js";
import { dumpData } from "../../observe/dump.js";
import { becomeVisible } from "../../observe/visible.js";
import { type FutexSetup, futexOf } from "../../process/futex.js";
import { systemClock } from "../../support/clock.js";
import { type NodePort, nodeModule } from "../../support/host.js";
import { encodeText } from "../../support/text.js";
import { after } from "../../support/timers.js";
import { LinkedNodes } from "../node/monitor-nodes.js";
import { type Labels, OUTPUT_MS } from "../output/labels.js";
import { GRACE_MS } from "../process/exit-code.js";
import { recordProcess } from "../process/process-record.js";
import { codeIn } from "../process/start-limits.js";
import {
  blocks,
  type NodeOrder,
  type NodeReport,
  type ProcessesSetup,
  type ProcessLinks,
  startProcess,
  startTaskProcess,
} from "../process/task-process.js";
import type { LastWord, StartMessage } from "../start-message.js";
import type { EngineSetup } from "./engine-worker.js";
import { failureText, isFailure, type OnError } from "./failure.js";
import { watchStart } from "./late-start.js";
import { Lifecycle } from "./lifecycle.js";
import type { MonitorOrders, TaskExit } from "./monitor.js";
import { TaskWorkers } from "./task-workers.js";

/** From the monitor to the launcher. */
export type MonitorReport =
  | { readonly ended: TaskExit; readonly error: ErrorParts | undefined }
  | { readonly started: true }
  /** A task that was to end goes on. */
  | { readonly stays: number; readonly why: string }
  /** The engine thread has ended with this error. */
  | { readonly engineEnded: string }
  | NodeReport;
/** The data that the monitor gets at its start. */
export interface MonitorSetup {
  readonly orders: MonitorOrders;
  readonly shared: SharedMemory;
  /** Pointer to the job header. */
  readonly job: number;
  /** The program's command line, if `pamir top` may see the job. */
  readonly program: readonly string[] | undefined;
  /** Source of the engine thread, and the kernels for it, if the job has one. */
  readonly engine: { readonly source: string; readonly module: WebAssembly.Module | undefined } | undefined;
  /** The reaction to a failure of a task. */
  readonly onError: OnError;
  /** How the output of tasks is labeled, if labels are wanted. */
  readonly labels: Labels | undefined;
  /** How threads sleep, and where the tasks run, if they run in processes. */
  readonly futex: FutexSetup | undefined;
  readonly processes: ProcessesSetup | undefined;
  /** Whether the launcher is task 0. */
  readonly isJoined: boolean;
}
/** From the launcher to the monitor. */
export type MonitorOrder =
  | { readonly start: MonitorOrders }
  | { readonly adopt: StartMessage; readonly life: NodePort }
  | { readonly terminate: number | "all" | "engine" }
  | { readonly signal: string; readonly isEnd: boolean }
  | { readonly close: true }
  | NodeOrder;

const { Worker, parentPort, workerData, threadId } = nodeModule(
  "worker_threads",
) as typeof import("node:worker_threads");
/** How the monitor gets orders on the launching thread: see startNodeMonitor(). */
const { pamirMonitor } = globalThis as { pamirMonitor?: { readonly port: NodePort; readonly setup: MonitorSetup } };
const port = pamirMonitor?.port ?? parentPort;
const { writeSync } = nodeModule("fs") as typeof import("node:fs");
const { orders, shared, job, program, engine, onError, isJoined, futex, processes, labels } =
  pamirMonitor?.setup ?? (workerData as MonitorSetup);
const memory = openMemory(shared, futex && futexOf(futex, shared as WebAssembly.Memory));
const map = readMap(memory, job);
const sync = sharedAtomics(memory);
const links: ProcessLinks | undefined = processes?.link && {
  nodes: new LinkedNodes(processes.link),
  channels: new Map(),
  onReport: (report) => port?.postMessage(report satisfies MonitorReport),
};
// Where processes share no memory, `memory` has the launching thread's node, and each process marks its own tasks.
const lifecycle = new Lifecycle(links === undefined ? taskErrorsIn(memory, map) : undefined, {
  hasLeft: (task) => hasLeft(sync, map, task),
  interrupt: (task) => interruptTask(sync, map, task),
  markDead: (task) => {
    if (links === undefined) markDead(sync, map, task);
  },
  stays: (task, why) => port?.postMessage({ stays: task, why } satisfies MonitorReport),
  ended,
});
const workers = new TaskWorkers(lifecycle, sync, map, { labels, isForeign: false, output: process });

/** Milliseconds between two attempts to write. */
const LOOK_MS = 1;
/** Milliseconds after which a thread is ended that still loads koffi. */
const LOAD_MS = 1000;
/** Milliseconds in which a full standard error has to take the text. */
const WRITE_MS = 5000;
/** Failures that are kept, so that later ones with the same text take one line. */
const PRINTED_MAX = 16;

/** Starts the engine thread, which keeps no process running, and ends with the monitor. */
function startEngine({ source, module }: NonNullable<MonitorSetup["engine"]>): void {
  let failure = "it was terminated";
  const setup: EngineSetup = { shared, module, job, futex };
  const worker = new Worker(source, { eval: true, workerData: setup, name: "pamir engine" });
  worker.on("error", (error) => {
    failure = String(error);
  });
  worker.on("exit", () => {
    markEngineDead(sync, map);
    port?.postMessage({ engineEnded: failure } satisfies MonitorReport);
  });
  worker.unref();
  engineThread = worker;
}

/** Warns of tasks that do not attach. If processes share no memory, each process warns of its own tasks. */
function watch(bootstraps: MonitorOrders["bootstraps"]): void {
  if (links !== undefined) return;
  const isUnattached = (task: number): boolean =>
    lifecycle.isRunning(task) && sync.loadWord(taskSlot(map, task) + TASK_STATE_OFFSET) === TASK_ABSENT;
  watchStart(
    bootstraps.map(({ task }) => task),
    isUnattached,
    printLine,
  );
}

function startAll({ bootstraps, ...orders }: MonitorOrders, isFirst: boolean): void {
  watch(bootstraps);
  if (isAborted) endUnstarted(bootstraps);
  else if (processes === undefined) workers.start({ ...orders, bootstraps });
  else {
    const start = processes.isMain ? startTaskProcess : startProcess;
    for (const some of blocks(bootstraps, processes.count)) {
      if (notStarted !== undefined) endUnstarted(some);
      else {
        if (isFirst) notStarted = some[0]?.task;
        for (const { task } of some) links?.nodes.begin(task);
        const pid = start({ ...orders, bootstraps: some }, { ...processes, labels }, lifecycle, links);
        if (pid === undefined) continue;
        notStarted = undefined;
        if (!processes.isDetached || links !== undefined) continue;
        for (const { task } of some) recordProcess(sync, map, task, pid);
      }
    }
  }
}

function endUnstarted(bootstraps: MonitorOrders["bootstraps"]): void {
  for (const { task } of bootstraps) {
    lifecycle.add(task, { terminate: () => {} });
    lifecycle.end({ task, code: 1, cause: "terminated" });
  }
}

function adopt(bootstrap: StartMessage, life: NodePort): void {
  const { task } = bootstrap;
  watch([bootstrap]);
  let last: LastWord | undefined;
  life.on("message", (word: LastWord) => {
    last = word;
  });
  life.on("close", () => {
    const { stack, ...how } = last ?? { ...lifecycle.silentExit(task), stack: undefined };
    const cause = lifecycle.isTerminated(task) ? "terminated" : how.cause;
    lifecycle.end({ task, ...how, cause, stack }, stack);
  });
  lifecycle.add(task, { askToLeave: () => life.postMessage({ leave: true }), terminate: () => life.close() });
  if (isAborted) lifecycle.terminate(task);
}

/** A task has ended, and is marked dead: prints its failure, and tells the launcher. */
function ended(exit: TaskExit, error: ErrorParts | undefined, shown: string | undefined): void {
  const isHeard = isFailure(exit) && onError !== "ignore";
  const isFirst = orders.bootstraps.some(({ task }) => task === exit.task);
  const lacksThread = processes === undefined && isFirst && codeIn(exit.error) !== undefined;
  const endsAll = (isHeard && onError === "abort") || exit.task === notStarted || lacksThread;
  if (isHeard) print(exit.task, failureText(exit, endsAll ? "abort" : onError, shown));
  port?.postMessage({ ended: exit, error } satisfies MonitorReport);
  if (endsAll && !isAborted) {
    isAborted = true;
    endAll();
    // The launcher may be blocked: the ring ends its wait, and the launcher learns that the job is over.
    if (isJoined) interruptTask(sync, map, 0);
  }
}

/** A task has failed, and all tasks end: tasks with a process of their own are asked to end, and have GRACE_MS. */
function endAll(): void {
  if (processes?.isMain !== true) {
    lifecycle.terminate("all");
    return;
  }
  lifecycle.signal("SIGTERM", true);
  after(GRACE_MS, () => lifecycle.terminate("all"), false);
}

/** The last printed texts, each with the task that it was printed for. */
const printed = new Map<string, number>();
/** Bytes that standard error has not taken yet. */
let unwritten: Uint8Array = new Uint8Array();
let isWriting = false;

/** Prints the text of a task's failure to standard error. The same text of another task takes one line. */
function print(task: number, text: string): void {
  const general = text.replace(`task ${task}`, "task");
  const first = printed.get(general);
  const line = first === undefined ? text : `pamir: task ${task} failed as task ${first} did`;
  if (first === undefined) printed.set(general, task);
  if (printed.size > PRINTED_MAX) printed.delete(printed.keys().next().value as string);
  printLine(line);
}

/** Prints a line to standard error. */
function printLine(line: string): void {
  const more = encodeText(`${line}\n`);
  const both = new Uint8Array(unwritten.length + more.length);
  both.set(unwritten);
  both.set(more, unwritten.length);
  unwritten = both;
  if (!isWriting) write(systemClock.now() + WRITE_MS);
}

/** Writes to the file itself: a worker's `process.stderr` goes through the launching thread, which may be blocked. */
function write(end: number): void {
  isWriting = false;
  try {
    while (unwritten.length > 0) unwritten = unwritten.subarray(writeSync(2, unwritten));
  } catch (error) {
    // EAGAIN: a full pipe. After any other error, standard error is gone.
    isWriting = (error as { code?: string }).code === "EAGAIN" && systemClock.now() < end;
    if (isWriting) after(LOOK_MS, () => write(end));
    else unwritten = new Uint8Array();
  }
}

port?.on("message", (order: MonitorOrder) => {
  if ("start" in order) startAll(order.start, false);
  else if ("adopt" in order) adopt(order.adopt, order.life);
  else if ("close" in order) onceEngineIsUp(leave);
  else if ("signal" in order) lifecycle.signal(order.signal, order.isEnd);
  else if ("to" in order) links?.channels.get(order.to)?.(order);
  else if (order.terminate === "engine") onceEngineIsUp(endEngine);
  else {
    isTerminated ||= order.terminate === "all";
    lifecycle.terminate(order.terminate);
  }
});

/**
 * Calls back once the engine thread has loaded koffi. Node aborts the whole process where a thread is ended meanwhile (1 in 50
 * at a random moment of the load; koffi 3.3, "napi_throw").
 */
function onceEngineIsUp(then: () => void, most = systemClock.now() + LOAD_MS): void {
  const isLoading = engine !== undefined && futex !== undefined && isEngineAbsent();
  if (isLoading && systemClock.now() < most) after(LOOK_MS, () => onceEngineIsUp(then, most));
  else then();
}

function isEngineAbsent(): boolean {
  return sync.loadWord(engineSlot(map) + TASK_STATE_OFFSET) === TASK_ABSENT;
}

function endEngine(): void {
  void engineThread?.terminate();
  // V8 can't terminate a thread in a foreign call: the ring ends its sleep.
  sync.ringAlways(engineSlot(map));
}

/**
 * Ends this thread once the last labeled output is out; the output of a job that was ended has OUTPUT_MS. Deno's `parentPort`
 * has no `close`; there, exit() loses no posted message.
 */
function leave(): void {
  if ((isTerminated || isAborted) && pamirMonitor === undefined) after(OUTPUT_MS, () => process.exit(0), false);
  if (typeof port?.close === "function") port.close();
  else process.exit(0);
}

/** Whether the job is being ended because a task failed. */
let isAborted = false;
/** Whether the program has ended the job. */
let isTerminated = false;
/** A task with which the job is to begin, and whose process can't be started: all tasks end. */
let notStarted: number | undefined;
let engineThread: InstanceType<typeof Worker> | undefined;
if (engine !== undefined) startEngine(engine);
startAll(orders, true);
if (program !== undefined) becomeVisible(threadId, program, () => ({ dump: dumpData(map, memory, sync, systemClock) }));
port?.postMessage({ started: true } satisfies MonitorReport);
