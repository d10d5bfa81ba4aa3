// docs/recipes: programs that node alone can't run. test/docs/blocks.test.ts runs the others.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, it } from "vitest";

/** The js blocks under a heading of docs/recipes/tests.md, by the names of their files. */
function recipe(heading: string): ReadonlyMap<string, string> {
  const page = readFileSync("docs/recipes/tests.md", "utf8");
  const section = page.split(/^## /m).find((part) => part.startsWith(`${heading}\n`)) ?? expect.fail(heading);
  return new Map(
    [...section.matchAll(/^```js\n(\/\/ (\S+)\n.*?)^```$/gms)].map(([, code = "", name = ""]) => [name, code]),
  );
}

it("tests.md: the tests for Vitest pass in Vitest", () => {
  const folder = mkdtempSync(resolve("test/.tmp-recipes-"));
  try {
    for (const [name, code] of recipe("Vitest and jest")) writeFileSync(join(folder, name), code);
    writeFileSync(join(folder, "vitest.config.js"), "export default {};\n");
    const vitest = resolve("node_modules/vitest/vitest.mjs");
    const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("VITEST")));
    const run = spawnSync(process.execPath, [vitest, "run", "--root", folder, "--reporter", "json"], {
      encoding: "utf8",
      env,
      timeout: 60_000,
    });
    expect([run.status, run.stderr]).toEqual([0, ""]);
    expect(JSON.parse(run.stdout)).toMatchObject({ numPassedTests: 2, numTotalTests: 2 });
  } finally {
    rmSync(folder, { recursive: true });
  }
});
