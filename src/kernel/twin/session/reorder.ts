// Twin of assembly/reorder.ts: same functions, same order; see the comments there.
import * as L from "../../../../assembly/layout.js";
import { seqDelta } from "../../../../assembly/seq.js";
import type { SharedAtomics } from "../../atomics.js";
import type { Memory } from "../../kernel.js";

/** Words of a slot, or of an index entry. */
const SHIFT = L.QUEUE_ENTRY_SHIFT - 2;

export function twinReorder({ words }: Memory, { loadWord, storeWord }: Pick<SharedAtomics, "loadWord" | "storeWord">) {
  /** First word of the slot at a position. */
  function slotAt(queue: number, window: number, position: number): number {
    return ((queue + L.QUEUE_SLOTS_OFFSET) >>> 2) + ((position & (2 * window - 1)) << SHIFT);
  }

  /** First word of the index entry of an order number. */
  function entryOf(queue: number, window: number, order: number): number {
    return ((queue + L.QUEUE_SLOTS_OFFSET) >>> 2) + ((2 * window + (order & (window - 1))) << SHIFT);
  }

  function publish(queue: number, pointer: number, value: number): void {
    if (words[(queue + L.QUEUE_SHARED_OFFSET) >>> 2] !== 0) storeWord(pointer, value);
    else words[pointer >>> 2] = value;
  }

  function queueInit(queue: number, window: number, first: number, shared: boolean): void {
    words.fill(0, queue >>> 2, (queue + L.QUEUE_SLOTS_OFFSET) >>> 2);
    words[(queue + L.QUEUE_LOW_OFFSET) >>> 2] = first;
    words[(queue + L.QUEUE_NEXT_OFFSET) >>> 2] = first;
    words[(queue + L.QUEUE_TURN_OFFSET) >>> 2] = L.QUEUE_LOCKED;
    words[(queue + L.QUEUE_WINDOW_OFFSET) >>> 2] = window;
    words[(queue + L.QUEUE_SHARED_OFFSET) >>> 2] = shared ? 1 : 0;
    for (let i = 0; i < window; i++) words[entryOf(queue, window, i)] = i ^ 1;
  }

  function queueInsert(queue: number, order: number, packet: number): number {
    const window = words[(queue + L.QUEUE_WINDOW_OFFSET) >>> 2];
    const ahead = seqDelta(order, words[(queue + L.QUEUE_LOW_OFFSET) >>> 2]);
    const entry = entryOf(queue, window, order);
    if (ahead < 0 || words[entry] === (order | 0)) {
      words[(queue + L.QUEUE_DUPLICATES_OFFSET) >>> 2]++;
      return L.INSERT_DUPLICATE;
    }
    const tail = words[(queue + L.QUEUE_TAIL_OFFSET) >>> 2];
    const held = (tail + 1 - words[(queue + L.QUEUE_HEAD_OFFSET) >>> 2]) | 0;
    if (ahead >= window || held > 2 * window) {
      words[(queue + L.QUEUE_OUTSIDE_OFFSET) >>> 2]++;
      return L.INSERT_OUTSIDE;
    }
    const slot = slotAt(queue, window, tail);
    words[slot] = order;
    words[slot + 1] = packet;
    words[entry] = order;
    words[entry + 1] = tail;
    const most = (queue + L.QUEUE_HELD_OFFSET) >>> 2;
    if (held > words[most]) words[most] = held;
    // SYNC queue-insert (insert)
    publish(queue, queue + L.QUEUE_TAIL_OFFSET, (tail + 1) | 0);
    return L.INSERT_DONE;
  }

  function queueReset(queue: number): number {
    // SYNC queue-turn (locked)
    if (loadWord(queue + L.QUEUE_TURN_OFFSET) !== L.QUEUE_LOCKED) return 0;
    const window = words[(queue + L.QUEUE_WINDOW_OFFSET) >>> 2];
    const next = words[(queue + L.QUEUE_NEXT_OFFSET) >>> 2];
    const end = words[(queue + L.QUEUE_SUB_HEAD_OFFSET) >>> 2];
    const tail = words[(queue + L.QUEUE_TAIL_OFFSET) >>> 2];
    const run = words[(queue + L.QUEUE_START_OFFSET) >>> 2];
    let head = words[(queue + L.QUEUE_HEAD_OFFSET) >>> 2];
    if (run === head) head = end;
    else for (let slot = run; slot !== end; slot = (slot + 1) | 0) words[slotAt(queue, window, slot) + 1] = 0;
    while (head !== tail && words[slotAt(queue, window, head) + 1] === 0) head = (head + 1) | 0;
    words[(queue + L.QUEUE_HEAD_OFFSET) >>> 2] = head;
    words[(queue + L.QUEUE_LOW_OFFSET) >>> 2] = next;
    let place = head;
    if (head === tail || words[slotAt(queue, window, head)] !== next) {
      const entry = entryOf(queue, window, next);
      place = words[entry] === next ? words[entry + 1] : tail;
    }
    words[(queue + L.QUEUE_START_OFFSET) >>> 2] = place;
    words[(queue + L.QUEUE_SUB_HEAD_OFFSET) >>> 2] = place;
    words[(queue + L.QUEUE_SUB_TAIL_OFFSET) >>> 2] = place;
    if (place === tail) return 0;
    // SYNC queue-turn (unlock)
    publish(queue, queue + L.QUEUE_TURN_OFFSET, L.QUEUE_RESET);
    return 1;
  }

  function queueTake(queue: number): number {
    // SYNC queue-turn (look)
    if (loadWord(queue + L.QUEUE_TURN_OFFSET) === L.QUEUE_LOCKED) return 0;
    const window = words[(queue + L.QUEUE_WINDOW_OFFSET) >>> 2];
    const next = words[(queue + L.QUEUE_NEXT_OFFSET) >>> 2];
    const subHead = words[(queue + L.QUEUE_SUB_HEAD_OFFSET) >>> 2];
    let subTail = words[(queue + L.QUEUE_SUB_TAIL_OFFSET) >>> 2];
    if (subHead === subTail) {
      // SYNC queue-insert (look)
      const tail = loadWord(queue + L.QUEUE_TAIL_OFFSET) | 0;
      for (let order = next; subTail !== tail && words[slotAt(queue, window, subTail)] === order; ) {
        subTail = (subTail + 1) | 0;
        order = (order + 1) | 0;
      }
      words[(queue + L.QUEUE_SUB_TAIL_OFFSET) >>> 2] = subTail;
    }
    const packet = words[slotAt(queue, window, subHead) + 1] >>> 0;
    words[(queue + L.QUEUE_SUB_HEAD_OFFSET) >>> 2] = subHead + 1;
    words[(queue + L.QUEUE_NEXT_OFFSET) >>> 2] = next + 1;
    // SYNC queue-turn (lock)
    if (((subHead + 1) | 0) === subTail) publish(queue, queue + L.QUEUE_TURN_OFFSET, L.QUEUE_LOCKED);
    return packet;
  }

  function queueNext(queue: number): number {
    const packet = queueTake(queue);
    return packet === 0 && queueReset(queue) !== 0 ? queueTake(queue) : packet;
  }

  return { queueInit, queueInsert, queueReset, queueTake, queueNext };
}
