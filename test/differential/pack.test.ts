// Packing and unpacking by the wasm module and by the twin, against each other and against a model that knows the offset of
// each byte: any description, any number of elements, any part of the stream, in any memory.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { MemRegion } from "../../src/core/region.js";
import type { Task } from "../../src/protocol/task.js";
import { makeType } from "../../src/types/type.js";
import { shapeOf } from "../../src/types/typed.js";
import { bytesFrom } from "../support/bytes.js";
import { type CollectiveRig, collectiveRig } from "../support/collective-kernels.js";
import { scaled } from "../support/effort.js";
import { randomOf } from "../support/random.js";
import { SEED } from "../support/seed.js";
import { type Description, describeTo, description, extentOf, offsetsOf, spanOf } from "../support/type-model.js";

const BYTES = 131_072;
/** Where a test has its LAYOUT (or the regions of its type), the packed bytes and the elements. */
const LAYOUT = 0;
const PACKED = 32_768;
const ELEMENTS = 65_536;
/** Elements that the descriptions of a test may take. */
const COUNT_MAX = 4;

/** A task with a memory alone. */
function taskOver({ kernel, memory, base }: CollectiveRig): Task {
  let next = base;
  const create = (bytes: number): MemRegion => {
    const region = new MemRegion(memory.bytes.subarray(next, next + bytes), 0, 1, () => {});
    next += Math.ceil(bytes / 4096) * 4096;
    return region;
  };
  return { kernel: { name: kernel.name }, memory, regions: { create } } as unknown as Task;
}

interface Case {
  readonly type: Description;
  readonly count: number;
  /** Which part of the stream: fractions of it. */
  readonly part: readonly [number, number];
  /** Offsets of both sides. */
  readonly shifts: readonly [number, number];
  readonly seed: number;
}

const cases = fc.record({
  type: description,
  count: fc.integer({ min: 1, max: COUNT_MAX }),
  part: fc.oneof(
    fc.constant([0, 1] as const),
    fc.tuple(fc.double({ min: 0, max: 1, noNaN: true }), fc.double({ min: 0, max: 1, noNaN: true })),
  ),
  shifts: fc.tuple(fc.integer({ min: 0, max: 9 }), fc.integer({ min: 0, max: 9 })),
  seed: fc.integer(),
});

/** Offsets of all bytes of data of some elements, as packed. */
function streamOf(type: Description, count: number): number[] {
  const [own, extent] = [offsetsOf(type), extentOf(type)];
  return Array.from({ length: count }, (_, i) => own.map((offset) => i * extent + offset)).flat();
}

const random = randomOf(SEED);
const POOL = bytesFrom(2 * BYTES, () => random(256));

/** Bytes that differ from seed to seed. */
function randomBytes(length: number, seed: number): Uint8Array<ArrayBuffer> {
  const from = Math.abs(seed * 97) % BYTES;
  return POOL.slice(from, from + length);
}

/** Whether a test has room for elements and their packed bytes. */
function isSmall(type: Description, count: number): boolean {
  const most = 64 * 1024 - 64;
  return count * extentOf(type) <= most && count * offsetsOf(type).length <= most / 2;
}

/** First and last byte of a part of so many. */
function partOf(length: number, [a, b]: readonly [number, number]): [number, number] {
  const [from, to] = [Math.min(a, b), Math.max(a, b)].map((at) => Math.round(at * length)) as [number, number];
  return [from, to];
}

function checkKernels(rigs: readonly CollectiveRig[], { type, count, part, shifts, seed }: Case): void {
  fc.pre(isSmall(type, count));
  const stream = streamOf(type, count);
  const [from, to] = partOf(stream.length, part);
  const [packed, elements] = [PACKED + shifts[0], ELEMENTS + shifts[1]];
  const before = randomBytes(BYTES - PACKED, seed);
  const at = (pointer: number): number => pointer - PACKED;
  const afterPack = before.slice();
  for (let i = from; i < to; i++) {
    afterPack[at(packed) + i - from] = before[at(elements) + (stream[i] as number)] as number;
  }
  const afterUnpack = before.slice();
  for (let i = from; i < to; i++) {
    afterUnpack[at(elements) + (stream[i] as number)] = before[at(packed) + i - from] as number;
  }
  for (const rig of rigs) {
    const { kernel, memory, base } = rig;
    const { words, bytes } = shapeOf(
      "type",
      describeTo(() => makeType(taskOver(rig)), type),
    );
    expect(bytes * count).toBe(stream.length);
    memory.words.set(words, (base + LAYOUT) >>> 2);
    const area = memory.bytes.subarray(base + PACKED, base + BYTES);
    for (const [call, after] of [
      ["pack", afterPack],
      ["unpack", afterUnpack],
    ] as const) {
      area.set(before);
      kernel[call](base + LAYOUT, base + packed, base + elements, from, to - from);
      if (Buffer.compare(area, after) === 0) continue;
      const wrong = area.findIndex((byte, i) => byte !== after[i]) + PACKED;
      const where = wrong >= elements ? `element byte ${wrong - elements}` : `packed byte ${wrong - packed}`;
      throw new Error(`${kernel.name}: ${call} of ${from} to ${to} of ${stream.length}: ${where} differs`);
    }
  }
}

