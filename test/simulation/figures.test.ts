// Figures in virtual time: the same on every machine, so their goals are bounds.
import { describe, expect, it } from "vitest";
import { fan, goodput, sentAgain } from "./figures.js";

describe("in virtual time", { timeout: 60_000 }, () => {
  it("D8 with one packet in a hundred lost at random, goodput is 0.95 of what it is without", () => {
    expect(goodput(16_384)).toBeGreaterThanOrEqual(0.95);
  });

  // Before it is known how late a packet may come, some are taken for lost. To 8 nodes sessions take turns, of 64 packets each.
  it.each([
    [0.25, 1, 0.001],
    [1, 1, 0.001],
    [4, 1, 0.005],
    [0.25, 8, 0.003],
    [1, 8, 0.005],
    [4, 8, 0.01],
  ])(
    "D8 one packet in ten comes up to %d round trips late, none is lost: to %d nodes, at most a part of %d is sent again",
    (late, targets, part) => {
      expect(sentAgain(5000, late, targets)).toBeLessThanOrEqual(part);
    },
  );

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
