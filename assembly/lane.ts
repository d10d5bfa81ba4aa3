// One lane: a ring of records with a single producer and a single consumer (see LANE and RECORD in layout/lane.ts).
// This file has the producer's side, and the consumer's steps on a single lane; reception.ts is the consumer.
// Invariants: the producer alone moves tail; the consumer alone moves next and head; head ≤ next ≤ tail ≤
// head + capacity - 16. One granule stays free, so that the word at tail is 0 until the record there is committed.
import { heapAllocate, isLaneOf } from "./heap";
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
} from "./layout";
import { alignUp, seqDelta } from "./seq";
import { exchangeIf, loadWord, ring, setBits, storeWord } from "./sync";

/** Copies bytes of the linear memory. The two ranges may overlap. */
export function copyBytes(to: usize, from: usize, bytes: u32): void {
  memory.copy(to, from, bytes);
}

/** Stores the low byte of `value` into each of `bytes` bytes of the linear memory. */
export function fillBytes(to: usize, value: u32, bytes: u32): void {
  memory.fill(to, <u8>value, bytes);
}

/** Bytes that a record with a body of `bytes` takes in the ring. */
export function recordSize(bytes: u32): u32 {
  return alignUp(bytes + RECORD_BODY_OFFSET, RECORD_GRANULE);
}

/** Pointer to the context block of an endpoint's ordinal. */
export function contextOf(job: usize, ordinal: u32): usize {
  return load<usize>(job, JOB_CONTEXTS_BASE_OFFSET) + ordinal * load<u32>(job, JOB_CONTEXT_SIZE_OFFSET);
}

/** Pages of a lane with a ring of `capacity` and a largest record of at least `recordMax`. */
export function lanePages(capacity: u32, recordMax: u32): u32 {
  return alignUp(LANE_CONTROL_SIZE + capacity + recordMax, PAGE_SIZE) >>> PAGE_SHIFT;
}

/**
 * Writes an empty lane into fresh memory that no other thread knows of yet.
 * @param start the first position, a multiple of 16: 0, except in tests of the wrap at 2^32
 */
export function laneInit(
  job: usize,
  lane: usize,
  origin: u32,
  target: u32,
  capacity: u32,
  recordMax: u32,
  start: u32,
): void {
  const ringBytes = lane + LANE_CONTROL_SIZE;
  memory.fill(lane, 0, LANE_CONTROL_SIZE);
  store<u32>(ringBytes + (start & (capacity - 1)), 0); // the first record's commit word
  const context = contextOf(job, target);
  const originContext = contextOf(job, origin);
  store<u32>(lane, start, LANE_TAIL_OFFSET);
  store<u32>(lane, start, LANE_HEAD_CACHE_OFFSET);
  store<u32>(lane, capacity, LANE_CAPACITY_OFFSET);
  store<u32>(lane, recordMax, LANE_RECORD_MAX_OFFSET);
  store<usize>(lane, context + CONTEXT_READY_OFFSET + ((origin >>> 5) << 2), LANE_READY_WORD_OFFSET);
  store<u32>(lane, 1 << (origin & 31), LANE_READY_BIT_OFFSET);
  store<usize>(lane, load<usize>(context, CONTEXT_TASK_OFFSET), LANE_TARGET_TASK_OFFSET);
  store<u32>(lane, origin, LANE_ORIGIN_OFFSET);
  store<u32>(lane, target, LANE_TARGET_OFFSET);
  storeWord(lane + LANE_HEAD_OFFSET, start);
  store<u32>(lane, start, LANE_NEXT_OFFSET);
  store<u32>(lane, start, LANE_RELEASED_OFFSET);
  store<usize>(lane, ringBytes, LANE_RING_OFFSET);
  store<u32>(lane, capacity - 1, LANE_MASK_OFFSET);
  store<usize>(lane, load<usize>(originContext, CONTEXT_TASK_OFFSET), LANE_ORIGIN_TASK_OFFSET);
  store<usize>(lane, context, LANE_CONTEXT_OFFSET);
  const most = capacity - RECORD_GRANULE;
  const besides = recordMax < most ? most - recordMax : 0;
  store<u32>(lane, min<u32>(min<u32>(RELEASE_BYTES, capacity >>> RELEASE_SHIFT), besides), LANE_KEEP_OFFSET);
}

