// The worker of a Piscina: loads the program's files, and runs their functions.
import { createRequire } from "node:module";
import { getPriority, platform, setPriority } from "node:os";
import { pathToFileURL } from "node:url";
import { type MessagePort, parentPort, receiveMessageOnPort, workerData } from "node:worker_threads";
import { attach, dispatchId, type InPlaceCodec, type PamiError } from "../index.js";
import { promised } from "../support/promise.js";
import { WORKER, type WorkerState } from "./state.js";
import { moved } from "./transfer.js";
import { clones, FAILED, isLeft, JOINED, LATER, OK, READY, type Request, RUN, type WorkerStart } from "./wire.js";

type Run = (task: unknown) => unknown;

/** How a task has ended. */
interface Answer {
  readonly id: number;
  readonly state: number;
  readonly value: unknown;
}

(globalThis as { [WORKER]?: WorkerState })[WORKER] = { workerData };

const require = createRequire(import.meta.url);
/** Functions that are kept at the most. */
const KEPT_MAX = 1000;
/** Functions by the names of their files and exports. */
const found = new Map<string, Run>();

/** A module as import() gives it, for require() may give the exports of CommonJS. */
function namespaceOf(exports: unknown): Record<string, unknown> {
  if ((exports as { __esModule?: boolean } | null)?.__esModule === true) return exports as Record<string, unknown>;
  const own = Object(exports) as Record<string, unknown>;
  const names = Object.getOwnPropertyNames(own).filter((name) => name !== "default");
  return { ...Object.fromEntries(names.map((name) => [name, own[name]])), default: exports };
}

/** The function of a file, or null if it has none of that name. */
async function load(filename: string, name: string): Promise<Run | null> {
  let run: unknown;
  try {
    run = await namespaceOf(require(filename))[name];
  } catch {
    // import() says what is wrong.
  }
  if (typeof run !== "function") {
    const module = (await import(pathToFileURL(filename).href)) as Record<string, unknown>;
    run = await module[name];
  }
  return typeof run === "function" ? (run as Run) : null;
}

/** As load(), once for each name that there is. */
async function handlerOf(filename: string, name: string): Promise<Run | null> {
  const run = await load(filename, name);
  if (run === null) return null;
  if (found.size >= KEPT_MAX) for (const [oldest] of found) if (found.size >= KEPT_MAX) found.delete(oldest);
  found.set(`${filename}/${name}`, run);
  return run;
}

/** Behind a result comes what the task has printed, or not at all: its program may end with that result. */
function printed(): Promise<unknown> | undefined {
  const { stdout, stderr } = process;
  if (stdout.writableLength === 0 && stderr.writableLength === 0) return undefined;
  const full = [stdout, stderr].filter(({ writableLength }) => writableLength > 0);
  return Promise.all(full.map((stream) => new Promise((resolve) => stream.write("", resolve))));
}

/** Runs tasks. */
class Runner {
  readonly #start: WorkerStart;
  readonly #port: MessagePort;
  /** The function of the options, once it is loaded. */
  run: Run | undefined;
  /** Answers to calls. What clones can't have goes by the port. */
  readonly replies: InPlaceCodec<Answer> = {
    encode: (answer) => {
      const [value, transfer] = moved(answer.value);
      if (transfer.length === 0) {
        try {
          return clones.encode([answer.state, value]);
        } catch (error) {
          if (!isLeft(error)) throw error;
        }
      }
      this.post(answer);
      return clones.encode(LATER);
    },
    decode: () => {
      throw new Error("a worker is asked, and asks not");
    },
    inPlace: true,
  };

  constructor(start: WorkerStart) {
    this.#start = start;
    this.#port = start.port;
  }

  /** Answers by the port. */
  post({ id, state, value }: Answer): void {
    const [own, transfer] = moved(value);
    try {
      this.#port.postMessage([id, state, own], transfer as never[]);
    } catch (error) {
      this.#port.postMessage([id, FAILED, error]);
    }
  }

  /** Runs the tasks that have come by the port. */
  listen(): void {
    this.#port.on("message", (request: Request) => this.#fromPort(request));
  }

  /** Runs those that have come by the port before a call. */
  drain(): void {
    for (let next = receiveMessageOnPort(this.#port); next !== undefined; next = receiveMessageOnPort(this.#port)) {
      this.#fromPort(next.message as Request);
    }
  }

  #fromPort(request: Request): void {
    const answer = this.answer(request);
    if (answer instanceof Promise) void answer.then((late) => this.post(late));
    else this.post(answer);
  }

  /** Runs a task. The promise never rejects. */
  answer([id, value, filename, name]: Request): Answer | Promise<Answer> {
    const run = filename === undefined ? this.run : found.get(`${filename}/${name}`);
    return run === undefined ? this.#found(id, value, filename, name) : this.#made(id, run, value);
  }

  #made(id: number, run: Run, value: unknown): Answer | Promise<Answer> {
    try {
      const made = run(value);
      const awaited = promised(made);
      if (awaited === undefined) return this.#over(id, made);
      return awaited.then(
        (result) => this.#over(id, result),
        (error) => ({ id, state: FAILED, value: error }),
      );
    } catch (error) {
      return { id, state: FAILED, value: error };
    }
  }

  #over(id: number, value: unknown): Answer | Promise<Answer> {
    const wait = printed();
    const answer: Answer = { id, state: OK, value };
    return wait === undefined ? answer : wait.then(() => answer);
  }

  async #found(id: number, value: unknown, filename?: string, name?: string): Promise<Answer> {
    const file = filename ?? (this.#start.filename as string);
    try {
      const run = await handlerOf(file, name ?? this.#start.name);
      if (run === null) throw new Error(`No handler function exported from ${file}`);
      return await this.#made(id, run, value);
    } catch (error) {
      return { id, state: FAILED, value: error };
    }
  }
}

/** Joins the job, and runs the tasks that come by calls, until the job ends. */
async function join(start: WorkerStart, runner: Runner, loaded: Promise<unknown>): Promise<void> {
  const client = await attach(start.join);
  const context = client.createContext();
  let isFirst = true;
  context.dispatch(dispatchId(RUN, clones, runner.replies), (request) => {
    if (isFirst) runner.drain();
    isFirst = false;
    return runner.answer(request as Request);
  });
  context.ready();
  await loaded;
  start.port.postMessage(JOINED);
  for (;;) {
    try {
      await context.progress();
    } catch (error) {
      const { code } = error as PamiError;
      if (code === "PAMIR_CLOSED") return;
      if (code !== "PAMIR_INTERRUPTED") throw error;
    }
  }
}

async function serve(start: WorkerStart): Promise<void> {
  const { filename, name, niceIncrement } = start;
  // Linux has a priority for each thread, others for the process.
  if (niceIncrement !== 0 && platform() === "linux") setPriority(getPriority() + niceIncrement);
  const runner = new Runner(start);
  const loading = filename === null ? Promise.resolve(null) : handlerOf(filename, name);
  const listening = loading.then((run) => {
    // A file without this function is no failure of the worker: tasks may name others.
    runner.run = run ?? undefined;
    runner.listen();
    parentPort?.postMessage({ [READY]: true });
  });
  await Promise.all([listening, join(start, runner, listening)]);
}

parentPort?.once("message", (start: WorkerStart) => {
  serve(start).catch((error) => {
    // Uncaught, so that the Piscina hears of it.
    queueMicrotask(() => {
      throw error;
    });
  });
});
