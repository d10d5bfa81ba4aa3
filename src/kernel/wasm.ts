// The wasm module. Only threads that compile the kernels load this file: a task gets the module from its launcher.
import { wasmHex } from "../generated/wasm.js";
import { bindKernel } from "./bind.js";
import { bytesOfHex } from "./hex.js";
import type { Futex, PacketKernel } from "./kernel.js";

let compiled: WebAssembly.Module | undefined;

/** The compiled kernels. A thread compiles them once; workers get the compiled module. */
export function wasmModule(): WebAssembly.Module {
  compiled ??= new WebAssembly.Module(bytesOfHex(wasmHex));
  return compiled;
}

/** The kernels in wasm, over a job's memory. */
export function wasmKernel(memory: WebAssembly.Memory, module = wasmModule(), futex?: Futex): PacketKernel {
  return bindKernel(memory, module, futex);
}
