// A process of a job's tasks, as the monitor of the launching process sees it. In general, the process has a monitor of its own
// (process-monitor.ts), which starts its tasks, marks its dead ones, and reports their ends. If the process itself dies, the
// monitor of the launching process ends the rest of its tasks. With isMain, the main thread of the process is the task
// (by-run.ts), and nothing else runs there: such a process starts in half of the time.
import type { ChildProcess } from "node:child_process";
import type { Readable } from "node:stream";
import type { ErrorParts } from "../../core/task-errors.js";
import { type ProcessIdentity, startTimeOf } from "../../process/identity.js";
import type { ProcessMemorySetup } from "../../process/mapping.js";
import { nodeModule } from "../../support/host.js";
import { after } from "../../support/timers.js";
import type { BootstrapAnswer, BootstrapRequest } from "../join/link-bootstrap.js";
import type { LinkedNodes, LinkSetup, NodeEnd } from "../node/monitor-nodes.js";
import { drained, type Labels, labelLines, outputsOf, passOn, takeRest } from "../output/labels.js";
import { LAUNCHED, type LaunchedTask, type StartMessage, type TaskNews, type TaskReport } from "../start-message.js";
import type { Lifecycle } from "../tasks/lifecycle.js";
import type { MonitorOrders, TaskExit } from "../tasks/monitor.js";
import { codeBy } from "./exit-code.js";
import { Guard } from "./guard.js";
import { withPreload } from "./preload.js";
import { programArguments } from "./process-program.js";
import { codeIn, startText } from "./start-limits.js";

/** Data common to the processes of a job. */
export interface ProcessesSetup {
  /** Number of processes among which launch() divides the tasks. */
  readonly count: number;
  /** Source of a process's monitor. */
  readonly source: string;
  /** Undefined where processes share no memory. */
  readonly memory: ProcessMemorySetup | undefined;
  /** How the nodes are joined where processes share no memory. */
  readonly link?: LinkSetup | undefined;
  /** Pointer to the job header. */
  readonly job: number;
  readonly labels?: Labels | undefined;
  /** Whether each task is the main thread of a process. */
  readonly isMain: boolean;
  /** The module that Node loads before a task that is a main thread. */
  readonly preload?: string | undefined;
  /** Whether the processes go on if the launching process dies. */
  readonly isDetached: boolean;
}

/** The data that a process gets at its start. In the process, the memory is descriptor MEMORY_DESCRIPTOR. */
export interface ProcessSetup {
  readonly source: string;
  readonly orders: MonitorOrders;
  readonly memory: ProcessMemorySetup | undefined;
  readonly link: LinkSetup | undefined;
  readonly job: number;
  readonly labels: Labels | undefined;
  readonly launcher: ProcessIdentity;
  readonly isDetached: boolean;
}

/** From a process to its launcher. */
export type ProcessReport = TaskEnded | BootstrapRequest | NodeReport | Unwritable;
interface TaskEnded {
  readonly ended: TaskExit;
  readonly error: ErrorParts | undefined;
  /** The error as it is printed. */
  readonly shown: string | undefined;
}
/**
 * The output, which the process inherits from the launching process, can't be written: the output has no reader, or a disk is
 * full.
 */
interface Unwritable {
  readonly unwritable: "stdout" | "stderr";
}
/** From the node of a task that shares no memory with other tasks. */
export interface NodeReport {
  readonly from: number;
  readonly report: Extract<TaskReport, { answer: number }>;
}
/** From the launcher to a process. */
export type ProcessOrder = { readonly terminate: number } | BootstrapAnswer | NodeEnd | NodeOrder;
/** To the node of a task that shares no memory with other tasks. */
export interface NodeOrder {
  readonly to: number;
  readonly news: Extract<TaskNews, { ask: number } | { interrupt: true }>;
}

/** The first descriptor behind standard input, output and error. */
const OUTPUT_END = 3;
/** In a process with a monitor, the channel is the first descriptor, and the memory the next. */
export const MEMORY_DESCRIPTOR = OUTPUT_END + 1;
/** Milliseconds that a process has to end its tasks when it is asked to. A stopped process (SIGSTOP) does not end them. */
const END_MS = 1000;

/** Milliseconds in which the launching thread prints the last output of a task. */
const PRINT_MS = 100;

