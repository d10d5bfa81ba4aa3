// Reductions of two vectors: out[i] = left[i] op right[i], sixteen bytes at a time. assembly/layout/reduction.ts has the
// types, the operations and what they mean. The twin computes the same bits, payloads of NaN excepted.
import {
  OPERATION_AND,
  OPERATION_COPY,
  OPERATION_COUNT,
  OPERATION_LOGICAL_AND,
  OPERATION_LOGICAL_OR,
  OPERATION_LOGICAL_XOR,
  OPERATION_MAX,
  OPERATION_MIN,
  OPERATION_MINLOC,
  OPERATION_OR,
  OPERATION_PRODUCT,
  OPERATION_SUM,
  OPERATION_XOR,
  TYPE_C64,
  TYPE_C128,
  TYPE_F32,
  TYPE_F32_I32,
  TYPE_F64,
  TYPE_F64_I32,
  TYPE_I8,
  TYPE_I16,
  TYPE_I32,
  TYPE_I32_I32,
  TYPE_I64,
  TYPE_SHIFTS_HIGH,
  TYPE_SHIFTS_LOW,
  TYPE_U8,
  TYPE_U16,
  TYPE_U32,
} from "../layout";

/** The product of complex numbers, among the operations that both() knows. */
const COMPLEX_PRODUCT: u32 = OPERATION_COUNT;

/**
 * Reduces `count` elements. All three vectors are aligned to the element's `align`. `out` may be `left`, or `right`, or
 * neither; otherwise they do not overlap. The caller has checked that the type has the operation.
 */
export function reduce(operation: u32, type: u32, out: usize, left: usize, right: usize, count: u32): void {
  const shifts = type < 8 ? TYPE_SHIFTS_LOW : TYPE_SHIFTS_HIGH;
  const bytes = (<usize>count) << ((shifts >>> ((type & 7) << 2)) & 15);
  if (operation == OPERATION_SUM) sum(type, out, left, right, bytes);
  else if (operation == OPERATION_MIN) min(type, out, left, right, bytes);
  else if (operation == OPERATION_MAX) max(type, out, left, right, bytes);
  else if (operation == OPERATION_PRODUCT) product(type, out, left, right, bytes);
  else if (operation >= OPERATION_MINLOC) locate(operation, type, out, left, right, bytes);
  else if (operation == OPERATION_LOGICAL_AND) logicalAnd(type, out, left, right, bytes);
  else if (operation == OPERATION_LOGICAL_OR) logicalOr(type, out, left, right, bytes);
  else if (operation == OPERATION_LOGICAL_XOR) logicalXor(type, out, left, right, bytes);
  else if (operation == OPERATION_AND) Inlined.each<u8>(OPERATION_AND, out, left, right, bytes);
  else if (operation == OPERATION_OR) Inlined.each<u8>(OPERATION_OR, out, left, right, bytes);
  else if (operation == OPERATION_XOR) Inlined.each<u8>(OPERATION_XOR, out, left, right, bytes);
  else {
    const from = operation == OPERATION_COPY ? right : left;
    if (from != out) memory.copy(out, from, bytes);
  }
}

function sum(type: u32, out: usize, left: usize, right: usize, bytes: usize): void {
  if (type == TYPE_F64 || type == TYPE_C128) Inlined.each<f64>(OPERATION_SUM, out, left, right, bytes);
  else if (type == TYPE_F32 || type == TYPE_C64) Inlined.each<f32>(OPERATION_SUM, out, left, right, bytes);
  else if (type <= TYPE_U8) Inlined.each<u8>(OPERATION_SUM, out, left, right, bytes);
  else if (type <= TYPE_U16) Inlined.each<u16>(OPERATION_SUM, out, left, right, bytes);
  else if (type <= TYPE_U32) Inlined.each<u32>(OPERATION_SUM, out, left, right, bytes);
  else Inlined.each<u64>(OPERATION_SUM, out, left, right, bytes);
}

