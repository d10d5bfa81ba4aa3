// Packets, as they travel between nodes; no other thread of the node reads them. Shared: compiled by asc and imported by
// TypeScript.

// ╒═════════════ PACKET: as it travels, little-endian; its size is a multiple of 4, and a copy to check 4-aligned ═══════╕
//  byte  field     width  meaning
//     0  magic     u8     PACKET_MAGIC
//     1  version   u8     PACKET_VERSION
//     2  kind      u8     PACKET_CONNECT …
//     3  flags     u8     PACKET_SEALED; in DATA also PACKET_PROMPT, PACKET_HALF; every other bit is 0
//     4  length    u16    bytes of the whole packet, tag included
//     6  body      u16    offset of the body: a later version adds fields before it, which are skipped
//     8  job       u32    fingerprint of the job: packets of other jobs are dropped
//    12  session   u32    the receiver's id: a responder's session id, or an initiator's reference; CONNECT: 0
//    16  sent      u32    counts the packets that this side has sent in the session, this one included: never repeats
//    20  number    u32    DATA: the packet number, from 1 on, the same each time it is sent; else 0
//    24  body             in a sealed packet of a session encrypted: it means nothing until the packet is opened
//        tag       16 B   in a sealed packet: after the body, over all bytes before it
//  A datagram has one packet, or an ACKNOWLEDGE and another packet behind it.
// ╘═════════════════════════════════════════════════════════════════════════════════════════════════════════════════════╛
export const PACKET_MAGIC: u32 = 0x50;
export const PACKET_VERSION: u32 = 1;
export const PACKET_KIND_SHIFT: u32 = 16;
export const PACKET_FLAGS_SHIFT: u32 = 24;
export const PACKET_LENGTH_OFFSET: u32 = 4;
export const PACKET_JOB_OFFSET: u32 = 8;
export const PACKET_SESSION_OFFSET: u32 = 12;
export const PACKET_SENT_OFFSET: u32 = 16;
export const PACKET_NUMBER_OFFSET: u32 = 20;
/** Bytes of the header of this version. */
export const PACKET_SIZE: u32 = 24;
/** Largest packet: what a UDP datagram takes, in words. */
export const PACKET_BYTES_MAX: u32 = 65504;
export const TAG_BYTES: u32 = 16;
/** Flags. The packet ends with a tag. The receiver opens it, removes the tag, and checks the content as any other. */
export const PACKET_SEALED: u32 = 1;
/** Data: to be acknowledged at once, because no packet follows for now. */
export const PACKET_PROMPT: u32 = 2;
/** Data: `session` is the first word of the nonce of its connect packet, which is not acknowledged yet (D5b). */
export const PACKET_HALF: u32 = 4;

/** Kinds of packets: origin to target, … */
export const PACKET_CONNECT: u32 = 1;
export const PACKET_DATA: u32 = 2;
export const PACKET_DISCONNECT: u32 = 3;
/** … and target to origin. */
export const PACKET_ACCEPT: u32 = 4;
export const PACKET_REFUSE: u32 = 5;
export const PACKET_ACKNOWLEDGE: u32 = 6;

// ╒═════════════ CONNECT: body, 44 bytes ════════════════════════════════════════════════════════════════════════╕
//     0  initiator  u32   the initiator context's reference: `session` of the replies
//     4  node       u32   number of the origin's node
//     8  epoch      u32   counts that node's starts (upper half), and how often it has given up the target's node; not 0
//    12  target     u32   number of the intended node
//    16  options    u32   CONNECT_HALF: data follows at once; every other bit is 0
//    20  known      u32   the target's epoch, as the origin knows it; 0: unknown
//    24  serial     u32   counts the connect packets of this start of the origin's node: never repeats
//    28  nonce[4]   u32   random: two words of this connection, then two of this start of the node, its instance
// ╘══════════════════════════════════════════════════════════════════════════════════════════════════════════════╛
export const CONNECT_INITIATOR_OFFSET: u32 = 0;
export const CONNECT_NODE_OFFSET: u32 = 4;
export const CONNECT_EPOCH_OFFSET: u32 = 8;
export const CONNECT_TARGET_OFFSET: u32 = 12;
export const CONNECT_OPTIONS_OFFSET: u32 = 16;
export const CONNECT_KNOWN_OFFSET: u32 = 20;
export const CONNECT_SERIAL_OFFSET: u32 = 24;
export const CONNECT_NONCE_OFFSET: u32 = 28;
export const CONNECT_SIZE: u32 = 44;
export const CONNECT_HALF: u32 = 1;