/** Allocates an extent and writes an empty lane there. Returns the lane, OPEN_NO_MEMORY or OPEN_BUSY. */
function laneMake(job: usize, origin: u32, target: u32, capacity: u32, recordMax: u32): usize {
  const pages = lanePages(capacity, recordMax);
  const lane = heapAllocate(job, pages, origin / load<u32>(job, JOB_CONTEXTS_OFFSET));
  if (lane == OPEN_NO_MEMORY || lane == OPEN_BUSY) return lane;
  // The rest of the last page lengthens the overhang: 7,680 instead of 4,112 bytes for the first lane.
  let overhang = (pages << PAGE_SHIFT) - LANE_CONTROL_SIZE - capacity;
  if (overhang > capacity - RECORD_GRANULE) overhang = capacity - RECORD_GRANULE;
  laneInit(job, lane, origin, target, capacity, overhang, 0);
  return lane;
}

/**
 * Origin: makes the lane to a target and enters it in the target's table.
 * @returns the lane; OPEN_NO_MEMORY; OPEN_BUSY: the previous lane is not freed yet, or the heap is locked
 */
export function laneOpen(job: usize, origin: u32, target: u32, capacity: u32, recordMax: u32): usize {
  const entry = contextOf(job, target) + CONTEXT_LANES_OFFSET + (origin << 2);
  if (loadWord(entry) != 0) return OPEN_BUSY;
  const lane = laneMake(job, origin, target, capacity, recordMax);
  // SYNC lane-entry (enter): pairs with attend() in reception.ts, which reads the table once a ready bit is set.
  if (lane != OPEN_NO_MEMORY && lane != OPEN_BUSY) storeWord(entry, <u32>lane);
  return lane;
}

/** Bytes of the largest body for which the lane has room now. */
export function laneRoom(lane: usize): u32 {
  // SYNC release (look): pairs with laneRelease().
  const head = loadWord(lane + LANE_HEAD_OFFSET);
  store<u32>(lane, head, LANE_HEAD_CACHE_OFFSET);
  if (load<u32>(lane, LANE_RESERVED_OFFSET) != 0) return 0;
  const used = load<u32>(lane, LANE_TAIL_OFFSET) - head;
  let free = load<u32>(lane, LANE_CAPACITY_OFFSET) - RECORD_GRANULE - used;
  const most = load<u32>(lane, LANE_RECORD_MAX_OFFSET);
  if (free > most) free = most;
  return free < RECORD_GRANULE ? 0 : free - RECORD_BODY_OFFSET;
}

/** Pointer to room for a record of `size` bytes (a multiple of 16, at most the lane's largest), or 0. */
function place(lane: usize, size: u32): usize {
  const tail = load<u32>(lane, LANE_TAIL_OFFSET);
  const capacity = load<u32>(lane, LANE_CAPACITY_OFFSET);
  // Signed: a record that is larger than the ring never fits.
  const limit: i32 = capacity - RECORD_GRANULE - size;
  if (<i32>(tail - load<u32>(lane, LANE_HEAD_CACHE_OFFSET)) > limit) {
    // Reads the consumer's line only if the lane seems full. SYNC release (look): pairs with laneRelease().
    const head = loadWord(lane + LANE_HEAD_OFFSET);
    store<u32>(lane, head, LANE_HEAD_CACHE_OFFSET);
    if (<i32>(tail - head) > limit) {
      store<u32>(lane, load<u32>(lane, LANE_FULLS_OFFSET) + 1, LANE_FULLS_OFFSET);
      return 0;
    }
  }
  return lane + LANE_CONTROL_SIZE + (tail & (capacity - 1));
}

