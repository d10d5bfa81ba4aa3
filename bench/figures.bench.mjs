// @ts-check
// npm run bench -- figures [--quick] [GROUP]…: measures the figures that documents show, writes bench/figures.json, and the
// documents. It keeps the old figures of a group that was measured on a busy machine, or whose tools are missing, and exits
// with 3. --quick writes nothing.
import { spawnSync } from "node:child_process";
import { cpus, loadavg } from "node:os";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { compareCalls } from "./calls/direct.mjs";
import { comparePools } from "./calls/pool.mjs";
import { readFigures, shown, updateDocuments, writeFigures } from "./figures.mjs";

/** What a group's measurement came to: figures by id, unless the machine was too busy, or something is missing. */
/** @typedef {{ value: number, to?: number, unit: string, command: string }} Found */
/** @typedef {{ isBusy?: boolean, missing?: string, found: Record<string, Found> }} Measured */

const EXIT_VOID = 3;
const { values, positionals } = parseArgs({ allowPositionals: true, options: { quick: { type: "boolean" } } });
const quick = values.quick ?? false;
const root = fileURLToPath(new URL("..", import.meta.url));

/**
 * What a program says in JSON, and its exit code.
 * @param {string[]} args
 */
function run(...args) {
  const { status, stdout } = spawnSync(process.execPath, [...args, ...(quick ? ["--quick"] : [])], {
    cwd: root,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
    maxBuffer: 2 ** 26,
  });
  if (status !== 0 && status !== EXIT_VOID) throw new Error(`${args.join(" ")} ended with ${status}`);
  return JSON.parse(stdout);
}

/** Names of systems of `pamir perf` in ids of figures. @type {Record<string, string>} */
const SYSTEMS = {
  "pamir-wasm": "pamir",
  openmpi: "Open MPI",
  "pamir-udp": "sealed",
  "pamir-udp-open": "unsealed",
  "pamir-udp-inline": "inline",
  "pamir-processes": "processes",
};

/**
 * Figures of `pamir perf`, one for each system that has one: "NAME SYSTEM". With a link, the test's size is its own.
 * @param {string} name @param {string} options @param {"p50_ns" | "messages_per_s" | "bytes_per_s"} field
 * @param {string[]} systems @param {{ isRange?: boolean }} [how] a range from the lowest run to the highest one
 * @returns {Measured}
 */
function perf(name, options, field, systems, { isRange = false } = {}) {
  const command = `npx pamir perf ${options}`;
  const asked = [...options.split(" "), ...systems.flatMap((system) => ["--system", system])];
  const report = run("dist/cli.js", "perf", "--json", ...asked);
  const unit = { p50_ns: "time", messages_per_s: "rate", bytes_per_s: "bandwidth" }[field];
  /** @type {Record<string, Found>} */
  const found = {};
  for (const { system, [field]: value, min, max } of report.results) {
    const range = isRange ? { value: min, to: max } : { value };
    if (value != null) found[`${name} ${SYSTEMS[system] ?? system}`] = { ...range, unit, command };
  }
  return { isBusy: report.void, missing: missingOf(report), found };
}

/** What a report has left out, and why. @param {{ skipped: { system?: string, name?: string, reason: string }[] }} report */
const missingOf = ({ skipped }) => skipped.map(({ system, name = system, reason }) => `${name}: ${reason}`).join("; ");

/** How far processes are from threads: the ratios of their times. @returns {Measured} */
function processes() {
  const options = "--processes --test am_lat --test am_rate --test barrier";
  const systems = ["--system", "pamir-wasm", "--system", "pamir-processes"];
  const report = run("dist/cli.js", "perf", "--json", ...options.split(" "), ...systems);
  const time = (/** @type {string} */ test, /** @type {string} */ system) => {
    const result = report.results.find((/** @type {any} */ one) => one.test === test && one.system === system);
    return result === undefined ? Number.NaN : (result.p50_ns ?? 1e9 / result.messages_per_s);
  };
  const ratios = ["am_lat", "am_rate", "barrier"]
    .map((test) => time(test, "pamir-processes") / time(test, "pamir-wasm"))
    .filter(Number.isFinite);
  if (ratios.length === 0) return { missing: "processes share no memory here", found: {} };
  return { isBusy: report.void, found: { processes: rangeOf(ratios, `npx pamir perf ${options}`) } };
}

