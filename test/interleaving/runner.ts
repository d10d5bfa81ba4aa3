// One thread of the explorer. Thread 0 is also its driver: it walks through the schedules, runs them, checks each one.
import { parentPort } from "node:worker_threads";
import { JOB_STARTED_OFFSET } from "../../assembly/layout.js";
import { formatMemory } from "../../src/memory/format.js";
import type { MemoryMap } from "../../src/memory/map.js";
import {
  AT,
  DIRTY,
  FLAG,
  FLAGS_OFFSET,
  inlineMap,
  isShared,
  JOB_WORDS,
  map,
  NOTES_MAX,
  nodeMaps,
  STEPS_MAX,
  THREADS_MAX,
} from "./control.js";
import { blocksIn, describeStep, nameOf } from "./names.js";
import { Races } from "./races.js";
import type { Scenario } from "./scenario.js";
import { SCENARIOS } from "./scenarios/index.js";
import { become, explored, kernel, me, memory, outside, processMemory, turnstile } from "./thread.js";
import { Unwind } from "./turnstile.js";
import { exhaust, type Runner, sample } from "./walk.js";
import { World } from "./world.js";

/** A schedule, and all that it takes to run it again. */
export interface Replay {
  /** Step and thread of each switch, one after the other. */
  readonly plan: readonly number[];
  readonly salt: number;
  /** The words that were watched: they decide what counts as a step. */
  readonly watched: readonly number[];
}

/** What is asked of the driver. */
export interface Task {
  readonly scenario: string;
  /** Preemptions of a schedule at the most, or switches of a random one. */
  readonly bound: number;
  /** Schedules at the most; the rest is left out, and said so. */
  readonly schedules?: number;
  /** Random schedules from this seed, instead of all. */
  readonly seed?: number;
  /** This schedule only. */
  readonly replay?: Replay;
}

/** What came out. */
export interface Exploration {
  /** Different schedules that were run. */
  readonly schedules: number;
  /** All runs: those included that were made to find out which words are shared. */
  readonly runs: number;
  readonly steps: number;
  readonly milliseconds: number;
  /** Whether every schedule up to the bound was run. */
  readonly complete: boolean;
  readonly failure?: { readonly text: string; readonly replay: Replay; readonly trace: readonly string[] };
}

const { words } = memory;
const flags = new Uint16Array(memory.buffer, FLAGS_OFFSET, JOB_WORDS);
/** The worlds of the threads, by map: over a memory of one process, or of several. */
const [worlds, processWorlds] = [memory, processMemory].map(
  (shared) =>
    new Map(
      [map, inlineMap, ...nodeMaps].map((ofJob) => [
        ofJob,
        new World(
          kernel,
          shared,
          ofJob,
          me,
          explored.access,
          (thread) => turnstile.awaitEnd(thread),
          (thread) => turnstile.isDead(thread),
          (thread) => turnstile.hasEnded(thread),
        ),
      ]),
    ),
) as [Map<MemoryMap, World>, Map<MemoryMap, World>];

/** What lies where, and what of that the job has. */
function mapOf({ engine = false, node }: Scenario): MemoryMap {
  if (node !== undefined) {
    const { locals, isCrowded, tasks = map.tasks } = node;
    const isOf = (one: MemoryMap): boolean =>
      one.locals === locals && one.tasks === tasks && one.jobTasks > tasks === isCrowded;
    return nodeMaps.find(isOf) as MemoryMap;
  }
  return engine ? map : inlineMap;
}

/** Runs a program until it ends, or the thread dies; whether it ended by itself. */
function runToEnd(program: (world: World) => void, scenario: Scenario): boolean {
  try {
    if (turnstile.failed) throw new Unwind();
    program((scenario.processes === undefined ? worlds : processWorlds).get(mapOf(scenario)) as World);
    return true;
  } catch (error) {
    if (!(error instanceof Unwind)) turnstile.fail(error);
    return false;
  }
}

function runProgram(scenario: Scenario): void {
  become(scenario);
  const hasEnded = runToEnd(scenario.threads[me] as (world: World) => void, scenario);
  if (scenario.monitor !== undefined && turnstile.survive()) runToEnd(scenario.monitor, scenario);
  turnstile.end(!hasEnded);
}

/** A bit for each thread. */
function maskOf(threads: readonly number[] = []): number {
  return threads.reduce((mask, thread) => mask | (1 << thread), 0);
}

/** The driver's hold on one scenario. */
class Driver implements Runner {
  runs = 0;
  schedules = 0;
  totalSteps = 0;
  error: string | undefined;
  readonly log = words.subarray(AT.log, AT.log + STEPS_MAX);
  readonly scenario: Scenario;
  readonly #snapshot: Int32Array;
  readonly #races = new Races();
  readonly #checker: World;
  readonly #notes: number[][];

