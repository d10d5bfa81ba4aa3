// One lane: a ring of records with a single producer and a single consumer (see LANE and RECORD in layout.ts).
// Here is the producer's side and the consumer's steps that concern one lane only; reception.ts is the consumer.
// Invariants: the producer alone moves tail, the consumer alone moves next and head; head ≤ next ≤ tail ≤
// head + capacity - 16: one granule stays free, so that the word at tail is 0 until the record there is committed.
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

/** Copies bytes of the linear memory, also overlapping ones. */
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
 * Writes a lane into fresh memory; nobody else knows of it yet.
 * @param start where its positions begin, a multiple of 16: 0, but for tests of the wrap at 2^32
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

/** Takes an extent for a lane and writes it there: OPEN_NO_MEMORY, OPEN_BUSY, or the lane. */
function laneMake(job: usize, origin: u32, target: u32, capacity: u32, recordMax: u32): usize {
  const pages = lanePages(capacity, recordMax);
  const lane = heapAllocate(job, pages, origin / load<u32>(job, JOB_CONTEXTS_OFFSET));
  if (lane == OPEN_NO_MEMORY || lane == OPEN_BUSY) return lane;
  // What alignment leaves over makes the overhang longer: 7,680 instead of 4,112 bytes for the first lane.
  let overhang = (pages << PAGE_SHIFT) - LANE_CONTROL_SIZE - capacity;
  if (overhang > capacity - RECORD_GRANULE) overhang = capacity - RECORD_GRANULE;
  laneInit(job, lane, origin, target, capacity, overhang, 0);
  return lane;
}

/**
 * Origin: makes the lane to a target and enters it in the target's table.
 * @returns the lane; OPEN_NO_MEMORY; OPEN_BUSY: the last lane is not given back yet, or the heap is locked
 */
export function laneOpen(job: usize, origin: u32, target: u32, capacity: u32, recordMax: u32): usize {
  const entry = contextOf(job, target) + CONTEXT_LANES_OFFSET + (origin << 2);
  if (loadWord(entry) != 0) return OPEN_BUSY;
  const lane = laneMake(job, origin, target, capacity, recordMax);
  // SYNC lane-entry (enter): pairs with attend() in reception.ts, which reads the table once a ready bit is set.
  if (lane != OPEN_NO_MEMORY && lane != OPEN_BUSY) storeWord(entry, <u32>lane);
  return lane;
}

/** Bytes of the largest body that the lane would take now. */
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

/** Place for a record of `size` bytes (16-byte multiple, at most the lane's largest), or 0. */
function place(lane: usize, size: u32): usize {
  const tail = load<u32>(lane, LANE_TAIL_OFFSET);
  const capacity = load<u32>(lane, LANE_CAPACITY_OFFSET);
  // Signed: a record that is larger than the ring never fits.
  const limit: i32 = capacity - RECORD_GRANULE - size;
  if (<i32>(tail - load<u32>(lane, LANE_HEAD_CACHE_OFFSET)) > limit) {
    // Only on apparent fullness is the consumer's line touched. SYNC release (look): pairs with laneRelease().
    const head = loadWord(lane + LANE_HEAD_OFFSET);
    store<u32>(lane, head, LANE_HEAD_CACHE_OFFSET);
    if (<i32>(tail - head) > limit) {
      store<u32>(lane, load<u32>(lane, LANE_FULLS_OFFSET) + 1, LANE_FULLS_OFFSET);
      return 0;
    }
  }
  return lane + LANE_CONTROL_SIZE + (tail & (capacity - 1));
}

/** Makes a written record visible and tells the target. */
function publish(lane: usize, record: usize, commit: u32, size: u32): void {
  const tail = load<u32>(lane, LANE_TAIL_OFFSET) + size;
  store<u32>(lane, tail, LANE_TAIL_OFFSET);
  // The next record's commit word: 0 before the consumer can come to it.
  store<u32>(lane + LANE_CONTROL_SIZE + (tail & (load<u32>(lane, LANE_CAPACITY_OFFSET) - 1)), 0);
  // Read now: behind a switch record's commit the lane is the target's to free, and may be another's at once.
  const word = load<usize>(lane, LANE_READY_WORD_OFFSET);
  const bit = load<u32>(lane, LANE_READY_BIT_OFFSET);
  const target = load<usize>(lane, LANE_TARGET_TASK_OFFSET);
  // SYNC commit (commit): makes the record's bytes visible; pairs with poll and take in reception.ts.
  storeWord(record, commit);
  // SYNC ready (look, set): the commit above lies before this load, as detach()'s clear lies before its last poll: one of
  // the two sees the other. While the consumer attends the lane, the bit stays set and its line stays shared.
  if ((loadWord(word) & bit) == 0) setBits(word, bit);
  ring(target);
}

