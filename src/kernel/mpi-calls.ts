// The wasm module of assembly/calls/: the short ways of MPI's calls, which a program in C calls without JavaScript.
import { LAYOUT_HASH } from "../../assembly/layout-hash.js";
import { callsHex } from "../generated/calls.js";
import { bytesOfHex } from "./hex.js";
import { kernelImports, type Memory } from "./kernel.js";

/** What the module exports, by the names in C. */
export type ShortCallTable = Record<string, (...given: number[]) => number>;

let compiled: WebAssembly.Module | undefined;

/**
 * The calls over a job's memory, which is one of WebAssembly.
 * @param block pointer to the MPI_CALLS block
 * @param long what assembly/calls/long.ts declares, and each call's long way, by their names
 */
export function shortCalls(memory: Memory, block: number, long: WebAssembly.ModuleImports): ShortCallTable {
  compiled ??= new WebAssembly.Module(bytesOfHex(callsHex));
  const { layoutHash, bindCalls, ...calls } = new WebAssembly.Instance(compiled, {
    ...kernelImports(memory.wasm as WebAssembly.Memory, memory.futex),
    long,
  }).exports as unknown as ShortCallTable & { layoutHash(): number; bindCalls(pointer: number): void };
  if (layoutHash() >>> 0 !== LAYOUT_HASH >>> 0) {
    throw new Error(`the calls' wasm was built from other sources: layout ${layoutHash() >>> 0}`);
  }
  bindCalls(block);
  return calls;
}
