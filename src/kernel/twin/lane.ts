// Twin of assembly/lane.ts: same functions, same order; see the comments there.
import {
  AHEAD_BYTES,
  CACHE_LINE,
  CONTEXT_LANES_OFFSET,
  CONTEXT_READY_OFFSET,
  CONTEXT_TASK_OFFSET,
  EXTENT_PAGES_MASK,
  JOB_CONTEXT_SIZE_OFFSET,
  JOB_CONTEXTS_BASE_OFFSET,
  JOB_CONTEXTS_OFFSET,
  JOB_HEAP_BASE_OFFSET,
  JOB_HEAP_PAGES_OFFSET,
  JOB_HEAP_TABLE_OFFSET,
  KIND_SWITCH,
  LANE_CAPACITY_OFFSET,
  LANE_CONTEXT_OFFSET,
  LANE_CONTROL_SIZE,
  LANE_FULLS_OFFSET,
  LANE_HEAD_CACHE_OFFSET,
  LANE_HEAD_OFFSET,
  LANE_KEEP_OFFSET,
  LANE_MASK_OFFSET,
  LANE_NEXT_OFFSET,
  LANE_ORIGIN_OFFSET,
  LANE_ORIGIN_TASK_OFFSET,
  LANE_READY_BIT_OFFSET,
  LANE_READY_WORD_OFFSET,
  LANE_RECORD_MAX_OFFSET,
  LANE_RELEASED_OFFSET,
  LANE_RESERVED_OFFSET,
  LANE_RING_OFFSET,
  LANE_ROOM_WANTED_OFFSET,
  LANE_TAIL_OFFSET,
  LANE_TARGET_OFFSET,
  LANE_TARGET_TASK_OFFSET,
  OPEN_BUSY,
  OPEN_NO_MEMORY,
  PAGE_SHIFT,
  PAGE_SIZE,
  RECORD_BODY_OFFSET,
  RECORD_COMMITTED,
  RECORD_GRANULE,
  RECORD_KIND_SHIFT,
  RECORD_META_OFFSET,
  RELEASE_BYTES,
  RELEASE_SHIFT,
  RETAKE_MAX,
} from "../../../assembly/layout.js";
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
    return (length + RECORD_BODY_OFFSET + RECORD_GRANULE - 1) & ~(RECORD_GRANULE - 1);
  }

  function contextOf(job: number, ordinal: number): number {
    const base = words[(job + JOB_CONTEXTS_BASE_OFFSET) >>> 2] >>> 0;
    return base + ordinal * words[(job + JOB_CONTEXT_SIZE_OFFSET) >>> 2];
  }

  function lanePages(capacity: number, recordMax: number): number {
    return alignUp(LANE_CONTROL_SIZE + capacity + recordMax, PAGE_SIZE) >>> PAGE_SHIFT;
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
    words.fill(0, lane >>> 2, (lane + LANE_CONTROL_SIZE) >>> 2);
    words[(lane + LANE_CONTROL_SIZE + (start & (capacity - 1))) >>> 2] = 0;
    const context = contextOf(job, target);
    const originContext = contextOf(job, origin);
    words[(lane + LANE_TAIL_OFFSET) >>> 2] = start;
    words[(lane + LANE_HEAD_CACHE_OFFSET) >>> 2] = start;
    words[(lane + LANE_CAPACITY_OFFSET) >>> 2] = capacity;
    words[(lane + LANE_RECORD_MAX_OFFSET) >>> 2] = recordMax;
    words[(lane + LANE_READY_WORD_OFFSET) >>> 2] = context + CONTEXT_READY_OFFSET + ((origin >>> 5) << 2);
    words[(lane + LANE_READY_BIT_OFFSET) >>> 2] = 1 << (origin & 31);
    words[(lane + LANE_TARGET_TASK_OFFSET) >>> 2] = words[(context + CONTEXT_TASK_OFFSET) >>> 2];
    words[(lane + LANE_ORIGIN_OFFSET) >>> 2] = origin;
    words[(lane + LANE_TARGET_OFFSET) >>> 2] = target;
    storeWord(lane + LANE_HEAD_OFFSET, start);
    words[(lane + LANE_NEXT_OFFSET) >>> 2] = start;
    words[(lane + LANE_RELEASED_OFFSET) >>> 2] = start;
    words[(lane + LANE_RING_OFFSET) >>> 2] = lane + LANE_CONTROL_SIZE;
    words[(lane + LANE_MASK_OFFSET) >>> 2] = capacity - 1;
    words[(lane + LANE_ORIGIN_TASK_OFFSET) >>> 2] = words[(originContext + CONTEXT_TASK_OFFSET) >>> 2];
    words[(lane + LANE_CONTEXT_OFFSET) >>> 2] = context;
    const besides = Math.max(0, capacity - RECORD_GRANULE - recordMax);
    words[(lane + LANE_KEEP_OFFSET) >>> 2] = Math.min(RELEASE_BYTES, capacity >>> RELEASE_SHIFT, besides);
  }

  function laneMake(job: number, origin: number, target: number, capacity: number, recordMax: number): number {
    const pages = lanePages(capacity, recordMax);
    const owner = Math.floor(origin / words[(job + JOB_CONTEXTS_OFFSET) >>> 2]);
    const lane = heapAllocate(job, pages, owner);
    if (lane === OPEN_NO_MEMORY || lane === OPEN_BUSY) return lane;
    const overhang = Math.min((pages << PAGE_SHIFT) - LANE_CONTROL_SIZE - capacity, capacity - RECORD_GRANULE);
    laneInit(job, lane, origin, target, capacity, overhang, 0);
    return lane;
  }

  function laneOpen(job: number, origin: number, target: number, capacity: number, recordMax: number): number {
    const entry = contextOf(job, target) + CONTEXT_LANES_OFFSET + (origin << 2);
    if (loadWord(entry) !== 0) return OPEN_BUSY;
    const lane = laneMake(job, origin, target, capacity, recordMax);
    // SYNC lane-entry (enter)
    if (lane !== OPEN_NO_MEMORY && lane !== OPEN_BUSY) storeWord(entry, lane);
    return lane;
  }

  function laneRoom(lane: number): number {
    // SYNC release (look)
    const head = loadWord(lane + LANE_HEAD_OFFSET);
    words[(lane + LANE_HEAD_CACHE_OFFSET) >>> 2] = head;
    if (words[(lane + LANE_RESERVED_OFFSET) >>> 2] !== 0) return 0;
    const used = seqDelta(words[(lane + LANE_TAIL_OFFSET) >>> 2], head);
    const free = Math.min(
      words[(lane + LANE_CAPACITY_OFFSET) >>> 2] - RECORD_GRANULE - used,
      words[(lane + LANE_RECORD_MAX_OFFSET) >>> 2],
    );
    return free < RECORD_GRANULE ? 0 : free - RECORD_BODY_OFFSET;
  }

  function place(lane: number, size: number): number {
    const own = lane >>> 2;
    const tail = words[own + (LANE_TAIL_OFFSET >>> 2)];
    const capacity = words[own + (LANE_CAPACITY_OFFSET >>> 2)];
    const limit = capacity - RECORD_GRANULE - size;
    if (((tail - words[own + (LANE_HEAD_CACHE_OFFSET >>> 2)]) | 0) > limit) {
      // SYNC release (look)
      const head = loadWord(lane + LANE_HEAD_OFFSET);
      words[own + (LANE_HEAD_CACHE_OFFSET >>> 2)] = head;
      if (((tail - head) | 0) > limit) {
        words[own + (LANE_FULLS_OFFSET >>> 2)]++;
        return 0;
      }
    }
    return lane + LANE_CONTROL_SIZE + (tail & (capacity - 1));
  }

  function publish(lane: number, record: number, commit: number, size: number): void {
    const own = lane >>> 2;
    const tail = (words[own + (LANE_TAIL_OFFSET >>> 2)] + size) | 0;
    words[own + (LANE_TAIL_OFFSET >>> 2)] = tail;
    words[(lane + LANE_CONTROL_SIZE + (tail & (words[own + (LANE_CAPACITY_OFFSET >>> 2)] - 1))) >>> 2] = 0;
    const word = words[own + (LANE_READY_WORD_OFFSET >>> 2)];
    const bit = words[own + (LANE_READY_BIT_OFFSET >>> 2)];
    const target = words[own + (LANE_TARGET_TASK_OFFSET >>> 2)];
    // SYNC commit (commit)
    storeWord(record, commit);
    // SYNC ready (look, set)
    if ((loadWord(word) & bit) === 0) setBits(word, bit);
    ring(target);
  }

  function takeLinesAhead(lane: number, size: number): void {
    const tail = words[(lane + LANE_TAIL_OFFSET) >>> 2];
    if ((tail & (AHEAD_BYTES - 1)) >= size) return;
    const capacity = words[(lane + LANE_CAPACITY_OFFSET) >>> 2];
    const used = seqDelta(tail, words[(lane + LANE_HEAD_CACHE_OFFSET) >>> 2]);
    if (used >= capacity - 2 * AHEAD_BYTES) return;
    for (let ahead = CACHE_LINE; ahead <= AHEAD_BYTES; ahead += CACHE_LINE) {
      words[(lane + LANE_CONTROL_SIZE + ((tail + ahead) & (capacity - 1)) + RECORD_META_OFFSET) >>> 2] = 0;
    }
  }

  function laneSendWords(lane: number, length: number, meta: number, a: number, b: number): number {
    const record = place(lane, RECORD_GRANULE);
    if (record === 0) return 0;
    const word = record >>> 2;
    words[word + 1] = meta;
    words[word + 2] = a;
    words[word + 3] = b;
    publish(lane, record, RECORD_COMMITTED | length, RECORD_GRANULE);
    takeLinesAhead(lane, RECORD_GRANULE);
    return 1;
  }

  function laneReserve(lane: number, length: number): number {
    const size = recordSize(length);
    const record = place(lane, size);
    if (record === 0) return 0;
    words[(lane + LANE_RESERVED_OFFSET) >>> 2] = size;
    return (record + RECORD_BODY_OFFSET) >>> 0;
  }

  function laneCommit(lane: number, kind: number, length: number, meta: number): void {
    const tail = words[(lane + LANE_TAIL_OFFSET) >>> 2];
    const record = lane + LANE_CONTROL_SIZE + (tail & (words[(lane + LANE_CAPACITY_OFFSET) >>> 2] - 1));
    const size = recordSize(length);
    words[(lane + LANE_RESERVED_OFFSET) >>> 2] = 0;
    words[(record + RECORD_META_OFFSET) >>> 2] = meta;
    publish(lane, record, RECORD_COMMITTED | (kind << RECORD_KIND_SHIFT) | length, size);
  }

  function laneAbort(lane: number): void {
    words[(lane + LANE_RESERVED_OFFSET) >>> 2] = 0;
  }

  function laneWantRoom(lane: number, wanted: number): void {
    // SYNC room-wanted (want)
    storeWord(lane + LANE_ROOM_WANTED_OFFSET, wanted);
  }

  function laneReplace(job: number, lane: number, capacity: number, recordMax: number): number {
    if (laneRoom(lane) < 8) return OPEN_BUSY;
    let fresh = 0;
    if (capacity !== 0) {
      const origin = words[(lane + LANE_ORIGIN_OFFSET) >>> 2];
      fresh = laneMake(job, origin, words[(lane + LANE_TARGET_OFFSET) >>> 2], capacity, recordMax);
      if (fresh === OPEN_NO_MEMORY || fresh === OPEN_BUSY) return fresh;
    }
    const body = laneReserve(lane, 4);
    words[body >>> 2] = fresh;
    laneCommit(lane, KIND_SWITCH, 4, 0);
    return capacity === 0 ? lane : fresh;
  }

  function laneReclaim(job: number, origin: number, target: number): void {
    const table = words[(job + JOB_HEAP_TABLE_OFFSET) >>> 2] >>> 0;
    const base = words[(job + JOB_HEAP_BASE_OFFSET) >>> 2] >>> 0;
    const total = words[(job + JOB_HEAP_PAGES_OFFSET) >>> 2];
    const owner = Math.floor(origin / words[(job + JOB_CONTEXTS_OFFSET) >>> 2]);
    for (let page = 0; page < total; ) {
      const entry = table + (page << 2);
      const word = loadWord(entry);
      const length = word & EXTENT_PAGES_MASK;
      if (length === 0) break;
      if (isLaneOf(owner, word)) {
        const lane = (base + (page << PAGE_SHIFT)) >>> 0;
        const own = lane >>> 2;
        const isOurs =
          words[own + (LANE_ORIGIN_OFFSET >>> 2)] === origin && words[own + (LANE_TARGET_OFFSET >>> 2)] === target;
        // SYNC extent-free (free)
        if (isOurs) exchangeIf(entry, word, length);
      }
      page += length;
    }
    storeWord(contextOf(job, target) + CONTEXT_LANES_OFFSET + (origin << 2), 0);
  }

  function laneRelease(lane: number): void {
    const next = words[(lane + LANE_NEXT_OFFSET) >>> 2];
    const released = words[(lane + LANE_RELEASED_OFFSET) >>> 2];
    if (next === released) return;
    if (seqDelta(next, released) <= RETAKE_MAX) retake(lane, released, next);
    words[(lane + LANE_RELEASED_OFFSET) >>> 2] = next;
    // SYNC release (free)
    storeWord(lane + LANE_HEAD_OFFSET, next);
    // SYNC room-wanted (look)
    if (loadWord(lane + LANE_ROOM_WANTED_OFFSET) !== 0) ring(words[(lane + LANE_ORIGIN_TASK_OFFSET) >>> 2]);
  }

  function retake(lane: number, from: number, to: number): void {
    const mask = words[(lane + LANE_MASK_OFFSET) >>> 2];
    const ringBytes = words[(lane + LANE_RING_OFFSET) >>> 2] >>> 0;
    for (let position = from; seqDelta(to, position) > 0; position = ((position | (CACHE_LINE - 1)) + 1) | 0) {
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
