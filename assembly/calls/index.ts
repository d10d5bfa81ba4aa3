// The exports of the wasm module with the short ways of MPI's calls: each task that runs a program has an instance of its own.
import { LAYOUT_HASH } from "../layout-hash";

export { bindCalls } from "./block";
export {
  MPI_Comm_rank,
  MPI_Comm_size,
  MPI_Get_count,
  MPI_Iprobe,
  MPI_Irecv,
  MPI_Isend,
  MPI_Recv,
  MPI_Send,
  MPI_Sendrecv,
  MPI_Test,
  MPI_Wait,
  MPI_Waitall,
} from "./calls";
export { MPI_Allreduce, MPI_Barrier } from "./collective";

/** Hash of the sources that this module was compiled from: it must be the loader's. */
export function layoutHash(): u32 {
  return LAYOUT_HASH;
}
