// As scale.test.ts, with more nodes than there are to be.
import { describe, it } from "vitest";
import { manyNodes, manyTargets, silentTargets } from "./scale.js";

describe("many nodes", () => {
  it("D6 2,000 nodes send to 20 others each", () => manyNodes(2000, 20, 20));

  it("D1 D5 D6 one node with 8 initiator contexts serves 30,000 targets, twice", () => {
    manyTargets(30_000);
  });

  it("D5a 4 × 64 silent nodes and 64 contexts: those that answer are served meanwhile", () => {
    silentTargets(64, false);
    silentTargets(64, true);
  });
});
