// codecs.clone() against structuredClone(): the same value, with the same objects shared, and the same refusals. And its decoder
// against bytes that no encoder made.
import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Cloner } from "../../src/core/clone/clone.js";
import { stringsByBuffer, stringsByText } from "../../src/core/clone/strings.js";
import type { PamiError } from "../../src/core/error.js";
import { scaled } from "../support/effort.js";
import { SEED } from "../support/seed.js";

const cloners = [
  ["Buffer", new Cloner(stringsByBuffer())],
  ["TextEncoder", new Cloner(stringsByText())],
] as const;

/** Strings of every kind: ASCII, up to U+00FF, beyond, with lone surrogates; short, and longer than a tag has room for. */
const text = fc
  .tuple(
    fc.oneof(
      fc.string({ unit: "grapheme-ascii" }),
      fc.string({ unit: fc.integer({ min: 0, max: 0xff }).map((unit) => String.fromCharCode(unit)) }),
      fc.string({ unit: "binary" }),
      fc.string({ unit: fc.integer({ min: 0, max: 0xffff }).map((unit) => String.fromCharCode(unit)) }),
    ),
    fc.constantFrom(1, 1, 1, 20, 200),
  )
  .map(([part, times]) => part.repeat(times));
const key = fc.oneof(text, fc.constantFrom("__proto__", "constructor", "0", "17", "length", "then", "toJSON"));
const number = fc.oneof(
  fc.double(),
  fc.integer(),
  fc.constantFrom(0, -0, 127, 128, -1, 32767, 32768, -32769, 2 ** 31 - 1, 2 ** 31, -(2 ** 31), 2 ** 53, Number.NaN),
);
const primitive = fc.oneof(text, number, fc.boolean(), fc.constantFrom(null, undefined), fc.bigInt());
type AnyView = new (buffer: ArrayBuffer, byteOffset: number, length: number) => ArrayBufferView;
const bytes = fc.uint8Array({ maxLength: 64 });
const views = fc.constantFrom(
  Uint8Array,
  Int8Array,
  Uint8ClampedArray,
  Int16Array,
  Float32Array,
  Float64Array,
  BigInt64Array,
  DataView,
);
const leaf = fc.oneof(
  { weight: 6, arbitrary: primitive },
  fc.oneof(fc.date({ noInvalidDate: false }), fc.constant(/a+(?<b>c)/giu)),
  fc.tuple(views, fc.nat(3), fc.nat(4), fc.constantFrom(64, 72)).map(([View, offset, length, size]) => {
    return new (View as AnyView)(new ArrayBuffer(size), 8 * offset, length);
  }),
  bytes.map((list) => list.slice().buffer),
  bytes.map((list) => Buffer.from(list)),
  fc.oneof(text, fc.double(), fc.boolean(), fc.bigInt()).map((value) => Object(value) as unknown),
  fc.constantFrom(Error, RangeError, TypeError, URIError).chain((Type) => text.map((message) => new Type(message))),
);

/** Any value that can be cloned; objects are met several times, and within themselves. */
const anything = fc
  .tuple(
    fc.letrec((tie) => ({
      value: fc.oneof(
        { maxDepth: 4, depthIdentifier: "value" },
        leaf,
        tie("array"),
        tie("object"),
        tie("map"),
        tie("set"),
      ),
      array: fc.array(tie("value"), { maxLength: 20, depthIdentifier: "value" }),
      object: fc
        .array(fc.tuple(key, tie("value")), { maxLength: 8, depthIdentifier: "value" })
        .map((entries) => Object.fromEntries(entries)),
      map: fc
        .array(fc.tuple(tie("value"), tie("value")), { maxLength: 6, depthIdentifier: "value" })
        .map((all) => new Map(all)),
      set: fc.array(tie("value"), { maxLength: 6, depthIdentifier: "value" }).map((all) => new Set(all)),
    })).value,
    fc.infiniteStream(fc.nat()),
  )
  .map(([value, draws]) => {
    const objects: object[] = [];
    const visit = (one: unknown): void => {
      if (typeof one !== "object" || one === null || objects.includes(one)) return;
      objects.push(one);
      for (const member of one instanceof Map || one instanceof Set ? one.values() : Object.values(one)) visit(member);
    };
    visit(value);
    const draw = (): number => draws.next().value as number;
    for (const object of objects) {
      if (draw() % 4 !== 0) continue;
      const other = objects[draw() % objects.length];
      if (Array.isArray(object)) {
        const kind = draw() % 4;
        if (kind === 0) object.push(other);
        else if (kind === 1) delete object[draw() % (object.length + 1)];
        else if (kind === 2) object.length += draw() % 200;
        else Object.assign(object, { named: other });
      } else if (object instanceof Map) object.set(other, object);
      else if (object instanceof Set) object.add(other);
      else if (Object.getPrototypeOf(object) === Object.prototype) Object.assign(object, { other });
    }
    return value;
  });

