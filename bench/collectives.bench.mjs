// @ts-check
// Collective algorithms, by bytes: which one is faster from where on. Over messages, the members are tasks of nodes on this
// host, joined by sealed UDP; within one memory, they are threads. With --tune, the limits found go into
// src/collective/tuning.ts, or a copy of it.
//   node bench/collectives.bench.mjs [--quick] [--tune] [--file tuning.ts] [--tasks 4] [--nodes 4]
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { Table } from "console-table-printer";

const { values } = parseArgs({
  options: {
    quick: { type: "boolean", default: false },
    tune: { type: "boolean", default: false },
    file: { type: "string" },
    tasks: { type: "string", default: "4" },
    nodes: { type: "string", default: "4" },
  },
});
const KIB = 1024;
const SIZES = values.quick ? [64, 4 * KIB] : [64, 256, KIB, 4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB];

/** Of what goes into slots. */
const SLOT_SIZES = values.quick ? [8, 88] : [8, 16, 32, 64, 88];

/**
 * Up to a limit, `short` is the default; beyond it, `long`. Rows without a name only tell whether the default is faster.
 * @typedef {{ name?: string, type: string, short: string, long: string, sizes?: number[] }} Limit
 */

/** @type {Limit[]} */
const LIMITS = [
  { name: "BROADCAST_SHORT", type: "broadcast", short: "binomial", long: "scatter-ring" },
  { name: "ALLREDUCE_SHORT", type: "allreduce", short: "recursive-doubling", long: "rabenseifner" },
  { name: "GATHER_SHORT", type: "gather", short: "binomial", long: "linear" },
  { name: "ALLGATHER_SHORT", type: "allgather", short: "bruck", long: "ring" },
  { name: "ALLTOALL_SHORT", type: "alltoall", short: "bruck", long: "pairwise" },
  { name: "REDUCE_SHORT", type: "reduce", short: "binomial", long: "rabenseifner" },
  { name: "REDUCE_SCATTER_SHORT", type: "reduceScatter", short: "halving", long: "pairwise" },
];

/** Within one memory: flat against slices; then direct copies and slices against the messages of long ones. @type {Limit[]} */
const IN_MEMORY = [
  { name: "FLAT_SHORT", type: "allreduce", short: "flat", long: "slices", sizes: SLOT_SIZES },
  { type: "reduce", short: "flat", long: "slices", sizes: SLOT_SIZES },
  { type: "allreduce", short: "slices", long: "rabenseifner" },
  { type: "reduce", short: "slices", long: "rabenseifner" },
  { type: "broadcast", short: "direct", long: "scatter-ring" },
  { type: "gather", short: "direct", long: "linear" },
  { type: "allgather", short: "direct", long: "ring" },
  { type: "alltoall", short: "direct", long: "pairwise" },
  { type: "reduceScatter", short: "slices", long: "pairwise" },
];

const root = new URL("..", import.meta.url);

/** Runs measure.js. @param {readonly Limit[]} limits @param {readonly string[]} where options of `pamir run` */
function measure(limits, where) {
  const program = fileURLToPath(new URL("bench/collectives/measure.js", root));
  const plan = limits.map(({ type, short, long, sizes = SIZES }) => ({
    type,
    algorithms: [short, long],
    bytes: sizes,
  }));
  const output = execFileSync(
    process.execPath,
    [
      fileURLToPath(new URL("dist/cli.js", root)),
      ...["run", "-n", values.tasks, ...where, "-x", "PAMIR_BENCH", program],
    ],
    {
      encoding: "utf8",
      env: { ...process.env, PAMIR_BENCH: JSON.stringify(plan) },
      stdio: ["ignore", "pipe", "inherit"],
    },
  );
  /** @type {{ type: string, algorithm: string, bytes: number, microseconds: number }[]} */
  const measured = JSON.parse(/RESULT (.*)/.exec(output)?.[1] ?? "[]");
  /** @type {(type: string, algorithm: string, bytes: number) => number} */
  const timeOf = (type, algorithm, bytes) =>
    measured.find((one) => one.type === type && one.algorithm === algorithm && one.bytes === bytes)?.microseconds ??
    Number.NaN;
  return timeOf;
}

/** @type {[name: string, value: number][]} */
const found = [];

/** Measures limits, and prints a table of them. @param {string} title @param {readonly Limit[]} limits @param {readonly string[]} where */
function tell(title, limits, where) {
  const timeOf = measure(limits, where);
  const all = [...new Set(limits.flatMap(({ sizes = SIZES }) => sizes))].sort((one, other) => one - other);
  const table = new Table({
    title: `${title}: µs of one operation, short : long algorithm`,
    columns: ["operation", ...all.map((bytes) => `${bytes} B`), "short up to"].map((column) => ({ name: column })),
  });
  for (const { name, type, short, long, sizes = SIZES } of limits) {
    /** @type {Record<string, string | number>} */
    const row = { operation: `${type}: ${short} : ${long}` };
    // The largest size up to which the algorithm for short ones is not slower.
    let limit = 0;
    /** @type {number[]} */
    const slower = [];
    for (const bytes of sizes) {
      const [one, other] = [timeOf(type, short, bytes), timeOf(type, long, bytes)];
      const digits = one < 10 ? 1 : 0;
      row[`${bytes} B`] = `${one.toFixed(digits)} : ${other.toFixed(digits)}`;
      if (one > other) slower.push(bytes);
      if (slower.length === 0) limit = bytes;
    }
    row["short up to"] = name !== undefined ? limit : slower.length === 0 ? "all" : `all but ${slower.join(", ")}`;
    table.addRow(row);
    if (name !== undefined) found.push([name, limit]);
  }
  table.printTable();
}

tell(`${values.tasks} tasks in ${values.nodes} nodes`, LIMITS, ["--nodes", values.nodes]);
tell(`${values.tasks} threads in one memory`, IN_MEMORY, []);

const file = values.file ?? fileURLToPath(new URL("src/collective/tuning.ts", root));
const text = readFileSync(file, "utf8");
/** @param {string} name */
const formOf = (name) => new RegExp(`(export const ${name} = )([^;]+);`);
console.log(`The limits found, and those in ${file}:`);
for (const [name, value] of found)
  console.log(`export const ${name} = ${value}; // now ${formOf(name).exec(text)?.[2]}`);
console.log(
  `Measured with ${values.tasks} tasks alone: others, with --tasks and --nodes, may have other limits. Not measured: limits in`,
  "members (BROADCAST_MEMBERS, ALLTOALL_MEMBERS, FLAT_MEMBERS), algorithms in two levels (OPERANDS_SHORT).",
  "In one memory, the algorithms of memory are the default at each size: no limit says otherwise.",
);

if (values.tune) {
  let changed = text;
  for (const [name, value] of found) changed = changed.replace(formOf(name), `$1${value};`);
  writeFileSync(file, changed);
  console.log(`${file} has the limits found: look at them, and build again`);
}
