// What reductions are to compute: element by element, with BigInt and DataView, and without regard to speed.
import type { ElementType, Operation } from "../../src/core/reduction.js";

type Value = number | bigint;

const BITS: Readonly<Partial<Record<ElementType, number>>> = { i8: 8, u8: 8, i16: 16, u16: 16, i32: 32, u32: 32 };

function integer(type: ElementType, operation: Operation, a: bigint, b: bigint): bigint {
  const bits = BITS[type] ?? 64;
  const wrap = (value: bigint): bigint =>
    type.startsWith("u") ? BigInt.asUintN(bits, value) : BigInt.asIntN(bits, value);
  switch (operation) {
    case "sum":
      return wrap(a + b);
    case "product":
      return wrap(a * b);
    case "min":
      return a < b ? a : b;
    case "max":
      return a > b ? a : b;
    case "and":
      return a & b;
    case "or":
      return a | b;
    case "xor":
      return a ^ b;
    case "logicalAnd":
      return a !== 0n && b !== 0n ? 1n : 0n;
    case "logicalOr":
      return a !== 0n || b !== 0n ? 1n : 0n;
    case "logicalXor":
      return (a !== 0n) !== (b !== 0n) ? 1n : 0n;
    default:
      throw new Error(`${operation} of integers`);
  }
}

function float(operation: Operation, a: number, b: number): number {
  switch (operation) {
    case "sum":
      return a + b;
    case "product":
      return a * b;
    case "min":
      return Math.min(a, b);
    case "max":
      return Math.max(a, b);
    default:
      throw new Error(`${operation} of floats`);
  }
}

/** How values are read and written, by the type's name. */
const ACCESS = {
  i8: ["getInt8", "setInt8", 1],
  u8: ["getUint8", "setUint8", 1],
  i16: ["getInt16", "setInt16", 2],
  u16: ["getUint16", "setUint16", 2],
  i32: ["getInt32", "setInt32", 4],
  u32: ["getUint32", "setUint32", 4],
  i64: ["getBigInt64", "setBigInt64", 8],
  u64: ["getBigUint64", "setBigUint64", 8],
  f32: ["getFloat32", "setFloat32", 4],
  f64: ["getFloat64", "setFloat64", 8],
} as const;

type Simple = keyof typeof ACCESS;

function read(view: DataView, type: Simple, at: number): Value {
  return view[ACCESS[type][0]](at, true);
}

function write(view: DataView, type: Simple, at: number, value: Value): void {
  (view[ACCESS[type][1]] as (at: number, value: Value, isLittle: boolean) => void).call(view, at, value, true);
}

/** Whether the pair `left` wins: its value does, or both are the same and its index is not greater. */
function isLeft(operation: Operation, [a, i]: [Value, Value], [b, j]: [Value, Value]): boolean {
  if (Object.is(a, b)) return i <= j;
  if (typeof a === "bigint") return operation === "minloc" ? a < b : a > b;
  return Object.is(float(operation === "minloc" ? "min" : "max", a, b as number), a);
}

/** What `left op right` is, for one element of `bytes` bytes. */
export function reduceElement(
  type: ElementType,
  operation: Operation,
  left: Uint8Array<ArrayBuffer>,
  right: Uint8Array<ArrayBuffer>,
): Uint8Array {
  if (operation === "copy") return right;
  if (operation === "noop") return left;
  const [a, b] = [new DataView(left.buffer, left.byteOffset), new DataView(right.buffer, right.byteOffset)];
  const out = new Uint8Array(left.length);
  const result = new DataView(out.buffer);
  if (type.includes("_")) {
    const [value, index] = type.split("_") as [Simple, Simple];
    const at = ACCESS[value][2];
    const pair = (view: DataView): [Value, Value] => [read(view, value, 0), read(view, index, at)];
    return isLeft(operation, pair(a), pair(b)) ? left : right;
  }
  if (type === "c64" || type === "c128") {
    const part = type === "c64" ? "f32" : "f64";
    const round = type === "c64" ? Math.fround : (value: number) => value;
    const at = ACCESS[part][2];
    const [ar, ai, br, bi] = [a, b].flatMap((view) => [read(view, part, 0), read(view, part, at)]) as [
      number,
      number,
      number,
      number,
    ];
    const isSum = operation === "sum";
    write(result, part, 0, isSum ? ar + br : round(ar * br) - round(ai * bi));
    write(result, part, at, isSum ? ai + bi : round(ar * bi) + round(ai * br));
    return out;
  }
  const simple = type as Simple;
  const [x, y] = [read(a, simple, 0), read(b, simple, 0)];
  if (type.startsWith("f")) write(result, simple, 0, float(operation, x as number, y as number));
  else {
    const value = integer(type, operation, BigInt(x), BigInt(y));
    write(result, simple, 0, ACCESS[simple][2] === 8 ? value : Number(value));
  }
  return out;
}

/** Replaces each NaN by one and the same, in place: payloads may differ. */
export function withOneNaN(type: ElementType, bytes: Uint8Array): Uint8Array {
  const part = { f32: "f32", c64: "f32", f64: "f64", c128: "f64" }[type as string] as "f32" | "f64" | undefined;
  if (part === undefined) return bytes;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  for (let at = 0; at < bytes.length; at += ACCESS[part][2]) {
    if (Number.isNaN(read(view, part, at))) write(view, part, at, Number.NaN);
  }
  return bytes;
}
