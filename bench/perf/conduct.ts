// Runs what is asked for: the systems take turns, every run stands between two hand-offs, and a run during which the
// machine changed is repeated.
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { pause } from "../../src/support/timers.js";
import type { Native } from "./native.js";
import type { PerfOptions } from "./options.js";
import { Missing, type Order } from "./peers.js";
import { type Handoff, isLinkSystem, prepareHandoff, type System, type Test } from "./plan.js";
import { choosePair } from "./processors.js";
import type { Figures } from "./work.js";

/** The runs of one system in one test at one size. */
export interface Cell {
  readonly test: Test;
  readonly system: string;
  readonly bytes: number;
  readonly runs: Run[];
}

export interface Run extends Figures {
  /** Mean of the hand-offs before and after, in ns. */
  readonly handoff_ns: number;
}

export interface Outcome {
  readonly cells: readonly Cell[];
  readonly skipped: readonly { system: string; reason: string; failed?: boolean }[];
  readonly handoffs: readonly number[];
  readonly handoffBy: "C" | "wasm";
  /** Members of the collective operations. */
  readonly tasks: number;
  readonly cpus: readonly number[];
  /** Runs that were dropped and repeated. */
  readonly repeated: number;
  readonly void: boolean;
}

/** Hand-offs of a pair, be it before and after a run or of two runs that are compared, may differ by this much. */
export const PAIR_SPREAD = 1.15;
/** A hand-off this much above the best of all makes a run void. */
const BEST_SPREAD = 1.3;

/** How long an unsteady machine is waited for. */
export interface Patience {
  /** Repeats of one run, and of all runs together: on a machine that stays busy it has to end. */
  readonly repeatsOfRun: number;
  readonly repeats: number;
  /** Looks at whether the machine is well again, over all runs: 200 are about half a minute. */
  readonly looks: number;
}

const PATIENT: Patience = { repeatsOfRun: 3, repeats: 60, looks: 200 };
/** Runs each once, whatever the machine does: for numbers that are not compared. */
export const ONCE: Patience = { repeatsOfRun: 0, repeats: 0, looks: 0 };

/** Tasks that two processors are chosen for. */
const PAIR = 2;
const HANDOFF_SECONDS = 0.05;
const QUICK_SECONDS = 0.01;
const LINK_SECONDS = 3;
/** Parts of the timed part that the warm-up takes. */
const WARM_UP = 0.2;
/** So many that a collection of garbage in ten million messages would be seen. */
const LEAST_MESSAGES = 10_000_000;

/** What collects garbage, on demand: V8 counts no shared memory, and so sees no reason to collect that of the last run. */
function garbageCollector(): () => void {
  setFlagsFromString("--expose-gc");
  return runInNewContext("gc") as () => void;
}

/** The hand-offs between the runs: each is the end of one bracket and the beginning of the next. */
class Bracket {
  readonly by: "C" | "wasm";
  readonly all: number[] = [];
  readonly #measure: () => Promise<number>;
  readonly #collectGarbage = garbageCollector();
  /** Looks that are left, in all. */
  #patience: number;
  #last: number | undefined;

  constructor(handoff: Handoff, cpus: readonly number[], seconds: number, looks: number) {
    this.#patience = looks;
    this.by = handoff.by;
    this.#measure = async () => {
      const order: Order = {
        test: "am_lat",
        tasks: PAIR,
        bytes: 4,
        seconds,
        warmUp: seconds * WARM_UP,
        leastMessages: 0,
        isLinked: false,
        cpus,
      };
      const { p50_ns = Number.NaN } = await handoff.run(order);
      this.all.push(p50_ns);
      return p50_ns;
    };
  }

  get best(): number {
    return Math.min(...this.all);
  }

  /** Waits for a moment at which the machine is as good as it can be, so that no long run is spent in vain. */
  async #before(): Promise<number> {
    let before = this.#last ?? (await this.#measure());
    for (; this.#patience > 0 && before > BEST_SPREAD * this.best; this.#patience--) {
      await pause(100);
      before = await this.#measure();
    }
    return before;
  }

  async around(run: () => Promise<Figures>): Promise<{ figures: Figures; mean: number; steady: boolean }> {
    const before = await this.#before();
    this.#collectGarbage();
    const figures = await run();
    const after = await this.#measure();
    this.#last = after;
    const high = Math.max(before, after);
    const steady = high <= PAIR_SPREAD * Math.min(before, after) && high <= BEST_SPREAD * this.best;
    return { figures, mean: (before + after) / 2, steady };
  }
}

