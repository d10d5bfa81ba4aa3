// npm run test:quick, test, test:deep: how much of the tests is run, see test/README.md.
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { chooseSeed } from "./seed.mjs";

const USAGE = `Usage: node scripts/test.mjs quick|normal|deep [--shard I/N] [FILE…]
  quick        each area, in less than a minute
  normal       each test once, in one or two of its variants; a part of what is explored or drawn at random
  deep         everything there is, in an hour or more
  --shard I/N  one of N parts that together are the same as the whole

PAMIR_SEED=S takes the same tests again, with the same random input.`;

/** @returns {never} */
function refuse(/** @type {string} */ message) {
  console.error(`${message}\n${USAGE}`);
  process.exit(2);
}

let parsed;
try {
  parsed = parseArgs({
    allowPositionals: true,
    options: { shard: { type: "string" }, help: { type: "boolean", short: "h" } },
  });
} catch (error) {
  refuse(error instanceof Error ? error.message : String(error));
}
const {
  values: { shard = "1/1", help },
  positionals: [effort = "", ...files],
} = parsed;
if (help) {
  console.log(USAGE);
  process.exit(0);
}
if (!["quick", "normal", "deep"].includes(effort)) refuse(`"${effort}" is none of quick, normal, deep`);
const [part, parts] = (/^([1-9]\d*)\/([1-9]\d*)$/.exec(shard) ?? []).slice(1).map(Number);
if (part === undefined || parts === undefined || part > parts) refuse(`--shard is "${shard}": I/N, with I from 1 to N`);

const vitest = fileURLToPath(new URL("../node_modules/vitest/vitest.mjs", import.meta.url));
const env = { ...process.env, PAMIR_EFFORT: effort, PAMIR_SHARD: shard, PAMIR_SEED: chooseSeed() };
const cwd = fileURLToPath(new URL("..", import.meta.url));
/** @returns the exit code */
const run = (/** @type {string[]} */ ...args) =>
  spawnSync(process.execPath, args, { stdio: "inherit", cwd, env }).status ?? 1;
const status = run(vitest, "run", ...files);
// What is named is not of the browser's tests: those have configurations of their own.
const inBrowser = effort === "deep" && files.length === 0 ? run("scripts/test-browser.mjs", effort) : 0;
process.exit(status || inBrowser);
