// The options of `pamir run`, and what each of them may be.
import { accessSync, closeSync, constants, existsSync, openSync, readFileSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { DEFAULT_TIMEOUT_MS } from "../../bootstrap/waits.js";
import { LINKS_TEXT } from "../../link/registry.js";
import { hasColors, type Labels } from "../../start/output/labels.js";
import { UsageError } from "../usage.js";

export const HELP = `pamir run: runs a program as the tasks of a job; in each task, attach() gives its client

Usage: pamir run [OPTION]… APP [ARGUMENT]…

  -n, --tasks N         tasks (default: one for each hardware thread, at least 2)
      --processes P     runs them in P processes that share memory (Linux, with the package koffi), rather than in threads
      --nodes M         runs each task as a process, in M nodes: a node shares memory, nodes talk by a link on loopback. Options
                        of a job that are not here: the variable PAMIR_OPTIONS (docs/machines.md)
      --hosts A:4,B:4   runs 4 of the tasks as processes of host A, 4 of host B; a host shares memory, a link joins hosts
      --hostfile FILE   the same from a file with a line for each host: "A slots=4" or "A:4"; # begins a comment.
                        Not with --processes, --nodes and --detach
      --ppn N           tasks on each host, whatever its slots are
      --rsh COMMAND     reaches a host (default ssh): COMMAND HOST 'PAMIR node'; hosts need no tool but Node and pamir
      --remote-pamir P  PAMIR on the hosts, as their shell takes it (default: the paths of node and pamir here)
      --nats SERVER     started on each of M machines with the same --job and --nodes, in any order: they meet at a NATS server
                        (nats://HOST:4222), and data goes through the server, unless --link says otherwise (docs/cluster.md).
                        Each runs N / M of the tasks. PAMIR_KEY_FILE names the job key. Default with --job: PAMIR_NATS
      --job NAME        the name under which they meet: letters, digits, "_" and "-"
      --later           with --nats: where the job has begun with other launchers, this one's tasks come later, each as a node of
                        its own, if the job takes any (--spare). Without --nodes, -n is their number (default 1), and the
                        launcher waits until the job has begun
      --link NAME       what joins nodes and hosts: ${LINKS_TEXT};
                        or the file of a module with a link of your own, which each host has in the same place
                        (docs/own-link.md)
      --start-timeout S with --nodes and --hosts: seconds in which all hosts answer, and all tasks attach
                        (default: PAMIR_START_TIMEOUT, else 300)
      --kernel NAME     wasm or ts (default: wasm where it is allowed)
      --engine thread   one more thread moves long transfers; not with --nodes and --hosts
      --contexts C      contexts that a task may create (default 4; for a program of MPI in C 1)
      --heap-bytes B    memory for lanes and regions (default 268435456; for a program in C 2 GiB, and 16 MiB for each task, up
                        to 3.5 GiB)
      --on-error WHAT   report (default): the others go on when a task fails; abort: all end
      --timeout S       ends the job after S seconds, with exit code 124
      --restart N       starts a task that fails again, up to N times, with a new number; client.rank stays. With --nodes and
                        --hosts it is a node of its own, and tasks start again only once all have attached
      --spare S         numbers for such tasks (default: N for each task, as far as the job may have so many); with --nats also
                        without --restart, for tasks that come by --later
      --detach          with --processes: the tasks go on if this process dies, and hear of each other's ends; their output
                        has no labels
      --cwd FOLDER      folder in which the tasks run
  -x NAME=VALUE         a variable for the tasks' environment; may be repeated. Other hosts get only these
      --no-labels       lines of output do not begin with the task's number; a process with one task has the terminal itself.
                        With labels, lines of 65,536 characters stay whole; with several tasks in each of several processes
                        those of 4,096 bytes, label included
      --trace FILE      writes the last events of all tasks, for Perfetto and chrome://tracing; not with --nodes and --hosts
      --top             lets \`pamir top\` see the job
      --isolate         a program of WebAssembly gets a memory of its own in each task, of up to 4 GiB

Standard input goes to task 0. In a thread, process.stdin has it from attach() on.

Exit codes: 0 all tasks ended well; the code of the first task that failed, or 128 and the number of the signal that
killed it; 2 wrong input; 124 the time was up, also that in which tasks attach; 129, 130 and 143 after SIGHUP, SIGINT and
SIGTERM; 141 once nobody reads the output. Tasks that are processes handle these signals, and have 5 s; a second signal ends
everything at once. SIGUSR1 and SIGUSR2 are passed on to them.
`;

/** The module that Node loads before a task's program: task-output.ts, beside the file of this command. */
export const PRELOAD = fileURLToPath(new URL("./task-output.cjs", import.meta.url));

export const OPTIONS = {
  help: { type: "boolean", short: "h" },
  tasks: { type: "string", short: "n" },
  processes: { type: "string" },
  nodes: { type: "string" },
  hosts: { type: "string" },
  hostfile: { type: "string" },
  ppn: { type: "string" },
  rsh: { type: "string" },
  "remote-pamir": { type: "string" },
  nats: { type: "string" },
  job: { type: "string" },
  later: { type: "boolean" },
  link: { type: "string" },
  "start-timeout": { type: "string" },
  kernel: { type: "string" },
  engine: { type: "string" },
  contexts: { type: "string" },
  "heap-bytes": { type: "string" },
  "on-error": { type: "string" },
  timeout: { type: "string" },
  restart: { type: "string" },
  spare: { type: "string" },
  detach: { type: "boolean" },
  cwd: { type: "string" },
  variable: { type: "string", short: "x", multiple: true },
  "no-labels": { type: "boolean" },
  trace: { type: "string" },
  top: { type: "boolean" },
  isolate: { type: "boolean" },
} as const;

/** Options of threads, and of processes that launch() starts. */
export const OF_THREADS = ["processes", "engine", "trace", "detach"] as const;
/** Most tasks that a launcher starts on a host: as many as launch() has. */
export const HOST_TASKS_MAX = 1024;
/** Options of --hosts and --hostfile. */
export const OF_HOSTS = ["ppn", "rsh", "remote-pamir"] as const;

export type Values = ReturnType<typeof parseArgs<{ options: typeof OPTIONS }>>["values"];

/** Splits the command line before the program: what follows it is for the program. */
export function split(args: string[]): { own: string[]; app: string | undefined; rest: string[] } {
  const { tokens } = parseArgs({ args, options: OPTIONS, strict: false, allowPositionals: true, tokens: true });
  const at = tokens.find(({ kind }) => kind === "positional")?.index;
  if (at === undefined) return { own: args, app: undefined, rest: [] };
  return { own: args.slice(0, at), app: args[at], rest: args.slice(at + 1) };
}

export function count(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const value = Number(text);
  if (!/^\d+$/.test(text) || value < 1)
    throw new UsageError(`${name} is ${JSON.stringify(text)}, not an integer from 1`);
  return value;
}

export function seconds(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const value = Number(text);
  if (text.trim() === "" || !(value > 0 && value <= 2_000_000)) {
    throw new UsageError(`${name} is ${JSON.stringify(text)}, not a number of seconds up to 2,000,000`);
  }
  return value;
}

/** Milliseconds in which hosts answer, and tasks attach. */
export function startTimeout(values: Values): number {
  const given = values["start-timeout"];
  const time =
    given === undefined
      ? seconds("PAMIR_START_TIMEOUT", process.env.PAMIR_START_TIMEOUT)
      : seconds("--start-timeout", given);
  return time === undefined ? DEFAULT_TIMEOUT_MS : time * 1000;
}

export function oneOf<Choice extends string>(name: string, text: string | undefined, choices: readonly Choice[]) {
  if (text === undefined || choices.includes(text as Choice)) return text as Choice | undefined;
  throw new UsageError(
    `${name} is ${JSON.stringify(text)}, not ${choices.map((one) => JSON.stringify(one)).join(" or ")}`,
  );
}

/**
 * Variables for processes that call attach(): those of -x, that of --top, and PAMIR_OPTIONS with what other options say.
 * @param nodes and tasks of each: `locals` @param inherited the tasks' environment, for what -x does not have
 * @throws UsageError also what attach() would find wrong in PAMIR_OPTIONS
 */
export async function taskVariables(
  values: Values,
  nodes: number,
  locals: number,
  inherited: NodeJS.ProcessEnv = {},
): Promise<Record<string, string>> {
  const found: Record<string, string> = { ...(values.top ? { PAMIR_TOP: "1" } : {}), ...variables(values.variable) };
  // A path or an extension tells a file from the name of a kind.
  const isFile = /[\\/]|\.[cm]?[jt]s$/.test(values.link ?? "");
  if (isFile) found.PAMIR_LINK_MODULE = resolve(values.link as string);
  const given = Object.entries({
    kernel: oneOf("--kernel", values.kernel, ["wasm", "ts"]),
    contexts: count("--contexts", values.contexts),
    heapBytes: count("--heap-bytes", values["heap-bytes"]),
    link: values.link,
  }).filter(([, value]) => value !== undefined);
  const { PAMIR_OPTIONS: text, PAMIR_BIND_HOST: host, PAMIR_LINK_MODULE: module } = { ...inherited, ...found };
  if (given.length === 0 && [text, host, module].every((one) => one === undefined)) return found;
  const { checkBindHost, checkedOptions, kindsOf } = await import("./checks.js");
  try {
    checkBindHost(host);
    const kinds = await kindsOf(module);
    const own = isFile ? { link: kinds.at(-1)?.name } : {};
    const options = checkedOptions(kinds, text ?? "{}", { ...Object.fromEntries(given), ...own }, nodes, locals);
    if (given.length > 0) found.PAMIR_OPTIONS = JSON.stringify(options);
  } catch (error) {
    throw asUsageError(error);
  }
  return found;
}

/** An error of the package as one of wrong input. Not by its class: this program has copies of some of its modules. */
export function asUsageError(error: unknown): unknown {
  const { code, message } = error as Error & { code?: string };
  return code?.startsWith("PAMIR_") ? new UsageError(`${message} (${code})`) : error;
}

/** @throws UsageError if this process may start no others */
export function checkMaySpawn(): void {
  const { permission } = process as { permission?: { has(scope: string): boolean } };
  if (permission?.has("child") !== false) return;
  const why = "node --permission takes --allow-child-process for them";
  throw new UsageError(`this process may start no processes: ${why} (PAMIR_NO_PROCESSES)`);
}

/**
 * Shared memories that a process of a job has at least: its node's, and one for packets of other nodes. The twin needs one only
 * where processes share it. @param nodes of the job, also later ones, and tasks of each: `locals` @param options those of PAMIR_OPTIONS, if any
 */
export function memoriesOf(nodes: number, locals: number, options = ""): number {
  if (/"kernel":\s*"ts"/.test(options)) return locals > 1 ? 1 : 0;
  return nodes > 1 ? 2 : 1;
}

/** Bytes of addresses that a task's process takes beside its memories, and this one does not: 1.9 GB for the threads, with --top. */
const MORE_ADDRESSES = 2 ** 31;

/** Bytes of addresses that V8 reserves for a shared memory. */
const MEMORY_ADDRESSES = 10 * 2 ** 30;

/** Bytes of addresses that this process has; 0 if the system does not say. */
function sizeHere(): number {
  try {
    return 1024 * Number(/^VmSize:\s+(\d+) kB/m.exec(readFileSync("/proc/self/status", "latin1"))?.[1] ?? 0);
  } catch {
    return 0;
  }
}

/** Bytes of addresses that this process may have beside those that it has. */
function addressesLeft(): number {
  try {
    const limit = /^Max address space +(\d+)/m.exec(readFileSync("/proc/self/limits", "latin1"))?.[1];
    const size = sizeHere();
    if (limit !== undefined && size > 0) return Number(limit) - size;
  } catch {
    // This system has no such files, or they may not be read.
  }
  return Number.POSITIVE_INFINITY;
}

/** @throws UsageError if this host refuses a process so many shared memories, or what it takes beside: attach() would fail */
export function checkAddresses(memories: number): void {
  // In KiB, as ulimit has it: those of this process stand for those that each process has from the start.
  const least = Math.ceil((sizeHere() + memories * MEMORY_ADDRESSES + MORE_ADDRESSES) / 1024);
  const refuse = (what: string): never => {
    const advice = `raise it to at least ${least}${memories > 1 ? ", or choose --kernel ts, which needs fewer" : ""}`;
    const why = `V8 reserves 10 GiB of addresses for each shared memory (see ulimit -v): ${advice}`;
    throw new UsageError(`this host refuses ${what}: ${why} (PAMIR_MEMORY)`);
  };
  const made: WebAssembly.Memory[] = [];
  try {
    while (typeof WebAssembly !== "undefined" && made.length < memories)
      made.push(new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true }));
  } catch {
    refuse(`shared memory ${made.length + 1} of the ${memories} that a process has`);
  }
  // V8 ends a process without an error where it gets none for a thread.
  const left = addressesLeft();
  if (left >= MORE_ADDRESSES) return;
  refuse(`the ${MORE_ADDRESSES} bytes of addresses that a process takes beside its memories, and leaves it ${left}`);
}

