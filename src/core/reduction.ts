// What a reduction may be asked for: element types, operations, and which operation a type has. The kernels, the twin and the
// checks of arguments take it from here; assembly/layout/reduction.ts has the numbers, the bytes and the exact meanings.
import * as L from "../../assembly/layout.js";

/**
 * Element types of reductions. `c64` and `c128` are complex numbers of two floats. The last four are pairs of a value and an
 * index, for `minloc` and `maxloc`; `f64_i32` has four bytes of padding behind its index.
 */
export type ElementType =
  | "i8"
  | "u8"
  | "i16"
  | "u16"
  | "i32"
  | "u32"
  | "i64"
  | "u64"
  | "f32"
  | "f64"
  | "c64"
  | "c128"
  | "i32_i32"
  | "f32_i32"
  | "i64_i64"
  | "f64_i32";

/**
 * Operations of reductions: `left op right`, where left comes from lower ranks. `copy` is right, `noop` is left. `and`, `or`
 * and `xor` are bitwise. The logical ones take 0 as false, all else as true, and give 0 or 1.
 */
export type Operation =
  | "copy"
  | "noop"
  | "sum"
  | "product"
  | "min"
  | "max"
  | "and"
  | "or"
  | "xor"
  | "logicalAnd"
  | "logicalOr"
  | "logicalXor"
  | "minloc"
  | "maxloc";

/** The class of typed arrays that hold elements of a type; the array of a complex type or a pair has several entries each. */
type ArrayClass =
  | Int8ArrayConstructor
  | Uint8ArrayConstructor
  | Int16ArrayConstructor
  | Uint16ArrayConstructor
  | Int32ArrayConstructor
  | Uint32ArrayConstructor
  | BigInt64ArrayConstructor
  | BigUint64ArrayConstructor
  | Float32ArrayConstructor
  | Float64ArrayConstructor;

/** What is known of an element type. */
export interface ElementTypeInfo {
  /** TYPE_…, for the kernels. */
  readonly number: number;
  /** Bytes of an element. */
  readonly bytes: number;
  /** A vector of elements begins at a multiple of this. */
  readonly align: number;
  /** Bytes that hold elements of mixed pairs have no class of their own: theirs is Uint8Array. */
  readonly array: ArrayClass;
  /** Bit o: the type has operation number o. */
  readonly operations: number;
}

const ANY = (1 << L.OPERATION_COPY) | (1 << L.OPERATION_NOOP);
const COMPLEX = ANY | (1 << L.OPERATION_SUM) | (1 << L.OPERATION_PRODUCT);
const FLOAT = COMPLEX | (1 << L.OPERATION_MIN) | (1 << L.OPERATION_MAX);
const BITWISE = (1 << L.OPERATION_AND) | (1 << L.OPERATION_OR) | (1 << L.OPERATION_XOR);
const LOGICAL = (1 << L.OPERATION_LOGICAL_AND) | (1 << L.OPERATION_LOGICAL_OR) | (1 << L.OPERATION_LOGICAL_XOR);
const INTEGER = FLOAT | BITWISE | LOGICAL;
const PAIR = ANY | (1 << L.OPERATION_MINLOC) | (1 << L.OPERATION_MAXLOC);

function info(number: number, bytes: number, align: number, array: ArrayClass, operations: number): ElementTypeInfo {
  return { number, bytes, align, array, operations };
}

/** All element types, by name. */
export const ELEMENT_TYPES: Readonly<Record<ElementType, ElementTypeInfo>> = {
  i8: info(L.TYPE_I8, 1, 1, Int8Array, INTEGER),
  u8: info(L.TYPE_U8, 1, 1, Uint8Array, INTEGER),
  i16: info(L.TYPE_I16, 2, 2, Int16Array, INTEGER),
  u16: info(L.TYPE_U16, 2, 2, Uint16Array, INTEGER),
  i32: info(L.TYPE_I32, 4, 4, Int32Array, INTEGER),
  u32: info(L.TYPE_U32, 4, 4, Uint32Array, INTEGER),
  i64: info(L.TYPE_I64, 8, 8, BigInt64Array, INTEGER),
  u64: info(L.TYPE_U64, 8, 8, BigUint64Array, INTEGER),
  f32: info(L.TYPE_F32, 4, 4, Float32Array, FLOAT),
  f64: info(L.TYPE_F64, 8, 8, Float64Array, FLOAT),
  c64: info(L.TYPE_C64, 8, 4, Float32Array, COMPLEX),
  c128: info(L.TYPE_C128, 16, 8, Float64Array, COMPLEX),
  i32_i32: info(L.TYPE_I32_I32, 8, 4, Int32Array, PAIR),
  f32_i32: info(L.TYPE_F32_I32, 8, 4, Uint8Array, PAIR),
  i64_i64: info(L.TYPE_I64_I64, 16, 8, BigInt64Array, PAIR),
  f64_i32: info(L.TYPE_F64_I32, 16, 8, Uint8Array, PAIR),
};

/** All operations: their numbers for the kernels, by name. */
export const OPERATIONS: Readonly<Record<Operation, number>> = {
  copy: L.OPERATION_COPY,
  noop: L.OPERATION_NOOP,
  sum: L.OPERATION_SUM,
  product: L.OPERATION_PRODUCT,
  min: L.OPERATION_MIN,
  max: L.OPERATION_MAX,
  and: L.OPERATION_AND,
  or: L.OPERATION_OR,
  xor: L.OPERATION_XOR,
  logicalAnd: L.OPERATION_LOGICAL_AND,
  logicalOr: L.OPERATION_LOGICAL_OR,
  logicalXor: L.OPERATION_LOGICAL_XOR,
  minloc: L.OPERATION_MINLOC,
  maxloc: L.OPERATION_MAXLOC,
};

/** Whether elements of a type have an operation. */
export function hasOperation(type: ElementType, operation: Operation): boolean {
  return ((ELEMENT_TYPES[type].operations >>> OPERATIONS[operation]) & 1) === 1;
}

/** Whether `left op right` equals `right op left`, to the bit. */
export function isCommutative(operation: Operation): boolean {
  return operation !== "copy" && operation !== "noop";
}

/** Whether any grouping gives the same bits (payloads of NaN excepted): not where sums and products of floats are rounded. */
export function isAssociative(type: ElementType, operation: Operation): boolean {
  const isFloat = (ELEMENT_TYPES[type].operations & BITWISE) === 0;
  return !(isFloat && (operation === "sum" || operation === "product"));
}

const ARRAY_TYPES = ["i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f32", "f64"] as const;
/** By the class of an array, unless it is one of the program's own: these look-ups come several times in an operation. */
const BY_CLASS: ReadonlyMap<unknown, ElementType> = new Map(
  ARRAY_TYPES.map((name) => [ELEMENT_TYPES[name].array as unknown, name]),
);

/** The type of a typed array's elements; undefined for a DataView, a Float16Array and all that is no view. */
export function elementTypeOf(view: unknown): ElementType | undefined {
  const found = BY_CLASS.get((view as { constructor?: unknown } | null | undefined)?.constructor);
  if (found !== undefined && view instanceof ELEMENT_TYPES[found].array) return found;
  if (view instanceof Uint8ClampedArray) return "u8";
  return ARRAY_TYPES.find((name) => view instanceof ELEMENT_TYPES[name].array);
}
