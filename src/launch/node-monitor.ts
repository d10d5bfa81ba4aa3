// The monitor of Node: a worker that starts the tasks' workers and then waits in its event loop. So it learns of their end
// whatever the launching thread does. It marks dead tasks, releases their locks, and rings all tasks. A worker that the
// program has started holds one end of a channel. The monitor's end closes when that worker is gone.
import { TASK_ABSENT, TASK_STATE_OFFSET } from "../../assembly/layout.js";
import { TaskErrors } from "../core/task-errors.js";
import { sharedAtomics } from "../kernel/atomics.js";
import { memoryOf } from "../kernel/kernel.js";
import type { SharedMemory } from "../kernel/select.js";
import { readMap, taskSlot } from "../memory/map.js";
import { hasLeft, interruptTask, markDead, markEngineDead } from "../node/liveness.js";
import { dumpData } from "../observe/dump.js";
import { becomeVisible } from "../observe/visible.js";
import { systemClock } from "../support/clock.js";
import { after, type NodePort, nodeModule } from "../support/host.js";
import { encodeText } from "../support/text.js";
import { BOOTSTRAP, type LastWord, type TaskBootstrap } from "./bootstrap.js";
import type { EngineSetup } from "./engine-worker.js";
import { failureText, isFailure, type OnError } from "./failure.js";
import { Lifecycle } from "./lifecycle.js";
import type { MonitorOrders, TaskExit } from "./monitor.js";

/** From the monitor to the launcher. */
export type MonitorReport =
  | { readonly ended: TaskExit }
  | { readonly started: true }
  /** The engine thread has ended with this error. */
  | { readonly engineEnded: string };
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
  /** Where the errors of dead tasks are written. */
  readonly errors: SharedArrayBuffer | undefined;
  /** Whether the launcher is task 0. */
  readonly isJoined: boolean;
}
/** From the launcher to the monitor. */
export type MonitorOrder =
  | { readonly start: MonitorOrders }
  | { readonly adopt: TaskBootstrap; readonly life: NodePort }
  | { readonly terminate: number | "all" | "engine" }
  | { readonly close: true };

const { Worker, parentPort, workerData, threadId } = nodeModule(
  "worker_threads",
) as typeof import("node:worker_threads");
const { inspect } = nodeModule("util") as typeof import("node:util");
const { writeSync } = nodeModule("fs") as typeof import("node:fs");
const { orders, shared, job, program, engine, onError, errors, isJoined } = workerData as MonitorSetup;
const memory = memoryOf((shared instanceof SharedArrayBuffer ? shared : shared.buffer) as SharedArrayBuffer);
const map = readMap(memory, job);
const sync = sharedAtomics(memory);
const lifecycle = new Lifecycle(errors && new TaskErrors(errors), {
  hasLeft: (task) => hasLeft(sync, map, task),
  interrupt: (task) => interruptTask(sync, map, task),
  markDead: (task) => markDead(sync, map, task),
  ended,
});

/**
 * Node 20 aborts the whole process if a worker is terminated just as a module with a top-level await begins (V8, "Check
 * failed: (location_) != nullptr"; 1 in 500 at a random moment of the first 40 ms). For a task, the danger is over once it
 * has attached. For one that does not attach, the monitor waits this many milliseconds after its start.
 */
const BEGINNING_MS = 1000;
/** Milliseconds between two looks whether the task has attached. */
const LOOK_MS = 1;
/** Milliseconds in which a full standard error has to take the text. */
const WRITE_MS = 5000;
/** Failures that are kept, so that later ones with the same text take one line. */
const PRINTED_MAX = 16;

const MORE_MEMORY = "; workerOptions.resourceLimits is its limit";
const NO_TYPESCRIPT = `
Node ${process.version} does not load TypeScript: name the compiled module, start node with a loader ("node --import tsx"), or use Node 22.18 or later`;

function start(entry: string, bootstrap: TaskBootstrap, workerOptions: Record<string, unknown>): void {
  const { task } = bootstrap;
  const { workerData: userData, ...options } = workerOptions;
  const failures: unknown[] = [];
  const ended = (code: number): void => report(entry, task, code, failures);
  let worker: InstanceType<typeof Worker> | undefined;
  lifecycle.add(task, { terminate: () => worker && terminateOnceBegun(task, worker) });
  try {
    worker = new Worker(new URL(entry), {
      ...options,
      workerData: { ...(userData as object | undefined), [BOOTSTRAP]: bootstrap },
    });
    worker.on("error", (error) => failures.push(error));
    worker.on("exit", ended);
  } catch (error) {
    failures.push(error);
    ended(1);
  }
}

