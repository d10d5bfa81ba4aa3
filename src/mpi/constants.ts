// Numbers and marks of MPI in place of a rank, a tag or a buffer: those of the C interface, as include/mpi.h has them.

/** In place of a rank: a receive or probe takes messages of any rank. */
export const ANY_SOURCE = -1;
/** In place of a tag: a receive or probe takes messages with any tag. */
export const ANY_TAG = -2;
/** In place of a rank: nothing is sent, and a receive is over at once. */
export const PROC_NULL = -3;
/** Largest tag. */
export const TAG_UB = 0x7fffffff;
/** In place of a view that is sent or received: the member's part lies in its other view already. */
export const IN_PLACE: unique symbol = Symbol("MPI_IN_PLACE");
