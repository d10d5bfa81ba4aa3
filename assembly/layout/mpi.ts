// The matching engine of MPI: its block, requests, messages that came before their receive, the header of a message.
// One task owns an engine; no other thread reads or writes it. So no word here is a sync point.

// ╒═════════════ MPI_ENGINE block, 256 bytes: a region of its task begins with it; the MPI_COMM entries follow ═════╕
//  byte  field         meaning
//     0  next          pointer to the first byte of the engine's memory that was never part of a block
//     4  end           pointer behind the engine's memory
//     8  commCount     length of the table of MPI_COMM entries
//    12  stored        messages that no receive has yet, those that mpiTake() took out of their queue included
//    16  storedBytes   bytes that follow their headers
//    20  posted        receives that wait for a message
//    24  sentFirst     pointer to the first request in state MPI_REQUEST_SENT, or 0
//    28  sentLast      pointer to the last one; undefined without a first
//   128  free[32]      by size class: pointer to the first free block of 2^class bytes; its first word: to the next
// ╘═════════════════════════════════════════════════════════════════════════════════════════════════════════════════╛
export const MPI_ENGINE_NEXT_OFFSET: u32 = 0;
export const MPI_ENGINE_END_OFFSET: u32 = 4;
export const MPI_ENGINE_COMM_COUNT_OFFSET: u32 = 8;
export const MPI_ENGINE_STORED_OFFSET: u32 = 12;
export const MPI_ENGINE_STORED_BYTES_OFFSET: u32 = 16;
export const MPI_ENGINE_POSTED_OFFSET: u32 = 20;
export const MPI_ENGINE_SENT_FIRST_OFFSET: u32 = 24;
export const MPI_ENGINE_SENT_LAST_OFFSET: u32 = 28;
export const MPI_ENGINE_FREE_OFFSET: u32 = 128;
export const MPI_ENGINE_SIZE: u32 = 256;
/** Smallest block: 64 bytes. */
export const MPI_BLOCK_CLASS_MIN: u32 = 6;
/** Largest block: 128 KiB, for a message of RECV_IMMEDIATE_MAX bytes. */
export const MPI_BLOCK_CLASS_MAX: u32 = 17;

// ╒═════════════ MPI_COMM entry, 16 bytes: the two queues of one communicator, in the order of arrival ═════════════╕
//     0  postedFirst   pointer to the first MPI_REQUEST that waits for a message, or 0
//     4  postedLast    pointer to the last one; undefined without a first
//     8  storedFirst   pointer to the first MPI_STORED message, or 0
//    12  storedLast    pointer to the last one; undefined without a first
// ╘═════════════════════════════════════════════════════════════════════════════════════════════════════════════════╛
export const MPI_COMM_POSTED_FIRST_OFFSET: u32 = 0;
export const MPI_COMM_POSTED_LAST_OFFSET: u32 = 4;
export const MPI_COMM_STORED_FIRST_OFFSET: u32 = 8;
export const MPI_COMM_STORED_LAST_OFFSET: u32 = 12;
export const MPI_COMM_SHIFT: u32 = 4;
export const MPI_COMM_SIZE: u32 = 16;

// ╒═════════════ MPI_REQUEST: 64 bytes, a receive, or a send that its target has not answered yet ══════════════════╕
//     0  next          pointer to the next one of its queue, or 0
//     4  state         MPI_REQUEST_…
//     8  comm          number of its communicator
//    12  source        of a receive: the rank that it waits for, or MPI_ANY; once it is matched: the rank that sent
//    16  tag           the tag that it waits for, or MPI_ANY; once it is matched: that of the message
//    20  buffer        pointer to where the payload goes
//    24  capacity      bytes of the buffer
//    28  bytes         bytes of the message's payload, once it is matched
//    32  error         0, MPI_TRUNCATED, or what mpiFail() was given
//    36  origin        of a matched receive: the endpoint that sent; of a send: the endpoint that has to answer
//    40  answer        of a matched MPI_RTS: the number by which its sender knows it
//    44  index         of a matched MPI_RTS: number of its sender's region that has the payload
//    48  generation    of that region
//    52  offset        of the payload in that region
//    56  kind          MPI_RECEIVE or MPI_SEND; 0: the block is no request
// ╘═════════════════════════════════════════════════════════════════════════════════════════════════════════════════╛
export const MPI_REQUEST_NEXT_OFFSET: u32 = 0;
export const MPI_REQUEST_STATE_OFFSET: u32 = 4;
export const MPI_REQUEST_COMM_OFFSET: u32 = 8;
export const MPI_REQUEST_SOURCE_OFFSET: u32 = 12;
export const MPI_REQUEST_TAG_OFFSET: u32 = 16;
export const MPI_REQUEST_BUFFER_OFFSET: u32 = 20;
export const MPI_REQUEST_CAPACITY_OFFSET: u32 = 24;
export const MPI_REQUEST_BYTES_OFFSET: u32 = 28;
export const MPI_REQUEST_ERROR_OFFSET: u32 = 32;
export const MPI_REQUEST_ORIGIN_OFFSET: u32 = 36;
export const MPI_REQUEST_ANSWER_OFFSET: u32 = 40;
export const MPI_REQUEST_INDEX_OFFSET: u32 = 44;
export const MPI_REQUEST_GENERATION_OFFSET: u32 = 48;
export const MPI_REQUEST_OFFSET_OFFSET: u32 = 52;
export const MPI_REQUEST_KIND_OFFSET: u32 = 56;
export const MPI_REQUEST_SIZE: u32 = 64;
/** Kinds of requests: numbers that no other block has at this place by chance. */
export const MPI_RECEIVE: u32 = 0x56435250;
export const MPI_SEND: u32 = 0x444e5350;

