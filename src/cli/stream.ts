// `pamir stream`, the main job: real files go from task 0 to task 1, by pamir and by postMessage, and arrive unchanged.
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { Worker } from "node:worker_threads";
import { Table } from "console-table-printer";
import { type Client, type Context, EAGAIN, errorText, launch, SUCCESS } from "pamir";
import ProgressBar from "progress";
import { printable } from "../support/printable.js";
import { conduct, ONCE } from "./perf/conduct.js";
import { type PerfOptions, parsePerf } from "./perf/options.js";
import { reportOf } from "./perf/report.js";
import { BEGIN, BEGIN_PUT, CHUNK, DIGEST, DONE, END, END_PUT, READY } from "./stream-protocol.js";
import { say, UsageError } from "./usage.js";

/** What a path is called in the table. */
const PATHS = ["wasm send", "wasm put", "ts send", "ts put", "postMessage clone", "postMessage transfer"] as const;
export type Path = (typeof PATHS)[number];

/** Bytes of one message: a whole record, so that the receiver reads it in place. */
const CHUNK_BYTES = 65536;

const HEAP_BYTES_MIN = 64 * 1024 ** 2;

/** Files that the summary lists. */
const LISTED = 10;
/** Characters of a file's name there: so that a line has at most 100. */
const NAME_WIDTH = 21;

const HELP = `pamir stream: streams files from task 0 to task 1 and checks what arrives by SHA-256

Usage: pamir stream [--all] [--quick] [FILE]…

  FILE                  without a file: the running Node itself, and pamir's own sources where they are
  --all                 lists every file, with its SHA-256, rather than the ${LISTED} largest
  --quick               tiny runs of the small messages: shows that it works, their numbers mean little

Shown are bytes a second from the first send to the receiver's word that it has all (reading and hashing are not in it),
by pamir with its kernels in WebAssembly and in TypeScript, and by postMessage with cloned and with transferred buffers;
the total of each way first. \`send\` is messages of 64 KiB; \`put\` one put from region to region and a fence, which tells
that all is there. Then latency and rate of small messages.

Exit codes: 0 all digests agree; 1 one differs; 2 a file can't be read.
`;

