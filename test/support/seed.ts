// The seed of every random test: printed when one fails, and taken from the environment to see the same failure again.
import fc from "fast-check";

/** `PAMIR_SEED=…`: replays a failure. */
const given = process.env.PAMIR_SEED;

if (given !== undefined && !Number.isInteger(Number(given)))
  throw new Error(`PAMIR_SEED is "${given}", not an integer`);

/** The seed of this run. */
export const SEED = given === undefined ? (Math.random() * 0x7fffffff) | 0 : Number(given) | 0;

/** What a failure says, so that it can be seen again. */
export function replayNote(): string {
  return `replay: PAMIR_SEED=${SEED}`;
}

/** As fc.assert(), with this run's seed. */
export function assertProperty<T>(property: fc.IProperty<T>, runs = 100): void {
  const details = fc.check(property, { seed: SEED, numRuns: runs });
  if (!details.failed) return;
  throw new Error(`${replayNote()}\n${fc.defaultReportMessage(details)}`, { cause: details.errorInstance });
}
