// The memory of a job: one for all its tasks, or one for each task if they can't share memory.

import { MAP_BASE } from "../../assembly/layout.js";
import { PamiError } from "../core/error.js";
import { TaskErrors } from "../core/task-errors.js";
import type { Futex, Memory } from "../kernel/kernel.js";
import { openMemory, type SharedMemory } from "../kernel/open.js";
import { formatMemory } from "../memory/format.js";
import { type Limits, MEMORY_BYTES_MAX, type MemoryMap, memoryMap } from "../memory/map.js";
import { hardwareThreads } from "../support/node/cores.js";

/** The smallest heap to try where a host refuses the default. */
export const HEAP_BYTES_LEAST = 16 * 1024 ** 2;
export const WASM_PAGE = 65536;

/** The memory that a job asks for. */
export interface JobMemoryRequest {
  readonly limits: Limits;
  /** Whether the user asked for this heap size: then a smaller one is an error. */
  readonly isFixed: boolean;
  /** Whether to use the twin's kernels over a plain buffer if the host refuses a WebAssembly.Memory (default: no). */
  readonly mayBeTwins?: boolean;
  /** Offset of the map in the memory (default MAP_BASE, above the bytes to which NULL of programs in C points). */
  readonly base?: number | undefined;
  /** Number of the node's first task (default 0). */
  readonly first?: number;
}

/** A memory that several processes map. */
export interface ProcessMemory {
  readonly shared: WebAssembly.Memory;
  readonly futex: Futex;
  /** Has the system provide the pages of the bytes from `start` up to `end`. @throws PAMIR_MEMORY if it can't */
  provide(start: number, end: number): void;
}

/** Makes a memory that several processes can map. @param bytes a multiple of 65,536 @throws PAMIR_MEMORY */
export type MakeProcessMemory = (bytes: number) => ProcessMemory;

/** A job's memory with its map. */
export interface JobMemory {
  readonly map: MemoryMap;
  readonly shared: SharedMemory;
  readonly memory: Memory;
  /** Whether wasm kernels can run in it. */
  readonly isWasm: boolean;
}

/**
 * Makes a job's memory.
 * @param forProcesses makes a memory that several processes can map; one process has the memory otherwise
 * @throws PAMIR_MEMORY
 */
export function makeJobMemory(request: JobMemoryRequest, wasm: boolean, forProcesses?: MakeProcessMemory): JobMemory {
  const { map, shared, futex, provide } = findRoom(request, wasm, forProcesses);
  const memory = openMemory(shared, futex);
  // All but the heap, whose extents get their pages when they are allocated.
  provide?.(map.job === MAP_BASE ? 0 : map.job, map.heapBase);
  provide?.(map.end, memory.buffer.byteLength);
  formatMemory(map, memory, hardwareThreads(), request.first);
  return { map, shared, memory, isWasm: "buffer" in shared };
}

/**
 * The map and its memory, not formatted yet. If a host refuses the default heap (iOS does), this tries half of it, and so
 * on. A heap size that the user asked for is never reduced. A host may also refuse any WebAssembly.Memory, because each
 * reserves addresses: Chromium 156 allows all threads of a page 124. Then this tries a plain buffer in the same way.
 */
function findRoom(request: JobMemoryRequest, wasm: boolean, forProcesses?: MakeProcessMemory): Room {
  const { limits, isFixed, mayBeTwins, base = MAP_BASE } = request;
  for (let heapBytes = limits.heapBytes; ; heapBytes /= 2) {
    const map = memoryMap({ ...limits, heapBytes }, base);
    try {
      const bytes = memoryBytes(map);
      const room = forProcesses?.(bytes) ?? { shared: makeMemory(bytes, wasm) };
      if (heapBytes < limits.heapBytes) {
        console.warn(`pamir: this host refuses a heap of ${limits.heapBytes} bytes; this job's has ${heapBytes}`);
      }
      return { map, ...room };
    } catch (error) {
      if (!isFixed && heapBytes / 2 >= HEAP_BYTES_LEAST) continue;
      if (!wasm || !mayBeTwins) throw error;
      const room = findRoom(request, false);
      console.warn("pamir: this host refuses another WebAssembly.Memory; this task runs the ts kernels");
      return room;
    }
  }
}

interface Room {
  readonly map: MemoryMap;
  readonly shared: SharedMemory;
  readonly futex?: Futex;
  readonly provide?: ProcessMemory["provide"];
}

/** Bytes of the memory for a map, with the errors of tasks behind it. */
function memoryBytes({ end, locals, heapBytes }: MemoryMap): number {
  const bytes = Math.ceil((end + TaskErrors.bytesFor(locals)) / WASM_PAGE) * WASM_PAGE;
  if (bytes <= MEMORY_BYTES_MAX) return bytes;
  throw new PamiError(
    "PAMIR_MEMORY",
    `the job needs ${bytes} bytes (heapBytes ${heapBytes}), the limit is ${MEMORY_BYTES_MAX}`,
  );
}

function makeMemory(bytes: number, wasm: boolean): SharedMemory {
  const pages = bytes / WASM_PAGE;
  try {
    if (wasm) return new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true });
    // On a page that is not isolated, no other thread shares it.
    const Buffer_ = typeof SharedArrayBuffer === "undefined" ? ArrayBuffer : SharedArrayBuffer;
    return new Buffer_(bytes) as SharedArrayBuffer;
  } catch (cause) {
    throw new PamiError(
      "PAMIR_MEMORY",
      `this host refuses ${bytes} bytes of shared memory${wasm ? `, for which V8 reserves 10 GiB of addresses (see ulimit -v)` : ""}: choose a smaller heapBytes${wasm ? ', or kernel: "ts"' : ""}`,
      { cause },
    );
  }
}