/** Makes a written record visible and notifies the target. */
function publish(lane: usize, record: usize, commit: u32, size: u32): void {
  const tail = load<u32>(lane, LANE_TAIL_OFFSET) + size;
  store<u32>(lane, tail, LANE_TAIL_OFFSET);
  // The next record's commit word becomes 0 before the consumer can read it.
  store<u32>(lane + LANE_CONTROL_SIZE + (tail & (load<u32>(lane, LANE_CAPACITY_OFFSET) - 1)), 0);
  // Read before the commit: once a switch record is committed, the target may free the lane, and its pages may be reused.
  const word = load<usize>(lane, LANE_READY_WORD_OFFSET);
  const bit = load<u32>(lane, LANE_READY_BIT_OFFSET);
  const target = load<usize>(lane, LANE_TARGET_TASK_OFFSET);
  // SYNC commit (commit): makes the record's bytes visible; pairs with the polls in reception.ts.
  storeWord(record, commit);
  // SYNC ready (look, set): the commit above precedes this load, as detach()'s clear precedes its last poll. So one of the
  // two sees the other. While the consumer attends the lane, the bit stays set and its line stays shared.
  if ((loadWord(word) & bit) == 0) setBits(word, bit);
  ring(target);
}

/** Takes the next cache lines from the consumer, which stored into them last: see AHEAD_BYTES. */
export function takeLinesAhead(lane: usize, size: u32): void {
  const tail = load<u32>(lane, LANE_TAIL_OFFSET);
  if ((tail & (AHEAD_BYTES - 1)) >= size) return;
  const capacity = load<u32>(lane, LANE_CAPACITY_OFFSET);
  // Only if all of these bytes are certainly free.
  const used = tail - load<u32>(lane, LANE_HEAD_CACHE_OFFSET);
  if (<i32>used >= <i32>(capacity - 2 * AHEAD_BYTES)) return;
  for (let ahead = CACHE_LINE; ahead <= AHEAD_BYTES; ahead += CACHE_LINE) {
    store<u32>(lane + LANE_CONTROL_SIZE + ((tail + ahead) & (capacity - 1)), 0, RECORD_META_OFFSET);
  }
}

/**
 * Sends a body of up to 8 bytes, given as two words.
 * @returns 1; 0: no room
 */
export function laneSendWords(lane: usize, bytes: u32, meta: u32, a: u32, b: u32): u32 {
  const record = place(lane, RECORD_GRANULE);
  if (record == 0) return 0;
  store<u32>(record, meta, RECORD_META_OFFSET);
  store<u32>(record, a, RECORD_BODY_OFFSET);
  store<u32>(record, b, RECORD_BODY_OFFSET + 4);
  publish(lane, record, RECORD_COMMITTED | bytes, RECORD_GRANULE);
  takeLinesAhead(lane, RECORD_GRANULE);
  return 1;
}

/**
 * Reserves a record for a body of `bytes`. The caller writes the body in place and then commits it. Until then the lane
 * takes no other record.
 * @returns pointer to the body; 0: no room
 */
export function laneReserve(lane: usize, bytes: u32): usize {
  const size = recordSize(bytes);
  const record = place(lane, size);
  if (record == 0) return 0;
  store<u32>(lane, size, LANE_RESERVED_OFFSET);
  return record + RECORD_BODY_OFFSET;
}

/**
 * Commits the reserved record.
 * @param kind KIND_…
 * @param bytes of the body, at most as many as were reserved: the rest is free again
 */
export function laneCommit(lane: usize, kind: u32, bytes: u32, meta: u32): void {
  const tail = load<u32>(lane, LANE_TAIL_OFFSET);
  const record = lane + LANE_CONTROL_SIZE + (tail & (load<u32>(lane, LANE_CAPACITY_OFFSET) - 1));
  const size = recordSize(bytes);
  store<u32>(lane, 0, LANE_RESERVED_OFFSET);
  store<u32>(record, meta, RECORD_META_OFFSET);
  publish(lane, record, RECORD_COMMITTED | (kind << RECORD_KIND_SHIFT) | bytes, size);
}

/** Gives up the reserved record: the lane sends nothing. */
export function laneAbort(lane: usize): void {
  store<u32>(lane, 0, LANE_RESERVED_OFFSET);
}

/** Origin: asks the target to ring when it frees space (1), or stops asking (0). After asking, it looks for room again. */
export function laneWantRoom(lane: usize, wanted: u32): void {
  // SYNC room-wanted (want): pairs with the look in laneRelease().
  storeWord(lane + LANE_ROOM_WANTED_OFFSET, wanted);
}

