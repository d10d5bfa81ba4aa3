// Figures in virtual time: the same on every machine, so their goals are bounds.
import { describe, expect, it } from "vitest";
import { fan, goodput } from "./figures.js";

describe("in virtual time", { timeout: 60_000 }, () => {
  it("D8 with one packet in a hundred lost at random, goodput is 0.95 of what it is without", () => {
    expect(goodput(16_384)).toBeGreaterThanOrEqual(0.95);
  });

  // A turn of 32 messages of 64 B is 2 packets, 2 µs of the link. A full handshake and the acknowledgment are two round trips
  // of 4 hops each: with 8 contexts, one turn every hop's length. From 5 µs a hop on, contexts are what is short.
  it.each([
    [1, false, 0.8],
    [2, false, 0.7],
    [1, true, 0.9],
    [2, true, 0.9],
    [5, true, 0.5],
  ])(
    "D1 D5 800 targets, 32 messages a turn, from 8 contexts: hop %d µs, half handshakes %s: at least %d of 8 targets' rate",
    (hop, isFaithful, least) => {
      expect(fan(800, hop, isFaithful)).toBeGreaterThanOrEqual(least);
    },
  );
});
