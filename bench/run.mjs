// npm run bench: `pamir perf` with everything, the kernels one by one, sizes; results as JSON and as a picture.
// npm run bench -- [--quick] [--out FOLDER] [options of `pamir perf`]
import { spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { printTable } from "console-table-printer";
import { chartOf } from "./chart.mjs";
import { benchKernels } from "./kernel.bench.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const args = process.argv.slice(2);
const at = args.indexOf("--out");
const [, out = join(root, "bench/results")] = at < 0 ? [] : args.splice(at, 2);
const quick = args.includes("--quick");

/**
 * The report of `pamir perf`, and its exit code: 3 says that the numbers are void.
 * @returns {Promise<{ report: import("./perf/report.js").Report, code: number }>}
 */
function perf() {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [join(root, "dist/cli.js"), "perf", "--json", "--goals", ...args], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    /** @type {Buffer[]} */
    const chunks = [];
    child.stdout.on("data", (chunk) => chunks.push(chunk));
    child.on("error", reject);
    child.on("close", (code) => {
      if (code === 2 || code === null) process.exit(2);
      resolve({ report: JSON.parse(Buffer.concat(chunks).toString()), code });
    });
  });
}

const { report, code } = await perf();
const { kernels, ratios, copies, sizes } = await benchKernels({ quick });
const all = { ...report, kernels, kernel_ratios: ratios, copies, sizes };

mkdirSync(out, { recursive: true });
const name = report.date.slice(0, 19).replaceAll(":", "");
writeFileSync(join(out, `${name}.json`), `${JSON.stringify(all, null, 2)}\n`);
writeFileSync(join(out, `${name}.svg`), chartOf(report));

const yes = (/** @type {boolean | null} */ met) => (met === null ? "" : met ? "yes" : "NO");
const show = (/** @type {string} */ title, /** @type {Record<string, unknown>[]} */ rows) => {
  console.log(title);
  if (rows.length > 0) printTable(rows, { shouldDisableColors: true });
};
show(
  `pamir ${report.pamir}, Node ${report.node}, ${report.cpu}`,
  report.results.map(({ test, bytes, system, p50_ns, messages_per_s, bytes_per_s, runs }) => ({
    test,
    bytes,
    system,
    runs,
    ns: p50_ns ?? "",
    "M messages/s": messages_per_s === null ? "" : Number((messages_per_s / 1e6).toPrecision(4)),
    "GB/s": bytes_per_s === null ? "" : Number((bytes_per_s / 1e9).toPrecision(4)),
  })),
);
show(
  "pamir against others",
  report.ratios.map(({ what, ratio, min, max, goal, hoped, met }) => ({
    what,
    ratio,
    lowest: min,
    highest: max,
    goal: goal ?? "",
    "hoped for": hoped ?? "",
    met: yes(met),
  })),
);
show("Kernels, ns a call: WebAssembly and TypeScript", kernels);
show(
  "Kernels against each other",
  ratios.map(({ what, ratio, goal, met }) => ({ what, ratio, goal: `≤ ${goal}`, met: yes(met) })),
);
show("Copies in WebAssembly, ns a copy", copies);
show(
  "Bytes",
  sizes.map(({ what, bytes, goal, met }) => ({ what, bytes: bytes ?? "", "at most": goal ?? "", met: yes(met) })),
);
for (const { system, reason } of report.skipped) console.log(`left out: ${system}: ${reason}`);
for (const note of report.notes) console.log(`note: ${note}`);
if (report.void) console.log("VOID: the machine was too unsteady, these numbers mean nothing");
console.log(`written: ${relative(process.cwd(), join(out, name)) || name}.json and .svg`);
process.exitCode = code;
