// The replay window against a set of numbers.
import { expect, it } from "vitest";
import { seqDelta } from "../../assembly/seq.js";
import { ReplayWindow } from "../../src/session/wire/replay-window.js";
import { randomOf } from "../support/random.js";
import { replayNote, SEED } from "../support/seed.js";

it(`D9 each number is accepted once, in any order, also around 2^32, and numbers below the window never (${replayNote()})`, () => {
  const random = randomOf(SEED);
  for (const words of [2, 4, 64]) {
    for (const first of [0, 1000, 2 ** 31 - 100, 2 ** 32 - 100]) {
      const window = new ReplayWindow(words, first);
      const model = new Set<number>();
      let highest = first;
      let taken = 0;
      for (let i = 0; i < 5000; i++) {
        const jump = random(50) === 0 ? random(200 * words) : random(3);
        const number = (highest + jump - random(random(4) === 0 ? 40 * words : 8)) >>> 0;
        const behind = -seqDelta(number, highest);
        if (model.has(number)) expect(window.has(number)).toBe(true);
        // Within the window, no new number is refused. Below it, every number is.
        else if (behind < 32 * (words - 1)) expect(window.has(number), `${number} after ${highest}`).toBe(false);
        else expect(window.has(number)).toBe(true);
        if (window.has(number)) continue;
        window.add(number);
        model.add(number);
        taken++;
        if (behind < 0) highest = number;
      }
      expect(taken).toBeGreaterThan(1000);
    }
  }
});
