// State that grows with the number of nodes, and state that does not.
import { describe, expect, it } from "vitest";
import { idleBytes } from "./idle.js";
import { manyNodes, manyTargets, silentTargets } from "./scale.js";

describe("many nodes", { timeout: 600_000 }, () => {
  it("D6 1,000 nodes send to 10 others each", () => manyNodes(1000, 10, 3));

  it("D1 D5 D6 one node with 8 initiator contexts serves 10,000 targets, twice", () => {
    manyTargets(10_000);
  });

  it.each([1, 4, 8])(
    "D5a 4 silent nodes for each of %d contexts: the nodes that answer are served meanwhile",
    (initiators) => {
      silentTargets(initiators, false);
      silentTargets(initiators, true);
    },
  );

  it.each([
    ["the first of the job", 1],
    ["among 2^24", 699],
  ])(
    "D6 an idle target costs its origin at most 64 bytes, of which its order number and epoch take some 20: targets are %s",
    (_, stride) => {
      expect(idleBytes(4000, stride)).toBeLessThanOrEqual(64);
    },
  );
});
