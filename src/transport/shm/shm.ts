// The transport of tasks that share a memory: lanes for records, a pool of buffers for large payloads.
import type { Kernel, Memory } from "../../kernel/kernel.js";
import type { MemoryMap } from "../../memory/map.js";
import type { RemoteAgent, Transport, TransportHeap } from "../transport.js";
import { ShmBuffers } from "./buffers.js";
import { ShmLanes } from "./lanes.js";

/** @param remote what stands in this memory for tasks of other memories, if there are any */
export function sharedMemory(
  kernel: Kernel,
  memory: Memory,
  map: MemoryMap,
  task: number,
  remote?: RemoteAgent,
): (heap: TransportHeap) => Transport {
  return (heap) => ({
    remote,
    buffers: new ShmBuffers(kernel, memory, map, task, heap),
    lanes: (origin) => new ShmLanes(kernel, memory, map, origin, () => heap.reclaim()),
  });
}
