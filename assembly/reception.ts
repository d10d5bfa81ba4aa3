// The consumer: which lanes it polls (ready bits), what it takes from them (events), and when it frees their records.
// Invariants: an origin is in attended[] exactly if its bit is in attending[], and then its ready bit is set. The context's
// owner alone calls these functions. A batch of events is valid until release().
import { heapFree } from "./heap";
import { laneRelease, recordSize } from "./lane";
import {
  ADVANCE_NOTICE,
  ATTENDED_IDLE_MAX,
  ATTENDED_KEEP,
  ATTENDED_SHIFT,
  ATTENDED_SIZE,
  CACHE_LINE,
  CONTEXT_ATTENDED_COUNT_OFFSET,
  CONTEXT_ATTENDING_OFFSET,
  CONTEXT_BATCHES_OFFSET,
  CONTEXT_EVENT_COUNT_OFFSET,
  CONTEXT_EVENTS_OFFSET,
  CONTEXT_LANE_COUNT_OFFSET,
  CONTEXT_LANES_OFFSET,
  CONTEXT_MESSAGES_OFFSET,
  CONTEXT_NOTHING_OFFSET,
  CONTEXT_NOTICE_SEEN_OFFSET,
  CONTEXT_READY_OFFSET,
  CONTEXT_STREAMING_OFFSET,
  CONTEXT_TASK_OFFSET,
  CONTEXT_TURN_OFFSET,
  EVENT_COUNT_MAX,
  EVENT_LANE_MAX,
  EVENT_SHIFT,
  EVENT_SIZE,
  LANE_CONTEXT_OFFSET,
  LANE_IDLE_OFFSET,
  LANE_KEEP_OFFSET,
  LANE_MASK_OFFSET,
  LANE_MESSAGES_OFFSET,
  LANE_NEXT_OFFSET,
  LANE_ORIGIN_OFFSET,
  LANE_PAUSED_OFFSET,
  LANE_RELEASED_OFFSET,
  LANE_RING_OFFSET,
  LANE_ROOM_WANTED_OFFSET,
  POLL_PAUSE,
  RECORD_BODY_OFFSET,
  RECORD_LENGTH_MASK,
  RECORD_META_OFFSET,
  RUN_MAX,
  STREAM_PAUSE,
  TASK_NOTICE_OFFSET,
} from "./layout";
import { bellArm, clearBits, loadWord, setBits, storeWord } from "./sync";

/** Pointer to the first entry of attended[]. */
function attendedOf(context: usize): usize {
  return context + CONTEXT_LANES_OFFSET + (load<u32>(context, CONTEXT_LANE_COUNT_OFFSET) << 2);
}

/** Lane of an origin endpoint, or 0. */
export function laneOf(context: usize, origin: u32): usize {
  // SYNC lane-entry (look): pairs with laneOpen().
  return loadWord(context + CONTEXT_LANES_OFFSET + (origin << 2));
}

/** Pointer to the word to poll for an origin: the record at its lane's next position, or `nothing`. */
function polledOf(context: usize, origin: u32): usize {
  const lane = laneOf(context, origin);
  if (lane == 0 || load<u32>(lane, LANE_PAUSED_OFFSET) != 0) return context + CONTEXT_NOTHING_OFFSET;
  return load<usize>(lane, LANE_RING_OFFSET) + (load<u32>(lane, LANE_NEXT_OFFSET) & load<u32>(lane, LANE_MASK_OFFSET));
}

/** Updates the origin's pointer in attended[], if it is there: another record or another lane is next. */
function repoint(context: usize, origin: u32): void {
  const count = load<u32>(context, CONTEXT_ATTENDED_COUNT_OFFSET);
  let entry = attendedOf(context);
  for (let i: u32 = 0; i < count; i++) {
    if (load<u32>(entry, 4) == origin) store<usize>(entry, polledOf(context, origin));
    entry += ATTENDED_SIZE;
  }
}

