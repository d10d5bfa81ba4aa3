// Twin of assembly/reception.ts: same functions, same order; see the comments there. It first reads another thread's
// words plainly (0.3–0.8 ns), as a hint. Before it acts or sleeps upon a value, it loads the word atomically.
import * as L from "../../../assembly/layout.js";
import type { SharedAtomics } from "../atomics.js";
import type { Memory } from "../kernel.js";
import type { Heap } from "./heap.js";
import type { Lane } from "./lane.js";

/** An atomic load takes eight times as long here as in wasm: fewer of them make the same pause. */
const PAUSE_SHIFT = 3;

export function twinReception({ words }: Memory, sync: SharedAtomics, { heapFree }: Heap, lanes: Lane) {
  const { bellArm, clearBits, loadWord, setBits, storeWord } = sync;
  const { laneRelease, recordSize } = lanes;
  /** Other threads' words, read plainly. "Nothing yet" may be stale; any other value is loaded again atomically. */
  const hintWords = words;

  function attendedOf(context: number): number {
    return context + L.CONTEXT_LANES_OFFSET + (words[(context + L.CONTEXT_LANE_COUNT_OFFSET) >>> 2] << 2);
  }

  function laneOf(context: number, origin: number): number {
    // SYNC lane-entry (look)
    return loadWord(context + L.CONTEXT_LANES_OFFSET + (origin << 2)) >>> 0;
  }

  function polledOf(context: number, origin: number): number {
    const lane = laneOf(context, origin);
    if (lane === 0 || words[(lane + L.LANE_PAUSED_OFFSET) >>> 2] !== 0) return context + L.CONTEXT_NOTHING_OFFSET;
    const next = words[(lane + L.LANE_NEXT_OFFSET) >>> 2] & words[(lane + L.LANE_MASK_OFFSET) >>> 2];
    return words[(lane + L.LANE_RING_OFFSET) >>> 2] + next;
  }

  function repoint(context: number, origin: number): void {
    const count = words[(context + L.CONTEXT_ATTENDED_COUNT_OFFSET) >>> 2];
    let entry = attendedOf(context) >>> 2;
    for (let i = 0; i < count; i++) {
      if (words[entry + 1] === origin) words[entry] = polledOf(context, origin);
      entry += L.ATTENDED_SIZE >>> 2;
    }
  }

  function take(context: number, entry: number, first: number, already: number, streaming: number): number {
    const origin = words[entry + 1];
    const lane = words[(context + L.CONTEXT_LANES_OFFSET + (origin << 2)) >>> 2] >>> 0; // plain: only its owner changes it
    const ring = words[(lane + L.LANE_RING_OFFSET) >>> 2];
    const mask = words[(lane + L.LANE_MASK_OFFSET) >>> 2];
    let record = words[entry];
    let next = words[(lane + L.LANE_NEXT_OFFSET) >>> 2];
    let commit = first;
    let count = already;
    const most = Math.min(count + L.EVENT_LANE_MAX, L.EVENT_COUNT_MAX);
    let event = (context + L.CONTEXT_EVENTS_OFFSET + (count << L.EVENT_SHIFT)) >>> 2;
    while (commit !== 0 && count < most) {
      const same = commit;
      const size = recordSize(same & L.RECORD_LENGTH_MASK);
      const run = Math.min(count + L.RUN_MAX, most);
      do {
        words[event] = commit;
        words[event + 1] = words[(record + L.RECORD_META_OFFSET) >>> 2]; // plain: owned since commit
        words[event + 2] = record + L.RECORD_BODY_OFFSET;
        words[event + 3] = origin;
        event += L.EVENT_SIZE >>> 2;
        count++;
        next = (next + size) | 0;
        record = (ring + (next & mask)) | 0;
        commit = 0;
        if (streaming === 0 && (next & (L.CACHE_LINE - 1)) === 0) break;
        // SYNC commit (poll)
        commit = loadWord(record);
      } while (commit === same && count < run);
    }
    words[(lane + L.LANE_NEXT_OFFSET) >>> 2] = next;
    words[(lane + L.LANE_MESSAGES_OFFSET) >>> 2] += count - already;
    words[(lane + L.LANE_IDLE_OFFSET) >>> 2] = 0;
    words[entry] = record;
    return count;
  }

  function detach(context: number, entry: number): void {
    const origin = words[entry + 1];
    const word = (origin >>> 5) << 2;
    const bit = 1 << (origin & 31);
    // SYNC ready (clear)
    clearBits(context + L.CONTEXT_READY_OFFSET + word, bit);
    const polled = polledOf(context, origin);
    if (loadWord(polled) !== 0) {
      setBits(context + L.CONTEXT_READY_OFFSET + word, bit);
      words[entry] = polled;
      return;
    }
    const lane = laneOf(context, origin);
    if (lane !== 0) laneRelease(lane);
    const attending = (context + L.CONTEXT_ATTENDING_OFFSET + word) >>> 2;
    words[attending] = words[attending] & ~bit;
    const last = words[(context + L.CONTEXT_ATTENDED_COUNT_OFFSET) >>> 2] - 1;
    const lastEntry = (attendedOf(context) + (last << L.ATTENDED_SHIFT)) >>> 2;
    words[entry] = words[lastEntry];
    words[entry + 1] = words[lastEntry + 1];
    words[(context + L.CONTEXT_ATTENDED_COUNT_OFFSET) >>> 2] = last;
  }

  function isStale(context: number, entry: number, attended: number): boolean {
    if (words[entry] === ((context + L.CONTEXT_NOTHING_OFFSET) | 0)) return true;
    if (attended <= L.ATTENDED_KEEP) return false;
    const lane = laneOf(context, words[entry + 1]);
    const idle = words[(lane + L.LANE_IDLE_OFFSET) >>> 2] + 1;
    words[(lane + L.LANE_IDLE_OFFSET) >>> 2] = idle;
    return idle > L.ATTENDED_IDLE_MAX;
  }

  function detachStale(context: number): void {
    const table = attendedOf(context) >>> 2;
    for (let i = words[(context + L.CONTEXT_ATTENDED_COUNT_OFFSET) >>> 2] - 1; i >= 0; i--) {
      const entry = table + ((i << L.ATTENDED_SHIFT) >>> 2);
      const spare = words[(context + L.CONTEXT_ATTENDED_COUNT_OFFSET) >>> 2] > L.ATTENDED_KEEP;
      if (words[entry] === ((context + L.CONTEXT_NOTHING_OFFSET) | 0)) detach(context, entry);
      else if (spare && words[(laneOf(context, words[entry + 1]) + L.LANE_IDLE_OFFSET) >>> 2] > L.ATTENDED_IDLE_MAX) {
        detach(context, entry);
      }
    }
  }

  function attend(context: number): void {
    const count = (words[(context + L.CONTEXT_LANE_COUNT_OFFSET) >>> 2] + 31) >>> 5;
    for (let word = 0; word < count; word++) {
      const ready = (context + L.CONTEXT_READY_OFFSET + (word << 2)) >>> 2;
      const attending = (context + L.CONTEXT_ATTENDING_OFFSET + (word << 2)) >>> 2;
      if ((hintWords[ready] & ~words[attending]) === 0) continue;
      // SYNC ready (scan)
      attendAll(context, word, loadWord(ready << 2) & ~words[attending]);
    }
  }

  function attendAll(context: number, word: number, bits: number): void {
    const attending = (context + L.CONTEXT_ATTENDING_OFFSET + (word << 2)) >>> 2;
    words[attending] = words[attending] | bits;
    for (let fresh = bits; fresh !== 0; fresh &= fresh - 1) {
      const count = words[(context + L.CONTEXT_ATTENDED_COUNT_OFFSET) >>> 2];
      const entry = (attendedOf(context) + (count << L.ATTENDED_SHIFT)) >>> 2;
      const origin = (word << 5) + 31 - Math.clz32(fresh & -fresh);
      words[entry] = polledOf(context, origin);
      words[entry + 1] = origin;
      words[(context + L.CONTEXT_ATTENDED_COUNT_OFFSET) >>> 2] = count + 1;
    }
  }

  function isQuiet(context: number): boolean {
    const attended = words[(context + L.CONTEXT_ATTENDED_COUNT_OFFSET) >>> 2];
    if (attended > L.ATTENDED_KEEP) return false;
    const count = (words[(context + L.CONTEXT_LANE_COUNT_OFFSET) >>> 2] + 31) >>> 5;
    const attending = (context + L.CONTEXT_ATTENDING_OFFSET) >>> 2;
    for (let word = 0; word < count; word++) {
      // SYNC ready (scan)
      if ((loadWord(context + L.CONTEXT_READY_OFFSET + (word << 2)) & ~words[attending + word]) !== 0) return false;
    }
    let entry = attendedOf(context) >>> 2;
    for (let i = 0; i < attended; i++) {
      const polled = words[entry] >>> 0;
      // SYNC commit (poll)
      if (hintWords[polled >>> 2] !== 0 || polled === context + L.CONTEXT_NOTHING_OFFSET) return false;
      entry += L.ATTENDED_SIZE >>> 2;
    }
    // SYNC notice (look)
    const notice = (words[(context + L.CONTEXT_TASK_OFFSET) >>> 2] + L.TASK_NOTICE_OFFSET) >>> 2;
    return hintWords[notice] === words[(context + L.CONTEXT_NOTICE_SEEN_OFFSET) >>> 2];
  }

  function advance(context: number, rounds: number): number {
    let busy = words[(context + L.CONTEXT_STREAMING_OFFSET) >>> 2] !== 0;
    if (busy)
      for (let pause = L.STREAM_PAUSE >>> PAUSE_SHIFT; pause !== 0; pause--)
        loadWord(context + L.CONTEXT_NOTHING_OFFSET);
    let left = rounds;
    for (let streaming = 1; ; streaming = 0) {
      if (busy || !isQuiet(context)) {
        const found = collect(context, streaming);
        if (found !== 0) return found;
      }
      if (--left === 0) return 0;
      busy = false;
      for (let pause = L.POLL_PAUSE >>> PAUSE_SHIFT; pause >= 0; pause--) loadWord(context + L.CONTEXT_NOTHING_OFFSET);
    }
  }

  function collect(context: number, streaming: number): number {
    const notice = (words[(context + L.CONTEXT_TASK_OFFSET) >>> 2] + L.TASK_NOTICE_OFFSET) >>> 2;
    const table = attendedOf(context) >>> 2;
    let count = 0;
    attend(context);
    const attended = words[(context + L.CONTEXT_ATTENDED_COUNT_OFFSET) >>> 2];
    let stale = false;
    const first = words[(context + L.CONTEXT_TURN_OFFSET) >>> 2];
    let turn = first;
    for (let i = 0; i < attended; i++) {
      if (turn >= attended) turn = 0;
      const entry = table + ((turn << L.ATTENDED_SHIFT) >>> 2);
      const record = words[entry];
      // SYNC commit (poll)
      const commit = hintWords[record >>> 2] === 0 ? 0 : loadWord(record);
      if (commit !== 0) count = take(context, entry, commit, count, streaming);
      else if (isStale(context, entry, attended)) stale = true;
      turn++;
    }
    if (stale) detachStale(context);
    if (count !== 0) words[(context + L.CONTEXT_TURN_OFFSET) >>> 2] = first < attended ? first + 1 : 1;
    // SYNC notice (look)
    const flags = hintWords[notice] !== words[(context + L.CONTEXT_NOTICE_SEEN_OFFSET) >>> 2] ? L.ADVANCE_NOTICE : 0;
    words[(context + L.CONTEXT_STREAMING_OFFSET) >>> 2] = count === 0 ? 0 : streaming;
    if (count === 0) return flags;
    words[(context + L.CONTEXT_EVENT_COUNT_OFFSET) >>> 2] = count;
    words[(context + L.CONTEXT_MESSAGES_OFFSET) >>> 2] += count;
    words[(context + L.CONTEXT_BATCHES_OFFSET) >>> 2]++;
    return count | flags;
  }

  function release(context: number): void {
    const count = words[(context + L.CONTEXT_ATTENDED_COUNT_OFFSET) >>> 2];
    let entry = attendedOf(context) >>> 2;
    for (let i = 0; i < count; i++) {
      const lane = words[(context + L.CONTEXT_LANES_OFFSET + (words[entry + 1] << 2)) >>> 2] >>> 0;
      if (lane !== 0 && isWorthReleasing(lane)) laneRelease(lane);
      entry += L.ATTENDED_SIZE >>> 2;
    }
    words[(context + L.CONTEXT_EVENT_COUNT_OFFSET) >>> 2] = 0;
  }

  function isWorthReleasing(lane: number): boolean {
    const bytes = (words[(lane + L.LANE_NEXT_OFFSET) >>> 2] - words[(lane + L.LANE_RELEASED_OFFSET) >>> 2]) | 0;
    if (bytes === 0) return false;
    if (bytes > words[(lane + L.LANE_KEEP_OFFSET) >>> 2]) return true;
    // SYNC room-wanted (look)
    return loadWord(lane + L.LANE_ROOM_WANTED_OFFSET) !== 0;
  }

  function peek(context: number): number {
    const notice = words[(context + L.CONTEXT_TASK_OFFSET) >>> 2] + L.TASK_NOTICE_OFFSET;
    if (loadWord(notice) !== words[(context + L.CONTEXT_NOTICE_SEEN_OFFSET) >>> 2]) return 1;
    const wordCount = (words[(context + L.CONTEXT_LANE_COUNT_OFFSET) >>> 2] + 31) >>> 5;
    for (let word = 0; word < wordCount; word++) {
      const attending = words[(context + L.CONTEXT_ATTENDING_OFFSET + (word << 2)) >>> 2];
      // SYNC ready (scan)
      if ((loadWord(context + L.CONTEXT_READY_OFFSET + (word << 2)) & ~attending) !== 0) return 1;
    }
    const count = words[(context + L.CONTEXT_ATTENDED_COUNT_OFFSET) >>> 2];
    let entry = attendedOf(context) >>> 2;
    let found = 0;
    for (let i = 0; i < count; i++) {
      const lane = laneOf(context, words[entry + 1]);
      if (lane !== 0) laneRelease(lane);
      if (loadWord(polledOf(context, words[entry + 1])) !== 0) found = 1;
      entry += L.ATTENDED_SIZE >>> 2;
    }
    return found;
  }

  function lastLook(context: number): number {
    bellArm(words[(context + L.CONTEXT_TASK_OFFSET) >>> 2]);
    return peek(context);
  }

  function lanePeek(lane: number): number {
    const next = words[(lane + L.LANE_NEXT_OFFSET) >>> 2] & words[(lane + L.LANE_MASK_OFFSET) >>> 2];
    return loadWord(words[(lane + L.LANE_RING_OFFSET) >>> 2] + next) === 0 ? 0 : 1;
  }

  function lanePause(lane: number, body: number): void {
    const released = words[(lane + L.LANE_RELEASED_OFFSET) >>> 2];
    const mask = words[(lane + L.LANE_MASK_OFFSET) >>> 2];
    const offset = body - L.RECORD_BODY_OFFSET - words[(lane + L.LANE_RING_OFFSET) >>> 2];
    words[(lane + L.LANE_NEXT_OFFSET) >>> 2] = released + ((offset - (released & mask)) & mask);
    words[(lane + L.LANE_PAUSED_OFFSET) >>> 2] = 1;
    repoint(words[(lane + L.LANE_CONTEXT_OFFSET) >>> 2], words[(lane + L.LANE_ORIGIN_OFFSET) >>> 2]);
  }

  function laneResume(context: number, origin: number): void {
    words[(laneOf(context, origin) + L.LANE_PAUSED_OFFSET) >>> 2] = 0;
    repoint(context, origin);
    // SYNC ready (set)
    setBits(context + L.CONTEXT_READY_OFFSET + ((origin >>> 5) << 2), 1 << (origin & 31));
  }

  function laneReady(context: number, origin: number): void {
    setBits(context + L.CONTEXT_READY_OFFSET + ((origin >>> 5) << 2), 1 << (origin & 31));
  }

  function laneSwitch(job: number, context: number, origin: number, fresh: number): void {
    const entry = context + L.CONTEXT_LANES_OFFSET + (origin << 2);
    heapFree(job, loadWord(entry) >>> 0);
    // SYNC lane-entry (replace)
    storeWord(entry, fresh);
    repoint(context, origin);
  }

  return { laneOf, advance, release, peek, lastLook, lanePeek, lanePause, laneResume, laneReady, laneSwitch };
}
