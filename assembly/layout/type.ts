// Types of transfers: where the bytes of one element lie, as nested loops, and the order in which they are packed. Shared:
// compiled by asc and imported by TypeScript.

// ╒═════════════ LAYOUT: of one element of a type, written by the task that packs or unpacks; read by the kernels ═╕
//  byte  field   meaning
//     0  bytes   of data in one element, at least 1
//     4  extent  from one element to the next
//     8  loops   number of LOOP entries, which follow
// ╘═════════════════════════════════════════════════════════════════════════════════════════════════════════════════╛
export const LAYOUT_BYTES_OFFSET: u32 = 0;
export const LAYOUT_EXTENT_OFFSET: u32 = 4;
export const LAYOUT_LOOPS_OFFSET: u32 = 8;
export const LAYOUT_SIZE: u32 = 12;

// ╒═════════════ LOOP entry, 20 bytes: its body is done `count` times, each time `stride` bytes further ═══════════╕
//     0  offset  of the first time, from where the loop around begins
//     4  count   at least 1
//     8  stride  from one time to the next
//    12  bytes   of data in the body, at least 1
//    16  inner   number of LOOP entries that follow and are the body, those within them too; 0: the body is `bytes`
//                contiguous bytes
// ╘═════════════════════════════════════════════════════════════════════════════════════════════════════════════════╛
export const LOOP_OFFSET_OFFSET: u32 = 0;
export const LOOP_COUNT_OFFSET: u32 = 4;
export const LOOP_STRIDE_OFFSET: u32 = 8;
export const LOOP_BYTES_OFFSET: u32 = 12;
export const LOOP_INNER_OFFSET: u32 = 16;
export const LOOP_SIZE: u32 = 20;

/** Most LOOP entries of a type. */
export const LOOP_COUNT_MAX: u32 = 1048576;
