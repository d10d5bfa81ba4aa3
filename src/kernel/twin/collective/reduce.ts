// Twin of assembly/collective/reduce.ts; see the comments there. Each loop takes typed arrays of few classes, so that V8
// compiles it for those that a program uses.
import * as L from "../../../../assembly/layout.js";
import type { Memory } from "../../kernel.js";

type Integers = Int8Array | Uint8Array | Int16Array | Uint16Array | Int32Array | Uint32Array;
type Floats = Float32Array | Float64Array;

export function twinReduce({ buffer, bytes, words }: Memory) {
  const integers: (Integers | undefined)[] = [];
  integers[L.TYPE_U8] = bytes;
  integers[L.TYPE_I32] = words;
  let singles: Float32Array;
  let doubles: Float64Array;

  function reduce(operation: number, type: number, out: number, left: number, right: number, count: number): void {
    const shift = ((type < 8 ? L.TYPE_SHIFTS_LOW : L.TYPE_SHIFTS_HIGH) >>> ((type & 7) << 2)) & 15;
    const [o, l, r] = [out >>> 0, left >>> 0, right >>> 0];
    if (operation === L.OPERATION_COPY || operation === L.OPERATION_NOOP) {
      const from = operation === L.OPERATION_COPY ? r : l;
      if (from !== o) bytes.copyWithin(o, from, from + count * 2 ** shift);
      return;
    }
    if (type <= L.TYPE_U32) {
      const view = integersOf(type);
      reduceIntegers(operation, view, o >>> shift, l >>> shift, r >>> shift, count);
    } else if (type <= L.TYPE_U64) {
      const isBitwise = operation >= L.OPERATION_AND && operation <= L.OPERATION_XOR;
      if (isBitwise) reduceIntegers(operation, words, o >>> 2, l >>> 2, r >>> 2, 2 * count);
      else reduceLongs(operation, words, type === L.TYPE_I64, o >>> 2, l >>> 2, r >>> 2, count);
    } else if (type === L.TYPE_F64) reduceFloats(operation, doublesOf(), o >>> 3, l >>> 3, r >>> 3, count);
    else if (type === L.TYPE_F32) reduceFloats(operation, singlesOf(), o >>> 2, l >>> 2, r >>> 2, count);
    else if (type === L.TYPE_C64) {
      if (operation === L.OPERATION_SUM) reduceFloats(operation, singlesOf(), o >>> 2, l >>> 2, r >>> 2, 2 * count);
      else multiplySingles(singlesOf(), o >>> 2, l >>> 2, r >>> 2, count);
    } else if (type === L.TYPE_C128) {
      if (operation === L.OPERATION_SUM) reduceFloats(operation, doublesOf(), o >>> 3, l >>> 3, r >>> 3, 2 * count);
      else multiplyDoubles(doublesOf(), o >>> 3, l >>> 3, r >>> 3, count);
    } else {
      const isMin = operation === L.OPERATION_MINLOC;
      if (type === L.TYPE_I64_I64) locateLongs(isMin, words, o >>> 2, l >>> 2, r >>> 2, count);
      else if (type === L.TYPE_F64_I32) locate(isMin, doublesOf(), words, o >>> 2, l >>> 2, r >>> 2, count, 2);
      else if (type === L.TYPE_F32_I32) locate(isMin, singlesOf(), words, o >>> 2, l >>> 2, r >>> 2, count, 1);
      else if (type === L.TYPE_I32_I32) locate(isMin, words, words, o >>> 2, l >>> 2, r >>> 2, count, 1);
    }
  }

  function integersOf(type: number): Integers {
    const found = integers[type];
    if (found !== undefined) return found;
    const made =
      type === L.TYPE_I8
        ? new Int8Array(buffer)
        : type === L.TYPE_I16
          ? new Int16Array(buffer)
          : type === L.TYPE_U16
            ? new Uint16Array(buffer)
            : new Uint32Array(buffer);
    integers[type] = made;
    return made;
  }

  function singlesOf(): Float32Array {
    singles ??= new Float32Array(buffer);
    return singles;
  }

  function doublesOf(): Float64Array {
    doubles ??= new Float64Array(buffer);
    return doubles;
  }

  return { reduce };
}

