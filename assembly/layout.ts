// Every offset, size, flag and limit of the shared linear memory. Compiled by asc and imported by TypeScript, so
// it must stay portable: only `export const` and plain integers, no decorators, no casts, and it imports nothing.
//
// Naming: AREA_FIELD_OFFSET is in bytes from the start of the area. Every word is a u32, little-endian. A word that
// several threads touch names its sync point (the table in src/README.md); in the code, both ends of it name each other.

// A time stamp is milliseconds, modulo 2^32, of a clock that all threads share.

/** Version of the picture below; raised with every change to it. */
export const LAYOUT_VERSION: u32 = 8;
/** First word of a job's memory: "PAMI" in little-endian ASCII. */
export const JOB_MAGIC: u32 = 0x494d4150;

/** Words of different writers lie this far apart: x86-64 and aarch64 prefetch 64-byte lines in pairs. */
export const FALSE_SHARING_SIZE: u32 = 128;
/** Unit of the heap, and the alignment of an extent. */
export const PAGE_SIZE: u32 = 4096;
export const PAGE_SHIFT: u32 = 12;

// ── Limits ──────────────────────────────────────────────────────────────────────────────────────────────────────
/** Tasks of one node, those that have ended included: a task number is never used twice. */
export const TASK_COUNT_MAX: u32 = 1024;
/** Contexts of one task: an endpoint has 8 bits for them, of which the highest is 0, so that it fits an i32. */
export const CONTEXT_COUNT_MAX: u32 = 127;
/** tasks × contexts: one ready bit for each origin endpoint, 32 words of 32 bits. */
export const ENDPOINT_COUNT_MAX: u32 = 1024;
/** Dispatch ids are 0 … DISPATCH_ID_MAX: 13 bits of a record's meta word, of which pamir has the upper half for itself. */
export const DISPATCH_ID_MAX: u32 = 4095;
/** A call: its header begins with its number and the dispatch id that it is for. */
export const DISPATCH_ID_CALL: u32 = 4096;
/** The reply to a call: its header is the call's number and what it came to. */
export const DISPATCH_ID_REPLY: u32 = 4097;
/** Bytes of a message's header: 16 bits of a record's meta word. */
export const HEADER_BYTES_MAX: u32 = 65535;
/** Header and payload of a `sendImmediate`. */
export const SEND_IMMEDIATE_MAX: u32 = 4096;
/** Header and payload (with padding) of a message that is delivered whole: 64 KiB and a header of 4 KiB. */
export const RECV_IMMEDIATE_MAX: u32 = 69632;
/** Regions of one task: their indices have 20 bits in a handle, for all tasks together. */
export const REGION_COUNT_MAX: u32 = 1024;
export const REGION_COUNT_DEFAULT: u32 = 1024;
/** Injection FIFOs of one context: a bit each in a word. */
export const FIFO_COUNT_MAX: u32 = 32;
export const FIFO_COUNT_DEFAULT: u32 = 4;
/** Slots of an injection FIFO: at least two transfers with a callback each (C3). */
export const SLOT_COUNT_MIN: u32 = 4;
export const SLOT_COUNT_MAX: u32 = 1048576;
export const SLOT_COUNT_DEFAULT: u32 = 64;
/** Bytes of one message: its size is announced as a u32. */
export const MESSAGE_BYTES_MAX: u32 = 0x7fffffff;

// ╒═════════════ JOB header, 640 bytes, at the base of the map ════════════════════════════════════════════════════╕
//  byte  field         writer    readers   meaning
//     0  magic         launch    attach    JOB_MAGIC                                     plain: written before any task
//     4  version       launch    attach    LAYOUT_VERSION
//     8  hash          launch    attach    LAYOUT_HASH of the launching pamir
//    12  tasks         launch    all       T, task slots
//    16  contexts      launch    all       C, contexts of each task
//    20  cores         launch    all       hardware threads that this process may run at once
//    24  laneBytes     launch    all       capacity of a new lane, power of two
//    28  tasksBase     launch    all       pointer to T task slots
//    32  contextsBase  launch    all       pointer to T × C context blocks
//    36  contextSize   launch    all       bytes from one context block to the next
//    40  heapTable     launch    all       pointer to one word for each page of the heap
//    44  heapBase      launch    all       pointer to the first page
//    48  heapPages     launch    all       number of pages
//    52  memoryEnd     launch    all       first byte behind the map (modulo 2^32)
//    56  regionsBase   launch    all       pointer to T × R region entries
//    60  regions       launch    all       R, regions of each task
//    64  injectionBase launch    all       pointer to T × C × F injection FIFOs
//    68  injectionSize launch    all       bytes from one injection FIFO to the next
//    72  fifos         launch    all       F, injection FIFOs of each context
//    76  slots         launch    all       slots of each, power of two
//    80  traceBase     launch    all       pointer to T trace rings
//    84  traceEvents   launch    all       events that each holds, power of two, or 0: there are none
//    88  engine        launch    all       pointer to the slot of the engine thread, or 0: each task is its own engine
//   128  spinning[32]  each task its bit   tasks in the long phase of their spin                 SYNC spinners
//   256  heapLock      allocator           0, or task + 1 of the holder                          SYNC heap-lock
//   384  started       launcher  all       tasks that exist so far, of those T
//   512  due[32]       all set,  engine    bit i: the engine thread is to look at context i (by ordinal)  SYNC engine-call
//                      engine clears
// ╘═════════════════════════════════════════════════════════════════════════════════════════════════════════════════╛
export const JOB_MAGIC_OFFSET: u32 = 0;
export const JOB_VERSION_OFFSET: u32 = 4;
export const JOB_HASH_OFFSET: u32 = 8;
export const JOB_TASKS_OFFSET: u32 = 12;
export const JOB_CONTEXTS_OFFSET: u32 = 16;
export const JOB_CORES_OFFSET: u32 = 20;
export const JOB_LANE_BYTES_OFFSET: u32 = 24;
export const JOB_TASKS_BASE_OFFSET: u32 = 28;
export const JOB_CONTEXTS_BASE_OFFSET: u32 = 32;
export const JOB_CONTEXT_SIZE_OFFSET: u32 = 36;
export const JOB_HEAP_TABLE_OFFSET: u32 = 40;
export const JOB_HEAP_BASE_OFFSET: u32 = 44;
export const JOB_HEAP_PAGES_OFFSET: u32 = 48;
export const JOB_MEMORY_END_OFFSET: u32 = 52;
export const JOB_REGIONS_BASE_OFFSET: u32 = 56;
export const JOB_REGIONS_OFFSET: u32 = 60;
export const JOB_INJECTION_BASE_OFFSET: u32 = 64;
export const JOB_INJECTION_SIZE_OFFSET: u32 = 68;
export const JOB_FIFOS_OFFSET: u32 = 72;
export const JOB_SLOTS_OFFSET: u32 = 76;
export const JOB_TRACE_BASE_OFFSET: u32 = 80;
export const JOB_TRACE_EVENTS_OFFSET: u32 = 84;
export const JOB_ENGINE_OFFSET: u32 = 88;
export const JOB_SPINNING_OFFSET: u32 = 128;
export const JOB_HEAP_LOCK_OFFSET: u32 = 256;
export const JOB_STARTED_OFFSET: u32 = 384;
export const JOB_DUE_OFFSET: u32 = 512;
export const JOB_SIZE: u32 = 640;

