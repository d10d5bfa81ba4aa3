// Shared memory, the origin's side of large payloads: a task's pool of buffers. The origin copies a payload once, into an
// extent of the heap. The target's handler reads it in place. Then the extent comes back, or the target keeps it.
//
// The pool keeps its extents, so that their pages stay warm, and uses them in turn. An extent that was written 4 MiB ago has
// left the writer's second-level cache. From that cache, a reader on another core gets each line slowly (64 KiB: 8 GB/s,
// else 34).
//
// Invariants: a slot is in one list at a time: free, idle (of its size), or a flight. A pool is never larger than its task's
// share of the heap. A flight has at most POOL_UNREAD_MAX bytes, or two buffers.
import * as L from "../../../assembly/layout.js";
import type { Kernel, Memory } from "../../kernel/kernel.js";
import { isToSpare } from "../../memory/heap.js";
import { type MemoryMap, taskSlot } from "../../memory/map.js";
import { type Buffers, TAKE_LATER, TAKE_NO_MEMORY, type TransportHeap, type UnreadBuffers } from "../transport.js";

/** Sizes of buffers: 4, 5, 6 and 7 pages, then each of them times 2, 4 and so on, up to 4 GiB. */
const SIZE_COUNT = 80;
/** In place of a size: an extent that is given away, and belongs to no pool. */
const GIVEN = 255;
/** No slot: the end of a list. */
const END = -1;
/** Attempts to lock the heap: each looks at the lock for some 10 µs. */
const LOCK_TRIES = 16;

/** Slots on their way from one context to one target, in the order sent. */
interface ShmFlight extends UnreadBuffers {
  head: number;
  tail: number;
  unread: number;
  /** Whether its context is closed: it ends with the last buffer. */
  closed: boolean;
}

/** The number of the least size that has so many pages. */
function sizeOf(pages: number): number {
  if (pages <= 4) return 0;
  const shift = 29 - Math.clz32(pages - 1);
  return 4 * shift + ((pages - 1) >>> shift) - 3;
}

/** Bytes of a size. */
function bytesOf(size: number): number {
  return ((4 + (size & 3)) << (size >>> 2)) * L.PAGE_SIZE;
}

/** The slots, once there are any: 10 KB of ordinary memory, which a task that sends nothing large does without. */
class Slots {
  /** Its memory is used again only once no target can access it any more. */
  readonly block: { close(): void };
  /** Pointer to the pool block. */
  readonly pool: number;
  readonly extents = new Uint32Array(L.POOL_SLOTS);
  readonly sizes = new Uint8Array(L.POOL_SLOTS);
  readonly next = new Int16Array(L.POOL_SLOTS);
  /** First and last of the idle buffers of each size. */
  readonly heads = new Int16Array(SIZE_COUNT).fill(END);
  readonly tails = new Int16Array(SIZE_COUNT).fill(END);
  free = 0;

  constructor(block: { readonly pointer: number; close(): void }) {
    this.block = block;
    this.pool = block.pointer;
    for (let slot = 0; slot < L.POOL_SLOTS; slot++) this.next[slot] = slot + 1 < L.POOL_SLOTS ? slot + 1 : END;
  }
}

/** The pool of one task: of all its contexts, to all their targets. */
export class ShmBuffers implements Buffers {
  readonly #kernel: Kernel;
  readonly #memory: Memory;
  readonly #map: MemoryMap;
  readonly #task: number;
  /** Most bytes of the pool. */
  readonly share: number;
  readonly #heap: TransportHeap;
  #slots: Slots | undefined;
  /** Bytes of the pool: idle, and in flight. */
  #bytes = 0;
  #flights: ShmFlight[] = [];
  /** Targets that wait for a buffer. */
  #waiting = 0;
  /** The heap had no piece for a buffer, and the pool has given nothing back since. */
  #isCramped = false;
  /** Free pages of the heap at that time. */
  #crampedAt = 0;

  constructor(kernel: Kernel, memory: Memory, map: MemoryMap, task: number, heap: TransportHeap) {
    this.#kernel = kernel;
    this.#memory = memory;
    this.#map = map;
    this.#task = task;
    this.#heap = heap;
    const pages = (map.heapBytes >>> L.POOL_HEAP_SHIFT) / map.locals / L.PAGE_SIZE;
    this.share = Math.floor(pages) * L.PAGE_SIZE;
  }

