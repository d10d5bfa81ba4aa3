// The job header, task slots, context blocks and the heap's table, with the limits of a job. Shared: compiled by asc and
// imported by TypeScript.

// A time stamp is milliseconds, modulo 2^32, of a clock that all threads share.

/** Version of the pictures; raised with every change to them. */
export const LAYOUT_VERSION: u32 = 12;
/** First word of a job's memory: "PAMI" in little-endian ASCII. */
export const JOB_MAGIC: u32 = 0x494d4150;

/** Distance between words of different writers: x86-64 and aarch64 prefetch 64-byte lines in pairs. */
export const FALSE_SHARING_SIZE: u32 = 128;
/** Unit of the heap, and the alignment of an extent. */
export const PAGE_SIZE: u32 = 4096;
export const PAGE_SHIFT: u32 = 12;

/** Where the map begins in a memory that pamir has made: programs in C lie in it, and their NULL is address 0. */
export const MAP_BASE: u32 = 65536;
/** Bytes from address 0 on, below a map at MAP_BASE, that hold GUARD_BYTE: a program that changes one has written through NULL. */
export const NULL_GUARD_BYTES: u32 = 4096;
/** What each byte holds that a program must not change. Not 0, which is the most frequent value of a stray write. */
export const GUARD_BYTE: u32 = 0x5a;

// ── Limits ──────────────────────────────────────────────────────────────────────────────────────────────────────
/** Task slots of one node: its own tasks, including those that have ended, and tasks of other nodes. */
export const TASK_COUNT_MAX: u32 = 1024;
/** Contexts of one task: an endpoint has 8 bits for them. The highest bit is 0, so that an endpoint fits an i32. */
export const CONTEXT_COUNT_MAX: u32 = 127;
/** tasks × contexts: one ready bit for each origin endpoint, 32 words of 32 bits. */
export const ENDPOINT_COUNT_MAX: u32 = 1024;

/** Bytes of one message: records and requests to send announce its size as a u32. */
export const MESSAGE_BYTES_MAX: u32 = 0x7fffffff;

// ╒═════════════ JOB header, 640 bytes, at the base of the map ════════════════════════════════════════════════════╕
//  byte  field         writer    readers   meaning
//     0  magic         launch    attach    JOB_MAGIC                                     plain: written before any task
//     4  version       launch    attach    LAYOUT_VERSION
//     8  hash          launch    attach    LAYOUT_HASH of the launching pamir
//    12  tasks         launch    all       T, task slots: L of the node's own tasks, then those for tasks of other nodes
//    16  contexts      launch    all       C, contexts of each task
//    20  cores         launch    all       hardware threads that this process may run at once
//    24  laneBytes     launch    all       capacity of a new lane, power of two
//    28  tasksBase     launch    all       pointer to T task slots
//    32  contextsBase  launch    all       pointer to T × C context blocks
//    36  contextSize   launch    all       bytes from one context block to the next
//    40  heapTable     launch    all       pointer to one word for each page of the heap
//    44  heapBase      launch    all       pointer to the first page
//    48  heapPages     launch    all       number of pages
//    52  memoryEnd     launch    all       first byte after the map (modulo 2^32)
//    56  regionsBase   launch    all       pointer to L × R region entries
//    60  regions       launch    all       R, regions of each task
//    64  injectionBase launch    all       pointer to L × C × F injection FIFOs
//    68  injectionSize launch    all       bytes from one injection FIFO to the next
//    72  fifos         launch    all       F, injection FIFOs of each context
//    76  slots         launch    all       slots of each, power of two
//    80  traceBase     launch    all       pointer to L trace rings
//    84  traceEvents   launch    all       events that each ring holds, power of two, or 0: there are no rings
//    88  engine        launch    all       pointer to the slot of the engine thread, or 0: each task is its own engine
//    92  locals        launch    all       L, the node's own tasks
//    96  endpoints     launch    all       pointer to T × C words: the endpoint of each ordinal, or NONE: the slot is
//                                          free; a binder gives it away                       SYNC endpoint
//   100  jobTasks      launch    all       tasks that the whole job may have
//   104  guestPages    launch    all       pages of 64 KiB that the memory had at launch, if it is another program's; else 0
//                                                                                        plain: written before any task
//   128  spinning[32]  each task its bit   tasks in the long phase of their spin                 SYNC spinners
//   256  heapLock      allocator           0, or task + 1 of the holder                          SYNC heap-lock
//   260  bindLock      binder              0, or task + 1 of the holder: it gives a free slot away  SYNC bind-lock
//   264  slotsWanted   any task    agent     SLOTS_…: whether a task waits for a free task slot     SYNC purge
//   268  binds         binder,     agent     counts bound slots, and binders that died, modulo 2^32  SYNC endpoint
//                      monitor
//   384  started       launcher  all       tasks of the job so far
//   388  world         launcher  all       tasks with which the job began                  plain: written before any task
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
export const JOB_LOCALS_OFFSET: u32 = 92;
export const JOB_ENDPOINTS_OFFSET: u32 = 96;
export const JOB_JOB_TASKS_OFFSET: u32 = 100;
export const JOB_GUEST_PAGES_OFFSET: u32 = 104;
export const JOB_SPINNING_OFFSET: u32 = 128;
export const JOB_HEAP_LOCK_OFFSET: u32 = 256;
export const JOB_BIND_LOCK_OFFSET: u32 = 260;
export const JOB_SLOTS_WANTED_OFFSET: u32 = 264;
export const JOB_BINDS_OFFSET: u32 = 268;
export const JOB_STARTED_OFFSET: u32 = 384;
export const JOB_WORLD_OFFSET: u32 = 388;
export const JOB_DUE_OFFSET: u32 = 512;
export const JOB_SIZE: u32 = 640;