// ╒═════════════ ACCEPT: body, 40 bytes ═════════════════════════════════════════════════════════════════════════╕
//     0  responder  u32   the session id: `session` of all data packets
//     4  epoch      u32   as in CONNECT, of the target's node; not 0
//     8  limit      u32   data packets may have numbers below it
//    12  reserved   u32   0
//    16  echo[2]    u32   first half of the nonce in the CONNECT
//    24  nonce[4]   u32   random: two words of this session, then the instance of the target's node
// ╘══════════════════════════════════════════════════════════════════════════════════════════════════════════════╛
export const ACCEPT_RESPONDER_OFFSET: u32 = 0;
export const ACCEPT_EPOCH_OFFSET: u32 = 4;
export const ACCEPT_LIMIT_OFFSET: u32 = 8;
export const ACCEPT_ECHO_OFFSET: u32 = 16;
export const ACCEPT_NONCE_OFFSET: u32 = 24;
export const ACCEPT_SIZE: u32 = 40;

// ╒═════════════ REFUSE: body, 16 bytes ═════════════════════════════════════════════════════════════════════════╕
//     0  reason     u32   REFUSED_…
//     4  wait       u32   microseconds after which another attempt makes sense
//     8  echo[2]    u32   first half of the nonce in the CONNECT; for an unknown session: 0
// ╘══════════════════════════════════════════════════════════════════════════════════════════════════════════════╛
export const REFUSE_REASON_OFFSET: u32 = 0;
export const REFUSE_WAIT_OFFSET: u32 = 4;
export const REFUSE_ECHO_OFFSET: u32 = 8;
export const REFUSE_SIZE: u32 = 16;
/** All responders are in use. */
export const REFUSED_BUSY: u32 = 1;
/** Unknown session: it was closed, or its node has started anew. Then `session` is the unknown id. */
export const REFUSED_UNKNOWN: u32 = 2;
/** The receiving node is not the intended one. */
export const REFUSED_NODE: u32 = 3;
/** The origin's number belongs to another address, or a later start of that node is known. */
export const REFUSED_NAME: u32 = 4;

// ╒═════════════ ACKNOWLEDGE: body, 24 bytes and a bit mask ═════════════════════════════════════════════════════╕
//     0  all        u32   every data packet with a lower number has arrived
//     4  echo       u32   `sent` of the last data packet
//     8  delay      u32   microseconds since then
//    12  limit      u32   data packets may have numbers below it
//    16  repeated   u32   data packets that came more than once in this session
//    20  words      u32   words of the mask, 0 … ACKNOWLEDGE_WORDS_MAX
//    24  mask[words]      bit i: packet all + 1 + i has arrived, too
// ╘══════════════════════════════════════════════════════════════════════════════════════════════════════════════╛
export const ACKNOWLEDGE_ALL_OFFSET: u32 = 0;
export const ACKNOWLEDGE_ECHO_OFFSET: u32 = 4;
export const ACKNOWLEDGE_DELAY_OFFSET: u32 = 8;
export const ACKNOWLEDGE_LIMIT_OFFSET: u32 = 12;
export const ACKNOWLEDGE_REPEATED_OFFSET: u32 = 16;
export const ACKNOWLEDGE_WORDS_OFFSET: u32 = 20;
export const ACKNOWLEDGE_MASK_OFFSET: u32 = 24;
export const ACKNOWLEDGE_WORDS_MAX: u32 = 32;

