// As fuzz.test.ts, with many more packets. PAMIR_SEED=… replays it.
import { describe, it } from "vitest";
import { replayNote, SEED } from "../support/seed.js";
import { fuzzMany, WAYS } from "./fuzz-many.js";

/** `PAMIR_PACKETS=…`: of all ways together. 10^7 take some 2 minutes. */
const COUNT = Number(process.env.PAMIR_PACKETS ?? 10_000_000) / WAYS.length;

describe(`${COUNT} packets of an attacker, ${replayNote()}`, () => {
  it.each(WAYS)("D8 D9 that $what: nothing traps, nothing grows, every packet is counted", (way) => {
    fuzzMany(SEED, COUNT, way);
  });
});
