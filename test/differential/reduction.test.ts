// The reductions of the wasm module and of the twin, against each other and against a model: every operation of every type.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { OPERATION_COUNT, TYPE_COUNT } from "../../assembly/layout.js";
import {
  ELEMENT_TYPES,
  type ElementType,
  elementTypeOf,
  hasOperation,
  isAssociative,
  isCommutative,
  OPERATIONS,
  type Operation,
} from "../../src/core/reduction.js";
import { type CollectiveRig, collectiveRig } from "../support/collective-kernels.js";
import { scaled } from "../support/effort.js";
import { randomOf } from "../support/random.js";
import { reduceElement, withOneNaN } from "../support/reduction-model.js";
import { SEED } from "../support/seed.js";

/** Room for a vector, and guard bytes around it. */
const ROOM = 4096;
const GUARD = 64;
const BYTES = 3 * ROOM;

const types = Object.keys(ELEMENT_TYPES) as ElementType[];
const operations = Object.keys(OPERATIONS) as Operation[];
const all = types.flatMap((type) =>
  operations.filter((operation) => hasOperation(type, operation)).map((operation) => ({ type, operation })),
);

/** Which of the vectors are the same. */
type Aliasing = "none" | "out is left" | "out is right" | "left is right" | "all are one";
const ALIASINGS: readonly Aliasing[] = ["none", "out is left", "out is right", "left is right", "all are one"];

/** Values that random bits hit too seldom. */
const SPECIAL: Readonly<Record<string, readonly number[]>> = {
  f32: [0, -0, 1, -1, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 1e-45, -1e-45, 3.4e38, 1 / 3],
  f64: [0, -0, 1, -1, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 5e-324, -5e-324, 1.7e308, 1 / 3],
};

/** Random bits; in four of eight words something that is seldom among them: 0, the ends of a range, a special float. */
function fill(bytes: Uint8Array, type: ElementType, random: (below: number) => number): void {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  for (let at = 0; at < bytes.length; at++) bytes[at] = random(256);
  const part = /^(f32|c64)/.test(type) ? "f32" : /^(f64|c128)/.test(type) ? "f64" : undefined;
  for (let at = 0; at + 8 <= bytes.length; at += 8) {
    const choice = random(8);
    if (choice < 2) bytes.fill(choice === 0 ? 0 : 0xff, at, at + 8);
    else if (choice === 2) view.setBigUint64(at, 1n << 63n, true);
    else if (choice === 3 && at >= 16) bytes.copyWithin(at, at - 16, at - 8);
    else if (choice < 6 && part === "f32") {
      for (const word of [at, at + 4]) view.setFloat32(word, SPECIAL.f32?.[random(11)] ?? 0, true);
    } else if (choice < 6 && part === "f64") view.setFloat64(at, SPECIAL.f64?.[random(11)] ?? 0, true);
  }
}

interface Case {
  readonly type: ElementType;
  readonly operation: Operation;
  readonly count: number;
  readonly aliasing: Aliasing;
  /** Offsets of out, left and right, in alignments of the type. */
  readonly shifts: readonly [number, number, number];
  readonly seed: number;
}

/** Does it in all memories; compares results with the model, and all other bytes with what they were. */
function check(rigs: readonly CollectiveRig[], { type, operation, count, aliasing, shifts, seed }: Case): void {
  const { bytes, align, number } = ELEMENT_TYPES[type];
  const [o, l, r] = shifts.map((shift, i) => i * ROOM + GUARD + shift * align) as [number, number, number];
  const left = aliasing === "out is left" || aliasing === "all are one" ? o : l;
  const right = aliasing === "out is right" || aliasing === "all are one" ? o : aliasing === "left is right" ? left : r;
  const before = new Uint8Array(BYTES);
  fill(before, type, randomOf(seed));
  const after = before.slice();
  for (let i = 0; i < count; i++) {
    const element = (at: number) => before.slice(at + i * bytes, at + (i + 1) * bytes);
    after.set(reduceElement(type, operation, element(left), element(right)), o + i * bytes);
  }
  withOneNaN(type, after.subarray(o, o + count * bytes));
  for (const { kernel, memory, base } of rigs) {
    const area = memory.bytes.subarray(base, base + BYTES);
    area.set(before);
    kernel.reduce(OPERATIONS[operation], number, base + o, base + left, base + right, count);
    withOneNaN(type, area.subarray(o, o + count * bytes));
    if (Buffer.compare(area, after) === 0) continue;
    const at = area.findIndex((byte, i) => byte !== after[i]);
    const [was, is] = [before, area].map((all) => Buffer.from(all.subarray(at & ~15, (at & ~15) + 16)).toString("hex"));
    const wanted = Buffer.from(after.subarray(at & ~15, (at & ~15) + 16)).toString("hex");
    throw new Error(
      `${kernel.name}: byte ${at} (out ${o}, left ${left}, right ${right}): ${was} → ${is}, not ${wanted}`,
    );
  }
}

