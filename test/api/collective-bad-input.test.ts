// What members may do wrong: each gets an error that names it, and the geometry can be used on.
import { expect, it } from "vitest";
import type { Geometry } from "../../src/index.js";
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
  ["lengths", sum(ints(2)), sum(ints(3)), /allreduce\(\) of i32/],
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

const REFUSED: readonly (readonly [string, string, (geometry: Geometry) => unknown])[] = [
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

it.each(REFUSED)("%s is refused, and nothing has begun", async (_, code, call) => {
  const given = await contextsOf(2, "wasm");
  try {
    const geometries = await geometryOf(given);
    expect(thrownBy(() => call(geometries[0] as Geometry)).code).toBe(code);
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
