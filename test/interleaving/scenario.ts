import type { World } from "./world.js";

/** Several threads' worth of work on one memory, and what must be true of it under every schedule. */
export interface Scenario {
  readonly name: string;
  readonly threads: readonly ((world: World) => void)[];
  /** The state from which every run starts; made once. What it returns is kept in `world.start`. */
  setup(world: World): void;
  /** After a run, with plain kernels: throws what is wrong. `notes[i]`: what thread i noted. */
  check(world: World, notes: readonly (readonly number[])[]): void;
}
