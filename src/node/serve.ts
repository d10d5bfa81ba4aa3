// The life of an engine thread: turns while there is work, then a spin, then sleep on its bell.
import {
  JOB_CORES_OFFSET,
  JOB_ENGINE_OFFSET,
  JOB_TASKS_OFFSET,
  TASK_ABSENT,
  TASK_INTERRUPT_OFFSET,
  TASK_STATE_OFFSET,
  TASK_UP,
} from "../../assembly/layout.js";
import type { Kernel, Memory } from "../kernel/kernel.js";
import { systemClock } from "../support/clock.js";
import { sleepOn } from "./bell.js";
import { mayAgentSpin, Spins } from "./spins.js";

/** The kernel functions that an engine thread calls. */
type EngineKernel = Pick<Kernel, "engineServe" | "loadWord" | "exchangeIf" | "bellArm" | "bellWait" | "bellDisarm">;

/** Milliseconds of spinning before it sleeps: a context's default. */
const SPIN_MS = 0.05;
/** Turns between two looks at the clock: some 3 µs with nothing to do. */
const SPIN_TURNS = 64;

/** The kernel functions that sleeping calls. */
type Sleeping = Pick<EngineKernel, "engineServe" | "bellArm" | "bellWait" | "bellDisarm" | "loadWord">;

/** Sleeps on the bell of its slot, unless there is work, or it is asked to return. */
export function sleepUntilCalled(
  kernel: Sleeping,
  memory: Memory,
  job: number,
  slot: number,
  isAsked: () => boolean,
): void {
  const seen = kernel.bellArm(slot);
  // Arms the bell, then looks once more: a ring from here on finds the flag up.
  if (kernel.engineServe(job) === 0 && !isAsked()) sleepOn(kernel, memory, slot, seen, Number.POSITIVE_INFINITY);
  kernel.bellDisarm(slot);
}

/** Serves a job's tasks until an interrupt of its slot, or until its thread ends. */
export function serve(kernel: EngineKernel, memory: Memory, job: number): void {
  const word = (offset: number): number => (memory.words[(job + offset) >>> 2] as number) >>> 0;
  const slot = word(JOB_ENGINE_OFFSET);
  const [tasks, cores] = [word(JOB_TASKS_OFFSET), word(JOB_CORES_OFFSET)];
  // SYNC task-state (up): pairs with hasEngineThread(). The monitor notes the end of this thread.
  if (kernel.exchangeIf(slot + TASK_STATE_OFFSET, TASK_ABSENT, TASK_UP) !== TASK_ABSENT) return;

  const spins = new Spins();

  const maySpin = (): boolean => mayAgentSpin(kernel, job, tasks, cores);

  /** Spins until there is work, which it does, or until the spin is over. Returns whether there was work. */
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

  /** Whether this thread is asked to return. */
  function isAsked(): boolean {
    // SYNC notice (interrupt): pairs with interruptTask().
    return kernel.loadWord(slot + TASK_INTERRUPT_OFFSET) !== 0;
  }

  while (!isAsked()) {
    if (kernel.engineServe(job) === 0 && !spin()) sleepUntilCalled(kernel, memory, job, slot, isAsked);
  }
}