// ╒═════════════ TASK slot, 384 bytes; behind those of the tasks one for the engine thread, if there is one ═════════╕
//  byte  field      writer            readers   meaning
//     0  state      the task, monitor all       TASK_ABSENT → TASK_UP → TASK_CLOSED; monitor: → TASK_DEAD  SYNC task-state
//                                               of the engine thread, monitor: TASK_ABSENT → TASK_CLOSED
//     4  notice     whoever tells     the task  counts ends, interrupts, closed regions: look again  SYNC notice
//     8  interrupt  launcher          the task  counts interrupts addressed to it                SYNC notice
//    12  told       whoever tells     all       1: it has ended, and every task has been told so  SYNC quiescence
//    16  since      the task          dump      when it last fell asleep or woke, a time stamp
//    20  sleeps     the task          dump      times that it fell asleep, modulo 2^32
//    24  seen       engine thread     all       of its own slot: the notice that it has dealt with  SYNC quiescence
//    28  turn       engine thread     itself    of its own slot: what moved the last slice, see engineServe()
//    32  alone      engine thread     itself    of its own slot: 1: that is a FIFO, and it alone was long
//    36  spinsWon   the task          dump      spins in which what it waited for came, modulo 2^32
//    40  spinsLost  the task          dump      spins behind which it slept, or in which another thread took its core
//    44  pooled     the task          dump      bytes of its pool of buffers
//    48  kept       the task          dump      bytes of received buffers that it keeps
//   128  parked     the task,         ringers   1 from its arming until it is awake, or rung: the first  SYNC park
//                   ringers                     ring takes the flag down, for all that follow
//   256  bell       ringers           the task  what the task sleeps on; counts the rings        SYNC park
// ╘═════════════════════════════════════════════════════════════════════════════════════════════════════════════════╛
export const TASK_STATE_OFFSET: u32 = 0;
export const TASK_NOTICE_OFFSET: u32 = 4;
export const TASK_INTERRUPT_OFFSET: u32 = 8;
export const TASK_TOLD_OFFSET: u32 = 12;
export const TASK_SINCE_OFFSET: u32 = 16;
export const TASK_SLEEPS_OFFSET: u32 = 20;
export const TASK_SEEN_OFFSET: u32 = 24;
export const TASK_TURN_OFFSET: u32 = 28;
export const TASK_ALONE_OFFSET: u32 = 32;
export const TASK_SPINS_WON_OFFSET: u32 = 36;
export const TASK_SPINS_LOST_OFFSET: u32 = 40;
export const TASK_POOLED_OFFSET: u32 = 44;
export const TASK_KEPT_OFFSET: u32 = 48;
export const TASK_PARKED_OFFSET: u32 = 128;
export const TASK_BELL_OFFSET: u32 = 256;
export const TASK_SIZE: u32 = 384;

export const TASK_ABSENT: u32 = 0;
export const TASK_UP: u32 = 1;
export const TASK_CLOSED: u32 = 2;
export const TASK_DEAD: u32 = 3;