/** @param {readonly number[]} ratios @param {string} command @returns {Found} */
const rangeOf = (ratios, command) => ({
  value: Math.min(...ratios),
  to: Math.max(...ratios),
  unit: "ratio",
  command,
});

/** Puts to another node, and how much of their bandwidth is left if one packet of 100 is lost. @returns {Measured} */
function udpPuts() {
  const systems = ["pamir-udp", "pamir-udp-open", "pamir-udp-inline", "pamir-udp-lossy"];
  const { found, ...rest } = perf("udp-put", "--link udp --test put_bw", "bytes_per_s", systems);
  const { "udp-put pamir-udp-lossy": lossy, ...others } = found;
  const sealed = found["udp-put sealed"];
  if (lossy === undefined || sealed === undefined) return { ...rest, found: others };
  const lost = { value: lossy.value / sealed.value, unit: "ratio", command: lossy.command };
  return { ...rest, found: { ...others, "udp-put lossy": lost } };
}

/** Rows of `npm run bench -- everyday`. @param {string[]} rows @returns {Measured} */
function everyday(...rows) {
  const report = run("bench/everyday.bench.mjs", "--json", ...rows.flatMap((row) => ["--row", row]));
  /** @type {Record<string, Found>} */
  const found = {};
  for (const { name, min, max } of report.rows) {
    found[`everyday ${name}`] = rangeOf([min, max], `npm run bench -- everyday --row ${name}`);
  }
  return { isBusy: report.void, missing: missingOf(report), found };
}

/** Calls by name: pamir/pool, and pamir/piscina, beside others. @returns {Promise<Measured>} */
async function calls() {
  const command = "npm run bench -- calls";
  /** @type {Record<string, Found>} */
  const found = {};
  for (const { key, name, ours, theirs } of await comparePools(quick, ({ key }) => key !== undefined)) {
    found[`${key} pamir`] ??= { value: ours * 1000, unit: "time", command };
    found[`${key} ${name}`] = { value: theirs * 1000, unit: "time", command };
  }
  return { found };
}

/** A port for Comlink, and context.call, beside Comlink: how many times as fast. @returns {Promise<Measured>} */
async function ports() {
  const command = "npm run bench -- calls";
  const rows = await compareCalls(quick);
  const of = (/** @type {string} */ how, /** @type {RegExp} */ ours) =>
    rangeOf(
      rows
        .filter((row) => row.how === how && ours.test(row.ours) && row.theirs === "Comlink over a MessagePort")
        .flatMap(({ ratios }) => ratios),
      command,
    );
  return {
    found: {
      "port awake": of("spinning", /^Comlink over pamir/),
      "port asleep": of("parked", /^Comlink over pamir/),
      "context.call asleep": of("parked", /^pamir, /),
    },
  };
}

/** @returns {Measured} */
function trace() {
  const { event, debug } = run("bench/trace.bench.mjs", "--json");
  const command = "npm run bench -- trace";
  return {
    found: {
      "trace event": { value: event, unit: "time", command },
      "debug message": { value: debug, unit: "time", command },
    },
  };
}

/** @returns {Measured} */
function idle() {
  const { worker, thread, first, processor } = run("bench/idle.bench.mjs", "--json");
  const command = "npm run bench -- idle";
  return {
    found: {
      "memory worker": { value: worker, unit: "size", command },
      "memory thread": { value: thread, unit: "size", command },
      "memory first": { value: first, unit: "size", command },
      "idle pool": { value: processor, unit: "time", command },
    },
  };
}

