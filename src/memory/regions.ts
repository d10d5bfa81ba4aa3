// Memory regions, which one-sided operations read and write. A region is an extent of the heap with an entry that its handle
// names. An entry and its pages are reused only when no context can still be using them.
import {
  NONE,
  OPEN_BUSY,
  OPEN_NO_MEMORY,
  PAGE_SIZE,
  REGION_OWN_OFFSET,
  REGION_SIZE,
  TASK_KEPT_OFFSET,
} from "../../assembly/layout.js";
import { checkInteger, PamiError } from "../core/error.js";
import { MemRegion, openState, type RegionState } from "../core/region.js";
import type { Kernel, Memory } from "../kernel/kernel.js";
import { isToSpare, keptBytes } from "./heap.js";
import { type MemoryMap, taskSlot } from "./map.js";

/** Attempts to allocate while another task holds the heap lock: each takes some 10 µs, the holder less than 1 µs. */
const BUSY_TRIES = 10_000;

/** One grace period: the notices that each task's contexts, and the engine thread, must have acknowledged. */
export interface GracePeriod {
  readonly notices: readonly number[];
  readonly engineNotice: number;
}

/** Tells when no context, and no engine, can be using a closed region any more. */
export interface GracePeriods {
  /** Begins a grace period, and notifies every task. */
  begin(): GracePeriod;
  /** Whether every context has ended an `advance()` that began after the period's begin. */
  isOver(period: GracePeriod): boolean;
}

/** A function of the API, as the stack of this thread knows it. */
export type PublicCall = (...given: never[]) => unknown;

/** Observes the regions that the user of a task opens and closes. */
export interface RegionObserver {
  /** @param token identifies the region when it is closed */
  opened(region: MemRegion, token: object): void;
  /** The place in the user's code from which this thread is in a call of the API. */
  placeOfCall(call: PublicCall): string;
  /** Calls something whose regions are made for a call that began at this place. */
  during<T>(place: string, make: () => T): T;
  closed(index: number, token: object): void;
  /** Called when the task closes its client. */
  report(): void;
}

/** The parts of a region table. */
export interface RegionTableParts {
  readonly kernel: Kernel;
  readonly memory: Memory;
  readonly map: MemoryMap;
  readonly task: number;
  readonly grace: GracePeriods;
  /** Most bytes of received buffers that the task may keep (default 0). */
  readonly keptMax?: number;
  /** Frees what is idle: buffers of this task's pool, scratch memory. @returns whether there was any */
  readonly trim?: () => boolean;
  readonly watch?: RegionObserver | undefined;
}

/** A closed region whose entry and pages may still be in use. */
interface Closed {
  readonly index: number;
  readonly extent: number;
  readonly bytes: number;
  /** The grace period to wait for before both are reused. */
  readonly grace: GracePeriod;
}

/** Where an open region lies. */
export interface OpenRegion {
  readonly index: number;
  readonly generation: number;
  readonly pointer: number;
  readonly length: number;
}

/** An open region in its table. */
interface Entry extends OpenRegion {
  /** NONE: its bytes are another program's, not the heap's. */
  readonly extent: number;
  readonly shared: RegionState;
  /** Whether the region is a received buffer, and counts as kept. */
  readonly isKept: boolean;
}

/** A region that its owner gives away with a message. */
export class GivenRegion {
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

