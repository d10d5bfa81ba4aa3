// The entry `pamir/mpi`: MPI for programs in TypeScript.
export type { CommBlocks, Op } from "./collectives.js";
export type { Comm, ReceivePart, SendPart } from "./comm.js";
export { ANY_SOURCE, ANY_TAG, IN_PLACE, PROC_NULL, TAG_UB } from "./constants.js";
export type { CommGroup } from "./group.js";
export { type InitOptions, init, type Mpi } from "./mpi.js";
export { type CommRequest, testall, waitall, waitallSync, waitany, waitanySync } from "./request.js";
export type { CommStatus } from "./status.js";
