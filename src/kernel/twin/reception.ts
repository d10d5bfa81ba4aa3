// Twin of assembly/reception.ts: same functions, same order; the comments stand there. Words that another thread
// writes are first read plainly (0.3–0.8 ns) as a hint; what is acted upon, or slept upon, is asked for atomically.
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
} from "../../../assembly/layout.js";
import type { Memory } from "../kernel.js";
import type { Heap } from "./heap.js";
import type { Lane } from "./lane.js";
import type { Sync } from "./sync.js";

export function twinReception({ words }: Memory, sync: Sync, { heapFree }: Heap, lane_: Lane) {
  const { clearBits, loadWord, setBits, storeWord } = sync;
  const { laneRelease, recordSize } = lane_;

  function attendedOf(context: number): number {
    return context + CONTEXT_LANES_OFFSET + (words[(context + CONTEXT_LANE_COUNT_OFFSET) >>> 2] << 2);
  }

  /** Pointer to the commit word of the record at the lane's next position. */
  function nextOf(lane: number): number {
    const mask = words[(lane + LANE_MASK_OFFSET) >>> 2];
    return (words[(lane + LANE_RING_OFFSET) >>> 2] >>> 0) + (words[(lane + LANE_NEXT_OFFSET) >>> 2] & mask);
  }

  function poll(lane: number): number {
    // SYNC C (poll)
    return loadWord(nextOf(lane));
  }

  function take(context: number, lane: number, origin: number, first: number, already: number): number {
    const ring = words[(lane + LANE_RING_OFFSET) >>> 2] >>> 0;
    const mask = words[(lane + LANE_MASK_OFFSET) >>> 2];
    let next = words[(lane + LANE_NEXT_OFFSET) >>> 2];
    let record = ring + (next & mask);
    let commit = first;
    let count = already;
    const most = Math.min(count + EVENT_LANE_MAX, EVENT_COUNT_MAX);
    let event = (context + CONTEXT_EVENTS_OFFSET + (count << EVENT_SHIFT)) >>> 2;
    while (commit !== 0 && count < most) {
      words[event] = commit;
      words[event + 1] = words[(record + RECORD_META_OFFSET) >>> 2]; // plain: owned since C
      words[event + 2] = record + RECORD_BODY_OFFSET;
      words[event + 3] = origin;
      event += 4;
      count++;
      next = (next + recordSize(commit & RECORD_LENGTH_MASK)) | 0;
      record = ring + (next & mask);
      // SYNC C (poll)
      commit = loadWord(record);
    }
    words[(lane + LANE_NEXT_OFFSET) >>> 2] = next;
    return count;
  }

  function laneOf(context: number, origin: number): number {
    // SYNC L (look)
    return loadWord(context + CONTEXT_LANES_OFFSET + (origin << 2)) >>> 0;
  }

  function detach(context: number, index: number, origin: number): void {
    const word = (origin >>> 5) << 2;
    const bit = 1 << (origin & 31);
    // SYNC R (clear)
    clearBits(context + CONTEXT_READY_OFFSET + word, bit);
    const lane = laneOf(context, origin);
    if (lane !== 0 && words[(lane + LANE_PAUSED_OFFSET) >>> 2] === 0 && poll(lane) !== 0) {
      setBits(context + CONTEXT_READY_OFFSET + word, bit);
      return;
    }
    const attending = (context + CONTEXT_ATTENDING_OFFSET + word) >>> 2;
    words[attending] = words[attending] & ~bit;
    const table = attendedOf(context) >>> 2;
    const last = words[(context + CONTEXT_ATTENDED_COUNT_OFFSET) >>> 2] - 1;
    words[table + index] = words[table + last];
    words[(context + CONTEXT_ATTENDED_COUNT_OFFSET) >>> 2] = last;
  }

  function attend(context: number, sure: boolean): void {
    const count_ = (context + CONTEXT_ATTENDED_COUNT_OFFSET) >>> 2;
    const count = (words[(context + CONTEXT_LANE_COUNT_OFFSET) >>> 2] + 31) >>> 5;
    for (let word = 0; word < count; word++) {
      const ready = context + CONTEXT_READY_OFFSET + (word << 2);
      const attending = (context + CONTEXT_ATTENDING_OFFSET + (word << 2)) >>> 2;
      if (!sure && (words[ready >>> 2] & ~words[attending]) === 0) continue;
      // SYNC R (scan)
      let fresh = loadWord(ready) & ~words[attending];
      words[attending] = words[attending] | fresh;
      while (fresh !== 0) {
        const attended = words[count_];
        words[(attendedOf(context) >>> 2) + attended] = (word << 5) + 31 - Math.clz32(fresh & -fresh);
        words[count_] = attended + 1;
        fresh &= fresh - 1;
      }
    }
  }

  function advance(context: number, rounds: number): number {
    const notice = (words[(context + CONTEXT_TASK_OFFSET) >>> 2] + TASK_NOTICE_OFFSET) >>> 2;
    const noticeSeen = words[(context + CONTEXT_NOTICE_SEEN_OFFSET) >>> 2];
    const lanes = (context + CONTEXT_LANES_OFFSET) >>> 2;
    const table = attendedOf(context) >>> 2;
    let left = rounds;
    let count = 0;
    let flags = 0;
    for (;;) {
      attend(context, false);
      let attended = words[(context + CONTEXT_ATTENDED_COUNT_OFFSET) >>> 2];
      let turn = words[(context + CONTEXT_TURN_OFFSET) >>> 2];
      for (let i = 0; i < attended; i++) {
        if (turn >= attended) turn = 0;
        const origin = words[table + turn];
        const lane = words[lanes + origin] >>> 0; // plain: only this thread changes an entry that is not 0
        const paused = lane === 0 || words[(lane + LANE_PAUSED_OFFSET) >>> 2] !== 0;
        const commit = paused || words[nextOf(lane) >>> 2] === 0 ? 0 : poll(lane);
        if (commit !== 0) {
          words[(lane + LANE_IDLE_OFFSET) >>> 2] = 0;
          count = take(context, lane, origin, commit, count);
        } else if (attended > ATTENDED_KEEP || lane === 0) {
          const idle = lane === 0 ? ATTENDED_IDLE_MAX : words[(lane + LANE_IDLE_OFFSET) >>> 2] + 1;
          if (idle >= ATTENDED_IDLE_MAX) {
            detach(context, turn, origin);
            if (words[(context + CONTEXT_ATTENDED_COUNT_OFFSET) >>> 2] < attended) {
              attended--;
              i--;
              continue;
            }
          } else words[(lane + LANE_IDLE_OFFSET) >>> 2] = idle;
        }
        turn++;
      }
      words[(context + CONTEXT_TURN_OFFSET) >>> 2] = turn;
      // SYNC N (look)
      if (words[notice] !== noticeSeen) flags = ADVANCE_NOTICE;
      if (count + flags !== 0) break;
      if (--left === 0) break;
      for (let pause = words[(context + CONTEXT_PACE_OFFSET) >>> 2] >>> 3; pause > 0; pause--) loadWord(notice << 2);
    }
    if (count === 0) {
      words[(context + CONTEXT_IDLES_OFFSET) >>> 2]++;
      return flags;
    }
    words[(context + CONTEXT_EVENT_COUNT_OFFSET) >>> 2] = count;
    words[(context + CONTEXT_MESSAGES_OFFSET) >>> 2] += count;
    words[(context + CONTEXT_BATCHES_OFFSET) >>> 2]++;
    return count | flags;
  }

  function release(context: number): void {
    const table = attendedOf(context) >>> 2;
    const lanes = (context + CONTEXT_LANES_OFFSET) >>> 2;
    const attended = words[(context + CONTEXT_ATTENDED_COUNT_OFFSET) >>> 2];
    for (let i = 0; i < attended; i++) {
      const lane = words[lanes + words[table + i]] >>> 0;
      if (lane !== 0) laneRelease(lane);
    }
    words[(context + CONTEXT_EVENT_COUNT_OFFSET) >>> 2] = 0;
  }

  function peek(context: number): number {
    const notice = words[(context + CONTEXT_TASK_OFFSET) >>> 2] + TASK_NOTICE_OFFSET;
    if (loadWord(notice) !== words[(context + CONTEXT_NOTICE_SEEN_OFFSET) >>> 2]) return 1;
    attend(context, true);
    const table = attendedOf(context) >>> 2;
    const attended = words[(context + CONTEXT_ATTENDED_COUNT_OFFSET) >>> 2];
    for (let i = 0; i < attended; i++) {
      const lane = laneOf(context, words[table + i]);
      if (lane !== 0 && words[(lane + LANE_PAUSED_OFFSET) >>> 2] === 0 && poll(lane) !== 0) return 1;
    }
    return 0;
  }

  function lanePeek(lane: number): number {
    return poll(lane) === 0 ? 0 : 1;
  }

  function lanePause(lane: number, body: number): void {
    const released = words[(lane + LANE_RELEASED_OFFSET) >>> 2];
    const mask = words[(lane + LANE_MASK_OFFSET) >>> 2];
    const offset = body - RECORD_BODY_OFFSET - words[(lane + LANE_RING_OFFSET) >>> 2];
    words[(lane + LANE_NEXT_OFFSET) >>> 2] = released + ((offset - (released & mask)) & mask);
    words[(lane + LANE_PAUSED_OFFSET) >>> 2] = 1;
  }

  function laneResume(context: number, origin: number): void {
    words[(laneOf(context, origin) + LANE_PAUSED_OFFSET) >>> 2] = 0;
    // SYNC R (set)
    setBits(context + CONTEXT_READY_OFFSET + ((origin >>> 5) << 2), 1 << (origin & 31));
  }

  function laneSwitch(job: number, context: number, origin: number, fresh: number): void {
    const entry = context + CONTEXT_LANES_OFFSET + (origin << 2);
    const lane = loadWord(entry) >>> 0;
    // SYNC L (replace)
    storeWord(entry, fresh);
    heapFree(job, lane);
  }

  return { laneOf, advance, release, peek, lanePeek, lanePause, laneResume, laneSwitch };
}
