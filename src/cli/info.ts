// `pamir info`.
import { parseArgs } from "node:util";
import { info } from "pamir";
import { printable, printableJson } from "../support/printable.js";
import {
  type FoundLauncher,
  type FoundPackage,
  launcherHere,
  optionalPackages,
  type ProcessesHere,
  processesHere,
  tryProcesses,
} from "./run/launcher.js";
import { FolderError, look } from "./top/look.js";
import { jobWays } from "./top/ways.js";
import { say } from "./usage.js";

export const infoHelp = `pamir info: what this pamir is, what this host gives it, and which launcher started this process

It runs no code of optional packages: it looks for them, and reads their versions.

Usage: pamir info [--try] [--json]
       pamir info --job NAME [--json]

  --try                 starts a process, by koffi, to find out whether processes share memory
  --job NAME            instead: by what the nodes of that job send to each other, those of this machine, since when, and
                        how many packets. The job opts in as for pamir top
  --json                one JSON object; with --job, an array with one for each node
  --help                this text
`;

const MODES = {
  shared: "on threads that share memory",
  messages: "on threads that talk by messages",
  alone: "one, on the thread that launches it",
};

/** Runs the command; its exit code. */
export async function printInfo(args: string[]): Promise<number> {
  const flag = { type: "boolean" } as const;
  const options = { json: flag, try: flag, job: { type: "string" }, help: { ...flag, short: "h" } } as const;
  const { values } = parseArgs({ args, options });
  if (values.help) {
    process.stdout.write(infoHelp);
    return 0;
  }
  if (values.job !== undefined) return await printJob(values.job, values.json === true);
  const packages = optionalPackages();
  const processes = values.try ? await tryProcesses() : processesHere(packages.koffi);
  const all = { ...info(), node: process.version, launcher: launcherHere(), processes, packages };
  if (values.json) {
    process.stdout.write(`${printableJson(all)}\n`);
    return 0;
  }
  const { limits, sizes } = all;
  const yes = (value: boolean) => (value ? "yes" : "no");
  const number = (value: number) => value.toLocaleString("en-US");
  const sections: [title: string, rows: [string, string][]][] = [
    [
      `pamir ${all.version} (layout ${all.layout.toString(16).padStart(8, "0")})`,
      [
        ["Node", all.node],
        ["processor", `${all.processor}, ${all.hardwareThreads} hardware threads`],
        ["kernels by default", all.kernel === "wasm" ? "WebAssembly" : "TypeScript (this host forbids WebAssembly)"],
        ["tasks", MODES[all.mode]],
        ["processes", processesText(processes)],
        ["launcher", launcherText(all.launcher)],
        ["shared memory", yes(all.sharedMemory)],
        ["isolated", yes(all.isolated)],
        ["SIMD", yes(all.simd)],
        ["worker threads", yes(all.workerThreads)],
        ["Atomics.waitAsync", yes(all.waitAsync)],
        ...Object.entries(packages).map(([name, found]): [string, string] => [name, packageText(found)]),
        ["sockets for top", all.sockets ?? "none"],
      ],
    ],
    ["limits", Object.entries(limits).map(([name, value]) => [inWords(name), number(value)])],
    ["sizes in bytes", Object.entries(sizes).map(([name, value]) => [inWords(name), number(value)])],
  ];
  for (const [title, rows] of sections) {
    const lines = rows.map(([name, value]) => `  ${name.padEnd(24)} ${printable(value)}\n`);
    process.stdout.write(`${title}\n${lines.join("")}`);
  }
  return 0;
}

/** How the nodes of a job on this machine send to each other; the exit code. */
async function printJob(name: string, isJson: boolean): Promise<number> {
  try {
    const { seen } = await look(undefined);
    const nodes = seen.filter(({ place }) => place?.name === name);
    const all = nodes.map(({ pid, place, ways }) => ({ pid, node: place?.node, ways }));
    if (isJson) process.stdout.write(`${printableJson(all)}\n`);
    else if (nodes.length > 0) process.stdout.write(jobWays(nodes));
    if (nodes.length > 0) return 0;
    say(`pamir: no node of a job named ${JSON.stringify(name)} answers here: it opts in by --top, or PAMIR_TOP=1`);
  } catch (error) {
    if (!(error instanceof FolderError)) throw error;
    say(`pamir: ${error.message}`);
  }
  return 1;
}

function processesText({ shareMemory, why, tried }: ProcessesHere): string {
  if (!shareMemory) return `share no memory: ${why}`;
  return tried ? "share memory" : "share memory, by what is installed (--try starts one to find out)";
}

function packageText(found: FoundPackage | null): string {
  return found === null ? "not installed" : `${found.version ?? "without a version"}, ${found.path}`;
}

function launcherText({ name, rank, size, meets, error }: FoundLauncher): string {
  if (error !== undefined) return `its variables make no sense: ${error}`;
  if (name === undefined) return "none has started this process";
  const of = size === undefined ? "" : ` of ${size}`;
  return `${name}: rank ${rank ?? "not known yet"}${of}${meets === undefined ? "" : `, by ${meets}`}`;
}

/** "sendImmediateBytes" as "send immediate bytes". */
function inWords(name: string): string {
  return name.replace(/[A-Z]/g, (frame) => ` ${frame.toLowerCase()}`);
}
