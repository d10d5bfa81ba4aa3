// docs/tutorial.md: what no block of it can test by itself. test/docs/blocks.test.ts runs its other programs.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { slugOf } from "../../scripts/anchors.mjs";
import { cli, withoutWaits } from "../support/run-command.js";

const page = readFileSync("docs/tutorial.md", "utf8");

/** The code blocks under a heading, with their languages. */
function recipe(heading: string): { language: string; code: string }[] {
  const section = page.split(/^## /m).find((part) => part.startsWith(`${heading}\n`)) ?? expect.fail(heading);
  return [...section.matchAll(/^```(\w+)\n(.*?)^```$/gms)].map(([, language = "", code = ""]) => ({ language, code }));
}

/** A folder in the project, so that a program finds the package by its name. */
function inFolder(files: Record<string, string>, use: (folder: string) => void): void {
  const folder = mkdtempSync(resolve(".tmp-tutorial-"));
  try {
    for (const [name, code] of Object.entries(files)) writeFileSync(join(folder, name), code);
    use(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

it("has a row for each step, and the steps in order", () => {
  const steps = [...page.matchAll(/^## (\d+)\. (.*)$/gm)].map(([, number]) => Number(number));
  expect(steps).toEqual(Array.from({ length: 10 }, (_, i) => i + 1));
  const rows = [...page.matchAll(/^\| \[(\d+)\]\(#([\w-]+)\)/gm)];
  const anchors = [...page.matchAll(/^## (.*)$/gm)].map(([, title = ""]) => slugOf(title));
  expect(rows.map(([, step]) => Number(step))).toEqual(steps);
  expect(rows.map(([, , anchor]) => anchor)).toEqual(anchors.slice(0, 10));
});

describe("step 2: the types of a worker's functions", () => {
  const [main, worker] = recipe("2. A call with types").map(({ code }) => code) as [string, string];
  const check = (source: string): string => {
    let output = "";
    inFolder({ "main.js": source, "worker.js": worker }, (folder) => {
      const options = ["--noEmit", "--checkJs", "--strict", "--module", "nodenext", "--target", "es2022"];
      const tsc = resolve("node_modules/typescript/bin/tsc");
      const files = ["main.js", "worker.js"].map((name) => join(folder, name));
      const run = spawnSync(process.execPath, [tsc, "--ignoreConfig", "--types", "node", ...options, ...files], {
        encoding: "utf8",
      });
      output = run.stdout;
    });
    return output;
  };

  it("are known to the caller", () => expect(check(main)).toBe(""));
  it("refuse a wrong argument, and a function that is not served", () => {
    expect(check(main.replace("Float64Array.of(1, 2, 3, 4)", '"1, 2"'))).toMatch(/string.*Float64Array/);
    expect(check(main.replace("workers.statistics(", "workers.nope("))).toMatch(/'nope' does not exist/);
  });
});

describe.skipIf(process.platform !== "linux")("step 9: a launcher", () => {
  const blocks = recipe("9. Processes and machines");
  const [program] = blocks.filter(({ language }) => language === "js").map(({ code }) => code) as [string];
  const commands = blocks.filter(({ language }) => language === "sh").flatMap(({ code }) => code.trim().split("\n"));

  it("has commands", () => expect(commands.length).toBe(3));
  it.each(commands)("%s", (command) => {
    inFolder({ "sum.js": program }, (folder) => {
      const [npx, pamir, ...args] = command.split(" ");
      expect([npx, pamir]).toEqual(["npx", "pamir"]);
      const run = spawnSync(process.execPath, [cli, ...args], { cwd: folder, encoding: "utf8", timeout: 100_000 });
      expect([run.status, withoutWaits(run.stderr)]).toEqual([0, ""]);
      expect(run.stdout).toMatch(/^(\[0\] )?sum of 4 tasks: 6\n$/);
    });
  });
});
