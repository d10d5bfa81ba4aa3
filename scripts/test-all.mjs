// npm test: build, lint, the Node suite, the browser suite and the pages suite. Each runs and reports whatever fails before;
// the last line says what has passed, what has failed and what was not run. The exit code is 1 if anything has failed.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { runParts, summaryOf } from "./parts.mjs";

process.chdir(fileURLToPath(new URL("..", import.meta.url)));
const folder = mkdtempSync(join(tmpdir(), "pamir-reports-"));
const { PAMIR_TEST_JSON, PAMIR_BROWSER_JSON, PAMIR_PAGES_JSON, FORCE_COLOR, NO_COLOR } = process.env;
const isColoured = process.stdout.isTTY && FORCE_COLOR === undefined && NO_COLOR === undefined;
const env = isColoured ? { FORCE_COLOR: "1" } : {};

/**
 * @param {string} name @param {readonly string[]} args of Node
 * @returns {import("./parts.mjs").Part}
 */
const part = (name, args) => ({ name, command: [process.execPath, ...args], env });
/**
 * @param {string} name @param {readonly string[]} args of Node
 * @param {string} variable names the file for a report @param {string | undefined} file the one that is asked for
 * @returns {import("./parts.mjs").Part}
 */
function suite(name, args, variable, file) {
  const report = file ?? join(folder, `${variable}.json`);
  return { ...part(name, args), report, env: { ...env, [variable]: report } };
}

const outcomes = await runParts(
  [
    [[part("build", ["scripts/build.mjs"])]],
    [
      [suite("Node suite", ["scripts/test.mjs", "normal"], "PAMIR_TEST_JSON", PAMIR_TEST_JSON)],
      // What computes runs beside the Node suite, which waits for a third of its time.
      [
        part("biome", ["node_modules/@biomejs/biome/bin/biome", "check", "."]),
        part("tsc", ["node_modules/typescript/bin/tsc", "--noEmit"]),
        suite(
          "browser suite",
          ["scripts/test-browser.mjs", "normal", "browser"],
          "PAMIR_BROWSER_JSON",
          PAMIR_BROWSER_JSON,
        ),
        suite("pages suite", ["scripts/test-browser.mjs", "normal", "pages"], "PAMIR_PAGES_JSON", PAMIR_PAGES_JSON),
      ],
    ],
  ],
  (text) => process.stdout.write(text),
);
rmSync(folder, { recursive: true });
console.log(summaryOf(outcomes));
process.exitCode = outcomes.every(({ status }) => status === 0) ? 0 : 1;
