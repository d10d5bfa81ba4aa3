// The FIFO message queue of a stream of packets. Shared: compiled by asc and imported by TypeScript.

// ╒═════════════ QUEUE: the FIFO message queue of one stream of packets, 256 bytes and its slots ══════════════════╕
//  byte  field         writer    readers   meaning
//     0  tail          second    both      next slot to insert at                                SYNC queue-insert
//     4  head          second    second    first slot that is not free
//     8  low           second    second    order number that was expected at the last reset: window + low is the end of
//                                          what is accepted
//    12  start         second    second    slot at which the run began that the first thread is at
//    16  duplicates    second    anybody   packets dropped: they were here before
//    20  outside       second    anybody   packets dropped: beyond the window
//    24  held          second    anybody   most slots that were taken at a time
//   128  subHead       first*    both      next slot to consume
//   132  subTail       first*    both      end of the run that is in sequence
//   136  next          first     second*   order number of the next packet to consume
//   192  turn          both      both      QUEUE_LOCKED or QUEUE_RESET                           SYNC queue-turn
//   200  window        init      both      W, power of two
//   204  shared        init      both      1: the threads are two; 0: they are one
//   256  slots[2W]     second    both      {order number, packet}; packet 0: consumed
//        index[W]      second    second    of an order number, modulo W: {order number, slot}
//  * the second thread while `turn` is QUEUE_LOCKED: it resets them
// ╘═══════════════════════════════════════════════════════════════════════════════════════════════════════════════╛
export const QUEUE_TAIL_OFFSET: u32 = 0;
export const QUEUE_HEAD_OFFSET: u32 = 4;
export const QUEUE_LOW_OFFSET: u32 = 8;
export const QUEUE_START_OFFSET: u32 = 12;
export const QUEUE_DUPLICATES_OFFSET: u32 = 16;
export const QUEUE_OUTSIDE_OFFSET: u32 = 20;
export const QUEUE_HELD_OFFSET: u32 = 24;
export const QUEUE_SUB_HEAD_OFFSET: u32 = 128;
export const QUEUE_SUB_TAIL_OFFSET: u32 = 132;
export const QUEUE_NEXT_OFFSET: u32 = 136;
export const QUEUE_TURN_OFFSET: u32 = 192;
export const QUEUE_WINDOW_OFFSET: u32 = 200;
export const QUEUE_SHARED_OFFSET: u32 = 204;
export const QUEUE_SLOTS_OFFSET: u32 = 256;
/** Bytes of a slot, and of an index entry. */
export const QUEUE_ENTRY_SHIFT: u32 = 3;
export const QUEUE_WINDOW_MIN: u32 = 2;
export const QUEUE_WINDOW_MAX: u32 = 65536;
/** Values of `turn`. The first thread has consumed the run: the sub-pointers are the second's, to reset them. */
export const QUEUE_LOCKED: u32 = 0;
/** The second has reset them: the first goes on there. */
export const QUEUE_RESET: u32 = 1;
/** What came of an insertion. */
export const INSERT_DONE: u32 = 0;
export const INSERT_DUPLICATE: u32 = 1;
export const INSERT_OUTSIDE: u32 = 2;