/** @returns {Measured} */
function canvas() {
  const { missing, rows = [] } = run("bench/browser.bench.mjs", "--json", "--canvas");
  const command = "npm run bench -- browser";
  /** @type {Record<string, Found>} */
  const found = {};
  for (const { key, ratios } of rows) found[`canvas ${key}`] = rangeOf(ratios, command);
  return { missing, found };
}

const THREADS = ["pamir-wasm", "openmpi", "postMessage"];
const UDP = ["pamir-udp", "pamir-udp-open", "pamir-udp-inline", "dgram"];

/** @type {Record<string, () => Measured | Promise<Measured>>} */
const GROUPS = {
  message: () => perf("message", "--test am_lat", "p50_ns", [...THREADS, "handoff"]),
  rate: () => perf("rate", "--test am_rate", "messages_per_s", THREADS),
  stream: () => perf("stream", "--test am_bw --bytes 65536", "bytes_per_s", THREADS),
  regions: () => perf("regions", "--test rndv_bw --bytes 1048576", "bytes_per_s", THREADS),
  barrier: () => perf("barrier", "--test barrier", "p50_ns", THREADS),
  call: calls,
  port: ports,
  everyday: () => everyday("call-one-core", "barrier"),
  pipeline: () => everyday("pipeline-given", "pipeline-given-piscina", "pipeline-processor"),
  trace,
  idle,
  canvas,
  processes,
  start: () => perf("start", "--processes --test start", "p50_ns", ["pamir-processes", "node"]),
  "idle-processes": () => perf("idle", "--processes --test idle_cpu", "p50_ns", ["pamir-processes"]),
  wake: () =>
    perf("wake", "--processes --test wake_lat", "p50_ns", ["pamir-wasm", "pamir-processes", "futex"], {
      isRange: true,
    }),
  "udp-message": () => perf("udp-message", "--link udp --test am_lat", "p50_ns", UDP, { isRange: true }),
  "udp-rate": () => perf("udp-rate", "--link udp --test am_rate", "messages_per_s", UDP, { isRange: true }),
  "udp-stream": () =>
    perf("udp-stream", "--link udp --test am_bw", "bytes_per_s", ["pamir-udp-open", "pamir-udp-inline", "tcp"], {
      isRange: true,
    }),
  "udp-put": udpPuts,
};

const unknown = positionals.find((name) => GROUPS[name] === undefined);
if (unknown !== undefined) {
  console.error(`there is no group ${JSON.stringify(unknown)}: ${Object.keys(GROUPS).join(", ")}`);
  process.exit(2);
}

// Other programs: this one has not begun.
const isBusyBefore = (loadavg()[0] ?? 0) > cpus().length / 2;
const model = cpus()[0]?.model.trim() ?? "unknown processor";
const where = { machine: `${/^[aeiou]/i.test(model) ? "an" : "a"} ${model}`, node: process.versions.node };
const date = new Date().toISOString().slice(0, 10);
/** @param {Found} found @returns {import("./figures.mjs").Figure} */
const figureOf = ({ value, to, unit, command }) => ({
  value,
  ...(to !== undefined && to !== value && { to }),
  unit,
  date,
  command,
  ...where,
});
for (const [name, measure] of Object.entries(GROUPS)) {
  if (positionals.length > 0 && !positionals.includes(name)) continue;
  const { isBusy = false, missing, found } = await measure();
  for (const [id, figure] of Object.entries(found)) console.log(`${id}: ${shown(figureOf(figure))}`);
  if (missing) console.error(`${name}: ${missing}`);
  if (isBusy || isBusyBefore) console.error(`${name}: the machine is too busy, nothing is written`);
  if (missing || isBusy || isBusyBefore) process.exitCode = EXIT_VOID;
  if (quick || isBusy || isBusyBefore) continue;
  const figures = readFigures();
  for (const [id, figure] of Object.entries(found)) {
    // A difference of two times is below zero where noise is larger than the difference.
    if (figure.value > 0) figures[id] = figureOf(figure);
    else console.error(`${id}: lost in the noise, the old figure stays`);
  }
  writeFigures(figures);
  updateDocuments(figures);
}