// ╒═════════════ CONTEXT block: the reception FIFO of one endpoint ═════════════════════════════════════════════════╕
//  E = tasks × contexts origin endpoints, numbered by their ordinal (task × contexts + context)
//  byte  field          writer           readers   meaning
//     0  ready[32]      producers set,   consumer  bit i: lane i is to be attended               SYNC ready
//                       consumer clears
//   128  state          owner            all       0, then CONTEXT_OPEN → CONTEXT_CLOSED         SYNC context-state
//   132  task           launch           owner     pointer to the task slot of the owner
//   136  laneCount      launch           owner     E
//   140  attendedCount  owner            owner     entries of attended[]
//   144  eventCount     owner            owner     events of the batch in hand
//   148  noticeSeen     owner            all       TASK.notice that the owner has dealt with     SYNC quiescence
//   152  turn           owner            owner     where the next round begins, so that no lane is always last
//   156  nothing        nobody           owner     0 for ever: what is polled in place of a lane that is not
//   160  messages       owner            dump      records taken, modulo 2^32
//   164  batches        owner            dump      advances that found something, modulo 2^32
//   168  streaming      owner            owner     1: the last advance found something in its first round
//   172  pendingCount   owner            dump      messages in its pending queues
//   176  pendingBytes   owner            dump      bytes that those hold
//   180  unexpected     owner            dump      bytes in its unexpected queue
//   184  calls          owner            dump      calls of it whose reply has not come
//   188  asleep[9]      owner            dump      how many waits of each kind are asleep: WAIT_…
//   224  windows        owner            engine    pointer to its first WINDOW BLOCK, or 0       SYNC window-list
//   228  handlerless    owner            dump      1 + the dispatch id that has waited longest for a handler, or 0
//   256  attending[32]  owner            owner     bit i: lane i is in attended[]
//   384  events[256]    owner            owner     what advance() found; see EVENT
//  4480  lanes[E]       origin opens,    owner     pointer to lane i, or 0                       SYNC lane-entry
//                       owner replaces
//  then  attended[E]    owner            owner     two words for each lane that is polled in each round: pointer to the
//                                                 record at its next position (or to `nothing`), ordinal of its origin
// ╘═════════════════════════════════════════════════════════════════════════════════════════════════════════════════╛
export const CONTEXT_READY_OFFSET: u32 = 0;
export const CONTEXT_STATE_OFFSET: u32 = 128;
export const CONTEXT_TASK_OFFSET: u32 = 132;
export const CONTEXT_LANE_COUNT_OFFSET: u32 = 136;
export const CONTEXT_ATTENDED_COUNT_OFFSET: u32 = 140;
export const CONTEXT_EVENT_COUNT_OFFSET: u32 = 144;
export const CONTEXT_NOTICE_SEEN_OFFSET: u32 = 148;
export const CONTEXT_TURN_OFFSET: u32 = 152;
export const CONTEXT_NOTHING_OFFSET: u32 = 156;
export const CONTEXT_MESSAGES_OFFSET: u32 = 160;
export const CONTEXT_BATCHES_OFFSET: u32 = 164;
export const CONTEXT_STREAMING_OFFSET: u32 = 168;
export const CONTEXT_PENDING_COUNT_OFFSET: u32 = 172;
export const CONTEXT_PENDING_BYTES_OFFSET: u32 = 176;
export const CONTEXT_UNEXPECTED_OFFSET: u32 = 180;
export const CONTEXT_CALLS_OFFSET: u32 = 184;
export const CONTEXT_ASLEEP_OFFSET: u32 = 188;
export const CONTEXT_WINDOWS_OFFSET: u32 = 224;
export const CONTEXT_HANDLERLESS_OFFSET: u32 = 228;
export const CONTEXT_ATTENDING_OFFSET: u32 = 256;
export const CONTEXT_EVENTS_OFFSET: u32 = 384;
export const CONTEXT_LANES_OFFSET: u32 = 4480;

export const CONTEXT_OPEN: u32 = 1;
export const CONTEXT_CLOSED: u32 = 2;

// ╒═════════════ EVENT, 16 bytes: one record that advance() found; valid until release() ═══════════════════════════╕
//     0  commit   the record's commit word: kind and bytes of the body
//     4  meta     the record's meta word: dispatch id, flags, bytes of the header
//     8  body     pointer to the body
//    12  origin   ordinal of the origin endpoint
// ╘═════════════════════════════════════════════════════════════════════════════════════════════════════════════════╛
export const EVENT_SIZE: u32 = 16;
export const EVENT_SHIFT: u32 = 4;
export const EVENT_COUNT_MAX: u32 = 256;
/** Most records that one lane may put into one batch: so a flooding origin leaves place for the others. */
export const EVENT_LANE_MAX: u32 = 128;
/** Bit of advance()'s result: the notice of the task has moved. The lower bits count the events. */
export const ADVANCE_NOTICE: u32 = 0x10000;
export const ADVANCE_EVENTS_MASK: u32 = 0xffff;
/**
 * Records of one size that advance() looks at without waiting for those before. A processor that runs ahead fetches their
 * lines; beyond the last record it would take lines from the producer, which writes them next.
 */
export const RUN_MAX: u32 = 16;

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
//    40  fulls         producer  producer  times that a record found no room, modulo 2^32
//        ── arming line
//   128  roomWanted    producer  consumer  1 while the producer waits for room; only arming writes it  SYNC room-wanted
//   132  wantedSince   producer  dump      since when, a time stamp
//        ── published line
//   256  head          consumer  producer  every byte before this position is free again         SYNC release
//        ── consumer's line
//   384  next          consumer  dump      position of the next record to take                               plain, own
//   388  ring          open      consumer  pointer to the first byte of the ring
//   392  mask          open      consumer  capacity - 1
//   396  idle          consumer  consumer  rounds in a row that found nothing
//   400  paused        consumer  consumer  1: not polled (the unexpected queue is full)
//   404  originTask    open      consumer  pointer to the task slot of the origin
//   408  released      consumer  consumer  own copy of head
//   412  context       open      consumer  pointer to the context block of the target
//   416  messages      consumer  dump      records taken, modulo 2^32
//   420  pausedSince   consumer  dump      since when it is paused, a time stamp
//   424  keep          open      consumer  bytes that may be read and not be given back: see RELEASE_BYTES
//   512  ring[capacity + overhang]                                                               SYNC commit
//
//  Positions count bytes and wrap at 2^32 (107 s at 40 M messages/s of 16 bytes): only differences are compared, and
//  a capacity stays below 2^31. A record begins at ring + (position & mask) and is contiguous: one that begins near
//  the end runs on into the overhang, which is as long as the largest record.
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
/** A new lane: 16 KiB of ring, 6 pages in all, largest record 7,680 bytes. A pair that talks both ways: 48 KiB. */
export const LANE_BYTES_DEFAULT: u32 = 16384;
/** A lane that was replaced for messages beyond the first lane's largest record: in the second-level cache still. */
export const LANE_BYTES_GROWN: u32 = 262144;
/** A lane is polled in every round while no more than this many are; beyond, one that is idle loses its ready bit. */
export const ATTENDED_KEEP: u32 = 4;
/** Idle rounds after which a lane beyond ATTENDED_KEEP is no longer polled. */
export const ATTENDED_IDLE_MAX: u32 = 16;

