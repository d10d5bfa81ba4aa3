// What the members of a communicator that are left decide together, although more of them may end meanwhile. The geometry's
// shrink() is the agreement: it names the members that are left, the same ones to all of them.
import { type Geometry, type Operation, PamiError, SUCCESS } from "../../../index.js";
import type { Communicator } from "../../../mpi/communicator.js";
import { ERR } from "../constants.js";
import { MpiFailure } from "../failure.js";

export interface Decision {
  /** The same at all members that are left. */
  readonly values: Int32Array;
  /** A geometry of these members, which nothing else uses. */
  readonly geometry: Geometry;
}

/**
 * Combines values of all members that are left; all of them call this. A decision counts if no member has ended between it and
 * the next shrink(): before its vote, each member has the result, or knows of an end.
 * @throws MpiFailure MPIX_ERR_PROC_FAILED too few members are left to be sure that no others go on
 */
export function decide(comm: Communicator, operation: Operation, own: Int32Array): Decision {
  // The communicator's own geometry may have an operation that was broken off.
  comm.survivors ??= shrunk(comm.geometry);
  for (;;) {
    const { survivors } = comm;
    const values = own.slice();
    if (survivors.size > 1) survivors.allreduceSync({ send: null, receive: values, operation, type: "i32" });
    const geometry = shrunk(survivors);
    if (geometry.size === survivors.size) return { values, geometry };
    survivors.close();
    comm.survivors = geometry;
  }
}

/** Waits for all ranks, or for those that are left if some are gone. */
export function meet(world: Communicator): void {
  try {
    world.isBusy = true;
    if (!world.isRevoked && world.geometry.barrierSync() === SUCCESS) return;
  } catch (error) {
    // Another rank has revoked it meanwhile.
    if (!(error instanceof MpiFailure)) throw error;
  } finally {
    world.isBusy = false;
  }
  try {
    decide(world, "and", new Int32Array(1)).geometry.close();
  } catch (error) {
    if (!(error instanceof MpiFailure)) throw error;
  }
}

function shrunk(geometry: Geometry): Geometry {
  try {
    return geometry.shrinkSync();
  } catch (error) {
    if (!(error instanceof PamiError) || error.code === "PAMIR_INTERRUPTED") throw error;
    throw new MpiFailure(ERR.PROC_FAILED, error.message);
  }
}
