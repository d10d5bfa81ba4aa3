// Figures of the documents: those that `npm run bench -- figures` has measured, and the sizes that the build may have.
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { DOCUMENTS, readFigures, shown, TABLES, tableOf, withFigures } from "../../bench/figures.mjs";
import * as bounds from "../../scripts/bounds.mjs";

const figures = readFigures();

describe.each(DOCUMENTS)("%s", (path) => {
  const text = readFileSync(path, "utf8");

  it("shows the figures of bench/figures.json", () => expect(withFigures(text, figures)).toBe(text));
  it("has a table of them", () => expect(text).toMatch(/<!-- figures \w+ -->\n\|/));
});

it("each figure that a table shows has a value, a date and a command, except what postMessage() lacks", () => {
  const shownIds = Object.values(TABLES).flatMap(({ rows }) => rows.flatMap(([, ...ids]) => ids as readonly string[]));
  const missing = shownIds.filter((id) => figures.figures[id] === undefined);
  // postMessage() has neither regions nor barriers.
  expect(missing).toEqual(["regions postMessage", "barrier postMessage"]);
  for (const { value, unit, date, command } of Object.values(figures.figures)) {
    expect(value).toBeGreaterThan(0);
    expect(["time", "rate", "bandwidth"]).toContain(unit);
    expect(date).toMatch(/^20\d\d-\d\d-\d\d$/);
    expect(command).toMatch(/^(npx pamir perf|npm run bench)/);
  }
});

it("a table changes with its figures", () => {
  const other = structuredClone(figures);
  (other.figures["message pamir"] as { value: number }).value = 1_234_567;
  expect(tableOf("first", other)).toContain("| 1.23 ms |");
  expect(tableOf("first", other)).not.toBe(tableOf("first", figures));
});

it.each([
  [408.2, "time", "408 ns"],
  [16_300, "time", "16.3 µs"],
  [13.84e6, "rate", "13.8 M/s"],
  [0.26e6, "rate", "260 k/s"],
  [42e9, "bandwidth", "42 GB/s"],
])("%d as a %s is shown as %s", (value, unit, text) => {
  expect(shown({ value, unit, date: "", command: "" })).toBe(text);
});

it("docs/hosts.md: sizes in KB, as the bounds have them in bytes", () => {
  const [, section = ""] = /^## Sizes\n(.*?)^## /ms.exec(readFileSync("docs/hosts.md", "utf8")) ?? [];
  const shownSizes = [...section.matchAll(/(\d+) KB/g)].map(([, size]) => Number(size));
  const { BUNDLE_MAX, WASM_MAX, LATER_MAX, POOL_MAX, PISCINA_MAX, WEB_MAX } = bounds;
  const sizes = [BUNDLE_MAX, WASM_MAX, LATER_MAX, POOL_MAX, PISCINA_MAX, WEB_MAX];
  expect(shownSizes).toEqual(sizes.map((bytes) => Math.round(bytes / 1000)));
});