const rigs = [collectiveRig("wasm", BYTES), collectiveRig("ts", BYTES)];

it("any part of any elements is packed and unpacked as the model has it", () => {
  fc.assert(
    fc.property(cases, (what) => checkKernels(rigs, what)),
    { seed: SEED, numRuns: scaled(400) },
  );
});

it("pointers beyond 2^31 are those of bytes, not negative", () => {
  const high = (["wasm", "ts"] as const).map((name) => collectiveRig(name, BYTES, 2 ** 31 - ELEMENTS - 40));
  fc.assert(
    fc.property(cases, (what) => checkKernels(high, what)),
    { seed: SEED, numRuns: scaled(60) },
  );
});

it.each([1, 2, 3, 4, 7, 8, 15, 16, 17, 32, 64, 65, 127, 128, 129, 1000])("runs of %i bytes, in any number", (bytes) => {
  for (const count of [1, 2, 3, 4, 5, 15, 16, 17, 33]) {
    for (const gap of [0, 1, 4, 24]) {
      const type = { parts: [{ add: "simple" as const, bytes, offset: 4, count, gap }], slack: 0 };
      if (!isSmall(type, 2)) continue;
      for (const part of [
        [0, 1],
        [0.3, 0.8],
      ] as const) {
        checkKernels(rigs, { type, count: 2, part, shifts: [0, 0], seed: SEED + bytes });
        checkKernels(rigs, { type, count: 1, part, shifts: [1, 3], seed: SEED - bytes });
      }
    }
  }
});

describe.each(["wasm", "ts"] as const)("a type of a task with %s kernels", (name) => {
  const rig = collectiveRig(name, BYTES);

  it("says what it is, and packs and unpacks in any memory", () => {
    fc.assert(
      fc.property(
        cases,
        fc.boolean(),
        fc.boolean(),
        ({ type, count, part, seed }, isPackedShared, isElementsShared) => {
          const rig = collectiveRig(name, BYTES);
          const made = describeTo(() => makeType(taskOver(rig)), type);
          const [own, stream] = [offsetsOf(type), streamOf(type, count)];
          const overlaps = new Set(own).size < own.length;
          expect(made.query()).toMatchObject({
            bytes: own.length,
            extent: extentOf(type),
            span: spanOf(type),
            overlaps,
          });
          expect(made.query().isContiguous).toBe(
            own.every((offset, i) => offset === i) && extentOf(type) === own.length,
          );
          // Runs of neighbors in the stream: the type may have split one, and never has more than there are bytes.
          const runs = own.filter((offset, i) => i === 0 || offset !== (own[i - 1] as number) + 1).length;
          expect(made.query().runs).toBeGreaterThanOrEqual(runs);
          const span = (count - 1) * extentOf(type) + spanOf(type);
          if (span > BYTES - ELEMENTS || stream.length > ELEMENTS - PACKED) return;
          const shared = rig.memory.bytes;
          const elements = isElementsShared ? shared.subarray(ELEMENTS, ELEMENTS + span) : new Uint8Array(span);
          const [from, to] = partOf(stream.length, part);
          const options = { count, from, bytes: to - from };
          const packed = isPackedShared ? shared.subarray(PACKED, PACKED + to - from) : new Uint8Array(to - from);
          const before = randomBytes(span, seed);
          elements.set(before);
          expect(made.pack(elements, packed, options)).toBe(to - from);
          expect([...packed]).toEqual(stream.slice(from, to).map((offset) => before[offset]));
          packed.set(randomBytes(to - from, seed + 1));
          if (overlaps) {
            expect(() => made.unpack(packed, elements, options)).toThrow(/overlap/);
            return;
          }
          // Elements whose extent is their span do not overlap either.
          made.unpack(packed, elements, options);
          const after = before.slice();
          for (let i = from; i < to; i++) after[stream[i] as number] = packed[i - from] as number;
          expect(Buffer.compare(elements, after)).toBe(0);
        },
      ),
      { seed: SEED, numRuns: scaled(60) },
    );
  });

  it("goes from one type to another of any length", () => {
    fc.assert(
      fc.property(cases, description, ({ type, count, seed }, target) => {
        fc.pre(isSmall(type, count) && isSmall(target, COUNT_MAX));
        const make = () => makeType(taskOver(rig));
        const [from, to] = [describeTo(make, type), describeTo(make, target)];
        if (to.query().overlaps) return;
        const stream = streamOf(type, count);
        const places = streamOf(target, Math.ceil(stream.length / offsetsOf(target).length));
        const source = randomBytes((count - 1) * extentOf(type) + spanOf(type), seed);
        const elements = Math.ceil(stream.length / offsetsOf(target).length);
        const full = (elements - 1) * extentOf(target) + spanOf(target);
        fc.pre(full < BYTES);
        const into = randomBytes(full, seed + 1);
        const after = into.slice();
        stream.forEach((offset, i) => {
          after[places[i] as number] = source[offset] as number;
        });
        expect(from.transform(source, into, to, { count })).toBe(stream.length);
        expect(Buffer.compare(into, after)).toBe(0);
      }),
      { seed: SEED, numRuns: scaled(60) },
    );
  });
});
