// A function of the user's over elements of several bytes: none is cut, in any memory, by any algorithm, and the views that it
// gets are aligned.

import { launch } from "pamir";
import { expect, it } from "vitest";
import { sumOf } from "../../src/collective/schedule/shape.js";
import type { CollectiveType, Geometry } from "../../src/index.js";
import { contextsOf, geometryOf, settled } from "../support/collective-rig.js";
import { portsOf, RIGS } from "../support/collective-rigs.js";
import { PATIENCE } from "./support.js";

const OPTIONS = { timeout: PATIENCE };
const MARK = 0x5eed;
const HEAD_BYTES = 8;
const MATRIX_BYTES = 16;

/** A struct: a mark and its number, then matrices of 2 × 2 integers, whose product does not commute. */
function struct(elementBytes: number, number: number, rank: number): Uint32Array {
  const words = new Uint32Array(elementBytes / 4);
  words[0] = MARK;
  words[1] = number;
  for (let at = HEAD_BYTES / 4; at < words.length; at += MATRIX_BYTES / 4) {
    words.set([1, rank + number + 1, rank + 2, (rank + 2) * (rank + number + 1) + 1], at);
  }
  return words;
}

function multiply(left: Uint32Array, right: Uint32Array, out: Uint32Array): void {
  out[0] = left[0] as number;
  out[1] = left[1] as number;
  for (let at = HEAD_BYTES / 4; at < left.length; at += MATRIX_BYTES / 4) {
    const [a, b, c, d] = left.subarray(at, at + 4) as unknown as [number, number, number, number];
    const [e, f, g, h] = right.subarray(at, at + 4) as unknown as [number, number, number, number];
    out[at] = Math.imul(a, e) + Math.imul(b, g);
    out[at + 1] = Math.imul(a, f) + Math.imul(b, h);
    out[at + 2] = Math.imul(c, e) + Math.imul(d, g);
    out[at + 3] = Math.imul(c, f) + Math.imul(d, h);
  }
}

/** Combines structs, and notes what is wrong with the views that it gets. */
function structs(elementBytes: number, problems: Set<string>) {
  return (left: Uint8Array, right: Uint8Array, out: Uint8Array): void => {
    const views = [left, right, out];
    if (views.some((view) => view.length !== left.length || view.length % elementBytes !== 0)) {
      problems.add(`views of ${views.map(({ length }) => length)} bytes`);
      return;
    }
    if (views.some((view) => view.byteOffset % 8 !== 0)) {
      problems.add(`views at ${views.map(({ byteOffset }) => byteOffset)}`);
      return;
    }
    for (let at = 0; at < left.length; at += elementBytes) {
      const [a, b, c] = views.map(
        ({ buffer, byteOffset }) => new Uint32Array(buffer, byteOffset + at, elementBytes / 4),
      ) as [Uint32Array, Uint32Array, Uint32Array];
      if (a[0] !== MARK || b[0] !== MARK || a[1] !== b[1]) problems.add(`elements ${a[1]} and ${b[1]} at ${at}`);
      multiply(a, b, c);
    }
  };
}

/** The structs of a member, or the product of those of several members. */
function vector(elementBytes: number, count: number, ranks: readonly number[]): Uint8Array {
  const bytes = new Uint8Array(elementBytes * count);
  for (let number = 0; number < count; number++) {
    const product = ranks
      .map((rank) => struct(elementBytes, number, rank))
      .reduce((left, right) => {
        const out = left.slice();
        multiply(left, right, out);
        return out;
      });
    bytes.set(new Uint8Array(product.buffer), number * elementBytes);
  }
  return bytes;
}

interface Reductions {
  readonly [type: string]: (parameters: object, options: object) => Promise<Uint8Array>;
}

/** Bytes of a struct, and structs of a vector: in a slot, in messages, in slices; longer than slices, packets and blocks. */
const SHAPES = [
  [24, 3],
  [24, 200],
  [40, 1000],
  [40_008, 3],
] as const;
const TYPES = ["reduce", "allreduce", "scan", "exclusive scan", "reduceScatter", "amReduce"] as const;

