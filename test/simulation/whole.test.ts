import { expect, it } from "vitest";
import { replayNote, SEED } from "../support/seed.js";
import { whole } from "./whole.js";

it(`the whole API over 60 networks (${replayNote()})`, { timeout: 120_000 }, () => {
  let operations = 0;
  for (let i = 0; i < 60; i++) {
    const outcome = whole(SEED + i);
    operations += outcome.operations;
    expect(outcome.wrong, `seed ${outcome.seed}: ${outcome.text}`).toEqual([]);
  }
  expect(operations).toBeGreaterThan(5000);
});