/**
 * Moves an attended lane's committed records into the batch. Returns the batch's new length. Unless messages stream, it
 * stops at the end of a cache line. To read the next line takes as long as a message, and the handler would wait for it.
 */
function take(context: usize, entry: usize, first: u32, count: u32, streaming: u32): u32 {
  const origin = load<u32>(entry, 4);
  const lane = laneOf(context, origin);
  const ring = load<usize>(lane, LANE_RING_OFFSET);
  const mask = load<u32>(lane, LANE_MASK_OFFSET);
  let record = load<usize>(entry);
  let next = load<u32>(lane, LANE_NEXT_OFFSET);
  let commit = first;
  let most = count + EVENT_LANE_MAX;
  if (most > EVENT_COUNT_MAX) most = EVENT_COUNT_MAX;
  const before = count;
  let event = context + CONTEXT_EVENTS_OFFSET + (count << EVENT_SHIFT);
  while (commit != 0 && count < most) {
    const same = commit;
    const size = recordSize(same & RECORD_LENGTH_MASK);
    const run = min<u32>(count + RUN_MAX, most);
    // While records have one size, the next one's address does not depend on this one's content: their lines load together.
    do {
      store<u32>(event, commit, 0);
      store<u32>(event, load<u32>(record, RECORD_META_OFFSET), 4); // plain: owned since commit
      store<usize>(event, record + RECORD_BODY_OFFSET, 8);
      store<u32>(event, origin, 12);
      event += EVENT_SIZE;
      count++;
      next += size;
      record = ring + (next & mask);
      commit = 0;
      if (streaming == 0 && (next & (CACHE_LINE - 1)) == 0) break;
      // SYNC commit (poll): pairs with publish() in lane.ts.
      commit = loadWord(record);
    } while (commit == same && count < run);
  }
  store<u32>(lane, next, LANE_NEXT_OFFSET);
  store<u32>(lane, load<u32>(lane, LANE_MESSAGES_OFFSET) + count - before, LANE_MESSAGES_OFFSET);
  store<u32>(lane, 0, LANE_IDLE_OFFSET);
  store<usize>(entry, record);
  return count;
}

/** Stops polling an empty lane. The next record committed there sets its ready bit again. */
function detach(context: usize, entry: usize): void {
  const origin = load<u32>(entry, 4);
  const word = (origin >>> 5) << 2;
  const bit: u32 = 1 << (origin & 31);
  // SYNC ready (clear): clears first, then polls once more; pairs with the look in publish().
  clearBits(context + CONTEXT_READY_OFFSET + word, bit);
  const polled = polledOf(context, origin); // read now: the origin may have opened the lane since the last poll
  if (loadWord(polled) != 0) {
    setBits(context + CONTEXT_READY_OFFSET + word, bit);
    store<usize>(entry, polled);
    return;
  }
  // Frees what release() kept back: peek() does not look at this lane again, and its origin may wait for the room.
  const lane = laneOf(context, origin);
  if (lane != 0) laneRelease(lane);
  const attending = context + CONTEXT_ATTENDING_OFFSET + word;
  store<u32>(attending, load<u32>(attending) & ~bit);
  const last = load<u32>(context, CONTEXT_ATTENDED_COUNT_OFFSET) - 1;
  const lastEntry = attendedOf(context) + (last << ATTENDED_SHIFT);
  store<usize>(entry, load<usize>(lastEntry));
  store<u32>(entry, load<u32>(lastEntry, 4), 4);
  store<u32>(context, last, CONTEXT_ATTENDED_COUNT_OFFSET);
}

/** Whether to stop polling an attended lane in which this round found nothing. */
function isStale(context: usize, entry: usize, attended: u32): bool {
  if (load<usize>(entry) == context + CONTEXT_NOTHING_OFFSET) return true;
  if (attended <= ATTENDED_KEEP) return false;
  const lane = laneOf(context, load<u32>(entry, 4));
  const idle = load<u32>(lane, LANE_IDLE_OFFSET) + 1;
  store<u32>(lane, idle, LANE_IDLE_OFFSET);
  return idle > ATTENDED_IDLE_MAX;
}

