// The FIFO message queue of a stream of packets. Shared: compiled by asc and imported by TypeScript.

// ╒═════════════ QUEUE: the FIFO message queue of one stream of packets, 256 bytes and its slots ══════════════════╕
//  byte  field         writer    readers   meaning
//     0  tail          second    both      next slot to insert at                                SYNC queue-insert
//     4  head          second    second    first slot that is not free
//     8  low           second    second    next order number at the last reset: low + window ends the accepted range
//    12  start         second    second    first slot of the run that the first thread is consuming
//    16  duplicates    second    any       packets dropped as duplicates
//    20  outside       second    any       packets dropped as outside the window
//    24  held          second    any       most slots in use at a time
//   128  subHead       first*    both      next slot to consume
//   132  subTail       first*    both      end of the run that is in sequence
//   136  next          first     second*   order number of the next packet to consume
//   192  turn          both      both      QUEUE_LOCKED or QUEUE_RESET                           SYNC queue-turn
//   200  window        init      both      W, power of two
//   204  shared        init      both      1: two threads; 0: one thread plays both parts
//   256  slots[2W]     second    both      {order number, packet}; packet 0: consumed
//        index[W]      second    second    at an order number modulo W: {order number, slot}
//  * the second thread while `turn` is QUEUE_LOCKED
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
/** Values of `turn`. The first thread has consumed the run; the second may reset the sub-pointers. */
export const QUEUE_LOCKED: u32 = 0;
/** The second thread has reset them; the first may consume. */
export const QUEUE_RESET: u32 = 1;
/** Results of an insertion. */
export const INSERT_DONE: u32 = 0;
export const INSERT_DUPLICATE: u32 = 1;
export const INSERT_OUTSIDE: u32 = 2;
