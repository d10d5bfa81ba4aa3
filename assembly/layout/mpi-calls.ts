// What the calls of MPI that a program in C makes need, beside the engine: assembly/calls/. The task that runs the program owns it
// all; no other thread reads or writes it. So no word here is a sync point.

// ╒═════════════ MPI_CALLS block, 128 bytes ════════════════════════════════════════════════════════════════════════╕
//  byte  field         writer      meaning
//     0  open          TypeScript  1: calls may go the short way
//     4  engine        TypeScript  pointer to the MPI_ENGINE block
//     8  job           TypeScript  pointer to the job header
//    12  context       TypeScript  pointer to the context's block
//    16  lanes         TypeScript  pointer to a word by the target's ordinal: the lane, or 0
//    20  locals        TypeScript  how many ordinals are those of this node
//    24  first         TypeScript  number of the task in slot 0
//    28  contexts      TypeScript  contexts of each task
//    32  comms         TypeScript  pointer to MPI_GROUP entries, by handle
//    36  types         TypeScript  pointer to a word by handle: bytes of an element without gaps, or 0
//    40  guard         TypeScript  pointer to the last two words of the program's stack
//    44  regionIndex   TypeScript  number of the region in which the program lies
//    48  generation    TypeScript  of that region
//    52  arena         TypeScript  pointer to its first byte
//    56  arenaBytes    TypeScript  its bytes
//    60  eagerMax      TypeScript  most bytes of a payload that goes with its message
//    64  looks         TypeScript  looks of a wait before TypeScript waits
//    68  sentAtOnce    TypeScript  pointer to an MPI_REQUEST that is over: all sends that are over at once have this one
//    72  won           calls       waits that were over during their looks, since TypeScript has set this to 0
//    76  polls         calls       tests and probes in a row that found nothing
//    80  nullGuard     TypeScript  pointer to two words that a write through NULL changes; without such: to those of guard
//    84  known         TypeScript  pointer to MPI_KNOWN entries
//    88  partials      TypeScript  pointer to MPI_CALLS_PARTIALS_BYTES, for partial results of a reduction
// ╘═════════════════════════════════════════════════════════════════════════════════════════════════════════════════╛
export const MPI_CALLS_OPEN_OFFSET: u32 = 0;
export const MPI_CALLS_ENGINE_OFFSET: u32 = 4;
export const MPI_CALLS_JOB_OFFSET: u32 = 8;
export const MPI_CALLS_CONTEXT_OFFSET: u32 = 12;
export const MPI_CALLS_LANES_OFFSET: u32 = 16;
export const MPI_CALLS_LOCALS_OFFSET: u32 = 20;
export const MPI_CALLS_FIRST_OFFSET: u32 = 24;
export const MPI_CALLS_CONTEXTS_OFFSET: u32 = 28;
export const MPI_CALLS_COMMS_OFFSET: u32 = 32;
export const MPI_CALLS_TYPES_OFFSET: u32 = 36;
export const MPI_CALLS_GUARD_OFFSET: u32 = 40;
export const MPI_CALLS_REGION_INDEX_OFFSET: u32 = 44;
export const MPI_CALLS_GENERATION_OFFSET: u32 = 48;
export const MPI_CALLS_ARENA_OFFSET: u32 = 52;
export const MPI_CALLS_ARENA_BYTES_OFFSET: u32 = 56;
export const MPI_CALLS_EAGER_MAX_OFFSET: u32 = 60;
export const MPI_CALLS_LOOKS_OFFSET: u32 = 64;
export const MPI_CALLS_SENT_AT_ONCE_OFFSET: u32 = 68;
export const MPI_CALLS_WON_OFFSET: u32 = 72;
export const MPI_CALLS_POLLS_OFFSET: u32 = 76;
export const MPI_CALLS_NULL_GUARD_OFFSET: u32 = 80;
export const MPI_CALLS_KNOWN_OFFSET: u32 = 84;
export const MPI_CALLS_PARTIALS_OFFSET: u32 = 88;
export const MPI_CALLS_SIZE: u32 = 128;