/** Streams files and checks what arrives; returns the exit code. */
export async function stream(args: string[]): Promise<number> {
  const { values, positionals: names } = parseArgs({
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
  const files = names.length > 0 ? names.map(checkFile) : defaultFiles();
  const contents = files.map(readFile);
  const digests = contents.map(sha256);
  const results = new Map<Path, Arrived[]>();
  // On a terminal only: elsewhere it writes nothing.
  const bar = new ProgressBar("[:bar] :current of :total files, :way", {
    total: files.length * PATHS.length,
    width: 30,
    clear: true,
    stream: process.stderr,
  });
  for (const way of PATHS) {
    const arrived = (): void => bar.tick({ way });
    bar.render({ way });
    results.set(
      way,
      way.startsWith("postMessage")
        ? await overPostMessage(contents, way, arrived)
        : await overPamir(contents, way, arrived),
    );
  }
  const code = printFiles(files, contents, digests, results, values.all ?? false);
  await printSpeeds(values.quick ?? false);
  process.stdout.write(
    `Just shown: ${files.length} ${files.length === 1 ? "file" : "files"} went from one thread of this process to another in ${PATHS.length} ways, as messages (send), by one\nput each, and by postMessage. \`pamir perf\` measures at length, \`pamir stream FILE…\` streams your files.\n`,
  );
  return code;
}

export interface Arrived {
  readonly digest: string;
  /** Bytes a second, from the first send to the receiver's word that it has everything. */
  readonly rate: number;
}

async function overPamir(contents: Buffer[], path: Path, hasArrived: () => void): Promise<Arrived[]> {
  const kernel = path.startsWith("wasm") ? "wasm" : "ts";
  // For a file that is put there are two regions of its size.
  const heapBytes = 2 * Math.max(...contents.map(({ length }) => length)) + HEAP_BYTES_MIN;
  const job = await launch(new URL("./tasks/stream.js", import.meta.url), { tasks: 2, join: true, kernel, heapBytes });
  const { client } = job;
  const context = client.createContext();
  const answers: Answers = { ready: false, done: false, digest: "", handle: 0 };
  context.dispatch(READY, (message) => {
    answers.ready = true;
    if (message.headerBytes > 0) answers.handle = new Float64Array(message.header.slice().buffer)[0] as number;
  });
  context.dispatch(DONE, () => {
    answers.done = true;
  });
  context.dispatch(DIGEST, (message) => {
    answers.digest = Buffer.from(message.payload).toString("hex");
  });
  const arrived: Arrived[] = [];
  const move = path.endsWith("put") ? putFile : streamFile;
  for (const content of contents) {
    arrived.push(move(client, context, content, answers));
    hasArrived();
  }
  client.close();
  await job.terminate();
  return arrived;
}

/** What task 1 has said of the file in hand. */
interface Answers {
  ready: boolean;
  done: boolean;
  digest: string;
  handle: number;
}

/** One put, from a region of this task, into which the file was read, to one of task 1; a fence tells that it is there. */
function putFile(client: Client, context: Context, content: Buffer, answers: Answers): Arrived {
  const to = client.endpoint(1);
  answers.ready = false;
  answers.digest = "";
  must(context.sendImmediate(to, BEGIN_PUT, new Float64Array([content.length])));
  wait(context, () => answers.ready);
  using local = client.createRegion(Math.max(1, content.length));
  local.bytes.set(content);
  let isThere = false;
  const start = performance.now();
  must(context.put({ to, local, remote: answers.handle, bytes: content.length }));
  must(
    context.fence(to, () => {
      isThere = true;
    }),
  );
  wait(context, () => isThere);
  const seconds = (performance.now() - start) / 1000;
  must(context.sendImmediate(to, END_PUT));
  wait(context, () => answers.digest !== "");
  return { digest: answers.digest, rate: content.length / seconds };
}

function streamFile(client: Client, context: Context, content: Buffer, answers: Answers): Arrived {
  const to = client.endpoint(1);
  answers.ready = answers.done = false;
  answers.digest = "";
  must(context.sendImmediate(to, BEGIN, new Float64Array([content.length])));
  wait(context, () => answers.ready);
  const start = performance.now();
  const parameters = { to, dispatch: CHUNK, payload: content as Uint8Array, queue: false };
  for (let offset = 0; offset < content.length; offset += CHUNK_BYTES) {
    parameters.payload = content.subarray(offset, offset + CHUNK_BYTES);
    let result = context.send(parameters);
    while (result === EAGAIN) {
      context.advance(100);
      result = context.send(parameters);
    }
    must(result);
  }
  must(context.sendImmediate(to, END));
  wait(context, () => answers.done);
  const seconds = (performance.now() - start) / 1000;
  wait(context, () => answers.digest !== "");
  return { digest: answers.digest, rate: content.length / seconds };
}

function must(result: number): void {
  if (result !== SUCCESS) throw new Error(`task 1 does not take the file: ${errorText(result)}`);
}

function wait(context: Context, condition: () => boolean): void {
  must(context.advanceUntil(condition, { timeout: 60_000 }));
}

/**
 * The same with postMessage. Cloning a view clones all of its buffer, so each chunk has one of its own: made before the
 * clock runs for `clone`, which copies it again; while it runs for `transfer`, whose only copy this is.
 */
async function overPostMessage(contents: Buffer[], path: Path, hasArrived: () => void): Promise<Arrived[]> {
  const transfer = path.endsWith("transfer");
  const worker = new Worker(new URL("./tasks/stream-post-message.js", import.meta.url));
  const answer = () => new Promise<unknown>((done) => worker.once("message", done));
  const arrived: Arrived[] = [];
  for (const content of contents) {
    const starts = Array.from({ length: Math.ceil(content.length / CHUNK_BYTES) }, (_, i) => i * CHUNK_BYTES);
    const cut = (offset: number) => new Uint8Array(content.subarray(offset, offset + CHUNK_BYTES));
    const chunks = transfer ? [] : starts.map(cut);
    const ready = answer();
    worker.postMessage(content.length);
    await ready;
    const done = answer();
    const start = performance.now();
    for (const chunk of chunks) worker.postMessage(chunk);
    if (transfer) {
      for (const offset of starts) {
        const chunk = cut(offset);
        worker.postMessage(chunk, [chunk.buffer]);
      }
    }
    worker.postMessage("end");
    await done;
    const seconds = (performance.now() - start) / 1000;
    const digest = answer();
    worker.postMessage("digest");
    arrived.push({ digest: String(await digest), rate: content.length / seconds });
    hasArrived();
  }
  await worker.terminate();
  return arrived;
}

/**
 * Prints the totals of each way, then the largest files, or all; 1 if a digest differs from that of what was sent.
 * @param all every file, and its SHA-256 as `sha256sum` prints it
 */
export function printFiles(
  files: string[],
  contents: Buffer[],
  digests: string[],
  results: Map<Path, Arrived[]>,
  all: boolean,
): number {
  const names = files.map((file) => {
    const short = relative(process.cwd(), file);
    return printable(short.startsWith("..") || short.length >= file.length ? file : short);
  });
  const sizes = contents.map(({ length }) => length);
  const bytes = sizes.reduce((sum, size) => sum + size, 0);
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
  for (const way of PATHS) {
    const arrived = results.get(way) as Arrived[];
    const differing = arrived.filter(({ digest }, i) => digest !== digests[i]).length;
    wrong += differing;
    const seconds = arrived.reduce((sum, { rate }, i) => sum + (rate > 0 ? (sizes[i] as number) / rate : 0), 0);
    totals.addRow({
      way,
      files: files.length,
      bytes: bytes.toLocaleString("en"),
      "GB/s": seconds > 0 ? (bytes / seconds / 1e9).toFixed(2) : "–",
      "SHA-256": differing === 0 ? "all equal" : `${differing} WRONG`,
    });
  }
  totals.printTable();
  const order = [...files.keys()].sort((a, b) => (sizes[b] as number) - (sizes[a] as number));
  const listed = all ? [...files.keys()] : order.slice(0, LISTED);
  const rest = files.length - listed.length;
  process.stdout.write(
    rest > 0 ? `GB/s of the ${LISTED} largest files (--all lists all ${files.length}):\n` : "GB/s of each file:\n",
  );
  const table = new Table({
    shouldDisableColors: true,
    columns: [
      { name: "file", alignment: "left" },
      { name: "bytes", alignment: "right" },
      ...PATHS.map((path) => ({ name: path, title: path.replace("postMessage ", ""), alignment: "right" as const })),
    ],
  });
  for (const i of listed) {
    const name = names[i] as string;
    const row: Record<string, string> = {
      file: name.length > NAME_WIDTH ? `…${name.slice(1 - NAME_WIDTH)}` : name,
      bytes: (sizes[i] as number).toLocaleString("en"),
    };
    for (const path of PATHS) {
      const { digest, rate } = (results.get(path) as Arrived[])[i] as Arrived;
      row[path] = digest === digests[i] ? (rate / 1e9).toFixed(2) : "WRONG";
    }
    table.addRow(row);
  }
  table.printTable();
  if (all) for (const [i, name] of names.entries()) process.stdout.write(`${digests[i]}  ${name}\n`);
  const broken = files.filter((_, i) => PATHS.some((path) => results.get(path)?.[i]?.digest !== digests[i]));
  if (wrong > 0) {
    say(`pamir stream: ${wrong} digests differ from what was sent: ${broken.join(", ")}`);
  } else process.stdout.write(`${files.length} files × ${PATHS.length} ways: every SHA-256 equals that of the file.\n`);
  return wrong > 0 ? 1 : 0;
}

/** Latency and rate of small messages, in short: `pamir perf` measures them at length, and beside more systems. */
async function printSpeeds(quick: boolean): Promise<void> {
  const systems = ["pamir-wasm", "pamir-ts", "postMessage"];
  const asked = [...["am_lat", "am_rate"].flatMap((name) => ["--test", name]), "--runs", "2"];
  if (quick) asked.push("--quick");
  const outcome = await conduct(
    parsePerf([...asked, ...systems.flatMap((name) => ["--system", name])]) as PerfOptions,
    () => {},
    // One lucky hand-off, 72 ns where 256 are usual, has every run repeated: that took two minutes in one run of four.
    ONCE,
  );
  const { results } = reportOf(outcome);
  const table = new Table({
    shouldDisableColors: true,
    columns: [
      { name: "8-byte messages", alignment: "left" },
      { name: "one way", alignment: "right" },
      { name: "messages a second", alignment: "right" },
    ],
  });
  for (const system of systems) {
    const find = (test: string) => results.find((result) => result.system === system && result.test === test);
    const nanoseconds = find("am_lat")?.p50_ns;
    const rate = find("am_rate")?.messages_per_s;
    table.addRow({
      "8-byte messages": system,
      "one way": nanoseconds == null ? "–" : `${Math.round(nanoseconds).toLocaleString("en")} ns`,
      "messages a second": rate == null ? "–" : `${(rate / 1e6).toFixed(2)} M`,
    });
  }
  table.printTable();
  const [handoff = Number.NaN] = [...outcome.handoffs].sort((a, b) => a - b);
  process.stdout.write(`For scale: two threads that only hand a flag to each other take ${handoff.toFixed(0)} ns.\n`);
}

function sha256(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

function checkFile(name: string): string {
  const file = resolve(name);
  try {
    if (!statSync(file).isFile()) throw new UsageError(`${name} is not a file`);
    return file;
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(`can't read ${name}: ${(error as NodeJS.ErrnoException).code ?? error}`);
  }
}

function readFile(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    throw new UsageError(`can't read ${file}: ${(error as NodeJS.ErrnoException).code ?? error}`);
  }
}

/** The running Node, and pamir's own sources where they are at hand. */
function defaultFiles(): string[] {
  const root = fileURLToPath(new URL("..", import.meta.url));
  const sources = ["assembly", "src"]
    .filter((folder) => existsSync(resolve(root, folder)))
    .flatMap((folder) =>
      readdirSync(resolve(root, folder), { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile() && entry.name.endsWith(".ts"))
        .map((entry) => resolve(entry.parentPath, entry.name)),
    );
  return [process.execPath, ...sources.sort((a, b) => statSync(b).size - statSync(a).size)];
}
