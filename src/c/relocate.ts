// Moves a statically linked program to another address, so that its data, heap and stack lie in a region of the job's memory.
// Source: "WebAssembly Object File Linking", tool-conventions: the sections "linking" and "reloc.*" (wasm-ld --emit-relocs).

import { PamiError } from "../index.js";
import { BinaryReader, leb, SECTION, type Section, sectionsOf } from "./binary.js";
import { type ImportedMemory, joined, type ProgramShape } from "./shape.js";

const PAGE = 65_536;
const I32_CONST = 0x41;
const I32 = 0x7f;
const I32_MUTABLE = [I32, 1] as const;

/**
 * Kinds of relocations that hold an address of the memory, by their numbers. Code by -fPIC has `relative` ones: it adds the
 * variable __memory_base to them, which the linker sets to 0 in a program without dynamic libraries.
 */
const MEMORY_ADDRESS = { leb: 3, sleb: 4, word: 5, relative: 11 } as const;
/** The kind that names a global variable. If its symbol is data, code by -fPIC reads the address of the data there. */
const GLOBAL_INDEX = 7;
/** Kinds of relocations with an addend: addresses, and offsets in functions and sections. */
const WITH_ADDEND: ReadonlySet<number> = new Set([3, 4, 5, 8, 9, 11, 14, 15, 16, 17, 21, 22, 23, 25]);
/** Kinds that a program for 32-bit addresses without threads and dynamic libraries can't have. */
const UNKNOWN: ReadonlySet<number> = new Set([14, 15, 16, 17, 21, 23, 25]);

const SYMBOL_TABLE = 8;
const KIND_DATA = 1;
const KIND_SECTION = 3;
const IS_UNDEFINED = 0x10;
const HAS_OWN_NAME = 0x40;

/**
 * Moves a program: all addresses in its code and data grow by `base`, and its memory is a shared one. Table, functions and types
 * stay. Addresses of symbols that nothing defines stay 0.
 * @param base a multiple of 16 @param shape that of the binary, without a `whyFixed` @returns a copy of the binary, without what debuggers and linkers read but names
 * @throws PAMIR_PROGRAM the program has no relocations, or some of a kind that can't be moved
 */
export function relocate(
  program: Uint8Array,
  base: number,
  { imported, stack }: ProgramShape,
): Uint8Array<ArrayBuffer> {
  const bytes = program.slice();
  const sections = sectionsOf(bytes);
  const symbols = dataSymbols(bytes, sections);
  const addresses = new Set<number>();
  for (const section of sections)
    if (section.name.startsWith("reloc."))
      for (const global of patch(bytes, section, { sections, symbols, base })) addresses.add(global);
  const parts: (Uint8Array | number[])[] = [bytes.subarray(0, 8)];
  for (const section of sections) {
    if (section.id === SECTION.import && imported !== undefined) parts.push(withSharedMemory(bytes, section, imported));
    else if (section.id === SECTION.global)
      parts.push(withMovedGlobals(bytes, section, { base, first: stack?.global ?? 0, addresses }));
    else if (section.id === SECTION.data) parts.push(withMovedSegments(bytes, section, base));
    else if (section.id !== SECTION.custom || section.name === "name")
      parts.push(bytes.subarray(section.header, section.end));
  }
  return joined(parts);
}

/** Numbers of the symbols for data; `absent` are those that nothing defines: weak ones, whose address is 0. */
interface DataSymbols {
  readonly data: Set<number>;
  readonly absent: Set<number>;
}

interface Move {
  readonly sections: readonly Section[];
  readonly symbols: DataSymbols;
  readonly base: number;
}

/** Patches what one relocation section lists. @returns the global variables that hold addresses of data */
function patch(bytes: Uint8Array, section: Section, { sections, symbols, base }: Move): number[] {
  const reader = new BinaryReader(bytes, section.start);
  const target = sections[reader.u32()];
  const globals: number[] = [];
  // Custom sections hold debug information, which is left out.
  if (target === undefined || target.id === SECTION.custom) return globals;
  for (let left = reader.u32(); left > 0; left--) {
    const kind = reader.byte();
    const at = target.start + reader.u32();
    const index = reader.u32();
    if (WITH_ADDEND.has(kind)) reader.s32();
    if (UNKNOWN.has(kind)) {
      throw new PamiError(
        "PAMIR_PROGRAM",
        `the program has a relocation of kind ${kind}, which can't be moved: link it for 32-bit addresses, without threads and dynamic libraries`,
      );
    }
    if (symbols.absent.has(index)) continue;
    if (kind === GLOBAL_INDEX && symbols.data.has(index)) globals.push(new BinaryReader(bytes, at).u32());
    else if (kind === MEMORY_ADDRESS.leb) writeLeb(bytes, at, base, false);
    else if (kind === MEMORY_ADDRESS.sleb || kind === MEMORY_ADDRESS.relative) writeLeb(bytes, at, base, true);
    else if (kind === MEMORY_ADDRESS.word) {
      const view = new DataView(bytes.buffer, bytes.byteOffset);
      view.setUint32(at, view.getUint32(at, true) + base, true);
    }
  }
  return globals;
}

/** Adds to a number that the linker has padded to 5 bytes. */
function writeLeb(bytes: Uint8Array, at: number, base: number, isSigned: boolean): void {
  const reader = new BinaryReader(bytes, at);
  const moved = ((isSigned ? reader.s32() : reader.u32()) + base) | 0;
  if (reader.at !== at + 5)
    throw new PamiError(
      "PAMIR_PROGRAM",
      `the address at byte ${at} of the program has ${reader.at - at} bytes, not 5: was it changed after it was linked?`,
    );
  for (let digit = 0; digit < 4; digit++) bytes[at + digit] = ((moved >>> (7 * digit)) & 0x7f) | 0x80;
  bytes[at + 4] = isSigned ? (moved >> 28) & 0x7f : (moved >>> 28) & 0x0f;
}

