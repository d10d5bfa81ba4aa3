// Memory regions: what one-sided operations read and write. A region is an extent of the heap with an entry that its
// handle names; an entry and its pages are used again only when no context can still be at them.
import {
  CONTEXT_NOTICE_SEEN_OFFSET,
  CONTEXT_OPEN,
  CONTEXT_STATE_OFFSET,
  NONE,
  OPEN_BUSY,
  OPEN_NO_MEMORY,
  PAGE_SIZE,
  TASK_CLOSED,
  TASK_NOTICE_OFFSET,
  TASK_STATE_OFFSET,
} from "../../assembly/layout.js";
import { seqDelta } from "../../assembly/seq.js";
import { hasEngineSeen, tellEngine } from "../engine/engine.js";
import type { Kernel, Memory } from "../kernel/kernel.js";
import { isToSpare, keptBytes } from "../memory/heap.js";
import { contextBlock, type MemoryMap, ordinalOf, taskSlot } from "../memory/map.js";
import { checkInteger, PamiError } from "./error.js";
import { RegionWatch } from "./watch.js";

/**
 * Names a region in every task of the job: generation × 2^20 + index, a number of up to 52 bits. Send it as a f64.
 */
export type RegionHandle = number;

const HANDLE_INDEX_SIZE = 2 ** 20;
const HANDLE_LIMIT = HANDLE_INDEX_SIZE * 2 ** 32;
/** Looks at a heap that somebody else has locked: each is some 10 µs, and the holder needs a fraction of one. */
const BUSY_TRIES = 10_000;

/** Index of the entry that a handle names, and its generation; NONE for what is no handle. */
export function indexOf(handle: RegionHandle): number {
  return Number.isInteger(handle) && handle >= 0 && handle < HANDLE_LIMIT ? handle % HANDLE_INDEX_SIZE : NONE;
}

export function generationOf(handle: RegionHandle): number {
  return Math.floor(handle / HANDLE_INDEX_SIZE) >>> 0;
}

/** A piece of the job's memory that its owner reads and writes as it likes, and others by one-sided operations. */
export class MemRegion {
  /** The region's bytes. After close() they may show anything. */
  readonly bytes: Uint8Array<SharedArrayBuffer>;
  /** Bytes of the region. */
  readonly length: number;
  /** For other tasks: send it to them in a message. */
  readonly handle: RegionHandle;
  /** @internal */
  readonly index: number;
  /** @internal */
  readonly generation: number;
  readonly #close: (region: MemRegion) => void;
  #closed = false;

  /** @internal */
  constructor(
    bytes: Uint8Array<SharedArrayBuffer>,
    index: number,
    generation: number,
    close: (region: MemRegion) => void,
  ) {
    this.bytes = bytes;
    this.length = bytes.length;
    this.index = index;
    this.generation = generation;
    this.handle = generation * HANDLE_INDEX_SIZE + index;
    this.#close = close;
  }

  /** Whether close() has been called. */
  get closed(): boolean {
    return this.#closed;
  }

  /**
   * Gives the region back: from now on its handle is stale everywhere. Its bytes are used again once every context of the
   * job has passed an `advance()` that began after this, and this task then hears of a change (of another region, or
   * task), or needs memory. A second call does nothing.
   */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#close(this);
  }

  /** close(), at the end of a block that says `using`. */
  [Symbol.dispose](): void {
    this.close();
  }
}

/** Whether a context has acknowledged a notice, or has ended, or is not open yet: it is at nothing that was closed before. */
export function hasAcknowledged(kernel: Kernel, map: MemoryMap, ordinal: number, notice: number): boolean {
  if (kernel.loadWord(taskSlot(map, Math.floor(ordinal / map.contexts)) + TASK_STATE_OFFSET) >= TASK_CLOSED)
    return true;
  const block = contextBlock(map, ordinal);
  if (kernel.loadWord(block + CONTEXT_STATE_OFFSET) !== CONTEXT_OPEN) return true;
  return seqDelta(kernel.loadWord(block + CONTEXT_NOTICE_SEEN_OFFSET), notice) >= 0;
}

/** A closed region whose entry and pages may still be in use. */
interface Closed {
  readonly index: number;
  readonly extent: number;
  readonly bytes: number;
  /** What each task's notice must have reached in each of its contexts. */
  readonly notices: readonly number[];
  /** And the engine thread's. */
  readonly engineNotice: number;
}

/** Where an open region lies. */
export interface OpenRegion {
  readonly index: number;
  readonly generation: number;
  readonly pointer: number;
  readonly length: number;
}

/** The regions of one task. */
export class RegionTable {
  readonly #kernel: Kernel;
  readonly #memory: Memory;
  readonly #map: MemoryMap;
  readonly #task: number;
  readonly #free: number[] = [];
  /** Those that are open, the one that was found last first; not the regions themselves, of which nobody may know any more. */
  readonly #open: OpenRegion[] = [];
  #used = 0;
  #closed: Closed[] = [];
  readonly #watch: RegionWatch | undefined;

