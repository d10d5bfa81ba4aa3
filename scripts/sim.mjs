// npm run sim: simulations of networks, by their seeds. The first that goes wrong ends it.
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { build } from "esbuild";

/** Nodes with the whole API at the most: each has memory of its own. */
const WHOLE_NODES = 32;

const USAGE = `Usage: npm run sim -- [--seed S] [--nodes N] [--count C]

Runs simulated networks with the code that ships, in virtual time, and says what each seed drew and what came of it: once
for sessions alone, and once for the whole API over them.

  --seed S    seed of the first one, an integer (default 1)
  --nodes N   nodes of each, 2 … 1000 (default: each seed draws 2 … 10); of those with the whole API 32 at the most
  --count C   how many, with seeds S, S + 1, … (default 1)
  --help      this text

Exit codes: 0: all went well; 1: one did not, and the command that replays it is printed; 2: wrong arguments.`;

/**
 * @param {string} message
 * @returns {never}
 */
function misused(message) {
  console.error(`${message}\n\n${USAGE}`);
  process.exit(2);
}

/**
 * @param {string} name
 * @param {string | undefined} value
 * @param {number} least
 * @param {number} most
 * @param {number} otherwise
 */
function integerOf(name, value, least, most, otherwise) {
  if (value === undefined) return otherwise;
  if (!/^-?\d+$/.test(value) || Number(value) < least || Number(value) > most)
    misused(`--${name} is "${value}", not an integer from ${least} to ${most}`);
  return Number(value);
}

function options() {
  try {
    const string = /** @type {const} */ ({ type: "string" });
    return parseArgs({ options: { seed: string, nodes: string, count: string, help: { type: "boolean" } } }).values;
  } catch (error) {
    return misused(/** @type {Error} */ (error).message);
  }
}

const given = options();
if (given.help) {
  console.log(USAGE);
  process.exit(0);
}
const seed = integerOf("seed", given.seed, -(2 ** 31), 2 ** 31 - 1, 1);
const count = integerOf("count", given.count, 1, 1e9, 1);
const nodes = integerOf("nodes", given.nodes, 2, 1000, 0);

const root = fileURLToPath(new URL("..", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "pamir-sim-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));

async function simulations() {
  const outfile = join(folder, "simulations.mjs");
  await build({
    stdin: {
      contents: 'export { swarm } from "./swarm.js"; export { whole } from "./whole.js";',
      resolveDir: join(root, "test/simulation"),
    },
    outfile,
    bundle: true,
    format: "esm",
    target: "es2022",
    platform: "node",
    logLevel: "error",
  });
  /** @type {typeof import("../test/simulation/swarm.js") & typeof import("../test/simulation/whole.js")} */
  const all = await import(pathToFileURL(outfile).href);
  return all;
}

/** The commit of these sources, where they are in a repository of git. */
function commit() {
  try {
    const git = (/** @type {string[]} */ ...args) =>
      execFileSync("git", ["-C", root, ...args], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
    return `${git("rev-parse", "HEAD")}${git("status", "--porcelain") === "" ? "" : ", and changes to it"}`;
  } catch {
    return "unknown";
  }
}

const { swarm, whole } = await simulations();
const runs = [
  { what: "sessions", run: (/** @type {number} */ one) => (nodes === 0 ? swarm(one) : swarm(one, nodes, nodes)) },
  {
    what: "API",
    run: (/** @type {number} */ one) => whole(one, nodes === 0 ? undefined : Math.min(nodes, WHOLE_NODES)),
  },
];

/** @param {number} one */
function replay(one) {
  console.log(`seed ${one}, commit ${commit()}, Node ${process.version}`);
  console.log(`replay: npm run sim -- --seed ${one}${nodes === 0 ? "" : ` --nodes ${nodes}`}`);
  process.exit(1);
}

for (let one = seed; one < seed + count; one++) {
  for (const { what, run } of runs) {
    /** @type {readonly string[]} */
    let wrong = [];
    try {
      const outcome = run(one);
      console.log(`seed ${one}, ${what}: drew ${JSON.stringify(outcome.drawn)}`);
      console.log(`seed ${one}, ${what}: came to ${JSON.stringify(outcome.counts)}`);
      wrong = outcome.wrong;
    } catch (error) {
      wrong = [/** @type {Error} */ (error).stack ?? String(error)];
    }
    for (const line of wrong) console.log(`seed ${one}, ${what}: WRONG: ${line}`);
    if (wrong.length > 0) replay(one);
  }
}
console.log(`${count} simulation${count === 1 ? "" : "s"} from seed ${seed}: all well`);
