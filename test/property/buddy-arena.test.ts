// The memory of a node's sessions against a row of units, each free or of one piece.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BuddyArena } from "../../src/session/buddy-arena.js";
import { fraction, share } from "../support/arbitraries.js";
import { assertProperty, replayNote } from "../support/seed.js";

/** Bytes of the smallest piece. */
const UNIT = 64;
const UNITS = 64;
const BYTES = UNIT * UNITS;
const BASE = 3 * UNIT;

interface Piece {
  readonly pointer: number;
  readonly bytes: number;
  readonly units: number;
}

/** Units of the piece for so many bytes. */
function unitsOf(bytes: number): number {
  let units = 1;
  while (units * UNIT < bytes) units *= 2;
  return units;
}

/** Bytes of a piece, or, of the pieces that are there, the one at a fraction: it is freed. */
const command = fc.oneof(
  fc.record({ bytes: fc.oneof(fc.integer({ min: 1, max: 400 }), fc.integer({ min: 1, max: BYTES + UNIT })) }),
  fc.record({ free: fraction }),
);

describe(`BuddyArena (${replayNote()})`, () => {
  it("pieces lie in it, each for itself, and are refused only where there is no room; all of it comes back as one", () =>
    assertProperty(
      fc.property(fc.array(command, { maxLength: 200 }), (commands) => {
        const arena = new BuddyArena(BASE, BYTES);
        const used = new Array<boolean>(UNITS).fill(false);
        const pieces: Piece[] = [];
        const allocate = (bytes: number): void => {
          const units = unitsOf(bytes);
          const pointer = arena.allocate(bytes);
          const isFree = (first: number) => used.slice(first, first + units).every((is) => !is);
          if (pointer === 0) {
            for (let first = 0; first + units <= UNITS; first += units) expect(isFree(first)).toBe(false);
            return;
          }
          const first = (pointer - BASE) / UNIT;
          expect([first % units, first >= 0, first + units <= UNITS]).toEqual([0, true, true]);
          expect(isFree(first)).toBe(true);
          used.fill(true, first, first + units);
          pieces.push({ pointer, bytes, units });
        };
        const free = (place: number): void => {
          const [piece] = pieces.splice(place, 1);
          if (piece === undefined) return;
          const { pointer, bytes, units } = piece;
          const first = (pointer - BASE) / UNIT;
          arena.free(pointer, bytes);
          used.fill(false, first, first + units);
        };
        for (const one of commands) {
          if ("bytes" in one) allocate(one.bytes);
          else free(share(one.free, pieces.length - 1));
          expect(arena.used).toBe(UNIT * used.filter((is) => is).length);
        }
        while (pieces.length > 0) free(pieces.length - 1);
        expect(arena.used).toBe(0);
        expect(arena.allocate(BYTES)).toBe(BASE);
      }),
      500,
    ));
});