  /** Whether a payload may ever go in a buffer. */
  fits(bytes: number): boolean {
    return bytes <= this.share && bytesOf(sizeOf(pagesOf(bytes))) <= this.share;
  }

  /** The buffers on their way from a context to a target. */
  flight(): ShmFlight {
    const flight: ShmFlight = { head: END, tail: END, unread: 0, closed: false };
    this.#flights.push(flight);
    return flight;
  }

  /** A slot with a buffer for a payload, or TAKE_…. The caller sends it, or gives it back. */
  take(flight: ShmFlight, bytes: number): number {
    if (!this.fits(bytes)) return TAKE_NO_MEMORY;
    const slots = this.#slots ?? this.#open();
    if (slots === undefined) return TAKE_NO_MEMORY;
    const size = sizeOf(pagesOf(bytes));
    this.#harvest(slots, flight);
    if (isFull(flight, bytesOf(size))) return TAKE_LATER;
    if (this.#bytes >= L.POOL_FOOTPRINT || !this.#grow(slots, size)) {
      if (slots.heads[size] === END) this.#makeIdle(slots, size);
    }
    const slot = slots.heads[size] as number;
    if (slot === END) return flight.head === END ? TAKE_NO_MEMORY : TAKE_LATER;
    const next = slots.next[slot] as number;
    slots.heads[size] = next;
    if (next === END) slots.tails[size] = END;
    return slot;
  }

