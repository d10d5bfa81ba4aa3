// The region heap: extents of whole pages, described by one table word each (see HEAP in layout/job.ts).
// Invariants: the words reached from page 0 cover every page once. Only the lock's holder makes or joins free extents.
// The task that holds a used extent may free it with one store, without the lock.
import {
  EXTENT_FREE,
  EXTENT_LANE,
  EXTENT_OWNER_MASK,
  EXTENT_OWNER_SHIFT,
  EXTENT_PAGES_MASK,
  EXTENT_REGION,
  EXTENT_STATE_SHIFT,
  JOB_HEAP_BASE_OFFSET,
  JOB_HEAP_LOCK_OFFSET,
  JOB_HEAP_PAGES_OFFSET,
  JOB_HEAP_TABLE_OFFSET,
  NONE,
  OPEN_BUSY,
  OPEN_NO_MEMORY,
  PAGE_SHIFT,
} from "./layout";
import { exchangeIf, loadWord, storeWord } from "./sync";

/** Attempts to take the lock before giving up: a holder that keeps it longer has been descheduled. */
const LOCK_TRIES: u32 = 1000;

/**
 * Allocates an extent for a lane: first fit.
 * @returns its pointer; OPEN_NO_MEMORY; OPEN_BUSY if another task holds the lock (try again at the next advance).
 */
export function heapAllocate(job: usize, pages: u32, owner: u32): usize {
  return allocate(job, pages, owner, EXTENT_LANE);
}

/** As heapAllocate(), for a region. */
export function regionAllocate(job: usize, pages: u32, owner: u32): usize {
  return allocate(job, pages, owner, EXTENT_REGION);
}

/**
 * Has the system provide the pages of an extent: the host supplies it. Where processes map the memory from a file, the first
 * touch of a page that the system can't provide would end the process (SIGBUS). Elsewhere it does nothing.
 * @returns 0: it can't
 */
declare function reserve(extent: usize, bytes: u32): u32;

function allocate(job: usize, pages: u32, owner: u32, state: u32): usize {
  const lock = job + JOB_HEAP_LOCK_OFFSET;
  let tries = LOCK_TRIES;
  // SYNC heap-lock (take): pairs with the release below, and with markDead(), which frees a dead holder's lock.
  while (exchangeIf(lock, 0, owner + 1) != 0) {
    if (--tries == 0) return OPEN_BUSY;
  }
  const table = load<usize>(job, JOB_HEAP_TABLE_OFFSET);
  const total = load<u32>(job, JOB_HEAP_PAGES_OFFSET);
  let found: usize = OPEN_NO_MEMORY;
  let page: u32 = 0;
  while (page < total) {
    const entry = table + (page << 2);
    // SYNC extent-free (look): pairs with heapFree(). The last user's stores precede this allocation.
    let word = loadWord(entry);
    let length = word & EXTENT_PAGES_MASK;
    if (word >>> EXTENT_STATE_SHIFT == EXTENT_FREE) {
      let next = page + length;
      while (next < total) {
        const neighbor = loadWord(table + (next << 2));
        if (neighbor >>> EXTENT_STATE_SHIFT != EXTENT_FREE) break;
        length += neighbor & EXTENT_PAGES_MASK;
        next = page + length;
      }
      if (length >= pages) {
        if (length > pages) storeWord(entry + (pages << 2), length - pages);
        word = (state << EXTENT_STATE_SHIFT) | (owner << EXTENT_OWNER_SHIFT) | pages;
        storeWord(entry, word);
        found = load<usize>(job, JOB_HEAP_BASE_OFFSET) + (page << PAGE_SHIFT);
        break;
      }
      if (length != (word & EXTENT_PAGES_MASK)) storeWord(entry, length);
    }
    page += length;
  }
  // SYNC heap-lock (release): pairs with the take of the next allocator.
  storeWord(lock, 0);
  if (found == OPEN_NO_MEMORY || reserve(found, pages << PAGE_SHIFT)) return found;
  heapFree(job, found);
  return OPEN_NO_MEMORY;
}

