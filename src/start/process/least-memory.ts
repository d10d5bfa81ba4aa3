// The least size of a memory that the tasks of a job can share. Only for Node.
import { MAP_BASE } from "../../../assembly/layout.js";
import { memoryMap } from "../../memory/map.js";
import { HEAP_BYTES_LEAST } from "../../node/memory.js";
import { checkLimits, type LimitOptions } from "../limits.js";

/** Bytes of the smallest memory that will do. @throws PAMIR_INVAL, PAMIR_MEMORY */
export function leastBytes(
  options: LimitOptions & { readonly memoryBase?: number | undefined },
  tasks: number,
): number {
  const limits = { ...checkLimits(options, tasks), heapBytes: options.heapBytes ?? HEAP_BYTES_LEAST };
  return memoryMap(limits, options.memoryBase ?? MAP_BASE).end;
}
