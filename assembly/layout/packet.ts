// Packets, as they travel between nodes; no other thread of the node reads them. Shared: compiled by asc and imported by
// TypeScript.

// ╒═════════════ PACKET: as it travels, little-endian, a multiple of 4 bytes, 4-aligned where it is checked ═════════════╕
//  byte  field     width  meaning
//     0  magic     u8     PACKET_MAGIC
//     1  version   u8     PACKET_VERSION
//     2  kind      u8     PACKET_CONNECT …
//     3  flags     u8     PACKET_SEALED, and of DATA PACKET_PROMPT, PACKET_HALF; every other bit is 0
//     4  length    u16    bytes of all of it, tag included
//     6  body      u16    where the body begins: what lies between is of a later version, and skipped
//     8  job       u32    fingerprint of the job: others' packets are none of ours
//    12  session   u32    what its receiver has given out: a responder's session id, an initiator's reference; CONNECT: 0
//    16  sent      u32    number of packets that this side has sent in the session, this one included: never twice the same
//    20  number    u32    DATA: the packet number, from 1 on, the same each time it is sent; else 0
//    24  body             of a sealed one of a session encrypted: it means nothing until it is opened
//        tag       16 B   of a sealed one: behind the body, over all that stands before it
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
/** Flags. A tag stands at the end; who opens a packet takes it off, and looks at what was in it as at any other. */
export const PACKET_SEALED: u32 = 1;
/** Data: to be acknowledged at once, nothing comes behind it for now. */
export const PACKET_PROMPT: u32 = 2;
/** Data: `session` is the first word of the nonce of its connect packet, which was not acknowledged yet (D5b). */
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
//     0  initiator  u32   the initiator context's reference: `session` of what comes back
//     4  node       u32   number of the origin's node
//     8  epoch      u32   counts that node's starts (upper half), and how often it has given up the target's; not 0
//    12  target     u32   number of the node that is meant
//    16  options    u32   CONNECT_HALF: data follows at once; every other bit is 0
//    20  known      u32   the target's epoch, as the origin knows it; 0: not at all
//    24  serial     u32   counts the connect packets of this start of the origin's node: no two have the same
//    28  nonce[4]   u32   drawn anew for each connection
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
//     4  epoch      u32   of the target's node, likewise; not 0
//     8  limit      u32   data packets may have numbers below it
//    12  reserved   u32   0
//    16  echo[2]    u32   first half of the nonce that is answered
//    24  nonce[4]   u32   drawn anew for each session
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
//     8  echo[2]    u32   first half of the nonce that is answered; of an unknown session: 0
// ╘══════════════════════════════════════════════════════════════════════════════════════════════════════════════╛
export const REFUSE_REASON_OFFSET: u32 = 0;
export const REFUSE_WAIT_OFFSET: u32 = 4;
export const REFUSE_ECHO_OFFSET: u32 = 8;
export const REFUSE_SIZE: u32 = 16;
/** All responders are in use. */
export const REFUSED_BUSY: u32 = 1;
/** No such session: it was closed, or its node has started anew. `session` is then the id that is unknown. */
export const REFUSED_UNKNOWN: u32 = 2;
/** The node is another one than the one that is meant. */
export const REFUSED_NODE: u32 = 3;
/** The origin's number is another's: its packets come from another address, or a later start of it is known. */
export const REFUSED_NAME: u32 = 4;

// ╒═════════════ ACKNOWLEDGE: body, 24 bytes and a bit mask ═════════════════════════════════════════════════════╕
//     0  all        u32   every data packet with a number below it is here
//     4  echo       u32   `sent` of the data packet that came last
//     8  delay      u32   microseconds since then
//    12  limit      u32   data packets may have numbers below it
//    16  repeated   u32   data packets that came more than once, in this session
//    20  words      u32   words of the mask, 0 … ACKNOWLEDGE_WORDS_MAX
//    24  mask[words]      bit i: packet all + 1 + i is here, too
// ╘══════════════════════════════════════════════════════════════════════════════════════════════════════════════╛
export const ACKNOWLEDGE_ALL_OFFSET: u32 = 0;
export const ACKNOWLEDGE_ECHO_OFFSET: u32 = 4;
export const ACKNOWLEDGE_DELAY_OFFSET: u32 = 8;
export const ACKNOWLEDGE_LIMIT_OFFSET: u32 = 12;
export const ACKNOWLEDGE_REPEATED_OFFSET: u32 = 16;
export const ACKNOWLEDGE_WORDS_OFFSET: u32 = 20;
export const ACKNOWLEDGE_MASK_OFFSET: u32 = 24;
export const ACKNOWLEDGE_WORDS_MAX: u32 = 32;

