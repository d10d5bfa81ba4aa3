// What members may do wrong: each gets an error that names it, and the geometry can be used on.
import { expect, it } from "vitest";
import type { CollectiveType, Geometry } from "../../src/index.js";
import { contextsOf, geometryOf, type Members, settled, tasksOf } from "../support/collective-rig.js";
import { portsJob } from "../support/ports-job.js";
import { PATIENCE, thrownBy } from "./support.js";

const OPTIONS = { timeout: PATIENCE };
const LIMITS = { tasks: 2, contexts: 1, laneBytes: 16_384, heapBytes: 2 ** 23, regions: 64, fifos: 2, slots: 8 };
const RIGS: readonly (readonly [string, () => Promise<Members>])[] = [
  ["in one memory", () => contextsOf(2, "wasm")],
  ["over messages", async () => tasksOf(portsJob(LIMITS, ["wasm", "ts"]))],
];

type Call = (geometry: Geometry) => Promise<unknown>;
const ints = (length: number): Int32Array<ArrayBuffer> => new Int32Array(length);
const sum =
  (send: ArrayBufferView, more: object = {}): Call =>
  (geometry) =>
    geometry.allreduce({ send, operation: "sum", ...more }, OPTIONS);

/** What members 0 and 1 do; the error names both, or the lengths. */
const DIFFERENT: readonly (readonly [string, Call, Call, RegExp])[] = [
  ["operations", sum(ints(2)), sum(ints(2), { operation: "max" }), /by sum.*by max|by max.*by sum/],
  ["element types", sum(ints(2)), sum(new Float32Array(2)), /i32.*f32|f32.*i32/],
  [
    "lengths",
    sum(ints(2)),
    sum(ints(3)),
    /rank . has begun allreduce\(\) of i32 by sum, rank . allreduce\(\) of i32 by sum with another root, length or algorithm: with debug: true, the error names who differs, and how/,
  ],
  [
    "element types of a broadcast",
    (geometry) => geometry.broadcast({ buffer: ints(2) }, OPTIONS),
    (geometry) => geometry.broadcast({ buffer: new Float32Array(2) }, OPTIONS),
    /broadcast\(\) of f32.*broadcast\(\) of i32|broadcast\(\) of i32.*broadcast\(\) of f32/,
  ],
  ["long lengths", sum(ints(9000)), sum(ints(9001)), /allreduce\(\) of i32/],
  [
    "types",
    sum(ints(2)),
    (geometry) => geometry.allgather({ send: ints(2) }, OPTIONS),
    /allreduce.*allgather|allgather.*allreduce/,
  ],
  [
    "types, of which one goes over messages",
    (geometry) => geometry.scan({ send: ints(2), operation: "sum" }, OPTIONS),
    (geometry) => geometry.barrier(OPTIONS),
    /scan.*barrier|barrier.*scan/,
  ],
  [
    "lengths of a gatherv",
    (geometry) => geometry.gatherv({ send: ints(2), counts: [2, 3] }, OPTIONS),
    (geometry) => geometry.gatherv({ send: ints(2) }, OPTIONS),
    /8 bytes.*12|12.*8 bytes/,
  ],
  [
    "lengths of an alltoallv",
    (geometry) =>
      geometry.alltoallv({ send: ints(2), receive: ints(2), sendCounts: [1, 1], receiveCounts: [1, 1] }, OPTIONS),
    (geometry) =>
      geometry.alltoallv({ send: ints(3), receive: ints(2), sendCounts: [2, 1], receiveCounts: [1, 1] }, OPTIONS),
    /4.*8|8.*4/,
  ],
];