/** Deals items out to so many blocks, in order, with sizes that differ by at most one. */
export function blocks<T>(items: readonly T[], count: number): T[][] {
  const most = Math.min(count, items.length);
  return Array.from({ length: most }, (_, block) =>
    items.slice(Math.floor((block * items.length) / most), Math.floor(((block + 1) * items.length) / most)),
  );
}

/** Node's own options, without options that name a program, or that only one process can have. */
function nodeOptions(): string[] {
  let isKept = true;
  return process.execArgv.filter((option) => {
    // A value may follow its option. Node takes no value that begins with "-".
    if (option[0] === "-") isKept = !/^-([eip]|pe|-(eval|print|inter|input-t|inspect|debug-p|test).*)$/s.test(option);
    return isKept;
  });
}

/** How a process ended. */
interface ProcessEnd {
  readonly child: ChildProcess | undefined;
  /** The process could not be started. */
  readonly failure: Error | undefined;
  readonly code: number | null;
  readonly signal: string | null;
}

function lostBy({ child, failure, code, signal }: ProcessEnd): string {
  const name = child?.pid === undefined ? "its process" : `its process ${child.pid}`;
  if (failure !== undefined) return `${name} can't be started: ${startText(failure)}`;
  return signal === null ? `${name} exited with code ${code}` : `${name} was killed by ${signal}`;
}

/** The part of an exit that names the signal, if a signal killed the process. */
function signalIn(signal: string | null): Pick<TaskExit, "signal"> {
  return signal === null ? {} : { signal };
}

/** The guard also ends processes that never attach, once this process is gone. Without sh, attach() alone ends its process. */
let guard: Guard | undefined;

let own: ProcessIdentity | undefined;

/** This process, as the processes that it starts know it. */
function ownIdentity(): ProcessIdentity {
  own ??= { pid: process.pid, started: startTimeOf(process.pid) };
  return own;
}

/**
 * Starts a process whose main thread is a task. @returns the number of the process; undefined: the task has ended, or is about
 * to
 */
export function startTaskProcess(
  { entry, bootstraps: [start], workerOptions }: MonitorOrders,
  setup: ProcessesSetup,
  lifecycle: Lifecycle,
): number | undefined {
  const { labels, isDetached } = setup;
  const { task } = start as StartMessage;
  let child: ChildProcess | undefined;
  let outputs: readonly Readable[] = [];
  function exitBy(how: Omit<ProcessEnd, "child">): TaskExit {
    const { failure, code, signal } = how;
    if (lifecycle.isTerminated(task)) return { task, code: code || 1, cause: "terminated" };
    // The process has printed its error itself, and recorded it (record-errors.ts).
    if (failure === undefined && signal === null) return { task, code: code ?? 1, cause: "exit" };
    const error = lostBy({ child, ...how });
    return { task, code: codeBy(code, signal), cause: "process", error, ...signalIn(signal), errorCode: codeIn(error) };
  }
  let isAsked = false;
  /** Sends a signal to the process, and to processes that it has started. */
  function kill(signal: NodeJS.Signals): void {
    isAsked = signal !== "SIGKILL";
    try {
      if (child?.pid !== undefined) process.kill(-child.pid, signal);
    } catch {
      // The process has just ended.
    }
  }
  const terminate = (): void => kill("SIGKILL");
  lifecycle.add(task, {
    terminate,
    signal(name, isEnd) {
      if (isEnd) {
        kill(name as NodeJS.Signals);
        // A task that waits for the reader of its output could not handle the signal.
        for (const output of outputs) takeRest(output);
      } else child?.kill(name as NodeJS.Signals);
    },
  });
  try {
    child = spawnTask(entry as string, start as StartMessage, workerOptions, setup);
  } catch (error) {
    lifecycle.end(exitBy({ failure: error as Error, code: null, signal: null }));
    return undefined;
  }
  child.on("error", (failure) => {
    if (child?.pid === undefined) lifecycle.end(exitBy({ failure, code: null, signal: null }));
  });
  // The streams are undefined if the process could not be started.
  outputs = [child.stdout, child.stderr].flatMap((one) => one ?? []);
  const lines = passOutputs(child, task, labels);
  const { pid } = child;
  if (pid !== undefined && !isDetached) {
    guard ??= new Guard(() => {});
    guard.add(pid);
  }
  let exit: TaskExit | undefined;
  // The output of the process comes before the line that reports its end.
  const over = (): void => {
    for (const endLine of lines) endLine();
    if (exit !== undefined) void outputOf(outputs).then(() => lifecycle.end(exit as TaskExit));
  };
  child.on("exit", (code, signal) => {
    exit = exitBy({ failure: undefined, code, signal });
    lifecycle.die(exit);
    for (const output of outputs) takeRest(output);
    // A process that was asked to end leaves the processes that it has started their time. After a failure, no such process is
    // awaited.
    if (code === 0 || isAsked) return;
    terminate();
    void drained(outputs).then(over);
  });
  child.on("close", () => {
    if (pid !== undefined) guard?.remove(pid);
    over();
  });
  return pid;
}

