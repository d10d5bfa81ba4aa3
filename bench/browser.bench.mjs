// Node's figures in Chromium: latencies, waking the page, the first message; a canvas. Ratios of one run; the rounds alternate.
// Usage: node bench/browser.bench.mjs [--quick] [--canvas] [--json]
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { Table } from "console-table-printer";
import { build } from "esbuild";
import { chromium } from "playwright";
import { CHROMIUM_FLAGS, findChromium } from "../scripts/find-chromium.mjs";
import { filesOf, ISOLATION } from "../scripts/serve.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const quick = process.argv.includes("--quick");
const isJson = process.argv.includes("--json");
/** The frames of the canvas alone. */
const isCanvas = process.argv.includes("--canvas");
const ROUNDS = quick ? 1 : 7;
const BATCHES = quick ? 10 : 2000;
const STAMPS = quick ? 5 : 100;
const BALLS = quick ? 100 : 20_000;
const FRAMES = quick ? 3 : 60;

/**
 * What is measured, as bundlers would make it.
 * @param {string} outdir
 */
async function bundle(outdir) {
  await build({
    entryPoints: [
      ...["page", "measure", "task", "first", "first-bare", "post-message"],
      ...["canvas", "strip-pool", "strip-post"],
    ].map((name) => `${root}/bench/browser/${name}.js`),
    outdir,
    outExtension: { ".js": ".mjs" },
    bundle: true,
    minify: true,
    format: "esm",
    alias: { "pamir/pool": `${root}/dist/pool.js`, pamir: `${root}/dist/index.js` },
  });
}

const executablePath = await findChromium();
if (executablePath === undefined) {
  const missing = "no Chromium on the PATH, nor named by CHROME_PATH";
  console.log(isJson ? JSON.stringify({ missing }) : `not run: ${missing}`);
  process.exit(0);
}
const folder = mkdtempSync(join(tmpdir(), "pamir-browser-"));
await bundle(folder);
const { median, start } = await import(pathToFileURL(join(folder, "measure.mjs")).href);
writeFileSync(
  join(folder, "index.html"),
  '<!doctype html><link rel="icon" href="data:,"><script type="module" src="page.mjs"></script>',
);
const server = createServer(filesOf(folder, ISOLATION));
await new Promise((resolve) => server.listen(0, "localhost", () => resolve(undefined)));
const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
const browser = await chromium.launch({ args: CHROMIUM_FLAGS, executablePath });

/**
 * What an expression comes to on a fresh page, where `m` is what page.js gives.
 * @param {string} body
 */
async function onPage(body) {
  const page = await browser.newPage();
  try {
    await page.goto(`http://localhost:${port}/`);
    await page.waitForFunction("globalThis.measurements !== undefined");
    return await page.evaluate(`(async (m) => { ${body} })(measurements)`);
  } finally {
    await page.close();
  }
}

/** @type {{ what: string, unit: string, ours: number[], theirs: number[], against: string, goal: string }[]} */
const rows = [
  { what: "am_lat 8 B between workers", unit: "ns", ours: [], theirs: [], against: "the same in Node", goal: "≤ 1.3" },
  { what: "worker → page, asleep", unit: "µs", ours: [], theirs: [], against: "postMessage", goal: "≤ 1" },
  {
    what: "worker → page, polling in a frame",
    unit: "µs",
    ours: [],
    theirs: [],
    against: "postMessage",
    goal: "≤ 0.2",
  },
  {
    what: "first message after launch()",
    unit: "ms",
    ours: [],
    theirs: [],
    against: "two bare workers",
    goal: "≤ 1.5",
  },
  {
    what: "frame of 8 strips, drawn in shared memory",
    unit: "ms",
    ours: [],
    theirs: [],
    against: "postMessage, transfer",
    goal: "≤ 1",
  },
  {
    what: "frame of 8 strips, returned by pamir/pool",
    unit: "ms",
    ours: [],
    theirs: [],
    against: "postMessage, transfer",
    goal: "",
  },
];
const [latency, parked, polled, first, drawn, returned] =
  /** @type {[typeof rows[0], typeof rows[0], typeof rows[0], typeof rows[0], typeof rows[0], typeof rows[0]]} */ (
    rows
  );
for (let round = 0; round < (isCanvas ? 0 : ROUNDS); round++) {
  const here = await start();
  await here.latency(BATCHES);
  latency.theirs.push(await here.latency(BATCHES));
  await here.job.terminate();
  const there = await onPage(`
    const job = await m.start();
    await job.latency(${BATCHES});
    const latency = await job.latency(${BATCHES});
    const parked = await job.parked(${STAMPS});
    const posted = await m.postMessageDelay(${STAMPS});
    const inFrame = () => new Promise((resolve) => requestAnimationFrame(() => resolve(job.polled(${BALLS}))));
    await inFrame();
    const polled = await inFrame();
    await job.job.terminate();
    return { latency, parked, posted, polled };`);
  latency.ours.push(there.latency);
  parked.ours.push(there.parked / 1000);
  parked.theirs.push(there.posted / 1000);
  polled.ours.push(there.polled / 1000);
  polled.theirs.push(there.posted / 1000);
  first.ours.push(await onPage("return m.firstOfPamir()"));
  first.theirs.push(await onPage("return m.firstOfWorkers()"));
}
const frames = await onPage(`
  const { canvasFrames } = await import("/canvas.mjs");
  return canvasFrames(${FRAMES}, ${ROUNDS});`);
drawn.ours.push(...frames.shared);
drawn.theirs.push(...frames.theirs);
returned.ours.push(...frames.ours);
returned.theirs.push(...frames.theirs);
const version = browser.version();
await browser.close();
server.close();
rmSync(folder, { recursive: true });

/** How many times as long pamir takes, in each round. @param {typeof rows[0]} row */
const ratiosOf = ({ ours, theirs }) => ours.map((value, i) => value / /** @type {number} */ (theirs[i]));

if (isJson) {
  const frameRows = [
    { key: "shared", ratios: ratiosOf(drawn) },
    { key: "returned", ratios: ratiosOf(returned) },
  ];
  console.log(JSON.stringify({ rows: frameRows }));
} else {
  console.log(`Chromium ${version}, Node ${process.version}, medians of ${ROUNDS} rounds`);
  const table = new Table();
  for (const row of rows.filter(({ ours }) => ours.length > 0)) {
    const ratios = ratiosOf(row);
    table.addRow({
      what: row.what,
      pamir: `${median(row.ours).toPrecision(3)} ${row.unit}`,
      against: row.against,
      theirs: `${median(row.theirs).toPrecision(3)} ${row.unit}`,
      ratio: median(ratios).toPrecision(3),
      "lowest to highest": `${Math.min(...ratios).toPrecision(3)} – ${Math.max(...ratios).toPrecision(3)}`,
      goal: row.goal,
    });
  }
  table.printTable();
}
