// docs/mechanisms.md: each element's id is in the title of a test, and titles name no other.
import { readdirSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";

const ids = [...readFileSync("docs/mechanisms.md", "utf8").matchAll(/^\| ([CFPSD]\d+[ab]?) +\| (.+?) +\|$/gm)].map(
  ([, id]) => id as string,
);

/** Where a test is declared, and what a scenario or a mutant is called. */
const TITLES =
  /\b(?:it|test|describe)\b[\s\S]{0,400}?["`]([^"`\n]+)["`]|\bname: ["`]([^"`\n]+)["`]|^ *["`]((?:[CFPSD]\d)[^"`\n]+)["`],?$/gm;

const titles = readdirSync("test", { recursive: true, encoding: "utf8" })
  .filter((path) => path.endsWith(".ts"))
  .flatMap((path) => [...readFileSync(`test/${path}`, "utf8").matchAll(TITLES)])
  .map(([, declared, named, lone]) => declared ?? named ?? lone ?? "");

/** The ids in a title. */
const idsIn = (title: string): string[] => title.match(/\b[CFPSD]\d{1,2}[ab]?\b/g) ?? [];

it("each element is named by a test", () => {
  const named = new Set(titles.flatMap(idsIn));
  expect(ids.length).toBeGreaterThan(45);
  expect(ids.filter((id) => !named.has(id))).toEqual([]);
});

it("each id that a test names is an element", () => {
  expect(titles.flatMap((title) => (idsIn(title).every((id) => ids.includes(id)) ? [] : [title]))).toEqual([]);
});