const rigs = [collectiveRig("wasm", BYTES), collectiveRig("ts", BYTES)];

describe.each(all)("$operation of $type", ({ type, operation }) => {
  it("gives what the model gives, whatever the count and whichever vectors are the same", () => {
    const counts = [0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 64, 100];
    counts.forEach((count, i) => {
      ALIASINGS.forEach((aliasing, j) => {
        check(rigs, { type, operation, count, aliasing, shifts: [0, 0, 0], seed: SEED + 16 * i + j });
        check(rigs, { type, operation, count, aliasing, shifts: [1, 2, 3], seed: SEED - 16 * i - j });
      });
    });
  });
});

it("random vectors at random places give what the model gives", () => {
  const places = fc.tuple(...[0, 1, 2].map(() => fc.integer({ min: 0, max: 20 }))) as fc.Arbitrary<
    [number, number, number]
  >;
  fc.assert(
    fc.property(
      fc.constantFrom(...all),
      fc.record({
        count: fc.integer({ min: 0, max: 150 }),
        aliasing: fc.constantFrom(...ALIASINGS),
        shifts: places,
        seed: fc.integer(),
      }),
      (what, more) => check(rigs, { ...what, ...more }),
    ),
    { seed: SEED, numRuns: scaled(4000) },
  );
});

it("pointers beyond 2^31 are those of bytes, not negative", () => {
  const high = (["wasm", "ts"] as const).map((name) => collectiveRig(name, BYTES, 2 ** 31 - 2 * ROOM));
  for (const what of all) {
    for (const count of [7, 150])
      check(high, { ...what, count, aliasing: "none", shifts: [1, 2, 3], seed: SEED + count });
  }
});

it("the tables have each number once, and each typed array has its type", () => {
  expect(types.map((type) => ELEMENT_TYPES[type].number)).toEqual([...Array(TYPE_COUNT).keys()]);
  expect(operations.map((operation) => OPERATIONS[operation])).toEqual([...Array(OPERATION_COUNT).keys()]);
  for (const type of types.slice(0, 10)) expect(elementTypeOf(new ELEMENT_TYPES[type].array(1))).toBe(type);
  expect(elementTypeOf(new Uint8ClampedArray(1))).toBe("u8");
  expect(elementTypeOf(new DataView(new ArrayBuffer(8)))).toBeUndefined();
  expect(elementTypeOf([1])).toBeUndefined();
  expect(all.length).toBe(8 * 12 + 2 * 6 + 2 * 4 + 4 * 4);
});

it("operations are commutative and associative where the tables say so, for random elements", () => {
  fc.assert(
    fc.property(fc.constantFrom(...all), fc.integer(), ({ type, operation }, seed) => {
      const { bytes } = ELEMENT_TYPES[type];
      const random = new Uint8Array(3 * 16);
      fill(random, type, randomOf(seed));
      // Two pairs that differ in padding alone are the same pair.
      if (type === "f64_i32") for (const at of [12, 28, 44]) random.fill(0, at, at + 4);
      const [a, b, c] = [0, 16, 32].map((at) => withOneNaN(type, random.slice(at, at + bytes))) as [
        Uint8Array<ArrayBuffer>,
        Uint8Array<ArrayBuffer>,
        Uint8Array<ArrayBuffer>,
      ];
      const of = (x: Uint8Array<ArrayBuffer>, y: Uint8Array<ArrayBuffer>) =>
        withOneNaN(type, reduceElement(type, operation, x, y).slice()) as Uint8Array<ArrayBuffer>;
      if (isCommutative(operation) && !/^f.*_/.test(type)) expect(of(a, b)).toEqual(of(b, a));
      if (isAssociative(type, operation) && !/^f.*_/.test(type)) expect(of(of(a, b), c)).toEqual(of(a, of(b, c)));
    }),
    { seed: SEED, numRuns: scaled(2000) },
  );
});