  /**
   * Whether take() would give a buffer, as far as one can tell without taking memory for it. With nothing in flight it is
   * true: if there is no memory, the payload goes in packets.
   */
  mayTake(flight: ShmFlight, bytes: number): boolean {
    const slots = this.#slots;
    if (slots === undefined) return true;
    this.#harvest(slots, flight);
    const size = sizeOf(pagesOf(bytes));
    if (isFull(flight, bytesOf(size))) return false;
    if (flight.head === END || slots.heads[size] !== END) return true;
    this.#harvestAll(slots);
    if (slots.heads[size] !== END) return true;
    const fits = !this.#isCramped && this.#bytes + bytesOf(size) <= this.share;
    return fits && isToSpare(this.#kernel, this.#map, bytesOf(size));
  }

  /** As mayTake(), for a payload that must not go in packets: whether there is memory. */
  hasMemory(flight: ShmFlight, bytes: number): boolean {
    if (!this.fits(bytes)) return false;
    const size = bytesOf(sizeOf(pagesOf(bytes)));
    const slots = this.#slots;
    if (slots === undefined) return this.#hasToSpare(L.PAGE_SIZE + size);
    if (!this.mayTake(flight, bytes)) return false;
    this.#harvestAll(slots);
    // take() frees what is idle of other sizes where it needs memory.
    if (slots.heads.some((first) => first !== END)) return true;
    if (slots.free === END || this.#bytes + size > this.share) return false;
    // What other tasks have freed since may have made a piece that is large enough.
    const isCramped = this.#isCramped && this.#kernel.heapFreePages(this.#map.job) === this.#crampedAt;
    return !isCramped && this.#hasToSpare(size);
  }

  #hasToSpare(bytes: number): boolean {
    if (isToSpare(this.#kernel, this.#map, bytes)) return true;
    this.#heap.reclaimRegions();
    return isToSpare(this.#kernel, this.#map, bytes);
  }

  /** Bytes that a target takes in buffers now. A larger payload may get no buffer. */
  room(flight: ShmFlight): number {
    const slots = this.#slots;
    if (slots !== undefined) this.#harvest(slots, flight);
    const most = Math.min(L.POOL_UNREAD_MAX - flight.unread, this.share - this.#bytes);
    let size = most < bytesOf(0) ? -1 : sizeOf(pagesOf(most));
    if (size >= 0 && bytesOf(size) > most) size--;
    if (size >= 0 && isToSpare(this.#kernel, this.#map, bytesOf(size))) return bytesOf(size);
    if (slots === undefined) return 0;
    for (size = SIZE_COUNT - 1; size >= 0; size--) {
      if (slots.heads[size] !== END && !isFull(flight, bytesOf(size))) return bytesOf(size);
    }
    return 0;
  }

  /** A slot for an extent of this task that is given to a target, or END. */
  give(extent: number): number {
    const slots = this.#slots ?? this.#open();
    if (slots === undefined) return END;
    if (slots.free === END) this.#harvestAll(slots);
    const slot = takeSlot(slots);
    if (slot === END) return END;
    slots.extents[slot] = extent;
    slots.sizes[slot] = GIVEN;
    return slot;
  }

  /** Pointer to the extent of a slot. */
  extentOf(slot: number): number {
    return (this.#slots as Slots).extents[slot] as number;
  }

  /** Pointer to a slot's word. */
  pointerOf(slot: number): number {
    return (this.#slots as Slots).pool + L.POOL_SLOTS_OFFSET + 4 * slot;
  }

  /** The slot's record is about to be committed. */
  send(flight: ShmFlight, slot: number): void {
    const slots = this.#slots as Slots;
    const { next, sizes } = slots;
    this.#kernel.storeWord(this.pointerOf(slot), L.BUFFER_SENT);
    next[slot] = END;
    if (flight.tail === END) flight.head = slot;
    else next[flight.tail] = slot;
    flight.tail = slot;
    if (sizes[slot] !== GIVEN) flight.unread += bytesOf(sizes[slot] as number);
  }

  /** Gives back a slot that was taken and is not sent. */
  giveBack(slot: number): void {
    this.#idle(this.#slots as Slots, slot);
  }

  /** One target more, or one fewer, waits for a buffer, and is to be woken. */
  want(change: 1 | -1): void {
    const before = this.#waiting;
    this.#waiting = before + change;
    if (this.#slots !== undefined && (before === 0 || this.#waiting === 0)) {
      this.#kernel.bufferWant(this.#slots.pool, Math.min(this.#waiting, 1));
    }
  }

  /** A flight's target has ended, and reads nothing any more: the pool takes back the buffers that it has not kept. */
  end(flight: ShmFlight): void {
    const slots = this.#slots;
    if (slots === undefined) return;
    this.#harvest(slots, flight);
    const { job } = this.#map;
    for (let slot = flight.head; slot !== END; ) {
      const next = slots.next[slot] as number;
      const extent = slots.extents[slot] as number;
      const isGiven = slots.sizes[slot] === GIVEN;
      // The target may have made itself the extent's owner, and ended before it stored BUFFER_GONE.
      const isOurs = this.#kernel.extentPass(job, extent, this.#task, isGiven ? L.NONE : this.#task) === 1;
      if (isOurs && !isGiven) this.#idle(slots, slot);
      else this.#lose(slots, slot);
      slot = next;
    }
    flight.head = END;
    flight.tail = END;
    flight.unread = 0;
    this.#forget(flight);
  }

  /** A flight's context has closed: its buffers come back as the target reads them. */
  close(flight: ShmFlight): void {
    flight.closed = true;
    if (flight.head === END) this.#forget(flight);
  }

  /** Gives idle buffers back to the heap. Returns whether there were any. */
  trim(): boolean {
    const slots = this.#slots;
    if (slots === undefined) return false;
    this.#harvestAll(slots);
    const before = this.#bytes;
    for (let size = 0; size < SIZE_COUNT; size++) while (this.#freeIdle(slots, size));
    if (this.#flights.every(({ head }) => head === END)) {
      slots.block.close();
      this.#slots = undefined;
    }
    return this.#bytes < before;
  }

  #forget(flight: ShmFlight): void {
    const place = this.#flights.indexOf(flight);
    if (place >= 0 && flight.closed) this.#flights.splice(place, 1);
  }

  /** Makes the pool block; undefined: the heap has no page for it. */
  #open(): Slots | undefined {
    const block = this.#heap.block(L.POOL_SIZE);
    if (block === undefined) return undefined;
    const pool = block.pointer;
    const { words } = this.#memory;
    words[(pool + L.POOL_WANTED_OFFSET) >>> 2] = 0;
    words[(pool + L.POOL_TASK_OFFSET) >>> 2] = taskSlot(this.#map, this.#task);
    words.fill(L.BUFFER_FREE, (pool + L.POOL_SLOTS_OFFSET) >>> 2, (pool + L.POOL_SIZE) >>> 2);
    this.#slots = new Slots(block);
    if (this.#waiting > 0) this.#kernel.bufferWant(pool, 1);
    return this.#slots;
  }

  #allocate(pages: number): number {
    for (let tries = 0; tries < LOCK_TRIES; tries++) {
      const extent = this.#kernel.regionAllocate(this.#map.job, pages, this.#task);
      if (extent !== L.OPEN_BUSY) return extent;
    }
    return L.OPEN_NO_MEMORY;
  }

  /** One more idle buffer of a size; false: there is no slot, or no memory for it. */
  #grow(slots: Slots, size: number): boolean {
    const bytes = bytesOf(size);
    if (this.#bytes + bytes > this.share || slots.free === END || !this.#hasToSpare(bytes)) return false;
    const extent = this.#allocate(bytes >>> L.PAGE_SHIFT);
    this.#isCramped = extent === L.OPEN_NO_MEMORY;
    if (this.#isCramped) {
      this.#crampedAt = this.#kernel.heapFreePages(this.#map.job);
      return false;
    }
    const slot = takeSlot(slots);
    slots.extents[slot] = extent;
    slots.sizes[slot] = size;
    this.#count(bytes);
    this.#idle(slots, slot);
    return true;
  }

  /** Makes a buffer of a size idle, if it can: a read one, else a new one, else a new one in place of idle ones. */
  #makeIdle(slots: Slots, size: number): void {
    this.#harvestAll(slots);
    if (slots.heads[size] !== END || this.#grow(slots, size)) return;
    for (let other = SIZE_COUNT - 1; other >= 0; other--) {
      while (this.#freeIdle(slots, other)) if (this.#grow(slots, size)) return;
    }
  }

  #harvestAll(slots: Slots): void {
    const closed = this.#flights.length;
    for (const flight of this.#flights) this.#harvest(slots, flight);
    if (closed > 0) this.#flights = this.#flights.filter((flight) => !flight.closed || flight.head !== END);
  }

  /** Takes back the buffers that a target has read, in the order sent. */
  #harvest(slots: Slots, flight: ShmFlight): void {
    const { next, sizes } = slots;
    for (let slot = flight.head; slot !== END; slot = flight.head) {
      // SYNC buffer-read (look): pairs with bufferRelease().
      const state = this.#kernel.loadWord(this.pointerOf(slot));
      if (state === L.BUFFER_SENT) return;
      flight.head = next[slot] as number;
      if (flight.head === END) flight.tail = END;
      const size = sizes[slot] as number;
      if (size !== GIVEN) flight.unread -= bytesOf(size);
      if (state === L.BUFFER_FREE && size !== GIVEN) this.#idle(slots, slot);
      else this.#lose(slots, slot);
    }
  }

  /** A buffer is idle, and is used again behind all others of its size. */
  #idle(slots: Slots, slot: number): void {
    const { next, heads, tails, sizes } = slots;
    const size = sizes[slot] as number;
    next[slot] = END;
    this.#isCramped = false;
    const last = tails[size] as number;
    if (last === END) heads[size] = slot;
    else next[last] = slot;
    tails[size] = slot;
  }

  /** A slot's extent does not belong to the pool any more. */
  #lose(slots: Slots, slot: number): void {
    const size = slots.sizes[slot] as number;
    if (size !== GIVEN) this.#count(-bytesOf(size));
    slots.next[slot] = slots.free;
    slots.free = slot;
  }

  /** Frees the idle buffer of a size that has been idle for longest; false: there is none. */
  #freeIdle(slots: Slots, size: number): boolean {
    const slot = slots.heads[size] as number;
    if (slot === END) return false;
    slots.heads[size] = slots.next[slot] as number;
    if (slots.heads[size] === END) slots.tails[size] = END;
    this.#kernel.heapFree(this.#map.job, slots.extents[slot] as number);
    this.#isCramped = false;
    this.#lose(slots, slot);
    return true;
  }

  /** Counts bytes of the pool, also in the task's slot, where other threads read it. */
  #count(bytes: number): void {
    this.#bytes += bytes;
    this.#memory.words[(taskSlot(this.#map, this.#task) + L.TASK_POOLED_OFFSET) >>> 2] = this.#bytes;
  }
}

function pagesOf(bytes: number): number {
  return Math.ceil(bytes / L.PAGE_SIZE);
}

/** Whether a target has too many unread bytes to get another buffer now. It may have two buffers, whatever their size. */
function isFull(flight: ShmFlight, bytes: number): boolean {
  return flight.unread > 0 && flight.unread + bytes > Math.max(L.POOL_UNREAD_MAX, 2 * bytes);
}

/** A free slot, or END. */
function takeSlot(slots: Slots): number {
  const slot = slots.free;
  if (slot !== END) slots.free = slots.next[slot] as number;
  return slot;
}
