// The FIFO message queue of a stream: takes packets that arrived out of order and returns them in order (S1–S9).
//
//              head              sub-head   sub-tail            tail
//               │                   │          │                 │
//        ───────▼───────────────────▼──────────▼─────────────────▼──
//   order       9   3̶   4̶   12      5    6     15    11            next: 5
//        ──────────────────────────────────────────────────────────
//   A slot holds its packet until the packet is consumed; the slot is free once head has passed it.
//
// The second thread owns the socket and inserts at tail. The first thread consumes a run that is in sequence, from sub-head
// to sub-tail. Then the second thread resets both to the next packet in sequence. One thread may play both parts.
//
// A window of W packets needs 2 W slots. While packet s is at head, every packet after it was accepted later, so its order
// number is above s − W. It is also below s + W, because s is not consumed. That makes 2 W − 1 packets at most.
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
} from "../layout";
import { loadWord, storeWord } from "../sync";

/** Offset of the second word of a slot or an index entry. The first word is an order number. */
const SECOND: usize = 4;

/** Pointer to the slot at a position. */
function slotAt(queue: usize, window: u32, position: u32): usize {
  return queue + QUEUE_SLOTS_OFFSET + ((position & (2 * window - 1)) << QUEUE_ENTRY_SHIFT);
}

/** Pointer to the index entry of an order number. */
function entryOf(queue: usize, window: u32, order: u32): usize {
  return queue + QUEUE_SLOTS_OFFSET + ((2 * window + (order & (window - 1))) << QUEUE_ENTRY_SHIFT);
}

/** Stores a word for the other thread, if there is one. It makes all earlier stores visible. */
function publish(queue: usize, pointer: usize, value: u32): void {
  if (load<u32>(queue, QUEUE_SHARED_OFFSET) != 0) storeWord(pointer, value);
  else store<u32>(pointer, value);
}

/**
 * Writes an empty queue.
 * @param window power of two, QUEUE_WINDOW_MIN … QUEUE_WINDOW_MAX
 * @param first order number of the first packet
 * @param shared whether the first and the second thread are different threads
 */
export function queueInit(queue: usize, window: u32, first: u32, shared: bool): void {
  memory.fill(queue, 0, QUEUE_SLOTS_OFFSET);
  store<u32>(queue, first, QUEUE_LOW_OFFSET);
  store<u32>(queue, first, QUEUE_NEXT_OFFSET);
  store<u32>(queue, QUEUE_LOCKED, QUEUE_TURN_OFFSET);
  store<u32>(queue, window, QUEUE_WINDOW_OFFSET);
  store<u32>(queue, u32(shared), QUEUE_SHARED_OFFSET);
  // Entry i only gets order numbers that equal i modulo W, so i ^ 1 marks it as empty.
  for (let i: u32 = 0; i < window; i++) store<u32>(entryOf(queue, window, i), i ^ 1);
}

/**
 * Second thread: inserts a packet at tail, if there is space (S1). It counts and drops a packet that it has had before, or
 * that lies outside the window (S9).
 * @param packet any value but 0; a packet that is not inserted stays the caller's
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
  // SYNC queue-insert (insert): makes the packet visible; pairs with queueTake().
  publish(queue, queue + QUEUE_TAIL_OFFSET, tail + 1);
  return INSERT_DONE;
}

/**
 * Second thread: if the first has consumed its run, frees the consumed slots (S6). Then it resets the sub-pointers to the
 * next packet in sequence: at head (S4), or elsewhere in the queue (S5). The queue is locked meanwhile (S7).
 * @returns 1: the first thread can go on; 0: it still has its run, or the next packet has not arrived
 */
export function queueReset(queue: usize): u32 {
  // SYNC queue-turn (locked): pairs with queueTake(). While locked, the sub-pointers belong to this thread.
  if (loadWord(queue + QUEUE_TURN_OFFSET) != QUEUE_LOCKED) return 0;
  const window = load<u32>(queue, QUEUE_WINDOW_OFFSET);
  const next = load<u32>(queue, QUEUE_NEXT_OFFSET);
  const end = load<u32>(queue, QUEUE_SUB_HEAD_OFFSET);
  const tail = load<u32>(queue, QUEUE_TAIL_OFFSET);
  let head = load<u32>(queue, QUEUE_HEAD_OFFSET);
  let run = load<u32>(queue, QUEUE_START_OFFSET);
  // A run at head needs no marks: head moves past it in one step.
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
 * First thread: takes the next packet of the run in sequence (S3). At the start of a run, it moves sub-tail to the first
 * packet out of sequence, or to tail (S2). With the run's last packet it returns the sub-pointers to the second thread.
 * @returns the packet; 0: there is none until queueReset() has found the next
 */
export function queueTake(queue: usize): u32 {
  // SYNC queue-turn (look): pairs with queueReset(). This thread reads the second thread's words only after it.
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
  // SYNC queue-turn (lock): makes the consumed run and `next` visible; pairs with queueReset().
  if (subHead + 1 == subTail) publish(queue, queue + QUEUE_TURN_OFFSET, QUEUE_LOCKED);
  return packet;
}

/** For one thread that plays both parts: takes the next packet in sequence; 0: it has not arrived. */
export function queueNext(queue: usize): u32 {
  const packet = queueTake(queue);
  return packet == 0 && queueReset(queue) != 0 ? queueTake(queue) : packet;
}
