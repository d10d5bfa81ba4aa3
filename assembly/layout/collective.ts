// What the members of a geometry share if they share a memory, and the header of a message between members.

// ╒═════════════ MEMBER block, 1,088 bytes: one member of one geometry, in a region of its own ═════════════════════╕
//  Each member writes its own block alone, so that no atomic is contended. A collective operation has a number, from 1
//  in each geometry. Its slot is number mod MEMBER_SLOTS.
//  byte  field          writer      readers      meaning
//     0  completed      the member  the members  all operations up to this number are complete here; their slots may be
//                                                written again                                  SYNC member-completed
//     4  wanted         the member  the members  1: it waits for a slot, and is woken by those that give one back
//                                                                                                  SYNC member-wanted
//    64  slots[8]       the member  the members  see below
//
//  A slot, 128 bytes: two cache lines.
//     0  arrived        the member  the members  number of the operation, once the words below are written
//                                                                                               SYNC member-arrived
//     4  reduced        the member  the members  number of the operation, once this member's slice of the result is
//                                                written                                        SYNC member-reduced
//     8  passed         the member  the members  number of the operation, once this member reads nothing any more of what
//                                                others have for it                             SYNC member-passed
//    12  result         the member  the members  SUCCESS, or why the member has nothing for the others
//    16  signature      the member  the members  type, operation and element type, and a hash of root and lengths
//    20  data           the member  the members  pointer to its bytes; 0: they are in `inline`; NONE: it has no memory for them,
//                                                and they come by messages
//    24  slice          the member  the members  pointer to its slice of the result             (before `reduced`);
//                                                in a gather, the bytes that it has             (before `arrived`)
//    28  sliceResult    the member  the members  SUCCESS, or why it has no slice           (before `reduced`)
//    32  before         the member  the members  `completed` at the time: a reader of this line needs not look there
//    36  failed         the member  the members  SUCCESS, or why the operation has failed here: no member begins to read what
//                                                this one has published, and this one reads nothing any more
//                                                                                               SYNC member-failed
//    40  inline[88]     the member  the members  its bytes; of an operation on long arrays, the five words below
//    40  windowed       the member  the members  1: `data` points to two windows; 0: to all bytes
//    44  out            the member  the members  pointer to its slices of two segments
//    48  filled         the member  the members  segments that it has filled                  SYNC member-segment
//    52  cut            the member  the members  segments of which it has reduced its slice   SYNC member-segment
//    56  taken          the member  the members  segments of which it has taken what it gets  SYNC member-segment
// ╘═════════════════════════════════════════════════════════════════════════════════════════════════════════════════╛
export const MEMBER_COMPLETED_OFFSET: u32 = 0;
export const MEMBER_WANTED_OFFSET: u32 = 4;
export const MEMBER_SLOTS_OFFSET: u32 = 64;
export const MEMBER_SLOTS: u32 = 8;
export const MEMBER_SLOT_SIZE: u32 = 128;
export const MEMBER_SIZE: u32 = 1088;
export const MEMBER_ARRIVED_OFFSET: u32 = 0;
export const MEMBER_REDUCED_OFFSET: u32 = 4;
export const MEMBER_PASSED_OFFSET: u32 = 8;
export const MEMBER_RESULT_OFFSET: u32 = 12;
export const MEMBER_SIGNATURE_OFFSET: u32 = 16;
export const MEMBER_DATA_OFFSET: u32 = 20;
export const MEMBER_SLICE_OFFSET: u32 = 24;
export const MEMBER_SLICE_RESULT_OFFSET: u32 = 28;
export const MEMBER_BEFORE_OFFSET: u32 = 32;
export const MEMBER_FAILED_OFFSET: u32 = 36;
export const MEMBER_INLINE_OFFSET: u32 = 40;
export const MEMBER_INLINE_BYTES: u32 = 88;
export const MEMBER_WINDOWED_OFFSET: u32 = 40;
export const MEMBER_OUT_OFFSET: u32 = 44;
export const MEMBER_FILLED_OFFSET: u32 = 48;
export const MEMBER_CUT_OFFSET: u32 = 52;
export const MEMBER_TAKEN_OFFSET: u32 = 56;
/** From a slot to this member's copy of its own bytes, behind the block: no other member reads the copies. */
export const MEMBER_COPY_DISTANCE: u32 = 1024;

