// One thread of the explorer. Thread 0 is also its driver: it chooses the schedules, runs them and checks each one.
import { parentPort, workerData } from "node:worker_threads";
import { memoryOf } from "../../src/kernel/kernel.js";
import { wasmKernel } from "../../src/kernel/wasm.js";
import { formatMemory, memoryMap } from "../../src/memory/map.js";
import { Races, raceWords } from "./races.js";
import { SCENARIOS } from "./scenarios.js";
import { CONTROL_WORDS, KILL, type Switch, Turnstile, Unwind } from "./turnstile.js";
import { exploredKernel, exploredTwin, NOTES_MAX, World } from "./world.js";

/** What the explorer hands to each of its threads. */
export interface Orders {
  readonly scenario: string;
  readonly kernel: "wasm" | "ts";
  readonly instrumented: WebAssembly.Module;
  readonly memory: WebAssembly.Memory;
  readonly shared: SharedArrayBuffer;
  readonly me: number;
  readonly options: ExploreOptions;
}

export interface ExploreOptions {
  /** Preemptions in one schedule at the most. */
  readonly bound: number;
  /** Schedules at the most; the rest is left out, and said so. */
  readonly schedules: number;
  /** Threads that may die, at each step. */
  readonly kill?: number | undefined;
  /** This schedule only. */
  readonly replay?: readonly Switch[] | undefined;
}

/** What came out. */
export interface Exploration {
  readonly schedules: number;
  readonly steps: number;
  readonly milliseconds: number;
  /** Whether every schedule up to the bound was run. */
  readonly complete: boolean;
  readonly failure?: { readonly text: string; readonly plan: readonly Switch[]; readonly trace: readonly string[] };
}

const limits = { tasks: 3, contexts: 1, laneBytes: 64, heapBytes: 64 * 4096 };
const map = memoryMap(limits);
const JOB_WORDS = map.end >>> 2;
const TEXT_BYTES = 4096;

/** Bytes of what the threads share beside the memory. */
export const SHARED_BYTES =
  4 * (CONTROL_WORDS + raceWords(JOB_WORDS) + 4 * (NOTES_MAX + 1)) + 4 * (4 + TEXT_BYTES) + JOB_WORDS;
export const MEMORY_PAGES = Math.ceil((2 * map.end) / 65536);

// Imported for its sizes too, in a thread that is none of the explorer's.
if ((workerData as Orders | null)?.shared !== undefined) main(workerData as Orders);

