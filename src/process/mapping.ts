// Maps a memory that the processes of a host share: a nameless file, over this process's WebAssembly.Memory.
import { JOB_MAGIC, JOB_MAGIC_OFFSET, PAGE_SIZE } from "../../assembly/layout.js";
import { PamiError } from "../core/error.js";
import { type Ffi, noProcesses, openFfi } from "./ffi.js";
import type { FutexSetup } from "./futex.js";

const WASM_PAGE = 65536;
/** Pages of the largest memory: pointers are u32. */
const PAGES_MAX = 65535;

/** A memory that a process has made, for other processes to map. */
export interface ProcessMemorySetup {
  /** Descriptor of the memory in the process that gets this. */
  readonly descriptor: number;
  readonly bytes: number;
  /** Path of koffi. */
  readonly ffi: string;
}

/** A memory as this process has it. */
export interface MappedMemory {
  readonly shared: WebAssembly.Memory;
  readonly futex: FutexSetup;
}

/** Maps a memory that another process has made and formatted. @throws PAMIR_NO_PROCESSES */
export function mapProcessMemory({ descriptor, bytes, ffi: path }: ProcessMemorySetup, job: number): MappedMemory {
  const mapped = mapMemory(openFfi(path), bytes, descriptor);
  const words = new Int32Array(mapped.shared.buffer);
  // plain: written before this process began.
  if ((words[(job + JOB_MAGIC_OFFSET) >>> 2] as number) >>> 0 !== JOB_MAGIC) {
    throw noProcesses("the mapped memory does not hold the job that started this process");
  }
  return mapped;
}

/** Closes descriptors of memories that this thread has no more. */
const unused = new FinalizationRegistry<() => void>((close) => close());

/** The memory of the last probe. The next one is the same, larger: V8 reserves 10 GiB of addresses for each, until it collects it. */
let probed: WebAssembly.Memory | undefined;

/** A memory over which nothing is mapped that is still in use. */
function freshMemory(pages: number, isProbe: boolean): WebAssembly.Memory {
  const shared = probed ?? new WebAssembly.Memory({ initial: 1, maximum: PAGES_MAX, shared: true });
  probed = undefined;
  if (pages > 1) shared.grow(pages - 1);
  if (isProbe) probed = shared;
  return shared;
}

/**
 * Pages of an extent are really there before it is given out: a store to a page that the system can't provide would end the
 * process by SIGBUS. Where it does not provide them by their address (before Linux 5.14, or with pages of more than 4 KiB),
 * the mapping keeps a descriptor of the memory for that. If that fails, too, the extent counts as out of memory: launch() fails
 * with PAMIR_MEMORY, and later calls with ENOMEM.
 * @param isProbe whether the memory has one page, and the next call may take it over
 * @throws PAMIR_MEMORY, PAMIR_NO_PROCESSES
 */
export function mapMemory(ffi: Ffi, bytes: number, descriptor: number, isProbe = false): MappedMemory {
  if (typeof WebAssembly === "undefined") throw noProcesses("this Node has no WebAssembly (as with --jitless)");
  const pages = bytes / WASM_PAGE;
  let shared: WebAssembly.Memory;
  try {
    shared = freshMemory(pages, isProbe);
  } catch (cause) {
    throw new PamiError(
      "PAMIR_MEMORY",
      `this host refuses ${bytes} bytes of shared memory, for which V8 reserves 10 GiB of addresses (see ulimit -v): raise it by 10485760, or choose a smaller heapBytes`,
      { cause },
    );
  }
  const address = ffi.addressOf(shared.buffer);
  ffi.mapOver(address, bytes, descriptor);
  // The second page: its address is a multiple of 4096 and of no larger page.
  if (ffi.canPopulate(address + PAGE_SIZE)) return { shared, futex: { ffi: ffi.path, address } };
  const own = ffi.duplicate(descriptor);
  unused.register(shared.buffer, () => ffi.close(own));
  return { shared, futex: { ffi: ffi.path, address, descriptor: own } };
}
