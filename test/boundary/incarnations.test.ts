// Epochs and incarnations: 0, the wrap at 2^32, and the largest counts.
import { describe, expect, it } from "vitest";
import { Incarnations } from "../../src/session/incarnations.js";
import type { Loss } from "../../src/session/sessions-options.js";

/** The incarnations that a node knows, and the losses that it reports: node, why, the reason of a refusal. */
function known(epoch = 1): { incarnations: Incarnations; lost: [number, Loss, number][] } {
  const lost: [number, Loss, number][] = [];
  return { incarnations: new Incarnations(epoch, (...loss) => lost.push(loss)), lost };
}

describe("Incarnations", () => {
  it("an unknown node has epoch 0, and only epoch 0 is stale", () => {
    const { incarnations } = known();
    expect(incarnations.epochOf(1e6)).toBe(0);
    expect([0, 1, 2 ** 31, 2 ** 32 - 1].map((epoch) => incarnations.isStale(1e6, epoch))).toEqual([
      true,
      false,
      false,
      false,
    ]);
  });

  it.each([
    ["the same", 7, 7, false],
    ["the next", 7, 8, false],
    ["the one before", 7, 6, true],
    ["invalid", 7, 0, true],
    ["the farthest later one", 7, 7 + 2 ** 31 - 1, false],
    ["one farther: earlier", 7, 7 + 2 ** 31, true],
    ["later across the wrap", 2 ** 32 - 1, 1, false],
    ["earlier across the wrap", 1, 2 ** 32 - 1, true],
  ])("isStale: %s", (_, latest, epoch, isStale) => {
    const { incarnations } = known();
    incarnations.note(3, latest);
    expect(incarnations.isStale(3, epoch)).toBe(isStale);
  });

  it("a loss is reported when an epoch replaces another one, and not for the first epoch or the same", () => {
    const { incarnations, lost } = known();
    for (const epoch of [65536, 65536, 65537, 2 * 65536]) incarnations.note(100, epoch);
    expect(lost).toEqual([
      [100, "givenUp", 0],
      [100, "restarted", 0],
    ]);
    expect([incarnations.epochOf(100), incarnations.epochOf(99)]).toEqual([2 * 65536, 0]);
    expect(incarnations.kept.givenUp).toBe(0);
  });

  it("a first epoch says that the node has given up this one, unless that may have been an earlier start", () => {
    for (const [own, first, expected] of [
      [1, 65536, []],
      [1, 65537, [[7, "givenUp", 0]]],
      [2, 65537, []],
    ] as const) {
      const { incarnations, lost } = known(own);
      incarnations.note(7, first);
      expect(lost).toEqual(expected);
    }
  });

  it("what is kept for a node does not depend on its number", () => {
    const kept = [1, 100, 2 ** 24 - 1].map((node) => {
      const { incarnations } = known();
      incarnations.note(node, 65536);
      incarnations.giveUp(node, 0);
      expect([incarnations.epochOf(node), incarnations.epochOf(node - 1)]).toEqual([65536, 0]);
      return incarnations.kept;
    });
    expect(kept).toEqual(Array(3).fill({ epochs: 32, givenUp: 1 }));
  });

  it("each time that it gives a node up, it states the next epoch to that node alone, up to 65,535 times", () => {
    const { incarnations, lost } = known(65535);
    expect(incarnations.epochFor(5)).toBe(0xffff0000);
    incarnations.giveUp(5, 4);
    expect([incarnations.epochFor(5), incarnations.epochFor(6)]).toEqual([0xffff0001, 0xffff0000]);
    expect(lost).toEqual([[5, "refused", 4]]);
    for (let i = 0; i < 70_000; i++) incarnations.giveUp(5, 0);
    expect(incarnations.epochFor(5)).toBe(0xffffffff);
    expect(incarnations.kept.givenUp).toBe(1);
  });
});
