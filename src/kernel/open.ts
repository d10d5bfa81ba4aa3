// Which kernels a task runs: the wasm module, unless the job asks for the twin or the host forbids wasm.
import { JOB_GUEST_PAGES_OFFSET } from "../../assembly/layout.js";
import { PamiError } from "../core/error.js";
import type { KernelName } from "../core/kernel-name.js";
import { bindKernel } from "./bind.js";
import { type Futex, type Kernel, type Memory, memoryOf, type PacketKernel } from "./kernel.js";

/** A job's memory as workers get it: a wasm memory, or a plain buffer where there is no wasm. */
export type SharedMemory = WebAssembly.Memory | SharedArrayBuffer;

/**
 * `(module (func (drop (i8x16.splat (i32.const 0)))))`: valid where there is SIMD. Of what the kernels use, browsers got SIMD
 * last (Chrome 91, Firefox 89, Safari 16.4).
 */
const SIMD_PROBE = [0, 97, 115, 109, 1, 0, 0, 0, 1, 4, 1, 96, 0, 0, 3, 2, 1, 0, 10, 9, 1, 7, 0, 65, 0, 253, 15, 26, 11];

/** Whether WebAssembly has SIMD here. */
export function hasSimd(): boolean {
  return typeof WebAssembly !== "undefined" && WebAssembly.validate(new Uint8Array(SIMD_PROBE));
}

let allowed: boolean | undefined;

/** Whether this thread may compile the kernels; a Content-Security-Policy may forbid wasm, and an old browser lacks a part of it. */
export function wasmAllowed(): boolean {
  if (allowed === undefined) {
    try {
      new WebAssembly.Module(new Uint8Array(SIMD_PROBE));
      allowed = true;
    } catch {
      allowed = false;
    }
  }
  return allowed;
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

/**
 * The memory as long as it was at launch. Another program's may have grown since: a task that came later would take pointers for
 * known that the earlier tasks' views do not reach. @param job pointer to the job's header
 */
export function asLaunched(memory: Memory, job: number): Memory {
  const length = (memory.words[(job + JOB_GUEST_PAGES_OFFSET) >>> 2] as number) * 65536;
  if (length === 0 || length === memory.bytes.length) return memory;
  return { ...memory, words: memory.words.subarray(0, length >>> 2), bytes: memory.bytes.subarray(0, length) };
}

/** Makes kernels over a job's memory. */
export type OpenKernel = (shared: SharedMemory, memory: Memory) => Kernel;

/**
 * What makes the kernels of a name. The twin and the wasm module are loaded on demand: each is an eighth of the code.
 * @param module the compiled kernels, if the launcher has sent them
 */
export async function kernelOpener(name: KernelName, module?: WebAssembly.Module): Promise<OpenKernel> {
  if (name === "ts") {
    const { twinKernel } = await import("./twin/index.js");
    return (_, memory) => twinKernel(memory);
  }
  // Compiled once the memory is there: a launcher that does not join compiles nothing here.
  const compile = module === undefined ? (await import("./wasm.js")).wasmModule : () => module;
  return (shared, memory) => bindKernel(shared as WebAssembly.Memory, compile(), memory.futex);
}

/** The same, for a memory that is a plain buffer if the host refuses a WebAssembly.Memory: the twin's kernels run there. */
export async function eitherOpener(name: KernelName, module?: WebAssembly.Module): Promise<OpenKernel> {
  const [wanted, twin] = await Promise.all([kernelOpener(name, module), kernelOpener("ts")]);
  return (shared, memory) => ("buffer" in shared ? wanted : twin)(shared, memory);
}

/** As OpenKernel, with the functions for packets. */
export type OpenPacketKernel = (shared: SharedMemory, memory: Memory) => PacketKernel;

/** As kernelOpener(), with the functions for packets. */
export async function packetKernelOpener(name: KernelName): Promise<OpenPacketKernel> {
  if (name === "ts") {
    const { twinPacketKernel } = await import("./twin/index.js");
    return (_, memory) => twinPacketKernel(memory);
  }
  const { wasmKernel } = await import("./wasm.js");
  return (shared, memory) => wasmKernel(shared as WebAssembly.Memory, undefined, memory.futex);
}