  constructor(scenario: Scenario) {
    this.scenario = scenario;
    this.#notes = scenario.threads.map(() => []);
    const unused = (): never => {
      throw new Error("setup and check run outside of schedules");
    };
    const ofJob = mapOf(scenario);
    this.#checker = new World(
      outside.kernel(),
      memory,
      ofJob,
      THREADS_MAX,
      outside.access,
      unused,
      turnstile.isDead.bind(turnstile),
      turnstile.hasEnded.bind(turnstile),
    );
    words.fill(0, 0, JOB_WORDS);
    formatMemory(ofJob, memory, 2);
    // The heap of a few pages is for the scenario alone: none is kept for lanes of tasks that have started.
    words[(map.job + JOB_STARTED_OFFSET) >>> 2] = 0;
    words.fill(0xa5a5a5a5 | 0, map.heapBase >>> 2, JOB_WORDS); // what lies in free memory means nothing
    words[AT.scenario] = SCENARIOS.indexOf(scenario);
    words[AT.mortal] = maskOf(scenario.mortal);
    words[AT.endless] = maskOf(scenario.endless);
    scenario.setup(this.#checker);
    this.#snapshot = words.slice(0, JOB_WORDS);
    flags.fill(0);
    words[AT.listed] = 0;
    words[AT.news] = 0;
  }

  get steps(): number {
    return turnstile.steps;
  }

  /** Whether a word has turned out to be shared since the last watch(). */
  get news(): boolean {
    return words[AT.news] !== 0;
  }

  /** From now on every shared word is watched. */
  watch(): void {
    words[AT.news] = 0;
    for (let word = 0; word < JOB_WORDS; word++) {
      if (isShared(flags[word] as number)) flags[word] = (flags[word] as number) | FLAG.watched;
    }
  }

  get watched(): number[] {
    return [...flags.keys()].filter((word) => ((flags[word] as number) & FLAG.watched) !== 0);
  }

  set watched(list: readonly number[]) {
    for (const word of list) flags[word] = (flags[word] as number) | FLAG.watched;
  }

  /** Runs one schedule; whether all was well. */
  run(plan: readonly number[], salt: number): boolean {
    const snapshot = this.#snapshot;
    const listed = words[AT.listed] as number;
    for (let i = 0; i < listed; i++) {
      const word = words[DIRTY + i] as number;
      words[word] = snapshot[word] as number;
    }
    const { scenario } = this;
    turnstile.begin(scenario.threads.length, plan, salt);
    runProgram(scenario);
    turnstile.finish();
    this.runs++;
    this.totalSteps += turnstile.steps;
    this.error = turnstile.error;
    // What went by way of a word that was not watched yet is not in the log.
    if (this.error === undefined && !this.news) {
      const race = this.#races.find(this.log, turnstile.steps);
      if (race !== undefined) {
        this.error = `a race at step ${race.step}, ${nameOf(race.word, blocksIn(words))}: it does not come after ${race.text}`;
      }
    }
    if (this.error === undefined) this.#check();
    return this.error === undefined;
  }

  #check(): void {
    try {
      for (let thread = 0; thread < this.#notes.length; thread++) {
        const at = AT.notes + (NOTES_MAX + 1) * thread;
        const notes = this.#notes[thread] as number[];
        notes.length = words[at] as number;
        for (let i = 0; i < notes.length; i++) notes[i] = words[at + 1 + i] as number;
      }
      words[AT.notes + (NOTES_MAX + 1) * THREADS_MAX] = 0; // the checker's own
      this.scenario.check(this.#checker, this.#notes);
    } catch (error) {
      this.error = String(error instanceof Error ? error.message : error);
    }
  }

  /** The last run, step by step; of a step that is repeated again and again, the first and the last. */
  trace(): string[] {
    const { steps, log } = this;
    const blocks = blocksIn(words);
    return Array.from({ length: steps }, (_, step) => {
      const entry = log[step];
      const repeats = step > 0 && step + 1 < steps && log[step - 1] === entry && log[step + 1] === entry;
      return repeats ? "   …" : describeStep(step, entry as number, blocks);
    }).filter((line, i, lines) => line !== "   …" || line !== lines[i - 1]);
  }
}

function explore({ scenario: name, bound, schedules = 1e6, seed, replay }: Task): Exploration {
  const scenario = SCENARIOS.find((one) => one.name === name);
  if (scenario === undefined) throw new Error(`no scenario ${name}`);
  const driver = new Driver(scenario);
  const start = performance.now();
  let complete = false;
  let failed: { plan: readonly number[]; salt: number } | undefined;
  if (replay !== undefined) {
    driver.watched = replay.watched;
    if (!driver.run(replay.plan, replay.salt)) failed = replay;
  } else if (seed !== undefined) failed = sample(driver, bound, schedules, seed);
  else ({ complete, failed } = exhaust(driver, bound, schedules));
  const milliseconds = performance.now() - start;
  const result = { schedules: driver.schedules, runs: driver.runs, steps: driver.totalSteps, milliseconds, complete };
  if (failed === undefined) return result;
  const { watched, error = "" } = driver;
  return {
    ...result,
    failure: { text: error, replay: { plan: [...failed.plan], salt: failed.salt, watched }, trace: driver.trace() },
  };
}

if (me === 0) {
  parentPort?.on("message", (task: Task) => parentPort?.postMessage(explore(task)));
} else {
  for (;;) {
    turnstile.await();
    runProgram(SCENARIOS[words[AT.scenario] as number] as Scenario);
  }
}
