// What a program's binary says about its memory, its stack and its start: how it can be placed.
import { PamiError } from "../index.js";
import { BinaryReader, leb, SECTION, sectionsOf } from "./binary.js";

/** A memory that a program imports. */
export interface ImportedMemory {
  /** Where its limits stand in the binary. */
  readonly at: number;
  readonly end: number;
  readonly pages: number;
  /** undefined: as many as there can be. */
  readonly pagesMax: number | undefined;
  readonly isShared: boolean;
}

/** What a program asks for. */
export interface ProgramShape {
  /** Bytes of its memory at the start: stack, data, and what the linker left behind them. */
  readonly bytes: number;
  /** Why it can't be moved into the job's memory; undefined: it can. */
  readonly whyFixed: string | undefined;
  readonly imported: ImportedMemory | undefined;
  /** Whether it has a start function. */
  readonly starts: boolean;
  /** Whether it calls PAMI. */
  readonly usesPami: boolean;
  /** Its stack's pointer: the index of the global variable, and its value at first; undefined: it has none that is known. */
  readonly stack: { readonly global: number; readonly top: number } | undefined;
  /** Whether its stack lies below its data, so that the memory's low end is the stack's. */
  readonly stackFirst: boolean;
}

const PAGE = 65_536;
const I32 = 0x7f;
const I32_CONST = 0x41;
const KIND = { function: 0, table: 1, memory: 2, global: 3 } as const;
/** The name by which exportsStack() exports the stack's pointer. */
export const STACK_POINTER = "pamir.stackPointer";

/** @throws PAMIR_PROGRAM it is no WebAssembly module */
export function shapeOf(bytes: Uint8Array): ProgramShape {
  const sections = sectionsOf(bytes);
  const find = (id: number): BinaryReader | undefined => {
    const section = sections.find((one) => one.id === id);
    return section && new BinaryReader(bytes, section.start);
  };
  const { memory: imported, globals, hasArena, usesPami } = importsOf(find(SECTION.import));
  const isLinked =
    sections.some(({ name }) => name === "linking") && sections.some(({ name }) => name.startsWith("reloc."));
  const stack = stackOf(find(SECTION.global), globals);
  const whyFixed = !isLinked
    ? "it was linked without --emit-relocs"
    : imported === undefined
      ? "it was linked without --import-memory"
      : hasArena
        ? undefined
        : "its heap has no end: it was not linked by pamir cc";
  return {
    bytes: (imported?.pages ?? ownPages(find(SECTION.memory))) * PAGE,
    whyFixed,
    imported,
    starts: exportsOf(find(SECTION.export)).has("_start"),
    usesPami,
    stack,
    stackFirst: stack !== undefined && stack.top <= lowestData(find(SECTION.data)),
  };
}

/** The binary, with its stack's pointer as an export. */
export function withStackExport(bytes: Uint8Array, { stack }: ProgramShape): Uint8Array<ArrayBuffer> {
  const section = sectionsOf(bytes).find(({ id }) => id === SECTION.export);
  if (stack === undefined || section === undefined) return bytes.slice();
  const reader = new BinaryReader(bytes, section.start);
  const count = reader.u32();
  const name = new TextEncoder().encode(STACK_POINTER);
  const contents = [
    ...leb(count + 1),
    ...bytes.subarray(reader.at, section.end),
    ...leb(name.length),
    ...name,
    KIND.global,
    ...leb(stack.global),
  ];
  return joined([
    bytes.subarray(0, section.header),
    [SECTION.export, ...leb(contents.length), ...contents],
    bytes.subarray(section.end),
  ]);
}

/** @returns the memory, how many global variables, whether the program asks where its heap ends, and whether it calls PAMI */
function importsOf(reader: BinaryReader | undefined): {
  memory: ImportedMemory | undefined;
  globals: number;
  hasArena: boolean;
  usesPami: boolean;
} {
  let memory: ImportedMemory | undefined;
  let globals = 0;
  let hasArena = false;
  let usesPami = false;
  for (let left = reader?.u32() ?? 0; left > 0 && reader !== undefined; left--) {
    const from = reader.name();
    const name = reader.name();
    const kind = reader.byte();
    if (kind === KIND.function) {
      reader.u32();
      if (from === "pamir" && name === "arenaEnd") hasArena = true;
      // From whatever module: not all compilers know a header's name of it.
      if (name.startsWith("PAMI_")) usesPami = true;
    } else if (kind === KIND.global) {
      reader.at += 2;
      globals++;
    } else {
      if (kind === KIND.table) reader.byte();
      const at = reader.at;
      const { pages, pagesMax, isShared } = limits(reader);
      if (kind === KIND.memory) memory = { at, end: reader.at, pages, pagesMax, isShared };
    }
  }
  return { memory, globals, hasArena, usesPami };
}

function limits(reader: BinaryReader): { pages: number; pagesMax: number | undefined; isShared: boolean } {
  const flags = reader.byte();
  if (flags > 3)
    throw new PamiError("PAMIR_PROGRAM", "the program has a memory of 64-bit addresses: link it for wasm32");
  const pages = reader.u32();
  return { pages, pagesMax: (flags & 1) !== 0 ? reader.u32() : undefined, isShared: (flags & 2) !== 0 };
}

/** Pages of the memory that a program has itself. */
function ownPages(reader: BinaryReader | undefined): number {
  return reader === undefined || reader.u32() === 0 ? 0 : limits(reader).pages;
}

/** Linkers of LLVM make the stack's pointer the first global variable. Its value is an address, a multiple of 16. */
function stackOf(reader: BinaryReader | undefined, imported: number): ProgramShape["stack"] {
  if (reader === undefined || reader.u32() === 0) return undefined;
  if (reader.byte() !== I32 || reader.byte() !== 1 || reader.byte() !== I32_CONST) return undefined;
  const top = reader.s32() >>> 0;
  return top >= STACK_MIN && top % 16 === 0 ? { global: imported, top } : undefined;
}

/** No stack is shorter. */
const STACK_MIN = 4096;

/** The lowest address of a data segment; 0 if one has no constant place. */
function lowestData(reader: BinaryReader | undefined): number {
  let lowest = Number.POSITIVE_INFINITY;
  for (let left = reader?.u32() ?? 0; left > 0 && reader !== undefined; left--) {
    const flags = reader.u32();
    if (flags === 2) reader.u32();
    if (flags !== 1) {
      if (reader.byte() !== I32_CONST) return 0;
      lowest = Math.min(lowest, reader.s32() >>> 0);
      reader.byte(); // end
    }
    const length = reader.u32();
    reader.at += length;
  }
  return lowest;
}

function exportsOf(reader: BinaryReader | undefined): ReadonlySet<string> {
  const found = new Set<string>();
  for (let left = reader?.u32() ?? 0; left > 0 && reader !== undefined; left--) {
    found.add(reader.name());
    reader.byte();
    reader.u32();
  }
  return found;
}

export function joined(parts: readonly (Uint8Array | readonly number[])[]): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}
