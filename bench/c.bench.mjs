// @ts-check
// npm run bench -- c: a program of MPI in C, by `pamir cc` and by Open MPI, as ratios with goals: messages, streams, operations of two
// ranks, two programs of the kind of NPB (cg, is) in their own time and from command to end, and the start of four. By turns, the least of all rounds: what else runs on the machine only adds. By itself:
// node bench/c.bench.mjs [--quick]
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const cli = join(root, "dist/cli.js");
const source = (/** @type {string} */ name) => join(root, `bench/peers/${name}.c`);
const wrong = process.argv.slice(2).find((arg) => arg !== "--quick");
if (wrong !== undefined) {
  console.error(`bench c: there is no option ${JSON.stringify(wrong)}: --quick only shows that it works`);
  process.exit(2);
}
const quick = process.argv.includes("--quick");
const TURNS = quick ? 1 : 5;
const ROUNDS = quick ? 1 : 8;
const STARTS = quick ? 1 : 7;
/** Programs of bench/peers/mpi_kernels.c, with iterations for about a second. */
const KERNELS = /** @type {const} */ ([
  ["cg", quick ? 1 : 50],
  ["is", quick ? 1 : 50],
]);
const KERNEL_TURNS = quick ? 1 : 3;

/** Each test; a rate is Open MPI's time divided by pamir's, a time is the other way round. */
const GOALS = [
  { test: "one_way_8", what: "8 B, one way", goal: "≤ 1" },
  { test: "one_way_1024", what: "1 KiB, one way", goal: "" },
  { test: "one_way_65536", what: "64 KiB, one way", goal: "≤ 0.7" },
  { test: "one_way_1048576", what: "1 MiB, one way", goal: "≤ 0.7" },
  { test: "window_8", what: "messages of 8 B a second, 16 under way", goal: "≥ 1" },
  { test: "stream_8", what: "stream of 8 B, messages a second", goal: "≥ 1.8" },
  { test: "stream_65536", what: "stream of 64 KiB, bytes a second", goal: "≥ 1.8" },
  { test: "stream_1048576", what: "stream of 1 MiB, bytes a second", goal: "≥ 1.8" },
  { test: "allreduce_8", what: "allreduce of 8 B", goal: "≤ 1.1" },
  { test: "barrier", what: "barrier", goal: "≤ 0.7" },
  { test: "cg", what: "conjugate gradients, its own time", goal: "≤ 1.3" },
  { test: "cg_total", what: "conjugate gradients, command to end", goal: "≤ 1.3" },
  { test: "is", what: "integer sort, its own time", goal: "≤ 1.3" },
  { test: "is_total", what: "integer sort, command to end", goal: "≤ 1.3" },
  { test: "start", what: "four ranks, from the command until MPI_Init() has returned", goal: "≤ 1.5" },
];

/** @typedef {{ name: string, command: readonly string[], program: string, kernels: string, env: NodeJS.ProcessEnv }} System */

/** Compiles. @param {readonly string[]} command @returns {string} why not; empty if done */
function compile(command, /** @type {Pick<System, "program" | "kernels">} */ { program, kernels }) {
  const [tool = "", ...args] = command;
  for (const [name, path] of [
    ["mpi_times", program],
    ["mpi_kernels", kernels],
  ]) {
    const all = [...args, "-O2", source(/** @type {string} */ (name)), "-o", /** @type {string} */ (path), "-lm"];
    const { status, stderr, error } = spawnSync(tool, all, { encoding: "utf8" });
    if (status !== 0) return (error?.message ?? stderr).trim().split("\n")[0] || `${tool} exits with ${status}`;
  }
  return "";
}

/** @param {System} system @param {number} ranks @param {number} rounds */
function argsOf({ command, program }, ranks, rounds) {
  return [...command.slice(1), "-n", String(ranks), program, String(rounds)];
}

/** Runs all tests. @param {System} system @returns {Map<string, number>} ns of each test */
function measure(system) {
  const args = argsOf(system, 2, ROUNDS);
  const { status, stdout, stderr } = spawnSync(/** @type {string} */ (system.command[0]), args, {
    encoding: "utf8",
    env: system.env,
    timeout: 300_000,
  });
  if (status !== 0) throw new Error(`${system.name} exits with ${status}: ${stderr}`);
  return new Map(
    [...stdout.matchAll(/^(\w+) ([\d.]+)$/gm)].map(([, test, ns]) => [/** @type {string} */ (test), Number(ns)]),
  );
}

/**
 * Runs a program of the kind of NPB in two ranks.
 * @param {System} system @param {string} name @param {number} iterations
 * @returns {{ own: number, total: number, result: string }} ns
 */
