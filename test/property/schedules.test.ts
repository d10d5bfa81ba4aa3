// Algorithms of collective operations, run as schedules of any shape, in any order of messages.
import fc from "fast-check";
import { expect, it } from "vitest";
import {
  ALGORITHMS,
  check,
  operationOf,
  operatorsFor,
  type Plan,
  titleOf,
  VARIANTS,
  worksFor,
} from "../simulation/collectives.js";
import { fraction, share } from "../support/arbitraries.js";
import { randomOf } from "../support/random.js";
import { assertProperty, replayNote } from "../support/seed.js";

const shapes = fc.record({
  size: fc.oneof({ weight: 3, arbitrary: fc.integer({ min: 1, max: 9 }) }, fc.integer({ min: 1, max: 64 })),
  rootAt: fraction,
  elementBytes: fc.constantFrom(1 as const, 8 as const),
  elements: fc.oneof(fc.integer({ min: 0, max: 9 }), fc.integer({ min: 0, max: 200 })),
  /** Elements of blocks that differ, over and over. */
  lengths: fc.array(fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 40 })), { minLength: 1, maxLength: 12 }),
  /** Nodes of members, over and over. */
  nodes: fc.array(fc.integer({ min: 0, max: 5 }), { minLength: 1, maxLength: 8 }),
  gap: fc.integer({ min: 0, max: 2 }),
  isInPlace: fc.boolean(),
  seed: fc.integer(),
});

it.each([...ALGORITHMS, ...VARIANTS].map((algorithm) => [titleOf(algorithm), algorithm] as const))(
  `%s gives the result of a plain model (${replayNote()})`,
  (_, algorithm) => {
    let runs = 0;
    assertProperty(
      fc.property(shapes, ({ size, rootAt, elementBytes, elements, lengths, nodes, gap, isInPlace, seed }) => {
        const lengthOf = (i: number): number => elementBytes * (lengths[i % lengths.length] as number);
        const ranks = Array.from({ length: size }, (_, rank) => rank);
        const plan: Plan = {
          size,
          root: share(rootAt, size - 1),
          bytes: elements * elementBytes,
          elementBytes,
          gap,
          counts: ranks.map((rank) => ranks.map((other) => lengthOf(rank * size + other))),
          nodeOf: ranks.map((rank) => nodes[rank % nodes.length] as number),
        };
        if (!worksFor(algorithm, plan)) return;
        runs++;
        const random = randomOf(seed);
        for (const operator of operatorsFor(algorithm, plan)) {
          const isShared = isInPlace && algorithm.isInPlace === true;
          check(operationOf(plan, algorithm, operator, isShared, random), algorithm, operator, random);
        }
      }),
      60,
    );
    expect(runs).toBeGreaterThan(0);
  },
);
