// Runs a program as a job of its own, from a page or any other program of JavaScript: each rank is a thread.
import { type ErrorCode, type HostAbortSignal, info, launch, PamiError } from "../index.js";
import type { HostMessagePort, URLLike, WorkerLike } from "../support/like.js";
import { checkProgram, checkShared, type ProgramEnd } from "./program.js";
import { type ProgramSource, programBytes } from "./program-bytes.js";
import { programLimits } from "./program-limits.js";
import { hear, type NewsPort, type ProgramNews, type ProgramOrder } from "./program-news.js";
import type { MemoryTree } from "./wasi/memory-files.js";

/** What a program is launched with. */
export interface LaunchProgramOptions {
  /** The program. */
  readonly program: ProgramSource;
  /** Number of ranks (default: one for each hardware thread, at least 2). */
  readonly tasks?: number | undefined;
  /** The program's arguments, behind its name (default: none). */
  readonly args?: readonly string[] | undefined;
  /** The program's name: the first of its arguments (default "program"). */
  readonly name?: string | undefined;
  /** Variables of its environment (default: none). */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** Files of `/` and of the current folder, which are one folder. Each rank has its own copy (default: none). */
  readonly files?: MemoryTree | undefined;
  /** Standard input, as text; rank 0 reads it (default: none). */
  readonly input?: string | undefined;
  /**
   * Called with each line that a rank writes, without its end, while the program runs. Lines of a rank come in order; those of
   * different ranks in any. A line of 16,777,216 characters or more comes in parts. Default: lines go to the console, with a
   * label: `[3] text`.
   */
  readonly onLine?: ((line: ProgramLine) => void) | undefined;
  /** What becomes of the other ranks when one fails: they are ended (`abort`, the default), or go on (`report`). */
  readonly onError?: "abort" | "report" | undefined;
  /**
   * Memory of the job in bytes, of which the ranks get three quarters, of 2 GiB at most; messages have the rest. Default: in Node
   * 2 GiB and 16 MiB for each rank, 3.5 GiB at most; in a page 64 MiB for each rank, 1 GiB at most.
   */
  readonly heapBytes?: number | undefined;
  /** Whether each rank gets a memory of its own, as for `runProgram()`. */
  readonly isolate?: boolean | undefined;
  /** What MPI_Get_processor_name() gives (default "localhost"). */
  readonly hostName?: string | undefined;
  /** Aborting it ends all ranks. */
  readonly signal?: HostAbortSignal | undefined;
}

/** A line of output. */
export interface ProgramLine {
  /** The rank that has written it. */
  readonly rank: number;
  /** 1: standard output; 2: standard error. */
  readonly stream: 1 | 2;
  /** The line without its end. */
  readonly text: string;
}

/** How a rank ended. */
export interface RankEnd extends ProgramEnd {
  /** Its number. */
  readonly rank: number;
  /** Its files: those that it was given, with what it has changed; links are left out. None if it was ended. */
  readonly files: MemoryTree;
}

/** How a job of a program ended. */
export interface ProgramJobEnd {
  /** 0, or the exit code of the rank that failed first. */
  readonly code: number;
  /** In the order of their numbers. */
  readonly ranks: readonly RankEnd[];
}

/** Characters of a line without an end that are handed on: a loop may write one for ever. */
const PART_MIN = 2 ** 24;

/**
 * Runs a program of WebAssembly as the ranks of a job, each a thread, and resolves once all have ended. A page must be
 * cross-origin isolated.
 * @param entry URL of a module that calls `programTask()`: `new URL("./worker.js", import.meta.url)`; or a function that makes
 *   its worker, for bundlers: `() => new Worker(new URL("./worker.js", import.meta.url), { type: "module" })`
 * @throws PAMIR_PROGRAM the binary can't be loaded, or is no program; PAMIR_NOT_ISOLATED; what `launch()` throws
 */
export async function launchProgram(
  entry: URLLike | string | (() => WorkerLike),
  options: LaunchProgramOptions,
): Promise<ProgramJobEnd> {
  const { args = [], name = "program", env = {}, files = {}, input = "", onError = "abort", signal } = options;
  checkShared();
  const program = await programBytes(options.program);
  const { hostName, isolate } = options;
  checkProgram(program, isolate);
  const order: ProgramOrder = { program, args: [name, ...args], env, files, input, hostName, isolate };
  const ends = new Map<number, RankEnd>();
  let first = 0;
  const ended = (end: RankEnd): void => {
    if (ends.has(end.rank)) return;
    ends.set(end.rank, end);
    if (end.code !== 0) first ||= end.code;
  };
  const tasks = options.tasks ?? Math.max(2, info().hardwareThreads);
  const limits = programLimits(program, tasks);
  const job = await launch(entry, {
    tasks,
    ports: true,
    args: order,
    contexts: limits.contexts,
    heapBytes: options.heapBytes ?? limits.heapBytes,
    onError: "ignore",
    signal,
    onExit({ task, code, cause, error = `the rank was ended: ${cause}` }) {
      const isFirst = first === 0 && cause !== "terminated";
      ended({ rank: task, code: code || 1, error: new PamiError("PAMIR_PROGRAM", error), files: {} });
      if (isFirst && first !== 0 && onError === "abort") void job.terminate();
    },
  });
  const lines = new Lines(options.onLine ?? printLine);
  for (let rank = 0; rank < tasks; rank++) {
    const port = job.port(rank) as HostMessagePort & NewsPort;
    hear(port, (message) => {
      const news = message as ProgramNews;
      if ("stream" in news) return lines.add(rank, news.stream, news.bytes);
      lines.end(rank);
      const { code, error, files } = news;
      ended({
        rank,
        code,
        error: error && new PamiError((error.code ?? "PAMIR_PROGRAM") as ErrorCode, error.message),
        files,
      });
      port.postMessage("heard");
      if (code !== 0 && onError === "abort") void job.terminate();
    });
  }
  await job.exited;
  for (let rank = 0; rank < tasks; rank++) lines.end(rank);
  return { code: first, ranks: Array.from({ length: tasks }, (_, rank) => ends.get(rank) as RankEnd) };
}

function printLine({ rank, stream, text }: ProgramLine): void {
  (stream === 1 ? console.log : console.error)(`[${rank}] ${text}`);
}

/** Makes lines of what ranks write. */
class Lines {
  readonly #told: (line: ProgramLine) => void;
  /** By rank and stream: the line that is not over. */
  readonly #open = new Map<string, { readonly decoder: TextDecoder; text: string }>();

  constructor(told: (line: ProgramLine) => void) {
    this.#told = told;
  }

  add(rank: number, stream: 1 | 2, bytes: Uint8Array): void {
    const key = `${rank} ${stream}`;
    const open = this.#open.get(key) ?? { decoder: new TextDecoder(), text: "" };
    this.#open.set(key, open);
    // The part that came is divided, not the whole: the parts of a line without an end may be many.
    const [end = "", ...lines] = open.decoder.decode(bytes, { stream: true }).split("\n");
    open.text += end;
    for (const begin of lines) {
      this.#told({ rank, stream, text: open.text });
      open.text = begin;
    }
    if (open.text.length < PART_MIN) return;
    this.#told({ rank, stream, text: open.text });
    open.text = "";
  }

  /** A rank writes no more. */
  end(rank: number): void {
    for (const stream of [1, 2] as const) {
      const open = this.#open.get(`${rank} ${stream}`);
      const text = open && open.text + open.decoder.decode();
      this.#open.delete(`${rank} ${stream}`);
      if (text) this.#told({ rank, stream, text });
    }
  }
}
