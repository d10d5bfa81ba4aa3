// The round-trip estimator against the rules of RFC 9002, section 5, worked out by hand.
import { describe, expect, it } from "vitest";
import { RttEstimator } from "../../src/session/pace/round-trip.js";

/** The estimates after some samples: smoothed, variation, min. */
function after(...samples: number[]): [number, number, number] {
  const rtt = new RttEstimator();
  for (const sample of samples) rtt.addSample(sample);
  return [rtt.smoothed, rtt.variation, rtt.min];
}

describe("RttEstimator", () => {
  it.each([
    ["no sample", [], [0, 0, Number.POSITIVE_INFINITY]],
    ["5.3: the first sample, and half of it as its variation", [100], [100, 50, 100]],
    ["5.3: 7/8 and 1/8, 3/4 and 1/4", [100, 140], [105, 47.5, 100]],
    ["5.3: the variation uses the smoothed value before the sample", [80, 160], [90, 50, 80]],
    ["5.2: the minimum falls at once", [100, 20], [90, 57.5, 20]],
    ["5.2: the minimum never rises", [100, 300, 300], [146.875, 109.375, 100]],
    ["a sample of 0, by a coarse clock, counts as 1 µs", [0], [1, 0.5, 1]],
    ["an ack delay beyond the time makes it negative: likewise", [-5], [1, 0.5, 1]],
  ])("%s", (_, samples, [smoothed, variation, min]) => {
    expect(after(...samples)).toEqual([
      expect.closeTo(smoothed as number, 9),
      expect.closeTo(variation as number, 9),
      min,
    ]);
  });

  it("equal samples: the variation tends to 0, the smoothed value stays", () => {
    const [smoothed, variation, min] = after(...Array<number>(100).fill(250));
    expect([smoothed, min]).toEqual([250, 250]);
    expect(variation).toBeLessThan(1e-9);
  });
});
