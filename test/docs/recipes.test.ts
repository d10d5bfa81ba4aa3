// docs/recipes: programs that node alone can't run. test/docs/blocks.test.ts runs the others.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, it } from "vitest";

/** The js blocks under a heading of a recipe, by the names of their files. */
function recipe(heading: string, name = "tests"): ReadonlyMap<string, string> {
  const page = readFileSync(`docs/recipes/${name}.md`, "utf8");
  const section = page.split(/^## /m).find((part) => part.startsWith(`${heading}\n`)) ?? expect.fail(heading);
  return new Map(
    [...section.matchAll(/^```js\n(\/\/ (\S+)\n.*?)^```$/gms)].map(([, code = "", name = ""]) => [name, code]),
  );
}

it("tests.md: the tests for Vitest pass in Vitest", () => {
  const folder = mkdtempSync(resolve(".tmp-recipes-"));
  try {
    for (const [name, code] of recipe("Vitest and jest")) writeFileSync(join(folder, name), code);
    writeFileSync(join(folder, "vitest.config.js"), "export default {};\n");
    const vitest = resolve("node_modules/vitest/vitest.mjs");
    const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("VITEST")));
    const run = spawnSync(process.execPath, [vitest, "run", "--root", folder, "--reporter", "json"], {
      encoding: "utf8",
      env,
      timeout: 100_000,
    });
    expect([run.status, run.stderr]).toEqual([0, ""]);
    expect(JSON.parse(run.stdout)).toMatchObject({ numPassedTests: 2, numTotalTests: 2 });
  } finally {
    rmSync(folder, { recursive: true });
  }
});

it("progress.md: on a terminal, the bar is one line that is written over", () => {
  const folder = mkdtempSync(resolve(".tmp-recipes-"));
  try {
    for (const [name, code] of recipe("Many calls, one bar", "progress")) writeFileSync(join(folder, name), code);
    writeFileSync(join(folder, "terminal.js"), 'process.stdout.isTTY = true;\nawait import("./main.js");\n');
    const run = spawnSync(process.execPath, [join(folder, "terminal.js")], { encoding: "utf8", timeout: 100_000 });
    expect([run.status, run.stderr]).toEqual([0, ""]);
    const bars = Array.from({ length: 40 }, (_, i) => {
      const full = "#".repeat((i + 1) >> 1);
      return `\r[${full.padEnd(20, "-")}] ${i + 1} of 40`;
    });
    expect(run.stdout).toBe(`${bars.join("")}\n`);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