function dataSymbols(bytes: Uint8Array, sections: readonly Section[]): DataSymbols {
  const found = { data: new Set<number>(), absent: new Set<number>() };
  const linking = sections.find(({ name }) => name === "linking");
  if (linking === undefined)
    throw new PamiError("PAMIR_PROGRAM", "the program can't be moved: it was linked without --emit-relocs");
  const reader = new BinaryReader(bytes, linking.start);
  reader.u32(); // version
  while (reader.at < linking.end) {
    const kind = reader.byte();
    const length = reader.u32();
    const next = reader.at + length;
    if (kind === SYMBOL_TABLE) readSymbols(reader, found);
    reader.at = next;
  }
  return found;
}

function readSymbols(reader: BinaryReader, found: DataSymbols): void {
  const symbols = reader.u32();
  for (let symbol = 0; symbol < symbols; symbol++) {
    const kind = reader.byte();
    const flags = reader.u32();
    const isUndefined = (flags & IS_UNDEFINED) !== 0;
    if (kind === KIND_DATA) {
      reader.name();
      found.data.add(symbol);
      if (isUndefined) found.absent.add(symbol);
      else for (let field = 0; field < 3; field++) reader.u32();
    } else if (kind === KIND_SECTION) reader.u32();
    else {
      reader.u32();
      if (!isUndefined || (flags & HAS_OWN_NAME) !== 0) reader.name();
    }
  }
}

/** The import section, with a memory that is shared and may have any length. */
function withSharedMemory(bytes: Uint8Array, section: Section, memory: ImportedMemory): number[] {
  const limits = [3, ...leb(0), ...leb(PAGE)];
  return sectionBytes(section, [
    ...bytes.subarray(section.start, memory.at),
    ...limits,
    ...bytes.subarray(memory.end, section.end),
  ]);
}

/** What of the global section moves: the first of it, and those of `addresses`; `first` is the number of the first. */
interface MovedGlobals {
  readonly base: number;
  readonly first: number;
  readonly addresses: ReadonlySet<number>;
}

/** The global section, with the stack's pointer moved, which the linker makes the first, and with the addresses of data. */
function withMovedGlobals(bytes: Uint8Array, section: Section, { base, first, addresses }: MovedGlobals): number[] {
  const reader = new BinaryReader(bytes, section.start);
  reader.u32();
  const isPointer = I32_MUTABLE.every((byte, index) => bytes[reader.at + index] === byte);
  if (!isPointer || bytes[reader.at + I32_MUTABLE.length] !== I32_CONST) {
    throw new PamiError(
      "PAMIR_PROGRAM",
      "the program can't be moved: its first global variable is not the stack's pointer",
    );
  }
  const parts: number[] = [];
  let copied = section.start;
  const last = Math.max(first, ...addresses);
  for (let global = first; global <= last; global++) {
    const [type, , kind] = [reader.byte(), reader.byte(), reader.byte()];
    if (type !== I32 || kind !== I32_CONST)
      throw new PamiError("PAMIR_PROGRAM", `the program can't be moved: its global variable ${global} is no constant`);
    const at = reader.at;
    const value = reader.s32();
    // 0 is the address of what nothing defines, and that of __memory_base.
    if (global === first || (addresses.has(global) && value !== 0)) {
      parts.push(...bytes.subarray(copied, at), ...signedLeb(value + base));
      copied = reader.at;
    }
    reader.byte(); // end
  }
  return sectionBytes(section, [...parts, ...bytes.subarray(copied, section.end)]);
}

/** The data section, with all segments moved. */
function withMovedSegments(bytes: Uint8Array, section: Section, base: number): Uint8Array {
  const reader = new BinaryReader(bytes, section.start);
  const segments = reader.u32();
  const parts: (Uint8Array | number[])[] = [leb(segments)];
  for (let left = segments; left > 0; left--) {
    const flags = reader.u32();
    if (flags > 1) throw new PamiError("PAMIR_PROGRAM", `the program has a data segment of kind ${flags}, not 0 or 1`);
    if (flags === 0) {
      if (reader.byte() !== I32_CONST)
        throw new PamiError("PAMIR_PROGRAM", "the place of a data segment of the program is no constant");
      parts.push([0, I32_CONST, ...signedLeb(reader.s32() + base)]);
      reader.byte(); // end
      parts.push([0x0b]);
    } else parts.push([1]);
    const start = reader.at;
    const length = reader.u32();
    reader.at += length;
    parts.push(bytes.subarray(start, reader.at));
  }
  const contents = joined(parts);
  return joined([[section.id, ...leb(contents.length)], contents]);
}

function sectionBytes(section: Section, contents: number[]): number[] {
  return [section.id, ...leb(contents.length), ...contents];
}

/** The bytes of a 32-bit number as LEB128, signed. */
function signedLeb(value: number): number[] {
  const found: number[] = [];
  let left = value | 0;
  for (;;) {
    const digit = left & 0x7f;
    left >>= 7;
    const isLast = (left === 0 && (digit & 0x40) === 0) || (left === -1 && (digit & 0x40) !== 0);
    found.push(isLast ? digit : digit | 0x80);
    if (isLast) return found;
  }
}
