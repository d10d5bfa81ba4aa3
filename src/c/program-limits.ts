// The limits of a job whose tasks run a program: what launch() takes for them.
import { isNode } from "../support/host.js";
import { shapeOf } from "./shape.js";

/** Options of `launch()` that bound a job's memory. */
export interface ProgramLimits {
  /** Contexts of each task: 1 for MPI; undefined for PAMI, whose program says at its run how many it makes. */
  readonly contexts: number | undefined;
  /** Bytes of the job's heap. */
  readonly heapBytes: number;
}

/** The part that the programs take three quarters of, and what each rank adds for messages. */
const HEAP_BYTES = 2 ** 31;
const HEAP_RANK_BYTES = 2 ** 24;
/** The rest of 4 GiB is for the fixed part of the memory. */
const HEAP_BYTES_MAX = 3.5 * 2 ** 30;
/** In a page, which shares its process's memory with others: for each rank, and at most. */
const PAGE_RANK_BYTES = 2 ** 26;
const PAGE_BYTES_MAX = 2 ** 30;

/**
 * Limits by which the ranks of a program have room for their messages, however many they are: pages of the memory cost nothing
 * until they are written. A context that is never made would keep room for a lane from and to each other one: of 32 ranks with
 * 4 contexts, 384 MiB.
 * @param tasks of the job @throws PAMIR_PROGRAM the binary is no program
 */
export function programLimits(binary: Uint8Array, tasks: number): ProgramLimits {
  return {
    contexts: shapeOf(binary).usesPami ? undefined : 1,
    heapBytes: isNode()
      ? Math.min(HEAP_BYTES + tasks * HEAP_RANK_BYTES, HEAP_BYTES_MAX)
      : Math.min(tasks * PAGE_RANK_BYTES, PAGE_BYTES_MAX),
  };
}
