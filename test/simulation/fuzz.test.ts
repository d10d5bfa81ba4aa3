// Hostile packets, of a seed that is another each time. PAMIR_SEED=… replays it.
import { describe, it } from "vitest";
import { byEffort } from "../support/effort.js";
import { replayNote, SEED } from "../support/seed.js";
import { fuzzMany, WAYS } from "./fuzz-many.js";

const COUNT = byEffort({ quick: 2500, normal: 10_000, deep: 25_000 });

describe(`${COUNT} packets of an attacker, ${replayNote()}`, { timeout: 600_000 }, () => {
  it.each(WAYS)("D8 D9 that $what: nothing traps, nothing grows, every packet is counted", (way) => {
    fuzzMany(SEED, COUNT, way);
  });
});
