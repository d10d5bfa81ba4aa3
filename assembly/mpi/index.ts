// The exports of the wasm module of MPI's matching engine, which a task loads with its first MPI program.
import { LAYOUT_HASH } from "../layout-hash";

export {
  mpiArrive,
  mpiCancel,
  mpiExtend,
  mpiFail,
  mpiFree,
  mpiInit,
  mpiMatched,
  mpiPost,
  mpiProbe,
  mpiSent,
  mpiTake,
} from "./match";

/** Hash of the sources that this module was compiled from: it must be the loader's. */
export function layoutHash(): u32 {
  return LAYOUT_HASH;
}