it.each(RIGS.flatMap(([rig, members]) => DIFFERENT.map((row) => [rig, ...row, members] as const)))(
  "%s, different %s",
  async (_, __, one, two, text, members) => {
    const given = await members();
    try {
      const [first, second] = (await geometryOf(given)) as [Geometry, Geometry];
      const results = await settled(given, [one(first), two(second)]);
      const failed = results.flatMap((result) => (result.status === "rejected" ? [result.reason as Error] : []));
      expect(failed.length).toBeGreaterThan(0);
      for (const error of failed) expect(error).toMatchObject({ code: "PAMIR_COLLECTIVE" });
      expect(failed.map(({ message }) => message).join("; ")).toMatch(text);
      const sums = await settled(given, [first, second].map(sum(Int32Array.of(7))));
      expect(sums.map((result) => result.status === "fulfilled" && [...(result.value as Int32Array)])).toEqual([
        [14],
        [14],
      ]);
    } finally {
      await given.close();
    }
  },
);

/** An array whose buffer is somewhere else now. */
function detached(): Int32Array {
  const view = ints(2);
  structuredClone(view.buffer, { transfer: [view.buffer] });
  return view;
}

/** Of four elements, those that the first of two members sends, and those that it receives. */
const OVERLAPS: readonly (readonly [type: CollectiveType, send: [number, number], receive: [number, number]])[] = [
  ["reduce", [0, 2], [1, 3]],
  ["scan", [1, 3], [0, 2]],
  ["reduceScatter", [0, 2], [1, 2]],
  ["gather", [1, 2], [0, 2]],
  ["allgather", [1, 2], [0, 2]],
  ["scatter", [0, 2], [1, 2]],
  ["alltoall", [0, 2], [1, 3]],
];
const isReduction = (type: CollectiveType): boolean => ["reduce", "scan", "reduceScatter"].includes(type);

