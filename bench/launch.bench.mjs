// How long a job takes from launch() to a first message of each worker, or to a first barrier, and what memory and processor
// time its process takes; beside bare workers that import as little, and exchange the same.
//   node bench/launch.bench.mjs [--base FOLDER] [--rounds N] [--quick] [--json]
import { spawnSync } from "node:child_process";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { Table } from "console-table-printer";

const ROUNDS = 5;
const LIMIT_MS = 60_000;
const EXIT_GOAL = 3;
/** Goals of a job with so many workers, as ratios to bare workers, for the first message. */
const GOALS = { workers: 8, time: 1.8, rss: 1.5 };

/** @typedef {{ time: number, processor: number, rss: number }} Figures */

const { values: asked } = parseArgs({
  options: {
    base: { type: "string" },
    rounds: { type: "string" },
    quick: { type: "boolean" },
    json: { type: "boolean" },
  },
});
const quick = asked.quick ?? false;
const rounds = Number(asked.rounds ?? (quick ? 1 : ROUNDS));
const base = asked.base === undefined ? undefined : resolve(asked.base);

/** @param {number[]} list */
const median = (list) => list.toSorted((a, b) => a - b)[list.length >> 1] ?? Number.NaN;

/** @param {string} program @param {string[]} given @returns {Figures} of a process of its own */
function run(program, ...given) {
  const file = fileURLToPath(new URL(`launch/${program}.js`, import.meta.url));
  const { status, stdout } = spawnSync(process.execPath, [file, ...given], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
    timeout: LIMIT_MS,
  });
  if (status !== 0) throw new Error(`${program} ${given.join(" ")} ended with ${status}`);
  return JSON.parse(stdout);
}

/** @param {Figures[]} runs @returns {Figures} medians */
const medians = (runs) => ({
  time: median(runs.map(({ time }) => time)),
  processor: median(runs.map(({ processor }) => processor)),
  rss: median(runs.map(({ rss }) => rss)),
});

const results = [];
for (const workers of quick ? [2] : [2, 8, 32]) {
  for (const first of ["message", "barrier"]) {
    /** @type {Record<string, Figures[]>} */
    const runs = { pamir: [], ...(base && { base: [] }), workers: [] };
    for (let round = 0; round < rounds; round++) {
      runs.pamir?.push(run("pamir", first, String(workers)));
      if (base) runs.base?.push(run("pamir", first, String(workers), base));
      runs.workers?.push(run("workers", first, String(workers)));
    }
    const theirs = medians(runs.workers ?? []);
    for (const [system, list] of Object.entries(runs)) {
      const figures = medians(list);
      const ratio = (/** @type {keyof Figures} */ key) => figures[key] / theirs[key];
      const ratios = { time: ratio("time"), processor: ratio("processor"), rss: ratio("rss") };
      results.push({ workers, first, system, ...figures, ratios });
    }
  }
}

const goal = results.find(
  ({ workers, first, system }) => workers === GOALS.workers && first === "message" && system === "pamir",
);
const isMet = goal === undefined || (goal.ratios.time <= GOALS.time && goal.ratios.rss <= GOALS.rss);
if (asked.json) console.log(JSON.stringify({ node: process.version, rounds, results }));
else {
  const table = new Table();
  for (const { workers, first, system, time, processor, rss, ratios } of results) {
    table.addRow({
      workers,
      "until the first": first,
      system,
      ms: time.toFixed(0),
      "× bare": ratios.time.toFixed(2),
      "processor ms": processor.toFixed(0),
      " × bare": ratios.processor.toFixed(2),
      MiB: rss.toFixed(1),
      "  × bare": ratios.rss.toFixed(2),
    });
  }
  console.log(`Node ${process.version}, medians of ${rounds}; processor time includes the start of the process`);
  table.printTable();
  const goals = `goals with ${GOALS.workers} workers, first message: time × ${GOALS.time}, memory × ${GOALS.rss}`;
  if (goal !== undefined) console.log(`${goals}: ${isMet ? "met" : "NOT met"}`);
}
if (!isMet) process.exitCode = EXIT_GOAL;
