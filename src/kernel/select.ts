// The kernels of threads that may run either kind: they load both.
import type { KernelName } from "../core/kernel-name.js";
import { type Kernel, kernelImports, type Memory, type PacketKernel } from "./kernel.js";
import type { SharedMemory } from "./open.js";
import { twinEngineKernel, twinKernel, twinPacketKernel } from "./twin/index.js";
import { wasmKernel } from "./wasm.js";

/** The functions of the kernels that an engine thread calls. */
export type EngineKernel = ReturnType<typeof twinEngineKernel>;

/** The engine's kernels over a job's memory: the twin's where there is no module. */
export function selectEngineKernel(
  shared: SharedMemory,
  memory: Memory,
  module: WebAssembly.Module | undefined,
): EngineKernel {
  if (module === undefined) return twinEngineKernel(memory);
  const { exports } = new WebAssembly.Instance(module, kernelImports(shared as WebAssembly.Memory, memory.futex));
  return exports as unknown as EngineKernel;
}

/** The kernels with those for packets, over a memory for packets. */
export function selectPacketKernel(name: KernelName, own: SharedMemory, memory: Memory): PacketKernel {
  return name === "ts" ? twinPacketKernel(memory) : wasmKernel(own as WebAssembly.Memory);
}

/** The kernels over a job's memory. */
export function selectKernel(
  name: KernelName,
  shared: SharedMemory,
  memory: Memory,
  module?: WebAssembly.Module,
): Kernel {
  if (name === "ts") return twinKernel(memory);
  return wasmKernel(shared as WebAssembly.Memory, module, memory.futex);
}
