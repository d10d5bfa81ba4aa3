// Memory regions: what one-sided operations read and write. A region is an extent of the heap with an entry that its
// handle names; an entry and its pages are used again only when no context can still be at them.
import { NONE, OPEN_BUSY, OPEN_NO_MEMORY, PAGE_SIZE, TASK_KEPT_OFFSET } from "../../assembly/layout.js";
import { checkInteger, PamiError } from "../core/error.js";
import { MemRegion, type RegionState } from "../core/region.js";
import type { Kernel, Memory } from "../kernel/kernel.js";
import { isToSpare, keptBytes } from "./heap.js";
import { type MemoryMap, taskSlot } from "./map.js";

/** Looks at a heap that somebody else has locked: each is some 10 µs, and the holder needs a fraction of one. */
const BUSY_TRIES = 10_000;

/** One grace period: what each task's contexts, and the engine thread, must have acknowledged. */
export interface GracePeriod {
  readonly notices: readonly number[];
  readonly engineNotice: number;
}

/** Tells when no context, and no engine, can be using something that was closed. */
export interface GracePeriods {
  /** Begins one, and tells every task. */
  begin(): GracePeriod;
  /** Whether every context has passed an `advance()` that began after it. */
  isOver(period: GracePeriod): boolean;
}

/** Hears of the regions of a task that its user opens and closes. */
export interface RegionObserver {
  /** @param token stands for the region when it is closed */
  opened(region: MemRegion, token: object): void;
  closed(index: number, token: object): void;
  /** The task closes its client. */
  report(): void;
}

/** What a region table is made from. */
export interface RegionTableParts {
  readonly kernel: Kernel;
  readonly memory: Memory;
  readonly map: MemoryMap;
  readonly task: number;
  readonly grace: GracePeriods;
  /** Bytes that it may keep of what it receives (default 0). */
  readonly keptMax?: number;
  /** Gives the heap back what this task's pool has idle. @returns whether it had any */
  readonly trim?: () => boolean;
  readonly watch?: RegionObserver | undefined;
}

/** A closed region whose entry and pages may still be in use. */
interface Closed {
  readonly index: number;
  readonly extent: number;
  readonly bytes: number;
  /** What must be over before they are used again. */
  readonly grace: GracePeriod;
}

/** Where an open region lies. */
export interface OpenRegion {
  readonly index: number;
  readonly generation: number;
  readonly pointer: number;
  readonly length: number;
}

/** As its table knows it. */
interface Entry extends OpenRegion {
  readonly extent: number;
  readonly shared: RegionState;
  /** Whether it was received, and is counted as kept. */
  readonly isKept: boolean;
}

/** A region that is given away with a message. */
export class Gift {
  /** Pointer to its extent. */
  readonly extent: number;
  readonly #accept: () => void;
  readonly #free: () => void;
  #state: "the caller's" | "the message's" | "passed" = "the caller's";

  constructor(extent: number, accept: () => void, free: () => void) {
    this.extent = extent;
    this.#accept = accept;
    this.#free = free;
  }