/** Takes the cache lines ahead away from the consumer, which stored into them: see AHEAD_BYTES. */
function takeLinesAhead(lane: usize, size: u32): void {
  const tail = load<u32>(lane, LANE_TAIL_OFFSET);
  if ((tail & (AHEAD_BYTES - 1)) >= size) return;
  const capacity = load<u32>(lane, LANE_CAPACITY_OFFSET);
  // Only where all of it is free for certain.
  const used = tail - load<u32>(lane, LANE_HEAD_CACHE_OFFSET);
  if (<i32>used >= <i32>(capacity - 2 * AHEAD_BYTES)) return;
  for (let ahead = CACHE_LINE; ahead <= AHEAD_BYTES; ahead += CACHE_LINE) {
    store<u32>(lane + LANE_CONTROL_SIZE + ((tail + ahead) & (capacity - 1)), 0, RECORD_META_OFFSET);
  }
}

/**
 * Sends a body of up to 8 bytes that comes in two words.
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
 * Reserves a record for a body of `bytes`; the caller writes the body in place and then commits. Until then the lane
 * takes nothing else.
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
 * Commits what laneReserve() gave.
 * @param kind KIND_…
 * @param bytes of the body, at most what was reserved: the rest is free again
 */
export function laneCommit(lane: usize, kind: u32, bytes: u32, meta: u32): void {
  const tail = load<u32>(lane, LANE_TAIL_OFFSET);
  const record = lane + LANE_CONTROL_SIZE + (tail & (load<u32>(lane, LANE_CAPACITY_OFFSET) - 1));
  const size = recordSize(bytes);
  store<u32>(lane, 0, LANE_RESERVED_OFFSET);
  store<u32>(record, meta, RECORD_META_OFFSET);
  publish(lane, record, RECORD_COMMITTED | (kind << RECORD_KIND_SHIFT) | bytes, size);
}

/** Gives back what laneReserve() gave: nothing was sent. */
export function laneAbort(lane: usize): void {
  store<u32>(lane, 0, LANE_RESERVED_OFFSET);
}

/** Origin: asks (1) or no longer asks (0) the target to ring when it frees space. Look for room again after asking. */
export function laneWantRoom(lane: usize, wanted: u32): void {
  // SYNC room-wanted (want): pairs with the look in laneRelease().
  storeWord(lane + LANE_ROOM_WANTED_OFFSET, wanted);
}

/**
 * Origin: ends the lane. Another one of `capacity` takes its place, or none (capacity 0); the target frees the old
 * one once it has taken everything in it.
 * @returns the new lane (or the old one, for capacity 0, which must not be used any more); OPEN_NO_MEMORY;
 *   OPEN_BUSY: the heap is locked, or the lane has no room for the record that says so
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
 * Origin: takes back every lane to a target that has ended, and so reads nothing any more: those too that were replaced
 * before the target came to their last record. Without the lock: its own extents stay where they are.
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
      const isOurs = load<u32>(lane, LANE_ORIGIN_OFFSET) == origin && load<u32>(lane, LANE_TARGET_OFFSET) == target;
      // SYNC extent-free (free): compares too, since its target may have freed it, and another one have it by now.
      if (isOurs) exchangeIf(entry, word, length);
    }
    page += length;
  }
  storeWord(contextOf(job, target) + CONTEXT_LANES_OFFSET + (origin << 2), 0);
}

/** Consumer: frees every record before next, and rings the origin if it waits for room. */
export function laneRelease(lane: usize): void {
  const next = load<u32>(lane, LANE_NEXT_OFFSET);
  const released = load<u32>(lane, LANE_RELEASED_OFFSET);
  if (next == released) return;
  if (next - released <= RETAKE_MAX) retake(lane, released, next);
  store<u32>(lane, next, LANE_RELEASED_OFFSET);
  // SYNC release (free): gives the bytes back; pairs with place() and laneRoom().
  storeWord(lane + LANE_HEAD_OFFSET, next);
  // SYNC room-wanted (look): head lies before this load, as the want lies before the producer's next look at head.
  if (loadWord(lane + LANE_ROOM_WANTED_OFFSET) != 0) ring(load<usize>(lane, LANE_ORIGIN_TASK_OFFSET));
}

/** Stores into each cache line that is about to be freed: see RETAKE_MAX. */
function retake(lane: usize, from: u32, to: u32): void {
  const mask = load<u32>(lane, LANE_MASK_OFFSET);
  const ringBytes = load<usize>(lane, LANE_RING_OFFSET);
  // At granules within the range alone: what shares their lines belongs to the producer, or is a record not yet taken.
  for (let position = from; seqDelta(to, position) > 0; position = (position | (CACHE_LINE - 1)) + 1) {
    store<u32>(ringBytes + (position & mask), 0);
  }
}
