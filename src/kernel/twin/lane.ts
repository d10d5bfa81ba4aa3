// Twin of assembly/lane.ts: same functions, same order; see the comments there.
import * as L from "../../../assembly/layout.js";
import { alignUp, seqDelta } from "../../../assembly/seq.js";
import type { SharedAtomics } from "../atomics.js";
import type { Memory } from "../kernel.js";
import type { Heap } from "./heap.js";

export type Lane = ReturnType<typeof twinLane>;

export function twinLane({ words, bytes }: Memory, sync: SharedAtomics, { heapAllocate, isLaneOf }: Heap) {
  const { exchangeIf, loadWord, ring, setBits, storeWord } = sync;

  function copyBytes(to: number, from: number, length: number): void {
    bytes.copyWithin(to >>> 0, from >>> 0, (from >>> 0) + length);
  }

  function fillBytes(to: number, value: number, length: number): void {
    bytes.fill(value, to >>> 0, (to >>> 0) + length);
  }

  function recordSize(length: number): number {
    return (length + L.RECORD_BODY_OFFSET + L.RECORD_GRANULE - 1) & ~(L.RECORD_GRANULE - 1);
  }

  function contextOf(job: number, ordinal: number): number {
    const base = words[(job + L.JOB_CONTEXTS_BASE_OFFSET) >>> 2] >>> 0;
    return base + ordinal * words[(job + L.JOB_CONTEXT_SIZE_OFFSET) >>> 2];
  }

  function lanePages(capacity: number, recordMax: number): number {
    return alignUp(L.LANE_CONTROL_SIZE + capacity + recordMax, L.PAGE_SIZE) >>> L.PAGE_SHIFT;
  }

  function laneInit(
    job: number,
    lane: number,
    origin: number,
    target: number,
    capacity: number,
    recordMax: number,
    start: number,
  ): void {
    words.fill(0, lane >>> 2, (lane + L.LANE_CONTROL_SIZE) >>> 2);
    words[(lane + L.LANE_CONTROL_SIZE + (start & (capacity - 1))) >>> 2] = 0;
    const context = contextOf(job, target);
    const originContext = contextOf(job, origin);
    words[(lane + L.LANE_TAIL_OFFSET) >>> 2] = start;
    words[(lane + L.LANE_HEAD_CACHE_OFFSET) >>> 2] = start;
    words[(lane + L.LANE_CAPACITY_OFFSET) >>> 2] = capacity;
    words[(lane + L.LANE_RECORD_MAX_OFFSET) >>> 2] = recordMax;
    words[(lane + L.LANE_READY_WORD_OFFSET) >>> 2] = context + L.CONTEXT_READY_OFFSET + ((origin >>> 5) << 2);
    words[(lane + L.LANE_READY_BIT_OFFSET) >>> 2] = 1 << (origin & 31);
    words[(lane + L.LANE_TARGET_TASK_OFFSET) >>> 2] = words[(context + L.CONTEXT_TASK_OFFSET) >>> 2];
    words[(lane + L.LANE_ORIGIN_OFFSET) >>> 2] = origin;
    words[(lane + L.LANE_TARGET_OFFSET) >>> 2] = target;
    storeWord(lane + L.LANE_HEAD_OFFSET, start);
    words[(lane + L.LANE_NEXT_OFFSET) >>> 2] = start;
    words[(lane + L.LANE_RELEASED_OFFSET) >>> 2] = start;
    words[(lane + L.LANE_RING_OFFSET) >>> 2] = lane + L.LANE_CONTROL_SIZE;
    words[(lane + L.LANE_MASK_OFFSET) >>> 2] = capacity - 1;
    words[(lane + L.LANE_ORIGIN_TASK_OFFSET) >>> 2] = words[(originContext + L.CONTEXT_TASK_OFFSET) >>> 2];
    words[(lane + L.LANE_CONTEXT_OFFSET) >>> 2] = context;
    const besides = Math.max(0, capacity - L.RECORD_GRANULE - recordMax);
    words[(lane + L.LANE_KEEP_OFFSET) >>> 2] = Math.min(L.RELEASE_BYTES, capacity >>> L.RELEASE_SHIFT, besides);
  }

  function laneMake(job: number, origin: number, target: number, capacity: number, recordMax: number): number {
    const pages = lanePages(capacity, recordMax);
    const owner = Math.floor(origin / words[(job + L.JOB_CONTEXTS_OFFSET) >>> 2]);
    const lane = heapAllocate(job, pages, owner);
    if (lane === L.OPEN_NO_MEMORY || lane === L.OPEN_BUSY) return lane;
    const overhang = Math.min((pages << L.PAGE_SHIFT) - L.LANE_CONTROL_SIZE - capacity, capacity - L.RECORD_GRANULE);
    laneInit(job, lane, origin, target, capacity, overhang, 0);
    return lane;
  }

  function laneOpen(job: number, origin: number, target: number, capacity: number, recordMax: number): number {
    const entry = contextOf(job, target) + L.CONTEXT_LANES_OFFSET + (origin << 2);
    if (loadWord(entry) !== 0) return L.OPEN_BUSY;
    const lane = laneMake(job, origin, target, capacity, recordMax);
    // SYNC lane-entry (enter)
    if (lane !== L.OPEN_NO_MEMORY && lane !== L.OPEN_BUSY) storeWord(entry, lane);
    return lane;
  }

  function laneRoom(lane: number): number {
    // SYNC release (look)
    const head = loadWord(lane + L.LANE_HEAD_OFFSET);
    words[(lane + L.LANE_HEAD_CACHE_OFFSET) >>> 2] = head;
    if (words[(lane + L.LANE_RESERVED_OFFSET) >>> 2] !== 0) return 0;
    const used = seqDelta(words[(lane + L.LANE_TAIL_OFFSET) >>> 2], head);
    const free = Math.min(
      words[(lane + L.LANE_CAPACITY_OFFSET) >>> 2] - L.RECORD_GRANULE - used,
      words[(lane + L.LANE_RECORD_MAX_OFFSET) >>> 2],
    );
    return free < L.RECORD_GRANULE ? 0 : free - L.RECORD_BODY_OFFSET;
  }

  function place(lane: number, size: number): number {
    const own = lane >>> 2;
    const tail = words[own + (L.LANE_TAIL_OFFSET >>> 2)];
    const capacity = words[own + (L.LANE_CAPACITY_OFFSET >>> 2)];
    const limit = capacity - L.RECORD_GRANULE - size;
    if (((tail - words[own + (L.LANE_HEAD_CACHE_OFFSET >>> 2)]) | 0) > limit) {
      // SYNC release (look)
      const head = loadWord(lane + L.LANE_HEAD_OFFSET);
      words[own + (L.LANE_HEAD_CACHE_OFFSET >>> 2)] = head;
      if (((tail - head) | 0) > limit) {
        words[own + (L.LANE_FULLS_OFFSET >>> 2)]++;
        return 0;
      }
    }
    return lane + L.LANE_CONTROL_SIZE + (tail & (capacity - 1));
  }

  function publish(lane: number, record: number, commit: number, size: number): void {
    const own = lane >>> 2;
    const tail = (words[own + (L.LANE_TAIL_OFFSET >>> 2)] + size) | 0;
    words[own + (L.LANE_TAIL_OFFSET >>> 2)] = tail;
    words[(lane + L.LANE_CONTROL_SIZE + (tail & (words[own + (L.LANE_CAPACITY_OFFSET >>> 2)] - 1))) >>> 2] = 0;
    const word = words[own + (L.LANE_READY_WORD_OFFSET >>> 2)];
    const bit = words[own + (L.LANE_READY_BIT_OFFSET >>> 2)];
    const target = words[own + (L.LANE_TARGET_TASK_OFFSET >>> 2)];
    // SYNC commit (commit)
    storeWord(record, commit);
    // SYNC ready (look, set)
    if ((loadWord(word) & bit) === 0) setBits(word, bit);
    ring(target);
  }

  function takeLinesAhead(lane: number, size: number): void {
    const tail = words[(lane + L.LANE_TAIL_OFFSET) >>> 2];
    if ((tail & (L.AHEAD_BYTES - 1)) >= size) return;
    const capacity = words[(lane + L.LANE_CAPACITY_OFFSET) >>> 2];
    const used = seqDelta(tail, words[(lane + L.LANE_HEAD_CACHE_OFFSET) >>> 2]);
    if (used >= capacity - 2 * L.AHEAD_BYTES) return;
    for (let ahead = L.CACHE_LINE; ahead <= L.AHEAD_BYTES; ahead += L.CACHE_LINE) {
      words[(lane + L.LANE_CONTROL_SIZE + ((tail + ahead) & (capacity - 1)) + L.RECORD_META_OFFSET) >>> 2] = 0;
    }
  }

  function laneSendWords(lane: number, length: number, meta: number, a: number, b: number): number {
    const record = place(lane, L.RECORD_GRANULE);
    if (record === 0) return 0;
    const word = record >>> 2;
    words[word + 1] = meta;
    words[word + 2] = a;
    words[word + 3] = b;
    publish(lane, record, L.RECORD_COMMITTED | length, L.RECORD_GRANULE);
    takeLinesAhead(lane, L.RECORD_GRANULE);
    return 1;
  }

  function laneReserve(lane: number, length: number): number {
    const size = recordSize(length);
    const record = place(lane, size);
    if (record === 0) return 0;
    words[(lane + L.LANE_RESERVED_OFFSET) >>> 2] = size;
    return (record + L.RECORD_BODY_OFFSET) >>> 0;
  }

  function laneCommit(lane: number, kind: number, length: number, meta: number): void {
    const tail = words[(lane + L.LANE_TAIL_OFFSET) >>> 2];
    const record = lane + L.LANE_CONTROL_SIZE + (tail & (words[(lane + L.LANE_CAPACITY_OFFSET) >>> 2] - 1));
    const size = recordSize(length);
    words[(lane + L.LANE_RESERVED_OFFSET) >>> 2] = 0;
    words[(record + L.RECORD_META_OFFSET) >>> 2] = meta;
    publish(lane, record, L.RECORD_COMMITTED | (kind << L.RECORD_KIND_SHIFT) | length, size);
  }

  function laneAbort(lane: number): void {
    words[(lane + L.LANE_RESERVED_OFFSET) >>> 2] = 0;
  }

  function laneWantRoom(lane: number, wanted: number): void {
    // SYNC room-wanted (want)
    storeWord(lane + L.LANE_ROOM_WANTED_OFFSET, wanted);
  }

  function laneReplace(job: number, lane: number, capacity: number, recordMax: number): number {
    if (laneRoom(lane) < 8) return L.OPEN_BUSY;
    let fresh = 0;
    if (capacity !== 0) {
      const origin = words[(lane + L.LANE_ORIGIN_OFFSET) >>> 2];
      fresh = laneMake(job, origin, words[(lane + L.LANE_TARGET_OFFSET) >>> 2], capacity, recordMax);
      if (fresh === L.OPEN_NO_MEMORY || fresh === L.OPEN_BUSY) return fresh;
    }
    const body = laneReserve(lane, 4);
    words[body >>> 2] = fresh;
    laneCommit(lane, L.KIND_SWITCH, 4, 0);
    return capacity === 0 ? lane : fresh;
  }

  function laneReclaim(job: number, origin: number, target: number): void {
    const table = words[(job + L.JOB_HEAP_TABLE_OFFSET) >>> 2] >>> 0;
    const base = words[(job + L.JOB_HEAP_BASE_OFFSET) >>> 2] >>> 0;
    const total = words[(job + L.JOB_HEAP_PAGES_OFFSET) >>> 2];
    const owner = Math.floor(origin / words[(job + L.JOB_CONTEXTS_OFFSET) >>> 2]);
    for (let page = 0; page < total; ) {
      const entry = table + (page << 2);
      const word = loadWord(entry);
      const length = word & L.EXTENT_PAGES_MASK;
      if (length === 0) break;
      if (isLaneOf(owner, word)) {
        const lane = (base + (page << L.PAGE_SHIFT)) >>> 0;
        const own = lane >>> 2;
        const isOurs =
          words[own + (L.LANE_ORIGIN_OFFSET >>> 2)] === origin && words[own + (L.LANE_TARGET_OFFSET >>> 2)] === target;
        // SYNC extent-free (free)
        if (isOurs) exchangeIf(entry, word, length);
      }
      page += length;
    }
    storeWord(contextOf(job, target) + L.CONTEXT_LANES_OFFSET + (origin << 2), 0);
  }

  function laneRelease(lane: number): void {
    const next = words[(lane + L.LANE_NEXT_OFFSET) >>> 2];
    const released = words[(lane + L.LANE_RELEASED_OFFSET) >>> 2];
    if (next === released) return;
    if (seqDelta(next, released) <= L.RETAKE_MAX) retake(lane, released, next);
    words[(lane + L.LANE_RELEASED_OFFSET) >>> 2] = next;
    // SYNC release (free)
    storeWord(lane + L.LANE_HEAD_OFFSET, next);
    // SYNC room-wanted (look)
    if (loadWord(lane + L.LANE_ROOM_WANTED_OFFSET) !== 0) ring(words[(lane + L.LANE_ORIGIN_TASK_OFFSET) >>> 2]);
  }

  function retake(lane: number, from: number, to: number): void {
    const mask = words[(lane + L.LANE_MASK_OFFSET) >>> 2];
    const ringBytes = words[(lane + L.LANE_RING_OFFSET) >>> 2] >>> 0;
    for (let position = from; seqDelta(to, position) > 0; position = ((position | (L.CACHE_LINE - 1)) + 1) | 0) {
      words[(ringBytes + (position & mask)) >>> 2] = 0;
    }
  }

  return {
    copyBytes,
    fillBytes,
    recordSize,
    laneInit,
    laneOpen,
    laneRoom,
    laneSendWords,
    laneReserve,
    laneCommit,
    laneAbort,
    laneWantRoom,
    laneReplace,
    laneReclaim,
    laneRelease,
  };
}
