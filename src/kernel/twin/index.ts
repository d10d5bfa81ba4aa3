// The twin: the kernels of assembly/ in plain, tuned TypeScript over the same bytes. It is written separately, file by file
// and function by function, so that each is the other's oracle.
import { sharedAtomics } from "../atomics.js";
import type { Kernel, Memory, PacketKernel } from "../kernel.js";
import { twinBuffer } from "./buffer.js";
import { twinChain } from "./chain.js";
import { twinCompletion } from "./completion.js";
import { twinDue } from "./due.js";
import { twinEngine } from "./engine.js";
import { twinHeap } from "./heap.js";
import { twinLane } from "./lane.js";
import { twinReception } from "./reception.js";
import { twinRegion } from "./region.js";
import { twinServe } from "./serve.js";
import { twinPacket } from "./session/packet.js";
import { twinReorder } from "./session/reorder.js";

/** The kernels that the engine needs. */
export function twinEngineKernel(memory: Memory) {
  const sync = sharedAtomics(memory);
  const due = twinDue(memory, sync);
  const region = twinRegion(memory, sync, due);
  const completion = twinCompletion(memory, sync);
  const engine = twinEngine(memory, sync, due, region, completion);
  const chain = twinChain(memory, sync, due, region, engine);
  return {
    ...sync,
    ...due,
    ...region,
    ...completion,
    ...engine,
    ...chain,
    ...twinServe(memory, sync, engine, chain),
  };
}

/** The kernels in TypeScript, over a job's memory. */
export function twinKernel(memory: Memory): Kernel {
  const engine = twinEngineKernel(memory);
  const heap = twinHeap(memory, engine);
  const lane = twinLane(memory, engine, heap);
  const buffer = twinBuffer(memory, engine);
  return { name: "ts", ...engine, ...heap, ...buffer, ...lane, ...twinReception(memory, engine, heap, lane) };
}

/** The kernels with those for packets, which a session needs. */
export function twinPacketKernel(memory: Memory): PacketKernel {
  const kernel = twinKernel(memory);
  return { ...kernel, ...twinPacket(memory), ...twinReorder(memory, kernel) };
}
