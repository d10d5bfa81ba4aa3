// What the API's tests have in common: the variants of a job that every suite runs over, jobs whose task 0 is the test,
// and bytes whose content can be checked.
import {
  type Client,
  type Context,
  type ContextOptions,
  type Job,
  type KernelName,
  launch,
  type PamiError,
  SUCCESS,
} from "pamir";
import { expect } from "vitest";
import { SEED } from "../support/effort.js";
import { linked, mixed, OTHER_NODE } from "../support/launches.js";
import { LOOK_MS, makeFlags } from "./tasks/flags.js";

/** `memoryBase` is internal, so the package's types do not have it. */
type TestLaunchOptions = NonNullable<Parameters<typeof launch>[1]> & { memoryBase?: number };

export interface Variant {
  readonly name: string;
  readonly kernels: readonly KernelName[];
  readonly memoryBase?: number;
  readonly engine?: "thread";
  /** The tasks other than the test run in processes, each in one of its own, or two in each. */
  readonly processes?: "each" | "pairs";
  /** Those processes share no memory: a link joins them. */
  readonly isLinked?: true;
  /** The first, third, … of those processes run another version of Node. */
  readonly isMixed?: true;
}

const HEAP_BYTES = 8 * 1024 ** 2;
/** With 8 MiB of heap, one part of the map lies below 2^31 and the other above. */
const STRADDLING = 2 ** 31 - 1024 ** 2;

const IN_PROCESSES: readonly Variant[] = [
  { name: "wasm with ts, processes", kernels: ["wasm", "ts"], processes: "each" },
  { name: "ts with wasm, processes of two threads", kernels: ["ts", "wasm"], processes: "pairs" },
];
const LINKED: readonly Variant[] = [
  { name: "wasm, linked processes", kernels: ["wasm"], processes: "each", isLinked: true },
];
const MIXED: readonly Variant[] = [
  { name: "wasm with ts, processes of two Nodes", kernels: ["wasm", "ts"], processes: "each", isMixed: true },
];
const LINKED_MIXED: readonly Variant[] = [
  { name: "wasm, linked processes of two Nodes", kernels: ["wasm"], processes: "each", isLinked: true, isMixed: true },
];
const WITH_ENGINE: readonly Variant[] = [
  { name: "wasm, engine thread, processes", kernels: ["wasm"], engine: "thread", processes: "each" },
];
const hasProcesses = process.platform === "linux";
const hasOtherNode = hasProcesses && OTHER_NODE !== undefined;

/** Every suite runs over these. */
export const VARIANTS: readonly Variant[] = [
  { name: "wasm", kernels: ["wasm"] },
  { name: "ts", kernels: ["ts"] },
  { name: "wasm with ts", kernels: ["wasm", "ts"] },
  { name: "ts with wasm", kernels: ["ts", "wasm"] },
  { name: "wasm with ts, straddling 2^31", kernels: ["wasm", "ts"], memoryBase: STRADDLING },
  ...(hasProcesses ? IN_PROCESSES : []),
  ...(hasOtherNode ? MIXED : []),
];
/** Suites of messages run over these too: processes that share no memory, joined by sealed UDP. */
export const LINKED_VARIANTS: readonly Variant[] = [
  ...VARIANTS,
  ...(hasProcesses ? LINKED : []),
  ...(hasOtherNode ? LINKED_MIXED : []),
];
/** Suites of transfers, of regions and of ends run over these too: what an engine thread is a part of. */
export const ENGINE_VARIANTS: readonly Variant[] = [
  ...VARIANTS,
  { name: "wasm, engine thread", kernels: ["wasm"], engine: "thread" },
  { name: "ts, engine thread", kernels: ["ts"], engine: "thread" },
  ...(hasProcesses ? WITH_ENGINE : []),
];

/** Longest wait in the tests, which ends a hang: also where ten programs want each core, nothing that is awaited takes it. */
export const PATIENCE = 60_000;

/** Dispatch ids that tests and task modules agree upon. */
export const ECHO = 1;
export const REPLY_WHOLE = 2;
export const REPLY_PARTS = 3;
export const QUIT = 4;
export const RESULT = 5;
export const ASK = 6;
export const COUNT = 7;
export const DATA = 10;
export const OTHER = 11;

export interface TestJob {
  readonly job: Job;
  readonly client: Client;
  readonly context: Context;
  /** Shared with all tasks as `args.flags`: gates that the test opens, counters that tasks raise. */
  readonly flags: Int32Array<SharedArrayBuffer>;
}

/** Kernels for so many tasks, in turn. */
export function kernelsOf(variant: Variant, tasks: number): KernelName[] {
  return Array.from({ length: tasks }, (_, task) => variant.kernels[task % variant.kernels.length] as KernelName);
}

/** The option `processes` of a job in which the test is one of so many tasks. */
export function processesOf({ processes }: Variant, tasks: number): { processes?: number } {
  if (processes === undefined) return {};
  // A test without other tasks has the memory that processes would map.
  return { processes: Math.max(1, processes === "each" ? tasks - 1 : Math.ceil((tasks - 1) / 2)) };
}

export interface JobRequest extends TestLaunchOptions {
  /** Name of a task module's file. */
  module?: string;
  /** Which of its scenarios the other tasks run. */
  scenario?: string;
  context?: ContextOptions;
}

/** launch() for a variant. */
function launchFor({ isLinked, isMixed }: Variant): typeof launch {
  const launched = isLinked === true ? linked(launch) : launch;
  return isMixed === true ? mixed(launched) : launched;
}

