// A job's map in a block of another program's memory. Nothing of that memory is written but the block.
import * as L from "../../assembly/layout.js";
import { LAYOUT_HASH } from "../../assembly/layout-hash.js";
import { checkInteger, PamiError, show } from "../core/error.js";
import { TaskErrors } from "../core/task-errors.js";
import { sharedAtomics } from "../kernel/atomics.js";
import type { Memory } from "../kernel/kernel.js";
import { openMemory } from "../kernel/open.js";
import { formatMemory } from "../memory/format.js";
import { engineSlot, type Limits, type MemoryMap, memoryMap, readMap, taskSlot } from "../memory/map.js";
import type { WasmMemoryLike } from "../support/like.js";
import { hardwareThreads } from "../support/node/cores.js";
import { type JobMemory, WASM_PAGE } from "./memory.js";

/** The options of `launch` that name the block, and what decides how much of it is needed. */
export interface GuestOptions {
  readonly memory?: WasmMemoryLike | undefined;
  readonly memoryBase?: number | undefined;
  readonly bytes?: number | undefined;
  readonly heapBytes?: number | undefined;
}

/**
 * Makes the map of a job in the block that the options name. Without `heapBytes`, the heap gets what the block has left.
 * @throws PAMIR_INVAL no such block, or one that is in use; PAMIR_MEMORY the block is too small: the text says what is needed
 */
export function makeGuestMemory(options: GuestOptions, limits: Limits): JobMemory {
  const { memory: shared, memoryBase, bytes, heapBytes } = options;
  checkMemory(shared);
  const memory = openMemory(shared);
  const { length } = memory.bytes;
  checkInteger("memoryBase", memoryBase, L.FALSE_SHARING_SIZE, length);
  if (memoryBase % L.FALSE_SHARING_SIZE !== 0)
    throw new PamiError("PAMIR_INVAL", `memoryBase is ${memoryBase}, not a multiple of ${L.FALSE_SHARING_SIZE}`);
  checkInteger("bytes", bytes, 1, length - memoryBase);
  checkFree(memory, memoryBase);
  const map = mapIn(limits, memoryBase, bytes, heapBytes);
  memory.bytes.fill(0, memoryBase, map.heapBase);
  memory.bytes.fill(0, map.end, map.end + TaskErrors.bytesFor(map.locals));
  formatMemory(map, memory, hardwareThreads(), 0, length / WASM_PAGE);
  return { map, shared, memory, isWasm: true };
}

/** @throws PAMIR_INVAL */
function checkMemory(memory: unknown): asserts memory is WebAssembly.Memory {
  // The memory may be of another realm.
  const isOne = (value: unknown, name: string): boolean => Object.prototype.toString.call(value) === `[object ${name}]`;
  if (!isOne(memory, "WebAssembly.Memory"))
    throw new PamiError("PAMIR_INVAL", `memory is ${show(memory)}, not a WebAssembly.Memory`);
  if (!isOne((memory as WebAssembly.Memory).buffer, "SharedArrayBuffer"))
    throw new PamiError("PAMIR_INVAL", "memory is not shared: link the program with --shared-memory");
}

/** @throws PAMIR_INVAL a job is in the block */
function checkFree(memory: Memory, base: number): void {
  const word = (pointer: number): number => (memory.words[pointer >>> 2] as number) >>> 0;
  if (base + L.JOB_SIZE > memory.bytes.length || word(base + L.JOB_MAGIC_OFFSET) !== L.JOB_MAGIC) return;
  const refuse = (why: string): never => {
    const text = `memoryBase is ${base}, where a job is: ${why}. If that job is over, set the word at ${base} to 0`;
    throw new PamiError("PAMIR_INVAL", text);
  };
  if (word(base + L.JOB_HASH_OFFSET) !== LAYOUT_HASH >>> 0) refuse("another version of pamir has made it");
  const map = readMap(memory, base);
  const slots = Array.from({ length: word(base + L.JOB_STARTED_OFFSET) }, (_, task) => taskSlot(map, task));
  if (map.engine) slots.push(engineSlot(map));
  // SYNC task-state (look): pairs with the ends of tasks.
  const sync = sharedAtomics(memory);
  const up = slots.findIndex((slot) => sync.loadWord(slot + L.TASK_STATE_OFFSET) < L.TASK_CLOSED);
  if (up >= 0) refuse(up === map.tasks ? "its engine thread has not ended" : `its task ${up} has not ended`);
}

/** @throws PAMIR_MEMORY */
function mapIn(limits: Limits, base: number, bytes: number, heapBytes: number | undefined): MemoryMap {
  const of = (pages: number): MemoryMap => memoryMap({ ...limits, heapBytes: pages * L.PAGE_SIZE }, base);
  const needed = ({ end, locals }: MemoryMap): number => end + TaskErrors.bytesFor(locals) - base;
  const least = Math.ceil((heapBytes ?? limits.laneBytes + L.LANE_BYTES_GROWN) / L.PAGE_SIZE);
  // Each page has a word in the heap's table; behind that table, at most a page is left empty.
  let pages = heapBytes === undefined ? Math.floor((bytes - needed(of(0))) / (L.PAGE_SIZE + 4)) + 1 : least;
  while (pages > least && needed(of(pages)) > bytes) pages--;
  const map = of(Math.max(pages, least));
  if (needed(map) <= bytes) return map;
  const heap = heapBytes === undefined ? `the smallest heap of ${map.heapBytes}` : `heapBytes ${map.heapBytes}`;
  throw new PamiError(
    "PAMIR_MEMORY",
    `bytes is ${bytes}: ${map.locals} tasks of ${map.contexts} contexts with ${heap} need ${needed(map)} bytes at ${base}`,
  );
}