/**
 * Origin: ends the lane. A new lane of `capacity` takes its place, or none (capacity 0). The target frees the old lane once
 * it has taken all its records.
 * @returns the new lane (for capacity 0 the old one, which must not be used any more); OPEN_NO_MEMORY; OPEN_BUSY: the heap
 *   is locked, or the lane has no room for the switch record
 */
export function laneReplace(job: usize, lane: usize, capacity: u32, recordMax: u32): usize {
  if (laneRoom(lane) < 8) return OPEN_BUSY;
  let fresh: usize = 0;
  if (capacity != 0) {
    const origin = load<u32>(lane, LANE_ORIGIN_OFFSET);
    fresh = laneMake(job, origin, load<u32>(lane, LANE_TARGET_OFFSET), capacity, recordMax);
    if (fresh == OPEN_NO_MEMORY || fresh == OPEN_BUSY) return fresh;
  }
  const body = laneReserve(lane, 4);
  store<usize>(body, fresh);
  laneCommit(lane, KIND_SWITCH, 4, 0);
  return capacity == 0 ? lane : fresh;
}

/**
 * Origin: frees every lane to a target that has ended and reads no lane any more. That includes replaced lanes whose last
 * record the target had not taken. It needs no lock: the origin's own extents keep their bounds.
 */
export function laneReclaim(job: usize, origin: u32, target: u32): void {
  const table = load<usize>(job, JOB_HEAP_TABLE_OFFSET);
  const total = load<u32>(job, JOB_HEAP_PAGES_OFFSET);
  const owner = origin / load<u32>(job, JOB_CONTEXTS_OFFSET);
  let page: u32 = 0;
  while (page < total) {
    const entry = table + (page << 2);
    const word = loadWord(entry);
    const length = word & EXTENT_PAGES_MASK;
    if (length == 0) break;
    if (isLaneOf(owner, word)) {
      const lane = load<usize>(job, JOB_HEAP_BASE_OFFSET) + (page << PAGE_SHIFT);
      // plain: written before the lane-entry that this target has seen. If the extent has another owner by now, they are its
      // data, and the exchange below fails, since an ended task takes no extent.
      const isOurs = load<u32>(lane, LANE_ORIGIN_OFFSET) == origin && load<u32>(lane, LANE_TARGET_OFFSET) == target;
      // SYNC extent-free (free): compares too: the target may have freed the lane, and another task may have the extent.
      if (isOurs) exchangeIf(entry, word, length);
    }
    page += length;
  }
  storeWord(contextOf(job, target) + CONTEXT_LANES_OFFSET + (origin << 2), 0);
}

/** Consumer: frees every record before `next`, and rings the origin if it waits for room. */
export function laneRelease(lane: usize): void {
  const next = load<u32>(lane, LANE_NEXT_OFFSET);
  const released = load<u32>(lane, LANE_RELEASED_OFFSET);
  if (next == released) return;
  if (next - released <= RETAKE_MAX) retake(lane, released, next);
  store<u32>(lane, next, LANE_RELEASED_OFFSET);
  // SYNC release (free): frees the bytes; pairs with place() and laneRoom().
  storeWord(lane + LANE_HEAD_OFFSET, next);
  // SYNC room-wanted (look): the store to head precedes this load, as the producer's request precedes its next look at head.
  if (loadWord(lane + LANE_ROOM_WANTED_OFFSET) != 0) ring(load<usize>(lane, LANE_ORIGIN_TASK_OFFSET));
}

/** Stores into each cache line that is about to be freed: see RETAKE_MAX. */
function retake(lane: usize, from: u32, to: u32): void {
  const mask = load<u32>(lane, LANE_MASK_OFFSET);
  const ringBytes = load<usize>(lane, LANE_RING_OFFSET);
  // Stores within the range only: the rest of these lines belongs to the producer, or holds a record that is not taken yet.
  for (let position = from; seqDelta(to, position) > 0; position = (position | (CACHE_LINE - 1)) + 1) {
    store<u32>(ringBytes + (position & mask), 0);
  }
}
