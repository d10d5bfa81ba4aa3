// The worker of a Piscina: loads the program's files, and runs their functions.
import { createRequire } from "node:module";
import { getPriority, platform, setPriority } from "node:os";
import { pathToFileURL } from "node:url";
import { parentPort, workerData } from "node:worker_threads";
import { attach, type Message, type PamiError, SUCCESS } from "../index.js";
import { promised } from "../support/promise.js";
import { WORKER, type WorkerState } from "./state.js";
import { moved } from "./transfer.js";
import { FAILED, type Key, OK, READY, RUN, Values, type WorkerStart } from "./wire.js";

type Answer = Uint8Array | Promise<Uint8Array>;
type Task = (task: unknown) => unknown;

(globalThis as { [WORKER]?: WorkerState })[WORKER] = { workerData };

const require = createRequire(import.meta.url);
/** Functions by `filename/name`. */
const found = new Map<string, Task | null>();

/** A module as import() gives it, for require() may give the exports of CommonJS. */
function namespaceOf(exports: unknown): Record<string, unknown> {
  if ((exports as { __esModule?: boolean } | null)?.__esModule === true) return exports as Record<string, unknown>;
  const own = Object(exports) as Record<string, unknown>;
  const names = Object.getOwnPropertyNames(own).filter((name) => name !== "default");
  return { ...Object.fromEntries(names.map((name) => [name, own[name]])), default: exports };
}

/** The function of a file, or null if it has none of that name. */
async function load(filename: string, name: string): Promise<Task | null> {
  let task: unknown;
  try {
    task = await namespaceOf(require(filename))[name];
  } catch {
    // import() says what is wrong.
  }
  if (typeof task !== "function") {
    const module = (await import(pathToFileURL(filename).href)) as Record<string, unknown>;
    task = await module[name];
  }
  return typeof task === "function" ? (task as Task) : null;
}

/** As load(), once for each name. */
async function handlerOf(filename: string, name: string): Promise<Task | null> {
  const key = `${filename}/${name}`;
  let task = found.get(key);
  if (task === undefined) {
    task = await load(filename, name);
    found.set(key, task);
  }
  return task;
}

async function taskOf(filename: string, name: string): Promise<Task> {
  const task = await handlerOf(filename, name);
  if (task === null) throw new Error(`No handler function exported from ${filename}`);
  return task;
}

/** Behind a result comes what the task has printed, or not at all: its program may end with that result. */
function printed(): Promise<unknown> | undefined {
  const waits = [process.stdout, process.stderr]
    .filter(({ writableLength }) => writableLength > 0)
    .map((stream) => new Promise((resolve) => stream.write("", resolve)));
  return waits.length === 0 ? undefined : Promise.all(waits);
}

/** Runs tasks. */
class Runner {
  readonly #values: Values;
  readonly #start: WorkerStart;
  /** The function of the options, once it is loaded. */
  task: Task | undefined;

  constructor(start: WorkerStart) {
    this.#start = start;
    this.#values = new Values(start.parcels);
  }

  /** Runs a task. Its answer is never rejected. */
  run(bytes: Uint8Array): Uint8Array | Promise<Uint8Array> {
    const [key, value] = this.#values.unpack<Key>(bytes);
    const { task } = this;
    if (key !== 0 || task === undefined) return this.#found(key, value);
    try {
      const made = task(value);
      const awaited = promised(made);
      return awaited === undefined ? this.#over(made) : awaited.then((result) => this.#over(result), this.#failed);
    } catch (error) {
      return this.#failed(error);
    }
  }

  async #found(key: Key, value: unknown): Promise<Uint8Array> {
    try {
      const { filename, name } = this.#start;
      const task = await (key === 0 ? taskOf(filename as string, name) : taskOf(...key));
      return await this.#over(await task(value));
    } catch (error) {
      return this.#failed(error);
    }
  }

  #over(result: unknown): Uint8Array | Promise<Uint8Array> {
    const wait = printed();
    return wait === undefined ? this.#answer(result) : wait.then(() => this.#answer(result));
  }

  #answer(result: unknown): Uint8Array {
    try {
      return this.#values.pack(OK, ...moved(result));
    } catch (error) {
      return this.#failed(error);
    }
  }

  readonly #failed = (error: unknown): Uint8Array => {
    try {
      return this.#values.pack(FAILED, error, []);
    } catch (refused) {
      return this.#values.pack(FAILED, refused, []);
    }
  };
}

/** Gives the bytes of a message to `take`, at once or when all are here. */
function whole(message: Message, take: (bytes: Uint8Array) => Answer): Answer {
  if (message.immediate) return take(message.payload);
  const bytes = new Uint8Array(message.payloadBytes);
  return new Promise((resolve) => {
    message.receive(bytes, (_, result) => {
      if (result === SUCCESS) resolve(take(bytes));
    });
  });
}

async function serve(start: WorkerStart): Promise<void> {
  const { join, filename, name, niceIncrement } = start;
  // Linux has a priority for each thread, others for the process.
  if (niceIncrement !== 0 && platform() === "linux") setPriority(getPriority() + niceIncrement);
  const runner = new Runner(start);
  // A file without this function is no failure of the worker: tasks may name others.
  const [client, task] = await Promise.all([attach(join), filename === null ? null : handlerOf(filename, name)]);
  runner.task = task ?? undefined;
  const context = client.createContext();
  context.dispatch(RUN, (message) => whole(message, (bytes) => runner.run(bytes)));
  context.ready();
  parentPort?.postMessage({ [READY]: true });
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

parentPort?.once("message", (start: WorkerStart) => {
  serve(start).catch((error) => {
    // Uncaught, so that the Piscina hears of it.
    queueMicrotask(() => {
      throw error;
    });
  });
});
