// Reads a WebAssembly binary section by section, as far as the loader of programs must: numbers, names, limits.
// Source: WebAssembly Core Specification 2.0, chapter 5 (binary format).

import { PamiError } from "../index.js";

/** Numbers of sections. */
export const SECTION = {
  custom: 0,
  type: 1,
  import: 2,
  function: 3,
  memory: 5,
  global: 6,
  export: 7,
  code: 10,
  data: 11,
} as const;

/** A section of a binary: bytes `start` … `end` of it are the contents, behind the section's number and length. */
export interface Section {
  readonly id: number;
  /** Of a custom section, else empty. */
  readonly name: string;
  /** Where the section's number stands. */
  readonly header: number;
  /** Behind the name, if the section has one. */
  readonly start: number;
  readonly end: number;
}

/** A cursor over the bytes of a binary. */
export class BinaryReader {
  readonly bytes: Uint8Array;
  at: number;

  constructor(bytes: Uint8Array, at = 0) {
    this.bytes = bytes;
    this.at = at;
  }

  byte(): number {
    const value = this.bytes[this.at++];
    if (value === undefined)
      throw new PamiError("PAMIR_PROGRAM", `the program ends within a value, at byte ${this.at - 1}`);
    return value;
  }

  /** An unsigned number of up to 32 bits (LEB128). */
  u32(): number {
    let value = 0;
    for (let shift = 0; shift < 35; shift += 7) {
      const byte = this.byte();
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value >>> 0;
    }
    throw new PamiError("PAMIR_PROGRAM", `the program has a number of more than 5 bytes before byte ${this.at}`);
  }

  /** A signed number of up to 32 bits (LEB128). */
  s32(): number {
    let value = 0;
    for (let shift = 0; shift < 35; shift += 7) {
      const byte = this.byte();
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return shift < 28 && (byte & 0x40) !== 0 ? value | (-1 << (shift + 7)) : value | 0;
    }
    throw new PamiError("PAMIR_PROGRAM", `the program has a number of more than 5 bytes before byte ${this.at}`);
  }

  name(): string {
    const length = this.u32();
    const text = new TextDecoder().decode(this.bytes.subarray(this.at, this.at + length));
    this.at += length;
    return text;
  }
}

/** The bytes of a number as LEB128, unsigned. */
export function leb(value: number): number[] {
  const found: number[] = [];
  let left = value >>> 0;
  while (left >= 0x80) {
    found.push((left & 0x7f) | 0x80);
    left >>>= 7;
  }
  found.push(left);
  return found;
}

/** The sections of a binary. @throws PAMIR_PROGRAM it is no WebAssembly module */
export function sectionsOf(bytes: Uint8Array): Section[] {
  const head = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (bytes.length < 8 || head.getUint32(0) !== 0x0061736d) {
    throw new PamiError(
      "PAMIR_PROGRAM",
      `the program is no WebAssembly: it begins with ${begin(bytes)}, not 00 61 73 6d`,
    );
  }
  if (head.getUint32(4, true) !== 1) {
    throw new PamiError(
      "PAMIR_PROGRAM",
      `the program is WebAssembly of version ${head.getUint32(4, true)}, not a module of version 1`,
    );
  }
  const reader = new BinaryReader(bytes, 8);
  const found: Section[] = [];
  while (reader.at < bytes.length) {
    const header = reader.at;
    const id = reader.byte();
    const length = reader.u32();
    const end = reader.at + length;
    if (end > bytes.length) {
      throw new PamiError(
        "PAMIR_PROGRAM",
        `the program is cut off: section ${id} ends at byte ${end} of ${bytes.length}`,
      );
    }
    const name = id === SECTION.custom ? reader.name() : "";
    found.push({ id, name, header, start: reader.at, end });
    reader.at = end;
  }
  return found;
}

function begin(bytes: Uint8Array): string {
  const shown = Array.from(bytes.subarray(0, 4), (byte) => byte.toString(16).padStart(2, "0"));
  return shown.length === 0 ? "no byte" : shown.join(" ");
}
