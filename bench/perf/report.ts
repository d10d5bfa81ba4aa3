// From runs to what is shown: one JSON object, or tables.
import { availableParallelism, cpus } from "node:os";
import { Table } from "console-table-printer";
import { VERSION } from "pamir";
import { printableJson } from "../../src/support/printable.js";
import { type Cell, median, type Outcome } from "./conduct.js";
import { figureOf, type Ratio, ratiosOf } from "./goals.js";
import { TESTS } from "./plan.js";

/** A row of the report: medians over the runs; `min` and `max` are of the figure that the test is about. */
export interface PerfResult {
  readonly test: string;
  readonly system: string;
  readonly bytes: number;
  readonly runs: number;
  readonly p50_ns: number | null;
  readonly p90_ns: number | null;
  readonly p99_ns: number | null;
  readonly p999_ns: number | null;
  readonly messages_per_s: number | null;
  readonly bytes_per_s: number | null;
  readonly min: number;
  readonly max: number;
  /** Hand-off around its runs. */
  readonly handoff_ns: number;
  /** Garbage collections in all its runs; null where they are not counted. */
  readonly gcs: number | null;
}

export interface Report {
  readonly pamir: string;
  readonly node: string;
  readonly cpu: string;
  readonly date: string;
  readonly handoff_ns: readonly number[];
  readonly void: boolean;
  readonly results: readonly PerfResult[];
  /** By what the hand-off was measured. */
  readonly handoff: "C" | "wasm";
  /** Members of the collective operations. */
  readonly tasks: number;
  /** Processors that the threads were bound to; empty: none were. */
  readonly pinned: readonly number[];
  readonly repeated: number;
  readonly skipped: readonly { readonly system: string; readonly reason: string }[];
  readonly ratios: readonly Ratio[];
  readonly notes: readonly string[];
}

export function reportOf(outcome: Outcome): Report {
  const threads = cpus();
  const notes: string[] = [];
  const fan = outcome.cells.some(({ test }) => test.name === "am_fan");
  if (fan && threads.length < 4) notes.push(`am_fan has four threads and this machine runs ${threads.length} at once`);
  const cores = availableParallelism();
  if (outcome.tasks > cores)
    notes.push(`there are ${outcome.tasks} tasks and this machine runs ${cores} threads at once`);
  if (outcome.tasks > 2) notes.push("no thread was bound to a processor: more than two tasks are not");
  else if (outcome.cpus.length === 0) notes.push("no thread was bound to a processor: this system does not let us");
  return {
    pamir: VERSION,
    node: process.version,
    cpu: threads[0]?.model.trim() ?? "unknown",
    date: new Date().toISOString(),
    handoff_ns: outcome.handoffs.map(round),
    void: outcome.void,
    results: outcome.cells.map(resultOf),
    handoff: outcome.handoffBy,
    tasks: outcome.tasks,
    pinned: outcome.cpus,
    repeated: outcome.repeated,
    skipped: outcome.skipped.map(({ system, reason }) => ({ system, reason })),
    ratios: ratiosOf(outcome.cells, outcome.tasks).map((ratio) => ({
      ...ratio,
      ratio: round(ratio.ratio),
      min: round(ratio.min),
      max: round(ratio.max),
    })),
    notes,
  };
}

function resultOf(cell: Cell): PerfResult {
  const { test, system, bytes, runs } = cell;
  const middle = (field: "p50_ns" | "p90_ns" | "p99_ns" | "p999_ns" | "messages_per_s"): number | null => {
    const values = runs.flatMap((run) => run[field] ?? []);
    return values.length === 0 ? null : round(median(values));
  };
  const figures = runs.map((run) => figureOf(cell, run, bytes));
  const rates = runs.flatMap(({ messages_per_s }) => messages_per_s ?? []);
  const counted = runs.flatMap(({ gcs }) => gcs ?? []);
  return {
    test: test.name,
    system,
    bytes,
    runs: runs.length,
    p50_ns: middle("p50_ns"),
    p90_ns: middle("p90_ns"),
    p99_ns: middle("p99_ns"),
    p999_ns: middle("p999_ns"),
    messages_per_s: middle("messages_per_s"),
    bytes_per_s: rates.length === 0 ? null : round(median(rates) * bytes),
    min: round(Math.min(...figures)),
    max: round(Math.max(...figures)),
    handoff_ns: round(median(runs.map((run) => run.handoff_ns))),
    gcs: counted.length === 0 ? null : counted.reduce((sum, count) => sum + count, 0),
  };
}

/** Four digits are more than the measurement has. */
function round(value: number): number {
  return Number(value.toPrecision(5));
}

