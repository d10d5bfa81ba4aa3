// Hostile packets: of a seed that is another each time. PAMIR_SEED=… replays it.
import { describe, expect, it } from "vitest";
import { replayNote, SEED } from "../support/seed.js";
import { fuzz } from "./fuzz.js";

const COUNT = 25_000;

describe.each([
  ["who guesses no session id", false],
  ["who sees everything", true],
])(`${COUNT} packets of an attacker %s, ${replayNote()}`, (_, isKnowing) => {
  it.each([
    ["full", false],
    ["half", true],
  ])("D8 D9 %s handshakes: nothing traps, nothing grows, all is counted", (_, isFaithful) => {
    const { wrong, rules, taken } = fuzz(SEED, COUNT, isKnowing, isFaithful);
    expect(wrong, replayNote()).toEqual([]);
    // It is no test where hostile packets all fall at the first hurdle, or some hurdle is never met.
    expect(rules[0]).toBeGreaterThan(COUNT / 10);
    for (let rule = 1; rule <= 11; rule++) expect(rules[rule] ?? 0, `rule ${rule}`).toBeGreaterThan(0);
    expect(taken).toBeGreaterThan(COUNT / 100);
  });
});
