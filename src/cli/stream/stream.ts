// `pamir stream`: real files go from task 0 to task 1, by pamir and by postMessage, and arrive unchanged.
import { relative } from "node:path";
import { parseArgs } from "node:util";
import { Table } from "console-table-printer";
import ProgressBar from "progress";
import { printable } from "../../support/printable.js";
import { say } from "../usage.js";
import { filesOf, type StreamedFile } from "./files.js";
import { printSpeeds, speedsOf } from "./speeds.js";
import { type FileArrival, streamBy, WAYS, type Way } from "./ways.js";

/** Files that the summary lists. */
const LISTED = 10;
/** Characters of a file's name there: so that a line has at most 100. */
const NAME_WIDTH = 21;

const HELP = `pamir stream: streams files from task 0 to task 1 and checks what arrives by SHA-256

Usage: pamir stream [--all] [--quick] [FILE]…

  FILE                  without a file: the largest files of 1 to 32 MiB of the packages at hand
  --all                 lists every file, with its SHA-256, rather than the ${LISTED} largest
  --quick               tiny runs of the small messages: shows that it works, their numbers mean little

Shown are bytes a second from the first send to the receiver's word that it has all (reading and hashing are not in it),
by pamir with its kernels in WebAssembly and in TypeScript (pamir-ts), and by postMessage with cloned and with transferred
buffers; the total of each way first. \`send\` is messages of 64 KiB; \`put\` one put from region to region and a fence,
which tells that all is there. Then latency and rate of small messages.

Exit codes: 0 all digests agree; 1 one differs; 2 a file can't be read.
`;

/** What each way has brought, in the order of the files. */
export type Streamed = ReadonlyMap<Way, readonly FileArrival[]>;

/** Streams files and checks what arrives; returns the exit code. */
export async function stream(args: string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: { help: { type: "boolean", short: "h" }, all: { type: "boolean" }, quick: { type: "boolean" } },
  });
  if (values.help) {
    process.stdout.write(HELP);
    return 0;
  }
  // In a folder that is gone, this throws: workers would.
  process.cwd();
  const files = filesOf(positionals);
  const streamed = await streamAll(files, WAYS);
  const code = printFiles(files, streamed, values.all ?? false);
  printSpeeds(await speedsOf(["pamir-wasm", "pamir-ts", "postMessage"], values.quick ?? false));
  const count = `${files.length} ${files.length === 1 ? "file" : "files"}`;
  process.stdout.write(
    `Just shown: ${count} went from one thread of this process to another in ${WAYS.length} ways.\n` +
      "`pamir perf` measures at length, `pamir stream FILE…` streams your files.\n",
  );
  return code;
}

/** Streams files by several ways, with a bar of progress on a terminal. */
export async function streamAll(files: readonly StreamedFile[], ways: readonly Way[]): Promise<Streamed> {
  const contents = files.map(({ content }) => content);
  const streamed = new Map<Way, FileArrival[]>();
  // On a terminal only: elsewhere it writes nothing.
  const bar = new ProgressBar("[:bar] :current of :total files, :way", {
    total: files.length * ways.length,
    width: 30,
    clear: true,
    stream: process.stderr,
  });
  for (const way of ways) {
    bar.render({ way: way.name });
    streamed.set(way, await streamBy(way, contents, () => bar.tick({ way: way.name })));
  }
  return streamed;
}

/**
 * Prints the totals of each way.
 * @returns how many digests differ from that of what was sent
 */
export function printTotals(files: readonly StreamedFile[], streamed: Streamed): number {
  const bytes = files.reduce((sum, { content }) => sum + content.length, 0);
  const totals = new Table({
    shouldDisableColors: true,
    columns: [
      { name: "way", alignment: "left" },
      { name: "files", alignment: "right" },
      { name: "bytes", alignment: "right" },
      { name: "GB/s", alignment: "right" },
      { name: "SHA-256", alignment: "left" },
    ],
  });
  let wrong = 0;
  for (const [way, arrived] of streamed) {
    const differing = arrived.filter(({ digest }, i) => digest !== files[i]?.digest).length;
    wrong += differing;
    const rate = rateOf(files, arrived);
    totals.addRow({
      way: way.name,
      files: files.length,
      bytes: bytes.toLocaleString("en"),
      "GB/s": rate > 0 ? (rate / 1e9).toFixed(2) : "–",
      "SHA-256": differing === 0 ? "all equal" : `${differing} WRONG`,
    });
  }
  totals.printTable();
  return wrong;
}

/** Bytes a second of all files together; 0: they have no bytes. */
export function rateOf(files: readonly StreamedFile[], arrived: readonly FileArrival[]): number {
  let bytes = 0;
  let seconds = 0;
  for (const [i, { content }] of files.entries()) {
    const { rate } = arrived[i] as FileArrival;
    bytes += content.length;
    if (rate > 0) seconds += content.length / rate;
  }
  return seconds > 0 ? bytes / seconds : 0;
}

/**
 * Prints the totals of each way, then the largest files, or all; 1 if a digest differs from that of what was sent.
 * @param all every file, and its SHA-256 as `sha256sum` prints it
 */
export function printFiles(files: readonly StreamedFile[], streamed: Streamed, all: boolean): number {
  const wrong = printTotals(files, streamed);
  const bySize = files.toSorted((a, b) => b.content.length - a.content.length);
  const listed = all ? files : bySize.slice(0, LISTED);
  process.stdout.write(
    listed.length < files.length
      ? `GB/s of the ${LISTED} largest files (--all lists all ${files.length}):\n`
      : "GB/s of each file:\n",
  );
  const table = new Table({
    shouldDisableColors: true,
    columns: [
      { name: "file", alignment: "left" },
      { name: "bytes", alignment: "right" },
      ...[...streamed.keys()].map(({ short }) => ({ name: short, alignment: "right" as const })),
    ],
  });
  for (const file of listed) {
    const name = shownName(file.path);
    const row: Record<string, string> = {
      file: name.length > NAME_WIDTH ? `…${name.slice(1 - NAME_WIDTH)}` : name,
      bytes: file.content.length.toLocaleString("en"),
    };
    for (const [{ short }, arrived] of streamed) {
      const { digest, rate } = arrived[files.indexOf(file)] as FileArrival;
      row[short] = digest === file.digest ? (rate / 1e9).toFixed(2) : "WRONG";
    }
    table.addRow(row);
  }
  table.printTable();
  if (all) for (const { path, digest } of files) process.stdout.write(`${digest}  ${shownName(path)}\n`);
  if (wrong === 0) {
    process.stdout.write(`${files.length} files × ${streamed.size} ways: every SHA-256 equals that of the file.\n`);
    return 0;
  }
  const broken = files.filter((file, i) =>
    [...streamed.values()].some((arrived) => arrived[i]?.digest !== file.digest),
  );
  say(`pamir stream: ${wrong} digests differ from what was sent: ${broken.map(({ path }) => path).join(", ")}`);
  return 1;
}

/** A file's name from the current folder, or its path if that is shorter. */
function shownName(path: string): string {
  const short = relative(process.cwd(), path);
  return printable(short.startsWith("..") || short.length >= path.length ? path : short);
}
