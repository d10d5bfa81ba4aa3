// Lanes: events, records, and the buffers to which records point. Shared: compiled by asc and imported by TypeScript.

/** Dispatch ids are 0 … DISPATCH_ID_MAX. A record's meta word has 13 bits for one; pamir reserves the upper half. */
export const DISPATCH_ID_MAX: u32 = 4095;
/** Dispatch id of a call. Its header begins with the call's number and the dispatch id of its handler. */
export const DISPATCH_ID_CALL: u32 = 4096;
/** Dispatch id of a reply to a call. Its header is the call's number and result. */
export const DISPATCH_ID_REPLY: u32 = 4097;
/**
 * To the origin of an offered payload, if the target has no region or no memory for a chain: asks for a slice. The header
 * names the origin's rget FIFO as an RTS does, then the slice's offset in the payload, and its bytes.
 */
export const DISPATCH_ID_PULL: u32 = 4098;
/** The slice: its header names the origin's rget FIFO, then the slice's offset and TRANSFER_…; then its bytes. */
export const DISPATCH_ID_PULLED: u32 = 4099;
/** To the origin of an offered payload (P8), if that is in another node: the origin's rget FIFO, then TRANSFER_…. */
export const DISPATCH_ID_NOTICE: u32 = 4100;
/** Between members of a geometry: see layout/collective.ts. */
export const DISPATCH_ID_COLLECTIVE: u32 = 4101;
/** The caller has given a call up. The header is the call's number, and why: see protocol/served-calls.ts. */
export const DISPATCH_ID_ABORT: u32 = 4102;
/** Most bytes of a message's header: 16 bits of a record's meta word. */
export const HEADER_BYTES_MAX: u32 = 65535;
/** Most bytes of header and payload of a `sendImmediate`. */
export const SEND_IMMEDIATE_MAX: u32 = 4096;
/** Most bytes of header and payload (with padding) of a message that is delivered whole: 64 KiB and a header of 4 KiB. */
export const RECV_IMMEDIATE_MAX: u32 = 69632;

// ╒═════════════ EVENT, 16 bytes: one record that advance() found; valid until release() ═══════════════════════════╕
//     0  commit   the record's commit word: kind and bytes of the body
//     4  meta     the record's meta word: dispatch id, flags, bytes of the header
//     8  body     pointer to the body
//    12  origin   ordinal of the origin endpoint
// ╘═════════════════════════════════════════════════════════════════════════════════════════════════════════════════╛
export const EVENT_SIZE: u32 = 16;
export const EVENT_SHIFT: u32 = 4;
export const EVENT_COUNT_MAX: u32 = 256;

/** Bit of advance()'s result: the notice of the task has moved. The lower bits count the events. */
export const ADVANCE_NOTICE: u32 = 0x10000;
export const ADVANCE_EVENTS_MASK: u32 = 0xffff;