/** A number with its unit, three digits. */
export function withUnit(value: number | null, unit: "ns" | "/s" | "B/s"): string {
  if (value === null) return "";
  const scales = unit === "ns" ? ["ns", "µs", "ms"] : ["", "k", "M", "G", "T"].map((prefix) => `${prefix}${unit}`);
  let scaled = value;
  let step = 0;
  while (scaled >= 1000 && step < scales.length - 1) {
    scaled /= 1000;
    step++;
  }
  return `${scaled >= 100 ? scaled.toFixed(0) : scaled.toPrecision(3)} ${scales[step]}`;
}

function unitOf({ test, p50_ns }: PerfResult): "ns" | "/s" | "B/s" {
  if (p50_ns !== null) return "ns";
  return TESTS.find(({ name }) => name === test)?.figure === "bandwidth" ? "B/s" : "/s";
}

function figure(result: PerfResult): number | null {
  const unit = unitOf(result);
  return unit === "ns" ? result.p50_ns : unit === "B/s" ? result.bytes_per_s : result.messages_per_s;
}

/** The report as JSON. @param goals beside each ratio, what pamir's developers want of it, and whether it is met */
export function jsonOf(report: Report, goals: boolean): string {
  const ratios = goals
    ? report.ratios
    : report.ratios.map(({ what, ratio, min, max, ahead }) => ({ what, ratio, min, max, ahead }));
  return `${printableJson({ ...report, ratios })}\n`;
}

/** The report as tables. @param goals beside each ratio, what pamir's developers want of it, and whether it is met */
export function textOf(report: Report, goals: boolean): string {
  const { results, ratios, handoff_ns, pinned } = report;
  const table = new Table({
    columns: [
      { name: "test", alignment: "left" },
      { name: "bytes", alignment: "right" },
      { name: "system", alignment: "left" },
      { name: "median", alignment: "right" },
      { name: "lowest to highest run", alignment: "right" },
      { name: "p90", alignment: "right" },
      { name: "p99", alignment: "right" },
      { name: "p99.9", alignment: "right" },
    ],
    shouldDisableColors: true,
  });
  for (const result of results) {
    const unit = unitOf(result);
    table.addRow({
      test: result.test,
      bytes: result.bytes,
      system: result.system,
      median: withUnit(figure(result), unit),
      "lowest to highest run": `${withUnit(result.min, unit)} – ${withUnit(result.max, unit)}`,
      p90: withUnit(result.p90_ns, "ns"),
      p99: withUnit(result.p99_ns, "ns"),
      "p99.9": withUnit(result.p999_ns, "ns"),
    });
  }
  const where = pinned.length > 0 ? `bound to processors ${pinned.join(" and ")}` : "not bound to processors";
  const range = `${withUnit(Math.min(...handoff_ns), "ns")} – ${withUnit(Math.max(...handoff_ns), "ns")}`;
  const lines = [
    `pamir ${report.pamir}, Node ${report.node}, ${report.cpu}, threads ${where}`,
    `hand-off (${report.handoff}) around the runs: ${range}; ${report.repeated} runs were repeated`,
    table.render(),
  ];
  if (ratios.length > 0) lines.push("pamir against others, median of the runs:", ratioTable(ratios, goals));
  for (const { system, reason } of report.skipped) lines.push(`left out: ${system}: ${reason}`);
  for (const note of report.notes) lines.push(`note: ${note}`);
  if (report.void) lines.push("VOID: the hand-off stayed above 1.3 times its best, so these numbers mean nothing");
  return `${lines.join("\n")}\n`;
}

function ratioTable(ratios: readonly Ratio[], goals: boolean): string {
  const table = new Table({
    columns: [
      { name: "what", alignment: "left" },
      { name: "ratio", alignment: "right" },
      { name: "lowest to highest run", alignment: "right" },
      { name: "ahead", alignment: "left" },
      ...(goals
        ? [
            { name: "goal", alignment: "right" as const },
            { name: "hoped for", alignment: "right" as const },
            { name: "met", alignment: "left" as const },
          ]
        : []),
    ],
    shouldDisableColors: true,
  });
  const number = (value: number) => (value >= 100 ? value.toFixed(0) : value === 0 ? "0" : value.toPrecision(3));
  for (const { what, ratio, min, max, goal, hoped, met, ahead } of ratios) {
    table.addRow({
      what,
      ratio: number(ratio),
      "lowest to highest run": `${number(min)} – ${number(max)}`,
      ahead: ahead ?? "",
      ...(goals ? { goal: goal ?? "", "hoped for": hoped ?? "", met: met === null ? "" : met ? "yes" : "NO" } : {}),
    });
  }
  return table.render();
}
