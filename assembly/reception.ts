// The consumer: which lanes to look at (ready bits), what is in them (events), and when they are free again.
// Invariants: a lane is in attended[] exactly if its bit is in attending[], and then its ready bit is set; the
// context's owner alone calls these functions; a batch of events is valid until release().
import { heapFree } from "./heap";
import { laneRelease, recordSize } from "./lane";
import {
  ADVANCE_NOTICE,
  ATTENDED_IDLE_MAX,
  ATTENDED_KEEP,
  CONTEXT_ATTENDED_COUNT_OFFSET,
  CONTEXT_ATTENDING_OFFSET,
  CONTEXT_BATCHES_OFFSET,
  CONTEXT_EVENT_COUNT_OFFSET,
  CONTEXT_EVENTS_OFFSET,
  CONTEXT_IDLES_OFFSET,
  CONTEXT_LANE_COUNT_OFFSET,
  CONTEXT_LANES_OFFSET,
  CONTEXT_MESSAGES_OFFSET,
  CONTEXT_NOTICE_SEEN_OFFSET,
  CONTEXT_PACE_OFFSET,
  CONTEXT_READY_OFFSET,
  CONTEXT_TASK_OFFSET,
  CONTEXT_TURN_OFFSET,
  EVENT_COUNT_MAX,
  EVENT_LANE_MAX,
  EVENT_SHIFT,
  LANE_IDLE_OFFSET,
  LANE_MASK_OFFSET,
  LANE_NEXT_OFFSET,
  LANE_PAUSED_OFFSET,
  LANE_RELEASED_OFFSET,
  LANE_RING_OFFSET,
  RECORD_BODY_OFFSET,
  RECORD_LENGTH_MASK,
  RECORD_META_OFFSET,
  TASK_NOTICE_OFFSET,
} from "./layout";
import { clearBits, loadWord, setBits, storeWord } from "./sync";

/** Pointer to the first entry of attended[]. */
function attendedOf(context: usize): usize {
  return context + CONTEXT_LANES_OFFSET + (load<u32>(context, CONTEXT_LANE_COUNT_OFFSET) << 2);
}

/** Commit word of the record at the lane's next position, or 0. */
function poll(lane: usize): u32 {
  // SYNC C (poll): pairs with publish() in lane.ts.
  return loadWord(load<usize>(lane, LANE_RING_OFFSET) + (load<u32>(lane, LANE_NEXT_OFFSET) & load<u32>(lane, LANE_MASK_OFFSET)));
}

/** Moves the lane's committed records into the batch; returns the batch's new length. */
function take(context: usize, lane: usize, origin: u32, first: u32, count: u32): u32 {
  const ring = load<usize>(lane, LANE_RING_OFFSET);
  const mask = load<u32>(lane, LANE_MASK_OFFSET);
  let next = load<u32>(lane, LANE_NEXT_OFFSET);
  let record = ring + (next & mask);
  let commit = first;
  let most = count + EVENT_LANE_MAX;
  if (most > EVENT_COUNT_MAX) most = EVENT_COUNT_MAX;
  let event = context + CONTEXT_EVENTS_OFFSET + (count << EVENT_SHIFT);
  while (commit != 0 && count < most) {
    store<u32>(event, commit, 0);
    store<u32>(event, load<u32>(record, RECORD_META_OFFSET), 4); // plain: owned since C
    store<usize>(event, record + RECORD_BODY_OFFSET, 8);
    store<u32>(event, origin, 12);
    event += 16;
    count++;
    next += recordSize(commit & RECORD_LENGTH_MASK);
    record = ring + (next & mask);
    // SYNC C (poll): pairs with publish() in lane.ts.
    commit = loadWord(record);
  }
  store<u32>(lane, next, LANE_NEXT_OFFSET);
  return count;
}

/** Lane of an origin endpoint, or 0. */
export function laneOf(context: usize, origin: u32): usize {
  // SYNC L (look): pairs with laneOpen().
  return loadWord(context + CONTEXT_LANES_OFFSET + (origin << 2));
}