/** What is refused; the code, and what the text names, if it is not all the same. */
type Row = readonly [what: string, error: string | RegExp, call: (geometry: Geometry) => unknown];
const REFUSED: readonly Row[] = [
  ["a root beyond the members", "PAMIR_INVAL", (g) => g.broadcastSync({ buffer: ints(1), root: 2 })],
  ["no view", "PAMIR_INVAL", (g) => g.broadcastSync({ buffer: [1] as unknown as Int32Array })],
  ["a receive that is too short", "PAMIR_INVAL", (g) => g.allgatherSync({ send: ints(2), receive: ints(3) })],
  [
    "a receive of a reduction that is too short",
    "PAMIR_INVAL",
    (g) => g.allreduceSync({ send: ints(2), receive: ints(1), operation: "sum" }),
  ],
  [
    "buffers that overlap",
    "PAMIR_INVAL",
    (g) => {
      const both = ints(4);
      g.allreduceSync({ send: both.subarray(0, 3), receive: both.subarray(1), operation: "sum" });
    },
  ],
  ...OVERLAPS.map(
    ([type, send, receive]): Row => [
      `buffers of ${type}() that overlap`,
      new RegExp(`PAMIR_INVAL.*${type}\\(\\).*overlap`),
      (g) => {
        const both = ints(4);
        g.collective(type, {
          send: both.subarray(...send),
          receive: both.subarray(...receive),
          ...(isReduction(type) ? { operation: "sum" as const } : {}),
        });
      },
    ],
  ),
  [
    "an exclusive scan that is said by a number",
    /PAMIR_INVAL.*exclusive of scan\(\) is 1, not a boolean$/,
    (g) => g.scanSync({ send: ints(1), receive: ints(1), operation: "sum", exclusive: 1 as unknown as boolean }),
  ],
  [
    "a function that commutes by a number",
    /PAMIR_INVAL.*commutative of operation of allreduce\(\) is 1, not a boolean$/,
    (g) =>
      g.allreduceSync({
        send: ints(1),
        receive: ints(1),
        operation: { combine: () => {}, commutative: 1 as unknown as boolean },
      }),
  ],
  [
    "a reduction into elements of another type",
    /PAMIR_INVAL.*allreduce\(\) of i32: receive is Float32Array, not Int32Array$/,
    (g) => g.allreduceSync({ send: ints(1), receive: new Float32Array(1), operation: "sum" }),
  ],
  [
    "a reduction into bytes, of a type that is not named",
    /PAMIR_INVAL.*of i32: receive is Uint8Array, not Int32Array$/,
    (g) => g.reduceSync({ send: ints(1), receive: new Uint8Array(4), operation: "sum" }),
  ],
  [
    "a type that is not that of send",
    /PAMIR_INVAL.*scan\(\) of c64: send is Int32Array, not Float32Array or bytes$/,
    (g) => g.scanSync({ send: ints(2), receive: ints(2), operation: "sum", type: "c64" }),
  ],
  [
    "a type that is not that of receive",
    /PAMIR_INVAL.*of i32_i32: receive is Float32Array, not Int32Array or bytes$/,
    (g) => g.allreduceSync({ send: ints(2), receive: new Float32Array(2), operation: "minloc", type: "i32_i32" }),
  ],
  [
    "pairs of different types that are no bytes",
    /PAMIR_INVAL.*of f64_i32: send is Float64Array, not Uint8Array$/,
    (g) =>
      g.allreduceSync({
        send: new Float64Array(2),
        receive: new Float64Array(2),
        operation: "minloc",
        type: "f64_i32",
      }),
  ],
  [
    "bytes of floats at an odd place",
    /PAMIR_INVAL.*of f64: receive begins at byte 1, no multiple of 8$/,
    (g) =>
      g.allreduceSync({
        send: new Uint8Array(8),
        receive: new Uint8Array(9).subarray(1),
        operation: "sum",
        type: "f64",
      }),
  ],
  [
    "a gather of bytes into floats",
    /PAMIR_INVAL.*send of gather\(\) is Uint8Array, receive Float64Array/,
    (g) => g.gatherSync({ send: new Uint8Array(8), receive: new Float64Array(2) }),
  ],
  [
    "an alltoall of ints into unsigned ones",
    /PAMIR_INVAL.*alltoall\(\) is Int32Array, receive Uint32Array/,
    (g) => g.alltoallSync({ send: ints(2), receive: new Uint32Array(2) }),
  ],
  [
    "a scatter of floats to the root's bytes",
    /PAMIR_INVAL.*scatter\(\) is Float32Array, receive DataView/,
    (g) => g.scatterSync({ send: new Float32Array(2), receive: new DataView(new ArrayBuffer(4)) }),
  ],
  ["blocks of half elements", "PAMIR_INVAL", (g) => g.allgatherSync({ send: null, receive: ints(3) })],
  ["blocks of half elements for each", "PAMIR_INVAL", (g) => g.alltoallSync({ send: ints(3), receive: ints(3) })],
  [
    "blocks that overlap in receive",
    /PAMIR_INVAL.*allgatherv\(\): the blocks of ranks 1 and 0 overlap in receive$/,
    (g) => g.allgathervSync({ send: ints(2), receive: ints(4), counts: [2, 2], displacements: [1, 0] }),
  ],
  [
    "blocks of an alltoallv that overlap in receive",
    /PAMIR_INVAL.*alltoallv\(\): the blocks of ranks 0 and 1 overlap in receive$/,
    (g) =>
      g.alltoallvSync({
        send: ints(4),
        receive: ints(4),
        sendCounts: [2, 2],
        receiveCounts: [3, 2],
        receiveDisplacements: [0, 2],
      }),
  ],
  [
    "bigint counts",
    /PAMIR_INVAL.*counts of allgatherv\(\) is 1n, not an integer/,
    (g) => g.allgathervSync({ send: ints(1), receive: ints(2), counts: BigInt64Array.of(1n, 1n) as never }),
  ],
  [
    "counts that are no list",
    /PAMIR_INVAL.*counts of allgatherv\(\) are Set, not a list of 2 numbers$/,
    (g) => g.allgathervSync({ send: ints(1), receive: ints(2), counts: new Set([1, 2]) as never }),
  ],
  [
    "a view of a detached buffer",
    /PAMIR_INVAL.*send of allreduce\(\) has a buffer that is detached/,
    (g) => g.allreduceSync({ send: detached(), receive: ints(2), operation: "sum" }),
  ],
  [
    "a DataView of a detached buffer",
    /PAMIR_INVAL.*buffer of broadcast\(\) has a buffer that is detached/,
    (g) => {
      const view = new DataView(new ArrayBuffer(8));
      structuredClone(view.buffer, { transfer: [view.buffer] });
      g.broadcastSync({ buffer: view });
    },
  ],
  [
    "a block beyond receive",
    "PAMIR_BOUNDS",
    (g) => g.allgathervSync({ send: ints(1), receive: ints(2), counts: [1, 1], displacements: [0, 2] }),
  ],
  [
    "blocks beyond an empty receive",
    "PAMIR_BOUNDS",
    (g) => g.allgathervSync({ send: ints(1), receive: ints(0), counts: [1, 1] }),
  ],
  [
    "counts for other members",
    "PAMIR_INVAL",
    (g) => g.allgathervSync({ send: ints(1), receive: ints(2), counts: [1] }),
  ],
  [
    "a count that is negative",
    "PAMIR_INVAL",
    (g) => g.allgathervSync({ send: ints(1), receive: ints(2), counts: [1, -1] }),
  ],
  [
    "an unknown operation",
    "PAMIR_INVAL",
    (g) => g.allreduceSync({ send: ints(1), receive: ints(1), operation: "median" as "sum" }),
  ],
  [
    "an operation that the type has not",
    "PAMIR_INVAL",
    (g) => g.allreduceSync({ send: new Float64Array(1), receive: new Float64Array(1), operation: "xor" }),
  ],
  [
    "an unknown type",
    "PAMIR_INVAL",
    (g) => g.allreduceSync({ send: ints(1), receive: ints(1), operation: "sum", type: "i31" as "i32" }),
  ],
  [
    "half an element",
    "PAMIR_INVAL",
    (g) => g.allreduceSync({ send: new Float32Array(3), receive: new Float32Array(3), operation: "sum", type: "c64" }),
  ],
  ["an unknown algorithm", "PAMIR_INVAL", (g) => g.collective("barrier", { algorithm: "rumor" })],
  ["an unknown option", "PAMIR_INVAL", (g) => g.barrierSync({ timout: 1 } as object)],
  ["a timeout that is none", "PAMIR_INVAL", (g) => g.broadcastSync({ buffer: ints(1) }, { timeout: -1 })],
  [
    "in place at a member that is no root",
    "PAMIR_INVAL",
    (g) => g.reduceSync({ send: null, receive: ints(1), operation: "sum", root: 1 }),
  ],
  [
    "an onDone that is no function",
    "PAMIR_INVAL",
    (g) => g.collective("barrier", { onDone: 1 as unknown as () => void }),
  ],
];