/** Passes on the output of a task's process. @returns a function that ends the last lines, if lines have labels */
function passOutputs(child: ChildProcess, task: number, labels: Labels | undefined): (() => void)[] {
  const lines: (() => void)[] = [];
  for (const name of ["stdout", "stderr"] as const) {
    const [from, to] = [child[name], process[name]];
    // Undefined where the process could not be started.
    if (!from) continue;
    if (labels === undefined) from.on("data", (bytes: Uint8Array) => passOn(bytes, from, to));
    else lines.push(labelLines(task, labels[name], from, to));
  }
  return lines;
}

/** Resolves once the output of a task is written. A blocked launching thread prints the output only when it goes on. */
function outputOf(outputs: readonly Readable[]): Promise<unknown> {
  if (outputs.length === 0) return Promise.resolve();
  const { stdout, stderr } = process;
  const written = [stdout, stderr].map((stream) => new Promise<void>((resolve) => stream.write("", () => resolve())));
  return Promise.race([Promise.all(written), new Promise<void>((resolve) => after(PRINT_MS, resolve))]);
}

function spawnTask(
  entry: string,
  start: StartMessage,
  { argv = [], env = process.env }: { argv?: string[]; env?: NodeJS.ProcessEnv },
  { memory, labels, isDetached, preload }: ProcessesSetup,
): ChildProcess {
  const { spawn } = nodeModule("child_process") as typeof import("node:child_process");
  const { fileURLToPath } = nodeModule("url") as typeof import("node:url");
  const launched: LaunchedTask = {
    start: { ...start, memory: undefined, module: undefined, futex: undefined },
    memory: { ...(memory as ProcessMemorySetup), descriptor: OUTPUT_END },
    launcher: ownIdentity(),
    isDetached,
  };
  const outputs = isDetached ? (["inherit", "inherit"] as const) : outputsOf(labels !== undefined);
  return spawn(process.execPath, [...nodeOptions(), fileURLToPath(entry), ...argv], {
    // Leads a process group: a signal of the terminal reaches the launcher alone.
    detached: true,
    argv0: process.argv0,
    env: { ...withPreload(env, preload), [LAUNCHED]: JSON.stringify(launched) },
    stdio: [
      (start.rank ?? start.task) === 0 ? "inherit" : "ignore",
      ...outputs,
      (memory as ProcessMemorySetup).descriptor,
    ],
  });
}

/** The monitor's work for the nodes of a process, if processes share no memory. */
export interface ProcessLinks {
  readonly nodes: LinkedNodes;
  /** By task: sends an order to its process. */
  readonly channels: Map<number, (order: ProcessOrder) => void>;
  readonly onReport: (report: NodeReport) => void;
}

/** Hears a report of a process, other than a request. @param running the tasks of the process that have not ended */
function hear(report: object, lifecycle: Lifecycle, running: Set<number>, links: ProcessLinks | undefined): void {
  const given = report as Exclude<ProcessReport, { ask: unknown }>;
  if ("report" in given) links?.onReport(given);
  // The launching thread writes a worker's output, and meets the same error, as if tasks were threads.
  else if ("unwritable" in given) process[given.unwritable].write("\n");
  else if ("ended" in given) {
    running.delete(given.ended.task);
    lifecycle.relay(given.ended, given.error, given.shown);
  }
}

