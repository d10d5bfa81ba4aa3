// Trace rings. Shared: compiled by asc and imported by TypeScript.

// ╒═════════════ TRACE ring: one for each task, which alone writes it; any thread may read it at any time ═══════════╕
//     0  position  the task  reader  events ever written, modulo 2^32
//   128  event[]   the task  reader  16 bytes each, at position & (traceEvents - 1):
//                  0  kind   TRACE_…, in 8 bits; above them the dispatch id, in 16, and the task's own context, in 8
//                  4  whom   the other endpoint; a task; NONE
//                  8  count  number of the message among those of its origin, target and id; or another value of the kind
//                 12  bytes  of the transfer
//                 TRACE_CLOCK has milliseconds as f64 in the upper 8 bytes: events between two of them are spread
//                 evenly over the time between. Its second word is 1 if a round is over: the last handler has ended.
//  All plain: a reader copies, reads position again, and drops the events that may have been overwritten meanwhile.
// ╘═════════════════════════════════════════════════════════════════════════════════════════════════════════════════╛
export const TRACE_POSITION_OFFSET: u32 = 0;
export const TRACE_EVENTS_OFFSET: u32 = 128;
export const TRACE_EVENT_SIZE: u32 = 16;
export const TRACE_EVENT_SHIFT: u32 = 4;
export const TRACE_ID_SHIFT: u32 = 8;
export const TRACE_CONTEXT_SHIFT: u32 = 24;
export const TRACE_CLOCK: u32 = 1;
/** Events between two readings of the clock at most: a reader that begins at any event finds one before it. */
export const TRACE_UNREAD_MAX: u32 = 64;
export const TRACE_SEND: u32 = 2;
/** A handler begins; so the one before it has ended. */
export const TRACE_HANDLER: u32 = 3;
export const TRACE_PUT: u32 = 5;
export const TRACE_GET: u32 = 6;
export const TRACE_RMW: u32 = 7;
export const TRACE_FENCE: u32 = 8;
/** The fence with the number `count` of a TRACE_FENCE is complete. */
export const TRACE_FENCED: u32 = 9;
/** The thread falls asleep. */
export const TRACE_PARK: u32 = 10;
export const TRACE_WAKE: u32 = 11;
/** This task has learned that another one has ended. */
export const TRACE_DEATH: u32 = 12;
