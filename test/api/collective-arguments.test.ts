// Every public method of geometries, grids, counters and aggregators, with nothing, and with every kind of wrong argument in each
// of its places: a coded error whose text has the value, and all members stay in step.

import { PamiError } from "pamir";
import { expect, it } from "vitest";
import type { Aggregator, Counter, Geometry, Grid } from "../../src/index.js";
import { contextsOf, geometryOf, type Members, settled } from "../support/collective-rig.js";
import { PATIENCE, refusalOf } from "./support.js";

const OPTIONS = { timeout: PATIENCE };

interface Given {
  readonly geometry: Geometry;
  readonly grid: Grid;
  readonly counter: Counter;
  readonly items: Aggregator<Int32Array>;
  readonly updates: Aggregator<Float64Array>;
}

const noop = (): void => {};
/** Wrong in each place, unless the place names it. */
const VALUES = new Map<string, unknown>([
  ["undefined", undefined],
  ["null", null],
  ["true", true],
  ["-1", -1],
  ["0.5", 0.5],
  ["NaN", Number.NaN],
  ["7n", 7n],
  ['"0"', "0"],
  ["Symbol(s)", Symbol("s")],
  ["Array", [0]],
  ["function noop", noop],
  ["DataView", new DataView(new ArrayBuffer(4))],
  ["BigInt64Array", BigInt64Array.of(1n)],
]);
const OF_PARAMETERS = [
  ...["broadcast", "reduce", "allreduce", "gather", "gatherv", "scatter", "scatterv", "allgather", "allgatherv"],
  ...["alltoall", "alltoallv", "scan", "reduceScatter", "amBroadcast", "amScatter", "amGather", "amReduce"],
];
/** What each call needs to be right but for its options. */
const send = Int32Array.of(1, 2);
const EXTENSIONS = ["createCounter", "createAggregator", "createGrid"];

type Place = readonly [call: (given: Given, bad: never) => unknown, taken?: readonly string[]];
const OPTIONAL = ["undefined"];

type Named = Record<string, (...given: unknown[]) => unknown>;
const of = (given: Given): Named => given.geometry as unknown as Named;
const options = (...names: string[]): [string, Place[]][] =>
  names.map((name) => [name, [[(given, bad) => of(given)[name]?.(bad), OPTIONAL]]]);