it.each(RIGS)("%s, %i members: structs are never cut, and lie at multiples of 8", async (_, size, rig) => {
  const given = await rig(size);
  try {
    const geometries = await geometryOf(given);
    const ranks = geometries.map(({ rank }) => rank);
    for (const geometry of geometries) {
      geometry.dispatch(1, ({ header }) => {
        const [elementBytes, count] = new Uint32Array(header.slice().buffer) as unknown as [number, number];
        return vector(elementBytes, count, [geometry.rank]);
      });
    }
    for (const type of TYPES) {
      const of = type === "exclusive scan" ? "scan" : type;
      const [first] = geometries as [Geometry];
      const names = of === "amReduce" ? [] : first.algorithms(of as CollectiveType);
      const algorithms = [undefined, ...names.flatMap(({ name, always }) => (always ? [name] : []))];
      for (const [elementBytes, short] of SHAPES) {
        // For reduceScatter, of different counts: one member gets none.
        const count = type === "reduceScatter" ? short * (size - 1) : short;
        const counts = ranks.map((rank) => (rank === 1 ? 0 : short));
        for (const algorithm of algorithms) {
          const problems = new Set<string>();
          const begin = (geometry: Geometry): Promise<Uint8Array> => {
            const operation = { combine: structs(elementBytes, problems), elementBytes };
            const parameters = {
              send: vector(elementBytes, count, [geometry.rank]),
              operation,
              algorithm,
              ...(type === "reduce" && { root: size - 1 }),
              ...(type === "exclusive scan" && { exclusive: true }),
              ...(type === "reduceScatter" && { counts }),
              ...(of === "amReduce" && { dispatch: 1, header: Uint32Array.of(elementBytes, count) }),
            };
            const reductions = geometry as unknown as Reductions;
            return (reductions[of] as Reductions[string]).call(geometry, parameters, OPTIONS);
          };
          const callers = of === "amReduce" ? geometries.slice(0, 1) : geometries;
          const results = await settled(given, callers.map(begin));
          const what = `${type} by ${algorithm}, ${count} structs of ${elementBytes} bytes`;
          expect([...problems], what).toEqual([]);
          const whole = vector(elementBytes, count, ranks);
          const expected = (rank: number): Uint8Array | undefined => {
            if (type === "reduce") return rank === size - 1 ? whole : undefined;
            if (type === "scan") return vector(elementBytes, count, ranks.slice(0, rank + 1));
            if (type === "exclusive scan") {
              return rank === 0 ? new Uint8Array(whole.length) : vector(elementBytes, count, ranks.slice(0, rank));
            }
            if (type !== "reduceScatter") return whole;
            const before = sumOf(counts.slice(0, rank)) * elementBytes;
            return whole.subarray(before, before + (counts[rank] as number) * elementBytes);
          };
          for (const [rank, result] of results.entries()) {
            if (result.status === "rejected") throw result.reason;
            const right = expected(rank);
            const isRight = right === undefined || Buffer.compare(result.value, right) === 0;
            expect(isRight, `${what}: rank ${rank}`).toBe(true);
          }
        }
      }
    }
    for (const geometry of geometries) geometry.close();
  } finally {
    await given.close();
  }
});

it("lie at multiples of 8 where the bytes of a region do not", async () => {
  const given = await contextsOf(3, "wasm");
  try {
    const geometries = await geometryOf(given);
    for (const [elementBytes, count] of SHAPES) {
      const problems = new Set<string>();
      const right = vector(elementBytes, count, [0, 1, 2]);
      const begin = async (geometry: Geometry): Promise<Uint8Array> => {
        const { client } = given.members[geometry.rank] as (typeof given.members)[number];
        const region = client.createRegion(2 * right.length + 64);
        // At a multiple of 4, of 1; in place, and not.
        const send = region.bytes.subarray(4, 4 + right.length);
        const receive = geometry.rank === 2 ? send : region.bytes.subarray(right.length + 9, 2 * right.length + 9);
        send.set(vector(elementBytes, count, [geometry.rank]));
        const operation = { combine: structs(elementBytes, problems), elementBytes };
        await geometry.allreduce({ send, receive, operation }, OPTIONS);
        return receive.slice();
      };
      const results = await settled(given, geometries.map(begin));
      expect([...problems]).toEqual([]);
      for (const result of results) {
        if (result.status === "rejected") throw result.reason;
        expect(Buffer.compare(result.value, right)).toBe(0);
      }
    }
  } finally {
    await given.close();
  }
});

