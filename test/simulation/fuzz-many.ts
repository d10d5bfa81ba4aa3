// Runs of hostile packets, and what is asked of all of them together.
import { expect } from "vitest";
import { fuzz, type Way } from "./fuzz.js";

export const WAYS: readonly (Way & { readonly what: string })[] = [
  { what: "guesses no session id", isKnowing: false, isFaithful: false, key: "none" },
  { what: "guesses no session id, on a faithful link", isKnowing: false, isFaithful: true, key: "none" },
  { what: "sees everything", isKnowing: true, isFaithful: false, key: "none" },
  { what: "sees everything, on a faithful link", isKnowing: true, isFaithful: true, key: "none" },
  { what: "sees everything, and has not the key", isKnowing: true, isFaithful: false, key: "honest" },
  {
    what: "sees everything, on a faithful link, and has not the key",
    isKnowing: true,
    isFaithful: true,
    key: "honest",
  },
  { what: "has the key, and names no other", isKnowing: false, isFaithful: false, key: "all" },
  { what: "has the key, and names no other, on a faithful link", isKnowing: false, isFaithful: true, key: "all" },
  { what: "has the key, and sees everything", isKnowing: true, isFaithful: true, key: "all" },
];
/** Packets to one node: who sees everything soon shuts others out, by an epoch of the far future. */
const LIFE = 2500;
/** Packets from which on each rule is broken by some of them: the rarest by one in 500. Of 2500 there may be none. */
const EACH_RULE = 10_000;

/** So many packets, to one node after the other. */
export function fuzzMany(seed: number, count: number, { isKnowing, isFaithful, key }: Way): void {
  const rules: number[] = Array(12).fill(0);
  const dropped: Record<string, number> = {};
  let taken = 0;
  for (let life = 0; life * LIFE < count; life++) {
    const way = { isKnowing, isFaithful, key };
    const one = fuzz(seed + life, LIFE, way);
    expect(one.wrong, `fuzz(${seed + life}, ${LIFE}, ${JSON.stringify(way)})`).toEqual([]);
    // Those that are broken behind a seal, too.
    for (const [rule, times = 0] of [one.rules[0], ...one.dropped.malformed.slice(1)].entries())
      rules[rule] = (rules[rule] as number) + times;
    for (const [why, times] of Object.entries(one.dropped)) {
      if (typeof times === "number") dropped[why] = (dropped[why] ?? 0) + times;
    }
    taken += one.taken;
  }
  // It is no test where hostile packets all fall at the first hurdle, or some hurdle is never met.
  expect(rules[0]).toBeGreaterThan(count / 10);
  expect(taken).toBeGreaterThan(count / 100);
  if (count < EACH_RULE) return;
  for (const [rule, times] of rules.entries()) expect(times, `packets that break rule ${rule}`).toBeGreaterThan(0);
  const met = {
    none: ["foreign", "wrongAddress", "unknownSession", "stale", "unauthenticated", "duplicate"],
    honest: ["unknownSession", "unauthenticated", "replayed"],
    all: ["foreign", "wrongAddress", "unknownSession", "stale", "unauthenticated", "replayed", "duplicate"],
  }[key];
  for (const why of met) expect(dropped[why], why).toBeGreaterThan(0);
}
