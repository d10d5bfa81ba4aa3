// Revoked communicators: a member tells all others, and each of those passes it on, so that the news reaches all members that
// are left, even if the first one ends meanwhile.
import { EAGAIN, type Result } from "../../../index.js";
import type { Communicator } from "../../../mpi/communicator.js";
import { MPI_DISPATCH } from "../../../mpi/engine.js";
import { ERR } from "../constants.js";
import { MpiFailure } from "../failure.js";
import type { MpiState } from "../state.js";

/** Dispatch id of the news: one word, the communicator's number. */
const REVOKE_DISPATCH = MPI_DISPATCH - 2;

export class Revocations {
  readonly #state: MpiState;

  constructor(state: MpiState) {
    this.#state = state;
    state.context.dispatch(REVOKE_DISPATCH, (message) => {
      const number = message.headerWord(0);
      for (const [, { comm }] of state.comms.entries()) if (comm.number === number) this.#heard(comm);
    });
  }

  /** Revokes a communicator at all its members. */
  revoke(comm: Communicator): void {
    if (comm.isRevoked) return;
    comm.isRevoked = true;
    this.#state.hasRevoked = true;
    const header = Int32Array.of(comm.number);
    const { context } = this.#state;
    for (const to of comm.endpoints) {
      if (to === context.endpoint) continue;
      const send = (): Result => context.send({ to, dispatch: REVOKE_DISPATCH, header });
      // Without room, the context calls it again.
      if (send() === EAGAIN) context.post(send);
    }
  }

  /** @throws MpiFailure out of the collective operation of the communicator in which this task waits */
  #heard(comm: Communicator): void {
    if (comm.isRevoked) return;
    this.revoke(comm);
    if (comm.isBusy) throw revoked();
  }
}

/** @returns an error MPIX_ERR_REVOKED */
export function revoked(): MpiFailure {
  return new MpiFailure(ERR.REVOKED, "the communicator is revoked");
}
