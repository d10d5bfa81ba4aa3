// The FIFO message queue of a stream: packets that may have arrived out of order, given out in order (S1–S9).
//
//              head              sub-head   sub-tail            tail
//               │                   │          │                 │
//        ───────▼───────────────────▼──────────▼─────────────────▼──
//   order       9   3̶   4̶   12      5    6     15    11            next: 5
//        ──────────────────────────────────────────────────────────
//   A slot holds its packet until that is consumed, and is free when head has passed it.
//
// The second thread, whose socket it is, inserts at tail. The first consumes a run that is in sequence, from sub-head to
// sub-tail; then the second resets both to where the next packet in sequence is. One thread may be both.
//
// Of a window W, 2 W slots do. While packet s stands at head, whatever is behind it was accepted since, so it lies above
// s − W, and below s + W since s is not consumed: 2 W − 1 packets at the most.
import {
  INSERT_DONE,
  INSERT_DUPLICATE,
  INSERT_OUTSIDE,
  QUEUE_DUPLICATES_OFFSET,
  QUEUE_ENTRY_SHIFT,
  QUEUE_HEAD_OFFSET,
  QUEUE_HELD_OFFSET,
  QUEUE_LOCKED,
  QUEUE_LOW_OFFSET,
  QUEUE_NEXT_OFFSET,
  QUEUE_OUTSIDE_OFFSET,
  QUEUE_RESET,
  QUEUE_SHARED_OFFSET,
  QUEUE_SLOTS_OFFSET,
  QUEUE_START_OFFSET,
  QUEUE_SUB_HEAD_OFFSET,
  QUEUE_SUB_TAIL_OFFSET,
  QUEUE_TAIL_OFFSET,
  QUEUE_TURN_OFFSET,
  QUEUE_WINDOW_OFFSET,
} from "./layout";
import { loadWord, storeWord } from "./sync";

/** Of a slot or an index entry: the second word. The first is an order number. */
const SECOND: usize = 4;

/** Bytes of a queue. */
export function queueBytes(window: u32): u32 {
  return QUEUE_SLOTS_OFFSET + ((3 * window) << QUEUE_ENTRY_SHIFT);
}

/** Pointer to the slot at a position. */
function slotAt(queue: usize, window: u32, position: u32): usize {
  return queue + QUEUE_SLOTS_OFFSET + ((position & (2 * window - 1)) << QUEUE_ENTRY_SHIFT);
}

/** Pointer to the index entry of an order number. */
function entryOf(queue: usize, window: u32, order: u32): usize {
  return queue + QUEUE_SLOTS_OFFSET + ((2 * window + (order & (window - 1))) << QUEUE_ENTRY_SHIFT);
}

/** Stores a word for the other thread, if there is one: all that was stored before is visible with it. */
function publish(queue: usize, pointer: usize, value: u32): void {
  if (load<u32>(queue, QUEUE_SHARED_OFFSET) != 0) storeWord(pointer, value);
  else store<u32>(pointer, value);
}

/**
 * Writes an empty queue.
 * @param window power of two, QUEUE_WINDOW_MIN … QUEUE_WINDOW_MAX
 * @param first order number of the first packet
 * @param shared whether the two threads are two
 */
export function queueInit(queue: usize, window: u32, first: u32, shared: bool): void {
  memory.fill(queue, 0, QUEUE_SLOTS_OFFSET);
  store<u32>(queue, first, QUEUE_LOW_OFFSET);
  store<u32>(queue, first, QUEUE_NEXT_OFFSET);
  store<u32>(queue, QUEUE_LOCKED, QUEUE_TURN_OFFSET);
  store<u32>(queue, window, QUEUE_WINDOW_OFFSET);
  store<u32>(queue, u32(shared), QUEUE_SHARED_OFFSET);
  // No order number of entry i ends like i ^ 1.
  for (let i: u32 = 0; i < window; i++) store<u32>(entryOf(queue, window, i), i ^ 1);
}

/**
 * Second thread: inserts a packet at tail, if there is space (S1); one that was there before, or lies outside of the window,
 * is counted and not inserted (S9).
 * @param packet anything but 0; what of it is not inserted stays the caller's
 * @returns INSERT_…
 */
export function queueInsert(queue: usize, order: u32, packet: u32): u32 {
  const window = load<u32>(queue, QUEUE_WINDOW_OFFSET);
  const ahead = order - load<u32>(queue, QUEUE_LOW_OFFSET);
  const entry = entryOf(queue, window, order);
  if (i32(ahead) < 0 || load<u32>(entry) == order) {
    store<u32>(queue, load<u32>(queue, QUEUE_DUPLICATES_OFFSET) + 1, QUEUE_DUPLICATES_OFFSET);
    return INSERT_DUPLICATE;
  }
  const tail = load<u32>(queue, QUEUE_TAIL_OFFSET);
  const held = tail + 1 - load<u32>(queue, QUEUE_HEAD_OFFSET);
  if (ahead >= window || held > 2 * window) {
    store<u32>(queue, load<u32>(queue, QUEUE_OUTSIDE_OFFSET) + 1, QUEUE_OUTSIDE_OFFSET);
    return INSERT_OUTSIDE;
  }
  const slot = slotAt(queue, window, tail);
  store<u32>(slot, order);
  store<u32>(slot, packet, SECOND);
  store<u32>(entry, order);
  store<u32>(entry, tail, SECOND);
  if (held > load<u32>(queue, QUEUE_HELD_OFFSET)) store<u32>(queue, held, QUEUE_HELD_OFFSET);
  // SYNC queue-insert (insert): the packet is there; pairs with queueTake().
  publish(queue, queue + QUEUE_TAIL_OFFSET, tail + 1);
  return INSERT_DONE;
}