/** The entry is no request. */
export const MPI_REQUEST_FREE: u32 = 0;
/** A receive without a message. */
export const MPI_REQUEST_POSTED: u32 = 1;
/** A receive whose payload its caller has to get from the sender's region. */
export const MPI_REQUEST_MATCHED: u32 = 2;
/** A send that waits for its target's answer. */
export const MPI_REQUEST_SENT: u32 = 3;
export const MPI_REQUEST_DONE: u32 = 4;
/** A receive that was taken back. */
export const MPI_REQUEST_CANCELED: u32 = 5;

/** Any rank, or any tag. */
export const MPI_ANY: i32 = -1;
/** Error of a request whose message is longer than its buffer. */
export const MPI_TRUNCATED: u32 = 15;

// ╒═════════════ MPI_HEADER: 16 bytes, of each message of the engine: with 8 bytes of payload, half a cache line ═══╕
//     0  comm          number of the communicator, below 2^16; from bit 16 on: MPI_EAGER, the payload follows;
//                      MPI_RTS, its place follows; or MPI_ANSWER, nothing follows
//     4  source        rank of the sender in it
//     8  tag           of the message, never MPI_ANY
//    12  bytes         bytes of the message's payload; of MPI_ANSWER: the request of the MPI_RTS
// ╘═════════════════════════════════════════════════════════════════════════════════════════════════════════════════╛
export const MPI_HEADER_COMM_OFFSET: u32 = 0;
export const MPI_HEADER_KIND_SHIFT: u32 = 16;
export const MPI_HEADER_COMM_MASK: u32 = 0xffff;
export const MPI_HEADER_SOURCE_OFFSET: u32 = 4;
export const MPI_HEADER_TAG_OFFSET: u32 = 8;
export const MPI_HEADER_BYTES_OFFSET: u32 = 12;
export const MPI_HEADER_SIZE: u32 = 16;
export const MPI_EAGER: u32 = 0;
export const MPI_RTS: u32 = 1;
export const MPI_ANSWER: u32 = 2;

// ╒═════════════ MPI_RTS: 16 bytes, what follows the header of a message of that kind ══════════════════════════════╕
//     0  index         number of the sender's region that has the payload
//     4  generation    of that region
//     8  offset        of the payload in that region
//    12  request       the number by which the sender knows it
// ╘═════════════════════════════════════════════════════════════════════════════════════════════════════════════════╛
export const MPI_RTS_INDEX_OFFSET: u32 = 0;
export const MPI_RTS_GENERATION_OFFSET: u32 = 4;
export const MPI_RTS_OFFSET_OFFSET: u32 = 8;
export const MPI_RTS_REQUEST_OFFSET: u32 = 12;
export const MPI_RTS_SIZE: u32 = 16;

// ╒═════════════ MPI_STORED: a message that came before its receive ════════════════════════════════════════════════╕
//     0  next          pointer to the next one of its communicator, or 0
//     4  origin        the endpoint that sent it
//     8  header        the message's header
//    24  payload       the payload of an MPI_EAGER message, or what follows the header of an MPI_RTS
// ╘═════════════════════════════════════════════════════════════════════════════════════════════════════════════════╛
export const MPI_STORED_NEXT_OFFSET: u32 = 0;
export const MPI_STORED_ORIGIN_OFFSET: u32 = 4;
export const MPI_STORED_HEADER_OFFSET: u32 = 8;
export const MPI_STORED_PAYLOAD_OFFSET: u32 = 24;
/** Most bytes of an MPI_EAGER message: with these, an MPI_STORED fills the largest block. */
export const MPI_EAGER_BYTES_MAX: u32 = 131048;

/** Of mpiArrive(): the message is stored. */
export const MPI_ARRIVED_STORED: u32 = 0;
/** Of mpiArrive(), mpiPost(), mpiSent() and mpiMatched(): the engine needs more memory first. Nothing has happened. */
export const MPI_NO_MEMORY: u32 = 1;
/** Of mpiArrive(): an answer to no request of this engine, or a message that no engine sends. Nothing has happened. */
export const MPI_NO_REQUEST: u32 = 2;
