// @ts-check
// The first collective operations of a program, as ratios to its 10,000th one: each program is new, and times one after the other.
//   node bench/first.bench.mjs [--programs N] [--base FOLDER] [--quick] [--json]
import { spawnSync } from "node:child_process";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { Table } from "console-table-printer";

const PROGRAMS = 9;
const LIMIT_MS = 60_000;
const EXIT_GOAL = 3;
/** Operations whose times are compared, and how many on either side of each count as well. */
const PLACES = [
  { at: 20, around: 5 },
  { at: 100, around: 20 },
  { at: 1500, around: 50 },
];
const LAST = { at: 10_000, around: 50 };
/** Of the 20th, and of the 100th. */
const GOALS = [4, 2];
/** Of the times around a place: a thread that another program delays is awaited, and says nothing of the operation. */
const QUARTILE = 0.25;

const ROWS = /** @type {const} */ ([
  ["barrier", "blocking"],
  ["barrier", "promise"],
  ["allreduce", "blocking"],
  ["allreduce", "promise"],
  ["allreduce", "new arrays"],
]);

const { values: asked } = parseArgs({
  options: {
    programs: { type: "string" },
    base: { type: "string" },
    quick: { type: "boolean" },
    json: { type: "boolean" },
  },
});
const programs = Number(asked.programs ?? (asked.quick ? 1 : PROGRAMS));
const base = asked.base === undefined ? undefined : resolve(asked.base);
const file = fileURLToPath(new URL("first/program.js", import.meta.url));

/** @param {number[]} list @param {number} part */
const quantile = (list, part) => list.toSorted((a, b) => a - b)[Math.floor(part * (list.length - 1))] ?? Number.NaN;

/** @param {string} operation @param {string} form @param {string} [folder] @returns {number[]} ns of each operation of a program */
function run(operation, form, folder) {
  const given = [operation, form, ...(folder === undefined ? [] : [folder])];
  const { status, stdout } = spawnSync(process.execPath, [file, ...given], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
    timeout: LIMIT_MS,
  });
  if (status !== 0) throw new Error(`${operation}, ${form}: ended with ${status}`);
  return JSON.parse(stdout);
}

const results = [];
for (const [operation, form] of ROWS) {
  /** @type {Record<string, number[][]>} */
  const all = { pamir: [], ...(base && { base: [] }) };
  for (let program = 0; program < programs; program++) {
    for (const [system, list] of Object.entries(all))
      list.push(run(operation, form, system === "base" ? base : undefined));
  }
  for (const [system, list] of Object.entries(all)) {
    const timeAt = (/** @type {number[]} */ times, /** @type {typeof LAST} */ { at, around }) =>
      quantile(times.slice(at - 1 - around, at + around), QUARTILE);
    const median = (/** @type {(times: number[]) => number} */ of) => quantile(list.map(of), 0.5);
    results.push({
      operation,
      form,
      system,
      last_ns: median((times) => timeAt(times, LAST)),
      ratios: PLACES.map((place) => ({
        at: place.at,
        ns: median((times) => timeAt(times, place)),
        ratio: median((times) => timeAt(times, place) / timeAt(times, LAST)),
      })),
    });
  }
}

const isMet = results.every(
  ({ system, ratios }) => system === "base" || GOALS.every((goal, i) => Number(ratios[i]?.ratio) <= goal),
);
if (asked.json) console.log(JSON.stringify({ node: process.version, programs, results }));
else {
  const table = new Table();
  for (const { operation, form, system, last_ns, ratios } of results) {
    table.addRow({
      operation: `${operation}, ${form}`,
      system,
      ...Object.fromEntries(
        ratios.map(({ at, ns, ratio }) => [`${at}th`, `${(ns / 1000).toFixed(2)} µs, × ${ratio.toFixed(1)}`]),
      ),
      [`${LAST.at}th`]: `${(last_ns / 1000).toFixed(2)} µs`,
    });
  }
  console.log(`Node ${process.version}, two threads, medians of ${programs} programs`);
  table.printTable();
  console.log(`goals: 20th × ${GOALS[0]}, 100th × ${GOALS[1]}: ${isMet ? "met" : "NOT met"}`);
}
if (!isMet) process.exitCode = EXIT_GOAL;
