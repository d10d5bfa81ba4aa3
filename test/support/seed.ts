// The seed of every random test: printed when one fails, and taken from the environment to see the same failure again.
// Without one in the environment, the configurations of Vitest set one that belongs to the commit: scripts/seed.mjs.
import fc from "fast-check";
import { SEED, scaled } from "./effort.js";

export { SEED };

/** What a failure says, so that it can be seen again. */
export function replayNote(): string {
  return `replay: PAMIR_SEED=${SEED}`;
}

/** As fc.assert(), with this run's seed, and so many runs as go with its effort. */
export function assertProperty<T>(property: fc.IProperty<T>, runs = 100): void {
  const details = fc.check(property, { seed: SEED, numRuns: scaled(runs) });
  if (!details.failed) return;
  throw new Error(`${replayNote()}\n${fc.defaultReportMessage(details)}`, { cause: details.errorInstance });
}
