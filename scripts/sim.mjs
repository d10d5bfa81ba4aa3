// npm run sim: simulations of networks, by their seeds. The first that goes wrong ends it.
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { build } from "esbuild";

const USAGE = `Usage: npm run sim -- [--seed S] [--nodes N] [--count C]

Runs simulated networks with the code that ships, in virtual time, and says what each seed drew and what came of it.

  --seed S    seed of the first one, an integer (default 1)
  --nodes N   nodes of each, 2 … 1000 (default: each seed draws 2 … 10)
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
  const outfile = join(folder, "swarm.mjs");
  await build({
    entryPoints: [join(root, "test/simulation/swarm.ts")],
    outfile,
    bundle: true,
    format: "esm",
    target: "es2022",
    platform: "node",
    logLevel: "error",
  });
  /** @type {typeof import("../test/simulation/swarm.js")} */
  const { swarm } = await import(pathToFileURL(outfile).href);
  return swarm;
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

const swarm = await simulations();
for (let one = seed; one < seed + count; one++) {
  /** @type {string[]} */
  let wrong = [];
  try {
    const outcome = nodes === 0 ? swarm(one) : swarm(one, nodes, nodes);
    console.log(`seed ${one}: drew ${JSON.stringify(outcome.drawn)}`);
    console.log(`seed ${one}: came to ${JSON.stringify(outcome.counts)}`);
    wrong = [...outcome.wrong];
  } catch (error) {
    wrong = [/** @type {Error} */ (error).stack ?? String(error)];
  }
  if (wrong.length === 0) continue;
  for (const line of wrong) console.log(`seed ${one}: WRONG: ${line}`);
  console.log(`seed ${one}, commit ${commit()}, Node ${process.version}`);
  console.log(`replay: npm run sim -- --seed ${one}${nodes === 0 ? "" : ` --nodes ${nodes}`}`);
  process.exit(1);
}
console.log(`${count} simulation${count === 1 ? "" : "s"} from seed ${seed}: all well`);
