// @ts-check
// npm run bench -- nats: two nodes through a NATS server on loopback, the client of NATS itself, and the short way of the same two
// nodes, as ratios with goals. By turns, the best of all rounds: what else runs on the machine only adds. It starts the server
// (Debian's package nats-server). By itself: node bench/nats.bench.mjs [--quick]
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";

const cli = fileURLToPath(new URL("../dist/cli.js", import.meta.url));
const task = fileURLToPath(new URL("nats/task.js", import.meta.url));
const bare = fileURLToPath(new URL("nats/bare.js", import.meta.url));
const wrong = process.argv.slice(2).find((arg) => arg !== "--quick");
if (wrong !== undefined) {
  console.error(`bench nats: there is no option ${JSON.stringify(wrong)}: --quick only shows that it works`);
  process.exit(2);
}
const quick = process.argv.includes("--quick");
const TURNS = quick ? 1 : 5;
/** Round trips, messages of 64 B, and of 1 MiB. */
const COUNTS = (quick ? [50, 2000, 4] : [3000, 200_000, 200]).map(String);

/** @typedef {{ oneWay: number, rate: number, bytes: number }} Measured */

const program = ["nats-server", "/usr/sbin/nats-server"].find((name) => spawnSync(name, ["--version"]).status === 0);
if (program === undefined) console.log("not run: there is no nats-server");
else await compare(program);

/** @param {string} server */
async function compare(server) {
  const folder = mkdtempSync(join(tmpdir(), "pamir-bench-nats-"));
  const running = spawn(server, ["-a", "127.0.0.1", "-p", "-1", "--ports_file_dir", folder], { stdio: "ignore" });
  try {
    const url = await urlOf(folder);
    /** @type {Record<string, () => Promise<Measured>>} */
    const systems = {
      nats: () => byPamir({ PAMIR_NATS: url, PAMIR_NATS_DIRECT: "0" }),
      inline: () => byPamir({ PAMIR_NATS: url, PAMIR_NATS_DIRECT: "0", PAMIR_OPTIONS: '{"agent":"inline"}' }),
      direct: () => byPamir({ PAMIR_NATS: url }),
      bare: () => byClient(url),
    };
    /** @type {Map<string, Measured>} */
    const best = new Map();
    for (let turn = 0; turn < TURNS; turn++) {
      for (const [name, measure] of Object.entries(systems)) {
        const { oneWay, rate, bytes } = await measure();
        const before = best.get(name) ?? { oneWay: Number.POSITIVE_INFINITY, rate: 0, bytes: 0 };
        best.set(name, {
          oneWay: Math.min(before.oneWay, oneWay),
          rate: Math.max(before.rate, rate),
          bytes: Math.max(before.bytes, bytes),
        });
      }
    }
    show(/** @type {Record<string, Measured>} */ (Object.fromEntries(best)));
  } finally {
    running.kill();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Where the server listens. @param {string} folder @returns {Promise<string>} */
async function urlOf(folder) {
  for (;;) {
    const [file] = readdirSync(folder);
    const said = file === undefined ? "" : readFileSync(join(folder, file), "utf8");
    if (said !== "") return JSON.parse(said).nats[0];
    await delay(10);
  }
}

/** @param {Record<string, string>} variables @returns {Promise<Measured>} */
async function byPamir(variables) {
  const args = [cli, "run", "--no-labels", "-n", "2", "--nodes", "2", "--link", "nats", task, ...COUNTS];
  const child = spawn(process.execPath, args, {
    env: { ...process.env, ...variables },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [out] = await Promise.all([text(child.stdout), once(child, "close")]);
  return JSON.parse(out);
}

/** @param {string} url @returns {Promise<Measured>} */
async function byClient(url) {
  const start = (/** @type {string} */ role) =>
    spawn(process.execPath, [bare, role, ...COUNTS], {
      env: { ...process.env, PAMIR_NATS: url },
      stdio: ["ignore", "pipe", "inherit"],
    });
  const answering = start("answer");
  await once(answering.stdout, "data");
  const asking = start("ask");
  const [out] = await Promise.all([text(asking.stdout), once(asking, "close"), once(answering, "close")]);
  return JSON.parse(out);
}

/** @param {Record<string, Measured>} measured */
function show({ nats, inline, direct, bare: client }) {
  if (nats === undefined || inline === undefined || direct === undefined || client === undefined)
    throw new Error("a system is missing");
  const time = (/** @type {number} */ us) => `${us.toFixed(1)} µs`;
  const rate = (/** @type {number} */ each) => `${(each / 1000).toFixed(0)} k/s`;
  const bytes = (/** @type {number} */ each) => `${(each / 1e6).toFixed(0)} MB/s`;
  /** @type {[string, string, string, number, string][]} */
  const rows = [
    [
      "64 B one way, against a request of the client",
      time(nats.oneWay),
      time(client.oneWay),
      nats.oneWay / client.oneWay,
      "≤ 1.2",
    ],
    [
      "the same, agents on the tasks' threads",
      time(inline.oneWay),
      time(client.oneWay),
      inline.oneWay / client.oneWay,
      "≤ 1.2",
    ],
    [
      "messages of 64 B a second, against a publish each",
      rate(nats.rate),
      rate(client.rate),
      nats.rate / client.rate,
      "≥ 5",
    ],
    ["stream of 1 MiB, against the client", bytes(nats.bytes), bytes(client.bytes), nats.bytes / client.bytes, "≥ 0.8"],
    [
      "64 B one way, the short way against the server",
      time(direct.oneWay),
      time(nats.oneWay),
      nats.oneWay / direct.oneWay,
      "≥ 2",
    ],
    [
      "stream of 1 MiB, the short way against the server",
      bytes(direct.bytes),
      bytes(nats.bytes),
      direct.bytes / nats.bytes,
      "",
    ],
  ];
  console.table(
    rows.map(([what, ours, theirs, ratio, goal]) => {
      const bound = Number(goal.slice(2));
      const isMet = goal.startsWith("≤") ? ratio <= bound : ratio >= bound;
      return {
        what,
        pamir: ours,
        other: theirs,
        ratio: ratio.toFixed(2),
        goal,
        met: goal === "" ? "" : isMet ? "yes" : "NO",
      };
    }),
  );
}
