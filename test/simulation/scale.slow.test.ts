// As scale.test.ts, with as many nodes as there are to be.
import { describe, it } from "vitest";
import { manyNodes, manyTargets, silentTargets } from "./scale.js";

describe("many nodes", () => {
  it("D6 1,000 nodes send to 10 others each", () => manyNodes(1000, 10, 20));

  it("D1 D5 D6 one node with 8 initiator contexts serves 10,000 targets, twice", () => {
    manyTargets(10_000);
  });

  it("D5a 4 × 64 silent nodes and 64 contexts: those that answer are served meanwhile", () => silentTargets(64));
});