/** Stops polling a lane in which nothing is; the next record committed there sets its ready bit again. */
function detach(context: usize, index: u32, origin: u32): void {
  const word = (origin >>> 5) << 2;
  const bit: u32 = 1 << (origin & 31);
  // SYNC R (clear): pairs with the look in publish(): cleared first, then polled once more.
  clearBits(context + CONTEXT_READY_OFFSET + word, bit);
  const lane = laneOf(context, origin); // only now: it may have been opened since it was last polled
  if (lane != 0 && load<u32>(lane, LANE_PAUSED_OFFSET) == 0 && poll(lane) != 0) {
    setBits(context + CONTEXT_READY_OFFSET + word, bit);
    return;
  }
  const attending = context + CONTEXT_ATTENDING_OFFSET + word;
  store<u32>(attending, load<u32>(attending) & ~bit);
  const table = attendedOf(context);
  const last = load<u32>(context, CONTEXT_ATTENDED_COUNT_OFFSET) - 1;
  store<u32>(table + (index << 2), load<u32>(table + (last << 2)));
  store<u32>(context, last, CONTEXT_ATTENDED_COUNT_OFFSET);
}

/** Enters lanes whose ready bit is newly set in attended[]; returns whether there were any. */
function attend(context: usize): bool {
  const words = (load<u32>(context, CONTEXT_LANE_COUNT_OFFSET) + 31) >>> 5;
  let found = false;
  for (let word: u32 = 0; word < words; word++) {
    const attending = context + CONTEXT_ATTENDING_OFFSET + (word << 2);
    // SYNC R (scan): pairs with the set in publish().
    let fresh = loadWord(context + CONTEXT_READY_OFFSET + (word << 2)) & ~load<u32>(attending);
    if (fresh == 0) continue;
    found = true;
    store<u32>(attending, load<u32>(attending) | fresh);
    while (fresh != 0) {
      const count = load<u32>(context, CONTEXT_ATTENDED_COUNT_OFFSET);
      store<u32>(attendedOf(context) + (count << 2), (word << 5) + ctz<u32>(fresh));
      store<u32>(context, count + 1, CONTEXT_ATTENDED_COUNT_OFFSET);
      fresh &= fresh - 1;
    }
  }
  return found;
}

/**
 * Looks for records, up to `rounds` times, and stops at the first round that found any.
 * @returns how many events it left in the context's array; ADVANCE_NOTICE is set if the task's notice has moved
 */
export function advance(context: usize, rounds: u32): u32 {
  const notice = load<usize>(context, CONTEXT_TASK_OFFSET) + TASK_NOTICE_OFFSET;
  const noticeSeen = load<u32>(context, CONTEXT_NOTICE_SEEN_OFFSET);
  const lanes = context + CONTEXT_LANES_OFFSET;
  const table = attendedOf(context);
  let count: u32 = 0;
  let flags: u32 = 0;
  for (;;) {
    attend(context);
    let attended = load<u32>(context, CONTEXT_ATTENDED_COUNT_OFFSET);
    let turn = load<u32>(context, CONTEXT_TURN_OFFSET);
    for (let i: u32 = 0; i < attended; i++) {
      if (turn >= attended) turn = 0;
      const origin = load<u32>(table + (turn << 2));
      const lane = loadWord(lanes + (origin << 2));
      const paused = lane == 0 || load<u32>(lane, LANE_PAUSED_OFFSET) != 0;
      const commit = paused ? 0 : poll(lane);
      if (commit != 0) {
        store<u32>(lane, 0, LANE_IDLE_OFFSET);
        count = take(context, lane, origin, commit, count);
      } else if (attended > ATTENDED_KEEP || lane == 0) {
        const idle = lane == 0 ? ATTENDED_IDLE_MAX : load<u32>(lane, LANE_IDLE_OFFSET) + 1;
        if (idle >= ATTENDED_IDLE_MAX) {
          detach(context, turn, origin);
          if (load<u32>(context, CONTEXT_ATTENDED_COUNT_OFFSET) < attended) {
            attended--;
            i--;
            continue; // another lane stands at this place now
          }
        } else store<u32>(lane, idle, LANE_IDLE_OFFSET);
      }
      turn++;
    }
    store<u32>(context, turn, CONTEXT_TURN_OFFSET);
    // SYNC N (look): pairs with the monitor's and the launcher's add.
    if (loadWord(notice) != noticeSeen) flags = ADVANCE_NOTICE;
    if (count + flags != 0) break;
    if (--rounds == 0) break;
    // Polling too tightly takes the line away from the producer.
    for (let pause = load<u32>(context, CONTEXT_PACE_OFFSET); pause != 0; pause--) loadWord(notice);
  }
  if (count == 0) {
    store<u32>(context, load<u32>(context, CONTEXT_IDLES_OFFSET) + 1, CONTEXT_IDLES_OFFSET);
    return flags;
  }
  store<u32>(context, count, CONTEXT_EVENT_COUNT_OFFSET);
  store<u32>(context, load<u32>(context, CONTEXT_MESSAGES_OFFSET) + count, CONTEXT_MESSAGES_OFFSET);
  store<u32>(context, load<u32>(context, CONTEXT_BATCHES_OFFSET) + 1, CONTEXT_BATCHES_OFFSET);
  return count | flags;
}

