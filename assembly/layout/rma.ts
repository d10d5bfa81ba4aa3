// One-sided operations: region entries, injection FIFOs, descriptors. Shared: compiled by asc and imported by TypeScript.

/** Most regions of one task: in a handle, the indices of all tasks together have 20 bits. */
export const REGION_COUNT_MAX: u32 = 1024;

/** Most injection FIFOs of one context: a bit each in a word. */
export const FIFO_COUNT_MAX: u32 = 32;

/** Least slots of an injection FIFO: two transfers with a callback each (C3). */
export const SLOT_COUNT_MIN: u32 = 4;
export const SLOT_COUNT_MAX: u32 = 1048576;

// ╒═════════════ REGION entry, 16 bytes: task t owns the entries t × R … (t + 1) × R - 1 ═══════════════════════════╕
//     0  generation  owner  all  odd: open; counts openings and closings                         SYNC region
//     4  base        owner  all  pointer to the region's first byte              plain: stays as it is while it is open,
//     8  bytes       owner  all  its length                                      and until every context has passed an
//                                                                                advance after it was closed
//    12  own         owner  agent  1: pamir's own, and no put, get or rmw of another node reaches it; else 0      (plain)
// ╘═════════════════════════════════════════════════════════════════════════════════════════════════════════════════╛
export const REGION_GENERATION_OFFSET: u32 = 0;
export const REGION_BASE_OFFSET: u32 = 4;
export const REGION_BYTES_OFFSET: u32 = 8;
export const REGION_OWN_OFFSET: u32 = 12;
export const REGION_SIZE: u32 = 16;
export const REGION_SHIFT: u32 = 4;

// ╒═════════════ INJECTION FIFO: one origin context's, in order; its owner injects and scans, the engine processes ═╕
//  byte  field    writer   readers  meaning
//     0  tail     owner    engine   slots ever injected, modulo 2^32                             SYNC inject
//     4  oldest   owner    owner    every slot before this one is free
//     8  pending  owner    owner    completion descriptors and fences that are not taken yet
//    12  taken    owner    owner    slot of the last completion taken: bits above it may be set though its word is 0
//    64  staged   owner    owner    the DESCRIPTOR for submit() and inject()
//   128  head     engine   owner    slots ever processed, modulo 2^32                            SYNC processed
//   132  moved    engine   engine   bytes moved of the transfer at head
//   136  result   engine   engine   TRANSFER_… of the last transfer, for its completion descriptors
//   140  refused  engine   dump     refused descriptors, modulo 2^32
//   144  failed   engine   engine   TRANSFER_… of the first one refused since the last fence
//   148  ahead    engine   engine   slots from head on that the engine has seen
//   152  away     engine   engine   AWAY_…: whether the descriptor at head goes to another node
//   192  slots    launch   all      number of slots, power of two; in a line without a writer
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
export const INJECTION_AWAY_OFFSET: u32 = 152;
export const INJECTION_SLOTS_OFFSET: u32 = 192;
export const INJECTION_FIRST_OFFSET: u32 = 196;
export const INJECTION_MASK_OFFSET: u32 = 256;
/** Values of `away`. The engine stops at a descriptor for another node, and the agent takes that over. */
export const AWAY_NONE: u32 = 0;
export const AWAY_FOUND: u32 = 1;
export const AWAY_TAKEN: u32 = 2;
/** Most words of a mask level without a level above it. */
export const MASK_TOP_WORDS: u32 = 8;

// ╒═════════════ DESCRIPTOR, 64 bytes ══════════════════════════════════════════════════════════════════════════════╕
//     0  kind              DESCRIPTOR_…
//     4  bytes             of the transfer; RMW: RMW_…. Completion, fence: the result, which the engine writes
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
/** Words of a descriptor that are in use, and copied. */
export const DESCRIPTOR_WORDS: u32 = 12;

/** From the origin's region to the target's. */
export const DESCRIPTOR_PUT: u32 = 1;
/** From the target's region to the origin's. */
export const DESCRIPTOR_GET: u32 = 2;
/** Changes a word of the target's region atomically. With RMW_FETCH, the old value goes to the origin's region. */
export const DESCRIPTOR_RMW: u32 = 3;
/** Sets the bit of its own slot, and reports the result of the transfer before it. */
export const DESCRIPTOR_COMPLETION: u32 = 4;
/** Sets the bit of its own slot, and reports the first failure since the last fence. */
export const DESCRIPTOR_FENCE: u32 = 5;
// In rget FIFOs only, in the order of a chain: see chain.ts.
/** Target RGET: ships an origin RGET to the target's rget FIFO. */
export const DESCRIPTOR_RGET: u32 = 6;
/**
 * Also called an origin RGET: both names mean this descriptor. The target's engine processes it. It ships the link at its
 * remote address, `bytes` slots, to the origin's rget FIFO.
 */
export const DESCRIPTOR_FETCH: u32 = 7;
/** A direct put of an address: next, the origin RGET `value[0]` fetches the link at this one's remote address. */
export const DESCRIPTOR_REFILL: u32 = 8;
/** A fragment: a direct put, which the target's DMA counter counts. */
export const DESCRIPTOR_MOVE: u32 = 9;
/** Local memory FIFO descriptor: tells the origin's core that the chain is over, with the result in `bytes`. */
export const DESCRIPTOR_NOTICE: u32 = 10;

/** Results of a transfer. */
export const TRANSFER_DONE: u32 = 0;
export const TRANSFER_LOCAL_CLOSED: u32 = 1;
export const TRANSFER_LOCAL_BOUNDS: u32 = 2;
export const TRANSFER_REMOTE_CLOSED: u32 = 3;
export const TRANSFER_REMOTE_BOUNDS: u32 = 4;
/** Unknown kind, operation or type, or an unaligned word. */
export const TRANSFER_INVALID: u32 = 5;
/** From submit(): the descriptor is right, and has to be injected. */
export const TRANSFER_LATER: u32 = 6;
/** The target's task has ended. */
export const TRANSFER_ENDED: u32 = 7;
/** One of the two sides canceled it. */
export const TRANSFER_CANCELED: u32 = 8;
/** The target refused it. */
export const TRANSFER_REFUSED: u32 = 9;
/** The engine thread ended before the transfer was done. */
export const TRANSFER_BROKEN: u32 = 10;
/** Within the engine: the target is a task of another node, and the net transport carries the descriptor there. */
export const TRANSFER_AWAY: u32 = 11;
/** Position of the result in the value of completionTake(); the slot is below it. */
export const COMPLETION_RESULT_SHIFT: u32 = 24;

/** Operations of an RMW, plus flags. */
export const RMW_SET: u32 = 1;
export const RMW_ADD: u32 = 2;
export const RMW_OR: u32 = 3;
export const RMW_AND: u32 = 4;
export const RMW_XOR: u32 = 5;
export const RMW_OPERATION_MASK: u32 = 7;
/** The old value goes to the origin's region. */
export const RMW_FETCH: u32 = 8;
/** Changes the word only if it equals `test`. */
export const RMW_COMPARE: u32 = 16;
/** 64-bit word. */
export const RMW_WIDE: u32 = 32;
/** The engine then wakes the task that owns the region. */
export const RMW_NOTIFY: u32 = 64;
/** In a FIFO: done only if the preceding transfer was done. */
export const RMW_BEHIND: u32 = 128;
