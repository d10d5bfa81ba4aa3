// @ts-check
// npm run bench -- figures [--quick] [ID]…: measures the figures that documents show, writes bench/figures.json, and the
// documents. On a machine that is too busy it writes nothing, and exits with 3. --quick writes nothing either.
import { spawnSync } from "node:child_process";
import { cpus, loadavg } from "node:os";
import { parseArgs } from "node:util";
import { comparePools } from "./calls/pool.mjs";
import { readFigures, shown, updateDocuments, writeFigures } from "./figures.mjs";

const SYSTEMS = { "pamir-wasm": "pamir", openmpi: "Open MPI", postMessage: "postMessage" };

/** What `pamir perf` measures: the figure's name, the test, its bytes, and which of its numbers it is. */
const PERF = /** @type {const} */ ([
  ["message", "am_lat", 8, "p50_ns", "time"],
  ["rate", "am_rate", 8, "messages_per_s", "rate"],
  ["stream", "am_bw", 65536, "bytes_per_s", "bandwidth"],
  ["regions", "rndv_bw", 1048576, "bytes_per_s", "bandwidth"],
  ["barrier", "barrier", 0, "p50_ns", "time"],
]);

const { values, positionals } = parseArgs({ allowPositionals: true, options: { quick: { type: "boolean" } } });
const quick = values.quick ?? false;
const names = [...PERF.map(([name]) => name), "call"];
const unknown = positionals.find((name) => !(/** @type {string[]} */ (names).includes(name)));
if (unknown !== undefined) {
  console.error(`there is no figure ${JSON.stringify(unknown)}: ${names.join(", ")}`);
  process.exit(2);
}
const isWanted = (/** @type {string} */ name) => positionals.length === 0 || positionals.includes(name);

const date = new Date().toISOString().slice(0, 10);
/** @type {import("./figures.mjs").Figures["figures"]} */
const measured = {};
// Other programs: this one has not begun.
let isBusy = (loadavg()[0] ?? 0) > cpus().length / 2;

for (const [name, test, bytes, field, unit] of PERF) {
  if (!isWanted(name)) continue;
  const asked = ["--test", test, ...(bytes > 8 ? ["--bytes", String(bytes)] : [])];
  const systems = Object.keys(SYSTEMS).flatMap((system) => ["--system", system]);
  const run = spawnSync(
    process.execPath,
    ["dist/cli.js", "perf", "--json", ...asked, ...systems, ...(quick ? ["--quick"] : [])],
    { encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] },
  );
  if (run.status !== 0 && run.status !== 3) process.exit(1);
  const report = JSON.parse(run.stdout);
  isBusy ||= report.void;
  for (const result of report.results) {
    const value = result[field];
    const system = SYSTEMS[/** @type {keyof typeof SYSTEMS} */ (result.system)];
    if (value != null && system !== undefined)
      measured[`${name} ${system}`] = { value, unit, date, command: `npx pamir perf ${asked.join(" ")}` };
  }
}
if (isWanted("call")) {
  for (const { name, ours, theirs } of await comparePools(quick, "square(12), awaited")) {
    const command = "npm run bench -- calls";
    measured["call pamir"] ??= { value: ours * 1000, unit: "time", date, command };
    measured[`call ${name}`] = { value: theirs * 1000, unit: "time", date, command };
  }
}
for (const [name, figure] of Object.entries(measured)) console.log(`${name}: ${shown(figure)}`);
if (isBusy) {
  console.error("the machine is too busy: nothing is written");
  process.exitCode = 3;
} else if (!quick) {
  const machine = `an ${cpus()[0]?.model.trim() ?? "unknown processor"}`;
  const figures = { ...readFigures().figures, ...measured };
  writeFigures({ machine, node: process.versions.node, figures });
  updateDocuments(readFigures());
}