// ╒═════════════ RECORD: 16-byte granules, at 16-byte aligned positions ════════════════════════════════════════════╕
//     0  commit   0: nothing here yet. Else RECORD_COMMITTED | kind << 28 | bytes of the body    SYNC commit
//     4  meta     header bytes << 16 | dispatch id, 13 bits
//     8  body     header, padded to 8 bytes, then payload: so the payload is 8-byte aligned
//  The word at tail is always 0: before a record is committed, the first word behind it is set to 0. That is all of the
//  commit protocol; what else lies in free bytes means nothing.
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
 * What has to be there before the handler is called (all of it; of more than RECV_IMMEDIATE_MAX the header) may go on in
 * further packets, where there is no memory for a larger lane.
 */
export const KIND_FIRST: u32 = 1;
/** A further packet: body = the next bytes of the message's body. */
export const KIND_MORE: u32 = 2;
/** The lane ends here: body = pointer to the lane that takes its place, or 0. */
export const KIND_SWITCH: u32 = 3;
/** A request to send (P1): body = an RTS, then the message's header; the payload stays where it is. */
export const KIND_RTS: u32 = 4;
/** A message whose payload lies in a buffer: body = a BUFFER record, then the message's header. */
export const KIND_BUFFER: u32 = 5;
/** Nothing more comes of the message that has begun in packets, and it is dropped: no body. */
export const KIND_BROKEN: u32 = 6;
/** Bytes before the message's in the body of a KIND_FIRST record. */
export const FIRST_PREFIX_SIZE: u32 = 8;

// ╒═════════════ RTS, 40 bytes: what the origin offers of a message (P1); by itself in the body of a KIND_RTS record ══╕
//     0  bytes            of the payload
//     4  index            the origin's region where it lies: entry's index, generation, offset in it
//     8  generation
//    12  offset
//    16  blockIndex       the origin's window for it: the region of its block, generation, offset of the window in it,
//    20  blockGeneration  and at 32 its own generation
//    24  place
//    28  portion          0: the payload lies there as a whole. Else it goes through a ring of STAGED_COUNT portions of so
//                         many bytes
//    32  window           generation of the window
//    36  (free)
// ╘═════════════════════════════════════════════════════════════════════════════════════════════════════════════════╛
export const RTS_BYTES_OFFSET: u32 = 0;
export const RTS_INDEX_OFFSET: u32 = 4;
export const RTS_GENERATION_OFFSET: u32 = 8;
export const RTS_OFFSET_OFFSET: u32 = 12;
export const RTS_BLOCK_INDEX_OFFSET: u32 = 16;
export const RTS_BLOCK_GENERATION_OFFSET: u32 = 20;
export const RTS_PLACE_OFFSET: u32 = 24;
export const RTS_PORTION_OFFSET: u32 = 28;
export const RTS_WINDOW_OFFSET: u32 = 32;
export const RTS_SIZE: u32 = 40;
/** Portions of a ring through which a payload is staged. */
export const STAGED_COUNT: u32 = 4;

// ╒═════════════ BUFFER record, 24 bytes: where a payload lies; by itself in the body of a KIND_BUFFER record ═══════╕
//     0  slot     pointer to its slot in the origin's BUFFER BLOCK
//     4  extent   pointer to the extent that holds it
//     8  place    pointer to its first byte
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
//  An extent has one owner at each time, in the heap's table: the origin's task, or, once the target keeps it, the
//  target's. The target changes the owner before it stores BUFFER_GONE.
// ╘═════════════════════════════════════════════════════════════════════════════════════════════════════════════════╛
export const POOL_WANTED_OFFSET: u32 = 0;
export const POOL_TASK_OFFSET: u32 = 4;
export const POOL_SLOTS_OFFSET: u32 = 128;
export const POOL_SLOTS: u32 = 960;
export const POOL_SIZE: u32 = 4096;
export const BUFFER_FREE: u32 = 0;
export const BUFFER_SENT: u32 = 1;
export const BUFFER_GONE: u32 = 2;
/** A payload of so many bytes or more goes in a buffer, where the heap has room for it. */
export const BUFFER_PAYLOAD_MIN: u32 = 16384;
/** A pool grows to so many bytes before it uses a buffer again: beyond a second-level cache, within a third. */
export const POOL_FOOTPRINT: u32 = 4194304;
/** Bytes in buffers that one target has not read yet; at least two buffers. */
export const POOL_UNREAD_MAX: u32 = 4194304;
/** Pools of all tasks together have at most this part of the heap: a half. */
export const POOL_HEAP_SHIFT: u32 = 1;

// ╒═════════════ HEAP: pages of 4 KiB; extents are runs of pages ═══════════════════════════════════════════════════╕
//  table[p], for the first page p of an extent: state << 30 | owner << 20 | pages. Following the lengths from page 0
//  visits every extent. Each change is one store, so a task that dies in the middle leaves a table that can be read:
//  an allocator writes the rest's word first (nobody can reach it yet), then the extent's own. Allocating holds the
//  heap lock; freeing does not (SYNC extent-free): neighbours are joined by the next allocator. What an ended task leaves is
//  freed by the others, see heapReclaim().
// ╘═════════════════════════════════════════════════════════════════════════════════════════════════════════════════╛
export const EXTENT_FREE: u32 = 0;
/** A lane. */
export const EXTENT_LANE: u32 = 1;
export const EXTENT_REGION: u32 = 2;
export const EXTENT_STATE_SHIFT: u32 = 30;
export const EXTENT_OWNER_SHIFT: u32 = 20;
export const EXTENT_OWNER_MASK: u32 = 0x3ff;
export const EXTENT_PAGES_MASK: u32 = 0xfffff;