/** Places are numbers of elements. What is stored wraps to the size of the element. */
function reduceIntegers(operation: number, view: Integers, o: number, l: number, r: number, count: number): void {
  switch (operation) {
    case L.OPERATION_SUM:
      for (let i = 0; i < count; i++) view[o + i] = (view[l + i] + view[r + i]) | 0;
      break;
    case L.OPERATION_PRODUCT:
      for (let i = 0; i < count; i++) view[o + i] = Math.imul(view[l + i], view[r + i]);
      break;
    case L.OPERATION_MIN:
      for (let i = 0; i < count; i++) view[o + i] = Math.min(view[l + i], view[r + i]);
      break;
    case L.OPERATION_MAX:
      for (let i = 0; i < count; i++) view[o + i] = Math.max(view[l + i], view[r + i]);
      break;
    case L.OPERATION_AND:
      for (let i = 0; i < count; i++) view[o + i] = view[l + i] & view[r + i];
      break;
    case L.OPERATION_OR:
      for (let i = 0; i < count; i++) view[o + i] = view[l + i] | view[r + i];
      break;
    case L.OPERATION_XOR:
      for (let i = 0; i < count; i++) view[o + i] = view[l + i] ^ view[r + i];
      break;
    case L.OPERATION_LOGICAL_AND:
      for (let i = 0; i < count; i++) view[o + i] = view[l + i] !== 0 && view[r + i] !== 0 ? 1 : 0;
      break;
    case L.OPERATION_LOGICAL_OR:
      for (let i = 0; i < count; i++) view[o + i] = (view[l + i] | view[r + i]) !== 0 ? 1 : 0;
      break;
    case L.OPERATION_LOGICAL_XOR:
      for (let i = 0; i < count; i++) view[o + i] = (view[l + i] !== 0) !== (view[r + i] !== 0) ? 1 : 0;
      break;
  }
}

/** Of integers in two words each, without BigInt, which V8 allocates. Places are numbers of words. */
function reduceLongs(
  operation: number,
  words: Int32Array,
  isSigned: boolean,
  o: number,
  l: number,
  r: number,
  count: number,
): void {
  const end = 2 * count;
  switch (operation) {
    case L.OPERATION_SUM:
      for (let i = 0; i < end; i += 2) {
        const low = (words[l + i] >>> 0) + (words[r + i] >>> 0);
        const high = words[l + i + 1] + words[r + i + 1] + (low > 0xffffffff ? 1 : 0);
        words[o + i] = low;
        words[o + i + 1] = high;
      }
      break;
    case L.OPERATION_PRODUCT:
      for (let i = 0; i < end; i += 2) {
        const [a, b] = [words[l + i], words[r + i]];
        const crossed = Math.imul(words[l + i + 1], b) + Math.imul(a, words[r + i + 1]);
        words[o + i] = Math.imul(a, b);
        words[o + i + 1] = crossed + highProduct(a, b);
      }
      break;
    case L.OPERATION_MIN:
    case L.OPERATION_MAX: {
      // With the sign bits turned over, unsigned numbers compare as signed ones.
      const turn = isSigned ? 0 : 0x80000000;
      const isMin = operation === L.OPERATION_MIN;
      for (let i = 0; i < end; i += 2) {
        const from = isLess(words, l + i, r + i, turn) === isMin ? l : r;
        const [low, high] = [words[from + i], words[from + i + 1]];
        words[o + i] = low;
        words[o + i + 1] = high;
      }
      break;
    }
    default:
      for (let i = 0; i < end; i += 2) {
        const a = (words[l + i] | words[l + i + 1]) !== 0;
        const b = (words[r + i] | words[r + i + 1]) !== 0;
        const isTrue =
          operation === L.OPERATION_LOGICAL_AND ? a && b : operation === L.OPERATION_LOGICAL_OR ? a || b : a !== b;
        words[o + i] = isTrue ? 1 : 0;
        words[o + i + 1] = 0;
      }
  }
}

