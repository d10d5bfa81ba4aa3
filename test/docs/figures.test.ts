// Figures of the documents: those that `npm run bench -- figures` has measured, and the sizes that the build may have.
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import {
  documents,
  type Figure,
  type Figures,
  idsOf,
  readFigures,
  shown,
  TABLES,
  tableOf,
  withFigures,
  withoutFigures,
} from "../../bench/figures.mjs";
import * as bounds from "../../scripts/bounds.mjs";

const figures = readFigures();
const texts = documents().map((path) => ({ path, text: readFileSync(path, "utf8") }));
const tableIds = Object.values(TABLES).flatMap(({ rows }) => rows.flatMap(([, ...ids]) => ids as readonly string[]));

/** Figures that are measured, as a text would have them: times, rates, sizes in decimal units, comparisons. */
const MEASURED = new RegExp(
  [
    String.raw`\d[ \u00a0-]?(?:[µμ]s|us|ns|ms)\b`,
    String.raw`\d[ \u00a0]?(?:[KkMG]B|[kMG]bit)(?:\/s)?(?![\w-])`,
    String.raw`\d[ \u00a0]?(?:[KMG]iB|[kM]?|(?:[kM] )?(?:messages|calls|schedules))\/s\b`,
    String.raw`\d[\d,.]* (?:million )?(?:messages|calls|schedules|bytes) (?:a|per) second`,
    String.raw`\d\.\d+ s\b`,
    String.raw`\b(?:took|takes?) (?:[\w,]+ ){0,4}\d+ s\b`,
    String.raw`(?:\d times|\btwice|\bhalf|\bthird|\bquarter|\btenth|(?:two|three|four|five|ten) times) (?:as (?:fast|long|slow|quick|much)|faster|slower|longer|the (?:time|speed))`,
    String.raw`\b\d\.\d+ (?:times\b|of (?:that|(?:the|its|their) (?:times?|speed))\b)`,
    String.raw`\d ?% (?:faster|slower|longer|shorter|of the (?:time|speed))`,
  ].join("|"),
  "g",
);

/** What documents may say in such units, since it is a limit, a default, an input or an example. */
const ALLOWED: readonly { path: string; says: string; reason: string }[] = [
  { path: "README.md", says: "spin for 0.05 ms", reason: "default of spin" },
  { path: "bench/README.md", says: "in pieces of 5 ms", reason: "how a benchmark works" },
  { path: "bench/README.md", says: "10 Gbit/s; goodput over two nodes 100 µs apart", reason: "input of a simulation" },
  { path: "bench/README.md", says: "reads 250 MB of log", reason: "input of a benchmark" },
  { path: "docs/README.md", says: "8 MB frames", reason: "input of an example" },
  { path: "docs/api/pamir.md", says: "at most 10 ms at a time", reason: "limit of mayBlock" },
  { path: "docs/api/pamir.md", says: "late by 10 ms at most", reason: "limit of mayBlock" },
  { path: "docs/api/pamir-pool.md", says: "from 10 ms to 5 s", reason: "limits of a pause" },
  { path: "docs/recipes/electron.md", says: "4 GB at most", reason: "limit of V8" },
  { path: "docs/recipes/hang.md", says: "asleep for 3.9 s", reason: "output of an example" },
  { path: "docs/recipes/hang.md", says: "longer than 50 ms", reason: "default of debug.slow" },
  { path: "docs/recipes/hang.md", says: "last 200 ms", reason: "option of an example" },
  { path: "docs/recipes/hang.md", says: "goes on for 200 ms", reason: "output of an example" },
  { path: "docs/recipes/pool.md", says: "10,000 ms by default", reason: "default of idleTimeout" },
  { path: "docs/seeing.md", says: "waits for room for 5.2 s", reason: "example of a dump" },
  { path: "docs/seeing.md", says: "asleep for 3.0 s", reason: "example of a dump" },
  { path: "docs/seeing.md", says: "default 1,000 ms", reason: "default of a timeout" },
  { path: "docs/seeing.md", says: "more than 50 ms", reason: "default of debug.slow" },
  { path: "docs/sizing.md", says: "looks for 0.05 ms", reason: "default of spin" },
  { path: "docs/sizing.md", says: "spins for 0.05 ms", reason: "limit of the engine thread's spin" },
  { path: "docs/sizing.md", says: "10 ms at a time and for some 0.2 s", reason: "limits of mayBlock" },
  { path: "docs/sizing.md", says: "late by 10 ms at most", reason: "limit of mayBlock" },
  { path: "docs/sizing.md", says: "some 25 GB with all else", reason: "addresses, as a value for ulimit" },
  { path: "docs/wire.md", says: "then nothing for 2.5 s", reason: "limit of the protocol" },
  { path: "docs/internals/nodes.md", says: "sleeps for 1 ms", reason: "limit of a sleep" },
  { path: "docs/internals/sessions.md", says: "at most 0.5 s", reason: "limit of a wait" },
  { path: "docs/internals/waiting.md", says: "do not spin for 0.2 ms", reason: "limit of spins" },
  { path: "docs/internals/waiting.md", says: "up to 25.6 ms", reason: "limit of spins" },
];