/** Whether two values have the same shape of shared objects: the n-th object met in one is met where that of the other is. */
function shareAlike(one: unknown, other: unknown, met = new Map<unknown, unknown>()): boolean {
  if (typeof one !== "object" || one === null || typeof other !== "object" || other === null) return true;
  if (met.has(one)) return met.get(one) === other;
  met.set(one, other);
  const members = (owner: object): unknown[] => {
    if (owner instanceof Map) return [...owner].flat();
    if (owner instanceof Set) return [...owner];
    if (ArrayBuffer.isView(owner)) return [];
    return Object.values(owner);
  };
  const [mine, theirs] = [members(one), members(other)];
  return mine.length === theirs.length && mine.every((member, i) => shareAlike(member, theirs[i], met));
}

/** Node's comparison takes two invalid dates for different. */
const comparable = (value: unknown): unknown => (Number.isNaN((value as Date)?.getTime?.()) ? "invalid date" : value);
const hasInvalidDate = (value: unknown): boolean => {
  const met = new Set<unknown>([value]);
  for (const one of met) {
    if (one instanceof Date && Number.isNaN(one.getTime())) return true;
    if (typeof one !== "object" || one === null || ArrayBuffer.isView(one)) continue;
    for (const member of one instanceof Map ? [...one].flat() : one instanceof Set ? one : Object.values(one))
      met.add(member);
  }
  return false;
};

describe.each(cloners)("codecs.clone() by %s", (_, cloner) => {
  const parameters = { seed: SEED, numRuns: scaled(600) };

  it("gives what structuredClone() gives, and shares the same objects", () => {
    fc.assert(
      fc.property(anything, (value) => {
        const copy = cloner.decode(cloner.encode(value));
        const expected: unknown = structuredClone(value);
        const isSame = hasInvalidDate(value) || isDeepStrictEqual(comparable(copy), comparable(expected));
        if (!isSame) expect(copy).toStrictEqual(expected);
        expect(isSame && shareAlike(expected, copy)).toBe(true);
      }),
      parameters,
    );
  });

  it("encodes what it has decoded into the same bytes", () => {
    fc.assert(
      fc.property(anything, (value) => {
        const encoded = cloner.encode(value);
        expect(Buffer.compare(cloner.encode(cloner.decode(encoded)), encoded)).toBe(0);
      }),
      parameters,
    );
  });

  it("reads what the other one has written, also from shared memory", () => {
    const [[, one], [, two]] = cloners;
    const other = cloner === one ? two : one;
    fc.assert(
      fc.property(text, text, (first, second) => {
        const encoded = other.encode([first, { [second]: first }]);
        const shared = new Uint8Array(new SharedArrayBuffer(encoded.length + 1)).subarray(1);
        shared.set(encoded);
        expect(cloner.decode(shared)).toStrictEqual([first, { [second]: first }]);
      }),
      parameters,
    );
  });

  it("refuses bytes that are bent or cut, or takes them for another value, and throws nothing else", () => {
    const bent = fc.tuple(anything, fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 4 }), fc.nat(3));
    fc.assert(
      fc.property(fc.oneof(bent, fc.uint8Array({ maxLength: 200 })), (drawn) => {
        let hostile: Uint8Array;
        if (drawn instanceof Uint8Array) hostile = drawn;
        else {
          const [value, changes, cut] = drawn;
          hostile = cloner.encode(value).slice();
          for (const [at, byte] of changes) hostile[at % hostile.length] = byte;
          if (cut === 0) hostile = hostile.subarray(0, hostile.length >> 1);
        }
        try {
          cloner.decode(hostile);
        } catch (error) {
          expect((error as PamiError).code).toBe("PAMIR_CLONE");
        }
      }),
      parameters,
    );
  });
});
