// What the random tests draw from, with the interesting values more often than chance would have them.
import fc from "fast-check";

/** Positions where a lane may begin: 0, or close to where the sign bit or the whole word turns over. */
export const start = fc.oneof(
  fc.constant(0),
  fc.integer({ min: 1, max: 16 }).map((granules) => 2 ** 31 - 16 * granules),
  fc.integer({ min: 1, max: 16 }).map((granules) => 2 ** 32 - 16 * granules),
);

/** Bytes of a ring. */
export const capacity = fc.constantFrom(64, 128, 256, 1024);

/** Where in a range: its ends more often than anything between; scaled by share(). */
export const fraction = fc.oneof(fc.constantFrom(0, 0.001, 0.999, 1), fc.double({ min: 0, max: 1, noNaN: true }));

/** The integer of 0 … `most` at a fraction of it. */
export function share(at: number, most: number): number {
  return Math.round(at * most);
}

/** A word, the ends of its range included. */
export const word = fc.oneof(
  fc.constantFrom(0, 1, 0x7fffffff, 0x80000000, 0xffffffff),
  fc.integer({ min: 0, max: 0xffffffff }),
);