/** The variables of -x. */
export function variables(given: readonly string[] = []): Record<string, string> {
  const found: Record<string, string> = {};
  for (const text of given) {
    if (/^(=|$)/.test(text))
      throw new UsageError(`-x ${JSON.stringify(text)}: the variable has no name, as in NAME=VALUE`);
    const [, name, value] = /^([^=]+)=(.*)$/s.exec(text) ?? [];
    if (name !== undefined) found[name] = value as string;
    // Without a value, the variable of this environment is passed on.
    else if (process.env[text] !== undefined) found[text] = process.env[text];
    else throw new UsageError(`-x ${text}: the variable is not set`);
  }
  return found;
}

export function changeFolder(folder: string): void {
  try {
    process.chdir(folder);
  } catch (error) {
    throw new UsageError(`--cwd ${folder}: ${(error as Error).message}`);
  }
}

/** A file that is written when the job is over: where that can't be, no task is started. Call it before changeFolder(). */
export function fileToWrite(option: string, file: string): string {
  try {
    closeSync(openSync(file, "a"));
  } catch (error) {
    throw new UsageError(`${option} ${file}: ${(error as Error).message}`);
  }
  return resolve(file);
}

/** How output is labeled. */
export function labelsOf(values: Values): Labels | undefined {
  return values["no-labels"] ? undefined : hasColors();
}