function product(type: u32, out: usize, left: usize, right: usize, bytes: usize): void {
  if (type == TYPE_F64) Inlined.each<f64>(OPERATION_PRODUCT, out, left, right, bytes);
  else if (type == TYPE_F32) Inlined.each<f32>(OPERATION_PRODUCT, out, left, right, bytes);
  else if (type == TYPE_C128) Inlined.each<f64>(COMPLEX_PRODUCT, out, left, right, bytes);
  else if (type == TYPE_C64) Inlined.each<f32>(COMPLEX_PRODUCT, out, left, right, bytes);
  else if (type <= TYPE_U8) Inlined.each<u8>(OPERATION_PRODUCT, out, left, right, bytes);
  else if (type <= TYPE_U16) Inlined.each<u16>(OPERATION_PRODUCT, out, left, right, bytes);
  else if (type <= TYPE_U32) Inlined.each<u32>(OPERATION_PRODUCT, out, left, right, bytes);
  else Inlined.each<u64>(OPERATION_PRODUCT, out, left, right, bytes);
}

function min(type: u32, out: usize, left: usize, right: usize, bytes: usize): void {
  if (type == TYPE_F64) Inlined.each<f64>(OPERATION_MIN, out, left, right, bytes);
  else if (type == TYPE_F32) Inlined.each<f32>(OPERATION_MIN, out, left, right, bytes);
  else if (type == TYPE_I8) Inlined.each<i8>(OPERATION_MIN, out, left, right, bytes);
  else if (type == TYPE_U8) Inlined.each<u8>(OPERATION_MIN, out, left, right, bytes);
  else if (type == TYPE_I16) Inlined.each<i16>(OPERATION_MIN, out, left, right, bytes);
  else if (type == TYPE_U16) Inlined.each<u16>(OPERATION_MIN, out, left, right, bytes);
  else if (type == TYPE_I32) Inlined.each<i32>(OPERATION_MIN, out, left, right, bytes);
  else if (type == TYPE_U32) Inlined.each<u32>(OPERATION_MIN, out, left, right, bytes);
  else if (type == TYPE_I64) Inlined.each<i64>(OPERATION_MIN, out, left, right, bytes);
  else Inlined.each<u64>(OPERATION_MIN, out, left, right, bytes);
}

function max(type: u32, out: usize, left: usize, right: usize, bytes: usize): void {
  if (type == TYPE_F64) Inlined.each<f64>(OPERATION_MAX, out, left, right, bytes);
  else if (type == TYPE_F32) Inlined.each<f32>(OPERATION_MAX, out, left, right, bytes);
  else if (type == TYPE_I8) Inlined.each<i8>(OPERATION_MAX, out, left, right, bytes);
  else if (type == TYPE_U8) Inlined.each<u8>(OPERATION_MAX, out, left, right, bytes);
  else if (type == TYPE_I16) Inlined.each<i16>(OPERATION_MAX, out, left, right, bytes);
  else if (type == TYPE_U16) Inlined.each<u16>(OPERATION_MAX, out, left, right, bytes);
  else if (type == TYPE_I32) Inlined.each<i32>(OPERATION_MAX, out, left, right, bytes);
  else if (type == TYPE_U32) Inlined.each<u32>(OPERATION_MAX, out, left, right, bytes);
  else if (type == TYPE_I64) Inlined.each<i64>(OPERATION_MAX, out, left, right, bytes);
  else Inlined.each<u64>(OPERATION_MAX, out, left, right, bytes);
}

function logicalAnd(type: u32, out: usize, left: usize, right: usize, bytes: usize): void {
  if (type <= TYPE_U8) Inlined.each<u8>(OPERATION_LOGICAL_AND, out, left, right, bytes);
  else if (type <= TYPE_U16) Inlined.each<u16>(OPERATION_LOGICAL_AND, out, left, right, bytes);
  else if (type <= TYPE_U32) Inlined.each<u32>(OPERATION_LOGICAL_AND, out, left, right, bytes);
  else Inlined.each<u64>(OPERATION_LOGICAL_AND, out, left, right, bytes);
}

function logicalOr(type: u32, out: usize, left: usize, right: usize, bytes: usize): void {
  if (type <= TYPE_U8) Inlined.each<u8>(OPERATION_LOGICAL_OR, out, left, right, bytes);
  else if (type <= TYPE_U16) Inlined.each<u16>(OPERATION_LOGICAL_OR, out, left, right, bytes);
  else if (type <= TYPE_U32) Inlined.each<u32>(OPERATION_LOGICAL_OR, out, left, right, bytes);
  else Inlined.each<u64>(OPERATION_LOGICAL_OR, out, left, right, bytes);
}

