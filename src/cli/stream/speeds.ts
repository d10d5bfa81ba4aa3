// Latency and rate of small messages, in short: `pamir perf` measures them at length, and beside more systems.
import { Table } from "console-table-printer";
import { conduct, ONCE } from "../../../bench/perf/conduct.js";
import { type PerfOptions, parsePerf } from "../../../bench/perf/options.js";
import { reportOf } from "../../../bench/perf/report.js";

/** What was measured of one system, with messages of 8 bytes. */
export interface Speed {
  readonly system: string;
  /** Median of one way, in ns; undefined: it was not measured. */
  readonly nanoseconds: number | undefined;
  /** Messages a second. */
  readonly rate: number | undefined;
}

export interface Speeds {
  readonly systems: readonly Speed[];
  /** Of two threads that only hand a flag to each other, in ns. */
  readonly handoff: number;
}

/** Measures systems. @param quick in tiny runs, whose numbers mean little */
export async function speedsOf(systems: readonly string[], quick: boolean): Promise<Speeds> {
  const asked = [...["am_lat", "am_rate"].flatMap((name) => ["--test", name]), "--runs", "2"];
  if (quick) asked.push("--quick");
  const outcome = await conduct(
    parsePerf([...asked, ...systems.flatMap((name) => ["--system", name])]) as PerfOptions,
    () => {},
    // One lucky hand-off, 72 ns where 256 are usual, has every run repeated: that took two minutes in one run of four.
    ONCE,
  );
  const { results } = reportOf(outcome);
  const [handoff = Number.NaN] = [...outcome.handoffs].sort((a, b) => a - b);
  const measured = systems.map((system): Speed => {
    const find = (test: string) => results.find((result) => result.system === system && result.test === test);
    return {
      system,
      nanoseconds: find("am_lat")?.p50_ns ?? undefined,
      rate: find("am_rate")?.messages_per_s ?? undefined,
    };
  });
  return { systems: measured, handoff };
}

/** "1,234 ns" */
export const inNanoseconds = (nanoseconds: number | undefined): string =>
  nanoseconds === undefined ? "–" : `${Math.round(nanoseconds).toLocaleString("en")} ns`;

/** "12.34 M" */
export const inMillions = (rate: number | undefined): string =>
  rate === undefined ? "–" : `${(rate / 1e6).toFixed(2)} M`;

export function printSpeeds({ systems, handoff }: Speeds): void {
  const table = new Table({
    shouldDisableColors: true,
    columns: [
      { name: "8-byte messages", alignment: "left" },
      { name: "one way", alignment: "right" },
      { name: "messages a second", alignment: "right" },
    ],
  });
  for (const { system, nanoseconds, rate } of systems) {
    table.addRow({
      "8-byte messages": system,
      "one way": inNanoseconds(nanoseconds),
      "messages a second": inMillions(rate),
    });
  }
  table.printTable();
  process.stdout.write(`For scale: two threads that only hand a flag to each other take ${handoff.toFixed(0)} ns.\n`);
}
