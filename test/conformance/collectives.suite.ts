// What holds for collective operations, whatever carries them, against a plain sequential model. The product of types,
// algorithms, elements, operations, roots, lengths, places and forms is large: a run draws cases from its seed.
import { describe, expect, it } from "vitest";
import { COLLECTIVE_TYPES } from "../../src/collective/signature.js";
import { drawCase } from "../support/collective-draws.js";
import { geometryOf, type Members, runCase } from "../support/collective-rig.js";
import { hashOf, scaled } from "../support/effort.js";
import { randomOf } from "../support/random.js";
import { replayNote, SEED } from "../support/seed.js";

export interface CollectivesSuite {
  readonly name: string;
  /** Numbers of members. */
  readonly sizes: readonly number[];
  /** Cases of each type and number of members. */
  readonly cases: number;
  /** The most bytes of all members' blocks together. */
  readonly most?: number;
  members(size: number): Promise<Members>;
}

/** Members that are all on this thread, so that nothing blocks. */
export function collectivesSuite(suite: CollectivesSuite): void {
  const { name, sizes, cases, most } = suite;
  describe(`${name} (${replayNote()})`, () => {
    it.each(sizes)("%i members: each type gives what a sequential program gives", async (size) => {
      const given = await suite.members(size);
      try {
        const geometries = await geometryOf(given);
        const [first] = geometries;
        const algorithms = first?.algorithms.bind(first) as NonNullable<typeof first>["algorithms"];
        const random = randomOf(SEED ^ hashOf(`${name} ${size}`));
        const draw = { size, forms: ["callback", "promise"] as const, ...(most && { most }) };
        // Many members take long for each.
        const rounds = Math.ceil(scaled(cases) * Math.min(1, 6 / size));
        for (let count = 0; count < rounds; count++) {
          for (const type of COLLECTIVE_TYPES) {
            const one = drawCase(random, draw, algorithms, type);
            const problems = await runCase(one, given, geometries);
            if (problems.length > 0) expect.fail(`${JSON.stringify(one)}\n${problems.join("\n")}`);
          }
        }
        for (const geometry of geometries) geometry.close();
      } finally {
        await given.close();
      }
    });
  });
}