/** Measures what the options ask for. A quick run has no patience. */
export async function conduct(
  options: PerfOptions,
  progress: (text: string) => void,
  patience: Patience = options.quick ? ONCE : PATIENT,
  handoff: Handoff = prepareHandoff(),
): Promise<Outcome> {
  const { quick, tasks } = options;
  const cpus = choosePair();
  const bracket = new Bracket(handoff, cpus, quick ? QUICK_SECONDS : HANDOFF_SECONDS, patience.looks);
  const prepared = new Map<string, Native>();
  const skipped = new Map<string, { system: string; reason: string; failed?: boolean }>();
  const cells: Cell[] = [];
  let repeated = 0;

  const prepare = (system: System): Native => {
    const known = prepared.get(system.name) ?? system.prepare();
    prepared.set(system.name, known);
    if ("missing" in known) skipped.set(system.name, { system: system.name, reason: known.missing });
    return known;
  };

  for (const test of options.tests) {
    const systems = options.systems.filter((system) => system.does(test.name));
    for (const bytes of sizesOf(test, options.bytes)) {
      const rows = new Map<System, Cell>();
      for (let run = 0; run < options.runs; run++) {
        for (const system of systems) {
          const native = prepare(system);
          if ("missing" in native || skipped.has(`${system.name} ${test.name}`)) continue;
          progress(`${test.name} ${bytes} B, run ${run + 1} of ${options.runs}: ${system.name}`);
          const order = orderOf(test, system, bytes, { members: tasks, cpus, quick });
          try {
            let result = await bracket.around(() => native.run(order));
            for (
              let repeat = 0;
              !result.steady && repeat < patience.repeatsOfRun && repeated < patience.repeats;
              repeat++
            ) {
              repeated++;
              result = await bracket.around(() => native.run(order));
            }
            const cell = rows.get(system) ?? { test, system: system.name, bytes, runs: [] };
            rows.set(system, cell);
            cell.runs.push({ ...result.figures, handoff_ns: result.mean });
          } catch (error) {
            const reason = `${test.name} ${bytes} B: ${(error as Error).message}`;
            const failed = !(error instanceof Missing);
            skipped.set(`${system.name} ${test.name}`, { system: system.name, reason, failed });
          }
        }
      }
      cells.push(...rows.values());
    }
  }
  progress("");
  const { best } = bracket;
  const isVoid = cells.some(({ runs }) => median(runs.map((run) => run.handoff_ns)) > BEST_SPREAD * best);
  return {
    cells,
    skipped: [...skipped.values()],
    handoffs: bracket.all,
    handoffBy: bracket.by,
    tasks,
    cpus: tasks > PAIR ? [] : cpus,
    repeated,
    void: isVoid,
  };
}

function sizesOf(test: Test, asked: readonly number[]): readonly number[] {
  if (test.bytes.length === 0) return [0];
  return asked.length > 0 ? asked : test.bytes;
}

const FAN_TASKS = 4;

function orderOf(
  test: Test,
  system: System,
  bytes: number,
  { members, cpus, quick }: { readonly members: number; readonly cpus: readonly number[]; readonly quick: boolean },
): Order {
  const tasks = test.name === "am_fan" ? FAN_TASKS : members;
  // More than two threads are not bound to two processors: the system places them.
  const bound = tasks > PAIR ? [] : cpus;
  const counted = system.name.startsWith("pamir") && !isLinkSystem(system.name) && test.name === "am_rate" && !quick;
  const isLinked = isLinkSystem(system.name);
  const seconds = quick ? QUICK_SECONDS : isLinked ? LINK_SECONDS : test.seconds;
  return {
    test: test.name,
    tasks,
    bytes,
    seconds,
    // Until V8 has compiled what a message takes. With another node, those are five thousand lines, some 2 ms a message.
    warmUp: seconds * (isLinked ? 1 : WARM_UP),
    isLinked,
    leastMessages: counted ? LEAST_MESSAGES : 0,
    cpus: bound,
  };
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >>> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}
