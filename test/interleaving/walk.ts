// Which schedules are run: all of them up to a number of preemptions, or random ones.
import { randomOf } from "../support/random.js";
import { KIND, LOG } from "./control.js";
import type { Scenario } from "./scenario.js";
import { KILL } from "./turnstile.js";

/** What runs a schedule; the log is that of the last run. */
export interface Runner {
  readonly scenario: Scenario;
  readonly log: Int32Array;
  readonly steps: number;
  readonly news: boolean;
  schedules: number;
  run(plan: readonly number[], salt: number): boolean;
  watch(): void;
}

/** What came of a walk: to go on, a failure, enough schedules, or a word that is shared and was not watched. */
const WENT = { on: 0, wrong: 1, enough: 2, news: 3 } as const;

class Walk {
  readonly plan: number[] = [];
  readonly #runner: Runner;
  #mortal = 0;
  readonly #bound: number;
  readonly #schedules: number;

  constructor(runner: Runner, bound: number, schedules: number) {
    this.#runner = runner;
    this.#bound = bound;
    this.#schedules = schedules;
    for (const thread of runner.scenario.mortal ?? []) this.#mortal |= 1 << thread;
    runner.schedules = 0;
  }

  /** Runs the plan, and every longer one that differs from it only behind step `from`. @param killed bit i: thread i died */
  go(from: number, preemptions: number, killed: number): number {
    const runner = this.#runner;
    if (runner.schedules === this.#schedules) return WENT.enough;
    runner.schedules++;
    if (!runner.run(this.plan, 0)) return WENT.wrong;
    if (runner.news) return WENT.news;
    const choices = this.#choices(from, preemptions, killed);
    for (let i = 0; i < choices.length; i++) {
      const choice = choices[i] as number;
      const [step, me, thread, forced] = [choice >>> 6, (choice >>> 4) & 3, choice & 7, (choice & 8) !== 0];
      this.plan.push(step, thread);
      const kills = thread === KILL;
      const went = this.go(
        step + 1,
        forced || kills ? preemptions : preemptions + 1,
        kills ? killed | (1 << me) : killed,
      );
      if (went !== WENT.on) return went;
      this.plan.length -= 2;
    }
    return WENT.on;
  }

  /** Where the last run could have gone on otherwise: step << 6 | thread that ran << 4 | forced << 3 | thread. */
  #choices(from: number, preemptions: number, killed: number): number[] {
    const { log, steps } = this.#runner;
    const found: number[] = [];
    const preempts = preemptions < this.#bound;
    const { deaths = 1 } = this.#runner.scenario;
    const mayDie = [0, 1, 2].filter((thread) => ((killed >>> thread) & 1) === 1).length < deaths;
    for (let step = from; step < steps; step++) {
      const entry = log[step] as number;
      const me = (entry >>> LOG.threadShift) & 3;
      const at = (step << 6) | (me << 4);
      const forced = (entry & LOG.forced) !== 0;
      if (forced) {
        const chosen = ((log[step + 1] ?? 0) >>> LOG.threadShift) & 3;
        for (let thread = 0; thread < 3; thread++) {
          if (thread === chosen || ((entry >>> LOG.enabledShift) & (1 << thread)) === 0) continue;
          // That a timeout fires while another one could go on is as good as a preemption: else it would fire for ever.
          const fires = ((entry >>> LOG.sleepingShift) & (1 << thread)) !== 0;
          if (!fires) found.push(at | 8 | thread);
          else if (preempts) found.push(at | thread);
        }
        continue;
      }
      if ((entry & LOG.resumed) !== 0 || this.#repeats(step)) continue;
      if (preempts) {
        for (let thread = 0; thread < 3; thread++) {
          if (thread !== me && ((entry >>> LOG.enabledShift) & (1 << thread)) !== 0) found.push(at | thread);
        }
      }
      if (mayDie && (this.#mortal & ~killed & (1 << me)) !== 0) found.push(at | KILL);
    }
    return found;
  }

  /** Whether a thread does what it did in the two steps before, as one that spins does: it learns nothing new. */
  #repeats(step: number): boolean {
    const { log } = this.#runner;
    if (step < 2) return false;
    const mask = LOG.wordMask | (15 << LOG.kindShift) | (3 << LOG.threadShift) | LOG.switched;
    const entry = (log[step] as number) & mask;
    if (((entry >>> LOG.kindShift) & 15) >= KIND.notify) return false;
    return ((log[step - 1] as number) & mask) === entry && ((log[step - 2] as number) & mask) === entry;
  }
}

interface Outcome {
  readonly complete: boolean;
  readonly failed: { readonly plan: readonly number[]; readonly salt: number } | undefined;
}

/** Every schedule with at most `bound` preemptions; first those with fewer. */
export function exhaust(runner: Runner, bound: number, schedules: number): Outcome {
  for (let preemptions = Math.min(1, bound); ; ) {
    const walk = new Walk(runner, preemptions, schedules);
    const went = walk.go(0, 0, 0);
    if (went === WENT.wrong) return { complete: false, failed: { plan: walk.plan, salt: 0 } };
    // A switch is tried before shared words alone; where a new one turns up, the walk begins anew.
    if (runner.news) runner.watch();
    else if (went === WENT.enough) return { complete: false, failed: undefined };
    else if (preemptions++ === bound) return { complete: true, failed: undefined };
  }
}

/** Random schedules, of `switches` switches each. */
export function sample(runner: Runner, switches: number, schedules: number, seed: number): Outcome["failed"] {
  const random = randomOf(seed);
  const { mortal = [], deaths = mortal.length > 0 ? 1 : 0, threads } = runner.scenario;
  let longest = 1;
  for (runner.schedules = 0; runner.schedules < schedules; runner.schedules++) {
    const steps = Array.from({ length: switches }, () => random(longest)).sort((a, b) => a - b);
    const plan = steps.flatMap((step, i) => (step === steps[i - 1] ? [] : [step, random(threads.length)]));
    for (let death = 0; death < deaths; death++) {
      if (plan.length > 0 && random(2) === 0) plan[2 * random(plan.length / 2) + 1] = KILL;
    }
    const salt = (random(0x40000000) << 1) | 1;
    if (!runner.run(plan, salt)) return { plan, salt };
    if (runner.news) runner.watch();
    longest = Math.max(longest, runner.steps);
  }
  return undefined;
}
