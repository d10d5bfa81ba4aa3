// The whole API over simulated networks, each of another kind. `npm run sim` replays one.
import { expect, it } from "vitest";
import { byEffort, SEED } from "../support/effort.js";
import { whole } from "./whole.js";

const COUNT = byEffort({ quick: 2, normal: 4, deep: 60 });

it(`Messages, puts, gets, rmw, fences and ends over ${COUNT} networks (PAMIR_SEED=${SEED})`, {
  timeout: 600_000,
}, () => {
  let operations = 0;
  for (let seed = SEED; seed < SEED + COUNT; seed++) {
    const { wrong, drawn, counts } = whole(seed);
    expect(wrong, `replay: npm run sim -- --seed ${seed}: ${JSON.stringify(drawn)}`).toEqual([]);
    operations += counts.operations;
  }
  // A single draw may have fewer: 47 of seed 1571809.
  expect(operations).toBeGreaterThan(50 * COUNT);
});
