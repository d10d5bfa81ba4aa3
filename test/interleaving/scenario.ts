import type { World } from "./world.js";

/** Several threads' worth of work on one memory, and what must be true of it under every schedule. */
export interface Scenario {
  readonly name: string;
  readonly threads: readonly ((world: World) => void)[];
  /** Threads that may die, at any step. */
  readonly mortal?: readonly number[];
  /** How many of them may die in one schedule; 1 if not given. */
  readonly deaths?: number;
  /** What is done for such a thread once it has died, in its place: what the monitor does. */
  readonly monitor?: (world: World) => void;
  /** Whether the job has an engine thread. */
  readonly engine?: boolean;
  /** The memory is that of a node: tasks of other nodes have slots in it, and so has the agent. */
  readonly node?: {
    /** Tasks of the node: the other slots are for those of other nodes. */
    readonly locals: 1 | 2;
    /** Slots in all; 3 if not given. */
    readonly tasks?: 4;
    /** Whether the job has more tasks than there are slots. */
    readonly isCrowded: boolean;
  };
  /** Threads that go on for ever, not the first: they are ended once the others are through and they sleep. */
  readonly endless?: readonly number[];
  /**
   * Each thread stands for a process: Atomics.notify() wakes none of the others, and a futex does. `sleepsEnd`: a sleep
   * without a limit ends by itself at some time. What ships does so, but no wake-up may need that while all processes run.
   */
  readonly processes?: { readonly sleepsEnd: boolean };
  /** Preemptions that `test:deep` goes up to; 2 if not given. */
  readonly bound?: number;
  /** Schedules that `test:deep` explores up to that bound at most: where all of them would take longer than a minute. */
  readonly atMost?: number;
  /** The state from which every run starts; made once. */
  setup(world: World): void;
  /** After a run, outside of schedules: throws what is wrong. `notes[i]`: what thread i noted. */
  check(world: World, notes: readonly (readonly number[])[]): void;
}
