// The encoding of codecs.clone(): a value is a tag byte, and what the tag says. Integers behind a tag are varints: seven bits
// a byte, lowest first, bit 7 set in each byte but the last. Words are little-endian. An object gets the next number, from
// 0, where it begins; REF names it by that. A shape is a list of keys, numbered in the same way.
//
//   0x80 … 0xff   an integer from 0 to 127: the lower seven bits
//   0x40 … 0x7f   a string of 0 to 63 characters up to U+00FF: a byte each
//   0x00 … 0x1d   see below

export const UNDEFINED = 0x00;
export const NULL = 0x01;
export const TRUE = 0x02;
export const FALSE = 0x03;
/** An element that an array lacks. */
export const HOLE = 0x04;
/** i16. */
export const INT16 = 0x05;
/** i32. */
export const INT32 = 0x06;
/** f64, also -0 and NaN. */
export const FLOAT64 = 0x07;
/** Sign byte (1: negative), count of bytes, bytes of the absolute value. */
export const BIGINT = 0x08;
/** Count, bytes: a string of characters up to U+00FF. */
export const LATIN1 = 0x09;
/** Count of units, units of two bytes from unitsStart() on: any string, lone surrogates too. */
export const UTF16 = 0x0a;
/** Count of bytes, bytes: a well-formed string. */
export const UTF8 = 0x0b;
/** Count of keys, keys, values: an object, and a shape. */
export const OBJECT = 0x0c;
/** Number of a shape, values. */
export const SHAPED = 0x0d;
/** Length, elements. */
export const ARRAY = 0x0e;
/** Length, count, that many of index and element. */
export const SPARSE = 0x0f;
/** An array, count, that many of key and value. The array's number is that of the ARRAY or SPARSE. */
export const NAMED = 0x10;
/** Count, that many of key and value. */
export const MAP = 0x11;
/** Count, values. */
export const SET = 0x12;
/** f64: milliseconds. */
export const DATE = 0x13;
/** Source, flags. */
export const REGEXP = 0x14;
/** Index in ERRORS, count, that many of key and value: `message`, `stack`, `cause`, `errors`, own fields. */
export const ERROR = 0x15;
/** Name, message. */
export const EXCEPTION = 0x16;
/** Bytes: see below. */
export const BUFFER = 0x17;
/** Greatest count, bytes: an ArrayBuffer that can be resized. */
export const RESIZABLE = 0x18;
/** Index in VIEWS, bytes: a view of an ArrayBuffer of its own, which has the next number. */
export const VIEW = 0x19;
/** Index in VIEWS, byte offset, count of elements + 1 or 0 for as many as there are, the ArrayBuffer. */
export const VIEW_OF = 0x1a;
/** The value of a Number, String, Boolean or BigInt that is an object. */
export const BOXED = 0x1b;
/** Number of an object. */
export const REF = 0x1c;
/** A number that stands for what is not copied: see Handles. */
export const HANDLE = 0x1d;

export const SHORT_STRING = 0x40;
export const SHORT_STRING_MAX = 0x3f;
export const SMALL_INTEGER = 0x80;
export const SMALL_INTEGER_MAX = 0x7f;

/** Constructors of errors that structured clone keeps; others become Error. */
export const ERRORS = [
  "Error",
  "EvalError",
  "RangeError",
  "ReferenceError",
  "SyntaxError",
  "TypeError",
  "URIError",
  "AggregateError",
] as const;

/** Constructors of views. */
export const VIEWS = [
  "Uint8Array",
  "Int8Array",
  "Uint8ClampedArray",
  "Int16Array",
  "Uint16Array",
  "Int32Array",
  "Uint32Array",
  "Float32Array",
  "Float64Array",
  "BigInt64Array",
  "BigUint64Array",
  "DataView",
  "Float16Array",
] as const;

// The bytes of an ArrayBuffer: twice their count, and they themselves, from rawStart() on; or twice the count plus 1: they
// are the body, which travels apart, without a copy into the encoding. If no body comes, it stands behind the value, from
// rawStart() on: the writer knows the size of the rest too late, and asks no getter of the value twice.

/** Bytes of an ArrayBuffer from which they may be the body. As many go in a buffer of the heap. */
export const BODY_BYTES_MIN: number = 16_384;
/** Bytes of an ArrayBuffer from which they begin at a multiple of 8 of the encoding. */
const ALIGNED = 64;

/**
 * Where the bytes of an ArrayBuffer begin, behind their count. Engines copy from shared memory byte by byte if it is not
 * aligned as the target: 256 KiB take 250 us, not 12 (V8 of Node 20).
 */
export const rawStart = (at: number, count: number): number => (count < ALIGNED ? at : Math.ceil(at / 8) * 8);

/** Where the units of a string begin, behind their count. Node writes units at an odd offset twice (500,000: 75 us, not 25). */
export const unitsStart = (at: number): number => at + (at & 1);