/** The path of a program. @throws UsageError if it is no file that can be read, or one that Node runs as no program */
export function programOf(app: string): string {
  const scheme = /^([a-z][a-z\d+.-]+):/i.exec(app)?.[1]?.toLowerCase();
  if (scheme === "file" || (scheme !== undefined && !existsSync(app))) {
    throw new UsageError(`the task module ${app} is a URL: pamir run takes the path of a file (PAMIR_ENTRY)`);
  }
  const path = resolve(app);
  const why = whyNoProgram(path);
  if (why === undefined) return path;
  throw new UsageError(`the task module ${path} ${why} (PAMIR_ENTRY)`);
}

function whyNoProgram(path: string): string | undefined {
  try {
    const found = statSync(path, { throwIfNoEntry: false });
    if (found === undefined) return "does not exist";
    if (!found.isFile()) return "is no file";
    accessSync(path, constants.R_OK);
  } catch (error) {
    return `can't be read: ${(error as Error).message}`;
  }
  // Node loads them without an error, and does nothing.
  const extension = /\.(?:json|node)$/.exec(path)?.[0];
  return extension && `is no program: a ${extension} file, not a module in JavaScript`;
}

/** @throws UsageError if one of these options is given */
export function refuse(values: Values, names: readonly (keyof Values)[], because: string): void {
  const found = names.find((name) => values[name] !== undefined);
  if (found !== undefined) throw new UsageError(`--${found} does not go with ${because}`);
}