it.each(REFUSED)("%s is refused, and nothing has begun", async (_, text, call) => {
  const given = await contextsOf(2, "wasm");
  try {
    const geometries = await geometryOf(given);
    const { code, text: message } = thrownBy(() => call(geometries[0] as Geometry));
    expect(`${code} ${message}`).toMatch(text);
    const sums = await settled(given, geometries.map(sum(Int32Array.of(7))));
    expect(sums).toMatchObject([{ status: "fulfilled" }, { status: "fulfilled" }]);
  } finally {
    await given.close();
  }
});

it("a promise makes what is received, also with displacements and elements of several entries", async () => {
  const given = await contextsOf(2, "wasm");
  try {
    const geometries = await geometryOf(given);
    const blocks = await settled(
      given,
      geometries.map((geometry) =>
        geometry.allgatherv({ send: Int32Array.of(geometry.rank + 1), counts: [1, 1], displacements: [2, 0] }, OPTIONS),
      ),
    );
    for (const result of blocks) expect(result).toEqual({ status: "fulfilled", value: Int32Array.of(2, 0, 1) });
    const parts = await settled(
      given,
      geometries.map((geometry) => {
        const send = Float32Array.of(1, 2, 3, 4);
        return geometry.reduceScatter({ send, operation: "sum", type: "c64", counts: [2, 0] }, OPTIONS);
      }),
    );
    expect(parts[0]).toEqual({ status: "fulfilled", value: Float32Array.of(2, 4, 6, 8) });
  } finally {
    await given.close();
  }
});

