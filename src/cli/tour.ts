// `pamir tour`, what `npm start` runs: a first program, real files, and figures beside postMessage(), in 40 lines of 80 columns.
import { spawnSync } from "node:child_process";
import { relative } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { Worker } from "node:worker_threads";
import { Table } from "console-table-printer";
import { type Pool, pool } from "pamir/pool";
import { Crowd } from "./crowd.js";
import { filesOf, type StreamedFile } from "./stream/files.js";
import { inMillions, inNanoseconds, type Speed, speedsOf } from "./stream/speeds.js";
import { printTotals, rateOf, type Streamed, streamAll } from "./stream/stream.js";
import { WAYS } from "./stream/ways.js";
import type { api } from "./tasks/tour-pool.js";
import { say } from "./usage.js";

const HELP = `pamir tour: shows what pamir is for, in half a minute

Usage: pamir tour [--quick] [FILE]…

  FILE                  without a file: the largest files of 1 to 32 MiB of the packages at hand
  --quick               tiny runs: shows that it works, their numbers mean little

Runs a first program, sends files from one thread to another and checks them by SHA-256, and measures small messages and
calls beside postMessage(). \`pamir stream\` and \`pamir perf\` show more of that.

Exit codes: 0 all is well; 1 a digest differs, or the program failed; 2 a file can't be read.
`;

/** Share of the time without a core from which figures say little: 0 to 0.16 on two idle cores, 0.6 with two strangers. */
const CROWDED = 0.25;
/** Milliseconds of a look at the cores: several time slices of a system's scheduler. */
const LOOK_MS = 100;
const CALLS = 5000;
const RUNS = 5;

/** Runs the tour; returns the exit code. */
export async function tour(args: string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: { help: { type: "boolean", short: "h" }, quick: { type: "boolean" } },
  });
  if (values.help) {
    process.stdout.write(HELP);
    return 0;
  }
  const quick = values.quick ?? false;
  // In a folder that is gone, this throws: workers would.
  process.cwd();
  const files = filesOf(positionals);
  write("pamir: the threads of a program call, message and share memory with each other.");
  write("Three steps, half a minute: a program, real files, figures beside postMessage().\n");
  if (!runFirstProgram()) return 1;
  const crowd = new Crowd();
  await crowd.look(LOOK_MS);
  write(`\n2. Real files from one thread to another, the largest of them\n   ${largestOf(files)}`);
  const streamed = await streamAll(
    files,
    WAYS.filter(({ kernel }) => kernel !== "ts"),
  );
  const wrong = printTotals(files, streamed);
  await crowd.look(LOOK_MS);
  write("\n3. Messages of 8 bytes, and calls of a function that squares a number.");
  const { systems } = await speedsOf(["pamir-wasm", "postMessage"], quick);
  const calls = await timeCalls(quick ? 50 : CALLS, quick ? 1 : RUNS);
  await crowd.look(LOOK_MS);
  await crowd.close();
  const rows = ["pamir", "postMessage"].map((name, i) => ({
    name,
    ...(systems[i] as Speed),
    call: calls[i] as number,
  }));
  printSystems(rows);
  write(verdict(rows, files, streamed, crowd.missed));
  write("\nNext:");
  write("  less docs/tutorial.md      ten programs, from two workers to several machines");
  write(`  node ${pathOf("../examples/first.js").padEnd(21)} the program of step 1: change it, run it again`);
  write("  npx pamir perf             these figures at length, beside MPI and UCX");
  if (wrong > 0) say(`pamir tour: ${wrong} digests differ from what was sent`);
  return wrong > 0 ? 1 : 0;
}

const write = (line: string): void => void process.stdout.write(`${line}\n`);

/** A file of the package, as a shell in the current folder names it. */
function pathOf(path: string): string {
  return relative(process.cwd(), fileURLToPath(new URL(path, import.meta.url)));
}