/** Whether the 64-bit integer at one word is less than the other. @param turn what its high word is turned over by */
function isLess(words: Int32Array, a: number, b: number, turn: number): boolean {
  const [high, other] = [words[a + 1] ^ turn, words[b + 1] ^ turn];
  return high === other ? words[a] >>> 0 < words[b] >>> 0 : high < other;
}

/** The upper half of the product of two words without sign. */
function highProduct(a: number, b: number): number {
  const [aLow, aHigh, bLow, bHigh] = [a & 0xffff, a >>> 16, b & 0xffff, b >>> 16];
  // All sums are exact: below 2^53.
  const middle = aHigh * bLow + aLow * bHigh + Math.floor((aLow * bLow) / 65536);
  return aHigh * bHigh + Math.floor(middle / 65536);
}

function reduceFloats(operation: number, view: Floats, o: number, l: number, r: number, count: number): void {
  switch (operation) {
    case L.OPERATION_SUM:
      for (let i = 0; i < count; i++) view[o + i] = view[l + i] + view[r + i];
      break;
    case L.OPERATION_PRODUCT:
      for (let i = 0; i < count; i++) view[o + i] = view[l + i] * view[r + i];
      break;
    case L.OPERATION_MIN:
      for (let i = 0; i < count; i++) view[o + i] = Math.min(view[l + i], view[r + i]);
      break;
    case L.OPERATION_MAX:
      for (let i = 0; i < count; i++) view[o + i] = Math.max(view[l + i], view[r + i]);
      break;
  }
}

function multiplySingles(view: Float32Array, o: number, l: number, r: number, count: number): void {
  const { fround } = Math;
  for (let i = 0; i < 2 * count; i += 2) {
    const [a, b, c, d] = [view[l + i], view[l + i + 1], view[r + i], view[r + i + 1]];
    view[o + i] = fround(a * c) - fround(b * d);
    view[o + i + 1] = fround(a * d) + fround(b * c);
  }
}

function multiplyDoubles(view: Float64Array, o: number, l: number, r: number, count: number): void {
  for (let i = 0; i < 2 * count; i += 2) {
    const [a, b, c, d] = [view[l + i], view[l + i + 1], view[r + i], view[r + i + 1]];
    view[o + i] = a * c - b * d;
    view[o + i + 1] = a * d + b * c;
  }
}

/**
 * Places are numbers of words: those of a value or an index are `wide`. The winner's words are copied, since a float that is
 * loaded and stored may lose the payload of its NaN.
 */
function locate(
  isMin: boolean,
  values: Floats | Int32Array,
  words: Int32Array,
  o: number,
  l: number,
  r: number,
  count: number,
  wide: number,
): void {
  for (let i = 0; i < count; i++, o += 2 * wide, l += 2 * wide, r += 2 * wide) {
    const [a, b] = [values[l / wide], values[r / wide]];
    const isLeft = Object.is(a, b)
      ? words[l + wide] <= words[r + wide]
      : Object.is(isMin ? Math.min(a, b) : Math.max(a, b), a);
    const from = isLeft ? l : r;
    for (let word = 0; word < 2 * wide; word++) words[o + word] = words[from + word];
  }
}

function locateLongs(isMin: boolean, words: Int32Array, o: number, l: number, r: number, count: number): void {
  for (let i = 0; i < 4 * count; i += 4) {
    const isEven = words[l + i] === words[r + i] && words[l + i + 1] === words[r + i + 1];
    const isLeft = isEven ? !isLess(words, r + i + 2, l + i + 2, 0) : isLess(words, l + i, r + i, 0) === isMin;
    const from = isLeft ? l : r;
    for (let word = i; word < i + 4; word++) words[o + word] = words[from + word];
  }
}
