// The kernels of MPI's matching engine, each over a memory of its own.
import { type Memory, memoryOf } from "../../src/kernel/kernel.js";
import { type MpiKernel, mpiModule, twinMpiKernel, wasmMpiKernel } from "../../src/kernel/mpi.js";

const PAGE = 65536;

/** The module that is shipped, the twin, or another module. */
export type MpiBuild = "wasm" | "twin" | WebAssembly.Module;

export interface MpiRig {
  readonly kernel: MpiKernel;
  readonly memory: Memory;
  /** Offset of the bytes that a test may use. */
  readonly base: number;
}

/** @param bytes how many the test uses @param base offset of the first of them */
export function mpiRig(build: MpiBuild, bytes: number, base = 0): MpiRig {
  const pages = Math.ceil((base + bytes) / PAGE);
  const shared = new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true });
  const memory = memoryOf(shared.buffer as unknown as SharedArrayBuffer, undefined, shared);
  const kernel =
    build === "twin" ? twinMpiKernel(memory) : wasmMpiKernel(shared, build === "wasm" ? mpiModule() : build);
  return { kernel, memory, base };
}