// ╒═════════════ MEETING block, 800 bytes: in the page of a MEMBER block, behind its copies and partial results ════╕
//  What a kernel needs to do an operation of this member, while TypeScript has lent it. Its task alone reads and writes it: no
//  word here is a sync point.
//  byte  field       writer      meaning
//     0  lent        TypeScript  1: a kernel may begin an operation, and no operation is under way
//     4  next        both        number of the next operation
//     8  latest      both        the last operation that this member has arrived for: `next`, if a kernel has not ended it
//    12  least       both        the least of the numbers in `seen`, or a smaller one
//    16  rank        TypeScript  of this member
//    20  size        TypeScript  how many members there are
//    24  isShort     TypeScript  1: a kernel can do operations as the last one
//    28  signature   TypeScript  of the last operation
//    32  seen[64]    both        by rank: the last operation that the member has completed, as far as this one knows
//   288  members     TypeScript  8 bytes by rank: pointer to the MEMBER block, pointer to the task slot
// ╘═════════════════════════════════════════════════════════════════════════════════════════════════════════════════╛
export const MEETING_OFFSET: u32 = 3008;
export const MEETING_LENT_OFFSET: u32 = 0;
export const MEETING_NEXT_OFFSET: u32 = 4;
export const MEETING_LATEST_OFFSET: u32 = 8;
export const MEETING_LEAST_OFFSET: u32 = 12;
export const MEETING_RANK_OFFSET: u32 = 16;
export const MEETING_SIZE_OFFSET: u32 = 20;
export const MEETING_IS_SHORT_OFFSET: u32 = 24;
export const MEETING_SIGNATURE_OFFSET: u32 = 28;
export const MEETING_SEEN_OFFSET: u32 = 32;
export const MEETING_MEMBERS_OFFSET: u32 = 288;
export const MEETING_MEMBER_SHIFT: u32 = 3;
export const MEETING_BLOCK_OFFSET: u32 = 0;
export const MEETING_TASK_OFFSET: u32 = 4;
/** Most members of a geometry that has such blocks. */
export const MEETING_MEMBERS_MAX: u32 = 64;

// ╒═════════════ COLLECTIVE header, 28 bytes: of a message to DISPATCH_ID_COLLECTIVE ═══════════════════════════════╕
//     0  kind       COLLECTIVE_…
//     4  to         the geometry's id at the target; CREATE: 0
//     8  from       its id at the origin
//    12  rank       rank of the origin
//    16  number     number of the operation
//    20  tag        of a transfer: its round
//    24  signature  as that of a MEMBER slot
// ╘═════════════════════════════════════════════════════════════════════════════════════════════════════════════════╛
export const COLLECTIVE_KIND_OFFSET: u32 = 0;
export const COLLECTIVE_TO_OFFSET: u32 = 4;
export const COLLECTIVE_FROM_OFFSET: u32 = 8;
export const COLLECTIVE_RANK_OFFSET: u32 = 12;
export const COLLECTIVE_NUMBER_OFFSET: u32 = 16;
export const COLLECTIVE_TAG_OFFSET: u32 = 20;
export const COLLECTIVE_SIGNATURE_OFFSET: u32 = 24;
export const COLLECTIVE_HEADER_SIZE: u32 = 28;

/** The bytes of a transfer. */
export const COLLECTIVE_DATA: u32 = 1;
/**
 * The receiver of a long transfer has begun its round. Two f64: the bytes that it awaits, and up to which they may come. One
 * f64: the sender has begun it, and has so many bytes.
 */
export const COLLECTIVE_READY: u32 = 2;
/** A member makes a geometry. To its first member, which answers all with TABLE once each has come. */
export const COLLECTIVE_CREATE: u32 = 3;
/** Each member's id, node and block. Passed on in a binomial tree. */
export const COLLECTIVE_TABLE: u32 = 4;
/** A geometry is not made: the payload says why. The tag is 1 if a member has ended, and others may have the geometry. */
export const COLLECTIVE_REFUSED: u32 = 5;
/** An operation has failed, by number; the tag is the result. Passed on once by each member. */
export const COLLECTIVE_FAILED: u32 = 6;
/** The origin has closed the geometry. */
export const COLLECTIVE_CLOSED: u32 = 7;
/** A member says which members it takes for ended, for shrink(). */
export const COLLECTIVE_VOTE: u32 = 8;
/** An active message: the payload of a broadcast, scatter, gather or reduction that its root alone has begun. */
export const COLLECTIVE_ACTIVE: u32 = 9;
/**
 * A member has given up making a geometry: the payload says why. The tag is 1 if a member has ended. The target answers with
 * CLOSED: it does not read the origin's block any more.
 */
export const COLLECTIVE_LEFT: u32 = 11;
/**
 * A member asks the first one for the table: another one, which the payload names, has ended (the tag is 1), or has closed the
 * geometry of which the new one is a part.
 */
export const COLLECTIVE_ASK: u32 = 12;
/** In debug mode: what the origin has called, as JSON. Before an operation begins, each member tells each. */
export const COLLECTIVE_CALL: u32 = 13;
/** A message of what is built upon the geometry: the number is that of the extension, tag and signature are its own. */
export const COLLECTIVE_EXTENSION: u32 = 10;
