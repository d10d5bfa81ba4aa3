// What makes foreign calls, as src/process/ffi.ts does: functions of C libraries that the process has loaded.

/** A C function. Pointers are numbers: addresses have at most 47 bits. */
export type ForeignFunction = (...values: unknown[]) => number;
/** Types of parameters and results, as koffi spells them. */
export type CType = "int" | "uint" | "ulong" | "int64_t" | "intptr_t" | "uintptr_t" | "size_t" | "str" | "void *";

export interface CLibrary {
  /** @param name of a function; if it is variadic, its further arguments are integers */
  func(name: string, result: CType, parameters: readonly CType[]): ForeignFunction;
  /** Address of a buffer's first byte in this process. */
  addressOf(buffer: ArrayBufferLike): number;
  /** The error of the last call. */
  errno(): number;
}