/** No task waits for a slot. */
export const SLOTS_ENOUGH: u32 = 0;
/** A task waits for a slot. */
export const SLOTS_WANTED: u32 = 1;
/** A context does not need a slot any more that it has held: the agent asks again for those that were held. */
export const SLOTS_LET_GO: u32 = 2;

// ╒═════════════ TASK slot, 384 bytes; after the tasks' slots there is one for the engine thread, if it exists ═══════╕
//  byte  field      writer            readers   meaning
//     0  state      the task, monitor all       TASK_ABSENT → TASK_UP → TASK_CLOSED; monitor: → TASK_DEAD  SYNC task-state
//                                               monitor, of the engine thread: TASK_ABSENT → TASK_CLOSED
//     4  notice     any thread        the task  counts ends, interrupts, closed regions: look again  SYNC notice
//     8  interrupt  launcher          the task  counts interrupts of this task                   SYNC notice
//    12  told       the task, monitor all       1: it has ended, and every task has a notice of it  SYNC quiescence
//    16  since      the task          dump      time stamp of its last sleep or wake
//    20  sleeps     the task          dump      number of its sleeps, modulo 2^32
//    24  seen       engine thread     all       in its own slot: the notice that it has acknowledged  SYNC quiescence
//    28  turn       engine thread     itself    in its own slot: FIFO or rget FIFOs of the last slice, see engineServe()
//    32  alone      engine thread     itself    in its own slot: 1: that is an injection FIFO, and it alone was long
//    36  spinsWon   the task          dump      spins during which the awaited event came, modulo 2^32
//    40  spinsLost  the task          dump      spins that ended in a sleep, or in the loss of its core
//    44  pooled     the task          dump      bytes of its pool of buffers
//    48  kept       the task          dump      bytes of received buffers that it keeps
//    52  leaving    agent             all       of a task of another node: 1: the slot is to be given back  SYNC purge
//    56  held       any task          agent     of such a task: HELD_…: whether the slot stays       SYNC purge
//    60  inline     agent             all       in the engine thread's slot: 1: the agent has no thread, and works in each
//                                               advance() of the node's tasks                 plain: written before any task
//    64  process    launcher, its     watches   process that runs the task, if the tasks go on without their launcher;
//                     process, watches            NONE: the launcher died before it had noted a process    SYNC process
//    68  processStarted  launcher, its watches    when that process began, see startTimeOf()   plain: written before `process`
//                     process
//    72  certain    agent             all       of a task of another node that counts as ended: END_…: how much is known of
//                                               that; written before the state, and once more is known    SYNC notice
//   128  parked     the task,         ringers   1 from arming until it is awake, or rung: the first ring  SYNC park
//                   ringers                     takes the flag down, for all that follow
//   256  bell       ringers           the task  the task sleeps on this word; counts the rings   SYNC park
//   260  pipeProcess     the task     ringers   its process, while it sleeps by reading a pipe; else 0   SYNC pipe
//   264  pipeDescriptor  the task     ringers   the pipe's descriptor there                      SYNC pipe
//   268  pipeInode       the task     ringers   the pipe's inode: it tells whether that is still the pipe  SYNC pipe
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
export const TASK_LEAVING_OFFSET: u32 = 52;
export const TASK_HELD_OFFSET: u32 = 56;
export const TASK_INLINE_OFFSET: u32 = 60;
export const TASK_PROCESS_OFFSET: u32 = 64;
export const TASK_PROCESS_STARTED_OFFSET: u32 = 68;
export const TASK_CERTAIN_OFFSET: u32 = 72;
export const TASK_PARKED_OFFSET: u32 = 128;
export const TASK_BELL_OFFSET: u32 = 256;
export const TASK_PIPE_PROCESS_OFFSET: u32 = 260;
export const TASK_PIPE_DESCRIPTOR_OFFSET: u32 = 264;
export const TASK_PIPE_INODE_OFFSET: u32 = 268;
export const TASK_SIZE: u32 = 384;

