// The kernels of collectives, each over a memory of its own.
import { type CollectiveKernel, twinCollectiveKernel, wasmCollectiveKernel } from "../../src/kernel/collective.js";
import { type Memory, memoryOf } from "../../src/kernel/kernel.js";

const PAGE = 65536;

export interface CollectiveRig {
  readonly kernel: CollectiveKernel;
  readonly memory: Memory;
  /** Offset of the bytes that a test may use. */
  readonly base: number;
}

/** @param base offset of the first byte that the test uses @param bytes how many it uses */
export function collectiveRig(name: "wasm" | "ts", bytes: number, base = 0): CollectiveRig {
  const pages = Math.ceil((base + bytes) / PAGE);
  const shared = new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true });
  const memory = memoryOf(shared.buffer as unknown as SharedArrayBuffer, undefined, shared);
  return { kernel: name === "wasm" ? wasmCollectiveKernel(shared) : twinCollectiveKernel(memory), memory, base };
}
