// Collective operations over messages, several under way, while members end.
import { describe, it } from "vitest";
import { SEED, scaled } from "../support/effort.js";
import { randomOf } from "../support/random.js";
import { replayNote } from "../support/seed.js";
import { ALGORITHMS, operatorsFor, planOf, VARIANTS, worksFor } from "./collectives.js";
import { runGeometry, type Step } from "./geometries.js";
import type { Operator } from "./schedules.js";

/** Short and long messages: the latter wait for their receiver. */
const BYTES = [0, 8, 1000, 20_000];
/** Events in which four members compare three calls, and a few more. */
const END_MAX = 60;

function stepsOf(size: number, count: number, random: (below: number) => number): Step[] {
  return Array.from({ length: count }, () => {
    const plan = planOf(size, random(size), BYTES[random(BYTES.length)] as number, random);
    const works = [...ALGORITHMS, ...VARIANTS].filter((algorithm) => worksFor(algorithm, plan));
    const algorithm = works[random(works.length)] as (typeof works)[number];
    return { plan, algorithm, operator: operatorsFor(algorithm, plan)[0] as Operator };
  });
}

describe("several operations under way", () => {
  it(`give their results to all members (${replayNote()})`, () => {
    for (let round = 0; round < scaled(60); round++) {
      const random = randomOf(SEED + round);
      const size = 1 + random(9);
      runGeometry(size, stepsOf(size, 6, random), [], random);
    }
  });

  it(`fail for all members where one differs, in debug mode, and the others work (${replayNote()})`, () => {
    for (let round = 0; round < scaled(100); round++) {
      const random = randomOf(SEED + round);
      const size = 2 + random(8);
      const steps = stepsOf(size, 6, random).map((step) => (random(2) === 0 ? step : { ...step, odd: random(size) }));
      const deaths = random(3) === 0 ? [random(size * 40)] : [];
      try {
        runGeometry(size, steps, deaths, random, true);
      } catch (error) {
        throw new Error(`round ${round}, ${size} members, ends ${deaths}`, { cause: error });
      }
    }
  });

  it("one finds a difference, and another the end of a member: both begin nothing further", () => {
    // The member that ends has told only some of them what it has called, and another member calls something else.
    const size = 4;
    for (let end = 0; end < END_MAX; end++) {
      for (let order = 0; order < scaled(4); order++) {
        const random = randomOf(END_MAX * order + end);
        const steps = stepsOf(size, 4, random).map((step, i) => (i === 0 ? { ...step, odd: 1 } : step));
        try {
          runGeometry(size, steps, [end], random, true);
        } catch (error) {
          throw new Error(`a member ends before event ${end}, order ${order}`, { cause: error });
        }
      }
    }
  });

  it(`end for all members where some end: none waits for ever, no result is wrong, memory comes back (${replayNote()})`, () => {
    for (let round = 0; round < scaled(160); round++) {
      const random = randomOf(SEED + round);
      const size = 2 + random(8);
      const steps = stepsOf(size, 5, random);
      const deaths = Array.from({ length: 1 + random(2) }, () => random(size * 40));
      try {
        runGeometry(size, steps, deaths, random);
      } catch (error) {
        throw new Error(`round ${round}, ${size} members, ends ${deaths}`, { cause: error });
      }
    }
  });
});
