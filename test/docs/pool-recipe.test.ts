// docs/recipes/pool.md beside other packages: how long programs are, and that its tables leave nothing out. Its programs are run
// by blocks.test.ts, and those for pages by test/pages/bundles.test.ts.
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { RESERVED } from "../../src/pool/names.js";

const page = readFileSync("docs/recipes/pool.md", "utf8");
const LINES_MAX = 30;

/** What stands under a heading, up to the next one of any level. */
function section(heading: string): string {
  const [, behind] = page.split(new RegExp(`^#+ ${heading}\\n`, "m"));
  return (behind ?? expect.fail(heading)).split(/^#+ /m)[0] as string;
}

/** Lines of the program under a heading that are not empty. */
function linesOf(heading: string): number {
  const blocks = [...section(heading).matchAll(/^```js\n([\s\S]*?)^```$/gm)].map(([, code]) => code as string);
  expect(blocks.length).toBeGreaterThan(0);
  return blocks
    .join("")
    .split("\n")
    .filter((line) => line.trim() !== "").length;
}

it("each program has at most 30 lines", () => {
  const headings = [...page.matchAll(/^#+ (.*)$/gm)].map(([, heading]) => heading as string);
  const withCode = headings.filter((heading) => section(heading).includes("```js"));
  expect(withCode.length).toBeGreaterThan(15);
  expect(withCode.filter((heading) => linesOf(heading) > LINES_MAX)).toEqual([]);
});

it.each([
  ["A pool that hashes", "The same in piscina"],
  ["One worker", "The same in Comlink"],
])("%s is no longer than %s", (ours, theirs) => {
  expect(linesOf(ours)).toBeLessThanOrEqual(linesOf(theirs));
});

it("lists each name that a pool has itself", () => {
  const named = [...section("Names of the pool's own").matchAll(/`(\w+)`[,]/g)].map(([, name]) => name);
  expect(named.sort()).toEqual([...RESERVED].sort());
});

/** The names of the members of a type in a declaration. */
function membersOf(path: string, start: string): string[] {
  const [, behind] = readFileSync(path, "utf8").split(start);
  const body = (behind ?? expect.fail(start)).split("\n}")[0] as string;
  return [...body.matchAll(/^ {2,4}(\w+)\?:/gm)].map(([, name]) => name as string);
}

describe("a table has each option of", () => {
  it.each([
    ["piscina", "node_modules/piscina/dist/index.d.ts", "interface Options {"],
    ["workerpool", "node_modules/workerpool/types/types.d.ts", "export type WorkerPoolOptions = {"],
    ["synckit", "node_modules/synckit/lib/types.d.ts", "export interface SynckitOptions {"],
  ])("%s", (name, path, start) => {
    const members = membersOf(path, start);
    expect(members.length).toBeGreaterThan(3);
    const table = section(`Coming from ${name}`);
    const firsts = [...table.matchAll(/^\| ([^|]*)\|/gm)].map(([, first]) => first).join();
    expect(members.filter((member) => !new RegExp(`\\b${member}\\b`).test(firsts))).toEqual([]);
  });
});