  /** Closes the caller's region: the message is accepted. */
  accept(): void {
    if (this.#state !== "the caller's") return;
    this.#state = "the message's";
    this.#accept();
  }

  /** Hands the extent over with the message's record. */
  pass(): void {
    this.#state = "passed";
  }

  /** Frees the extent if the message has ended without handing it over. */
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
  /** The entries of open regions; the last one found comes first. Holds no MemRegion, so that those can be collected. */
  readonly #open: Entry[] = [];
  #used = 0;
  /** Bytes of the received extents that are kept, and their limit. */
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
   * @param isOurs whether pamir uses the region itself: then the user does not have to close it
   * @param isExposed whether others may use it from the start: then close() waits for them
   * @throws PAMIR_INVAL, PAMIR_NO_MEMORY, PAMIR_BUSY
   */
  create(bytes: number, isOurs = false, isExposed = isOurs): MemRegion {
    const { job, heapPages } = this.#map;
    checkInteger("bytes of a region", bytes, 1, heapPages * PAGE_SIZE);
    // The entry stays free if there is no memory, or the attempt throws.
    this.#free.push(this.#newIndex());
    const extent = this.#allocate(bytes);
    if (extent === OPEN_NO_MEMORY) {
      const waiting = this.#closed.reduce((sum, closed) => sum + closed.bytes, 0);
      const free = this.#kernel.heapFreePages(job) * PAGE_SIZE;
      const kept = keptBytes(this.#kernel, this.#map);
      throw new PamiError(
        "PAMIR_NO_MEMORY",
        `no ${bytes} bytes in one piece: ${free} are free, of which ${kept} are kept for lanes; ` +
          `${waiting} of closed regions wait for contexts to advance`,
      );
    }
    return this.#enter(this.#free.pop() as number, extent, extent, bytes, isOurs, false, isExposed);
  }

  /**
   * Opens a region over bytes that are another program's, not the heap's. Those that are not there yet are in no view.
   * @param isOurs as for create()
   * @throws PAMIR_NO_MEMORY: the task has no region left
   */
  over(place: number, bytes: number, isOurs = false): MemRegion {
    // Others may use it from the start: so it can't be given away, and close() waits for them.
    return this.#enter(this.#newIndex(), NONE, place, bytes, isOurs, false, true);
  }

  /**
   * Opens a region over a payload in a buffer that this task has received.
   * @param owner the task that sent the buffer
   * @param told called once this task owns the extent
   * @throws PAMIR_NO_MEMORY: the task may keep no more bytes, or has no region left
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

  /** Frees an extent that another task gave to this one with a message, and that this task does not keep. */
  release(owner: number, extent: number, told: () => void): void {
    const { job } = this.#map;
    this.#kernel.extentPass(job, extent, owner, this.#task);
    told();
    this.#kernel.heapFree(job, extent);
  }

  /**
   * The region of a view, to give it away.
   * @throws PAMIR_INVAL: the view lies in no region, or other tasks may be using the region
   */
  give(view: Uint8Array): GivenRegion {
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
    if (entry.shared.users > 0) {
      throw new PamiError(
        "PAMIR_INVAL",
        "transfer of a region in which a collective operation has a buffer: it is under way",
      );
    }
    const { job } = this.#map;
    const accept = (): void => {
      entry.shared.closed = true;
      this.#leave(entry);
      this.#free.push(entry.index);
    };
    return new GivenRegion(entry.extent, accept, () => this.#kernel.heapFree(job, entry.extent));
  }

  #enter(
    index: number,
    extent: number,
    place: number,
    bytes: number,
    isOurs: boolean,
    isKept: boolean,
    exposed = isOurs,
  ): MemRegion {
    // plain: owned until the region is open.
    this.#memory.words[(this.#map.regionsBase + index * REGION_SIZE + REGION_OWN_OFFSET) >>> 2] = Number(isOurs);
    const generation = this.#kernel.regionOpen(this.#map.job, index, place, bytes);
    const view = this.#memory.bytes.subarray(place, place + bytes);
    // V8's fill() stores byte by byte into shared memory: 370 µs for 1 MiB. The kernel takes 10 µs and treats `value` alike.
    // The property is not enumerable, so that views with equal bytes compare equal.
    Object.defineProperty(view, "fill", {
      value: (value: number, start = 0, end = bytes) => {
        if (end < start || end > bytes || start !== start >>> 0)
          return this.#memory.bytes.fill.call(view, value, start, end);
        this.#kernel.fillBytes(place + start, value, end - start);
        return view;
      },
    });
    const shared = openState(exposed);
    const entry = { index, generation, pointer: place, length: bytes, extent, shared, isKept };
    const region = new MemRegion(view, index, generation, () => this.#close(entry), shared);
    if (!isOurs) this.#watch?.opened(region, shared);
    if (!isOurs) this.#open.push(entry);
    return region;
  }

  /** The open region of this task that holds all bytes of a view, or undefined. From now on, other tasks may use it. */
  find(view: Uint8Array): OpenRegion | undefined {
    const found = this.#find(view);
    if (found !== undefined) found.shared.exposed = true;
    return found;
  }

  /** The state of the open region of this task that holds all bytes of a view; undefined: there is none. */
  stateOf(view: Uint8Array): RegionState | undefined {
    return this.#find(view)?.shared;
  }

  /** Keeps the region of a view open until letGo(). undefined: the view lies in no open region. */
  hold(view: Uint8Array): RegionState | undefined {
    const state = this.stateOf(view);
    if (state !== undefined) state.users++;
    return state;
  }

  #find(view: Uint8Array): Entry | undefined {
    if (view.buffer !== this.#memory.buffer) return undefined;
    const open = this.#open;
    const first = view.byteOffset;
    const end = first + view.length;
    // A loop makes no garbage, as findIndex() does: operations that are repeated come here.
    for (let place = 0; place < open.length; place++) {
      const entry = open[place] as Entry;
      if (first < entry.pointer || end > entry.pointer + entry.length) continue;
      open[place] = open[0] as Entry;
      open[0] = entry;
      return entry;
    }
    return undefined;
  }

  #countKept(bytes: number): void {
    this.#kept += bytes;
    this.#memory.words[(taskSlot(this.#map, this.#task) + TASK_KEPT_OFFSET) >>> 2] = this.#kept;
  }

  /** Ends the table when the client closes. The regions that are still open end with the task. */
  end(): void {
    this.#watch?.report();
  }

  /** Frees closed regions that no context can be using any more. */
  reclaim(): void {
    if (this.#closed.length === 0) return;
    const { job } = this.#map;
    this.#closed = this.#closed.filter((closed) => {
      if (!this.#grace.isOver(closed.grace)) return true;
      if (closed.extent !== NONE) this.#kernel.heapFree(job, closed.extent);
      this.#free.push(closed.index);
      return false;
    });
  }

  /** @throws PAMIR_NO_MEMORY */
  #newIndex(): number {
    this.reclaim();
    let index = this.#takeIndex();
    if (index === NONE && this.#trim()) index = this.#takeIndex();
    if (index !== NONE) return index;
    const text = `a task has at most ${this.#map.regions} regions; ${this.#closed.length} closed ones wait for contexts to advance`;
    throw new PamiError("PAMIR_NO_MEMORY", text);
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

  /** Closes a region's entry, and takes the region out of this table. */
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
      // Only this task can be using it: the region is free at once, and no other task needs a notice.
      this.#kernel.heapFree(job, entry.extent);
      this.#free.push(entry.index);
      return;
    }
    this.#closed.push({ index: entry.index, extent: entry.extent, bytes: entry.length, grace: this.#grace.begin() });
  }
}

/** Bytes of an extent for a number of bytes. */
function extentBytes(bytes: number): number {
  return Math.ceil(bytes / PAGE_SIZE) * PAGE_SIZE;
}
