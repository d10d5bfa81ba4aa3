// Limits at which the default algorithm changes, in bytes of a block or vector. All limits but FLAT_SHORT hold for members that
// share no memory. Members that share memory have one algorithm for each type, but two for reductions.

/** In one memory: each member itself reduces vectors that fit into slots, rather than in slices. */
export const FLAT_SHORT = 88;

export const BROADCAST_SHORT = 16 * 1024;
export const BROADCAST_MEMBERS = 4;
export const ALLREDUCE_SHORT = 16 * 1024;
export const GATHER_SHORT = 1024;
export const ALLGATHER_SHORT = 2 * 1024;
export const ALLTOALL_SHORT = 256;
export const ALLTOALL_MEMBERS = 8;
export const REDUCE_SHORT = 16 * 1024;
export const REDUCE_SCATTER_SHORT = 64 * 1024;
/** Operands of all members that go to each leader, rather than partial sums: bytes of each. */
export const OPERANDS_SHORT = 256;