// ╒═════════════ REGION entry, 16 bytes: task t owns the entries t × R … (t + 1) × R - 1 ═══════════════════════════╕
//     0  generation  owner  all  odd: open; counts openings and closings                         SYNC region
//     4  base        owner  all  pointer to the region's first byte              plain: stays as it is while it is open,
//     8  bytes       owner  all  its length                                      and until every context has passed an
//                                                                                advance after it was closed
// ╘═════════════════════════════════════════════════════════════════════════════════════════════════════════════════╛
export const REGION_GENERATION_OFFSET: u32 = 0;
export const REGION_BASE_OFFSET: u32 = 4;
export const REGION_BYTES_OFFSET: u32 = 8;
export const REGION_SIZE: u32 = 16;
export const REGION_SHIFT: u32 = 4;

// ╒═════════════ INJECTION FIFO: one origin context's, in order; its owner injects and scans, the engine processes ═╕
//  byte  field    writer   readers  meaning
//     0  tail     owner    engine   slots ever injected, modulo 2^32                             SYNC inject
//     4  oldest   owner    owner    every slot before this one may be injected into again
//     8  pending  owner    owner    completion descriptors and fences whose bit has not been taken
//    12  taken    owner    owner    slot of the completion taken last: bits above it may stand though its word is 0
//    64  staged   owner    owner    a DESCRIPTOR: what submit() and inject() are about
//   128  head     engine   owner    slots ever processed, modulo 2^32                            SYNC processed
//   132  moved    engine   engine   bytes moved of the transfer at head
//   136  result   engine   engine   TRANSFER_… of the last transfer: its completion descriptors hand it on
//   140  refused  engine   dump     descriptors that were refused, modulo 2^32
//   144  failed   engine   engine   TRANSFER_… of the first that was refused since the last fence
//   148  ahead    engine   engine   slots from head on that it has seen
//   192  slots    launch   all      how many there are, power of two; in a line that nobody writes
//   196  first    launch   all      pointer to slot 0
//   256  mask[]   engine   owner    bit i: the completion descriptor in slot i is processed; then the levels above it,
//                 sets,             bit j of one: word j below it is not 0 (or it is above `taken`); the highest has
//                 owner clears      at most 8 words                                              SYNC completion
//  then  slot[]   owner    engine   DESCRIPTORs, from a multiple of 64 on
// ╘═════════════════════════════════════════════════════════════════════════════════════════════════════════════════╛
export const INJECTION_TAIL_OFFSET: u32 = 0;
export const INJECTION_OLDEST_OFFSET: u32 = 4;
export const INJECTION_PENDING_OFFSET: u32 = 8;
export const INJECTION_TAKEN_OFFSET: u32 = 12;
export const INJECTION_STAGED_OFFSET: u32 = 64;
export const INJECTION_HEAD_OFFSET: u32 = 128;
export const INJECTION_MOVED_OFFSET: u32 = 132;
export const INJECTION_RESULT_OFFSET: u32 = 136;
export const INJECTION_REFUSED_OFFSET: u32 = 140;
export const INJECTION_FAILED_OFFSET: u32 = 144;
export const INJECTION_AHEAD_OFFSET: u32 = 148;
export const INJECTION_SLOTS_OFFSET: u32 = 192;
export const INJECTION_FIRST_OFFSET: u32 = 196;
export const INJECTION_MASK_OFFSET: u32 = 256;
/** Words that are looked at one by one rather than by a level above them. */
export const MASK_TOP_WORDS: u32 = 8;

// ╒═════════════ DESCRIPTOR, 64 bytes ══════════════════════════════════════════════════════════════════════════════╕
//     0  kind              DESCRIPTOR_…
//     4  bytes             of the transfer; RMW: RMW_…. Completion, fence: what came of it, written by the engine
//     8  localIndex        the origin's region: its entry's index, generation, and an offset in it
//    12  localGeneration
//    16  localOffset
//    20  remoteIndex       the target's
//    24  remoteGeneration
//    28  remoteOffset
//    32  value[2]          RMW: low and high word. RGET, REFILL: number of an origin RGET
//    40  test[2]
//    48  (free)
// ╘═════════════════════════════════════════════════════════════════════════════════════════════════════════════════╛
export const DESCRIPTOR_KIND_OFFSET: u32 = 0;
export const DESCRIPTOR_BYTES_OFFSET: u32 = 4;
export const DESCRIPTOR_LOCAL_INDEX_OFFSET: u32 = 8;
export const DESCRIPTOR_LOCAL_GENERATION_OFFSET: u32 = 12;
export const DESCRIPTOR_LOCAL_OFFSET_OFFSET: u32 = 16;
export const DESCRIPTOR_REMOTE_INDEX_OFFSET: u32 = 20;
export const DESCRIPTOR_REMOTE_GENERATION_OFFSET: u32 = 24;
export const DESCRIPTOR_REMOTE_OFFSET_OFFSET: u32 = 28;
export const DESCRIPTOR_VALUE_OFFSET: u32 = 32;
export const DESCRIPTOR_TEST_OFFSET: u32 = 40;
export const DESCRIPTOR_SIZE: u32 = 64;
export const DESCRIPTOR_SHIFT: u32 = 6;
/** Words of a descriptor that mean something: what is copied of it. */
export const DESCRIPTOR_WORDS: u32 = 12;