/** Frees an extent. The caller holds it, and no thread reads it any more. */
export function heapFree(job: usize, extent: usize): void {
  const page = <u32>((extent - load<usize>(job, JOB_HEAP_BASE_OFFSET)) >>> PAGE_SHIFT);
  const entry = load<usize>(job, JOB_HEAP_TABLE_OFFSET) + (page << 2);
  // SYNC extent-free (free): pairs with the look of heapAllocate().
  storeWord(entry, loadWord(entry) & EXTENT_PAGES_MASK);
}

/**
 * Gives a region's extent to another task, or frees it, if `owner` still owns it.
 * @param to the task that owns it from now on; NONE: it is free
 * @returns 1; 0: `owner` does not own it (any more)
 */
export function extentPass(job: usize, extent: usize, owner: u32, to: u32): u32 {
  const page = <u32>((extent - load<usize>(job, JOB_HEAP_BASE_OFFSET)) >>> PAGE_SHIFT);
  const entry = load<usize>(job, JOB_HEAP_TABLE_OFFSET) + (page << 2);
  const word = loadWord(entry);
  const pages = word & EXTENT_PAGES_MASK;
  if (word != regionWord(owner, pages)) return 0;
  // SYNC extent-free (pass): compares too. A target that keeps a buffer passes it; its origin may free the buffer once the
  // target has ended.
  return u32(exchangeIf(entry, word, to == NONE ? pages : regionWord(to, pages)) == word);
}

/** The table's word for a region's extent. */
function regionWord(owner: u32, pages: u32): u32 {
  return (EXTENT_REGION << EXTENT_STATE_SHIFT) | (owner << EXTENT_OWNER_SHIFT) | pages;
}

/** Whether a word of the table describes a lane of this owner. */
export function isLaneOf(owner: u32, word: u32): bool {
  return (word & ~EXTENT_PAGES_MASK) == ((EXTENT_LANE << EXTENT_STATE_SHIFT) | (owner << EXTENT_OWNER_SHIFT));
}

/** Whether a word of the table describes an extent of this owner. */
function isExtentOf(owner: u32, word: u32): bool {
  return word >>> EXTENT_STATE_SHIFT != EXTENT_FREE && ((word >>> EXTENT_OWNER_SHIFT) & EXTENT_OWNER_MASK) == owner;
}

/**
 * Frees every extent of an owner that has ended. No thread may use any of them any more. Several tasks may call this at
 * once. It needs no lock: an ended owner's extents keep their bounds, so this walk finds them while other extents change.
 */
export function heapReclaim(job: usize, owner: u32): void {
  const table = load<usize>(job, JOB_HEAP_TABLE_OFFSET);
  const total = load<u32>(job, JOB_HEAP_PAGES_OFFSET);
  let page: u32 = 0;
  while (page < total) {
    const entry = table + (page << 2);
    const word = loadWord(entry);
    const length = word & EXTENT_PAGES_MASK;
    if (length == 0) break;
    // SYNC extent-free (free): compares too: another task may have freed the extent, and a third may have it by now.
    if (isExtentOf(owner, word)) exchangeIf(entry, word, length);
    page += length;
  }
}

/** Pages in free extents. An estimate while other tasks change the table. */
export function heapFreePages(job: usize): u32 {
  const table = load<usize>(job, JOB_HEAP_TABLE_OFFSET);
  const total = load<u32>(job, JOB_HEAP_PAGES_OFFSET);
  let free: u32 = 0;
  let page: u32 = 0;
  while (page < total) {
    const word = loadWord(table + (page << 2));
    const length = word & EXTENT_PAGES_MASK;
    if (length == 0) break;
    if (word >>> EXTENT_STATE_SHIFT == EXTENT_FREE) free += length;
    page += length;
  }
  return free;
}