  /** @param debug warns of regions that are never closed */
  constructor(kernel: Kernel, memory: Memory, map: MemoryMap, task: number, debug: boolean) {
    this.#kernel = kernel;
    this.#memory = memory;
    this.#map = map;
    this.#task = task;
    this.#watch = debug ? new RegionWatch(task) : undefined;
  }

  /**
   * @param isOurs pamir's own, which nobody has to close
   * @throws PAMIR_INVAL, PAMIR_NO_MEMORY
   */
  create(bytes: number, isOurs = false): MemRegion {
    const { job, regions, heapPages } = this.#map;
    checkInteger("bytes of a region", bytes, 1, heapPages * PAGE_SIZE);
    this.reclaim();
    const index = this.#takeIndex();
    const extent = index === NONE ? OPEN_NO_MEMORY : this.#allocate(bytes);
    if (extent === OPEN_NO_MEMORY) {
      if (index !== NONE) this.#free.push(index);
      const waiting = this.#closed.reduce((sum, closed) => sum + closed.bytes, 0);
      const free = this.#kernel.heapFreePages(job) * PAGE_SIZE;
      const kept = keptBytes(this.#kernel, this.#map);
      throw new PamiError(
        "PAMIR_NO_MEMORY",
        index === NONE
          ? `a task has at most ${regions} regions; ${this.#closed.length} closed ones wait for contexts to advance`
          : `no ${bytes} bytes in one piece: ${free} are free, of which ${kept} are kept for lanes; ` +
              `${waiting} of closed regions wait for contexts to advance`,
      );
    }
    const generation = this.#kernel.regionOpen(job, index, extent, bytes);
    const view = this.#memory.bytes.subarray(extent, extent + bytes);
    const region = new MemRegion(view, index, generation, (closed) => this.#close(closed, extent));
    if (!isOurs) this.#watch?.opened(region);
    if (!isOurs) this.#open.push({ index, generation, pointer: extent, length: bytes });
    return region;
  }

  /** The open region of this task in which all bytes of a view lie, or undefined. */
  find({ buffer, byteOffset, length }: Uint8Array): OpenRegion | undefined {
    if (buffer !== this.#memory.buffer) return undefined;
    const place = this.#open.findIndex(
      (region) => byteOffset >= region.pointer && byteOffset + length <= region.pointer + region.length,
    );
    const found = this.#open[place];
    if (found === undefined) return undefined;
    this.#open[place] = this.#open[0] as OpenRegion;
    this.#open[0] = found;
    return found;
  }

  /** The client closes: what is open goes with the task. */
  end(): void {
    this.#watch?.report();
  }

  /** Gives back what no context can be at any more. */
  reclaim(): void {
    if (this.#closed.length === 0) return;
    const { job } = this.#map;
    this.#closed = this.#closed.filter((closed) => {
      if (!this.#isUnused(closed)) return true;
      this.#kernel.heapFree(job, closed.extent);
      this.#free.push(closed.index);
      return false;
    });
  }

  #takeIndex(): number {
    const { regions } = this.#map;
    const free = this.#free.pop();
    if (free !== undefined) return free;
    return this.#used < regions ? this.#task * regions + this.#used++ : NONE;
  }

  #allocate(bytes: number): number {
    const pages = Math.ceil(bytes / PAGE_SIZE);
    if (!isToSpare(this.#kernel, this.#map, pages * PAGE_SIZE)) return OPEN_NO_MEMORY;
    for (let tries = 0; tries < BUSY_TRIES; tries++) {
      const extent = this.#kernel.regionAllocate(this.#map.job, pages, this.#task);
      if (extent !== OPEN_BUSY) return extent;
    }
    throw new PamiError("PAMIR_BUSY", `the heap was locked at each of ${BUSY_TRIES} attempts: try again`);
  }

  #close(region: MemRegion, extent: number): void {
    const { job, tasks } = this.#map;
    this.#watch?.closed(region);
    const place = this.#open.findIndex(({ index }) => index === region.index);
    if (place >= 0) this.#open.splice(place, 1);
    this.#kernel.regionClose(job, region.index);
    // SYNC N (close): the entry is closed before each notice; a context that has seen the notice finds it closed.
    const notices = Array.from({ length: tasks }, (_, task) => {
      const slot = taskSlot(this.#map, task);
      const notice = (this.#kernel.addWord(slot + TASK_NOTICE_OFFSET, 1) + 1) >>> 0;
      this.#kernel.ring(slot);
      return notice;
    });
    const engineNotice = tellEngine(this.#kernel, this.#map);
    this.#closed.push({ index: region.index, extent, bytes: region.length, notices, engineNotice });
  }

  /** Whether every context, and the engine thread, has acknowledged the notice of the closing, or ended. */
  #isUnused({ notices, engineNotice }: Closed): boolean {
    const map = this.#map;
    if (!hasEngineSeen(this.#kernel, map, engineNotice)) return false;
    return notices.every((notice, task) => {
      for (let context = 0; context < map.contexts; context++) {
        if (!hasAcknowledged(this.#kernel, map, ordinalOf(map, task, context), notice)) return false;
      }
      return true;
    });
  }
}
