// Words by numbers, against a Map.
import { expect, it } from "vitest";
import { SparseWords } from "../../src/session/store/sparse-words.js";
import { scaled } from "../support/effort.js";
import { randomOf } from "../support/random.js";
import { replayNote, SEED } from "../support/seed.js";

/** Numbers whose entries come to lie side by side, in any table of up to 64 entries, also around its end. */
const NEIGHBORS = Array.from({ length: 2 ** 16 }, (_, number) => number).filter(
  (number) => ((Math.imul(number, 0x9e3779b1) + 2 ** 26) >>> 0) >>> 26 < 2,
);

const numbers: Record<string, (random: (below: number) => number) => number> = {
  "from 0 on": (random) => random(40),
  "that collide": (random) => NEIGHBORS[random(60)] as number,
  "of endpoints": (random) => ((random(128) << 24) | (0xffffff - random(4))) >>> 0,
  anywhere: (random) => (random(2) === 0 ? random(2 ** 32) : (2 ** 32 - 1 - random(40)) >>> 0),
};

it.each(Object.entries(numbers))(
  `words of numbers %s are those that were set last, while entries come and go (${replayNote()})`,
  (_, draw) => {
    for (let round = 0; round < scaled(40); round++) {
      const random = randomOf(SEED + round);
      const table = new SparseWords();
      const model = new Map<number, number>();
      // Some tables stay small, others grow and shrink.
      const wantsMore = 1 + random(8);
      for (let i = 0; i < 300; i++) {
        const number = draw(random);
        const known = model.get(number) ?? 0;
        expect(table.get(number)).toBe(known);
        const kind = random(wantsMore + 2);
        if (kind === 0) {
          table.set(number, 0);
          model.delete(number);
        } else if (kind === 1) {
          expect(table.increment(number)).toBe(known);
          model.set(number, (known + 1) >>> 0);
        } else {
          const word = random(4) === 0 ? 2 ** 32 - 1 : random(2 ** 32);
          table.set(number, word);
          model.set(number, word);
        }
        if (i % 10 !== 0) continue;
        for (const [one, word] of model) expect(table.get(one), `the word of ${one}`).toBe(word);
      }
      for (const [one, word] of model) expect(table.get(one)).toBe(word);
      expect(table.length).toBeLessThanOrEqual(2 * Math.max(16, 8 * model.size + 8));
      for (const one of model.keys()) table.set(one, 0);
      for (const one of model.keys()) expect(table.get(one)).toBe(0);
      expect(table.length).toBe(32);
    }
  },
);