const GEOMETRY = new Map<string, Place[]>([
  ...OF_PARAMETERS.flatMap((name): [string, Place[]][] =>
    [name, `${name}Sync`].map((call) => [
      call,
      [
        // An object without what is needed is refused, too.
        [(given, bad) => of(given)[call]?.(bad)],
        [(given, bad) => of(given)[call]?.({ send, buffer: send, dispatch: 1 }, bad), OPTIONAL],
      ],
    ]),
  ),
  ...EXTENSIONS.map((name): [string, Place[]] => [
    name,
    [[(given, bad) => of(given)[name]?.(bad), name === "createCounter" ? OPTIONAL : []]],
  ]),
  ...options("barrier", "barrierSync", "splitByNode", "shrink", "shrinkSync"),
  ["endpoint", [[({ geometry }, rank) => geometry.endpoint(rank)]]],
  ["algorithms", [[({ geometry }, type) => geometry.algorithms(type)]]],
  [
    "collective",
    [
      [({ geometry }, type) => geometry.collective(type, {} as never)],
      [({ geometry }, bad) => geometry.collective("barrier", bad)],
      [({ geometry }, bad) => geometry.collective("allreduce", bad)],
      [({ geometry }, bad) => geometry.collective("amBroadcast", bad)],
    ],
  ],
  ...["split", "splitSync"].map((name): [string, Place[]] => [
    name,
    [
      [(given, color) => of(given)[name]?.(color), OPTIONAL],
      [(given, key) => of(given)[name]?.(0, key), ["-1", ...OPTIONAL]],
      [(given, bad) => of(given)[name]?.(0, 0, bad), OPTIONAL],
    ],
  ]),
  [
    "dispatch",
    [
      [({ geometry }, id) => geometry.dispatch(id, noop)],
      [({ geometry }, handler) => geometry.dispatch(1, handler), ["function noop"]],
    ],
  ],
  // Its length is told to the others.
  ["shareRegion", [[({ geometry }, bad) => geometry.shareRegion(8, bad), OPTIONAL]]],
  ["close", []],
]);
const GRID = new Map<string, Place[]>([
  [
    "index",
    [
      [({ grid }, one) => grid.index(one, 0), ["-1"]],
      [({ grid }, one) => grid.index(0, one), ["-1"]],
    ],
  ],
  ["neighbor", [[({ grid }, one) => grid.neighbor(one, 0), ["-1"]]]],
  ["begin", [[({ grid }, field) => grid.begin(field), OPTIONAL]]],
  [
    "exchange",
    [
      [({ grid }, field) => grid.exchange(field), OPTIONAL],
      [({ grid }, bad) => grid.exchange(0, bad), OPTIONAL],
    ],
  ],
  [
    "exchangeSync",
    [
      [({ grid }, field) => grid.exchangeSync(field), OPTIONAL],
      [({ grid }, bad) => grid.exchangeSync(0, bad), OPTIONAL],
    ],
  ],
  ["close", []],
]);
const COUNTER = new Map<string, Place[]>([
  ["next", [[({ counter }, bad) => counter.next(bad), OPTIONAL]]],
  ["nextSync", [[({ counter }, bad) => counter.nextSync(bad), OPTIONAL]]],
  [
    "add",
    [
      [({ counter }, value) => counter.add(value), ["-1"]],
      [({ counter }, bad) => counter.add(0, bad), OPTIONAL],
    ],
  ],
  [
    "addSync",
    [
      [({ counter }, value) => counter.addSync(value), ["-1"]],
      [({ counter }, bad) => counter.addSync(0, bad), OPTIONAL],
    ],
  ],
  ["close", []],
]);
const AGGREGATOR = new Map<string, Place[]>([
  [
    "push",
    [
      [({ items }, rank) => items.push(rank, Int32Array.of(1))],
      [({ items }, item) => items.push(0, item)],
      [({ items }, kind) => items.push(0, Int32Array.of(1), kind), OPTIONAL],
    ],
  ],
  [
    "update",
    [
      [({ updates }, rank) => updates.update(rank, 0, 1)],
      [({ updates }, index) => updates.update(0, index, 1)],
      [({ updates }, value) => updates.update(0, 0, value), ["-1", "0.5", "NaN"]],
      [({ updates }, kind) => updates.update(0, 0, 1, kind), OPTIONAL],
    ],
  ],
  [
    "pushMany",
    [
      [({ items }, to) => items.pushMany(to, Int32Array.of(1))],
      [({ items }, view) => items.pushMany(0, view)],
      [({ items }, view) => items.pushMany(Uint8Array.of(0), view)],
      [({ items }, kind) => items.pushMany(0, Int32Array.of(1), kind), OPTIONAL],
      [({ items }, from) => items.pushMany(0, Int32Array.of(1), 0, from), OPTIONAL],
    ],
  ],
  [
    "updateMany",
    [
      [({ updates }, to) => updates.updateMany(to, Int32Array.of(0), Float64Array.of(1))],
      [({ updates }, indices) => updates.updateMany(0, indices, Float64Array.of(1))],
      [({ updates }, values) => updates.updateMany(0, Int32Array.of(0), values)],
      [({ updates }, kind) => updates.updateMany(0, Int32Array.of(0), Float64Array.of(1), kind), OPTIONAL],
      [({ updates }, from) => updates.updateMany(0, Int32Array.of(0), Float64Array.of(1), 0, from), OPTIONAL],
    ],
  ],
  [
    "reserve",
    [
      [({ items }, rank) => items.reserve(rank)],
      [({ items }, kind) => items.reserve(0, kind), OPTIONAL],
      [({ items }, count) => items.reserve(0, 0, count), OPTIONAL],
    ],
  ],
  ["elements", [[({ items }, kind) => items.elements(kind), OPTIONAL]]],
  ["flush", []],
  ...["whenRoom", "whenRoomSync"].map((name): [string, Place[]] => [
    name,
    [
      [({ items }, rank) => (items as unknown as Named)[name]?.(rank)],
      [({ items }, bad) => (items as unknown as Named)[name]?.(0, bad), OPTIONAL],
    ],
  ]),
  ...["finish", "finishSync"].map((name): [string, Place[]] => [
    name,
    [[({ items }, bad) => (items as unknown as Named)[name]?.(bad), OPTIONAL]],
  ]),
  ["close", []],
]);

