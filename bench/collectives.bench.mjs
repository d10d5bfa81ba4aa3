// @ts-check
// Collective algorithms over messages, by bytes: which one is faster from where on. The members are tasks of nodes on this
// host, joined by sealed UDP. With --tune, the limits found go into src/collective/tuning.ts, or a copy of it.
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

/** A limit: up to it, `short` is the default; beyond it, `long`. */
const LIMITS = [
  { name: "BROADCAST_SHORT", type: "broadcast", short: "binomial", long: "scatter-ring" },
  { name: "ALLREDUCE_SHORT", type: "allreduce", short: "recursive-doubling", long: "rabenseifner" },
  { name: "GATHER_SHORT", type: "gather", short: "binomial", long: "linear" },
  { name: "ALLGATHER_SHORT", type: "allgather", short: "bruck", long: "ring" },
  { name: "ALLTOALL_SHORT", type: "alltoall", short: "bruck", long: "pairwise" },
  { name: "REDUCE_SHORT", type: "reduce", short: "binomial", long: "rabenseifner" },
  { name: "REDUCE_SCATTER_SHORT", type: "reduceScatter", short: "halving", long: "pairwise" },
];

const root = new URL("..", import.meta.url);
const program = fileURLToPath(new URL("bench/collectives/measure.js", root));
const plan = LIMITS.map(({ type, short, long }) => ({ type, algorithms: [short, long], bytes: SIZES }));
const output = execFileSync(
  process.execPath,
  [
    fileURLToPath(new URL("dist/cli.js", root)),
    ...["run", "-n", values.tasks, "--nodes", values.nodes, "-x", "PAMIR_BENCH", program],
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

/** The largest size up to which the algorithm for short ones is not slower. @param {typeof LIMITS[number]} limit */
function limitOf({ type, short, long }) {
  let found = 0;
  for (const bytes of SIZES) {
    if (timeOf(type, short, bytes) > timeOf(type, long, bytes)) break;
    found = bytes;
  }
  return found;
}

const table = new Table({
  title: `${values.tasks} tasks in ${values.nodes} nodes: µs of one operation, short : long algorithm`,
});
for (const limit of LIMITS) {
  /** @type {Record<string, string | number>} */
  const row = { operation: `${limit.type}: ${limit.short} : ${limit.long}` };
  for (const bytes of SIZES) {
    const [short, long] = [limit.short, limit.long].map((name) => timeOf(limit.type, name, bytes).toFixed(0));
    row[`${bytes} B`] = `${short} : ${long}`;
  }
  row["short up to"] = limitOf(limit);
  table.addRow(row);
}
table.printTable();

console.log("The limits found, as in src/collective/tuning.ts:");
for (const limit of LIMITS) console.log(`export const ${limit.name} = ${limitOf(limit)};`);
console.log(
  `Measured with ${values.tasks} tasks alone: others, with --tasks and --nodes, may have other limits. Not measured: limits in`,
  "members (ALLTOALL_MEMBERS, FLAT_MEMBERS), algorithms in two levels (OPERANDS_SHORT), and all within one memory.",
);

if (values.tune) {
  const file = values.file ?? fileURLToPath(new URL("src/collective/tuning.ts", root));
  let text = readFileSync(file, "utf8");
  for (const limit of LIMITS) {
    text = text.replace(new RegExp(`(export const ${limit.name} = )[^;]+;`), `$1${limitOf(limit)};`);
  }
  writeFileSync(file, text);
  console.log(`${file} has the limits found: look at them, and build again`);
}