function measureKernel({ name: who, command, kernels, env }, name, iterations) {
  const args = [...command.slice(1), "-n", "2", kernels, name, String(iterations)];
  const start = performance.now();
  const { status, stdout, stderr } = spawnSync(/** @type {string} */ (command[0]), args, { encoding: "utf8", env });
  const total = (performance.now() - start) * 1e6;
  const [, own, result] = /^\w+ (\d+)\nresult (\S+)$/m.exec(stdout) ?? [];
  if (status !== 0 || own === undefined) throw new Error(`${who}, ${name}: exits with ${status}: ${stderr}`);
  return { own: Number(own), total, result: /** @type {string} */ (result) };
}

/** Ns from the start of the command to the line of rank 0. @param {System} system @returns {Promise<number>} */
async function measureStart(system) {
  const start = performance.now();
  const child = spawn(/** @type {string} */ (system.command[0]), argsOf(system, 4, 0), {
    env: system.env,
    stdio: ["ignore", "pipe", "inherit"],
  });
  let time = Number.NaN;
  child.stdout.on("data", () => {
    if (Number.isNaN(time)) time = (performance.now() - start) * 1e6;
  });
  await new Promise((resolve, reject) => child.once("close", resolve).once("error", reject));
  if (child.exitCode !== 0 || Number.isNaN(time)) throw new Error(`${system.name} exits with ${child.exitCode}`);
  return time;
}

const folder = mkdtempSync(join(tmpdir(), "pamir-bench-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
const asRoot = process.getuid?.() === 0 ? ["--allow-run-as-root"] : [];
/** @type {System[]} */
const systems = [
  {
    name: "pamir",
    command: [process.execPath, cli, "run", "--no-labels"],
    program: join(folder, "times.wasm"),
    kernels: join(folder, "kernels.wasm"),
    env: process.env,
  },
  {
    name: "Open MPI",
    command: ["mpirun", ...asRoot, "--oversubscribe"],
    program: join(folder, "times"),
    kernels: join(folder, "kernels"),
    env: process.env,
  },
];
const [pamir, mpi] = /** @type {[System, System]} */ (systems);
const missing = [
  ["pamir cc", compile([process.execPath, cli, "cc"], pamir)],
  ["mpicc", compile(["mpicc"], mpi)],
  ["mpirun of Open MPI", isOpenMpi() ? "" : "it is not installed, or is another MPI"],
].filter(([, reason]) => reason !== "");

/** Other launchers take other options. */
function isOpenMpi() {
  return /Open MPI|OpenRTE/.test(spawnSync("mpirun", ["--version"], { encoding: "utf8" }).stdout ?? "");
}

if (missing.length > 0) for (const [tool, reason] of missing) console.log(`not run: ${tool}: ${reason}`);
else await compare();

async function compare() {
  /** @type {Map<string, [number, number]>} */
  const least = new Map();
  /** @param {string} test @param {number} place @param {number} ns */
  const take = (test, place, ns) => {
    const times = least.get(test) ?? [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
    times[place] = Math.min(/** @type {number} */ (times[place]), ns);
    least.set(test, /** @type {[number, number]} */ (times));
  };
  for (let turn = 0; turn < TURNS; turn++)
    systems.forEach((system, place) => {
      for (const [test, ns] of measure(system)) take(test, place, ns);
    });
  for (const [name, iterations] of KERNELS) {
    const results = new Set();
    for (let turn = 0; turn < KERNEL_TURNS; turn++)
      systems.forEach((system, place) => {
        const { own, total, result } = measureKernel(system, name, iterations);
        take(name, place, own);
        take(`${name}_total`, place, total);
        results.add(result);
      });
    if (results.size !== 1) throw new Error(`${name} comes to ${[...results].join(" and ")}`);
  }
  for (let turn = 0; turn < STARTS; turn++)
    for (const [place, system] of systems.entries()) take("start", place, await measureStart(system));
  const rows = GOALS.map(({ test, what, goal }) => {
    const [ours, theirs] = /** @type {[number, number]} */ (least.get(test));
    const isRate = goal.startsWith("≥");
    const ratio = isRate ? theirs / ours : ours / theirs;
    const bound = Number(goal.slice(2));
    const isMet = isRate ? ratio >= bound : ratio <= bound;
    return {
      what,
      "pamir ns": Math.round(ours),
      "Open MPI ns": Math.round(theirs),
      ratio: ratio.toFixed(2),
      goal,
      met: goal === "" ? "" : isMet ? "yes" : "NO",
    };
  });
  console.table(rows);
}
