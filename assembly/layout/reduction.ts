// Reductions: the numbers of element types and operations, and how elements lie in memory. Shared: compiled by asc and
// imported by TypeScript.

// ╒═════════════ ELEMENT: of a reduction, little-endian; a vector of them begins at a multiple of `align` ══════════╕
//  type      bytes  align  byte 0       4            8            12
//  I8, U8    1      1      value
//  I16, U16  2      2      value
//  I32, U32  4      4      value
//  I64, U64  8      8      value ───────────────╴
//  F32       4      4      value
//  F64       8      8      value ───────────────╴
//  C64       8      4      real f32     imag f32
//  C128      16     8      real f64 ────────────╴ imag f64 ────────────╴
//  I32_I32   8      4      value i32    index i32
//  F32_I32   8      4      value f32    index i32
//  I64_I64   16     8      value i64 ───────────╴ index i64 ───────────╴
//  F64_I32   16     8      value f64 ───────────╴ index i32    padding: goes with its pair
// ╘═════════════════════════════════════════════════════════════════════════════════════════════════════════════════╛
export const TYPE_I8: u32 = 0;
export const TYPE_U8: u32 = 1;
export const TYPE_I16: u32 = 2;
export const TYPE_U16: u32 = 3;
export const TYPE_I32: u32 = 4;
export const TYPE_U32: u32 = 5;
export const TYPE_I64: u32 = 6;
export const TYPE_U64: u32 = 7;
export const TYPE_F32: u32 = 8;
export const TYPE_F64: u32 = 9;
export const TYPE_C64: u32 = 10;
export const TYPE_C128: u32 = 11;
export const TYPE_I32_I32: u32 = 12;
export const TYPE_F32_I32: u32 = 13;
export const TYPE_I64_I64: u32 = 14;
export const TYPE_F64_I32: u32 = 15;
/** Number of types. */
export const TYPE_COUNT: u32 = 16;
/** Logarithms of the element sizes, 4 bits for each type: type t has 1 << ((TYPE_SHIFTS_… >>> 4 × (t & 7)) & 15) bytes. */
export const TYPE_SHIFTS_LOW: u32 = 0x33221100;
export const TYPE_SHIFTS_HIGH: u32 = 0x44334332;

/** out = right: what the last rank has. */
export const OPERATION_COPY: u32 = 0;
/** out = left: what the first rank has. */
export const OPERATION_NOOP: u32 = 1;
/** Integers wrap. */
export const OPERATION_SUM: u32 = 2;
/** Integers wrap. Complex numbers: four products, then a difference and a sum, each rounded. */
export const OPERATION_PRODUCT: u32 = 3;
/** Floats: NaN is less than all others, and -0 less than 0. */
export const OPERATION_MIN: u32 = 4;
/** Floats: NaN is greater than all others, and 0 greater than -0. */
export const OPERATION_MAX: u32 = 5;
export const OPERATION_AND: u32 = 6;
export const OPERATION_OR: u32 = 7;
export const OPERATION_XOR: u32 = 8;
/** Logical operations: 0 is false, all else is true, and the result is 0 or 1. */
export const OPERATION_LOGICAL_AND: u32 = 9;
export const OPERATION_LOGICAL_OR: u32 = 10;
export const OPERATION_LOGICAL_XOR: u32 = 11;
/** The pair whose value MIN would take; of equal values, that of the least index (signed). */
export const OPERATION_MINLOC: u32 = 12;
/** The pair whose value MAX would take; of equal values, that of the least index (signed). */
export const OPERATION_MAXLOC: u32 = 13;
/** Number of operations. */
export const OPERATION_COUNT: u32 = 14;
