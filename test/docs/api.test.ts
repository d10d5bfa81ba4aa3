// docs/api: what `npm run docs` makes of the docstrings, and that no public name is without one.
import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { apiPages } from "../../scripts/docs.mjs";

const pages = apiPages();

it("there is a page for each entry, and none that was left behind", () => {
  expect(readdirSync("docs/api").map((name) => `docs/api/${name}`)).toEqual([...pages.keys()].sort());
});

describe.each([...pages])("%s", (path, made) => {
  it("says what the docstrings say: else run `npm run docs`", () => {
    expect(readFileSync(path, "utf8")).toBe(made);
  });

  it("has words for every name, member and property", () => {
    const lines = made.split("\n");
    const isSilent = (line: string, place: number): boolean => {
      const next = lines[place + 1] ?? "";
      if (/^- `[^`]*\w\??: [^`]*`$/.test(line)) return !next.startsWith("  ");
      // Behind a heading, with its signature or without, comes a paragraph or a list.
      if (!/^###/.test(line)) return false;
      const end = lines[place + 2]?.startsWith("```") ? lines.indexOf("```", place + 3) : place;
      return /^(#|```|$)/.test(lines[end + 2] ?? "");
    };
    expect(lines.filter(isSilent)).toEqual([]);
  });
});
