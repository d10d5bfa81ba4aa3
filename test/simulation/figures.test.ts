// Figures in virtual time. They are the same on every machine, so the tests can require the goals.
import { describe, expect, it } from "vitest";
import { fan, goodput, sentAgain } from "./figures.js";

describe("in virtual time", { timeout: 600_000 }, () => {
  it("D8 with 1 % random loss, goodput is at least 0.95 of the goodput without loss", () => {
    expect(goodput(16_384)).toBeGreaterThanOrEqual(0.95);
  });

  // Until the reordering delay is known, some packets are taken for lost. With 8 nodes, sessions take turns of 64 packets.
  it.each([
    [0.25, 1, 0.001],
    [1, 1, 0.001],
    [4, 1, 0.005],
    [0.25, 8, 0.003],
    [1, 8, 0.005],
    [4, 8, 0.01],
  ])(
    "D8 one packet in ten comes up to %d round trips late, none is lost: to %d nodes, at most a part of %d is retransmitted",
    (late, targets, part) => {
      expect(sentAgain(5000, late, targets)).toBeLessThanOrEqual(part);
    },
  );

  // A turn of 32 messages of 64 B is 2 packets, which the link transmits in 2.1 µs. Connecting takes a round trip of 4 hops.
  // At 5 µs a hop, 8 contexts thus serve a target every 2.5 µs. From there on, with full handshakes, contexts are the
  // bottleneck.
  it.each([
    [1, false, 0.95],
    [2, false, 0.95],
    [5, false, 0.8],
    [1, true, 0.95],
    [2, true, 0.95],
    [5, true, 0.95],
  ])(
    "D1 D5 800 targets, 32 messages a turn, from 8 contexts: hop %d µs, 0-RTT %s: at least %d of 8 targets' rate",
    (hop, isFaithful, least) => {
      expect(fan(800, hop, isFaithful)).toBeGreaterThanOrEqual(least);
    },
  );
});