/**
 * Second thread: where the first has consumed its run, frees what is consumed (S6) and resets the sub-pointers to the next
 * packet in sequence: head (S4), or wherever it is in the queue (S5). Locked meanwhile (S7).
 * @returns 1: the first can go on; 0: it is at its run, or the next packet is nowhere
 */
export function queueReset(queue: usize): u32 {
  // SYNC queue-turn (locked): pairs with queueTake(): the sub-pointers are this thread's.
  if (loadWord(queue + QUEUE_TURN_OFFSET) != QUEUE_LOCKED) return 0;
  const window = load<u32>(queue, QUEUE_WINDOW_OFFSET);
  const next = load<u32>(queue, QUEUE_NEXT_OFFSET);
  const end = load<u32>(queue, QUEUE_SUB_HEAD_OFFSET);
  const tail = load<u32>(queue, QUEUE_TAIL_OFFSET);
  let head = load<u32>(queue, QUEUE_HEAD_OFFSET);
  let run = load<u32>(queue, QUEUE_START_OFFSET);
  // A run in front needs no marks: head goes over it as it is.
  if (run == head) head = end;
  else for (; run != end; run++) store<u32>(slotAt(queue, window, run), 0, SECOND);
  while (head != tail && load<u32>(slotAt(queue, window, head), SECOND) == 0) head++;
  store<u32>(queue, head, QUEUE_HEAD_OFFSET);
  store<u32>(queue, next, QUEUE_LOW_OFFSET);
  let place = head;
  if (head == tail || load<u32>(slotAt(queue, window, head)) != next) {
    const entry = entryOf(queue, window, next);
    place = load<u32>(entry) == next ? load<u32>(entry, SECOND) : tail;
  }
  store<u32>(queue, place, QUEUE_START_OFFSET);
  store<u32>(queue, place, QUEUE_SUB_HEAD_OFFSET);
  store<u32>(queue, place, QUEUE_SUB_TAIL_OFFSET);
  if (place == tail) return 0;
  // SYNC queue-turn (unlock): pairs with queueTake().
  publish(queue, queue + QUEUE_TURN_OFFSET, QUEUE_RESET);
  return 1;
}

/**
 * First thread: takes the next packet of the run in sequence (S3). At its begin, sub-tail goes up to the first packet that
 * is out of sequence, or to tail (S2); with its last packet the sub-pointers are the second thread's again.
 * @returns the packet; 0: there is none until queueReset() has found the next
 */
export function queueTake(queue: usize): u32 {
  // SYNC queue-turn (look): pairs with queueReset(). Nothing of the second thread's is looked at before.
  if (loadWord(queue + QUEUE_TURN_OFFSET) == QUEUE_LOCKED) return 0;
  const window = load<u32>(queue, QUEUE_WINDOW_OFFSET);
  const next = load<u32>(queue, QUEUE_NEXT_OFFSET);
  const subHead = load<u32>(queue, QUEUE_SUB_HEAD_OFFSET);
  let subTail = load<u32>(queue, QUEUE_SUB_TAIL_OFFSET);
  if (subHead == subTail) {
    // SYNC queue-insert (look): pairs with queueInsert().
    const tail = loadWord(queue + QUEUE_TAIL_OFFSET);
    let order = next;
    while (subTail != tail && load<u32>(slotAt(queue, window, subTail)) == order) {
      subTail++;
      order++;
    }
    store<u32>(queue, subTail, QUEUE_SUB_TAIL_OFFSET);
  }
  const packet = load<u32>(slotAt(queue, window, subHead), SECOND);
  store<u32>(queue, subHead + 1, QUEUE_SUB_HEAD_OFFSET);
  store<u32>(queue, next + 1, QUEUE_NEXT_OFFSET);
  // SYNC queue-turn (lock): pairs with queueReset(): what is consumed, and next, are visible with it.
  if (subHead + 1 == subTail) publish(queue, queue + QUEUE_TURN_OFFSET, QUEUE_LOCKED);
  return packet;
}

/** Where both threads are one: takes the next packet in sequence, wherever it is; 0: it is not there yet. */
export function queueNext(queue: usize): u32 {
  const packet = queueTake(queue);
  return packet == 0 && queueReset(queue) != 0 ? queueTake(queue) : packet;
}