/** From the origin's region to the target's. */
export const DESCRIPTOR_PUT: u32 = 1;
/** From the target's region to the origin's. */
export const DESCRIPTOR_GET: u32 = 2;
/** An atomic change of a word of the target's region; its old value goes to the origin's with RMW_FETCH. */
export const DESCRIPTOR_RMW: u32 = 3;
/** Sets the bit of its own slot, and hands on what came of the transfer before it. */
export const DESCRIPTOR_COMPLETION: u32 = 4;
/** Sets the bit of its own slot, and hands on what first went wrong since the last fence. */
export const DESCRIPTOR_FENCE: u32 = 5;
// In windows only; in the order in which they meet, see chain.ts.
/** Target RGET: ships an origin RGET to the target's window. */
export const DESCRIPTOR_RGET: u32 = 6;
/** Origin RGET, processed at the target: ships the link at its remote place, `bytes` slots, to the origin's window. */
export const DESCRIPTOR_FETCH: u32 = 7;
/** A direct put of a location: the origin RGET `value[0]` fetches the link at this one's remote place, next time. */
export const DESCRIPTOR_REFILL: u32 = 8;
/** A portion: a direct put, which the target's DMA counter counts. */
export const DESCRIPTOR_MOVE: u32 = 9;
/** Local memory FIFO descriptor: tells the origin's core that the chain is over, and by `bytes` what came of it. */
export const DESCRIPTOR_NOTICE: u32 = 10;

// ╒═════════════ WINDOW BLOCK: a region of its owner, one of a list for each context ═══════════════════════════════╕
//     0  next     owner    engine  pointer to the block behind it, or 0                          SYNC window-list
//     4  turn     engine   engine  of the first block of the list: the next look begins with this window
//     8  first    engine   engine  of the first block of the list: the window is in the block to which this points; 0: in it
//   128  status   engines  owner   bit i: window i is over: the counter of a target's reached 0, the  SYNC window-over
//                                  NOTICE of an origin's came. The counter status register (P7)
//   256  window[WINDOW_COUNT]
// ╘═════════════════════════════════════════════════════════════════════════════════════════════════════════════════╛
export const BLOCK_NEXT_OFFSET: u32 = 0;
export const BLOCK_TURN_OFFSET: u32 = 4;
export const BLOCK_FIRST_OFFSET: u32 = 8;
export const BLOCK_STATUS_OFFSET: u32 = 128;
export const BLOCK_WINDOWS_OFFSET: u32 = 256;
/** Windows of a block: 4 pages. */
export const WINDOW_COUNT: u32 = 9;
export const BLOCK_SIZE: u32 = 16384;

// ╒═════════════ WINDOW: one side of one self-pacing transfer; its remote-get FIFO (P3) ═════════════════════════════╕
//  What other than the owner's core processes the slots is the owner's engine. Only the engine at the transfer's other end
//  injects, never more than there is room for (see chain.ts): nobody looks for room, and there is no bit mask.
//  byte  field        writer        readers       meaning
//     0  tail         peer engine   engine        slots ever injected, modulo 2^32               SYNC ship
//   128  head         engine        dump          slots ever processed, modulo 2^32
//   132  moved        engine        engine        bytes moved of the portion at head
//   136  passed       engine        owner         portions that are moved                        SYNC passed
//   140  result       engine        owner         origin's: TRANSFER_… of the first portion that was refused, then of all
//   256  generation   owner         peer engine   odd: open; counts openings and closings        SYNC window
//   260  status       owner         peer engine   pointer to the block's status word
//   264  bit          owner         peer engine   this window's bit in it
//   268  allowed      owner         engine        portions that may be moved; NONE: all          SYNC staged
//   272  stop         owner         both engines  TRANSFER_…: from now on nothing is moved, all is counted  SYNC stop
//                                                 0: goes on
//   276  peerIndex    owner; of an  engine        the other window: region of its block, generation, offset in it,
//   280  peerGeneration origin's                  and generation of that window
//   284  peerOffset     the peer
//   288  peerWindow     core                                                                     SYNC window-peer
//   292  peerEndpoint owner         engine        ordinal of the endpoint that owns that
//        ── what chainWrite() makes the links of: a target's only; its owner writes it
//   296  ownIndex     this window: region of its block, generation, offset in it
//   300  ownGeneration
//   304  ownOffset
//   308  fromIndex    the payload: region, generation, offset in it
//   312  fromGeneration
//   316  fromOffset
//   320  toIndex      the destination
//   324  toGeneration
//   328  toOffset
//   332  chainIndex   the region that the links go to
//   336  chainGeneration
//   340  bytes        of the payload; an origin's too, for the dump
//   344  portion      bytes of a portion
//   348  ring         0, or after so many portions the payload begins anew at `from`: it is staged there
//   352  depth        links that are prefetched; of an origin 0
//   356  away         owner         engine        0, or AWAY_…: the other side is in another memory, and the kernels leave
//                                                 this window alone: whoever carries descriptors there is its engine
//   384  left         peer engine   owner         the DMA counter: bytes that have not arrived (P7)  SYNC bytes-left
//   388  wrong        peer engine   owner         TRANSFER_… of the first portion that was refused
//                                                 both by the peer core, where the engine thread has ended  SYNC bytes-left
//   512  rget[4]      peer core,    engine        origin RGETs (P1): DESCRIPTORs that target RGETs ship
//                     then engine
//   768  slot[16]     peer engine   engine        DESCRIPTORs
// ╘═════════════════════════════════════════════════════════════════════════════════════════════════════════════════╛
export const WINDOW_TAIL_OFFSET: u32 = 0;
export const WINDOW_HEAD_OFFSET: u32 = 128;
export const WINDOW_MOVED_OFFSET: u32 = 132;
export const WINDOW_PASSED_OFFSET: u32 = 136;
export const WINDOW_RESULT_OFFSET: u32 = 140;
export const WINDOW_GENERATION_OFFSET: u32 = 256;
export const WINDOW_STATUS_OFFSET: u32 = 260;
export const WINDOW_BIT_OFFSET: u32 = 264;
export const WINDOW_ALLOWED_OFFSET: u32 = 268;
export const WINDOW_STOP_OFFSET: u32 = 272;
export const WINDOW_PEER_INDEX_OFFSET: u32 = 276;
export const WINDOW_PEER_GENERATION_OFFSET: u32 = 280;
export const WINDOW_PEER_OFFSET_OFFSET: u32 = 284;
export const WINDOW_PEER_WINDOW_OFFSET: u32 = 288;
export const WINDOW_PEER_ENDPOINT_OFFSET: u32 = 292;
export const WINDOW_OWN_INDEX_OFFSET: u32 = 296;
export const WINDOW_OWN_GENERATION_OFFSET: u32 = 300;
export const WINDOW_OWN_OFFSET_OFFSET: u32 = 304;
export const WINDOW_FROM_INDEX_OFFSET: u32 = 308;
export const WINDOW_FROM_GENERATION_OFFSET: u32 = 312;
export const WINDOW_FROM_OFFSET_OFFSET: u32 = 316;
export const WINDOW_TO_INDEX_OFFSET: u32 = 320;
export const WINDOW_TO_GENERATION_OFFSET: u32 = 324;
export const WINDOW_TO_OFFSET_OFFSET: u32 = 328;
export const WINDOW_CHAIN_INDEX_OFFSET: u32 = 332;
export const WINDOW_CHAIN_GENERATION_OFFSET: u32 = 336;
export const WINDOW_BYTES_OFFSET: u32 = 340;
export const WINDOW_PORTION_OFFSET: u32 = 344;
export const WINDOW_RING_OFFSET: u32 = 348;
export const WINDOW_DEPTH_OFFSET: u32 = 352;
export const WINDOW_AWAY_OFFSET: u32 = 356;
export const WINDOW_LEFT_OFFSET: u32 = 384;
export const WINDOW_WRONG_OFFSET: u32 = 388;
export const WINDOW_RGETS_OFFSET: u32 = 512;
export const WINDOW_SLOTS_OFFSET: u32 = 768;
export const WINDOW_SIZE: u32 = 1792;
/**
 * Of `away`: bits. The other side is in another memory; it has given the transfer up; it was told that this one has; it has
 * said that all is there.
 */