  /** The message is accepted: the caller's region is closed. */
  accept(): void {
    if (this.#state !== "the caller's") return;
    this.#state = "the message's";
    this.#accept();
  }

  /** The extent goes with the message's record. */
  pass(): void {
    this.#state = "passed";
  }

  /** The message is over: an extent that has not gone with it is freed. */
  drop(): void {
    if (this.#state !== "the message's") return;
    this.#state = "passed";
    this.#free();
  }
}

/** The regions of one task. */
export class RegionTable {
  readonly #kernel: Kernel;
  readonly #memory: Memory;
  readonly #map: MemoryMap;
  readonly #task: number;
  readonly #free: number[] = [];
  /** Those that are open, the one that was found last first; not the regions themselves, of which nobody may know any more. */
  readonly #open: Entry[] = [];
  #used = 0;
  /** Bytes of the extents that were received and are kept, and how many they may be. */
  #kept = 0;
  readonly #keptMax: number;
  readonly #trim: () => boolean;
  readonly #grace: GracePeriods;
  #closed: Closed[] = [];
  readonly #watch: RegionObserver | undefined;

  constructor({ kernel, memory, map, task, grace, keptMax = 0, trim = () => false, watch }: RegionTableParts) {
    this.#kernel = kernel;
    this.#memory = memory;
    this.#map = map;
    this.#task = task;
    this.#grace = grace;
    this.#keptMax = keptMax;
    this.#trim = trim;
    this.#watch = watch;
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
    return this.#enter(index, extent, extent, bytes, isOurs, false);
  }

  /**
   * Opens a region over a payload in a buffer, whose extent this task has received.
   * @param owner the task that has sent it
   * @param told called once the extent is this task's
   * @throws PAMIR_NO_MEMORY: it keeps as much as it may already, or has no region left
   */
  adopt(owner: number, extent: number, place: number, bytes: number, told: () => void): MemRegion {
    const { job, regions } = this.#map;
    this.reclaim();
    const size = extentBytes(place - extent + bytes);
    if (this.#kept + size > this.#keptMax) {
      throw new PamiError(
        "PAMIR_NO_MEMORY",
        `keep() of ${bytes} bytes: this task keeps ${this.#kept} of ${this.#keptMax} bytes that it may; close() some, or copy`,
      );
    }
    const index = this.#takeIndex();
    if (index === NONE) throw new PamiError("PAMIR_NO_MEMORY", `keep(): a task has at most ${regions} regions`);
    this.#kernel.extentPass(job, extent, owner, this.#task);
    told();
    this.#countKept(size);
    return this.#enter(index, extent, place, bytes, false, true);
  }

  /** Frees an extent that was given to this task with a message, and is not kept. */
  release(owner: number, extent: number, told: () => void): void {
    const { job } = this.#map;
    this.#kernel.extentPass(job, extent, owner, this.#task);
    told();
    this.#kernel.heapFree(job, extent);
  }

  /**
   * The region of a view, to be given away.
   * @throws PAMIR_INVAL: the view lies in no region, or others may be at it
   */
  give(view: Uint8Array): Gift {
    const entry = this.#find(view);
    if (entry === undefined) {
      throw new PamiError("PAMIR_INVAL", `transfer of a payload that lies in no open region of task ${this.#task}`);
    }
    if (entry.shared.exposed) {
      throw new PamiError(
        "PAMIR_INVAL",
        "transfer of a region whose handle was read, or that was named in a one-sided operation: others may be at it",
      );
    }
    const { job } = this.#map;
    const accept = (): void => {
      entry.shared.closed = true;
      this.#leave(entry);
      this.#free.push(entry.index);
    };
    return new Gift(entry.extent, accept, () => this.#kernel.heapFree(job, entry.extent));
  }

  #enter(index: number, extent: number, place: number, bytes: number, isOurs: boolean, isKept: boolean): MemRegion {
    const generation = this.#kernel.regionOpen(this.#map.job, index, place, bytes);
    const view = this.#memory.bytes.subarray(place, place + bytes);
    // V8's fill() stores byte by byte into shared memory: 1 MiB in 370 µs; the kernel takes 10, and converts `value` alike.
    // Not enumerable: the bytes compare equal to others.
    Object.defineProperty(view, "fill", {
      value: (value: number, start = 0, end = bytes) => {
        if (end < start || end > bytes || start !== start >>> 0)
          return this.#memory.bytes.fill.call(view, value, start, end);
        this.#kernel.fillBytes(place + start, value, end - start);
        return view;
      },
    });
    const shared = { closed: false, exposed: isOurs };
    const entry = { index, generation, pointer: place, length: bytes, extent, shared, isKept };
    const region = new MemRegion(view, index, generation, () => this.#close(entry), shared);
    if (!isOurs) this.#watch?.opened(region, shared);
    if (!isOurs) this.#open.push(entry);
    return region;
  }

  /** The open region of this task in which all bytes of a view lie, or undefined. Others may be at it from now on. */
  find(view: Uint8Array): OpenRegion | undefined {
    const found = this.#find(view);
    if (found !== undefined) found.shared.exposed = true;
    return found;
  }

  #find({ buffer, byteOffset, length }: Uint8Array): Entry | undefined {
    if (buffer !== this.#memory.buffer) return undefined;
    const place = this.#open.findIndex(
      (region) => byteOffset >= region.pointer && byteOffset + length <= region.pointer + region.length,
    );
    const found = this.#open[place];
    if (found === undefined) return undefined;
    this.#open[place] = this.#open[0] as Entry;
    this.#open[0] = found;
    return found;
  }

  #countKept(bytes: number): void {
    this.#kept += bytes;
    this.#memory.words[(taskSlot(this.#map, this.#task) + TASK_KEPT_OFFSET) >>> 2] = this.#kept;
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
      if (!this.#grace.isOver(closed.grace)) return true;
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
    const isThere = (): boolean => isToSpare(this.#kernel, this.#map, pages * PAGE_SIZE);
    if (!isThere() && !(this.#trim() && isThere())) return OPEN_NO_MEMORY;
    const extent = this.#take(pages);
    return extent === OPEN_NO_MEMORY && this.#trim() ? this.#take(pages) : extent;
  }

  #take(pages: number): number {
    for (let tries = 0; tries < BUSY_TRIES; tries++) {
      const extent = this.#kernel.regionAllocate(this.#map.job, pages, this.#task);
      if (extent !== OPEN_BUSY) return extent;
    }
    throw new PamiError("PAMIR_BUSY", `the heap was locked at each of ${BUSY_TRIES} attempts: try again`);
  }

  /** A region is one no more. */
  #leave(entry: Entry): void {
    this.#watch?.closed(entry.index, entry.shared);
    const place = this.#open.indexOf(entry);
    if (place >= 0) this.#open.splice(place, 1);
    this.#kernel.regionClose(this.#map.job, entry.index);
    if (entry.isKept) this.#countKept(-extentBytes(entry.pointer - entry.extent + entry.length));
  }

  #close(entry: Entry): void {
    const { job } = this.#map;
    this.#leave(entry);
    if (!entry.shared.exposed) {
      // Nothing can be at it but this task: it is free at once, and no other task has to hear of it.
      this.#kernel.heapFree(job, entry.extent);
      this.#free.push(entry.index);
      return;
    }
    this.#closed.push({ index: entry.index, extent: entry.extent, bytes: entry.length, grace: this.#grace.begin() });
  }
}

/** Bytes of an extent with so many. */
function extentBytes(bytes: number): number {
  return Math.ceil(bytes / PAGE_SIZE) * PAGE_SIZE;
}
