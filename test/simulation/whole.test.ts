// The whole API over simulated networks, each of another kind. PAMIR_SEED=… replays one.
import { expect, it } from "vitest";
import { SEED } from "../support/seed.js";
import { whole } from "./whole.js";

const COUNT = process.env.PAMIR_SEED === undefined ? 60 : 1;

it(`Messages, puts, gets, rmw, fences and ends over ${COUNT} networks from PAMIR_SEED=${SEED}`, {
  timeout: 180_000,
}, () => {
  for (let seed = SEED; seed < SEED + COUNT; seed++) {
    const { wrong, drawn, counts } = whole(seed);
    expect(wrong, `replay: npm run sim -- --seed ${seed}: ${JSON.stringify(drawn)}`).toEqual([]);
    expect(counts.operations).toBeGreaterThan(50);
  }
});