export const AWAY_YES: u32 = 1;
export const AWAY_STOPPED: u32 = 2;
export const AWAY_TOLD: u32 = 4;
export const AWAY_OVER: u32 = 8;
/** Slots of a window: those of DEPTH_MAX + 1 links, and the last descriptor (see chain.ts). */
export const WINDOW_SLOTS: u32 = 16;
/** Links of a chain that are prefetched, at most (P9): so many origin RGETs has a window. */
export const DEPTH_MAX: u32 = 4;

// ╒═════════════ CHAIN: links, one behind the other, in a region of the target; written before the first is shipped ═╕
//  link i   RGET i mod depth   REFILL i mod depth   MOVE i           while there are links i + depth, and i + 2 depth
//  last     MOVE               NOTICE
// ╘═════════════════════════════════════════════════════════════════════════════════════════════════════════════════╛
/** Descriptors from one link to the next. */
export const LINK_SLOTS: u32 = 3;
export const LINK_SIZE: u32 = 192;
/** Links of one chain at most: 192 KiB of them; larger messages have larger portions. */
export const LINK_COUNT_MAX: u32 = 1024;

// ╒═════════════ TRACE ring: one for each task, written by it alone, read by anybody at any time ═══════════════════╕
//     0  position  the task  reader  events ever written, modulo 2^32
//   128  event[]   the task  reader  16 bytes each, at position & (traceEvents - 1):
//                  0  kind   TRACE_…, in 8 bits; above them the dispatch id, in 16, and the task's own context, in 8
//                  4  whom   the other endpoint; a task; NONE
//                  8  count  number of the message among those of its origin, target and id; what else a kind needs
//                 12  bytes  of the transfer
//                 TRACE_CLOCK has milliseconds as f64 in the upper 8 bytes: what lies between two of them is spread
//                 evenly over the time between. Its second word is 1 where a round is over: the last handler has ended.
//  All plain: a reader copies, looks at position again, and drops what may have been overwritten meanwhile.
// ╘═════════════════════════════════════════════════════════════════════════════════════════════════════════════════╛
export const TRACE_POSITION_OFFSET: u32 = 0;
export const TRACE_EVENTS_OFFSET: u32 = 128;
export const TRACE_EVENT_SIZE: u32 = 16;
export const TRACE_EVENT_SHIFT: u32 = 4;
export const TRACE_ID_SHIFT: u32 = 8;
export const TRACE_CONTEXT_SHIFT: u32 = 24;
export const TRACE_CLOCK: u32 = 1;
export const TRACE_SEND: u32 = 2;
/** A handler begins, and with it the one before it has ended. */
export const TRACE_HANDLER: u32 = 3;
export const TRACE_PUT: u32 = 5;
export const TRACE_GET: u32 = 6;
export const TRACE_RMW: u32 = 7;
export const TRACE_FENCE: u32 = 8;
/** That fence is complete; `count` is its number, as of TRACE_FENCE. */
export const TRACE_FENCED: u32 = 9;
/** The thread falls asleep. */
export const TRACE_PARK: u32 = 10;
export const TRACE_WAKE: u32 = 11;
/** This task has learnt that another one has ended. */
export const TRACE_DEATH: u32 = 12;

