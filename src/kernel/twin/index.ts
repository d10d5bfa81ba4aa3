// The twin: the kernels of assembly/ in plain, tuned TypeScript over the same bytes. Written separately, file by file
// and function by function, so that each is the other's oracle.
import type { Kernel, Memory } from "../kernel.js";
import { twinChain } from "./chain.js";
import { twinCompletion } from "./completion.js";
import { twinEngine } from "./engine.js";
import { twinHeap } from "./heap.js";
import { twinLane } from "./lane.js";
import { twinReception } from "./reception.js";
import { twinRegion } from "./region.js";
import { twinSync } from "./sync.js";

/** The kernels in TypeScript, over a job's memory. */
export function twinKernel(memory: Memory): Kernel {
  const sync = twinSync(memory);
  const heap = twinHeap(memory, sync);
  const lane = twinLane(memory, sync, heap);
  const region = twinRegion(memory, sync);
  const completion = twinCompletion(memory, sync);
  const engine = twinEngine(memory, sync, region, completion);
  return {
    name: "ts",
    ...sync,
    ...heap,
    ...lane,
    ...twinReception(memory, sync, heap, lane),
    ...region,
    ...completion,
    ...engine,
    ...twinChain(memory, sync, region, engine),
  };
}
