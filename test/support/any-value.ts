// Values of every kind that structured clone takes, and how two of them are compared.
import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";

/** Strings of every kind: ASCII, up to U+00FF, beyond, with lone surrogates; short, and longer than a tag has room for. */
export const text: fc.Arbitrary<string> = fc
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
  Uint16Array,
  Int32Array,
  Uint32Array,
  Float32Array,
  Float64Array,
  BigInt64Array,
  BigUint64Array,
  DataView,
);
type ResizableBuffer = new (length: number, options: { maxByteLength: number }) => ArrayBuffer;
const canResize = "resize" in ArrayBuffer.prototype;

/** An ArrayBuffer with limits, where the host has them, and what follows it. */
function resizable(bytes: Uint8Array, kind: number): unknown {
  if (!canResize) return bytes.slice().buffer;
  const buffer = new (ArrayBuffer as ResizableBuffer)(bytes.length, { maxByteLength: bytes.length + kind });
  new Uint8Array(buffer).set(bytes);
  return kind % 3 === 0 ? buffer : kind % 3 === 1 ? new Uint8Array(buffer) : [new DataView(buffer), buffer];
}

class Point {
  readonly x: unknown;
  #hidden = 1;
  constructor(x: unknown) {
    this.x = x;
  }
  get hidden(): number {
    return this.#hidden;
  }
}
const leaf = fc.oneof(
  { weight: 6, arbitrary: primitive },
  fc.oneof(fc.date({ noInvalidDate: false }), fc.constant(/a+(?<b>c)/giu)),
  fc.tuple(views, fc.nat(3), fc.nat(4), fc.constantFrom(64, 72)).map(([View, offset, length, size]) => {
    return new (View as AnyView)(new ArrayBuffer(size), 8 * offset, length);
  }),
  bytes.map((list) => list.slice().buffer),
  bytes.map((list) => Buffer.from(list)),
  fc.oneof(text, fc.double(), fc.boolean(), fc.bigInt()).map((value) => Object(value) as unknown),
  fc
    .tuple(fc.constantFrom(Error, RangeError, TypeError, URIError), text, fc.option(primitive))
    .map(([Type, message, cause]) => new Type(message, cause === null ? undefined : { cause: [cause] })),
  fc.tuple(bytes, fc.nat(8)).map(([list, kind]) => resizable(list, kind)),
  primitive.map((value) => new Point(value)),
  primitive.map((value) => Object.assign(Object.create(null) as object, { value })),
);

/** Any value that can be cloned; objects are met several times, and within themselves. */
export const anything: fc.Arbitrary<unknown> = fc
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

/** Whether a copy has what structuredClone() has given, and shares the same objects. */
export function areAlike(expected: unknown, copy: unknown): boolean {
  const isSame = hasInvalidDate(expected) || isDeepStrictEqual(comparable(copy), comparable(expected));
  return isSame && shareAlike(expected, copy);
}