/** Starts the engine thread. It keeps no process running, and ends with the monitor. */
function startEngine({ source, module }: NonNullable<MonitorSetup["engine"]>): void {
  let failure = "it was terminated";
  const setup: EngineSetup = { shared, module, job };
  const worker = new Worker(source, { eval: true, workerData: setup, name: "pamir engine" });
  worker.on("error", (error) => {
    failure = String(error);
  });
  worker.on("exit", () => {
    markEngineDead(sync, map);
    parentPort?.postMessage({ engineEnded: failure } satisfies MonitorReport);
  });
  worker.unref();
  engineThread = worker;
}

function startAll({ entry, bootstraps, workerOptions }: MonitorOrders): void {
  begunBy = systemClock.now() + BEGINNING_MS;
  for (const bootstrap of bootstraps) {
    const { task } = bootstrap;
    if (!isAborted) start(entry as string, bootstrap, workerOptions);
    else {
      lifecycle.add(task, { terminate: () => {} });
      lifecycle.end({ task, code: 1, cause: "terminated" });
    }
  }
}

function adopt({ task }: TaskBootstrap, life: NodePort): void {
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

function report(entry: string, task: number, code: number, failures: readonly unknown[]): void {
  const [failure] = failures;
  const error = failure as { name?: string; message?: string; code?: string; stack?: string } | undefined;
  const outOfMemory = error?.code === "ERR_WORKER_OUT_OF_MEMORY";
  const cause = lifecycle.isTerminated(task)
    ? "terminated"
    : failures.length === 0
      ? "exit"
      : outOfMemory
        ? "memory"
        : "error";
  const plain = error?.message === undefined ? String(failure) : `${error.name}: ${error.message}`;
  const hint = outOfMemory ? MORE_MEMORY : noTypeScript(entry, task, error) ? NO_TYPESCRIPT : "";
  const text = failures.length === 0 ? undefined : `${plain}${hint}`;
  // inspect() says "RangeError [Error]" or "Error [PamiError]", since an error of another thread comes as a plain Error.
  const inspected = () =>
    inspect(failure).replace(/^(\s*(?:\[\w+\]: )?)(?:(\w+) \[Error\]|Error \[(\w+Error)\])/gm, "$1$2$3");
  const shown = `${error?.message === undefined ? plain : inspected()}${hint}`;
  lifecycle.end({ task, code, cause, error: text, errorCode: error?.code, stack: error?.stack }, shown);
}

/** A task has ended, and is marked dead: prints its failure, and tells the launcher. */
function ended(exit: TaskExit, _: unknown, shown: string | undefined): void {
  const isHeard = isFailure(exit) && onError !== "ignore";
  if (isHeard) print(exit.task, failureText(exit, onError, shown));
  parentPort?.postMessage({ ended: exit } satisfies MonitorReport);
  if (isHeard && onError === "abort" && !isAborted) {
    isAborted = true;
    lifecycle.terminate("all");
    // The launcher may be blocked: this ends its wait, and it learns that the job is over.
    if (isJoined) interruptTask(sync, map, 0);
  }
}

/** Whether a task ended because its module, or one that it imports, is in TypeScript, and Node does not load that. */
function noTypeScript(
  entry: string,
  task: number,
  error: { name?: string; message?: string; code?: string } = {},
): boolean {
  if ((process.features as { typescript?: unknown }).typescript) return false;
  if (error.code === "ERR_UNKNOWN_FILE_EXTENSION") return /"\.[cm]?tsx?"/.test(error.message ?? "");
  // Node reads some TypeScript extensions as JavaScript.
  return error.name === "SyntaxError" && /\.[cm]?tsx?$/.test(new URL(entry).pathname) && isAbsent(task);
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

parentPort?.on("message", (order: MonitorOrder) => {
  if ("start" in order) startAll(order.start);
  else if ("adopt" in order) adopt(order.adopt, order.life);
  else if ("close" in order) leave();
  else if (order.terminate === "engine") void engineThread?.terminate();
  else lifecycle.terminate(order.terminate);
});

/** Ends this thread. Deno's `parentPort` has no `close`; there, exit() loses no posted message. */
function leave(): void {
  if (typeof parentPort?.close === "function") parentPort.close();
  else process.exit(0);
}

/** Whether a task has not attached yet. */
function isAbsent(task: number): boolean {
  return sync.loadWord(taskSlot(map, task) + TASK_STATE_OFFSET) === TASK_ABSENT;
}

function terminateOnceBegun(task: number, worker: InstanceType<typeof Worker>): void {
  if (isAbsent(task) && systemClock.now() < begunBy) after(LOOK_MS, () => terminateOnceBegun(task, worker));
  else void worker.terminate();
}

let begunBy = 0;
/** Whether the job is being ended because a task failed. */
let isAborted = false;
let engineThread: InstanceType<typeof Worker> | undefined;
if (engine !== undefined) startEngine(engine);
startAll(orders);
if (program !== undefined) becomeVisible(threadId, program, () => dumpData(map, memory, sync, systemClock));
parentPort?.postMessage({ started: true } satisfies MonitorReport);
