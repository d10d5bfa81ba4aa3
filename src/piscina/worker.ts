// The worker of a Piscina: loads the program's files, and runs their functions.
import { createRequire } from "node:module";
import { getPriority, platform, setPriority } from "node:os";
import { pathToFileURL } from "node:url";
import { MessagePort, parentPort, receiveMessageOnPort, workerData } from "node:worker_threads";
import { attach, dispatchId, type InPlaceCodec, type PamiError } from "../index.js";
import { promised } from "../support/promise.js";
import { WORKER, type WorkerState } from "./state.js";
import { isMoved, moved } from "./transfer.js";
import {
  type Answer,
  bytesOf,
  clones,
  FAILED,
  JOINED,
  LATER,
  OK,
  post,
  posted,
  READY,
  RUN,
  type TaskRequest,
  type WorkerStart,
} from "./wire.js";

type Run = (task: unknown) => unknown;

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
  if (found.size >= KEPT_MAX) found.delete(found.keys().next().value as string);
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
  readonly replies: InPlaceCodec<Answer> = {
    encode: (answer) => {
      const bytes = isMoved(answer[2]) ? undefined : bytesOf(answer);
      if (bytes !== undefined) return bytes;
      this.#post(answer);
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
  #post(answer: Answer): void {
    const [id, state, value] = answer;
    try {
      if (isMoved(value)) {
        const [own, transfer] = moved(value, []);
        post(this.#port, [id, state, own], transfer, undefined);
      } else post(this.#port, answer, [], bytesOf(answer));
    } catch (error) {
      const failed: Answer = [id, FAILED, error];
      post(this.#port, failed, [], bytesOf(failed));
    }
  }

  /** Runs the tasks that have come by the port. */
  listen(): void {
    this.#port.on("message", (message: unknown) => this.#fromPort(message));
  }

  /** Runs those that have come by the port before a call. */
  drain(): void {
    for (let next = receiveMessageOnPort(this.#port); next !== undefined; next = receiveMessageOnPort(this.#port)) {
      this.#fromPort(next.message);
    }
  }

  #fromPort(message: unknown): void {
    if (message instanceof MessagePort) return void join(message, this.#port, this).catch(uncaught);
    const answer = this.answer(posted(message) as TaskRequest);
    if (answer instanceof Promise) void answer.then((late) => this.#post(late));
    else this.#post(answer);
  }

  /** Runs a task. The promise never rejects. */
  answer([id, value, filename, name]: TaskRequest): Answer | Promise<Answer> {
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
        (error): Answer => [id, FAILED, error],
      );
    } catch (error) {
      return [id, FAILED, error];
    }
  }

  #over(id: number, value: unknown): Answer | Promise<Answer> {
    const wait = printed();
    const answer: Answer = [id, OK, value];
    return wait === undefined ? answer : wait.then(() => answer);
  }

  async #found(id: number, value: unknown, filename?: string, name?: string): Promise<Answer> {
    const file = filename ?? (this.#start.filename as string);
    try {
      const run = await handlerOf(file, name ?? this.#start.name);
      if (run === null) throw new Error(`No handler function exported from ${file}`);
      return await this.#made(id, run, value);
    } catch (error) {
      return [id, FAILED, error];
    }
  }
}

/** Joins the job, and runs the tasks that come by calls, until the job ends. */
async function join(by: MessagePort, tasks: MessagePort, runner: Runner): Promise<void> {
  const client = await attach(by);
  const context = client.createContext();
  let isFirst = true;
  context.dispatch(dispatchId(RUN, clones, runner.replies), (request) => {
    if (isFirst) runner.drain();
    isFirst = false;
    return runner.answer(request as TaskRequest);
  });
  context.ready();
  tasks.postMessage(JOINED);
  while (!context.closed) {
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
  // A file without this function is no failure of the worker: tasks may name others.
  if (filename !== null) runner.run = (await handlerOf(filename, name)) ?? undefined;
  runner.listen();
  parentPort?.postMessage({ [READY]: true });
}

/** Throws where the Piscina hears of it. */
function uncaught(error: unknown): void {
  queueMicrotask(() => {
    throw error;
  });
}

parentPort?.once("message", (start: WorkerStart) => void serve(start).catch(uncaught));
