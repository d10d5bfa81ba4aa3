// The life of an engine thread: turn after turn while there is something to do, a spin, then asleep on its bell.
import {
  JOB_CORES_OFFSET,
  JOB_ENGINE_OFFSET,
  JOB_SPINNING_OFFSET,
  JOB_TASKS_OFFSET,
  TASK_ABSENT,
  TASK_INTERRUPT_OFFSET,
  TASK_STATE_OFFSET,
  TASK_UP,
} from "../../assembly/layout.js";
import { popcount } from "../kernel/atomics.js";
import type { Kernel, Memory } from "../kernel/kernel.js";
import { systemClock } from "../support/clock.js";
import { Spins } from "./spins.js";

/** What of the kernels it takes. */
type EngineKernel = Pick<Kernel, "engineServe" | "loadWord" | "exchangeIf" | "bellArm" | "bellWait" | "bellDisarm">;

/** Milliseconds of spinning before it sleeps, as a context's by default. */
const SPIN_MS = 0.05;
/** Turns between two looks at the clock: some 3 µs with nothing to do. */
const SPIN_TURNS = 64;

/** What sleeping takes. */
type Sleeping = Pick<EngineKernel, "engineServe" | "bellArm" | "bellWait" | "bellDisarm">;

/** Falls asleep on the bell of its slot, unless there is something to do, or it is asked to return. */
export function sleepUntilCalled(kernel: Sleeping, job: number, slot: number, isAsked: () => boolean): void {
  const seen = kernel.bellArm(slot);
  // Armed, then looked once more: a ring from here on finds the flag up.
  if (kernel.engineServe(job) === 0 && !isAsked()) kernel.bellWait(slot, seen, -1);
  kernel.bellDisarm(slot);
}

/** Serves a job's tasks, until it is interrupted as a task is, or its thread ends. */
export function serve(kernel: EngineKernel, memory: Memory, job: number): void {
  const word = (offset: number): number => (memory.words[(job + offset) >>> 2] as number) >>> 0;
  const slot = word(JOB_ENGINE_OFFSET);
  const [tasks, cores] = [word(JOB_TASKS_OFFSET), word(JOB_CORES_OFFSET)];
  // SYNC task-state (up): its end is the monitor's to note.
  if (kernel.exchangeIf(slot + TASK_STATE_OFFSET, TASK_ABSENT, TASK_UP) !== TASK_ABSENT) return;

  const spins = new Spins();

  /** Whether a core is free for it to spin on: tasks come first. */
  function maySpin(): boolean {
    if (cores < 2) return false;
    let spinning = 0;
    for (let at = 0; at < tasks; at += 32) {
      spinning += popcount(kernel.loadWord(job + JOB_SPINNING_OFFSET + (at >>> 3)));
    }
    return spinning < cores;
  }

  /** Whether there was something to do before it was time to sleep. */
  function spin(): boolean {
    if (!maySpin() || !spins.pays(systemClock)) return false;
    const end = systemClock.now() + SPIN_MS;
    let now = 0;
    do {
      for (let turn = 0; turn < SPIN_TURNS; turn++) {
        if (kernel.engineServe(job) === 0) continue;
        spins.won();
        return true;
      }
      now = systemClock.now();
    } while (maySpin() && now < end);
    spins.lost(now, false);
    return false;
  }

  /** Whether it is asked to return. */
  function isAsked(): boolean {
    // SYNC notice (interrupt): pairs with interruptTask().
    return kernel.loadWord(slot + TASK_INTERRUPT_OFFSET) !== 0;
  }

  while (!isAsked()) {
    if (kernel.engineServe(job) === 0 && !spin()) sleepUntilCalled(kernel, job, slot, isAsked);
  }
}
