// The buddy allocator of a node's sessions, against an array of units that are free or belong to a block.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BuddyArena } from "../../src/session/store/buddy-arena.js";
import { fraction, share } from "../support/arbitraries.js";
import { assertProperty, replayNote } from "../support/seed.js";

/** Bytes of the smallest block. */
const UNIT = 64;
const UNITS = 64;
const BYTES = UNIT * UNITS;
const BASE = 3 * UNIT;

interface Block {
  readonly pointer: number;
  readonly bytes: number;
  readonly units: number;
}

/** Units of the block for a number of bytes. */
function unitsOf(bytes: number): number {
  let units = 1;
  while (units * UNIT < bytes) units *= 2;
  return units;
}

/** Allocates bytes, or frees the block at a fraction of all blocks. */
const command = fc.oneof(
  fc.record({ bytes: fc.oneof(fc.integer({ min: 1, max: 400 }), fc.integer({ min: 1, max: BYTES + UNIT })) }),
  fc.record({ free: fraction }),
);

describe(`BuddyArena (${replayNote()})`, () => {
  it("blocks do not overlap, are refused only without room, and all join into one block when they are freed", () =>
    assertProperty(
      fc.property(fc.array(command, { maxLength: 200 }), (commands) => {
        const arena = new BuddyArena(BASE, BYTES);
        const used = new Array<boolean>(UNITS).fill(false);
        const blocks: Block[] = [];
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
          blocks.push({ pointer, bytes, units });
        };
        const free = (index: number): void => {
          const [block] = blocks.splice(index, 1);
          if (block === undefined) return;
          const { pointer, bytes, units } = block;
          const first = (pointer - BASE) / UNIT;
          arena.free(pointer, bytes);
          used.fill(false, first, first + units);
        };
        for (const one of commands) {
          if ("bytes" in one) allocate(one.bytes);
          else free(share(one.free, blocks.length - 1));
          expect(arena.used).toBe(UNIT * used.filter((is) => is).length);
        }
        while (blocks.length > 0) free(blocks.length - 1);
        expect(arena.used).toBe(0);
        expect(arena.allocate(BYTES)).toBe(BASE);
      }),
      500,
    ));
});