/** The batch has been handled: frees its records. */
export function release(context: usize): void {
  const table = attendedOf(context);
  const attended = load<u32>(context, CONTEXT_ATTENDED_COUNT_OFFSET);
  for (let i: u32 = 0; i < attended; i++) {
    const lane = loadWord(context + CONTEXT_LANES_OFFSET + (load<u32>(table + (i << 2)) << 2));
    if (lane != 0) laneRelease(lane);
  }
  store<u32>(context, 0, CONTEXT_EVENT_COUNT_OFFSET);
}

/** Whether advance() would find something: the last look before a task falls asleep. */
export function peek(context: usize): u32 {
  const notice = load<usize>(context, CONTEXT_TASK_OFFSET) + TASK_NOTICE_OFFSET;
  if (loadWord(notice) != load<u32>(context, CONTEXT_NOTICE_SEEN_OFFSET)) return 1;
  attend(context);
  const table = attendedOf(context);
  const attended = load<u32>(context, CONTEXT_ATTENDED_COUNT_OFFSET);
  for (let i: u32 = 0; i < attended; i++) {
    const lane = laneOf(context, load<u32>(table + (i << 2)));
    if (lane != 0 && load<u32>(lane, LANE_PAUSED_OFFSET) == 0 && poll(lane) != 0) return 1;
  }
  return 0;
}

/** Whether a record stands at the lane's next position. */
export function lanePeek(lane: usize): u32 {
  return u32(poll(lane) != 0);
}

/** Takes the lane's records from `body` on out of the batch and polls it no more, until laneResume(). */
export function lanePause(lane: usize, body: usize): void {
  const released = load<u32>(lane, LANE_RELEASED_OFFSET);
  const mask = load<u32>(lane, LANE_MASK_OFFSET);
  const offset = <u32>(body - RECORD_BODY_OFFSET - load<usize>(lane, LANE_RING_OFFSET));
  store<u32>(lane, released + ((offset - (released & mask)) & mask), LANE_NEXT_OFFSET);
  store<u32>(lane, 1, LANE_PAUSED_OFFSET);
}

/** Polls the paused lane of `origin` again. */
export function laneResume(context: usize, origin: u32): void {
  store<u32>(laneOf(context, origin), 0, LANE_PAUSED_OFFSET);
  // SYNC R (set): it may have been detached while it was paused, with records in it.
  setBits(context + CONTEXT_READY_OFFSET + ((origin >>> 5) << 2), 1 << (origin & 31));
}

/** The lane of `origin` has ended (its switch record is released): puts `fresh` (or 0) in its place and frees it. */
export function laneSwitch(job: usize, context: usize, origin: u32, fresh: usize): void {
  const entry = context + CONTEXT_LANES_OFFSET + (origin << 2);
  const lane = loadWord(entry);
  // SYNC L (replace): pairs with laneOpen(), which waits for 0. The ready bit stays as it is: attended or set.
  storeWord(entry, <u32>fresh);
  heapFree(job, lane);
}