/** No task needs the slot that the agent asks for. */
export const HELD_NOT: u32 = 0;
/** A task needs it, and does not ring later: the agent asks again. */
export const HELD_SILENTLY: u32 = 1;
/** A context needs it, and rings the agent once it does not. */
export const HELD_UNTIL_RING: u32 = 2;

/** Nothing is heard of the task, and it may go on. */
export const END_SILENT: u32 = 0;
/** It has ended. */
export const END_CERTAIN: u32 = 1;
/** As END_SILENT, but a launcher reports the end of its process, sooner or later. */
export const END_AWAITED: u32 = 2;

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
//   148  noticeSeen     owner            all       TASK.notice that the owner has acknowledged   SYNC quiescence
//   152  turn           owner            owner     first entry of the next round, so that no lane is always last
//   156  nothing        none             owner     always 0: the word to poll in place of a lane that does not exist
//   160  messages       owner            dump      records taken, modulo 2^32
//   164  batches        owner            dump      advances that found records, modulo 2^32
//   168  streaming      owner            owner     1: the last advance found records in its first round
//   172  pendingCount   owner            dump      messages in its pending queues
//   176  pendingBytes   owner            dump      bytes in its pending queues
//   180  unexpected     owner            dump      bytes in its unexpected queue
//   184  calls          owner            dump      its calls that wait for a reply
//   188  asleep[11]     owner            dump      how many waits of each kind are asleep: WAIT_…
//   232  handlerless    owner            dump      1 + the dispatch id without a handler that has waited longest, or 0
//   236  rgetFifos      owner            engine    pointer to its first RGET FIFO BLOCK, or 0      SYNC rget-list
//   256  attending[32]  owner            owner     bit i: lane i is in attended[]
//   384  events[256]    owner            owner     what advance() found; see EVENT
//  4480  lanes[E]       origin opens,    owner     pointer to lane i, or 0                       SYNC lane-entry
//                       owner replaces
//  then  attended[E]    owner            owner     two words for each lane to poll in each round: pointer to the record
//                                                 at its next position (or to `nothing`), ordinal of its origin
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
export const CONTEXT_HANDLERLESS_OFFSET: u32 = 232;
export const CONTEXT_RGET_FIFOS_OFFSET: u32 = 236;
export const CONTEXT_ATTENDING_OFFSET: u32 = 256;
export const CONTEXT_EVENTS_OFFSET: u32 = 384;
export const CONTEXT_LANES_OFFSET: u32 = 4480;

export const CONTEXT_OPEN: u32 = 1;
export const CONTEXT_CLOSED: u32 = 2;

// ╒═════════════ HEAP: pages of 4 KiB; extents are runs of pages ═══════════════════════════════════════════════════╕
//  table[p], for the first page p of an extent: state << 30 | owner << 20 | pages. Following the lengths from page 0
//  visits every extent. Each change is one store, so a task that dies between two stores leaves a valid table. An
//  allocator first writes the word of the rest, which no walk reaches yet, then the extent's own. Allocating takes the
//  heap lock. Freeing does not (SYNC extent-free); the next allocator joins adjacent free extents. Other tasks free the
//  extents of an ended task, see heapReclaim().
// ╘═════════════════════════════════════════════════════════════════════════════════════════════════════════════════╛
export const EXTENT_FREE: u32 = 0;
/** A lane. */
export const EXTENT_LANE: u32 = 1;
export const EXTENT_REGION: u32 = 2;
export const EXTENT_STATE_SHIFT: u32 = 30;
export const EXTENT_OWNER_SHIFT: u32 = 20;
export const EXTENT_OWNER_MASK: u32 = 0x3ff;
export const EXTENT_PAGES_MASK: u32 = 0xfffff;

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
export const WAIT_STARTED: u32 = 9;
export const WAIT_COLLECTIVE: u32 = 10;
export const WAIT_COUNT: u32 = 11;

/** In place of a slot, region or completion: there is none. */
export const NONE: u32 = 0xffffffff;

export const CACHE_LINE: u32 = 64;

/** Results of the kernels that allocate. Pointers are page-aligned, so small numbers are free for these. */
export const OPEN_NO_MEMORY: u32 = 0;
export const OPEN_BUSY: u32 = 1;

/** Results of bellWait: those of the wasm instruction `memory.atomic.wait32`. */
export const WAIT_OK: u32 = 0;
export const WAIT_NOT_EQUAL: u32 = 1;
export const WAIT_TIMED_OUT: u32 = 2;