/** Detaches the lanes that isStale() found. After the round: to move entries during it would skip some and repeat others. */
function detachStale(context: usize): void {
  const table = attendedOf(context);
  // Backward, so that the entry that replaces a detached one has been visited already.
  for (let i = load<u32>(context, CONTEXT_ATTENDED_COUNT_OFFSET); i-- > 0; ) {
    const entry = table + (i << ATTENDED_SHIFT);
    const spare = load<u32>(context, CONTEXT_ATTENDED_COUNT_OFFSET) > ATTENDED_KEEP;
    if (load<usize>(entry) == context + CONTEXT_NOTHING_OFFSET) detach(context, entry);
    else if (spare && load<u32>(laneOf(context, load<u32>(entry, 4)), LANE_IDLE_OFFSET) > ATTENDED_IDLE_MAX)
      detach(context, entry);
  }
}

/** Enters in attended[] the lanes with a newly set ready bit. */
function attend(context: usize): void {
  const words = (load<u32>(context, CONTEXT_LANE_COUNT_OFFSET) + 31) >>> 5;
  for (let word: u32 = 0; word < words; word++) {
    const attending = context + CONTEXT_ATTENDING_OFFSET + (word << 2);
    // SYNC ready (scan): pairs with the set in publish().
    const fresh = loadWord(context + CONTEXT_READY_OFFSET + (word << 2)) & ~load<u32>(attending);
    if (fresh != 0) attendAll(context, word, fresh);
  }
}

/** Enters the lanes of one ready word's new bits in attended[]. */
function attendAll(context: usize, word: u32, fresh: u32): void {
  const attending = context + CONTEXT_ATTENDING_OFFSET + (word << 2);
  store<u32>(attending, load<u32>(attending) | fresh);
  for (; fresh != 0; fresh &= fresh - 1) {
    const count = load<u32>(context, CONTEXT_ATTENDED_COUNT_OFFSET);
    const entry = attendedOf(context) + (count << ATTENDED_SHIFT);
    const origin = (word << 5) + ctz<u32>(fresh);
    store<usize>(entry, polledOf(context, origin));
    store<u32>(entry, origin, 4);
    store<u32>(context, count + 1, CONTEXT_ATTENDED_COUNT_OFFSET);
  }
}

/** Whether a round would find nothing and change nothing. Most rounds do, so this is short and stores nothing. */
function isQuiet(context: usize): bool {
  const attended = load<u32>(context, CONTEXT_ATTENDED_COUNT_OFFSET);
  if (attended > ATTENDED_KEEP) return false;
  const words = (load<u32>(context, CONTEXT_LANE_COUNT_OFFSET) + 31) >>> 5;
  for (let word: u32 = 0; word < words; word++) {
    const attending = load<u32>(context + CONTEXT_ATTENDING_OFFSET + (word << 2));
    // SYNC ready (scan): pairs with the set in publish().
    if ((loadWord(context + CONTEXT_READY_OFFSET + (word << 2)) & ~attending) != 0) return false;
  }
  let entry = attendedOf(context);
  for (let i: u32 = 0; i < attended; i++) {
    const polled = load<usize>(entry);
    // SYNC commit (poll): pairs with publish() in lane.ts.
    if (loadWord(polled) != 0 || polled == context + CONTEXT_NOTHING_OFFSET) return false;
    entry += ATTENDED_SIZE;
  }
  // SYNC notice (look): pairs with notifyTasks() and interruptTask().
  const notice = load<usize>(context, CONTEXT_TASK_OFFSET) + TASK_NOTICE_OFFSET;
  return loadWord(notice) == load<u32>(context, CONTEXT_NOTICE_SEEN_OFFSET);
}

/**
 * Polls for records, up to `rounds` times, and stops at the first round that finds any.
 * @returns the number of events in the context's array; ADVANCE_NOTICE is set if the task's notice has moved
 */
