// Words by numbers: the ends of both, and the memory that they take.
import { describe, expect, it } from "vitest";
import { SparseWords } from "../../src/session/store/sparse-words.js";

/** Words of memory of an empty table. */
const EMPTY = 32;

describe("SparseWords", () => {
  it.each([0, 1, 2 ** 24 - 1, 126 * 2 ** 24 + 0xffffff, 2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1])(
    "of %d: the word is 0 at first, any u32 later, and takes what that of any other number takes",
    (number) => {
      const table = new SparseWords();
      const others = [0, 1, 2 ** 31, 2 ** 32 - 1].filter((other) => other !== number);
      expect(table.get(number)).toBe(0);
      for (const word of [1, 2 ** 31, 2 ** 32 - 1, 0, 7]) {
        table.set(number, word);
        expect(table.get(number)).toBe(word);
        expect(others.map((other) => table.get(other))).toEqual(others.map(() => 0));
      }
      expect(table.length).toBe(EMPTY);
    },
  );

  it.each([
    [0, 0, 1],
    [1, 1, 2],
    [2 ** 31 - 1, 2 ** 31 - 1, 2 ** 31],
    [2 ** 32 - 2, 2 ** 32 - 2, 2 ** 32 - 1],
    [2 ** 32 - 1, 2 ** 32 - 1, 0],
  ])("increment() of %d returns %d and leaves %d", (before, returned, after) => {
    const table = new SparseWords();
    for (const number of [0, 5, 2 ** 32 - 1]) {
      table.set(number, before);
      expect([table.increment(number), table.get(number)]).toEqual([returned, after]);
    }
  });

  it("an entry takes 11 to 21 bytes, wherever its number lies, and gives them back when its word is 0", () => {
    for (const numberOf of [
      (i: number) => i,
      (i: number) => 16_777_215 - 167 * i,
      (i: number) => (((i % 128) << 24) | (0xffffff - (i >> 7))) >>> 0,
      (i: number) => (2 ** 32 - 1 - 42_949 * i) >>> 0,
    ]) {
      const table = new SparseWords();
      let most = 0;
      for (let i = 0; i < 100_000; i++) {
        table.set(numberOf(i), i + 1);
        if (i >= 1000) most = Math.max(most, (4 * table.length) / (i + 1));
      }
      expect(most).toBeLessThan(21.4);
      for (let i = 0; i < 100_000; i++) {
        if (table.get(numberOf(i)) !== i + 1)
          throw new Error(`the word of ${numberOf(i)} is ${table.get(numberOf(i))}`);
      }
      // Setting 0 where it is 0 takes nothing.
      for (let i = 0; i < 1000; i++) table.set(2 ** 31 + 3 * i, 0);
      expect(4 * table.length).toBeLessThan(21.4 * 100_000);
      for (let i = 0; i < 100_000; i++) table.set(numberOf(i), 0);
      expect(table.length).toBe(EMPTY);
    }
  });
});
