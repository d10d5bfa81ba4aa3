// One member makes a grid, counter or aggregator with other parameters than the others: all fail, with debug mode and without,
// and hear which member it is and what both gave. Nothing is kept or written, and the next operations work.
import { describe, expect, it } from "vitest";
import type { Geometry, PamiError } from "../../src/index.js";
// Loaded before members need it, which have so many rounds.
import "../../src/pami/extensions/extensions.js";
import type { AggregatorParameters, KindsParameters } from "../../src/pami/extensions/aggregator.js";
import type { CounterOptions } from "../../src/pami/extensions/counter.js";
import type { GridParameters } from "../../src/pami/extensions/grid.js";
import type { ItemKind } from "../../src/pami/extensions/item-kind.js";
import { type Carrier, MortalJob } from "../support/mortal-members.js";

/** Regions that each member has made before. */
type Regions = readonly Awaited<ReturnType<Geometry["shareRegion"]>>[];
type Call = (geometry: Geometry, regions: Regions) => Promise<{ close(): unknown }>;

/** What one member calls otherwise, and what the error has of it and of the others' call. */
type Difference = readonly [other: Call, text: string];

const GRID = { size: [12, 12] };
const grid = (more: Partial<GridParameters>): Call => {
  return (geometry) => geometry.createGrid({ ...GRID, ...more } as GridParameters);
};
const counter = (options: CounterOptions): Call => {
  return (geometry) => geometry.createCounter({ limit: 20, ...options });
};
const onItems = (): void => {};
const items = (more: Partial<AggregatorParameters>): Call => {
  return (geometry) => geometry.createAggregator({ type: Int32Array, onItems: () => {}, ...more });
};
const kinds = (...list: ItemKind[]): Call => {
  return (geometry) => geometry.createAggregator({ kinds: list } as KindsParameters);
};
const updates = (place: number, more: Partial<AggregatorParameters> = {}): Call => {
  return (geometry, regions) =>
    geometry.createAggregator({ type: Float64Array, region: regions[place] as Regions[number], ...more });
};
const region: Call = (geometry) => geometry.shareRegion(64);
const LONG = Array.from({ length: 100 }, () => ({ type: Int32Array, onItems }));

const CASES: readonly (readonly [name: string, call: Call, differences: readonly Difference[]])[] = [
  [
    "a grid",
    grid({}),
    [
      [grid({ size: [12, 13] }), "has called createGrid() with size 12,13, rank %i createGrid() with size 12,12"],
      [grid({ size: [12] }), "with size 12, rank %i createGrid() with size 12,12"],
      [grid({ processes: [1, 0] }), "with processes 1,%n, rank %i createGrid() with processes %n,1"],
      [grid({ periodic: true }), "with periodic true,true, rank %i createGrid() with periodic false,false"],
      [grid({ periodic: [false, true] }), "with periodic false,true, rank"],
      [grid({ halo: [1, 2] }), "with halo 1,2, rank %i createGrid() with halo 1,1"],
      [grid({ corners: true }), "with corners true, rank %i createGrid() with corners false"],
      [grid({ type: Float32Array }), "with type Float32Array, rank %i createGrid() with type Float64Array"],
      [grid({ type: BigInt64Array }), "with type BigInt64Array, rank %i createGrid() with type Float64Array"],
      [grid({ fields: 2 }), "with fields 2, rank %i createGrid() with fields 1"],
      [counter({}), "has called createCounter(), rank %i createGrid()"],
    ],
  ],
  [
    "a counter",
    counter({}),
    [
      [counter({ root: 1 }), "has called createCounter() with root 1, rank %i createCounter() with root 0"],
      [counter({ start: 1 }), "with start 1, rank %i createCounter() with start 0"],
      [counter({ limit: 19 }), "with limit 19, rank %i createCounter() with limit 20"],
      [counter({ limit: undefined }), "with limit undefined, rank %i createCounter() with limit 20"],
      [counter({ striped: true }), "with striped true, rank %i createCounter() with striped false"],
      [region, "has called shareRegion(), rank %i createCounter()"],
      [items({}), "has called createAggregator(), rank %i createCounter()"],
    ],
  ],
  [
    "an aggregator",
    items({ length: 2 }),
    [
      [
        items({ length: 2, type: Float64Array }),
        "with items Float64Array of 2, rank %i createAggregator() with items Int32Array of 2",
      ],
      [items({}), "with items Int32Array of 1, rank %i createAggregator() with items Int32Array of 2"],
      [items({ length: "any" }), "with items Int32Array of any, rank"],
      [items({ length: 2, bytes: 4088 }), "with bytes 4088, rank %i createAggregator() with bytes 4064"],
      [
        kinds({ type: Int32Array, length: 2, onItems }),
        "with kinds Int32Array of 2, rank %i createAggregator() with items Int32Array of 2",
      ],
      [updates(0), "with items sum of Float64Array in region "],
    ],
  ],
  [
    "an aggregator of two kinds",
    kinds({ type: Int32Array, onItems }, { type: Uint8Array, length: "any", onItems }),
    [
      [
        kinds({ type: Int32Array, onItems }),
        "with kinds Int32Array of 1, rank %i createAggregator() with kinds Int32Array of 1,Uint8Array of any",
      ],
      [
        kinds({ type: Uint8Array, length: "any", onItems }, { type: Int32Array, onItems }),
        "with kinds Uint8Array of any,Int32Array of 1, rank",
      ],
    ],
  ],
  [
    "an aggregator of a hundred kinds",
    kinds(...LONG),
    [[kinds(...LONG.slice(1), { type: Uint32Array, onItems }), "with kinds Int32Array of 1,Int32Array of 1,"]],
  ],
  [
    "updates",
    updates(0),
    [
      [updates(0, { operation: "max" }), "with items max of Float64Array in region "],
      [updates(0, { type: Float32Array }), "with items sum of Float32Array in region "],
      [updates(1), "with items sum of Float64Array in region "],
    ],
  ],
  ["a shared region", region, [[counter({}), "has called createCounter(), rank %i shareRegion()"]]],
];

