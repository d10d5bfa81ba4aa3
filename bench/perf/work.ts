// What the command hands to the threads that measure, and what they hand back: cloned one way, a few numbers in shared
// memory the other way, or in files where the tasks run in processes. Imported on both sides, so it imports neither the library
// nor anything of the command.
import { appendFileSync, closeSync, openSync, readFileSync, statSync, writeFileSync, writeSync } from "node:fs";

/** Memory that threads share, or a file of processes. */
export type Shared = SharedArrayBuffer | string;

export type TestName =
  | "am_lat"
  | "am_rate"
  | "am_bw"
  | "am_fan"
  | "wake_lat"
  | "idle"
  | "put_lat"
  | "put_bw"
  | "get_lat"
  | "get_bw"
  | "rmw_lat"
  | "put_touch_bw"
  | "rndv_bw"
  | "fence_many"
  | "fence_one"
  | "fence_other"
  | "start"
  | "idle_cpu"
  | CollectiveTest;

/** Tests of collective operations, by the names that OSU's benchmarks have for them. */
export const COLLECTIVE_TESTS = [
  "barrier",
  "broadcast",
  "allreduce",
  "allgather",
  "alltoall",
  "reduce_scatter",
] as const;
export type CollectiveTest = (typeof COLLECTIVE_TESTS)[number];

export function isCollective(test: TestName): test is CollectiveTest {
  return (COLLECTIVE_TESTS as readonly TestName[]).includes(test);
}

/** Vectors of all members of a collective operation, in blocks of the bytes that are asked for. */
export function blocksOf(test: CollectiveTest, tasks: number): number {
  if (test === "alltoall") return 2 * tasks * tasks;
  return tasks * (test === "allgather" ? tasks + 1 : 2);
}

/** One measurement on two threads or more. */
export interface PerfWork {
  readonly test: TestName;
  /** Tasks of a job, processes of MPI. */
  readonly tasks: number;
  readonly bytes: number;
  /** Length of the timed part. */
  readonly seconds: number;
  /** Length of the warm-up before it. */
  readonly warmUp: number;
  /** Messages that are counted at least, whatever the time. */
  readonly leastMessages: number;
  /** Whether the messages go through sockets. */
  readonly isLinked: boolean;
  /** Collective operations: whether the vectors lie in ordinary arrays. */
  readonly plain?: boolean;
  /** Processor of each thread; empty: none is bound. */
  readonly cpus: readonly number[];
  readonly results: Shared;
  /** One word: how many threads are up; in a file, one byte for each task. */
  readonly barrier: Shared;
}

/** What came out; fields that mean nothing for a test are missing. */
export interface Figures {
  p50_ns?: number;
  p90_ns?: number;
  p99_ns?: number;
  p999_ns?: number;
  messages_per_s?: number;
  /** Garbage collections in both threads during the timed part. */
  gcs?: number;
  /** Messages counted. */
  messages?: number;
}

/** Name of the variable by which a task in a node of its own gets its Work, as JSON. */
export const LINK_WORK = "PAMIR_PERF";

export const WINDOW = 64;
/** Small messages of a window to another node: a datagram carries hundreds. */
const LINK_WINDOW = 4096;
/** Bytes of a window above which it is not longer than WINDOW. */
const LINK_WINDOW_BYTES = 2 ** 20;

/** Messages before an answer. */
export function windowOf({ bytes, isLinked }: Pick<PerfWork, "bytes" | "isLinked">): number {
  return isLinked && LINK_WINDOW * bytes <= LINK_WINDOW_BYTES ? LINK_WINDOW : WINDOW;
}
/** Messages of rndv_bw that are under way at a time, … */
const RNDV_WINDOW = 4;
/** … and bytes of a payload beyond which it is one: each has a place of its own at either side. */
const SINGLE_BYTES = 2 ** 26;
/** Round trips that are timed together where one takes less than a microsecond. */
export const BATCH = 16;
export const CACHE_LINE = 64;
export const SAMPLES_MAX = 1_000_000;

const FIELDS = ["p50_ns", "p90_ns", "p99_ns", "p999_ns", "messages_per_s", "gcs", "messages"] as const;
type Field = (typeof FIELDS)[number];

/** Room for the figures of one measurement; summed fields may be written by several threads, one slot each. */
export function makeResults(threads: number): SharedArrayBuffer {
  const results = new SharedArrayBuffer(8 * FIELDS.length * threads);
  new Float64Array(results).fill(Number.NaN);
  return results;
}

/**
 * How many messages of rndv_bw are under way at a time, each from a place of its own to another: else the engines, which take
 * a slice of each in turn, would copy the same bytes several times in a row, out of a cache.
 */
export function placesOf(bytes: number): number {
  return bytes <= SINGLE_BYTES ? RNDV_WINDOW : 1;
}

/** Makes the file for the figures of processes. */
export function makeResultFile(file: string, threads: number): string {
  writeFileSync(file, new Uint8Array(makeResults(threads)));
  return file;
}

/** Waits until all threads are up, so that no measurement includes the loading of others. */
export function meet(barrier: Shared, threads: number): void {
  if (typeof barrier === "string") {
    appendFileSync(barrier, "x");
    const pause = new Int32Array(new SharedArrayBuffer(4));
    while (statSync(barrier).size < threads) Atomics.wait(pause, 0, 0, 1);
    return;
  }
  const up = new Int32Array(barrier);
  Atomics.add(up, 0, 1);
  Atomics.notify(up, 0);
  for (let seen = Atomics.load(up, 0); seen < threads; seen = Atomics.load(up, 0)) Atomics.wait(up, 0, seen, 30_000);
}

/** A thread writes its figures; the command reads them after the thread has ended. */
export function writeResults(results: Shared, thread: number, figures: Figures): void {
  const values = FIELDS.map((field) => figures[field] ?? Number.NaN);
  const place = 8 * FIELDS.length * thread;
  if (typeof results !== "string") {
    new Float64Array(results, place, FIELDS.length).set(values);
    return;
  }
  const file = openSync(results, "r+");
  writeSync(file, new Float64Array(values), 0, 8 * FIELDS.length, place);
  closeSync(file);
}

/** The figures of all threads, added up. */
export function readResults(results: Shared): Figures {
  const slots = new Float64Array(typeof results === "string" ? Uint8Array.from(readFileSync(results)).buffer : results);
  const sums = new Map<Field, number>();
  for (const [i, value] of slots.entries()) {
    const field = FIELDS[i % FIELDS.length] as Field;
    if (!Number.isNaN(value)) sums.set(field, (sums.get(field) ?? 0) + value);
  }
  return Object.fromEntries(sums) as Figures;
}
