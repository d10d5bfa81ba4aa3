// `pamir run`: runs a program as the tasks of a job, as threads or as processes of this machine or of several.
import { spawnSync } from "node:child_process";
import { closeSync, existsSync, openSync, readdirSync, readFileSync, readSync, writeSync } from "node:fs";
import { resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { info, type Job, launch, type TaskExit } from "pamir";
import { serveInput } from "../../start/output/input.js";
import { OUTPUT_MS } from "../../start/output/labels.js";
import { EXIT_PIPE, GRACE_MS } from "../../start/process/exit-code.js";
import { codeIn, fewDescriptorsText } from "../../start/process/start-limits.js";
import { printable } from "../../support/printable.js";
import { after, pause } from "../../support/timers.js";
import { say, UsageError } from "../usage.js";
import { Descendants } from "./descendants.js";
import { EXIT_TIMEOUT, type Running } from "./job.js";
import {
  asUsageError,
  changeFolder,
  count,
  fileToWrite,
  HELP,
  OF_HOSTS,
  OPTIONS,
  oneOf,
  PRELOAD,
  programOf,
  refuse,
  seconds,
  split,
  type Values,
  variables,
} from "./options.js";
import { Restarts } from "./restarts.js";
import type { AskSignal } from "./task.js";

/** The task that runs a program of WebAssembly: tasks/program.ts, beside the file of this command. */
const WASM_TASK = fileURLToPath(new URL("./tasks/program.js", import.meta.url));
/** The first argument of that task for --isolate, else "". */
const ISOLATED = "isolated";
const WASM_MAGIC = Buffer.from([0, 0x61, 0x73, 0x6d]);
/** Name of the channel of standard input: it reaches the threads of one process. */
const INPUT = "pamir run: standard input";
const EXIT_SIGNALS = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const;
const USER_SIGNALS = ["SIGUSR1", "SIGUSR2"] as const;
/** Milliseconds for an order to detached processes: the thread that carries it out may wait for a busy processor. */
const ORDER_MS = 10_000;

/** Runs a program; returns the exit code. */
export async function run(args: string[]): Promise<number> {
  const { own, app, rest } = split(args);
  const { values } = parseArgs({ args: own, options: OPTIONS });
  if (values.help) {
    process.stdout.write(HELP);
    return 0;
  }
  if (app === undefined) throw new UsageError("a program is missing: pamir run [OPTION]… APP; see pamir run --help");
  checkDescriptors(values.detach === true);
  const time = seconds("--timeout", values.timeout);
  // In a folder that is gone, this throws: tasks would.
  if (values.cwd === undefined) process.cwd();
  const way = await wayOf(values);
  const path = resolve(app); // before --cwd changes the folder
  const isWasm = isWasmFile(path);
  const { isolate } = values;
  const ofWasm = isWasm ? await checkWasm(path, values) : {};
  if (!isWasm && isolate) throw new UsageError(`--isolate is for programs of WebAssembly, and ${app} is none`);
  const early = holdSignals();
  let running: Running;
  try {
    running = isWasm
      ? await way(WASM_TASK, [isolate ? ISOLATED : "", path, ...rest], { ...ofWasm, ...values })
      : await way(app, rest, values);
  } catch (error) {
    early();
    throw error;
  }
  const code = await supervise(running, time, early);
  // Only now: to look at the program before would cost its start some 40 ms.
  const why = code === 1 && !isWasm ? whyNoModule(path) : undefined;
  if (why !== undefined) throw new UsageError(`the task module ${path} is no program: ${why} (PAMIR_ENTRY)`);
  return code;
}

/**
 * From now on, signals wait that come while the tasks are being started: by one of them this process would end, and leave those
 * that it has started so far. @returns what lets them come
 */
function holdSignals(): () => void {
  const came: AskSignal[] = [];
  let stop = (): void => {};
  const hold = (signal: NodeJS.Signals): void => {
    // Whatever the start waits for, its end is not awaited for ever.
    if (came.length === 0) stop = after(ORDER_MS, () => endBySignal(EXIT_SIGNALS[signal as AskSignal]), false);
    came.push(signal as AskSignal);
  };
  for (const signal of Object.keys(EXIT_SIGNALS) as AskSignal[]) process.on(signal, hold);
  return () => {
    stop();
    for (const signal of Object.keys(EXIT_SIGNALS) as AskSignal[]) process.off(signal, hold);
    for (const signal of came.splice(0)) process.kill(process.pid, signal);
  };
}

/** @throws UsageError this process may have so few descriptors that no job starts */
function checkDescriptors(isDetached: boolean): void {
  let why: string | undefined;
  try {
    const open = readdirSync("/proc/self/fd").length;
    why = fewDescriptorsText(readFileSync("/proc/self/limits", "latin1"), open, isDetached);
  } catch {
    // Another system; or none is left, which the next file says.
  }
  if (why !== undefined) throw new UsageError(why);
}

/** Whether a file is a program of WebAssembly, whatever its name. */
function isWasmFile(path: string): boolean {
  try {
    const file = openSync(path, "r");
    const begin = Buffer.alloc(4);
    readSync(file, begin, 0, 4, 0);
    closeSync(file);
    return begin.equals(WASM_MAGIC);
  } catch {
    // What it lacks is said where it is loaded.
    return false;
  }
}

/** @returns options of its job, where the command line has none @throws UsageError no task could run it */
async function checkWasm(path: string, { isolate, tasks }: Values): Promise<Values> {
  const { checkProgram, programLimits } = await import("pamir/c");
  try {
    const binary = readFileSync(path);
    checkProgram(binary, isolate);
    const { contexts, heapBytes } = programLimits(binary, tasksOf(tasks));
    // A program of MPI has nothing left to do once a rank has failed.
    return { "on-error": "abort", "heap-bytes": `${heapBytes}`, ...(contexts && { contexts: `${contexts}` }) };
  } catch (error) {
    throw asUsageError(error);
  }
}

/** Why Node can't read a program; undefined: it can, or a loader changes what it reads. */
function whyNoModule(path: string): string | undefined {
  if (process.execArgv.length > 0 || process.env.NODE_OPTIONS !== undefined || !existsSync(path)) return undefined;
  const { status, stderr } = spawnSync(process.execPath, ["--check", path], { encoding: "utf8" });
  const why = /^(?:SyntaxError|TypeError \[ERR_UNKNOWN_FILE_EXTENSION\]): .*/m.exec(stderr ?? "")?.[0];
  return status === 1 ? why : undefined;
}

/** Ends this process as a signal does that has no handler: exit() would wait for threads that block outside of JavaScript. */
function endBySignal(code: number): void {
  const signal = (Object.keys(EXIT_SIGNALS) as AskSignal[]).find((name) => EXIT_SIGNALS[name] === code) ?? "SIGTERM";
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
}

type Way = (app: string, args: string[], values: Values) => Running | Promise<Running>;

/** Only the code of the way that is chosen is loaded. */
async function wayOf(values: Values): Promise<Way> {
  // Other users of a machine see its processes' options, but not their variables.
  const nats = values.nats ?? (values.job === undefined ? undefined : process.env.PAMIR_NATS);
  if (nats !== undefined) {
    refuse(values, ["hosts", "hostfile", ...OF_HOSTS], "--nats: each machine starts pamir run itself");
    const { runNats } = await import("./nats.js");
    return (app, args) => runNats(app, args, { ...values, nats });
  }
  refuse(values, ["job", "later"], "jobs without a NATS server: --nats and PAMIR_NATS are missing");
  if (values.hosts !== undefined || values.hostfile !== undefined) return (await import("./hosts/hosts.js")).runHosts;
  refuse(values, OF_HOSTS, "threads and processes of this machine alone: --hosts or --hostfile is missing");
  if (values.nodes !== undefined) return (await import("./nodes.js")).runNodes;
  refuse(values, ["start-timeout", "link"], "threads and --processes: --nodes, --hosts or --hostfile is missing");
  return runThreads;
}

/** Ends a job at signals, and when its time is up. @param early lets those come that came before @returns the exit code */
async function supervise(running: Running, time: number | undefined, early: () => void): Promise<number> {
  let code: number | undefined;
  const endNow = (given: number, how = given): void => {
    code = given;
    void Promise.resolve(running.endNow(how)).then(() => process.exit(given));
  };
  const end = (given: number, signal?: AskSignal): void => {
    // The second time: at once. Processes of tasks are killed with this one.
    if (code !== undefined) {
      endNow(code);
      return;
    }
    code = given;
    running.end(signal);
    void running.ended.finally(() => after(OUTPUT_MS, () => process.exit(given), false)).catch(() => {});
  };
  for (const signal of Object.keys(EXIT_SIGNALS) as AskSignal[]) {
    // Detached tasks outlive the terminal.
    if (signal !== "SIGHUP" || !running.isDetached) process.on(signal, () => end(EXIT_SIGNALS[signal], signal));
  }
  early();
  const { pass } = running;
  if (pass !== undefined) for (const signal of USER_SIGNALS) process.on(signal, () => pass(signal));
  for (const stream of [process.stdout, process.stderr]) {
    stream.once("error", ({ code, message }: NodeJS.ErrnoException) => {
      if (code !== "EPIPE" && stream === process.stdout)
        writeSync(process.stderr.fd, `pamir run: the output can't be written: ${printable(message)}\n`);
      stream.on("error", () => {});
      endNow(code === "EPIPE" ? EXIT_PIPE : 1, EXIT_PIPE);
    });
  }
  const stop = after((time ?? Number.POSITIVE_INFINITY) * 1000, () => {
    say(`pamir run: the job has not ended after ${time} s, and is ended`);
    end(EXIT_TIMEOUT);
  });
  try {
    const first = await running.ended;
    return code ?? first;
  } finally {
    stop();
  }
}

/** Runs tasks by launch(): as threads, or in processes of this machine that share memory. */
async function runThreads(app: string, argv: string[], values: Values): Promise<Running> {
  let first: TaskExit | undefined;
  let isEnding = false;
  let job: Job | undefined;
  let end: Running["end"] = () => {};
  const tasks = tasksOf(values.tasks);
  const contexts = count("--contexts", values.contexts);
  const restarts = await restartsOf(values, tasks, contexts);
  if (values.detach && values.processes === undefined) throw new UsageError("--detach takes --processes");
  const options = {
    tasks,
    maxTasks: tasks + restarts.spare,
    processes: count("--processes", values.processes),
    contexts,
    heapBytes: count("--heap-bytes", values["heap-bytes"]),
    kernel: oneOf("--kernel", values.kernel, ["wasm", "ts"]),
    engine: oneOf("--engine", values.engine, ["thread", "inline"]),
    onError: oneOf("--on-error", values["on-error"], ["report", "abort"]) ?? "report",
    top: values.top,
    trace: values.trace === undefined ? undefined : true,
    launcher: { mainThreads: true, detached: values.detach === true, input: INPUT, preload: PRELOAD },
    labels: !values["no-labels"] && !values.detach,
    workerOptions: { argv, env: { ...process.env, ...variables(values.variable) } },
    onExit(exit: TaskExit) {
      if (exit.cause === "terminated" || (exit.cause === "exit" && exit.code === 0)) return;
      // A detached process writes itself.
      if (values.detach && exit.code === EXIT_PIPE) end();
      const current = isEnding ? undefined : job;
      if (current === undefined || !restarts.replace(exit.task, (rank) => current.spawn({ rank }))) first ??= exit;
    },
  } as const;
  const entry = pathToFileURL(programOf(app));
  if (values.trace !== undefined) process.env.PAMIR_TRACE = fileToWrite("--trace", values.trace);
  if (values.cwd !== undefined) changeFolder(values.cwd);
  if (values.processes === undefined) serveInput(INPUT);
  try {
    const launched = await launch(entry, options);
    job = launched;
    const ended = launched.exited.then((exits) => codeOf(first, exits));
    const ends = endsOf(launched, ended, options);
    end = (signal) => {
      isEnding = true;
      ends.end(signal);
    };
    return {
      ...ends,
      end,
      isDetached: values.detach === true,
      endNow(code) {
        ends.endNow?.();
        // These go on without this process, so the monitor's order to kill them must be out.
        if (values.detach) return Promise.race([launched.terminate(), pause(ORDER_MS)]);
        if (values.processes === undefined && code !== EXIT_PIPE) endBySignal(code);
      },
    };
  } catch (error) {
    // An option, the program, or something that this machine lacks.
    throw asUsageError(error);
  }
}

/** Number of tasks where nothing but --tasks says it. */
function tasksOf(given: string | undefined): number {
  return count("--tasks", given) ?? Math.max(2, info().hardwareThreads);
}

async function restartsOf(values: Values, tasks: number, contexts: number | undefined): Promise<Restarts> {
  if (values.restart === undefined) return new Restarts(values, tasks);
  // Loaded on demand: few jobs need it.
  const { most, why } = (await import("../../start/limits.js")).roomForTasks(contexts);
  return new Restarts(values, tasks, most, why);
}

/** How a job ends, apart from what is the same for all. */
type Ends = Pick<Running, "ended" | "end" | "pass"> & { readonly endNow?: () => void };

/** The exit code of a job. @param first the first failure of which onExit() has told */
function codeOf(first: TaskExit | undefined, exits: readonly TaskExit[]): number {
  // Once the monitor has ended, spawn() throws in onExit(): no task is started again.
  const failed = first ?? exits.find(({ cause }) => cause === "monitor");
  if (failed === undefined) return 0;
  // The system takes the lowest 8 bits.
  return codeIn(failed.error) ? 2 : failed.code & 255 || 1;
}

function endsOf(
  job: Job,
  ended: Promise<number>,
  { tasks, processes }: { readonly tasks: number; readonly processes: number | undefined },
): Ends {
  // Without shared memory, the tasks are threads of their processes.
  const areProcesses = processes === tasks && info().processes !== "link";
  return areProcesses
    ? endsOfProcesses(job as SignalledJob, ended)
    : endsOfThreads(job, ended, processes === undefined);
}

/** A job with what the package's types do not show. */
type SignalledJob = Job & { signal(name: string, isEnd: boolean): void };

/** Each task is a process: it handles the signal itself, and is killed after GRACE_MS. */
function endsOfProcesses(job: SignalledJob, ended: Promise<number>): Ends {
  return {
    ended,
    end(signal = "SIGTERM") {
      job.signal(signal, true);
      const stop = after(GRACE_MS, () => void job.terminate());
      void ended.then(stop);
    },
    pass: (signal) => job.signal(signal, false),
  };
}

/**
 * Threads get no signals, and end at once. The processes that they have started get the signal, and GRACE_MS.
 * @param isHere whether the tasks are threads of this process; else they are threads of its children
 */
function endsOfThreads(job: Job, ended: Promise<number>, isHere: boolean): Ends {
  const started = new Descendants(isHere);
  return {
    ended: ended.then(async (code) => {
      await started.end(GRACE_MS);
      started.kill("SIGKILL");
      return code;
    }),
    end(signal = "SIGTERM") {
      started.find();
      started.kill(signal);
      void job.terminate();
    },
    endNow() {
      started.find();
      started.kill("SIGKILL");
    },
  };
}