/** What may differ. */
const ALIKE: readonly (readonly [name: string, one: Call, other: Call])[] = [
  ["lengths of regions", region, (geometry) => geometry.shareRegion(128)],
  ["timeouts", grid({ timeout: 1000 }), grid({})],
  ["members that are fixed or chosen alike", grid({ processes: [0, 1] }), grid({})],
  ["delays, handlers", items({ delay: 5 }), items({})],
  ["classes of the same elements", grid({}), grid({ type: class extends Float64Array {} as never })],
];

async function withGeometries(
  size: number,
  carrier: Carrier,
  isStrict: boolean,
  body: (make: (call: Call, odd?: number, other?: Call) => Promise<unknown[]>) => Promise<void>,
): Promise<void> {
  const job = new MortalJob(size, carrier, { heapBytes: 2 ** 23 }, isStrict);
  try {
    const endpoints = job.members.map(({ endpoint }) => endpoint);
    const geometries = await job.outcomes((member) => member.geometry(endpoints));
    const regions = await job.outcomes(async (member) => {
      const geometry = geometries.get(member) as Geometry;
      return [await geometry.shareRegion(800), await geometry.shareRegion(800)];
    });
    const held = async (): Promise<number[][]> => {
      for (let round = 0; round < 2; round++) {
        await job.quiet();
        for (const { task } of job.living) task.reclaim();
      }
      return job.regionBytes();
    };
    const before = await held();
    await body(async (call, odd = -1, other = call) => {
      const outcomes = await job.outcomes((member) => {
        const geometry = geometries.get(member) as Geometry;
        return (geometry.rank === odd ? other : call)(geometry, regions.get(member) as Regions);
      });
      const found = job.members.map((member) => outcomes.get(member));
      await job.outcomes(async (member) => {
        const made = outcomes.get(member) as Error | Awaited<ReturnType<Call>>;
        if (!(made instanceof Error)) await made.close();
      });
      expect(await held()).toEqual(before);
      return found;
    });
    await job.outcomes((member) => Promise.all((regions.get(member) as Regions).map((one) => one.close())));
  } finally {
    await job.close();
  }
}

describe.each([
  ["one memory", false],
  ["one memory", true],
  ["ports", false],
  ["ports", true],
] as const)("%s, debug %s", (carrier, isStrict) => {
  describe.each([2, 3, 5])("%i members", (size) => {
    it.each(CASES)("%s: one member gives other parameters", (_, call, differences) =>
      withGeometries(size, carrier, isStrict, async (make) => {
        for (const [place, [other, text]] of differences.entries()) {
          // Of two members, the second one is named.
          const odd = size === 2 ? 1 : place % size;
          const errors = (await make(call, odd, other)) as PamiError[];
          expect(
            errors.map(({ code }) => code),
            text,
          ).toEqual(errors.map(() => "PAMIR_COLLECTIVE"));
          const named = text.replace("%i", `${odd === 0 ? 1 : 0}`).replaceAll("%n", `${size}`);
          for (const { message } of errors) {
            expect(message).toContain(named);
            expect(message).toMatch(new RegExp(`^rank ${odd} has called `));
          }
          expect(new Set(errors.map(({ message }) => message)).size).toBe(1);
          for (const made of await make(call)) expect(made).not.toBeInstanceOf(Error);
        }
      }),
    );

    it.each(ALIKE)("%s may differ", (_, one, other) =>
      withGeometries(size, carrier, isStrict, async (make) => {
        for (const made of await make(one, size - 1, other)) expect(made).not.toBeInstanceOf(Error);
      }),
    );
  });
});
