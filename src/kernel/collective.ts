// The kernels of collectives and typed transfers: the wasm module of assembly/collective/, or the twin. Both are loaded with
// the first collective, not with the library. Pointers are byte offsets into the job's memory.
import { LAYOUT_HASH } from "../../assembly/layout-hash.js";
import type { KernelName } from "../core/kernel-name.js";
import { collectiveHex } from "../generated/collective.js";
import { bytesOfHex } from "./hex.js";
import type { Memory } from "./kernel.js";
import { twinCopy } from "./twin/collective/copy.js";
import { twinPack } from "./twin/collective/pack.js";
import { twinReduce } from "./twin/collective/reduce.js";

/** The functions of the kernels, documented in assembly/collective/ under the same names. */
export interface CollectiveKernel {
  readonly name: KernelName;
  reduce(operation: number, type: number, out: number, left: number, right: number, count: number): void;
  pack(layout: number, to: number, elements: number, from: number, bytes: number): void;
  unpack(layout: number, from: number, elements: number, first: number, bytes: number): void;
  copyCold(to: number, from: number, bytes: number): number;
}

export { movePacked } from "./twin/collective/pack.js";

let compiled: WebAssembly.Module | undefined;

/** The compiled module. A thread compiles it once. */
export function collectiveModule(): WebAssembly.Module {
  compiled ??= new WebAssembly.Module(bytesOfHex(collectiveHex));
  return compiled;
}

type Exports = Omit<CollectiveKernel, "name"> & { layoutHash(): number };

/** A method over a private field: V8 calls it faster than a function that is an own property (src/kernel/wasm.ts). */
class WasmCollectiveKernel implements CollectiveKernel {
  readonly name = "wasm";
  readonly #reduce: Exports["reduce"];
  readonly #pack: Exports["pack"];
  readonly #unpack: Exports["unpack"];
  readonly #copyCold: Exports["copyCold"];

  constructor({ reduce, pack, unpack, copyCold }: Exports) {
    this.#reduce = reduce;
    this.#pack = pack;
    this.#unpack = unpack;
    this.#copyCold = copyCold;
  }

  reduce(operation: number, type: number, out: number, left: number, right: number, count: number): void {
    this.#reduce(operation, type, out, left, right, count);
  }

  pack(layout: number, to: number, elements: number, from: number, bytes: number): void {
    this.#pack(layout, to, elements, from, bytes);
  }

  unpack(layout: number, from: number, elements: number, first: number, bytes: number): void {
    this.#unpack(layout, from, elements, first, bytes);
  }

  copyCold(to: number, from: number, bytes: number): number {
    return this.#copyCold(to, from, bytes);
  }
}

function exportsOver(memory: WebAssembly.Memory, module: WebAssembly.Module): Exports {
  const exports = new WebAssembly.Instance(module, { env: { memory } }).exports as unknown as Exports;
  if (exports.layoutHash() >>> 0 !== LAYOUT_HASH >>> 0) {
    throw new Error(`the collectives' wasm was built from other sources: layout ${exports.layoutHash() >>> 0}`);
  }
  return exports;
}

/** The kernels in wasm, over a job's memory. */
export function wasmCollectiveKernel(memory: WebAssembly.Memory, module = collectiveModule()): CollectiveKernel {
  return new WasmCollectiveKernel(exportsOver(memory, module));
}

/** The kernels in TypeScript, over a job's memory. */
export function twinCollectiveKernel(memory: Memory): CollectiveKernel {
  return { name: "ts", ...twinReduce(memory), ...twinPack(memory), ...twinCopy(memory) };
}

/** `reduce` for another wasm module to import: an export of wasm, which that module calls without JavaScript. */
export function reduceImport(memory: WebAssembly.Memory): CollectiveKernel["reduce"] {
  return exportsOver(memory, collectiveModule()).reduce;
}

/** The kernels of a task whose other kernels have this name. */
export function selectCollectiveKernel(name: KernelName, memory: Memory): CollectiveKernel {
  return name === "wasm" && memory.wasm !== undefined
    ? wasmCollectiveKernel(memory.wasm)
    : twinCollectiveKernel(memory);
}
