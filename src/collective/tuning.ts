// Limits at which the default algorithm changes, in bytes of a block or vector. They hold for members that share no memory;
// those that do have one algorithm each.

export const BROADCAST_SHORT = 16 * 1024;
export const ALLREDUCE_SHORT = 16 * 1024;
export const GATHER_SHORT = 1024;
export const ALLGATHER_SHORT = 2 * 1024;
export const ALLTOALL_SHORT = 256;
export const ALLTOALL_MEMBERS = 8;
export const REDUCE_SHORT = 16 * 1024;
export const REDUCE_SCATTER_SHORT = 64 * 1024;
/** Operands of all members that go to each leader, rather than partial sums: bytes of each. */
export const OPERANDS_SHORT = 256;
