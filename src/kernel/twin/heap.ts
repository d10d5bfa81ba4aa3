// Twin of assembly/heap.ts: same functions, same order; see the comments there.
import * as L from "../../../assembly/layout.js";
import type { SharedAtomics } from "../atomics.js";
import type { Memory } from "../kernel.js";

const LOCK_TRIES = 1000;

export type Heap = ReturnType<typeof twinHeap>;

export function twinHeap({ words, futex }: Memory, { exchangeIf, loadWord, storeWord }: SharedAtomics) {
  function heapAllocate(job: number, pages: number, owner: number): number {
    return allocate(job, pages, owner, L.EXTENT_LANE);
  }

  function regionAllocate(job: number, pages: number, owner: number): number {
    return allocate(job, pages, owner, L.EXTENT_REGION);
  }

  function allocate(job: number, pages: number, owner: number, state: number): number {
    const lock = job + L.JOB_HEAP_LOCK_OFFSET;
    let tries = LOCK_TRIES;
    // SYNC heap-lock (take)
    while (exchangeIf(lock, 0, owner + 1) !== 0) {
      if (--tries === 0) return L.OPEN_BUSY;
    }
    const table = words[(job + L.JOB_HEAP_TABLE_OFFSET) >>> 2] >>> 0;
    const total = words[(job + L.JOB_HEAP_PAGES_OFFSET) >>> 2];
    let found = L.OPEN_NO_MEMORY;
    let page = 0;
    while (page < total) {
      const entry = table + (page << 2);
      // SYNC extent-free (look)
      const word = loadWord(entry);
      let length = word & L.EXTENT_PAGES_MASK;
      if (word >>> L.EXTENT_STATE_SHIFT === L.EXTENT_FREE) {
        let next = page + length;
        while (next < total) {
          const neighbor = loadWord(table + (next << 2));
          if (neighbor >>> L.EXTENT_STATE_SHIFT !== L.EXTENT_FREE) break;
          length += neighbor & L.EXTENT_PAGES_MASK;
          next = page + length;
        }
        if (length >= pages) {
          if (length > pages) storeWord(entry + (pages << 2), length - pages);
          storeWord(entry, (state << L.EXTENT_STATE_SHIFT) | (owner << L.EXTENT_OWNER_SHIFT) | pages);
          found = ((words[(job + L.JOB_HEAP_BASE_OFFSET) >>> 2] >>> 0) + (page << L.PAGE_SHIFT)) >>> 0;
          break;
        }
        if (length !== (word & L.EXTENT_PAGES_MASK)) storeWord(entry, length);
      }
      page += length;
    }
    // SYNC heap-lock (release)
    storeWord(lock, 0);
    if (found === L.OPEN_NO_MEMORY || (futex?.reserve(found, pages << L.PAGE_SHIFT) ?? true)) return found;
    heapFree(job, found);
    return L.OPEN_NO_MEMORY;
  }

  function heapFree(job: number, extent: number): void {
    const page = (extent - (words[(job + L.JOB_HEAP_BASE_OFFSET) >>> 2] >>> 0)) >>> L.PAGE_SHIFT;
    const entry = (words[(job + L.JOB_HEAP_TABLE_OFFSET) >>> 2] >>> 0) + (page << 2);
    // SYNC extent-free (free)
    storeWord(entry, loadWord(entry) & L.EXTENT_PAGES_MASK);
  }

  function extentPass(job: number, extent: number, owner: number, to: number): number {
    const page = (extent - (words[(job + L.JOB_HEAP_BASE_OFFSET) >>> 2] >>> 0)) >>> L.PAGE_SHIFT;
    const entry = (words[(job + L.JOB_HEAP_TABLE_OFFSET) >>> 2] >>> 0) + (page << 2);
    const word = loadWord(entry);
    const pages = word & L.EXTENT_PAGES_MASK;
    if (word !== regionWord(owner, pages)) return 0;
    // SYNC extent-free (pass)
    return exchangeIf(entry, word, to === L.NONE ? pages : regionWord(to, pages)) === word ? 1 : 0;
  }

  function regionWord(owner: number, pages: number): number {
    return (L.EXTENT_REGION << L.EXTENT_STATE_SHIFT) | (owner << L.EXTENT_OWNER_SHIFT) | pages;
  }

  function isLaneOf(owner: number, word: number): boolean {
    return isExtentOf(owner, word) && word >>> L.EXTENT_STATE_SHIFT === L.EXTENT_LANE;
  }

  function isExtentOf(owner: number, word: number): boolean {
    return (
      word >>> L.EXTENT_STATE_SHIFT !== L.EXTENT_FREE &&
      ((word >>> L.EXTENT_OWNER_SHIFT) & L.EXTENT_OWNER_MASK) === owner
    );
  }

  function heapReclaim(job: number, owner: number): void {
    const table = words[(job + L.JOB_HEAP_TABLE_OFFSET) >>> 2] >>> 0;
    const total = words[(job + L.JOB_HEAP_PAGES_OFFSET) >>> 2];
    for (let page = 0; page < total; ) {
      const entry = table + (page << 2);
      const word = loadWord(entry);
      const length = word & L.EXTENT_PAGES_MASK;
      if (length === 0) break;
      // SYNC extent-free (free)
      if (isExtentOf(owner, word)) exchangeIf(entry, word, length);
      page += length;
    }
  }

  function heapFreePages(job: number): number {
    const table = words[(job + L.JOB_HEAP_TABLE_OFFSET) >>> 2] >>> 0;
    const total = words[(job + L.JOB_HEAP_PAGES_OFFSET) >>> 2];
    let free = 0;
    let page = 0;
    while (page < total) {
      const word = loadWord(table + (page << 2));
      const length = word & L.EXTENT_PAGES_MASK;
      if (length === 0) break;
      if (word >>> L.EXTENT_STATE_SHIFT === L.EXTENT_FREE) free += length;
      page += length;
    }
    return free;
  }

  return { heapAllocate, regionAllocate, heapFree, extentPass, isLaneOf, heapReclaim, heapFreePages };
}
