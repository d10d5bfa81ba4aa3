// Long strings as bytes, by Node's Buffer, which copies them without a conversion, or by what browsers have.
import { LATIN1, UTF8, UTF16, unitsStart } from "./tags.js";

/** How strings are written and read. All implementations read what each of them writes. */
export interface Strings {
  /**
   * Writes a string's tag, count and bytes.
   * @param bytes ordinary memory with room for 3 bytes a unit, and 9 more
   * @returns the offset behind it
   */
  write(text: string, bytes: Uint8Array, at: number): number;
  /** The bytes of the three readers may lie in shared memory. */
  readLatin1(bytes: Uint8Array, start: number, end: number): string;
  readUtf16(bytes: Uint8Array, start: number, end: number): string;
  readUtf8(bytes: Uint8Array, start: number, end: number): string;
}

interface BufferClass {
  readonly prototype: BufferMethods;
}

interface BufferMethods {
  latin1Write?(this: Uint8Array, text: string, at: number): number;
  latin1Slice?(this: Uint8Array, start: number, end: number): string;
  ucs2Write?(this: Uint8Array, text: string, at: number): number;
  ucs2Slice?(this: Uint8Array, start: number, end: number): string;
  utf8Slice?(this: Uint8Array, start: number, end: number): string;
}

/**
 * A character above U+00FF. V8 sees at once that a string of one byte a character has none, where /^[\0-\xff]*$/ looks at each
 * (1 MB: 1 us, not 272).
 */
const WIDE = /[^\0-\xff]/;
/** Units of a call of String.fromCharCode(). */
const UNITS = 8192;

function writeCount(bytes: Uint8Array, at: number, value: number): number {
  while (value > 0x7f) {
    bytes[at++] = (value & 0x7f) | 0x80;
    value >>>= 7;
  }
  bytes[at++] = value;
  return at;
}

function bytesOfCount(value: number): number {
  return Math.max(1, Math.ceil((32 - Math.clz32(value)) / 7));
}

/** By the methods of Node's Buffer; undefined where they are missing. */
export function stringsByBuffer(): Strings | undefined {
  const { Buffer } = globalThis as { Buffer?: BufferClass };
  const { latin1Write, latin1Slice, ucs2Write, ucs2Slice, utf8Slice } = Buffer?.prototype ?? {};
  if (!latin1Write || !latin1Slice || !ucs2Write || !ucs2Slice || !utf8Slice) return undefined;
  return {
    write(text, bytes, at) {
      const isWide = WIDE.test(text);
      bytes[at] = isWide ? UTF16 : LATIN1;
      const start = writeCount(bytes, at + 1, text.length);
      if (!isWide) return start + latin1Write.call(bytes, text, start);
      const units = unitsStart(start);
      bytes[start] = 0; // It is overwritten, or lies before the units.
      return units + ucs2Write.call(bytes, text, units);
    },
    readLatin1: (bytes, start, end) => latin1Slice.call(bytes, start, end),
    readUtf16: (bytes, start, end) => ucs2Slice.call(bytes, start, end),
    readUtf8: (bytes, start, end) => utf8Slice.call(bytes, start, end),
  };
}

/** By TextEncoder and TextDecoder, which every host has. */
export function stringsByText(): Strings {
  const encoder = new TextEncoder();
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  return {
    write(text, bytes, at) {
      return isWellFormed(text) ? writeUtf8(encoder, text, bytes, at) : writeUnits(text, bytes, at);
    },
    readLatin1: fromUnits,
    readUtf16(bytes, start, end) {
      const units = new Uint16Array((end - start) / 2);
      for (let i = 0; i < units.length; i++) {
        units[i] = (bytes[start + 2 * i] as number) | ((bytes[start + 2 * i + 1] as number) << 8);
      }
      return fromUnits(units, 0, units.length);
    },
    // A browser's TextDecoder takes no shared memory.
    readUtf8: (bytes, start, end) => decoder.decode(bytes.slice(start, end)),
  };
}

/** Whether UTF-8 has the string; false also where the host can't tell. */
function isWellFormed(text: string): boolean {
  return (text as { isWellFormed?(): boolean }).isWellFormed?.() ?? false;
}

function writeUtf8(encoder: TextEncoder, text: string, bytes: Uint8Array, at: number): number {
  // The count stands before the bytes, and is known after them. Mostly it is that of the units, or takes as many bytes.
  const guess = at + 1 + bytesOfCount(text.length);
  const { written } = encoder.encodeInto(text, bytes.subarray(guess));
  const start = at + 1 + bytesOfCount(written);
  if (start !== guess) bytes.copyWithin(start, guess, guess + written);
  bytes[at] = UTF8;
  writeCount(bytes, at + 1, written);
  return start + written;
}

function writeUnits(text: string, bytes: Uint8Array, at: number): number {
  bytes[at] = UTF16;
  const start = writeCount(bytes, at + 1, text.length);
  let end = unitsStart(start);
  bytes[start] = 0; // It is overwritten, or lies before the units.
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    bytes[end++] = unit;
    bytes[end++] = unit >> 8;
  }
  return end;
}

function fromUnits(units: Uint8Array | Uint16Array, start: number, end: number): string {
  let text = "";
  for (let at = start; at < end; at += UNITS) {
    text += String.fromCharCode.apply(null, units.subarray(at, Math.min(end, at + UNITS)) as unknown as number[]);
  }
  return text;
}
