// Figures in virtual time: the same on every machine, so their goals are bounds.
import { describe, expect, it } from "vitest";
import { fan, goodput } from "./figures.js";

describe("in virtual time", { timeout: 60_000 }, () => {
  it("D8 with one packet in a hundred lost at random, goodput is 0.95 of what it is without", () => {
    expect(goodput(16_384)).toBeGreaterThanOrEqual(0.95);
  });

  // A turn of 32 messages of 64 B is 2 packets, 2.1 µs of the link. Connecting takes a round trip of 4 hops: with 8 contexts,
  // one turn every 2.5 µs at 5 µs a hop. From there on, with full handshakes, contexts are what is short.
  it.each([
    [1, false, 0.95],
    [2, false, 0.95],
    [5, false, 0.8],
    [1, true, 0.95],
    [2, true, 0.95],
    [5, true, 0.95],
  ])(
    "D1 D5 800 targets, 32 messages a turn, from 8 contexts: hop %d µs, half handshakes %s: at least %d of 8 targets' rate",
    (hop, isFaithful, least) => {
      expect(fan(800, hop, isFaithful)).toBeGreaterThanOrEqual(least);
    },
  );
});