it("a promise refuses the same, before it makes what is received", async () => {
  const given = await contextsOf(2, "wasm");
  try {
    const [geometry] = (await geometryOf(given)) as [Geometry];
    const region = (given.members[0] as (typeof given.members)[0]).client.createRegion(8);
    const send = ints(2);
    const refused: readonly (readonly [Promise<unknown>, RegExp])[] = [
      [geometry.allgatherv({ send, counts: BigInt64Array.of(2n, 2n) as never }), /counts.* is 2n/],
      [geometry.allgatherv({ send, counts: [2, 2], displacements: [0] }), /displacements.* are Array of 1, not/],
      [geometry.reduceScatter({ send, operation: "sum", counts: [1] }), /counts .*list of 2 numbers/],
      [geometry.reduceScatter({ send, operation: "sum", type: "i31" as "i32", counts: [1, 1] }), /type "i31"/],
      [geometry.allreduce({ send: detached(), operation: "sum" }), /detached/],
      [
        geometry.allreduce({ send: region as never, operation: "sum" }),
        /is MemRegion, .*: give its bytes, or an array/,
      ],
    ];
    for (const [promise, text] of refused) {
      await expect(promise).rejects.toMatchObject({ code: "PAMIR_INVAL", message: expect.stringMatching(text) });
    }
  } finally {
    await given.close();
  }
});

it("bytes go with every type that is named; clamped bytes, Buffers and DataViews are bytes", async () => {
  const given = await contextsOf(2, "wasm");
  try {
    const geometries = await geometryOf(given);
    const values = (at: number): Float64Array<ArrayBuffer> => Float64Array.of(at, 1);
    const sums = await settled(
      given,
      geometries.map((geometry) => {
        const send = new Uint8Array(values(geometry.rank + 1).buffer);
        return geometry.allreduce({ send, receive: values(0) as never, operation: "sum", type: "f64" }, OPTIONS);
      }),
    );
    for (const result of sums) expect(result).toEqual({ status: "fulfilled", value: values(3).fill(2, 1) });
    const views = [new DataView(Uint8Array.of(5).buffer), Buffer.from([6])];
    const blocks = await settled(
      given,
      geometries.map((geometry) => {
        const receive = new Uint8ClampedArray(2);
        return geometry.allgather({ send: views[geometry.rank] as ArrayBufferView, receive }, OPTIONS);
      }),
    );
    for (const result of blocks) expect(result).toEqual({ status: "fulfilled", value: Uint8ClampedArray.of(5, 6) });
  } finally {
    await given.close();
  }
});

type List = ArrayLike<number>;
const GATHERED = [Int16Array.of(7, 8, 8), Int16Array.of(7, 8, 8)];
const blockOf = ({ rank }: Geometry): { send: Int16Array } => ({ send: new Int16Array(rank + 1).fill(rank + 7) });
/** What two members call with blocks of 1 and 2 elements; and what they get, of elements that are 7 at rank 0, and 8 at rank 1. */
const VECTORS: readonly (readonly [
  string,
  (geometry: Geometry, counts: List, places: List) => Promise<unknown>,
  unknown,
])[] = [
  [
    "allgatherv",
    (g, counts, places) => g.allgatherv({ ...blockOf(g), counts, displacements: places }, OPTIONS),
    GATHERED,
  ],
  [
    "gatherv",
    (g, counts, places) => g.gatherv({ ...blockOf(g), counts, displacements: places }, OPTIONS),
    [GATHERED[0], undefined],
  ],
  [
    "scatterv",
    (g, counts, displacements) => {
      const parameters = { send: Int16Array.of(7, 8, 9), receive: new Int16Array(g.rank + 1), counts, displacements };
      return g.scatterv(parameters, OPTIONS);
    },
    [Int16Array.of(7), Int16Array.of(8, 9)],
  ],
  [
    "alltoallv",
    (g, counts, places) => {
      // A member gets as much from each as its own block has.
      const own = counts[g.rank] as number;
      const parameters = {
        send: new Int16Array(3).fill(g.rank + 7),
        receive: new Int16Array(2 * own),
        sendCounts: counts,
        sendDisplacements: places,
        receiveCounts: [own, own],
        receiveDisplacements: [0, own],
      };
      return g.alltoallv(parameters, OPTIONS);
    },
    [Int16Array.of(7, 8), Int16Array.of(7, 7, 8, 8)],
  ],
];