// ╒═════════════ SEGMENT: a DATA packet's body is one or more consecutive segments ══════════════════════════════╕
//     0  origin     u32   the sending endpoint
//     4  target     u32   the receiving endpoint
//     8  order      u32   order number in the pair's stream: counts its segments over all sessions
//    12  length     u16   bytes of the content
//    14  kind       u16   of the frame: FRAME_RECORDS …
//    16  content          padded to a multiple of 4
// ╘══════════════════════════════════════════════════════════════════════════════════════════════════════════════╛
export const SEGMENT_ORIGIN_OFFSET: u32 = 0;
export const SEGMENT_TARGET_OFFSET: u32 = 4;
export const SEGMENT_ORDER_OFFSET: u32 = 8;
export const SEGMENT_LENGTH_OFFSET: u32 = 12;
export const SEGMENT_KIND_SHIFT: u32 = 16;
export const SEGMENT_SIZE: u32 = 16;
/** A segment has a frame of one of these kinds, 1 … SEGMENT_KIND_MAX, or a part of one. Records of messages. */
export const FRAME_RECORDS: u32 = 1;
/** u32: bytes of records that the receiver has taken. */
export const FRAME_CREDIT: u32 = 2;
/** A part of a one-sided operation: number, bytes done before, descriptor; then the bytes of a put. */
export const FRAME_ASK: u32 = 3;
/** Number, result; then the bytes of a get. */
export const FRAME_ANSWER: u32 = 4;
/**
 * Two u32. First, 0: the origin endpoint has closed, or 1: its task has left. Then the number of streams that carry this
 * END. It is the stream's last segment.
 */
export const FRAME_END: u32 = 5;
/** Empty: its acknowledgment shows that the target lives. */
export const FRAME_PROBE: u32 = 6;
/**
 * A self-pacing transfer: CHAIN_…, then the number of words that follow. First comes the receiver's rget FIFO, as an RTS
 * names one: its block's region and that region's generation, offset, its own generation. Then come the words of the kind,
 * then the bytes of a fragment.
 */
export const FRAME_CHAIN: u32 = 7;
/** To the origin (P2): the target's rget FIFO, and the first descriptors that its origin RGETs ship. */
export const CHAIN_BEGIN: u32 = 1;
/** To either side (P3–P5, P8): descriptors, for the slots of its rget FIFO. */
export const CHAIN_SHIP: u32 = 2;
/**
 * To the target (P6): the destination of a slice (region, generation, offset), TRANSFER_…, and the bytes of the fragment
 * that it completes: 0, or all.
 */
export const CHAIN_MOVE: u32 = 3;
/**
 * To the origin: TRANSFER_…: the counter is at 0, because all bytes have arrived or a canceled transfer counted them. The
 * origin's NOTICE waits for this.
 */
export const CHAIN_OVER: u32 = 4;
/** To the origin (P10): move no more bytes. */
export const CHAIN_STOP: u32 = 5;
/** Added to a kind: the content continues in the next segment of the stream. */
export const FRAME_MORE: u32 = 8;
export const SEGMENT_KIND_MAX: u32 = 15;

/** Results of packetCheck(): the first rule that a packet breaks. */
export const PACKET_RIGHT: u32 = 0;
export const PACKET_WRONG_SIZE: u32 = 1;
export const PACKET_WRONG_MAGIC: u32 = 2;
export const PACKET_WRONG_VERSION: u32 = 3;
export const PACKET_WRONG_KIND: u32 = 4;
export const PACKET_WRONG_FLAGS: u32 = 5;
/** Its length is not the number of bytes that came. */
export const PACKET_WRONG_LENGTH: u32 = 6;
export const PACKET_WRONG_JOB: u32 = 7;
export const PACKET_WRONG_SESSION: u32 = 8;
export const PACKET_WRONG_NUMBER: u32 = 9;
/** Its body does not fit its kind. */
export const PACKET_WRONG_BODY: u32 = 10;
export const PACKET_WRONG_SEGMENT: u32 = 11;
