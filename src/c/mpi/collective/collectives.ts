// What the rows of collective operations take their arguments from: communicators and buffers.
import type { Communicator } from "../../../mpi/communicator.js";
import { ERR } from "../constants.js";
import { MpiFailure } from "../failure.js";
import type { MpiState } from "../state.js";
import { Sides } from "./sides.js";

export class Collectives extends Sides {
  readonly #state: MpiState;

  constructor(state: MpiState) {
    super(state);
    this.#state = state;
  }

  comm(handle: number): Communicator {
    return this.#state.comms.get(handle).comm;
  }

  /** @throws MpiFailure MPI_ERR_ROOT */
  commOf(handle: number, root: number): Communicator {
    const comm = this.comm(handle);
    if (!(root >= 0 && root < comm.size))
      throw new MpiFailure(ERR.ROOT, `the root is rank ${root}, none of 0 to ${comm.size - 1}`);
    return comm;
  }
}