// ╒═════════════ SEGMENT: of a DATA packet's body, one behind the other; at least one ═══════════════════════════╕
//     0  origin     u32   ordinal of the endpoint that it is from
//     4  target     u32   ordinal of the endpoint that it is for
//     8  order      u32   order number of the pair's stream: counts its segments, whatever session they travel in
//    12  length     u16   bytes of the content
//    14  kind       u16   SEGMENT_RECORDS …
//    16  content          padded to a multiple of 4
// ╘══════════════════════════════════════════════════════════════════════════════════════════════════════════════╛
export const SEGMENT_ORIGIN_OFFSET: u32 = 0;
export const SEGMENT_TARGET_OFFSET: u32 = 4;
export const SEGMENT_ORDER_OFFSET: u32 = 8;
export const SEGMENT_LENGTH_OFFSET: u32 = 12;
export const SEGMENT_KIND_SHIFT: u32 = 16;
export const SEGMENT_SIZE: u32 = 16;
/** Kinds of segments are 1 … SEGMENT_KIND_MAX. Records of messages. */
export const SEGMENT_RECORDS: u32 = 1;
/** u32: so many bytes of records were taken. */
export const SEGMENT_CREDIT: u32 = 2;
/** A part of a one-sided operation: number, bytes done before, descriptor; the bytes of a put. */
export const SEGMENT_ASK: u32 = 3;
/** Number, result; the bytes of a get. */
export const SEGMENT_ANSWER: u32 = 4;
/** u32: 0 the origin endpoint has closed, 1 its task has left. Nothing comes behind it. */
export const SEGMENT_END: u32 = 5;
/** Nothing: that it is acknowledged says that its target lives. */
export const SEGMENT_PROBE: u32 = 6;
/**
 * Of a self-pacing transfer: CHAIN_…, how many words follow, those: the receiver's window as an RTS names one (region of its
 * block, that one's generation, offset, its own generation), what the kind says; the bytes of a portion.
 */
export const SEGMENT_CHAIN: u32 = 7;
/** To an origin (P2): the target's window, and the first descriptors that its origin RGETs ship. */
export const CHAIN_BEGIN: u32 = 1;
/** To either side (P3–P5, P8): descriptors, for the slots of its window. */
export const CHAIN_SHIP: u32 = 2;
/**
 * To the target (P6): where a slice of a portion goes (region, generation, offset), TRANSFER_…, bytes of the portion that are
 * over by it: 0, or all.
 */
export const CHAIN_MOVE: u32 = 3;
/** To the origin: TRANSFER_…, all is there. Its NOTICE waits for that. */
export const CHAIN_OVER: u32 = 4;
/** To the origin (P10): nothing more is to be moved. */
export const CHAIN_STOP: u32 = 5;
/**
 * To the origin, where the target has no region or no memory for a chain: region, generation, offset, bytes of a slice; where
 * it is in the payload.
 */
export const CHAIN_PULL: u32 = 6;
/** To the target, whose window it does not name, but the origin's again: where it is in the payload, TRANSFER_…; its bytes. */
export const CHAIN_PULLED: u32 = 7;
/** Added to a kind: the content goes on in the next segment of the stream. */
export const SEGMENT_MORE: u32 = 8;
export const SEGMENT_KIND_MAX: u32 = 15;

/** What packetCheck() says: the first rule that a packet breaks. */
export const PACKET_RIGHT: u32 = 0;
export const PACKET_WRONG_SIZE: u32 = 1;
export const PACKET_WRONG_MAGIC: u32 = 2;
export const PACKET_WRONG_VERSION: u32 = 3;
export const PACKET_WRONG_KIND: u32 = 4;
export const PACKET_WRONG_FLAGS: u32 = 5;
/** It says that it is longer or shorter than it is. */
export const PACKET_WRONG_LENGTH: u32 = 6;
export const PACKET_WRONG_JOB: u32 = 7;
export const PACKET_WRONG_SESSION: u32 = 8;
export const PACKET_WRONG_NUMBER: u32 = 9;
/** Its body is none of its kind. */
export const PACKET_WRONG_BODY: u32 = 10;
export const PACKET_WRONG_SEGMENT: u32 = 11;