// ╒═════════════ LANE: single producer, single consumer; an extent of the heap ═════════════════════════════════════╕
//  byte  field         writer    readers   meaning
//        ── producer's line
//     0  tail          producer  dump      position of the next record to commit                            plain, own
//     4  headCache     producer  producer  stale copy of head
//     8  capacity      open      producer  bytes of the ring, power of two
//    12  recordMax     open      producer  bytes of the largest record (the overhang)
//    16  readyWord     open      producer  pointer to the word with this lane's ready bit
//    20  readyBit      open      producer  the bit in it
//    24  targetTask    open      producer  pointer to the task slot of the target
//    28  reserved      producer  dump      bytes of the record that is reserved and not yet committed, or 0
//    32  origin        open      all       ordinal of the origin endpoint
//    36  target        open      all       ordinal of the target endpoint
//    40  fulls         producer  producer  records that found no room, modulo 2^32
//        ── arming line
//   128  roomWanted    producer  consumer  1 while the producer waits for room; only arming writes it  SYNC room-wanted
//   132  wantedSince   producer  dump      time stamp of the start of this wait
//        ── published line
//   256  head          consumer  producer  every byte before this position is free again         SYNC release
//        ── consumer's line
//   384  next          consumer  dump      position of the next record to take                               plain, own
//   388  ring          open      consumer  pointer to the first byte of the ring
//   392  mask          open      consumer  capacity - 1
//   396  idle          consumer  consumer  rounds in a row that found no record
//   400  paused        consumer  consumer  1: not polled (the unexpected queue is full)
//   404  originTask    open      consumer  pointer to the task slot of the origin
//   408  released      consumer  consumer  own copy of head
//   412  context       open      consumer  pointer to the context block of the target
//   416  messages      consumer  dump      records taken, modulo 2^32
//   420  pausedSince   consumer  dump      time stamp of its pause
//   424  keep          open      consumer  bytes that it may read and not free: see RELEASE_BYTES
//   512  ring[capacity + overhang]                                                               SYNC commit
//
//  Positions count bytes and wrap at 2^32 (107 s at 40 M messages/s of 16 bytes). So the kernels compare differences
//  only, and a capacity stays below 2^31. A record begins at ring + (position & mask) and is contiguous. A record that
//  begins near the end runs on into the overhang, which is as long as the largest record.
// ╘═════════════════════════════════════════════════════════════════════════════════════════════════════════════════╛
export const LANE_TAIL_OFFSET: u32 = 0;
export const LANE_HEAD_CACHE_OFFSET: u32 = 4;
export const LANE_CAPACITY_OFFSET: u32 = 8;
export const LANE_RECORD_MAX_OFFSET: u32 = 12;
export const LANE_READY_WORD_OFFSET: u32 = 16;
export const LANE_READY_BIT_OFFSET: u32 = 20;
export const LANE_TARGET_TASK_OFFSET: u32 = 24;
export const LANE_RESERVED_OFFSET: u32 = 28;
export const LANE_ORIGIN_OFFSET: u32 = 32;
export const LANE_TARGET_OFFSET: u32 = 36;
export const LANE_FULLS_OFFSET: u32 = 40;
export const LANE_ROOM_WANTED_OFFSET: u32 = 128;
export const LANE_WANTED_SINCE_OFFSET: u32 = 132;
export const LANE_HEAD_OFFSET: u32 = 256;
export const LANE_NEXT_OFFSET: u32 = 384;
export const LANE_RING_OFFSET: u32 = 388;
export const LANE_MASK_OFFSET: u32 = 392;
export const LANE_IDLE_OFFSET: u32 = 396;
export const LANE_PAUSED_OFFSET: u32 = 400;
export const LANE_ORIGIN_TASK_OFFSET: u32 = 404;
export const LANE_RELEASED_OFFSET: u32 = 408;
export const LANE_CONTEXT_OFFSET: u32 = 412;
export const LANE_MESSAGES_OFFSET: u32 = 416;
export const LANE_PAUSED_SINCE_OFFSET: u32 = 420;
export const LANE_KEEP_OFFSET: u32 = 424;
export const LANE_CONTROL_SIZE: u32 = 512;

/** Least ring: four of the smallest records. */
export const LANE_BYTES_MIN: u32 = 64;

// ╒═════════════ RECORD: 16-byte granules, at 16-byte aligned positions ════════════════════════════════════════════╕
//     0  commit   0: nothing here yet. Else RECORD_COMMITTED | kind << 28 | bytes of the body    SYNC commit
//     4  meta     header bytes << 16 | dispatch id, 13 bits
//     8  body     header, padded to 8 bytes, then payload: so the payload is 8-byte aligned
//  The word at tail is always 0: before the producer commits a record, it sets the first word after it to 0. That is the
//  whole commit protocol; all other free bytes mean nothing.
// ╘═════════════════════════════════════════════════════════════════════════════════════════════════════════════════╛
export const RECORD_COMMIT_OFFSET: u32 = 0;
export const RECORD_META_OFFSET: u32 = 4;
export const RECORD_BODY_OFFSET: u32 = 8;
export const RECORD_GRANULE: u32 = 16;
export const RECORD_COMMITTED: u32 = 0x80000000;
export const RECORD_KIND_SHIFT: u32 = 28;
export const RECORD_KIND_MASK: u32 = 7;
export const RECORD_LENGTH_MASK: u32 = 0x0fffffff;
export const META_DISPATCH_MASK: u32 = 0x1fff;
export const META_HEADER_SHIFT: u32 = 16;