/** Runs a job of which the test is task 0; all its tasks are gone when this resolves. */
export async function withJob<T>(
  variant: Variant,
  request: JobRequest,
  body: (given: TestJob) => T | Promise<T>,
): Promise<T> {
  const { module = "peer.js", scenario, context, tasks = 2, args, ...rest } = request;
  const inProcesses = processesOf(variant, tasks);
  const { flags, place } = await makeFlags(inProcesses.processes !== undefined);
  const options: TestLaunchOptions = {
    tasks,
    kernel: kernelsOf(variant, tasks),
    join: true,
    heapBytes: HEAP_BYTES,
    ...(variant.engine === undefined ? {} : { engine: variant.engine }),
    ...(variant.memoryBase === undefined ? {} : { memoryBase: variant.memoryBase }),
    ...inProcesses,
    args: { scenario, flags: place, ...(args as object | undefined) },
    ...rest,
  };
  const job = await launchFor(variant)(new URL(`tasks/${module}`, import.meta.url), options);
  try {
    return await body({ job, client: job.client, context: job.client.createContext(context), flags });
  } finally {
    await job.terminate();
  }
}

/**
 * Advances, asleep in between, until the condition holds; fails if it does not come to that. One who finds it only
 * when his time is up was not woken, so that fails too.
 */
export function until(context: Context, condition: () => boolean, timeout = PATIENCE): void {
  const start = performance.now();
  expect(context.advanceUntil(condition, { timeout })).toBe(SUCCESS);
  expect(performance.now() - start).toBeLessThan(timeout);
}

/**
 * What a call throws, or rejects with; undefined: nothing. A refusal may wait for the host, which looks up a module on a thread of
 * its own: under load for more than 300 ms.
 * @param patience milliseconds for a call that takes what it should refuse, and waits. Less will do once a test has failed anyway
 */
export async function refusalOf(call: () => unknown, patience = PATIENCE): Promise<unknown> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise((resolve) => {
    timer = setTimeout(resolve, patience);
  });
  try {
    await Promise.race([call(), late]);
  } catch (error) {
    return error;
  } finally {
    clearTimeout(timer);
  }
  return undefined;
}

/** The same for progress(): its events, or a failure if nobody woke it. */
export async function progress(context: Context, timeout = PATIENCE): Promise<number> {
  const start = performance.now();
  const events = await context.progress({ timeout });
  expect(performance.now() - start).toBeLessThan(timeout);
  return events;
}

/**
 * Fails unless so many bytes of the heap are free once these have dealt with all that there is. An engine thread is to have
 * seen it too, for which it takes its time.
 */
export function expectFree({ engine }: Variant, job: Job, contexts: readonly Context[], free: number): void {
  const end = performance.now() + PATIENCE;
  const isLate = () => engine !== undefined && job.dump().heap.free !== free && performance.now() < end;
  for (let round = 0; round < 10 || isLate(); round++) for (const context of contexts) context.advance();
  expect(job.dump().heap.free).toBe(free);
}

/** Ends the engine thread, which the package's types do not have. */
export function endEngine(job: Job): void {
  (job as Job & { endEngine(): void }).endEngine();
}

/** Takes all memory that regions may have. */
export function fillHeap<R>(client: { createRegion(bytes: number): R }): R[] {
  const regions: R[] = [];
  for (let bytes = 2 ** 19; bytes >= 4096; ) {
    try {
      regions.push(client.createRegion(bytes));
    } catch (error) {
      if ((error as PamiError).code !== "PAMIR_NO_MEMORY") throw error;
      bytes /= 2;
    }
  }
  return regions;
}

/** Whether two runs of bytes are equal; `toEqual` on a mebibyte takes seconds. */
export function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0;
}

/** The code and text of what a call throws. */
export function thrownBy(call: () => unknown): { code: string; text: string } {
  try {
    call();
  } catch (error) {
    return { code: (error as { code: string }).code, text: (error as Error).message };
  }
  throw new Error("nothing was thrown");
}

/** The same of what a promise rejects with. */
export async function rejectionOf(promise: Promise<unknown>): Promise<{ code: string; text: string; cause: unknown }> {
  const error = await promise.then(
    () => undefined,
    (reason: Error & { code: string }) => reason,
  );
  if (error === undefined) throw new Error("it did not reject");
  return { code: error.code, text: error.message, cause: error.cause };
}

/** Counts the listeners of an AbortSignal. */
export function countedSignal(controller: AbortController): { signal: AbortSignal; listeners(): number } {
  const { signal } = controller;
  const listeners = new Set<unknown>();
  const { addEventListener, removeEventListener } = signal;
  signal.addEventListener = (...parameters: Parameters<AbortSignal["addEventListener"]>) => {
    listeners.add(parameters[1]);
    addEventListener.apply(signal, parameters);
  };
  signal.removeEventListener = (...parameters: Parameters<AbortSignal["removeEventListener"]>) => {
    listeners.delete(parameters[1]);
    removeEventListener.apply(signal, parameters as Parameters<AbortSignal["removeEventListener"]>);
  };
  return { signal, listeners: () => listeners.size };
}

/** Opens a gate on which tasks wait by waitGate(). */
export function openGate(flags: Int32Array, gate: number): void {
  Atomics.store(flags, gate, 1);
  Atomics.notify(flags, gate);
}

/** Blocks until a counter that tasks raise has come to `value`. */
export function awaitFlag(flags: Int32Array<SharedArrayBuffer>, place: number, value: number): void {
  const end = Date.now() + PATIENCE;
  for (let seen = Atomics.load(flags, place); seen < value; seen = Atomics.load(flags, place)) {
    if (Date.now() > end) throw new Error(`flag ${place} stays at ${seen}, not ${value}`);
    Atomics.wait(flags, place, seen, LOOK_MS);
  }
}

export { pattern, randomFrom } from "./tasks/random.js";

/** The seed of this run. */
export function chooseSeed(): number {
  return SEED;
}