function logicalXor(type: u32, out: usize, left: usize, right: usize, bytes: usize): void {
  if (type <= TYPE_U8) Inlined.each<u8>(OPERATION_LOGICAL_XOR, out, left, right, bytes);
  else if (type <= TYPE_U16) Inlined.each<u16>(OPERATION_LOGICAL_XOR, out, left, right, bytes);
  else if (type <= TYPE_U32) Inlined.each<u32>(OPERATION_LOGICAL_XOR, out, left, right, bytes);
  else Inlined.each<u64>(OPERATION_LOGICAL_XOR, out, left, right, bytes);
}

function locate(operation: u32, type: u32, out: usize, left: usize, right: usize, bytes: usize): void {
  // The order of keys turns over where all bits do.
  const flip = operation == OPERATION_MINLOC ? 0 : -1;
  if (type == TYPE_F64_I32) Inlined.eachPair<f64, i32>(flip, out, left, right, bytes);
  else if (type == TYPE_F32_I32) Inlined.eachPair<f32, i32>(flip, out, left, right, bytes);
  else if (type == TYPE_I32_I32) Inlined.eachPair<i32, i32>(flip, out, left, right, bytes);
  else Inlined.eachPair<i64, i64>(flip, out, left, right, bytes);
}

/** What is compiled once for each type and operation. Decorators of methods, unlike those of functions, are JavaScript too. */
abstract class Inlined {
  /** One loop for one operation over lanes of one type: both() has one branch left once the operation is known. */
  @inline
  static each<T>(operation: u32, out: usize, left: usize, right: usize, bytes: usize): void {
    let at: usize = 0;
    for (const most = bytes & ~63; at < most; at += 64) {
      const a = Inlined.both<T>(operation, v128.load(left + at), v128.load(right + at));
      const b = Inlined.both<T>(operation, v128.load(left + at, 16), v128.load(right + at, 16));
      const c = Inlined.both<T>(operation, v128.load(left + at, 32), v128.load(right + at, 32));
      const d = Inlined.both<T>(operation, v128.load(left + at, 48), v128.load(right + at, 48));
      v128.store(out + at, a);
      v128.store(out + at, b, 16);
      v128.store(out + at, c, 32);
      v128.store(out + at, d, 48);
    }
    for (const most = bytes & ~15; at < most; at += 16) {
      v128.store(out + at, Inlined.both<T>(operation, v128.load(left + at), v128.load(right + at)));
    }
    const rest = bytes - at;
    if (rest != 0)
      storePart(out + at, rest, Inlined.both<T>(operation, loadPart(left + at, rest), loadPart(right + at, rest)));
  }

  /** One vector's result. */
  @inline
  static both<T>(operation: u32, a: v128, b: v128): v128 {
    if (operation == OPERATION_AND) return v128.and(a, b);
    if (operation == OPERATION_OR) return v128.or(a, b);
    if (operation == OPERATION_XOR) return v128.xor(a, b);
    if (operation == OPERATION_SUM) return v128.add<T>(a, b);
    if (operation == OPERATION_MIN || operation == OPERATION_MAX) {
      if (sizeof<T>() < 8 || isFloat<T>()) {
        return operation == OPERATION_MIN ? v128.min<T>(a, b) : v128.max<T>(a, b);
      }
      // With the sign bits turned over, unsigned numbers compare as signed ones.
      const turn = isSigned<T>() ? i64x2.splat(0) : i64x2.splat(i64.MIN_VALUE);
      const isGreater = i64x2.gt_s(v128.xor(a, turn), v128.xor(b, turn));
      return operation == OPERATION_MIN ? v128.bitselect(b, a, isGreater) : v128.bitselect(a, b, isGreater);
    }
    if (operation == OPERATION_PRODUCT) {
      if (sizeof<T>() > 1) return v128.mul<T>(a, b);
      // There is no product of bytes: products of 16 bits, and the low byte of each.
      const low = v128.and(i16x8.extmul_low_i8x16_u(a, b), i16x8.splat(255));
      const high = v128.and(i16x8.extmul_high_i8x16_u(a, b), i16x8.splat(255));
      return i8x16.narrow_i16x8_u(low, high);
    }
    if (operation == COMPLEX_PRODUCT) {
      // (ar, ai) × (br, bi): (ar × br, ar × bi) + (-(ai × bi), ai × br). To add the opposite is to subtract.
      if (sizeof<T>() == 4) {
        const crossed = f32x4.mul(v128.shuffle<f32>(a, a, 1, 1, 3, 3), v128.shuffle<f32>(b, b, 1, 0, 3, 2));
        const straight = f32x4.mul(v128.shuffle<f32>(a, a, 0, 0, 2, 2), b);
        return f32x4.add(straight, v128.xor(crossed, i64x2.splat(0x80000000)));
      }
      const crossed = f64x2.mul(v128.shuffle<f64>(a, a, 1, 1), v128.shuffle<f64>(b, b, 1, 0));
      const straight = f64x2.mul(v128.shuffle<f64>(a, a, 0, 0), b);
      return f64x2.add(straight, v128.xor(crossed, i64x2(i64.MIN_VALUE, 0)));
    }
    const zero = i64x2.splat(0);
    const one = v128.splat<T>(1 as T);
    if (operation == OPERATION_LOGICAL_AND) return v128.and(v128.and(v128.ne<T>(a, zero), v128.ne<T>(b, zero)), one);
    if (operation == OPERATION_LOGICAL_OR) return v128.and(v128.ne<T>(v128.or(a, b), zero), one);
    return v128.and(v128.xor(v128.ne<T>(a, zero), v128.ne<T>(b, zero)), one);
  }