it("complex numbers of a Float64Array are elements of 16 bytes", async () => {
  const given = await contextsOf(5, "wasm");
  try {
    const geometries = await geometryOf(given);
    // (1 + i) (2 + i) (3 + i) (4 + i) (5 + i), of whole numbers, so exact.
    const [real, imaginary] = [-90, 190];
    const combine = (left: Float64Array, right: Float64Array, out: Float64Array): void => {
      for (let at = 0; at < out.length; at += 2) {
        const [a, b, c, d] = [left[at], left[at + 1], right[at], right[at + 1]] as [number, number, number, number];
        out[at] = a * c - b * d;
        out[at + 1] = a * d + b * c;
      }
    };
    for (const count of [1, 3, 1001]) {
      const sums = geometries.map((geometry) => {
        const send = new Float64Array(2 * count).map((_, at) => (at % 2 === 0 ? geometry.rank + 1 : 1));
        return geometry.allreduce({ send, operation: { combine, elementBytes: 16, commutative: true } }, OPTIONS);
      });
      const expected = new Float64Array(2 * count).map((_, at) => (at % 2 === 0 ? real : imaginary));
      for (const result of await settled(given, sums)) expect(result).toEqual({ status: "fulfilled", value: expected });
    }
  } finally {
    await given.close();
  }
});

const combine = (): void => {};
const MISFITS: readonly (readonly [string, object, string])[] = [
  ["no multiple", { send: new Uint8Array(80), operation: { combine, elementBytes: 24 } }, "of 80 bytes.* has 24"],
  ["longer than all", { send: new Uint8Array(8), operation: { combine, elementBytes: 16 } }, "of 8 bytes.* has 16"],
  ["0", { send: new Uint8Array(8), operation: { combine, elementBytes: 0 } }, "elementBytes of allreduce.* 0"],
  ["NaN", { send: new Uint8Array(8), operation: { combine, elementBytes: Number.NaN } }, "elementBytes.* NaN"],
  ["a fraction", { send: new Uint8Array(8), operation: { combine, elementBytes: 1.5 } }, "elementBytes.* 1.5"],
  ["a string", { send: new Uint8Array(8), operation: { combine, elementBytes: "8" } }, 'elementBytes.* "8"'],
  [
    "a part of an entry",
    { send: new Float64Array(3), operation: { combine, elementBytes: 12 } },
    "12, no multiple of the 8",
  ],
  [
    "a part of a type",
    { send: new Float64Array(6), type: "c128", operation: { combine, elementBytes: 24 } },
    "24.* the 16",
  ],
  ["a wrong name", { send: new Uint8Array(8), operation: { combine, elementbytes: 8 } }, 'no "elementbytes"'],
];

it.each(MISFITS)("refuse elements whose bytes are %s", async (_, parameters, text) => {
  const job = await launch(null, { tasks: 1, join: true });
  const { client } = job;
  client.createContext();
  const world = await client.world();
  const given = {
    receive: (parameters as { send: Uint8Array }).send,
    ...(parameters as { send: Uint8Array }),
  } as never;
  const refused = { code: "PAMIR_INVAL", message: expect.stringMatching(text) };
  await expect(world.allreduce(given)).rejects.toMatchObject(refused);
  expect(() => world.allreduceSync(given)).toThrow(expect.objectContaining(refused));
  expect(() => world.collective("allreduce", given)).toThrow(expect.objectContaining(refused));
  // None of it counts as an operation.
  await world.barrier();
  await job.terminate();
});

it("members whose elements differ fail", async () => {
  const given = portsOf(2);
  try {
    const geometries = await geometryOf(given);
    const begin = (geometry: Geometry): Promise<unknown> =>
      geometry.allreduce(
        { send: new Uint8Array(64), operation: { combine, elementBytes: geometry.rank === 0 ? 16 : 32 } },
        OPTIONS,
      );
    for (const result of await settled(given, geometries.map(begin))) {
      expect(result).toMatchObject({ status: "rejected", reason: { code: "PAMIR_COLLECTIVE" } });
    }
  } finally {
    await given.close();
  }
});