/** Parts of documents that say what was measured when a decision was made, or a version: they are dated, and stay. */
const HISTORY: Record<string, RegExp> = {
  "CHANGELOG.md": /[\s\S]*/,
  // test/docs/map.test.ts: each entry is dated.
  "docs/internals/decisions.md": /^- \*\*[\s\S]*?(?=^(?:- \*\*|$))/gm,
};

/** Sizes in docs/hosts.md have a test of their own, below. */
const SIZES: Record<string, RegExp> = { "docs/hosts.md": /^## Sizes\n[\s\S]*?(?=^## )/m };

/** A document without its figures, its history, and what it may say. */
function rest(path: string, text: string): string {
  let left = withoutFigures(text);
  for (const parts of [HISTORY, SIZES]) if (parts[path] !== undefined) left = left.replace(parts[path], "");
  for (const { path: its, says } of ALLOWED) if (its === path) left = left.replaceAll(says, "");
  return left;
}

/** The lines of a text that have a measured figure. */
const unmarked = (text: string) => text.split("\n").filter((line) => line.match(MEASURED) !== null);

describe.each(texts)("$path", ({ path, text }) => {
  it("shows the figures of bench/figures.json", () => {
    expect(withFigures(text, figures)).toBe(text);
    expect(idsOf(text).filter((id) => figures[id] === undefined)).toEqual([]);
    // A mark that is written in another way would go stale.
    expect(text.match(/<!-- figure /g) ?? []).toHaveLength(idsOf(text).length);
  });

  it("has no other measured figure: mark it, or say here why it is a limit", () => {
    expect(unmarked(rest(path, text))).toEqual([]);
  });
});

it("README.md and bench/README.md have tables of figures", () => {
  for (const path of ["README.md", "bench/README.md"]) {
    expect(readFileSync(path, "utf8")).toMatch(/<!-- figures \w+ -->\n\|/);
  }
});

it.each(ALLOWED)("$path says: $says", ({ path, says }) => {
  expect(readFileSync(path, "utf8").includes(says)).toBe(true);
  expect(unmarked(says)).not.toEqual([]);
});

it.each([
  "a call takes 12 µs",
  "in 408 ns",
  "5 ms later",
  "20.7 GB/s",
  "some 450 MB/s",
  "13.8 M/s",
  "24 M messages/s",
  "100,000 calls a second",
  "takes 12 MB of memory",
  "took 0.60 s",
  "it took some 9 s",
  "1.5 times as long",
  "twice as fast",
  "up to a quarter faster",
  "10 times faster",
  "0.97 to 1.02 of the time",
  "30 % slower",
])("%s is a measured figure", (text) => expect(unmarked(text)).toEqual([text]));

it.each(["heapBytes is 256 MiB", "within 10 s", "64 KiB", "half of the heap", "Node 20.20.2", "as long as it lives"])(
  "%s is none",
  (text) => expect(unmarked(text)).toEqual([]),
);

it("a mark changes with its figure, and a value that is edited by hand is another text", () => {
  const text = "A message takes <!-- figure message pamir -->408 ns<!-- / -->.";
  const of = (value: number): Figures => ({ "message pamir": { ...(figures["message pamir"] as Figure), value } });
  expect(withFigures(text, of(408))).toBe(text);
  expect(withFigures(text.replace("408", "308"), of(408))).toBe(text);
  expect(withFigures(text, of(1500))).toBe(text.replace("408 ns", "1.5 µs"));
});

it("each figure that a table shows has a value, except what postMessage() lacks", () => {
  // postMessage() has neither regions nor barriers. The row of the last one appears once it is measured.
  const lacking = ["regions postMessage", "barrier postMessage", "call postMessage"];
  expect(tableIds.filter((id) => figures[id] === undefined && !lacking.includes(id))).toEqual([]);
});

it("each figure has a value, a unit, a date, a command and a machine", () => {
  for (const { value, to = value, unit, date, command, machine, node } of Object.values(figures)) {
    expect(value).toBeGreaterThan(0);
    expect(to).toBeGreaterThanOrEqual(value);
    expect(["time", "rate", "bandwidth", "size", "ratio"]).toContain(unit);
    expect(date).toMatch(/^20\d\d-\d\d-\d\d$/);
    expect(command).toMatch(/^(npx pamir perf|npm run bench)/);
    expect(machine).not.toBe("");
    expect(node).toMatch(/^\d+\.\d+/);
  }
});

it("a table changes with its figures", () => {
  const other = structuredClone(figures);
  (other["message pamir"] as Figure).value = 1_234_567;
  expect(tableOf("first", other)).toContain("| 1.23 ms |");
  expect(tableOf("first", other)).not.toBe(tableOf("first", figures));
});

it("a row appears in a table once there is something to compare with", () => {
  const { "call postMessage": _, ...without } = figures;
  expect(tableOf("first", without)).not.toContain("by hand");
  const measured = { ...without, "call postMessage": { ...(figures["call pamir"] as Figure), value: 30_000 } };
  expect(tableOf("first", measured)).toMatch(/by hand.* \| postMessage 30 µs \|/);
});

it.each([
  [408.2, "time", "408 ns"],
  [16_300, "time", "16.3 µs"],
  [13.84e6, "rate", "13.8 M/s"],
  [0.26e6, "rate", "260 k/s"],
  [42e9, "bandwidth", "42 GB/s"],
  [12e6, "size", "12 MB"],
  [0.8, "ratio", "0.8"],
])("%d as a %s is shown as %s", (value, unit, text) => {
  expect(shown({ ...(figures["message pamir"] as Figure), value, unit })).toBe(text);
});

it.each([
  [17_000, 20_000, "time", "17 to 20 µs"],
  [0.97, 1.02, "ratio", "0.97 to 1.02"],
  [2e9, 2.001e9, "bandwidth", "2 GB/s"],
])("%d to %d as a %s is shown as %s", (value, to, unit, text) => {
  expect(shown({ ...(figures["message pamir"] as Figure), value, to, unit })).toBe(text);
});

it("docs/hosts.md: sizes in KB, as the bounds have them in bytes", () => {
  const [, section = ""] = /^## Sizes\n(.*?)^## /ms.exec(readFileSync("docs/hosts.md", "utf8")) ?? [];
  const shownSizes = [...section.matchAll(/(\d+) KB/g)].map(([, size]) => Number(size));
  const { BUNDLE_MAX, WASM_MAX, LATER_MAX, POOL_MAX, PISCINA_MAX, WEB_MAX, WEB_NATS_MAX, MPI_MAX } = bounds;
  const sizes = [BUNDLE_MAX, WASM_MAX, LATER_MAX, POOL_MAX, PISCINA_MAX, WEB_MAX, WEB_NATS_MAX, MPI_MAX];
  expect(shownSizes).toEqual(sizes.map((bytes) => Math.round(bytes / 1000)));
});
