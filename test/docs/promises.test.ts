// docs/guarantees.md: each promise has a note that names its tests, and these exist.
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";

const page = readFileSync("docs/guarantees.md", "utf8");
const promises = (page.split("## The tests")[0] as string).split("## Order")[1] as string;

/** The tests of a note: a file, and the beginning of a title. */
const notes = new Map(
  [...page.matchAll(/^\[\^([\w-]+)\]: (.+)$/gm)].map(([, name, text]) => [
    name as string,
    [...(text as string).matchAll(/`(test\/[\w./-]+)`: "([^"]+)"/g)].map(([, file, title]) => ({
      file: file as string,
      title: title as string,
    })),
  ]),
);

/** Where a string begins with this, or has it behind what is put in: a title, not a comment. */
const isTitleIn = (text: string, title: string): boolean =>
  text.split("\n").some((line) => !line.trim().startsWith("//") && /["`]/.test(line) && line.includes(title));

it("each promise has a note with a test", () => {
  const bullets = promises.split(/\n(?=- |\n|##)/).filter((text) => text.startsWith("- "));
  expect(bullets.length).toBeGreaterThan(30);
  expect(bullets.filter((text) => !/\[\^[\w-]+\]$/.test(text.trim()))).toEqual([]);
});

it("each note is used, and names tests", () => {
  const used = [...promises.matchAll(/\[\^([\w-]+)\]/g)].map(([, name]) => name as string);
  expect([...notes.keys()].sort()).toEqual([...used].sort());
  expect([...notes].filter(([, tests]) => tests.length === 0)).toEqual([]);
});

it("the tests that notes name are there", () => {
  const all = [...notes.values()].flat();
  expect(all.length).toBeGreaterThan(50);
  const missing = all.filter(({ file, title }) => !isTitleIn(readFileSync(file, "utf8"), title));
  expect(missing).toEqual([]);
});
