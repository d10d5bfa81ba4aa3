#!/usr/bin/env node
// The command line: finds the command, and turns wrong input into one line and exit code 2.
import { descriptorsText } from "../start/process/start-limits.js";
import { say, UsageError } from "./usage.js";

const HELP = `: calls, messages and shared memory between the threads and processes of a JavaScript program

Usage: pamir COMMAND [OPTION]…

Commands:
  tour [FILE]…          shows what pamir is for: a first program, real files, figures beside postMessage()
  run [OPTION]… APP     runs a program as tasks: threads, processes that share memory, or processes of several hosts
  cc, c++ [OPTION]…     compile programs in C and C++ for pamir run, with clang
  stream [FILE]…        streams files from one task to another, checks them, and shows how fast that was
  perf                  measures latency, rate and bandwidth, side by side with MPI, UCX, postMessage and others
  top [PID]             shows what jobs do that opted in, live
  info                  shows versions, limits, what this host supports; or how a job's nodes send

Options:
  --help                this text; \`pamir COMMAND --help\` tells more about a command
  --version             the version

Exit codes: 0 all is well; 1 a failure; 2 wrong input; 3 measurements on too unsteady a machine.
`;

/** What a command is: it gets the arguments behind its name, and returns the exit code. */
type Command = (args: string[]) => number | Promise<number>;

/** Only the code of the command that is called is loaded. */
const COMMANDS: Record<string, () => Promise<Command>> = {
  tour: async () => (await import("./tour.js")).tour,
  run: async () => (await import("./run/run.js")).run,
  cc: async () => (await import("./cc.js")).cc,
  "c++": async () => (await import("./cc.js")).cxx,
  stream: async () => (await import("./stream/stream.js")).stream,
  perf: async () => (await import("../../bench/perf/perf.js")).perf,
  top: async () => (await import("./top.js")).top,
  info: async () => (await import("./info.js")).printInfo,
};
/** Commands that other commands start. */
const HIDDEN: typeof COMMANDS = { node: async () => (await import("./run/hosts/starter.js")).starter };

async function main([command, ...args]: string[]): Promise<number> {
  if (command === "--help" || command === "-h" || command === "help") {
    process.stdout.write(`pamir ${await version()}${HELP}`);
    return 0;
  }
  if (command === "--version" || command === "-v") {
    process.stdout.write(`${await version()}\n`);
    return 0;
  }
  const names = Object.keys(COMMANDS).join(", ");
  if (command === undefined) throw new UsageError(`a command is missing: there are ${names}; see pamir --help`);
  const known = [COMMANDS, HIDDEN].find((commands) => Object.hasOwn(commands, command))?.[command];
  if (known === undefined) {
    const kind = command.startsWith("-") ? "option" : "command";
    throw new UsageError(`${kind} ${JSON.stringify(command)} is unknown: there are ${names}; see pamir --help`);
  }
  return await (await known())(args);
}

/** The package is not loaded before this is asked, or a command: it may be that no file can be opened. */
async function version(): Promise<string> {
  return (await import("pamir")).VERSION;
}

const DASHED = "has no value, but an argument that begins with a dash";

/** One line for what parseArgs or a command finds wrong with the input; anything else is a bug, with its stack. */
function complaint(error: unknown): string | undefined {
  const { code, message, syscall } = error as { code?: string; message?: string; syscall?: string };
  if (error instanceof UsageError) return error.message;
  if (syscall === "uv_cwd") return `the current folder does not exist any more: change to another one (${code})`;
  if (code === "EMFILE") return descriptorsText();
  if (code?.startsWith("ERR_PARSE_ARGS")) return message?.split(/\.\s/)[0]?.replace(/argument is ambiguous$/, DASHED);
  return undefined;
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  const text = complaint(error);
  say(text === undefined ? `${(error as Error).stack}` : `pamir: ${text}`);
  process.exitCode = text === undefined ? 1 : 2;
}
