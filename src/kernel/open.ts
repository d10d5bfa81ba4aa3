// Which kernels a task runs: the wasm module, unless the job asks for the twin or the host forbids wasm.
import { PamiError } from "../core/error.js";
import type { KernelName } from "../core/kernel-name.js";
import { wasmHex } from "../generated/wasm.js";
import { isNode } from "../support/host.js";
import { type Futex, type Kernel, type Memory, memoryOf } from "./kernel.js";
import { bytesOfHex, wasmKernel, wasmModule } from "./wasm.js";

/** A job's memory as workers get it: a wasm memory, or a plain buffer where there is no wasm. */
export type SharedMemory = WebAssembly.Memory | SharedArrayBuffer;

/**
 * Whether this thread may compile wasm; a Content-Security-Policy may forbid it. A browser may also lack what the kernels need.
 * Node does not, and to compile them would take a launcher of processes 5 ms.
 */
export function wasmAllowed(): boolean {
  try {
    // The header alone is a module, too.
    if (isNode()) new WebAssembly.Module(bytesOfHex(wasmHex.slice(0, 16)));
    else wasmModule();
    return true;
  } catch {
    return false;
  }
}

/** The kernels for a name, if any. @throws PAMIR_NO_WASM */
export function checkedKernel(name: KernelName | undefined): KernelName {
  if (name === "ts") return name;
  if (wasmAllowed()) return "wasm";
  if (name === undefined) return "ts";
  throw new PamiError("PAMIR_NO_WASM", `kernel: "wasm", but this host does not compile WebAssembly`);
}

/** Views over a job's memory. */
export function openMemory(shared: SharedMemory, futex?: Futex): Memory {
  if (!("buffer" in shared)) return memoryOf(shared, futex);
  return memoryOf(shared.buffer as unknown as SharedArrayBuffer, futex, shared);
}

/** Makes kernels over a job's memory. */
export type OpenKernel = (shared: SharedMemory, memory: Memory, module?: WebAssembly.Module) => Kernel;

/** What makes the kernels of a name. The twin is loaded on demand: it is an eighth of the code, and few tasks run it. */
export async function kernelOpener(name: KernelName): Promise<OpenKernel> {
  if (name === "wasm") {
    return (shared, memory, module) => wasmKernel(shared as WebAssembly.Memory, module, memory.futex);
  }
  const { twinKernel } = await import("./twin/index.js");
  return (_, memory) => twinKernel(memory);
}
