// @ts-check
// What a program meets every day, beside what it would use instead: ordinary buffers, buffers that are given away, a
// pipeline, calls on busy machines, waits. Each row is a ratio of one run; the systems alternate.
//   node bench/everyday.bench.mjs [--row NAME]… [--base FOLDER] [--rounds N] [--quick] [--json]
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { availableParallelism, cpus, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { Table } from "console-table-printer";
import { VERSION } from "pamir";
import { writeLog } from "./everyday/lines.js";

const KIB = 1024;
const MIB = 1024 * KIB;
const ROUNDS = 5;
/** Hand-offs before and after a round may differ by this much, and be this much above the best of all. */
const PAIR_SPREAD = 1.15;
const BEST_SPREAD = 1.3;
/** Repeats of a round, and of all. */
const REPEATS_MAX = 3;
const REPEATS_TOTAL = 30;
const LIMIT_SECONDS = 90;
const EXIT_FAILED = 1;
const EXIT_INPUT = 2;
const EXIT_VOID = 3;

/**
 * A program of the folder `everyday` and its options.
 * @typedef {{ program: string, options?: Record<string, unknown> }} System
 */
/**
 * A ratio of two systems of a group, ours by theirs. `better: "less"`: at most `least` is wanted.
 * @typedef {object} Row
 * @property {string} name
 * @property {string} what
 * @property {string} ours
 * @property {string} theirs
 * @property {"less" | "more"} better
 * @property {number} least
 * @property {number} hoped
 */
/**
 * Systems that take turns, on so many processors and beside so many strangers.
 * @typedef {object} Group
 * @property {"B/s" | "µs"} unit
 * @property {Record<string, System>} systems
 * @property {Row[]} rows
 * @property {string} [processors] a list as `taskset` has it
 * @property {number[]} [strangers] the processor of each
 */
/**
 * A line of the report.
 * @typedef {object} Result
 * @property {string} name
 * @property {string} what
 * @property {string} ours
 * @property {string} theirs
 * @property {number} ratio
 * @property {number} min
 * @property {number} max
 * @property {string} least
 * @property {string} hoped
 * @property {boolean} met
 */

const root = fileURLToPath(new URL("..", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "pamir-everyday-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => process.exit(EXIT_FAILED));

const { values: asked } = parse();
const quick = asked.quick ?? false;
const rounds = asked.rounds === undefined ? (quick ? 1 : ROUNDS) : Number(asked.rounds);
const seconds = quick ? 0.02 : 1;
const input = join(folder, "log");
const inputBytes = quick ? 4 * MIB : 250_000_000;

/** @param {string} name @param {number} bytes @param {string} size @param {"call" | "send"} by @returns {Group} */
const buffers = (name, bytes, size, by) => ({
  unit: "B/s",
  systems: {
    pamir: { program: "buffers-pamir", options: { by, bytes, seconds } },
    postMessage: { program: "buffers-post-message", options: { by, bytes, seconds } },
  },
  rows: [
    {
      name,
      what: `${size} of ordinary memory by ${by}() : postMessage, cloned`,
      ours: "pamir",
      theirs: "postMessage",
      better: "more",
      least: 1.5,
      hoped: 2.5,
    },
  ],
});

/** @param {Partial<Group>} where @param {string} name @param {string} what @returns {Group} */
const calls = (where, name, what) => ({
  unit: "µs",
  systems: {
    pamir: { program: "call-pamir", options: { seconds } },
    postMessage: { program: "call-post-message", options: { seconds } },
  },
  rows: [{ name, what, ours: "pamir", theirs: "postMessage", better: "less", least: 1.3, hoped: 0.8 }],
  ...where,
});

/** @param {Partial<Group>} where @param {string} name @param {string} what @param {number} least @returns {Group} */
const polls = (where, name, what, least) => ({
  unit: "µs",
  systems: {
    "advanceUntil()": { program: "poll", options: { wait: "advanceUntil", seconds } },
    "advance()": { program: "poll", options: { wait: "advance", seconds } },
  },
  rows: [{ name, what, ours: "advanceUntil()", theirs: "advance()", better: "less", least, hoped: 1 }],
  ...where,
});

/** @param {string} name @param {string} what @param {string} ours @param {string} theirs @param {number} least @returns {Row} */
const updatesRow = (name, what, ours, theirs, least) => ({
  name,
  what,
  ours,
  theirs,
  better: "less",
  least,
  hoped: 1,
});

const everyProcessor = Array.from({ length: availableParallelism() }, (_, i) => i);

/** @type {Group[]} */
const GROUPS = [
  buffers("call-256k", 256 * KIB, "256 KiB", "call"),
  buffers("call-4m", 4 * MIB, "4 MiB", "call"),
  buffers("send-256k", 256 * KIB, "256 KiB", "send"),
  buffers("send-4m", 4 * MIB, "4 MiB", "send"),
  {
    unit: "B/s",
    systems: {
      pamir: { program: "give-pamir", options: { bytes: MIB, seconds } },
      postMessage: { program: "give-post-message", options: { bytes: MIB, seconds } },
    },
    rows: [
      {
        name: "give-1m",
        what: "1 MiB filled, given away, summed, sent back : postMessage, transferred",
        ours: "pamir",
        theirs: "postMessage",
        better: "more",
        least: 1,
        hoped: 1.5,
      },
    ],
  },
  {
    unit: "B/s",
    systems: {
      pamir: { program: "pipeline", options: { by: "pamir", input, bytes: inputBytes } },
      given: { program: "pipeline", options: { by: "pamir-given", input, bytes: inputBytes } },
      postMessage: { program: "pipeline", options: { by: "post-message", input, bytes: inputBytes } },
      piscina: { program: "pipeline", options: { by: "piscina", input, bytes: inputBytes } },
    },
    rows: [
      {
        name: "pipeline",
        what: "250 MB of log, 2 parse, 1 writes, by calls, copied : postMessage, transferred",
        ours: "pamir",
        theirs: "postMessage",
        better: "more",
        least: 1.1,
        hoped: 1.4,
      },
      {
        name: "pipeline-piscina",
        what: "the same : piscina",
        ours: "pamir",
        theirs: "piscina",
        better: "more",
        least: 1.2,
        hoped: 1.4,
      },
      {
        name: "pipeline-given",
        what: "the same log by messages, regions given away : postMessage, transferred",
        ours: "given",
        theirs: "postMessage",
        better: "more",
        least: 1,
        hoped: 1.1,
      },
      {
        name: "pipeline-given-piscina",
        what: "the same : piscina",
        ours: "given",
        theirs: "piscina",
        better: "more",
        least: 1.1,
        hoped: 1.2,
      },
    ],
  },
  {
    unit: "B/s",
    systems: {
      pamir: { program: "pipeline", options: { by: "pamir-given", input, bytes: inputBytes, clock: "processor" } },
      postMessage: {
        program: "pipeline",
        options: { by: "post-message", input, bytes: inputBytes, clock: "processor" },
      },
    },
    rows: [
      {
        name: "pipeline-processor",
        what: "regions given away, bytes a second of processor time : postMessage, transferred",
        ours: "pamir",
        theirs: "postMessage",
        better: "more",
        least: 1,
        hoped: 1.1,
      },
    ],
  },
  calls({ processors: "0" }, "call-one-core", "a call on one processor : postMessage"),
  calls({ strangers: [0] }, "call-stranger", "a call, a stranger on one processor : postMessage"),
  calls({ strangers: everyProcessor }, "call-strangers", "a call, every processor taken by a stranger : postMessage"),
  polls({}, "until", "8 B there and back, advanceUntil() : a loop of advance()", 1.15),
  polls({ strangers: [0] }, "until-stranger", "the same, a stranger on one processor", 1.5),
  {
    unit: "µs",
    systems: {
      pamir: { program: "barrier-pamir", options: { seconds } },
      "Atomics.wait": { program: "barrier-atomics", options: { seconds } },
    },
    processors: "0,1",
    rows: [
      {
        name: "barrier",
        what: "a barrier of 4 tasks on 2 processors by messages : Atomics.wait",
        ours: "pamir",
        theirs: "Atomics.wait",
        better: "less",
        least: 1,
        hoped: 0.6,
      },
    ],
  },
  {
    unit: "µs",
    systems: Object.fromEntries(
      ["update", "updateMany", "reserve", "buckets", "Atomics"].map((by) => [
        by,
        { program: "updates", options: { by, passes: quick ? 2 : 40 } },
      ]),
    ),
    rows: [
      updatesRow("updates", "2^20 updates by update() : buckets made by hand", "update", "buckets", 1.1),
      updatesRow("updates-many", "the same by updateMany()", "updateMany", "buckets", 1.1),
      updatesRow("updates-reserve", "the same by reserve(), as items", "reserve", "buckets", 1.1),
      updatesRow("updates-atomics", "2^20 updates by update() : Atomics.xor in one memory", "update", "Atomics", 4),
    ],
  },
];

/** Lines of code of the pipelines. */
const LINES = {
  name: "pipeline-lines",
  what: "the same, lines of code : postMessage",
  ours: ["pipeline/pamir.js"],
  theirs: ["pipeline/post-message.js"],
  least: 1,
  hoped: 1,
};

/**
 * Rows that `pamir perf` measures: a test, its size, and the system that it is compared with.
 * @type {{ name: string, test: string, bytes: number, against: string, better: "less" | "more", least: number, hoped: number }[]}
 */
const PERF = [
  { name: "am_bw-64k", test: "am_bw", bytes: 65536, against: "openmpi", better: "more", least: 3, hoped: 4 },
  { name: "am_bw-1m", test: "am_bw", bytes: 1048576, against: "openmpi", better: "more", least: 2.5, hoped: 4 },
  { name: "am_bw-1k", test: "am_bw", bytes: 1024, against: "openmpi", better: "more", least: 1.5, hoped: 3 },
  { name: "am_bw-3904", test: "am_bw", bytes: 3904, against: "openmpi", better: "more", least: 2, hoped: 3 },
  { name: "am_lat-handoff", test: "am_lat", bytes: 8, against: "handoff", better: "less", least: 1.45, hoped: 1.25 },
  { name: "am_lat-openmpi", test: "am_lat", bytes: 8, against: "openmpi", better: "less", least: 0.6, hoped: 0.45 },
  { name: "am_rate", test: "am_rate", bytes: 8, against: "openmpi", better: "more", least: 2.2, hoped: 3 },
  { name: "rmw_lat", test: "rmw_lat", bytes: 0, against: "wasmcall", better: "less", least: 4, hoped: 2 },
  { name: "put_lat", test: "put_lat", bytes: 8, against: "handoff", better: "less", least: 0.8, hoped: 0.5 },
];

/** All else that `pamir perf` measures, as time against another build. */
const REST = { name: "perf-rest", better: /** @type {const} */ ("less"), least: 1.05, hoped: 1 };

const NAMES = [...GROUPS.flatMap(({ rows }) => rows), LINES, ...PERF, REST].map(({ name }) => name);

function parse() {
  try {
    const options = /** @type {const} */ ({
      row: { type: "string", multiple: true },
      base: { type: "string" },
      rounds: { type: "string" },
      quick: { type: "boolean" },
      json: { type: "boolean" },
      help: { type: "boolean", short: "h" },
    });
    return parseArgs({ options });
  } catch (error) {
    console.error(/** @type {Error} */ (error).message);
    process.exit(EXIT_INPUT);
  }
}

/** @param {readonly number[]} list */
function median(list) {
  const sorted = list.toSorted((a, b) => a - b);
  const upper = sorted[sorted.length >> 1] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[(sorted.length >> 1) - 1] ?? Number.NaN) + upper) / 2;
}

/**
 * Runs Node with a script to its end.
 * @param {string[]} args
 * @param {string} [processors]
 * @param {number} [limits] how many times the limit of a program it may take
 * @returns {Promise<{ code: number | null, out: string }>}
 */
function node(args, processors, limits = 1) {
  const command = [process.execPath, ...args];
  if (processors !== undefined) command.unshift("taskset", "-c", processors);
  return new Promise((resolve, reject) => {
    const [name = "", ...rest] = command;
    const child = spawn(name, rest, { stdio: ["ignore", "pipe", "pipe"], cwd: root });
    const timer = setTimeout(() => child.kill("SIGKILL"), limits * LIMIT_SECONDS * 1000);
    createInterface(child.stderr).on("line", (line) => {
      // What runs is told by progress().
      if (!line.startsWith("pamir perf: measures ")) console.error(line);
    });
    let out = "";
    child.stdout.on("data", (chunk) => {
      out += chunk;
    });
    child.on("error", reject);
    child.on("close", (code) => {
      clearTimeout(timer);
      resolve({ code, out });
    });
  });
}

/** All hand-offs of this run, in ns. @type {number[]} */
const handoffs = [];

/** The hand-off now; of a quick run, the first. */
async function handoff() {
  if (quick && handoffs.length > 0) return handoffs[0] ?? Number.NaN;
  const { out } = await node(["dist/cli.js", "perf", "--quick", "--json", "--test", "am_lat", "--system", "handoff"]);
  const { handoff_ns, results } = JSON.parse(out);
  handoffs.push(median([...handoff_ns, results[0].p50_ns]));
  return handoffs.at(-1) ?? Number.NaN;
}

const hasTaskset = spawnSync("taskset", ["-pc", String(process.pid)], { stdio: "ignore" }).status === 0;

/** Runs a system once, beside the group's strangers. @param {Group} group @param {System} system */
async function measure({ processors, strangers = [] }, { program, options = {} }) {
  const others = strangers.map((processor) => {
    const command = [process.execPath, join(root, "bench/everyday/stranger.js")];
    if (hasTaskset) command.unshift("taskset", "-c", String(processor));
    const [name = "", ...rest] = command;
    return spawn(name, rest, { stdio: "ignore" });
  });
  try {
    const { code, out } = await node(["bench/everyday/run.js", program, JSON.stringify(options)], processors);
    if (code !== 0) throw new Error(`${program} ${JSON.stringify(options)} ended with ${code}`);
    return /** @type {{ figure: number, summary?: string }} */ (JSON.parse(out));
  } finally {
    for (const other of others) other.kill("SIGKILL");
  }
}

/** @param {number} value @param {Group["unit"]} unit */
const show = (value, unit) =>
  unit === "µs"
    ? `${value.toPrecision(3)} µs`
    : value >= 1e9
      ? `${(value / 1e9).toPrecision(3)} GB/s`
      : `${(value / 1e6).toPrecision(3)} MB/s`;

/**
 * @param {{ name: string, better: "less" | "more", least: number, hoped: number }} row
 * @param {string} what @param {string} ours @param {string} theirs @param {readonly number[]} ratios
 * @returns {Result}
 */
function resultOf({ name, better, least, hoped }, what, ours, theirs, ratios) {
  const ratio = median(ratios);
  const sign = better === "less" ? "≤" : "≥";
  return {
    name,
    what,
    ours,
    theirs,
    ratio,
    min: Math.min(...ratios),
    max: Math.max(...ratios),
    least: `${sign} ${least}`,
    hoped: `${sign} ${hoped}`,
    met: better === "less" ? ratio <= least : ratio >= least,
  };
}

/** @type {Result[]} */
const results = [];
/** @type {{ name: string, reason: string, failed: boolean }[]} */
const skipped = [];
/** Median hand-off of each group. @type {number[]} */
const states = [];
let repeated = 0;
let isPerfVoid = false;

/** Measures a group. @param {Group} group */
async function compare(group) {
  const systems = Object.entries(group.systems);
  /** @type {Record<string, number[]>} */
  const figures = Object.fromEntries(systems.map(([name]) => [name, []]));
  const around = [];
  for (let round = 0; round < rounds; round++) {
    for (let attempt = 0; ; attempt++) {
      const before = attempt === 0 && handoffs.length > 0 ? (handoffs.at(-1) ?? 0) : await handoff();
      /** @type {Record<string, number>} */
      const found = {};
      const summaries = new Set();
      for (const [name, system] of round % 2 === 0 ? systems : systems.toReversed()) {
        const { figure, summary } = await measure(group, system);
        found[name] = figure;
        summaries.add(summary);
      }
      if (summaries.size > 1) throw new Error(`results differ: ${[...summaries].join(", ")}`);
      const after = await handoff();
      const high = Math.max(before, after);
      const isSteady = high <= PAIR_SPREAD * Math.min(before, after) && high <= BEST_SPREAD * Math.min(...handoffs);
      if (!isSteady && !quick && attempt < REPEATS_MAX && repeated < REPEATS_TOTAL) {
        repeated++;
        continue;
      }
      for (const [name, figure] of Object.entries(found)) figures[name]?.push(figure);
      around.push((before + after) / 2);
      break;
    }
  }
  states.push(median(around));
  for (const row of group.rows) {
    const [ours, theirs] = [figures[row.ours] ?? [], figures[row.theirs] ?? []];
    const text = (/** @type {string} */ name, /** @type {number[]} */ list) =>
      `${name} ${show(median(list), group.unit)}`;
    const ratios = ours.map((figure, i) => figure / (theirs[i] ?? Number.NaN));
    results.push(resultOf(row, row.what, text(row.ours, ours), text(row.theirs, theirs), ratios));
  }
}

/** Lines that are neither blank nor comments. @param {readonly string[]} files */
function linesOf(files) {
  const text = files.map((file) => readFileSync(join(root, "bench/everyday", file), "utf8")).join("\n");
  const code = text.replaceAll(/\/\*[\s\S]*?\*\//g, "").split("\n");
  return code.filter((line) => !/^\s*(\/\/.*)?$/.test(line)).length;
}

/** Takes the rows that `pamir perf` has from one run of it. @param {typeof PERF} rows */
async function comparePerf(rows) {
  const tests = [...new Set(rows.map(({ test }) => test))].flatMap((test) => ["--test", test]);
  const systems = ["pamir-wasm", "handoff", "openmpi", "wasmcall"].flatMap((name) => ["--system", name]);
  const args = ["perf", "--json", ...tests, ...systems, ...(quick ? ["--quick"] : ["--runs", String(rounds)])];
  const { code, out } = await node(["dist/cli.js", ...args], undefined, 10);
  if (code !== 0 && code !== EXIT_VOID) throw new Error(`pamir ${args.join(" ")} ended with ${code}`);
  /** @type {import("./perf/report.js").Report} */
  const report = JSON.parse(out);
  isPerfVoid = report.void;
  handoffs.push(...report.handoff_ns);
  for (const row of rows) {
    const { test, bytes, against } = row;
    const find = (/** @type {string} */ system) =>
      report.results.find((result) => result.test === test && result.system === system && result.bytes === bytes);
    const ours = find("pamir-wasm");
    const theirs = find(against);
    const isHandoff = against === "handoff";
    if (ours === undefined || (theirs === undefined && !isHandoff)) {
      const reason = report.skipped.map(({ system, reason }) => `${system}: ${reason}`).join("; ");
      skipped.push({ name: row.name, reason, failed: ours === undefined });
      continue;
    }
    const size = bytes === 0 ? "" : ` ${bytes} B`;
    const what = `pamir perf: ${test}${size} : ${isHandoff ? "the hand-off" : against}`;
    const ourText = `pamir ${figureOf(ours)}`;
    if (isHandoff) {
      const { p50_ns, handoff_ns, min, max } = ours;
      const ratio = (p50_ns ?? Number.NaN) / handoff_ns;
      const result = resultOf(row, what, ourText, `hand-off ${handoff_ns.toPrecision(3)} ns`, [ratio]);
      results.push({ ...result, min: min / handoff_ns, max: max / handoff_ns });
    } else {
      const found = report.ratios.find((ratio) => ratio.what === `${test}${size} against ${against}`);
      const { ratio = Number.NaN, min = Number.NaN, max = Number.NaN } = found ?? {};
      const theirText = `${against} ${figureOf(theirs)}`;
      results.push({ ...resultOf(row, what, ourText, theirText, [ratio]), min, max });
    }
  }
}

/**
 * Takes every result of `pamir perf` that is in no other row, here and of another build, which take turns.
 * @param {string} base folder of the other build
 */
async function compareRest(base) {
  const inOtherRows = new Set(PERF.map(({ test, bytes }) => `${test} ${bytes} B`));
  /** @type {Map<string, [ours: number[], theirs: number[]]>} Times of each test and size. */
  const times = new Map();
  for (let round = 0; round < rounds; round++) {
    for (const side of round % 2 === 0 ? [0, 1] : [1, 0]) {
      const command = [join(side === 0 ? root : base, "dist/cli.js"), "perf", "--json", "--runs", "1"];
      const { code, out } = await node(
        [...command, "--system", "pamir-wasm", ...(quick ? ["--quick", "--test", "idle"] : [])],
        undefined,
        10,
      );
      if (code !== 0 && code !== EXIT_VOID) throw new Error(`${command.join(" ")} ended with ${code}`);
      /** @type {import("./perf/report.js").Report} */
      const report = JSON.parse(out);
      isPerfVoid ||= report.void;
      handoffs.push(...report.handoff_ns);
      for (const { test, bytes, p50_ns, messages_per_s } of report.results) {
        const name = `${test} ${bytes} B`;
        if (inOtherRows.has(name)) continue;
        const both = times.get(name) ?? [[], []];
        times.set(name, both);
        both[side]?.push(p50_ns ?? 1e9 / (messages_per_s ?? Number.NaN));
      }
    }
  }
  for (const [name, [ours, theirs]] of times) {
    const ratios = ours.map((time, i) => time / (theirs[i] ?? Number.NaN));
    const text = (/** @type {number[]} */ list) => `${median(list).toPrecision(3)} ns`;
    results.push(resultOf(REST, `pamir perf: ${name} : the other build`, text(ours), text(theirs), ratios));
  }
}

/** The figure of a result that its test is about. @param {import("./perf/report.js").PerfResult | undefined} result */
function figureOf(result) {
  if (result === undefined) return "";
  const { test, p50_ns, messages_per_s, bytes_per_s } = result;
  if (p50_ns !== null) return `${p50_ns.toPrecision(3)} ns`;
  if (test === "am_bw") return show(bytes_per_s ?? Number.NaN, "B/s");
  return `${((messages_per_s ?? Number.NaN) / 1e6).toPrecision(3)} M/s`;
}

if (asked.help) {
  console.log(`npm run bench -- everyday [--row NAME]… [--base FOLDER] [--rounds N] [--quick] [--json]

  --row NAME      only this row; may be repeated
  --base FOLDER   another build of pamir, for the row ${REST.name}: its folder, with dist/ in it
  --rounds N      rounds, in which the systems take turns (default ${ROUNDS}); medians are shown
  --json          one JSON object on standard output
  --quick         tiny inputs: shows that it works, the numbers mean nothing

Rows: ${NAMES.join(", ")}
Exit codes: 0; 1 a program failed; 2 wrong input; 3 the machine was too unsteady, the numbers are void.`);
  process.exit();
}
const unknown = asked.row?.find((name) => !NAMES.includes(name));
if (unknown !== undefined || !(Number.isInteger(rounds) && rounds >= 1)) {
  console.error(
    unknown === undefined
      ? `--rounds ${asked.rounds}: a number from 1`
      : `--row ${unknown}: one of ${NAMES.join(", ")}`,
  );
  process.exit(EXIT_INPUT);
}
const wants = (/** @type {{ name: string }} */ { name }) => asked.row?.includes(name) ?? true;
const progress = (/** @type {string} */ text) => {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text}`);
};

for (const group of GROUPS) {
  const rows = group.rows.filter(wants);
  if (rows.length === 0) continue;
  const [{ name }] = /** @type {[Row]} */ (rows);
  if (group.processors !== undefined && !hasTaskset) {
    for (const row of rows) skipped.push({ name: row.name, reason: "there is no taskset", failed: false });
    continue;
  }
  progress(name);
  try {
    if (group.systems.pamir?.program === "pipeline") writeLog(input, inputBytes);
    await compare({ ...group, rows });
  } catch (error) {
    skipped.push({ name, reason: /** @type {Error} */ (error).message, failed: true });
  }
  rmSync(input, { force: true });
}
if (wants(LINES)) {
  const [ours, theirs] = [linesOf(LINES.ours), linesOf(LINES.theirs)];
  const row = { ...LINES, better: /** @type {const} */ ("less") };
  results.push(resultOf(row, LINES.what, `pamir ${ours}`, `postMessage ${theirs}`, [ours / theirs]));
}
const perfRows = PERF.filter(wants);
if (perfRows.length > 0) {
  progress("pamir perf");
  try {
    await comparePerf(perfRows);
  } catch (error) {
    skipped.push({ name: "pamir perf", reason: /** @type {Error} */ (error).message, failed: true });
  }
}
if (wants(REST)) {
  progress(REST.name);
  if (asked.base === undefined) skipped.push({ name: REST.name, reason: "no --base was given", failed: false });
  else await compareRest(resolve(asked.base));
}
progress("");

const best = Math.min(...handoffs);
const isVoid = isPerfVoid || (!quick && states.some((state) => state > BEST_SPREAD * best));
const report = {
  pamir: VERSION,
  node: process.version,
  cpu: cpus()[0]?.model.trim() ?? "unknown",
  processors: availableParallelism(),
  date: new Date().toISOString(),
  rounds,
  repeated,
  void: isVoid,
  handoff_ns: handoffs,
  rows: results,
  skipped,
};
if (asked.json) console.log(JSON.stringify(report, null, 2));
else {
  const table = new Table({
    columns: ["row", "what"].map((name) => ({ name, alignment: "left" })),
    shouldDisableColors: true,
  });
  const digits = (/** @type {number} */ value) => value.toPrecision(3);
  for (const { name, what, ours, theirs, ratio, min, max, least, hoped, met } of results) {
    table.addRow({
      row: name,
      what,
      ours,
      other: theirs,
      ratio: digits(ratio),
      "lowest to highest": `${digits(min)} – ${digits(max)}`,
      "at least": least,
      "hoped for": hoped,
      met: met ? "yes" : "NO",
    });
  }
  console.log(
    `pamir ${VERSION}, Node ${report.node}, ${report.cpu}, ${report.processors} processors; medians of ${rounds}`,
  );
  console.log(
    `hand-off around the rounds: ${digits(best)} – ${digits(Math.max(...handoffs))} ns; ${repeated} repeated`,
  );
  table.printTable();
  for (const { name, reason } of skipped) console.log(`left out: ${name}: ${reason}`);
  if (isVoid) console.log("VOID: the machine was too unsteady, these numbers mean nothing");
}
process.exitCode = skipped.some(({ failed }) => failed) ? EXIT_FAILED : isVoid ? EXIT_VOID : 0;