function main({ scenario: name, kernel, instrumented, memory, shared, me, options }: Orders): void {
  const scenario = SCENARIOS.find((one) => one.name === name);
  if (scenario === undefined) throw new Error(`no scenario ${name}`);
  const count = scenario.threads.length;
  let at = 0;
  const area = (words: number): Int32Array<SharedArrayBuffer> => {
    const view = new Int32Array(shared, 4 * at, words);
    at += words;
    return view;
  };
  const turnstile = new Turnstile(area(CONTROL_WORDS), me, count);
  const races = new Races(area(raceWords(JOB_WORDS)), JOB_WORDS, map.job, me);
  const notes = Array.from({ length: 4 }, () => area(NOTES_MAX + 1));
  const text = area(1 + TEXT_BYTES);
  const touched = new Uint8Array(shared, 4 * at, JOB_WORDS);
  const views = memoryOf(memory.buffer as unknown as SharedArrayBuffer);
  const plain = wasmKernel(memory);
  const explored =
    kernel === "wasm" ? exploredKernel(instrumented, memory, turnstile, views) : exploredTwin(views, turnstile);
  const world = new World(explored, views, map, turnstile);
  const checker = new World(plain, views, map, turnstile);
  const own = notes[me] as Int32Array;
  world.note = (value) => {
    own[0] = (own[0] as number) + 1;
    own[own[0] as number] = value;
  };
  turnstile.onAccess = (kind, pointer) => {
    if (pointer >= map.end) throw new Error(`an access to ${pointer}, behind the job's memory`);
    touched[pointer >>> 2] = (touched[pointer >>> 2] as number) | (1 << me);
    if (kernel === "ts") return; // the twin reads shared words plainly where nothing is acted upon
    const race = races.access(kind, pointer);
    if (race !== undefined) throw new Error(`a race at ${pointer}: it does not come after ${race}`);
  };

  const fail = (error: unknown): void => {
    if (text[0] === 0) {
      const encoded = String(error instanceof Error ? error.message : error).slice(0, TEXT_BYTES);
      for (let i = 0; i < encoded.length; i++) text[1 + i] = encoded.charCodeAt(i);
      text[0] = encoded.length;
    }
    turnstile.fail();
  };
  const runProgram = (): void => {
    let dead = false;
    try {
      (scenario.threads[me] as (world: World) => void)(world);
    } catch (error) {
      dead = true;
      if (!(error instanceof Unwind)) fail(error);
    }
    try {
      turnstile.end(dead);
    } catch (error) {
      fail(error);
      turnstile.leave();
    }
  };

  if (me !== 0) {
    for (;;) {
      turnstile.await();
      runProgram();
    }
  }

  formatMemory(map, views, plain, 2);
  scenario.setup(checker);
  const snapshot = map.end;
  plain.copyBytes(snapshot, map.job, map.end - map.job);

  let schedules = 0;
  let steps = 0;
  /** Runs one schedule; what was wrong with it, or undefined. */
  const run = (plan: readonly Switch[]): string | undefined => {
    plain.copyBytes(map.job, snapshot, map.end - map.job);
    for (const note of notes) note[0] = 0;
    text[0] = 0;
    races.begin();
    turnstile.begin(plan);
    runProgram();
    turnstile.finish();
    schedules++;
    steps += turnstile.steps;
    if (text[0] === 0) {
      try {
        scenario.check(
          checker,
          notes.map((note) => [...note.subarray(1, 1 + (note[0] as number))]),
        );
      } catch (error) {
        fail(error);
      }
    }
    return text[0] === 0 ? undefined : String.fromCharCode(...text.subarray(1, 1 + (text[0] as number)));
  };

  const start = performance.now();
  let complete = true;
  const explore = (plan: readonly Switch[], from: number, preemptions: number): Exploration["failure"] => {
    const wrong = run(plan);
    if (wrong !== undefined) return { text: wrong, plan, trace: [] };
    const length = turnstile.steps;
    const log = Int32Array.from({ length }, (_, i) => turnstile.who(i));
    const pointers = Int32Array.from({ length }, (_, i) => turnstile.step(i).pointer);
    for (let step = from; step < length; step++) {
      const who = log[step] as number;
      const forced = who >>> 16 !== 0;
      if (!forced && preemptions === options.bound) continue;
      const pointer = (pointers[step] as number) >>> 0;
      const mask = touched[pointer >>> 2] as number;
      if (!forced && (mask & (mask - 1)) === 0) continue; // nobody else ever comes there
      const stays = forced ? (log[step + 1] ?? who) & 255 : who & 255;
      for (let thread = 0; thread < count; thread++) {
        if (thread === stays || ((who >>> 8) & (1 << thread)) === 0) continue;
        if (schedules >= options.schedules) {
          complete = false;
          return undefined;
        }
        const found = explore([...plan, { step, thread }], step + 1, forced ? preemptions : preemptions + 1);
        if (found !== undefined) return found;
      }
      if (
        options.kill !== undefined &&
        (who & 255) === options.kill &&
        !forced &&
        !plan.some((one) => one.thread & KILL)
      ) {
        const found = explore([...plan, { step, thread: KILL }], step + 1, preemptions);
        if (found !== undefined) return found;
      }
    }
    return undefined;
  };

  let failure: Exploration["failure"];
  if (options.replay !== undefined) {
    const wrong = run(options.replay);
    if (wrong !== undefined) failure = { text: wrong, plan: options.replay, trace: [] };
  } else {
    // Until nobody comes to a new place any more: only before words that several threads touch is a switch tried.
    for (let before = -1; ; ) {
      const shared = touched.reduce((sum, mask) => sum + (mask & (mask - 1) ? 1 : 0), 0);
      if (shared === before || failure !== undefined) break;
      before = shared;
      failure = explore([], 0, 0);
    }
  }
  if (failure !== undefined) {
    run(failure.plan);
    const kinds = [
      "load",
      "store",
      "atomic load",
      "atomic store",
      "atomic change",
      "",
      "",
      "",
      "wait",
      "notify",
      "end",
    ];
    const trace = Array.from({ length: turnstile.steps }, (_, i) => {
      const { thread, kind, pointer } = turnstile.step(i);
      const switched = failure?.plan.some(({ step }) => step === i) ? "  ⇄" : "";
      return `${String(i).padStart(4)}  ${"    ".repeat(thread)}${thread}: ${kinds[kind]} ${pointer}${switched}`;
    });
    failure = { ...failure, trace };
  }
  const result: Exploration = {
    schedules,
    steps,
    milliseconds: performance.now() - start,
    complete,
    ...(failure === undefined ? {} : { failure }),
  };
  parentPort?.postMessage(result);
}
