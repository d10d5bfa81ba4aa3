// The twin: the kernels of assembly/ in plain, tuned TypeScript over the same bytes. Written separately, file by file
// and function by function, so that each is the other's oracle.
import type { Kernel, Memory } from "../kernel.js";
import { twinHeap } from "./heap.js";
import { twinLane } from "./lane.js";
import { twinReception } from "./reception.js";
import { twinSync } from "./sync.js";

/** The kernels in TypeScript, over a job's memory. */
export function twinKernel(memory: Memory): Kernel {
  const sync = twinSync(memory);
  const heap = twinHeap(memory, sync);
  const lane = twinLane(memory, sync, heap);
  return { name: "ts", ...sync, ...heap, ...lane, ...twinReception(memory, sync, heap, lane) };
}