function runFirstProgram(): boolean {
  write(`1. A program of 30 lines: ${pathOf("../examples/first.js")}`);
  const program = fileURLToPath(new URL("../examples/first.js", import.meta.url));
  const { status, stdout, stderr } = spawnSync(process.execPath, [program], { encoding: "utf8", timeout: 60_000 });
  process.stdout.write(stdout.replace(/^/gm, "   ").trimEnd());
  write("");
  if (status !== 0) say(`pamir tour: the program failed: ${stderr.trim()}`);
  return status === 0;
}

function largestOf(files: readonly StreamedFile[]): string {
  const [largest] = files.toSorted((a, b) => b.content.length - a.content.length);
  const name = relative(process.cwd(), largest?.path ?? "");
  return name.length > 70 ? `…${name.slice(-69)}` : name;
}

export interface TourRow extends Speed {
  readonly name: string;
  /** Of a call and its result, in µs. */
  readonly call: number;
}

/** Microseconds of a call, awaited one after the other: by a pool, and by postMessage(). The rounds take turns. */
async function timeCalls(count: number, runs: number): Promise<number[]> {
  const workers: Pool<typeof api> = await pool(new URL("./tasks/tour-pool.js", import.meta.url), { workers: 1 });
  const worker = new Worker(new URL("./tasks/tour-post-message.js", import.meta.url));
  const waiting = new Map<number, (result: number) => void>();
  worker.on("message", ({ call, result }: { call: number; result: number }) => {
    waiting.get(call)?.(result);
    waiting.delete(call);
  });
  let call = 0;
  const post = (n: number): Promise<number> =>
    new Promise((resolve) => {
      waiting.set(call, resolve);
      worker.postMessage({ call: call++, n });
    });
  const times: number[][] = [[], []];
  for (let run = 0; run <= runs; run++) {
    for (const [i, square] of [(n: number) => workers.square(n), post].entries()) {
      const start = performance.now();
      for (let n = 0; n < count; n++) if ((await square(n)) !== n ** 2) throw new Error(`the square of ${n} is wrong`);
      // The first run is a warm-up.
      if (run > 0) times[i]?.push(((performance.now() - start) / count) * 1000);
    }
  }
  await workers.close();
  await worker.terminate();
  return times.map((list) => list.toSorted((a, b) => a - b)[list.length >> 1] as number);
}

function printSystems(rows: readonly TourRow[]): void {
  const table = new Table({
    shouldDisableColors: true,
    columns: [
      { name: "system", alignment: "left" },
      { name: "a message, one way", alignment: "right" },
      { name: "messages a second", alignment: "right" },
      { name: "a call and its result", alignment: "right" },
    ],
  });
  for (const { name, nanoseconds, rate, call } of rows) {
    table.addRow({
      system: name,
      "a message, one way": inNanoseconds(nanoseconds),
      "messages a second": inMillions(rate),
      "a call and its result": `${call.toFixed(1)} µs`,
    });
  }
  table.printTable();
}

/** What the figures say, in a sentence. @param missed share of time without a core */
export function verdict(
  rows: readonly TourRow[],
  files: readonly StreamedFile[],
  streamed: Streamed,
  missed: number,
): string {
  if (missed > CROWDED) {
    const share = Math.round(missed * 100);
    return `This machine is busy: a thread had no core for ${share} % of the time.\nThese figures say little.`;
  }
  const [own, other] = rows as [TourRow, TourRow];
  const rateBy = (move: string): number => {
    const arrived = [...streamed].find(([way]) => way.move === move)?.[1];
    return arrived === undefined ? 0 : rateOf(files, arrived);
  };
  const call = times(other.call / own.call);
  const message = times((other.nanoseconds ?? Number.NaN) / (own.nanoseconds ?? Number.NaN));
  const file = times(rateBy("put") / Math.max(rateBy("clone"), rateBy("transfer")));
  return `Against postMessage(), on this machine:\ncalls ${call}, messages ${message}, files ${file} as fast.`;
}

const times = (ratio: number): string => `${ratio < 10 ? ratio.toFixed(1) : Math.round(ratio)} times`;
