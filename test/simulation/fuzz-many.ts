// Runs of hostile packets, and what is asked of all of them together.
import { expect } from "vitest";
import { fuzz } from "./fuzz.js";

export const WAYS = [
  { what: "guesses no session id", isKnowing: false, isFaithful: false },
  { what: "guesses no session id, on a faithful wire", isKnowing: false, isFaithful: true },
  { what: "sees everything", isKnowing: true, isFaithful: false },
  { what: "sees everything, on a faithful wire", isKnowing: true, isFaithful: true },
];
/** Packets to one node: who sees everything soon shuts others out, by an epoch of the far future. */
const LIFE = 2500;

/** So many packets, to one node after the other. */
export function fuzzMany(seed: number, count: number, isKnowing: boolean, isFaithful: boolean): void {
  const rules: number[] = Array(12).fill(0);
  let taken = 0;
  const dropped = { foreign: 0, unknown: 0, stale: 0, unsealed: 0, repeated: 0 };
  for (let life = 0; life * LIFE < count; life++) {
    const one = fuzz(seed + life, LIFE, isKnowing, isFaithful);
    expect(one.wrong, `fuzz(${seed + life}, ${LIFE}, ${isKnowing}, ${isFaithful})`).toEqual([]);
    for (const [rule, times = 0] of one.rules.entries()) rules[rule] = (rules[rule] as number) + times;
    for (const key of Object.keys(dropped) as (keyof typeof dropped)[]) dropped[key] += one.dropped[key];
    taken += one.taken;
  }
  // It is no test where hostile packets all fall at the first hurdle, or some hurdle is never met.
  expect(rules[0]).toBeGreaterThan(count / 10);
  for (const [rule, times] of rules.entries()) expect(times, `packets that break rule ${rule}`).toBeGreaterThan(0);
  for (const [why, times] of Object.entries(dropped)) expect(times, why).toBeGreaterThan(0);
  expect(taken).toBeGreaterThan(count / 100);
}