// ╒═════════════ MPI_GROUP entry, 16 bytes: a communicator of the program ══════════════════════════════════════════╕
//     0  number        of the communicator, by which the engine knows it
//     4  rank          of this task in it
//     8  size          how many ranks it has; 0: the handle is none, or not one of the short way
//    12  peers         pointer to a word by rank: its ordinal; NONE: the rank is in another node. The word before is the
//                      pointer to the communicator's MEETING block; 0: its collective operations go the long way
// ╘═════════════════════════════════════════════════════════════════════════════════════════════════════════════════╛
export const MPI_GROUP_NUMBER_OFFSET: u32 = 0;
export const MPI_GROUP_RANK_OFFSET: u32 = 4;
export const MPI_GROUP_SIZE_OFFSET: u32 = 8;
export const MPI_GROUP_PEERS_OFFSET: u32 = 12;
export const MPI_GROUP_SHIFT: u32 = 4;

// ╒═════════════ MPI_KNOWN entry, 32 bytes: a collective operation that has gone the long way, and may go the short one ╕
//     0  size          members of its communicator; 0: the entry is empty
//     4  type          handle of the elements' type, a predefined one; of a barrier 0, as are the next two
//     8  op            handle of the operation, a predefined one
//    12  count         elements
//    16  signature     as of a MEMBER slot
//    20  operation     OPERATION_…
//    24  element       TYPE_…
//    28  bytes         of all elements, up to MEMBER_INLINE_BYTES
// ╘═════════════════════════════════════════════════════════════════════════════════════════════════════════════════╛
export const MPI_KNOWN_SIZE_OFFSET: u32 = 0;
export const MPI_KNOWN_TYPE_OFFSET: u32 = 4;
export const MPI_KNOWN_OP_OFFSET: u32 = 8;
export const MPI_KNOWN_COUNT_OFFSET: u32 = 12;
export const MPI_KNOWN_SIGNATURE_OFFSET: u32 = 16;
export const MPI_KNOWN_OPERATION_OFFSET: u32 = 20;
export const MPI_KNOWN_ELEMENT_OFFSET: u32 = 24;
export const MPI_KNOWN_BYTES_OFFSET: u32 = 28;
export const MPI_KNOWN_SHIFT: u32 = 5;
/** Entries, looked through in order: programs repeat a few operations. The next one takes the place of the oldest. */
export const MPI_KNOWN_COUNT: u32 = 16;
/** Bytes of a partial result, and of all those of MEETING_MEMBERS_MAX members: two for each halving, and two. */
export const MPI_CALLS_PARTIAL_BYTES: u32 = 96;
export const MPI_CALLS_PARTIALS_BYTES: u32 = 1152;

/** Handles of predefined objects are below this one; the tables have an entry for each. */
export const MPI_CALLS_PREDEFINED: u32 = 0x400;
/** Handles of the program's own objects begin here; their entries follow those of the predefined ones. */
export const MPI_CALLS_FIRST_OWN: u32 = 0x1000;
/** Entries of both tables: objects with higher handles go the long way. */
export const MPI_CALLS_HANDLES: u32 = 0x800;

/** Handles from here on are pointers to requests of the engine; those of TypeScript are smaller numbers. */
export const MPI_CALLS_POINTER_MIN: u32 = 0x10000;

/** A word of a guard: GUARD_BYTE four times. */
export const MPI_CALLS_GUARD: u32 = 0x5a5a5a5a;
/** Tests and probes in a row that find nothing before the task rests for a moment. */
export const MPI_CALLS_POLLS_MAX: u32 = 1000;
/** The dispatch id of the engine's messages: the last one of those that programs have. */
export const MPI_CALLS_META: u32 = 0x100fff;

// Numbers of MPI's C interface. Source: MPI 5.0, chapter 20.
export const MPI_C_ANY_TAG: i32 = -2;
export const MPI_C_REQUEST_NULL: u32 = 0x180;
export const MPI_C_IN_PLACE: u32 = 1;

// ╒═════════════ MPI_C_STATUS: 32 bytes, the MPI_Status of a program ══════════════════════════════════════════════╕
//     0  source        rank that sent
//     4  tag           of the message
//     8  error         of the request, where a call has several
//    12  bytes         of the message
//    16  canceled      1: the request was taken back; 12 bytes unused follow
// ╘═════════════════════════════════════════════════════════════════════════════════════════════════════════════════╛
export const MPI_C_STATUS_SOURCE_OFFSET: u32 = 0;
export const MPI_C_STATUS_TAG_OFFSET: u32 = 4;
export const MPI_C_STATUS_ERROR_OFFSET: u32 = 8;
export const MPI_C_STATUS_BYTES_OFFSET: u32 = 12;
export const MPI_C_STATUS_CANCELED_OFFSET: u32 = 16;
export const MPI_C_STATUS_SHIFT: u32 = 5;