export function advance(context: usize, rounds: u32): u32 {
  let busy = load<u32>(context, CONTEXT_STREAMING_OFFSET) != 0;
  if (busy) {
    for (let pause = STREAM_PAUSE; pause != 0; pause--) loadWord(context + CONTEXT_NOTHING_OFFSET);
  }
  let streaming: u32 = 1;
  while (true) {
    if (busy || !isQuiet(context)) {
      const found = collect(context, streaming);
      if (found != 0) return found;
    }
    if (--rounds == 0) return 0;
    busy = false;
    streaming = 0;
    for (let pause = POLL_PAUSE; pause != 0; pause--) loadWord(context + CONTEXT_NOTHING_OFFSET);
  }
}

/** One round. Returns what advance() returns. @param streaming 1: every round of this advance() has found records */
function collect(context: usize, streaming: u32): u32 {
  const notice = load<usize>(context, CONTEXT_TASK_OFFSET) + TASK_NOTICE_OFFSET;
  const table = attendedOf(context);
  let count: u32 = 0;
  attend(context);
  const attended = load<u32>(context, CONTEXT_ATTENDED_COUNT_OFFSET);
  let stale = false;
  const first = load<u32>(context, CONTEXT_TURN_OFFSET);
  let turn = first;
  for (let i: u32 = 0; i < attended; i++) {
    if (turn >= attended) turn = 0;
    const entry = table + (turn << ATTENDED_SHIFT);
    // SYNC commit (poll): pairs with publish() in lane.ts.
    const commit = loadWord(load<usize>(entry));
    if (commit != 0) count = take(context, entry, commit, count, streaming);
    else if (isStale(context, entry, attended)) stale = true;
    turn++;
  }
  if (stale) detachStale(context);
  // The round after a batch begins one lane further, so that full batches starve no lane.
  if (count != 0) store<u32>(context, first < attended ? first + 1 : 1, CONTEXT_TURN_OFFSET);
  // SYNC notice (look): pairs with notifyTasks() and interruptTask().
  const flags: u32 = loadWord(notice) != load<u32>(context, CONTEXT_NOTICE_SEEN_OFFSET) ? ADVANCE_NOTICE : 0;
  store<u32>(context, count == 0 ? 0 : streaming, CONTEXT_STREAMING_OFFSET);
  if (count == 0) return flags;
  store<u32>(context, count, CONTEXT_EVENT_COUNT_OFFSET);
  store<u32>(context, load<u32>(context, CONTEXT_MESSAGES_OFFSET) + count, CONTEXT_MESSAGES_OFFSET);
  store<u32>(context, load<u32>(context, CONTEXT_BATCHES_OFFSET) + 1, CONTEXT_BATCHES_OFFSET);
  return count | flags;
}

/** Ends the batch, whose events are handled, and frees records of each lane that has enough of them. */
export function release(context: usize): void {
  const count = load<u32>(context, CONTEXT_ATTENDED_COUNT_OFFSET);
  let entry = attendedOf(context);
  for (let i: u32 = 0; i < count; i++) {
    const lane = laneOf(context, load<u32>(entry, 4));
    if (lane != 0 && isWorthReleasing(lane)) laneRelease(lane);
    entry += ATTENDED_SIZE;
  }
  store<u32>(context, 0, CONTEXT_EVENT_COUNT_OFFSET);
}

/** Whether enough of a lane has been read, or its origin waits for room. */
function isWorthReleasing(lane: usize): bool {
  const bytes = load<u32>(lane, LANE_NEXT_OFFSET) - load<u32>(lane, LANE_RELEASED_OFFSET);
  if (bytes == 0) return false;
  if (bytes > load<u32>(lane, LANE_KEEP_OFFSET)) return true;
  // SYNC room-wanted (look): pairs with laneWantRoom(). At the latest, peek() frees the records before the task sleeps.
  return loadWord(lane + LANE_ROOM_WANTED_OFFSET) != 0;
}