/** Starts a process, which starts the tasks of these orders. @returns as startTaskProcess() */
export function startProcess(
  orders: MonitorOrders,
  setup: ProcessesSetup,
  lifecycle: Lifecycle,
  links?: ProcessLinks,
): number | undefined {
  const tasks = orders.bootstraps.map(({ task }) => task);
  const running = new Set(tasks);
  let isDropped: (() => void) | undefined;
  let child: ChildProcess | undefined;
  let failure: Error | undefined;
  let code: number | null = null;
  let signal: string | null = null;
  let stopKill: (() => void) | undefined;

  /** The process is gone, and so is the channel: no report comes any more. */
  function over(): void {
    stopKill?.();
    isDropped?.();
    const lost = lostBy({ child, failure, code, signal });
    links?.nodes.over(tasks, code !== 0 || running.size > 0 ? lost : undefined);
    for (const task of running) {
      const cause = lifecycle.isTerminated(task) ? "terminated" : "process";
      const error = cause === "process" ? lost : undefined;
      lifecycle.end({ task, code: codeBy(code, signal), cause, error, ...signalIn(signal), errorCode: codeIn(error) });
    }
    running.clear();
  }

  function send(order: ProcessOrder): void {
    if (child?.connected) child.send(order);
  }

  /** Ends one task, or all. */
  function terminate(task: number, isAll: boolean): void {
    send({ terminate: task });
    // A stopped process reads no order. The process is killed if none of its tasks shall go on.
    if (![...running].every((other) => lifecycle.isTerminated(other))) return;
    // Agents would wait for each other's nodes. A detached process would outlive a launcher that exits meanwhile.
    if (isAll && (links !== undefined || setup.isDetached)) child?.kill("SIGKILL");
    stopKill ??= after(END_MS, () => child?.kill("SIGKILL"));
  }

  for (const task of running) lifecycle.add(task, { terminate: (isAll) => terminate(task, isAll) });
  try {
    child = spawnProcess(orders, setup, [...(links?.nodes.ended ?? [])]);
  } catch (error) {
    // For instance, no descriptors are left for the channel.
    failure = error as Error;
    over();
    return undefined;
  }
  child.on("error", (error) => {
    // Later errors are of orders to a process that is about to end.
    if (child?.pid !== undefined) return;
    failure = error;
    over();
  });
  if (links !== undefined) {
    isDropped = links.nodes.add(send);
    for (const task of tasks) links.channels.set(task, send);
  }
  child.on("message", (message) => {
    // A module that the user preloads may send anything.
    const report = Object(message) as ProcessReport;
    if ("ask" in report) links?.nodes.take(report, send);
    else hear(report, lifecycle, running, links);
  });
  let isGone = false;
  const gone = (): void => {
    if (isGone && !child?.connected) over();
  };
  child.on("exit", (...how) => {
    [code, signal] = how;
    isGone = true;
    gone();
  });
  child.on("disconnect", gone);
  return child.pid;
}

/** Starts Node with a channel, by which the other data comes. @param descriptor of the memory that the process shares */
function startProgram(descriptor: number | undefined, isDetached: boolean): ChildProcess {
  const { spawn } = nodeModule("child_process") as typeof import("node:child_process");
  const { args, remove } = programArguments();
  let child: ChildProcess | undefined;
  try {
    child = spawn(process.execPath, [...nodeOptions(), ...args], {
      argv0: process.argv0,
      // Then the end of the terminal does not reach the process.
      detached: isDetached,
      // With node --watch, Node would report each loaded module to its parent.
      env: { ...process.env, WATCH_REPORT_DEPENDENCIES: undefined },
      // The memory is inherited: it has no name by which another process could open it.
      // Standard input is read only for a task that asks for it (input.ts).
      stdio: ["inherit", "inherit", "inherit", "ipc", ...(descriptor === undefined ? [] : [descriptor])],
      serialization: "advanced",
    });
    return child;
  } finally {
    if (child?.connected) child.once("exit", remove);
    else remove();
  }
}

function spawnProcess(
  orders: MonitorOrders,
  { source, memory, link, job, labels, isDetached }: ProcessesSetup,
  ended: readonly number[],
): ChildProcess {
  const child = startProgram(memory?.descriptor, isDetached);
  if (!child.connected) return child;
  // Memory and kernels that threads share can't be sent to another process: that process maps the memory, and compiles the
  // kernels.
  const bootstraps = orders.bootstraps.map((one) => ({
    ...one,
    memory: undefined,
    module: undefined,
    futex: undefined,
  }));
  const theirs: ProcessSetup = {
    source,
    orders: { ...orders, bootstraps },
    memory: memory && { ...memory, descriptor: MEMORY_DESCRIPTOR },
    link: link && { ...link, caller: undefined, later: { ...link.later, ended, gone: ended } },
    job,
    labels,
    launcher: ownIdentity(),
    isDetached,
  };
  child.send(theirs);
  return child;
}
