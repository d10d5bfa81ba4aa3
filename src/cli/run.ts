// `pamir run`: runs a program as the tasks of a job, as threads or as processes of this machine.
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { type Job, launch, PamiError, type TaskExit } from "pamir";
import { UsageError } from "./usage.js";

const HELP = `pamir run: runs a program as the tasks of a job; in each task, attach() gives its client

Usage: pamir run [OPTION]… APP [ARGUMENT]…

  -n, --tasks N         tasks (default: one for each hardware thread, at least 2)
      --processes P     runs them in P processes that share memory (Linux, with the package koffi), rather than in threads
      --kernel NAME     wasm or ts (default: wasm where it is allowed)
      --engine thread   one more thread moves long transfers
      --contexts C      contexts that a task may create (default 4)
      --heap-bytes B    memory for lanes and regions (default 268435456)
      --on-error WHAT   report (default): the others go on when a task fails; abort: all end
      --timeout S       ends the job after S seconds, with exit code 124
      --cwd FOLDER      folder in which the tasks run
  -x NAME=VALUE         a variable for the tasks' environment; may be repeated
      --no-labels       lines of output do not begin with the task's number
      --trace FILE      writes the last events of all tasks, for Perfetto and chrome://tracing
      --top             lets \`pamir top\` see the job

Exit codes: 0 all tasks ended well; the code of the first task that failed; 2 wrong input; 124 the time was up;
130 and 143 after SIGINT and SIGTERM. A second signal ends everything at once.
`;

const EXIT_TIMEOUT = 124;
const EXIT_SIGNALS = { SIGINT: 130, SIGTERM: 143 } as const;

const OPTIONS = {
  help: { type: "boolean", short: "h" },
  tasks: { type: "string", short: "n" },
  processes: { type: "string" },
  kernel: { type: "string" },
  engine: { type: "string" },
  contexts: { type: "string" },
  "heap-bytes": { type: "string" },
  "on-error": { type: "string" },
  timeout: { type: "string" },
  cwd: { type: "string" },
  variable: { type: "string", short: "x", multiple: true },
  "no-labels": { type: "boolean" },
  trace: { type: "string" },
  top: { type: "boolean" },
} as const;

type Values = ReturnType<typeof parseArgs<{ options: typeof OPTIONS }>>["values"];

/** Splits the command line before the program: what follows it is for the program. */
function split(args: string[]): { own: string[]; app: string | undefined; rest: string[] } {
  const { tokens } = parseArgs({ args, options: OPTIONS, strict: false, allowPositionals: true, tokens: true });
  const at = tokens.find(({ kind }) => kind === "positional")?.index;
  if (at === undefined) return { own: args, app: undefined, rest: [] };
  return { own: args.slice(0, at), app: args[at], rest: args.slice(at + 1) };
}

function count(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const value = Number(text);
  if (!/^\d+$/.test(text) || value < 1)
    throw new UsageError(`${name} is ${JSON.stringify(text)}, not an integer from 1`);
  return value;
}

function seconds(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const value = Number(text);
  if (text.trim() === "" || !(value > 0 && value <= 2_000_000)) {
    throw new UsageError(`--timeout is ${JSON.stringify(text)}, not a number of seconds up to 2,000,000`);
  }
  return value;
}

function oneOf<Choice extends string>(name: string, text: string | undefined, choices: readonly Choice[]) {
  if (text === undefined || choices.includes(text as Choice)) return text as Choice | undefined;
  throw new UsageError(
    `${name} is ${JSON.stringify(text)}, not ${choices.map((one) => JSON.stringify(one)).join(" or ")}`,
  );
}

/** The environment of the tasks. */
function variables(given: readonly string[] = []): Record<string, string | undefined> {
  const env = { ...process.env };
  for (const text of given) {
    const [, name, value] = /^([^=]+)=(.*)$/s.exec(text) ?? [];
    if (name !== undefined) env[name] = value;
    // Without a value, the variable of this environment is passed on, as all are here.
    else if (text === "" || !(text in process.env)) throw new UsageError(`-x ${text}: the variable is not set`);
  }
  return env;
}

function changeFolder(folder: string): void {
  try {
    process.chdir(folder);
  } catch (error) {
    throw new UsageError(`--cwd ${folder}: ${(error as Error).message}`);
  }
}

/** Runs a program; returns the exit code. */
export async function run(args: string[]): Promise<number> {
  const { own, app, rest } = split(args);
  const { values } = parseArgs({ args: own, options: OPTIONS });
  if (values.help) {
    process.stdout.write(HELP);
    return 0;
  }
  if (app === undefined) throw new UsageError("a program is missing: pamir run [OPTION]… APP; see pamir run --help");
  const time = seconds(values.timeout);
  const entry = pathToFileURL(resolve(app));
  let first: TaskExit | undefined;
  const job = await start(entry, rest, values, (exit) => {
    if (exit.cause !== "terminated" && (exit.cause !== "exit" || exit.code !== 0)) first ??= exit;
  });
  let code: number | undefined;
  const end = (given: number): void => {
    // The second time: at once. Processes of tasks are killed with this one.
    if (code !== undefined) process.exit(code);
    code = given;
    void job.terminate();
  };
  for (const [signal, given] of Object.entries(EXIT_SIGNALS)) process.on(signal, () => end(given));
  const timer = setTimeout(
    () => {
      process.stderr.write(`pamir run: the job has not ended after ${time} s, and is ended\n`);
      end(EXIT_TIMEOUT);
    },
    (time ?? 0) * 1000,
  );
  if (time === undefined) clearTimeout(timer);
  await job.exited;
  clearTimeout(timer);
  return code ?? (first === undefined ? 0 : first.code || 1);
}

async function start(entry: URL, argv: string[], values: Values, onExit: (exit: TaskExit) => void): Promise<Job> {
  const options = {
    tasks: count("--tasks", values.tasks),
    processes: count("--processes", values.processes),
    contexts: count("--contexts", values.contexts),
    heapBytes: count("--heap-bytes", values["heap-bytes"]),
    kernel: oneOf("--kernel", values.kernel, ["wasm", "ts"]),
    engine: oneOf("--engine", values.engine, ["thread", "inline"]),
    onError: oneOf("--on-error", values["on-error"], ["report", "abort"]) ?? "report",
    top: values.top,
    trace: values.trace === undefined ? undefined : true,
    labels: !values["no-labels"],
    workerOptions: { argv, env: variables(values.variable) },
    onExit,
  } as const;
  if (values.cwd !== undefined) changeFolder(values.cwd);
  if (values.trace !== undefined) process.env.PAMIR_TRACE = values.trace;
  try {
    return await launch(entry, options);
  } catch (error) {
    // An option, the program, or something that this machine lacks.
    if (error instanceof PamiError) throw new UsageError(`${error.message} (${error.code})`);
    throw error;
  }
}