it.each(VECTORS)("counts and displacements of %s() are arrays of numbers, of any class", async (_, call, expected) => {
  const given = await contextsOf(2, "wasm");
  try {
    const geometries = await geometryOf(given);
    for (const lists of [Array, Int32Array, Uint16Array, Float64Array]) {
      const calls = geometries.map((geometry) => call(geometry, lists.of(1, 2), lists.of(0, 1)));
      const results = await settled(given, calls);
      expect(results.map((result) => (result.status === "fulfilled" ? result.value : result.reason))).toEqual(expected);
    }
  } finally {
    await given.close();
  }
});

/** Where an empty block may be said to lie: nowhere, so anywhere. */
const ANYWHERE = [-1, 3, 2 ** 32 + 1, -(2 ** 53 - 1), 2 ** 53 - 1];
/** What two members call if rank 0 has no block, with its place; and what they get. Blocks of rank 1 have two elements. */
const EMPTY: readonly (readonly [string, (geometry: Geometry, place: number) => Promise<unknown>, unknown])[] = [
  [
    "allgatherv",
    (g, place) =>
      g.allgatherv({ send: new Int16Array(2 * g.rank).fill(8), counts: [0, 2], displacements: [place, 0] }, OPTIONS),
    [Int16Array.of(8, 8), Int16Array.of(8, 8)],
  ],
  [
    "gatherv",
    (g, place) =>
      g.gatherv({ send: new Int16Array(2 * g.rank).fill(8), counts: [0, 2], displacements: [place, 1] }, OPTIONS),
    [Int16Array.of(0, 8, 8), undefined],
  ],
  [
    "scatterv",
    (g, place) => {
      const parameters = { send: Int16Array.of(7, 8), receive: new Int16Array(2 * g.rank) };
      return g.scatterv({ ...parameters, counts: [0, 2], displacements: [place, 0] }, OPTIONS);
    },
    [new Int16Array(0), Int16Array.of(7, 8)],
  ],
  [
    "alltoallv",
    (g, place) => {
      const parameters = { send: Int16Array.of(8, 9), receive: new Int16Array(2), sendCounts: [0, 2 * g.rank] };
      const places = { sendDisplacements: [place, 0], receiveDisplacements: [place, 0] };
      return g.alltoallv({ ...parameters, ...places, receiveCounts: [0, 2 * g.rank] }, OPTIONS);
    },
    [new Int16Array(2), Int16Array.of(8, 9)],
  ],
];

it.each(
  RIGS.flatMap(([name, rig]) => EMPTY.map(([type, call, expected]) => [type, name, rig, call, expected] as const)),
)("displacements of empty blocks of %s() are ignored: %s", async (type, _, rig, call, expected) => {
  const given = await rig();
  try {
    const geometries = await geometryOf(given);
    for (const place of ANYWHERE) {
      const results = await settled(
        given,
        geometries.map((geometry) => call(geometry, place)),
      );
      const values = results.map((result) => (result.status === "fulfilled" ? result.value : result.reason));
      expect(values, `${type}, ${place}`).toEqual(expected);
    }
    // Whole numbers they are nevertheless, and those of other blocks lie in the view.
    const [root] = geometries as [Geometry];
    await expect(call(root, 0.5)).rejects.toMatchObject({
      code: "PAMIR_INVAL",
      message: expect.stringMatching(/displacements.* is 0.5/),
    });
    await expect(call(root, Number.NaN)).rejects.toMatchObject({ code: "PAMIR_INVAL" });
  } finally {
    await given.close();
  }
});