/** The last look before a task falls asleep: whether advance() would find anything. Frees all handled records. */
export function peek(context: usize): u32 {
  const notice = load<usize>(context, CONTEXT_TASK_OFFSET) + TASK_NOTICE_OFFSET;
  if (loadWord(notice) != load<u32>(context, CONTEXT_NOTICE_SEEN_OFFSET)) return 1;
  const words = (load<u32>(context, CONTEXT_LANE_COUNT_OFFSET) + 31) >>> 5;
  for (let word: u32 = 0; word < words; word++) {
    const attending = load<u32>(context + CONTEXT_ATTENDING_OFFSET + (word << 2));
    // SYNC ready (scan): pairs with the set in publish(). The lane is not attended yet.
    if ((loadWord(context + CONTEXT_READY_OFFSET + (word << 2)) & ~attending) != 0) return 1;
  }
  const count = load<u32>(context, CONTEXT_ATTENDED_COUNT_OFFSET);
  let entry = attendedOf(context);
  let found: u32 = 0;
  for (let i: u32 = 0; i < count; i++) {
    const lane = laneOf(context, load<u32>(entry, 4));
    if (lane != 0) laneRelease(lane);
    // The entry's pointer will not do: it is still `nothing` if the origin has opened a lane again since the last poll.
    if (loadWord(polledOf(context, load<u32>(entry, 4))) != 0) found = 1;
    entry += ATTENDED_SIZE;
  }
  return found;
}

/**
 * Before a task falls asleep, in one call: arms its bell, then looks as peek() does. The caller has read the bell before this
 * call. An older value than that of the arming only ends the sleep at once.
 */
export function lastLook(context: usize): u32 {
  bellArm(load<usize>(context, CONTEXT_TASK_OFFSET));
  return peek(context);
}

/** Whether there is a record at the lane's next position. */
export function lanePeek(lane: usize): u32 {
  const next = load<u32>(lane, LANE_NEXT_OFFSET) & load<u32>(lane, LANE_MASK_OFFSET);
  return u32(loadWord(load<usize>(lane, LANE_RING_OFFSET) + next) != 0);
}

/** Takes the lane's records from `body` on back out of the batch, and stops polling the lane until laneResume(). */
export function lanePause(lane: usize, body: usize): void {
  const released = load<u32>(lane, LANE_RELEASED_OFFSET);
  const mask = load<u32>(lane, LANE_MASK_OFFSET);
  const offset = <u32>(body - RECORD_BODY_OFFSET - load<usize>(lane, LANE_RING_OFFSET));
  store<u32>(lane, released + ((offset - (released & mask)) & mask), LANE_NEXT_OFFSET);
  store<u32>(lane, 1, LANE_PAUSED_OFFSET);
  repoint(load<usize>(lane, LANE_CONTEXT_OFFSET), load<u32>(lane, LANE_ORIGIN_OFFSET));
}

/** Polls the paused lane of `origin` again. */
export function laneResume(context: usize, origin: u32): void {
  store<u32>(laneOf(context, origin), 0, LANE_PAUSED_OFFSET);
  repoint(context, origin);
  // SYNC ready (set): the lane may have been detached while it was paused, with records in it.
  laneReady(context, origin);
}

/** Sets the ready bit for an origin that has died: it may have committed its last record and not set the bit. */
export function laneReady(context: usize, origin: u32): void {
  setBits(context + CONTEXT_READY_OFFSET + ((origin >>> 5) << 2), 1 << (origin & 31));
}

/** Frees the lane of `origin`, which has ended with a switch record, and enters `fresh` (or 0) in its place. */
export function laneSwitch(job: usize, context: usize, origin: u32, fresh: usize): void {
  const entry = context + CONTEXT_LANES_OFFSET + (origin << 2);
  // Frees first: once no entry names a lane of an ended task, any task may free that task's extents, see heapReclaim().
  heapFree(job, loadWord(entry));
  // SYNC lane-entry (replace): pairs with laneOpen(), which waits for 0. The ready bit keeps its value: attended or set.
  storeWord(entry, <u32>fresh);
  repoint(context, origin);
}