/** A whole message. */
export const KIND_MESSAGE: u32 = 0;
/**
 * First packet of a message: body = bytes of the whole payload (u32), 4 bytes unused, the message's body as far as it fits.
 * If there is no memory for a larger lane, the part that the handler needs may go on in further packets. That part is the
 * whole message; of a message above RECV_IMMEDIATE_MAX it is the header.
 */
export const KIND_FIRST: u32 = 1;
/** A further packet: body = the next bytes of the message's body. */
export const KIND_MORE: u32 = 2;
/** The lane ends here: body = pointer to the lane that replaces it, or 0. */
export const KIND_SWITCH: u32 = 3;
/** A request to send (P1): body = an RTS, then the message's header; the payload stays where it is. */
export const KIND_RTS: u32 = 4;
/** A message with its payload in a buffer: body = a BUFFER record, then the message's header. */
export const KIND_BUFFER: u32 = 5;
/** Breaks off the message that has begun in packets: the target drops it. No body. */
export const KIND_BROKEN: u32 = 6;
/** Bytes that precede the message's body in a KIND_FIRST record. */
export const FIRST_PREFIX_SIZE: u32 = 8;

// ╒═════════════ BUFFER record, 24 bytes: where a payload lies; by itself in the body of a KIND_BUFFER record ═══════╕
//     0  slot     pointer to its slot in the origin's POOL block
//     4  extent   pointer to the extent that holds the payload
//     8  place    pointer to the payload's first byte
//    12  bytes    of the payload
//    16  given    1: the origin has given the extent away; 0: the extent goes back to the origin's pool
//    20  (free)
// ╘═════════════════════════════════════════════════════════════════════════════════════════════════════════════════╛
export const BUFFER_SLOT_OFFSET: u32 = 0;
export const BUFFER_EXTENT_OFFSET: u32 = 4;
export const BUFFER_PLACE_OFFSET: u32 = 8;
export const BUFFER_BYTES_OFFSET: u32 = 12;
export const BUFFER_GIVEN_OFFSET: u32 = 16;
export const BUFFER_SIZE: u32 = 24;

// ╒═════════════ POOL block, one page: an extent of a task that has sent a payload in a buffer ══════════════════════╕
//  byte  field      writer    readers   meaning
//     0  wanted     origin    target    1 while a context of the origin waits for a buffer       SYNC buffer-wanted
//     4  task       origin    target    pointer to the origin's task slot           plain: written before any record
//   128  slots[960] origin,   origin    BUFFER_SENT: the target reads it; the target stores one of the two others:
//                   target              BUFFER_FREE: it is the pool's again; BUFFER_GONE: the target's  SYNC buffer-read
//  The heap's table names one owner of an extent: the origin's task, or the target's once the target keeps it. The
//  target changes the owner before it stores BUFFER_GONE.
// ╘═════════════════════════════════════════════════════════════════════════════════════════════════════════════════╛
export const POOL_WANTED_OFFSET: u32 = 0;
export const POOL_TASK_OFFSET: u32 = 4;
export const POOL_SLOTS_OFFSET: u32 = 128;
export const POOL_SLOTS: u32 = 960;
export const POOL_SIZE: u32 = 4096;
export const BUFFER_FREE: u32 = 0;
export const BUFFER_SENT: u32 = 1;
export const BUFFER_GONE: u32 = 2;

/** An entry of attended[]: pointer, ordinal. */
export const ATTENDED_SIZE: u32 = 8;
export const ATTENDED_SHIFT: u32 = 3;
