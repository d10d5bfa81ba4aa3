// Collective operations of MPI, over geometries. Source: MPI 5.0, chapter 6.
import type { Communicator } from "../../../mpi/communicator.js";
import { ERR } from "../constants.js";
import { MpiFailure } from "../failure.js";
import type { Call, MpiState } from "../state.js";
import { evenRows } from "./even.js";
import { type CollectiveRow, formsOf } from "./prepared.js";
import { reductionRows } from "./reduction-rows.js";
import { Sides } from "./sides.js";
import { unevenRows } from "./uneven.js";

/** What all rows need. */
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

/** The calls of this file, without their guards: the number is that of the argument with the communicator. */
export function collectiveCalls(state: MpiState): Record<string, readonly [number, Call]> {
  const all = new Collectives(state);
  const rows: readonly CollectiveRow[] = [...evenRows(all), ...unevenRows(all), ...reductionRows(state, all)];
  return Object.assign({}, ...rows.map((row) => formsOf(state, row)));
}
