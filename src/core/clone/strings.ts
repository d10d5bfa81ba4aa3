// Long strings: Node's Buffer where there is one, which copies without conversion, else TextEncoder and TextDecoder.
import { LATIN1, UTF16, UTF8 } from "./tags.js";

interface BufferMethods {
  latin1Write?(this: Uint8Array, text: string, at: number): number;
  latin1Slice?(this: Uint8Array, start: number, end: number): string;
  ucs2Write?(this: Uint8Array, text: string, at: number): number;
  ucs2Slice?(this: Uint8Array, start: number, end: number): string;
  utf8Slice?(this: Uint8Array, start: number, end: number): string;
}

const { Buffer } = globalThis as { Buffer?: { prototype: BufferMethods } };
const native: BufferMethods = Buffer?.prototype ?? {};
const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** Characters up to U+00FF alone. irregexp looks at 1 to 2 units in a nanosecond. */
const LATIN1_ONLY = /^[\x00-\xff]*$/;
/** Units of a call of String.fromCharCode(). */
const UNITS = 8192;

function varint(bytes: Uint8Array, at: number, value: number): number {
  while (value > 0x7f) {
    bytes[at++] = (value & 0x7f) | 0x80;
    value >>>= 7;
  }
  bytes[at++] = value;
  return at;
}

/**
 * Writes a string's tag, count and bytes.
 * @param bytes with room for 3 bytes a unit, and 9
 * @returns the offset behind it
 */
export function writeText(text: string, bytes: Uint8Array, at: number): number {
  if (native.latin1Write !== undefined && native.ucs2Write !== undefined) {
    const isLatin1 = LATIN1_ONLY.test(text);
    bytes[at] = isLatin1 ? LATIN1 : UTF16;
    const start = varint(bytes, at + 1, text.length);
    return start + (isLatin1 ? native.latin1Write.call(bytes, text, start) : native.ucs2Write.call(bytes, text, start));
  }
  return (text as { isWellFormed?(): boolean }).isWellFormed?.() === true
    ? writeUtf8(text, bytes, at)
    : writeUnits(text, bytes, at);
}

function writeUtf8(text: string, bytes: Uint8Array, at: number): number {
  // The count stands before the bytes, and is known after them: most strings are ASCII, whose count is their length.
  let start = varint(bytes, at + 1, text.length);
  const { written } = encoder.encodeInto(text, bytes.subarray(start));
  bytes[at] = UTF8;
  const behind = varint(new Uint8Array(9), 0, written);
  if (at + 1 + behind !== start) {
    bytes.copyWithin(at + 1 + behind, start, start + written);
    start = at + 1 + behind;
  }
  varint(bytes, at + 1, written);
  return start + written;
}

function writeUnits(text: string, bytes: Uint8Array, at: number): number {
  bytes[at] = UTF16;
  let end = varint(bytes, at + 1, text.length);
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    bytes[end++] = unit;
    bytes[end++] = unit >> 8;
  }
  return end;
}

/** Ordinary memory for a browser's TextDecoder, which takes no shared one. */
function unshared(bytes: Uint8Array, start: number, end: number): Uint8Array {
  return bytes.buffer instanceof ArrayBuffer ? bytes.subarray(start, end) : bytes.slice(start, end);
}

export function readUtf8(bytes: Uint8Array, start: number, end: number): string {
  return native.utf8Slice?.call(bytes, start, end) ?? decoder.decode(unshared(bytes, start, end));
}

export function readLatin1(bytes: Uint8Array, start: number, end: number): string {
  if (native.latin1Slice !== undefined) return native.latin1Slice.call(bytes, start, end);
  return fromUnits(bytes, start, end);
}

export function readUtf16(bytes: Uint8Array, start: number, end: number): string {
  if (native.ucs2Slice !== undefined) return native.ucs2Slice.call(bytes, start, end);
  const units = new Uint16Array((end - start) / 2);
  for (let i = 0; i < units.length; i++) {
    units[i] = (bytes[start + 2 * i] as number) | ((bytes[start + 2 * i + 1] as number) << 8);
  }
  return fromUnits(units, 0, units.length);
}

function fromUnits(units: Uint8Array | Uint16Array, start: number, end: number): string {
  let text = "";
  for (let at = start; at < end; at += UNITS) {
    text += String.fromCharCode.apply(null, units.subarray(at, Math.min(end, at + UNITS)) as unknown as number[]);
  }
  return text;
}