  /** One loop for pairs of a value and an index: the one whose key is less goes to `out`, of equal keys that of the least index. */
  @inline
  static eachPair<V, I>(flip: i32, out: usize, left: usize, right: usize, bytes: usize): void {
    for (let at: usize = 0; at < bytes; at += 2 * sizeof<V>()) {
      const a = Inlined.keyOf<V>(load<V>(left + at), flip);
      const b = Inlined.keyOf<V>(load<V>(right + at), flip);
      const isLeft = a < b || (a == b && load<I>(left + at, sizeof<V>()) <= load<I>(right + at, sizeof<V>()));
      const from = (isLeft ? left : right) + at;
      if (sizeof<V>() == 8) v128.store(out + at, v128.load(from));
      else store<u64>(out + at, load<u64>(from));
    }
  }

  /** A number whose order, turned over by a flip of -1, is that of the values. NaN has the least of all. */
  @inline
  static keyOf<V>(value: V, flip: i32): i64 {
    if (!isFloat<V>()) return <i64>value ^ <i64>flip;
    if (isNaN<V>(value)) return i64.MIN_VALUE;
    // The bits of floats are ordered as their values are, those of negative ones the other way round.
    const bits = reinterpret<i64>(<f64>value);
    return bits ^ ((bits >> 63) & i64.MAX_VALUE) ^ <i64>flip;
  }
}

/** Loads 1 to 15 bytes; the rest of the vector is 0. */
function loadPart(from: usize, bytes: usize): v128 {
  if (bytes == 8) return v128.load64_zero(from);
  let word: u64 = 0;
  let end = from + bytes;
  if ((bytes & 1) != 0) word = load<u8>(--end);
  if ((bytes & 2) != 0) {
    end -= 2;
    word = (word << 16) | load<u16>(end);
  }
  if ((bytes & 4) != 0) {
    end -= 4;
    word = (word << 32) | load<u32>(end);
  }
  return bytes < 8 ? i64x2(word, 0) : i64x2(load<u64>(from), word);
}

/** Stores the first 1 to 15 bytes of a vector. */
function storePart(to: usize, bytes: usize, part: v128): void {
  if (bytes == 8) {
    v128.store64_lane(to, part, 0);
    return;
  }
  let word: u64 = i64x2.extract_lane(part, 0);
  if ((bytes & 8) != 0) {
    store<u64>(to, word);
    to += 8;
    word = i64x2.extract_lane(part, 1);
  }
  if ((bytes & 4) != 0) {
    store<u32>(to, <u32>word);
    to += 4;
    word >>>= 32;
  }
  if ((bytes & 2) != 0) {
    store<u16>(to, <u16>word);
    to += 2;
    word >>>= 16;
  }
  if ((bytes & 1) != 0) store<u8>(to, <u8>word);
}
