// The workers of a Node process's tasks: starts and ends workers, and says how each worker ended.
import type { Writable } from "node:stream";
import { TASK_ABSENT, TASK_STATE_OFFSET } from "../../../assembly/layout.js";
import type { SharedAtomics } from "../../kernel/atomics.js";
import { type MemoryMap, taskSlot } from "../../memory/map.js";
import { systemClock } from "../../support/clock.js";
import { type NodePort, type NodeWorker, nodeModule } from "../../support/host.js";
import { after } from "../../support/timers.js";
import { type Labels, labelLines } from "../output/labels.js";
import { DESCRIPTORS_CODE, descriptorsText } from "../process/start-limits.js";
import { BOOTSTRAP, type StartMessage } from "../start-message.js";
import type { Lifecycle } from "./lifecycle.js";
import type { MonitorOrders } from "./monitor.js";
import { portsOf } from "./task-ports.js";

/**
 * Node 20 aborts the whole process if a worker is terminated just as a module with a top-level await begins (V8, "Check
 * failed: (location_) != nullptr"; 1 in 500 at a random moment of the first 40 ms). For a task, the danger is over once it
 * has attached. For one that does not attach, this waits so many milliseconds after its start.
 */
const BEGINNING_MS = 1000;
/** Milliseconds between two looks whether the task has attached. */
const LOOK_MS = 1;
/** Milliseconds between two rings for a task that is being terminated. */
const RING_MS = 20;

const MORE_MEMORY = "; workerOptions.resourceLimits is its limit";
/** tsx's own `--import tsx` registers its loader in main threads only, and workers of Node 20 do not share that. */
const NO_TYPESCRIPT = `
Node ${process.version} does not load TypeScript in a task: name the compiled module, use Node 22.18 or later, or start node with a loader that it registers in each thread: "node --import ./register.mjs", where register.mjs calls register() of tsx/esm/api ("--import tsx" and the command tsx reach tasks from Node 22 on; docs/hosts.md)`;

/** The parts of an error that come from another thread. */
interface Failure {
  readonly name?: string | undefined;
  readonly message?: string | undefined;
  readonly code?: string | undefined;
  readonly stack?: string | undefined;
}

/**
 * The parts of a value that a task has thrown, which may be anything: null, or an object with other values under these names.
 */
function partsOf(thrown: unknown): Failure {
  const { name, message, code, stack } = (thrown ?? {}) as Record<keyof Failure, unknown>;
  const text = (part: unknown) => (part === undefined || typeof part === "object" ? undefined : String(part));
  return { name: text(name), message: text(message), code: text(code), stack: text(stack) };
}

interface TaskWorkersOptions {
  /** How the tasks' output is labeled; undefined: not at all. */
  readonly labels: Labels | undefined;
  /** Whether tasks sleep in foreign calls. */
  readonly isForeign: boolean;
  /** Where labeled lines go. */
  readonly output: { readonly stdout: Writable; readonly stderr: Writable };
}

export class TaskWorkers {
  readonly #lifecycle: Lifecycle;
  readonly #sync: SharedAtomics;
  readonly #map: MemoryMap;
  readonly #options: TaskWorkersOptions;
  #begunBy = 0;

  constructor(lifecycle: Lifecycle, sync: SharedAtomics, map: MemoryMap, options: TaskWorkersOptions) {
    this.#options = options;
    this.#lifecycle = lifecycle;
    this.#sync = sync;
    this.#map = map;
  }

  /** Starts the workers of tasks. */
  start({ entry, bootstraps, workerOptions }: MonitorOrders): void {
    this.#begunBy = systemClock.now() + BEGINNING_MS;
    for (const bootstrap of bootstraps) this.#start(entry as string, bootstrap, workerOptions);
  }

