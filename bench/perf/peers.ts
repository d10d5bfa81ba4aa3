// Starts what is measured inside this process: jobs of pamir, and the peers in JavaScript.
import { join } from "node:path";
import { MessageChannel, type MessagePort, Worker } from "node:worker_threads";
import { info, type KernelName, launch } from "pamir";
import { after } from "../../src/support/timers.js";
import { withFolder } from "./clean-up.js";
import {
  blocksOf,
  type Figures,
  isCollective,
  makeResultFile,
  makeResults,
  type PerfWork,
  placesOf,
  readResults,
  type TestName,
} from "./work.js";

/** What a peer's worker is told. */
export interface PeerData {
  readonly peer: string;
  readonly thread: number;
  readonly threads: number;
  readonly work: PerfWork;
  readonly port?: MessagePort;
  readonly memory?: WebAssembly.Memory;
  /** Where the peer's package is. */
  readonly module?: string;
  readonly ringbuf?: { buffers: SharedArrayBuffer[]; stop: SharedArrayBuffer };
}

export type Order = Omit<PerfWork, "results" | "barrier">;

const RINGBUF_BYTES = 262144;

/** Thrown by a run that finds what this machine lacks: it is left out, and has not failed. */
export class Missing extends Error {}

/** Milliseconds after which a run is ended: far more than any takes. */
export function limitOf({ seconds }: Order): number {
  return 60_000 + 10_000 * seconds;
}

/** Waits for a run, and ends one that takes too long. */
export async function within<T>(milliseconds: number, run: Promise<T>, end: () => unknown): Promise<T> {
  let late = false;
  const stop = after(milliseconds, () => {
    late = true;
    end();
  });
  try {
    const result = await run;
    if (late) throw new Error(`ended: not done after ${milliseconds / 1000} s`);
    return result;
  } finally {
    stop();
  }
}

/** Of a job, beside the payloads of rndv_bw and the vectors of collective operations. */
const HEAP_BYTES = 2 ** 25;
/** Of each further task of those. */
const TASK_HEAP_BYTES = 2 ** 20;

/** The kernels in turn, one for each task. */
function kernelsOf(kernels: readonly KernelName[], tasks: number): KernelName[] {
  return Array.from({ length: tasks }, (_, task) => kernels[task % kernels.length] as KernelName);
}

/** A run of pamir's tasks; rejects with the error of a task that failed. */
export async function runPamir(
  kernel: KernelName | readonly KernelName[],
  order: Order,
  inProcesses = false,
): Promise<Figures> {
  const { tasks } = order;
  const kernels = typeof kernel === "string" ? kernel : kernelsOf(kernel, tasks);
  const runIn = (shared: Pick<PerfWork, "results" | "barrier">): Promise<Figures> =>
    runTasks(kernels, { ...order, ...shared }, order, inProcesses);
  if (!inProcesses) return runIn({ results: makeResults(tasks), barrier: new SharedArrayBuffer(4) });
  return withFolder((folder) =>
    runIn({ results: makeResultFile(join(folder, "results"), tasks), barrier: join(folder, "barrier") }),
  );
}

async function runTasks(
  kernel: KernelName | readonly KernelName[],
  work: PerfWork,
  order: Order,
  inProcesses: boolean,
): Promise<Figures> {
  const { test, tasks, bytes } = order;
  const entry = new URL(isCollective(test) ? "./tasks/collectives.js" : "./tasks/perf.js", import.meta.url);
  // Tasks of one context: what a program of so many tasks would ask for.
  const heap = isCollective(test)
    ? { heapBytes: 2 * blocksOf(test, tasks) * bytes + HEAP_BYTES + tasks * TASK_HEAP_BYTES }
    : test === "rndv_bw"
      ? { heapBytes: 2 * placesOf(bytes) * bytes + HEAP_BYTES }
      : {};
  const processes = inProcesses ? { processes: tasks } : {};
  // What is thrown below says how a task failed.
  const job = await launch(entry, { tasks, kernel, contexts: 1, args: work, onError: "ignore", ...processes, ...heap });
  if (inProcesses && info().processes === "link") {
    await job.terminate();
    throw new Missing(info().why);
  }
  const exits = await within(limitOf(order), job.exited, () => job.terminate());
  const failed = exits.find(({ code }) => code !== 0);
  if (failed !== undefined) throw new Error(`task ${failed.task}: ${failed.error ?? `exit code ${failed.code}`}`);
  return readResults(work.results);
}

/** Where a package is, if it is installed. */
export function findPackage(name: string): string | undefined {
  try {
    return import.meta.resolve(name);
  } catch {
    return undefined;
  }
}

/** How many threads a peer uses. */
function threadsOf(peer: string): number {
  return peer === "wasmcall" || peer === "memcpy" ? 1 : 2;
}

/** A run of a peer in JavaScript, on workers of its own. */
export async function runPeer(peer: string, order: Order): Promise<Figures> {
  const threads = threadsOf(peer);
  const work: PerfWork = { ...order, results: makeResults(threads), barrier: new SharedArrayBuffer(4) };
  const isSocket = peer === "dgram" || peer === "tcp" || peer === "ws";
  const posts = isSocket || peer.startsWith("postMessage");
  const channel = posts ? new MessageChannel() : undefined;
  const places = order.test === "rndv_bw" ? 2 * placesOf(order.bytes) : 2;
  const pages = Math.ceil((places * Math.max(order.bytes, 4096)) / 65536) + 1;
  const shared = posts ? {} : { memory: new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true }) };
  const rings = [0, 1].map(() => new SharedArrayBuffer(8 + Math.max(RINGBUF_BYTES, 2 * order.bytes)));
  const stop = new SharedArrayBuffer(4);
  const module = peer === "ringbuf.js" || peer === "ws" ? findPackage(peer) : undefined;
  const workers: Worker[] = [];
  const ends = Array.from({ length: threads }, (_, thread) => {
    const port = thread === 0 ? channel?.port1 : channel?.port2;
    const data: PeerData = {
      peer,
      thread,
      threads,
      work,
      ...shared,
      ...(port === undefined ? {} : { port }),
      ...(module === undefined ? {} : { module }),
      ...(peer === "ringbuf.js" ? { ringbuf: { buffers: thread === 0 ? rings : rings.toReversed(), stop } } : {}),
    };
    const entry = new URL(`./tasks/${isSocket ? "sockets" : "peer"}.js`, import.meta.url);
    const worker = new Worker(entry, { workerData: data, transferList: port === undefined ? [] : [port] });
    workers.push(worker);
    return new Promise<void>((resolve, reject) => {
      worker.on("error", reject);
      worker.on("exit", () => resolve());
    });
  });
  await within(limitOf(order), Promise.all(ends), () => workers.map((worker) => worker.terminate()));
  return readResults(work.results);
}

/** Whether a peer in JavaScript does a test at all. */
export function peerDoes(peer: string, test: TestName): boolean {
  if (peer === "waitnotify") return test === "wake_lat";
  if (peer === "wasmcall") return test === "idle" || test === "rmw_lat";
  if (peer === "memcpy") return test === "am_bw" || test === "put_bw" || test === "get_bw" || test === "rndv_bw";
  if (peer === "postMessage-transfer") return test === "am_bw";
  if (peer === "tcp") return test === "am_lat" || test === "am_bw";
  return test === "am_lat" || test === "am_rate" || test === "am_bw";
}
