// src/README.md is a map: short, with short cells. The rest is in docs/internals, a page for each subject, and each page can be
// found from the map and from docs/README.md.
import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";

const MAP_LINES_MAX = 300;
const CELL_LENGTH_MAX = 200;
const PAGE_LINES_MAX = 250;
const pages = readdirSync("docs/internals");

const read = (path: string): string => readFileSync(path, "utf8");

const lines = (text: string): number => text.trimEnd().split("\n").length;

/** The cells of a text's tables that are too long, by their lines. A bar behind a backslash belongs to its cell. */
const longCells = (text: string): string[] =>
  text.split("\n").flatMap((line, place) =>
    line.startsWith("|")
      ? line
          .split(/(?<!\\)\|/)
          .map((cell) => cell.trim())
          .filter((cell) => cell.length > CELL_LENGTH_MAX)
          .map((cell) => `line ${place + 1}, ${cell.length} characters: ${cell.slice(0, 60)}…`)
      : [],
  );

/** The paths that a document's links name, from docs/. */
const linked = (path: string): string[] =>
  [...read(path).matchAll(/\]\(([^)#\s]+)/g)].map(([, to]) => (to as string).replace(/^(\.\.\/docs|\.)\//, ""));

describe("src/README.md", () => {
  it(`has at most ${MAP_LINES_MAX} lines`, () => {
    expect(lines(read("src/README.md"))).toBeLessThanOrEqual(MAP_LINES_MAX);
  });

  it(`has table cells of at most ${CELL_LENGTH_MAX} characters`, () => {
    expect(longCells(read("src/README.md"))).toEqual([]);
  });

  it("a cell that is too long is found, and one with a bar in it is one cell", () => {
    const half = "x".repeat(CELL_LENGTH_MAX / 2);
    expect(longCells(`| a | ${half}${half} |`)).toEqual([]);
    expect(longCells(`| a | ${half}${half}x |`)).toHaveLength(1);
    expect(longCells(`| a | ${half} \\| ${half} |`)).toHaveLength(1);
  });
});

describe("docs/internals", () => {
  it.each(pages)("%s is in the map and in the index, and is not too long", (page) => {
    expect(linked("src/README.md")).toContain(`internals/${page}`);
    expect(linked("docs/README.md").map((to) => to.replace("internals/", ""))).toContain(page);
    expect(lines(read(`docs/internals/${page}`))).toBeLessThanOrEqual(PAGE_LINES_MAX);
  });

  it("each decision has the day on which it was written down", () => {
    const decisions = [...read("docs/internals/decisions.md").matchAll(/^- (.*(?:\n {2}.*)*)/gm)].map(([, one]) => one);
    expect(decisions.length).toBeGreaterThan(20);
    for (const one of decisions) expect(one?.replaceAll("\n ", "")).toMatch(/^\*\*[^*]+\*\* \(20\d\d-\d\d-\d\d\)\. /);
  });
});
