// The kernels of MPI's matching engine: the wasm module of assembly/mpi/, or the twin. Loaded with the first MPI program.
// Pointers are byte offsets into the job's memory.
import { LAYOUT_HASH } from "../../assembly/layout-hash.js";
import type { KernelName } from "../core/kernel-name.js";
import { mpiHex } from "../generated/mpi.js";
import { bytesOfHex } from "./hex.js";
import type { Memory } from "./kernel.js";
import { twinBlocks } from "./twin/mpi/blocks.js";
import { twinMatch } from "./twin/mpi/match.js";

/** The functions of the kernels, documented in assembly/mpi/ under the same names. */
export interface MpiKernel {
  readonly name: KernelName;
  mpiInit(engine: number, bytes: number, comms: number): void;
  mpiExtend(engine: number, from: number, bytes: number): void;
  mpiPost(engine: number, comm: number, source: number, tag: number, buffer: number, capacity: number): number;
  mpiSent(engine: number, target: number): number;
  mpiFree(engine: number, request: number): void;
  mpiArrive(engine: number, header: number, payload: number, origin: number): number;
  mpiProbe(engine: number, comm: number, source: number, tag: number): number;
  mpiTake(engine: number, comm: number, source: number, tag: number): number;
  mpiMatched(engine: number, stored: number, buffer: number, capacity: number): number;
  mpiCancel(engine: number, request: number): number;
  mpiFail(engine: number, request: number, error: number): number;
}

let compiled: WebAssembly.Module | undefined;

/** The compiled module. A thread compiles it once. */
export function mpiModule(): WebAssembly.Module {
  compiled ??= new WebAssembly.Module(bytesOfHex(mpiHex));
  return compiled;
}

type Exports = Omit<MpiKernel, "name"> & { layoutHash(): number };

/** The kernels in wasm, over a job's memory. */
export function wasmMpiKernel(memory: WebAssembly.Memory, module = mpiModule()): MpiKernel {
  const { layoutHash, ...exports } = new WebAssembly.Instance(module, { env: { memory } })
    .exports as unknown as Exports;
  if (layoutHash() >>> 0 !== LAYOUT_HASH >>> 0) {
    throw new Error(`MPI's wasm was built from other sources: layout ${layoutHash() >>> 0}`);
  }
  return {
    ...exports,
    name: "wasm",
    mpiPost: (engine, comm, source, tag, buffer, capacity) =>
      exports.mpiPost(engine, comm, source, tag, buffer, capacity) >>> 0,
    mpiSent: (engine, target) => exports.mpiSent(engine, target) >>> 0,
    mpiArrive: (engine, header, payload, origin) => exports.mpiArrive(engine, header, payload, origin) >>> 0,
    mpiProbe: (engine, comm, source, tag) => exports.mpiProbe(engine, comm, source, tag) >>> 0,
    mpiTake: (engine, comm, source, tag) => exports.mpiTake(engine, comm, source, tag) >>> 0,
    mpiMatched: (engine, stored, buffer, capacity) => exports.mpiMatched(engine, stored, buffer, capacity) >>> 0,
  };
}

/** The kernels in TypeScript, over a job's memory. */
export function twinMpiKernel(memory: Memory): MpiKernel {
  return { name: "ts", ...twinMatch(memory, twinBlocks(memory)) };
}

/** The kernels of a task whose other kernels have this name. */
export function selectMpiKernel(name: KernelName, memory: Memory): MpiKernel {
  return name === "wasm" && memory.wasm !== undefined ? wasmMpiKernel(memory.wasm) : twinMpiKernel(memory);
}