/** Kinds of waits, in CONTEXT.asleep[]. */
export const WAIT_ADVANCE_UNTIL: u32 = 0;
export const WAIT_PROGRESS: u32 = 1;
export const WAIT_ROOM: u32 = 2;
export const WAIT_MESSAGES: u32 = 3;
export const WAIT_DRAIN: u32 = 4;
export const WAIT_ENDED: u32 = 5;
export const WAIT_FLUSH: u32 = 6;
export const WAIT_CALL: u32 = 7;
export const WAIT_WORD: u32 = 8;
export const WAIT_COUNT: u32 = 9;

/** No slot, no region, no completion. */
export const NONE: u32 = 0xffffffff;
/** Bytes that the engine moves in one go: then it is the next FIFO's turn. */
export const SLICE_BYTES: u32 = 262144;
/** What is no longer waits for no slice of another's: an engine thread is not asked for it if nothing is before it. */
export const SHORT_BYTES: u32 = 4096;
/** Results of a transfer. */
export const TRANSFER_DONE: u32 = 0;
export const TRANSFER_LOCAL_CLOSED: u32 = 1;
export const TRANSFER_LOCAL_BOUNDS: u32 = 2;
export const TRANSFER_REMOTE_CLOSED: u32 = 3;
export const TRANSFER_REMOTE_BOUNDS: u32 = 4;
/** No such kind, operation or type; a word that is not aligned. */
export const TRANSFER_INVALID: u32 = 5;
/** Of submit(): it is right, but not done: it has to be injected. */
export const TRANSFER_LATER: u32 = 6;
/** The target's task has ended: only where the bytes do not lie in this memory. */
export const TRANSFER_ENDED: u32 = 7;
/** One of both sides gave it up. */
export const TRANSFER_CANCELED: u32 = 8;
/** The target did not take it. */
export const TRANSFER_REFUSED: u32 = 9;
/** The engine thread ended before it was done. */
export const TRANSFER_BROKEN: u32 = 10;
/** What completionTake() gives: the slot, and the result above it. */
export const COMPLETION_RESULT_SHIFT: u32 = 24;

/** Operations of an RMW: what is done, plus what it gives back and when it is done. */
export const RMW_SET: u32 = 1;
export const RMW_ADD: u32 = 2;
export const RMW_OR: u32 = 3;
export const RMW_AND: u32 = 4;
export const RMW_XOR: u32 = 5;
export const RMW_OPERATION_MASK: u32 = 7;
/** The old value goes to the origin's region. */
export const RMW_FETCH: u32 = 8;
/** Only if the word equals `test`. */
export const RMW_COMPARE: u32 = 16;
/** 64-bit word. */
export const RMW_WIDE: u32 = 32;
/** The task whose region it is in is woken behind it. */
export const RMW_NOTIFY: u32 = 64;
/** Of one in a FIFO: only if the transfer before it was done. */
export const RMW_BEHIND: u32 = 128;

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

/** An entry of attended[]: pointer, ordinal. */
export const ATTENDED_SIZE: u32 = 8;
export const ATTENDED_SHIFT: u32 = 3;
/** Loads between two polls that found nothing: 8 was best of 0, 8, 16, 32, 64, 128 (Zen 5: 77 ns; 128: 104 ns). */
export const POLL_PAUSE: u32 = 8;
/**
 * Loads before the first poll while messages stream: a consumer on the producer's heels moves each line twice for each
 * record. 45.7 M messages/s with 128, 46.5 with 192, 46.1 with 256, 44.4 with 320 (Zen 5,
 * a handler that only counts).
 */
export const STREAM_PAUSE: u32 = 192;
/**
 * Divisions of who finds that the engine thread has not come to its completions yet: without them, the line of the mask is
 * away when that thread is to set a bit, and where the two share a core its copies are slower by a tenth. 64 KiB puts, 8 in
 * flight, of a bare copy, taking turns in the same process, medians of eight processes: 0.81 without, 0.84 with 16, 0.87 with
 * 32, 0.88 with 64, and more with 32 than without in each of them (Zen 5; 32 take 95 ns). Processes differ by more than that.
 */
export const ENGINE_PAUSE: u32 = 32;
export const CACHE_LINE: u32 = 64;
/**
 * A producer of small records stores into so many bytes ahead at once: each commit waits for the lines of all earlier
 * stores, and four come in the time of one. 44.4 → 46.7 M messages/s; a line at a time gains nothing (Zen 5, a handler
 * that only counts).
 */
export const AHEAD_BYTES: u32 = 256;
/**
 * release() gives bytes back once so many are read, or this part of the ring (or the origin wants room): fewer, longer
 * writes; but before they leave the first-level cache, see RETAKE_MAX. Never does it keep so many that the largest record
 * has no room: who only polls would not come to give them back.
 */
export const RELEASE_BYTES: u32 = 2048;
export const RELEASE_SHIFT: u32 = 3;
/**
 * The consumer stores into each line that it frees, while these are fewer bytes: a producer gets a line that was
 * modified elsewhere faster than one that is shared. 3,904 B: 17 → 26 GB/s; from 32 KiB on it only costs (Zen 5).
 */
export const RETAKE_MAX: u32 = 32768;

/** Results of the kernels that take memory: pointers are page-aligned, so small numbers are free for them. */
export const OPEN_NO_MEMORY: u32 = 0;
export const OPEN_BUSY: u32 = 1;

/** Results of bellWait: those of the wasm instruction `memory.atomic.wait32`. */
export const WAIT_OK: u32 = 0;
export const WAIT_NOT_EQUAL: u32 = 1;
export const WAIT_TIMED_OUT: u32 = 2;
