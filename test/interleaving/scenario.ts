import type { World } from "./world.js";

/** Several threads' worth of work on one memory, and what must be true of it under every schedule. */
export interface Scenario {
  readonly name: string;
  readonly threads: readonly ((world: World) => void)[];
  /** Threads that may die, one in a schedule, at any step. */
  readonly mortal?: readonly number[];
  /** Preemptions that `npm test` goes up to; 2 if not given. */
  readonly bound?: number;
  /** Schedules that `npm run test:slow` makes at the most, where they take long. */
  readonly most?: number;
  /** The state from which every run starts; made once. */
  setup(world: World): void;
  /** After a run, outside of schedules: throws what is wrong. `notes[i]`: what thread i noted. */
  check(world: World, notes: readonly (readonly number[])[]): void;
}