const REFUSALS = ["PAMIR_INVAL", "PAMIR_BOUNDS"];

async function withAll(
  body: (given: Given, both: readonly Geometry[], members: Members) => Promise<void>,
): Promise<void> {
  const members = await contextsOf(2, "wasm");
  try {
    const both = await geometryOf(members);
    const all = async <T>(make: (geometry: Geometry) => Promise<T>): Promise<T> => {
      const [first] = await settled(members, both.map(make));
      if (first?.status !== "fulfilled") throw first?.reason;
      return first.value;
    };
    const regions = new Map(
      (
        await settled(
          members,
          both.map((one) => one.shareRegion(64)),
        )
      ).map((found, rank) => [both[rank], found.status === "fulfilled" ? found.value : undefined]),
    );
    await body(
      {
        geometry: both[0] as Geometry,
        grid: await all((one) => one.createGrid({ size: [4, 4] })),
        counter: await all((one) => one.createCounter()),
        items: await all((one) => one.createAggregator({ type: Int32Array, onItems: noop })),
        updates: await all((one) => one.createAggregator({ type: Float64Array, region: regions.get(one) })),
      },
      both,
      members,
    );
  } finally {
    await members.close();
  }
}

it.each([
  ["Geometry", (given: Given) => given.geometry, GEOMETRY],
  ["Grid", (given: Given) => given.grid, GRID],
  ["Counter", (given: Given) => given.counter, COUNTER],
  ["Aggregator", (given: Given) => given.items, AGGREGATOR],
] as const)("each method of %s refuses what it does not take, and all stay in step", (_, objectOf, table) =>
  withAll(async (given, both, members) => {
    const own = Object.getOwnPropertyDescriptors(Object.getPrototypeOf(objectOf(given)));
    const methods = Object.keys(own).filter((name) => typeof own[name]?.value === "function");
    const internal = ["constructor", "came", "gone", "lend"];
    expect([...table.keys()].sort()).toEqual(methods.filter((name) => !internal.includes(name)).sort());
    const wrong: string[] = [];
    const sum = { send: Int32Array.of(1), receive: Int32Array.of(0), operation: "sum" } as const;
    // A call that is remembered.
    await settled(
      members,
      both.map((one) => one.allreduce(sum, OPTIONS)),
    );
    for (const [name, places] of table) {
      for (const [place, [call, taken = []]] of places.entries()) {
        for (const [shown, value] of VALUES) {
          if (taken.includes(shown)) continue;
          const what = `${name}, place ${place} of ${shown}`;
          const error = await refusalOf(() => call(given, value as never), wrong.length === 0 ? PATIENCE : 300);
          if (!(error instanceof PamiError)) wrong.push(`${what}: ${error ?? "no error"}`);
          else if (!REFUSALS.includes(error.code)) wrong.push(`${what}: ${error.code}`);
          else if (!error.message.includes(shown)) wrong.push(`${what} says: ${error.message}`);
        }
      }
    }
    expect(wrong).toEqual([]);
    const sums = await settled(
      members,
      both.map((one) => one.allreduce({ send, operation: "sum" }, OPTIONS)),
    );
    expect(sums).toEqual(both.map(() => ({ status: "fulfilled", value: Int32Array.of(2, 4) })));
  }),
);

it("a handler that returns no view, or throws: its member gets the error, and the root hears the rank and why", () =>
  withAll(async ({ geometry }, both, members) => {
    const other = both[1] as Geometry;
    other.dispatch(1, () => "text" as never);
    other.dispatch(2, () => {
      throw new RangeError("it throws");
    });
    for (const [dispatch, own, why] of [
      [1, 'a handler of amGather() has returned "text", not an ArrayBufferView', "PamiError: a handler"],
      [2, "it throws", "RangeError: it throws"],
    ] as const) {
      const asked = geometry.amGather({ dispatch, send }, OPTIONS).catch((error) => error);
      const there = members.members[1]?.context;
      expect(() => there?.advanceUntil(() => false, { timeout: 1000 })).toThrow(own);
      const [result] = await settled(members, [asked]);
      expect((result as { value?: unknown }).value).toMatchObject({
        code: "PAMIR_COLLECTIVE",
        message: expect.stringContaining(`amGather() of rank 0 has failed: rank 1: ${why}`),
      });
    }
  }));
