// docs/errors.md: every code and every result, with the meaning that its docstring gives, and the calls that
// give it; and that each is provoked by some test.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import * as pamir from "pamir";
import { describe, expect, it } from "vitest";

const page = readFileSync("docs/errors.md", "utf8");
/** This folder: what its tests say of codes provokes none. */
const DOCUMENTED = join("test", "docs");
const sections = new Map(
  page
    .split(/^##+ (?=PAMIR_)/m)
    .slice(1)
    .map((part) => [/^\w+/.exec(part)?.[0] as string, oneLine(part.split(/\n## /)[0] as string)]),
);
const rows = [...page.matchAll(/^\| `(\w+)` +\| (\d+) +\| (.*?) +\|/gm)].map(([, name, number, by]) => ({
  name,
  number: Number(number),
  by: by as string,
}));

function oneLine(text: string): string {
  return text.replace(/\s+/g, " ").trim();
}

/** Not what is in hidden folders: another test makes such meanwhile, and takes them away. */
function sources(folder: string): string {
  return readdirSync(folder, { withFileTypes: true })
    .filter(({ name }) => !name.startsWith(".") && join(folder, name) !== DOCUMENTED)
    .map((entry) => {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) return sources(path);
      return /\.(ts|js)$/.test(path) ? readFileSync(path, "utf8") : "";
    })
    .join("\n");
}

const declared = readFileSync("src/core/error.ts", "utf8");
const codes = [...declared.matchAll(/^ {2}\| "(PAMIR_\w+)"/gm)].map(([, code]) => code as string);
const meanings = new Map(
  [...declared.matchAll(/^ \* - `(PAMIR_\w+)`: (.*(?:\n \* {3}.*)*)/gm)].map(([, code, said]) => [
    code as string,
    oneLine((said as string).replace(/\n \*/g, " ")),
  ]),
);
const tests = sources("test");

describe("codes", () => {
  it("those of the type, of its docstring, of the page and of what is thrown are the same", () => {
    const thrown = [...sources("src").matchAll(/(?:new PamiError\(\s*|_CODE = )"(PAMIR_\w+)"/g)].map(
      ([, code]) => code as string,
    );
    expect(codes.length).toBeGreaterThan(20);
    expect([...new Set(thrown)].sort()).toEqual(codes.toSorted());
    expect([...meanings.keys()].sort()).toEqual(codes.toSorted());
    expect([...sections.keys()].sort()).toEqual(codes.toSorted());
  });

  it.each(codes)("%s means what its docstring says", (code) => {
    const said = meanings.get(code) as string;
    const begin = `${code} ${said.replace(/^\w/, (letter) => letter.toUpperCase())}`;
    expect((sections.get(code) as string).slice(0, begin.length)).toBe(begin);
  });

  it("who throws one by its docstring is named with it", () => {
    const missing: string[] = [];
    let looked = 0;
    for (const name of readdirSync("docs/api")) {
      const parts = readFileSync(join("docs/api", name), "utf8")
        .split(/^#{3,4} /m)
        .slice(1);
      for (const part of parts) {
        const call = /^(?:\w+\.)?(\w+)/.exec(part)?.[1] as string;
        const throws = oneLine(/^- \*throws\* ((?:.|\n {2})*)/m.exec(part)?.[1] ?? "");
        for (const [code] of throws.matchAll(/PAMIR_\w+/g)) {
          // Every call may give these two, and every wait the ends of waits.
          if (code === "PAMIR_INVAL" || code === "PAMIR_CLOSED") continue;
          looked++;
          const section = sections.get(code) as string;
          if (!new RegExp(`\\b${call}\\b`).test(section) && !section.includes("any of them"))
            missing.push(`${code}: ${call}`);
        }
      }
    }
    expect(missing).toEqual([]);
    expect(looked).toBeGreaterThan(30);
  });

  it.each(codes)("%s is provoked by a test", (code) => {
    expect(tests.includes(`"${code}"`)).toBe(true);
  });
});

describe("results", () => {
  const results = Object.entries(pamir).filter(
    ([name, value]) => typeof value === "number" && !name.endsWith("_MAX"),
  ) as [string, number][];

  it("those of the page are those that the package exports", () => {
    expect(rows.map(({ name, number }) => [name, number])).toEqual(results.toSorted(([, a], [, b]) => a - b));
    for (const [, number] of results) expect(pamir.errorText(number)).not.toMatch(/unknown/);
  });

  it("each that a call gives is expected by a test; no call gives the others", () => {
    const given = sources("src").replace(/^export const .*$/gm, "");
    for (const { name, by } of rows) {
      if (by.startsWith("none")) expect(given).not.toMatch(new RegExp(`(return|=|,|\\?|:) -?${name}[;,)]`));
      else expect([name, new RegExp(`\\b${name}\\b`).test(tests)]).toEqual([name, true]);
    }
  });
});
