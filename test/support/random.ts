// Random numbers that a seed repeats.
import { seededWords } from "../../src/support/randomness.js";

/** Small random numbers from a seed, where fast-check would be too slow. */
export function randomOf(seed: number): (below: number) => number {
  const words = seededWords(seed);
  return (below) => words() % below;
}