  #start(entry: string, bootstrap: StartMessage, workerOptions: Record<string, unknown>): void {
    const { Worker } = nodeModule("worker_threads") as typeof import("node:worker_threads");
    const { task, first = 0 } = bootstrap;
    const slot = taskSlot(this.#map, task - first);
    const { labels, output } = this.#options;
    const {
      workerData: userData,
      transferList = [],
      ...options
    } = workerOptions as { transferList?: NodePort[] } & Record<string, unknown>;
    const failures: unknown[] = [];
    const ended = (code: number): void => this.#report(entry, task, slot, code, failures);
    let worker: NodeWorker | undefined;
    this.#lifecycle.add(task, { terminate: () => worker && this.#terminateOnceBegun(slot, worker) });
    try {
      worker = new Worker(new URL(entry), {
        ...options,
        ...(labels && { stdout: true, stderr: true }),
        workerData: { ...(userData as object | undefined), [BOOTSTRAP]: bootstrap },
        transferList: [...transferList, ...(portsOf([bootstrap]) as unknown[] as NodePort[])],
      });
      worker.on("error", (error) => failures.push(error));
      worker.on("exit", ended);
      if (labels !== undefined) {
        labelLines(task, labels.stdout, worker.stdout, output.stdout);
        labelLines(task, labels.stderr, worker.stderr, output.stderr);
      }
    } catch (error) {
      failures.push(error);
      ended(1);
    }
  }

  #report(entry: string, task: number, slot: number, code: number, failures: readonly unknown[]): void {
    const { inspect } = nodeModule("util") as typeof import("node:util");
    const [failure] = failures;
    const error = partsOf(failure);
    const outOfMemory = error.code === "ERR_WORKER_OUT_OF_MEMORY";
    const cause = this.#lifecycle.isTerminated(task)
      ? "terminated"
      : failures.length === 0
        ? "exit"
        : outOfMemory
          ? "memory"
          : "error";
    const isError = error.message !== undefined;
    const other = typeof failure === "object" ? inspect(failure) : String(failure);
    const plain = isError ? `${error.name ?? "Error"}: ${error.message}` : other;
    // Node's own error of a thread, or of a module.
    if (cause === "error" && /\bEMFILE\b/.test(plain) && this.#isUnattached(slot)) {
      const why = `the thread can't be started: ${descriptorsText("tasks")}`;
      this.#lifecycle.end({ task, code, cause, error: why, errorCode: DESCRIPTORS_CODE }, why);
      return;
    }
    const hint = outOfMemory ? MORE_MEMORY : this.#noTypeScript(entry, slot, error) ? NO_TYPESCRIPT : "";
    const text = failures.length === 0 ? undefined : `${plain}${hint}`;
    // inspect() says "RangeError [Error]" or "Error [PamiError]", since an error of another thread comes as a plain Error.
    const inspected = () =>
      inspect(failure).replace(/^([ \t]*(?:\[\w+\]: )?)(?:(\w+) \[Error\]|Error \[(\w+Error)\])/gm, "$1$2$3");
    const shown = `${isError ? inspected() : plain}${hint}`;
    this.#lifecycle.end({ task, code, cause, error: text, errorCode: error.code, stack: error.stack }, shown);
  }

  /** Whether a task ended because its module, or one that it imports, is in TypeScript, and Node does not load that. */
  #noTypeScript(entry: string, slot: number, error: Failure): boolean {
    if ((process.features as { typescript?: unknown }).typescript) return false;
    if (error.code === "ERR_UNKNOWN_FILE_EXTENSION") return /"\.[cm]?tsx?"/.test(error.message ?? "");
    // Node reads some TypeScript extensions as JavaScript.
    return error.name === "SyntaxError" && /\.[cm]?tsx?$/.test(new URL(entry).pathname) && this.#isUnattached(slot);
  }

  /** Whether the task of a slot has not attached yet. */
  #isUnattached(slot: number): boolean {
    return this.#sync.loadWord(slot + TASK_STATE_OFFSET) === TASK_ABSENT;
  }

  #terminateOnceBegun(slot: number, worker: NodeWorker): void {
    if (this.#isUnattached(slot) && systemClock.now() < this.#begunBy) {
      after(LOOK_MS, () => this.#terminateOnceBegun(slot, worker));
      return;
    }
    void worker.terminate();
    this.#ringUntilGone(slot, worker);
  }

  /** V8 can't terminate a thread in a foreign call: the ring ends its sleep. The thread may be about to fall asleep again. */
  #ringUntilGone(slot: number, worker: NodeWorker): void {
    if (worker.threadId < 0) return;
    this.#sync.ringAlways(slot);
    if (this.#options.isForeign) after(RING_MS, () => this.#ringUntilGone(slot, worker));
  }
}
