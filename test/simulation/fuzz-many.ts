// Runs of hostile packets, and what must hold for all of them together.
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
/** Packets to one node. A knowing attacker soon shuts other nodes out, by an epoch of the far future. */
const PACKETS_PER_NODE = 2500;
/**
 * From this number of packets on, some break each rule. The rarest rule is broken by one in 500; 2500 packets may miss it.
 */
const EACH_RULE = 10_000;

/** Sends packets to one node after the other. */
export function fuzzMany(seed: number, count: number, { isKnowing, isFaithful, key }: Way): void {
  const rules: number[] = Array(12).fill(0);
  const dropped: Record<string, number> = {};
  let taken = 0;
  for (let node = 0; node * PACKETS_PER_NODE < count; node++) {
    const way = { isKnowing, isFaithful, key };
    const one = fuzz(seed + node, PACKETS_PER_NODE, way);
    expect(one.wrong, `fuzz(${seed + node}, ${PACKETS_PER_NODE}, ${JSON.stringify(way)})`).toEqual([]);
    // Includes the rules that sealed packets break once they are opened.
    for (const [rule, times = 0] of [one.rules[0], ...one.dropped.malformed.slice(1)].entries())
      rules[rule] = (rules[rule] as number) + times;
    for (const [why, times] of Object.entries(one.dropped)) {
      if (typeof times === "number") dropped[why] = (dropped[why] ?? 0) + times;
    }
    taken += one.taken;
  }
  // The run tests nothing if all packets fail at the first check, or if a check never fails.
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
