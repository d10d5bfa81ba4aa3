// Ends of ranks: what is known of them, and how the rest goes on. Source: User Level Failure Mitigation, the proposal for MPI.
import type { Endpoint } from "../../../index.js";
import type { Communicator } from "../../../mpi/communicator.js";
import { ERR, GROUP_EMPTY, SUCCESS } from "../constants.js";
import { MpiFailure } from "../failure.js";
import type { Call, MpiState } from "../state.js";
import { Revocations } from "./revocations.js";
import { decide } from "./survivors.js";

/** The calls of this file, without their guards: the number is that of the argument with the communicator. */
export function failureCalls(state: MpiState): Record<string, readonly [number, Call]> {
  const revocations = new Revocations(state);
  const commOf = (handle: number | undefined): Communicator => state.comms.get(handle as number).comm;
  const store = (pointer: number | undefined, value: number): number => {
    state.setWord(pointer as number, value);
    return SUCCESS;
  };
  const ended = (comm: Communicator): number[] =>
    comm.endpoints.map((_, rank) => rank).filter((rank) => state.engine.hasEnded(comm, rank));
  const addGroup = ({ endpoints }: Communicator, ranks: Iterable<number>): number => {
    const members = [...ranks].sort((one, other) => one - other).map((rank) => endpoints[rank] as Endpoint);
    return members.length === 0 ? GROUP_EMPTY : state.groups.add(members);
  };
  /** News of ends comes while this task advances: a program that asks in a loop gets it. */
  const known = (comm: Communicator): number[] => {
    state.engine.advance();
    return ended(comm);
  };
  return {
    MPIX_Comm_revoke: [
      0,
      (handle) => {
        revocations.revoke(commOf(handle));
        return SUCCESS;
      },
    ],
    MPIX_Comm_is_revoked: [
      0,
      (handle, flag) => {
        const comm = commOf(handle);
        state.engine.advance();
        return store(flag, +comm.isRevoked);
      },
    ],
    MPIX_Comm_get_failed: [
      0,
      (handle, pointer) => {
        const comm = commOf(handle);
        return store(pointer, addGroup(comm, known(comm)));
      },
    ],
    MPIX_Comm_ack_failed: [
      0,
      (handle, count, pointer) => {
        const comm = commOf(handle);
        for (const rank of known(comm).slice(0, count)) comm.acknowledged.add(rank);
        return store(pointer, comm.acknowledged.size);
      },
    ],
    MPIX_Comm_failure_ack: [
      0,
      (handle) => {
        const comm = commOf(handle);
        for (const rank of known(comm)) comm.acknowledged.add(rank);
        return SUCCESS;
      },
    ],
    MPIX_Comm_failure_get_acked: [
      0,
      (handle, pointer) => {
        const comm = commOf(handle);
        return store(pointer, addGroup(comm, comm.acknowledged));
      },
    ],
    MPIX_Comm_shrink: [
      0,
      (handle, pointer) => {
        const parent = state.comms.get(handle as number);
        const made = decide(parent.comm, "max", Int32Array.of(state.communicators.next));
        const comm = state.communicators.make(made.values[0] as number, made.geometry);
        return store(pointer, state.addComm(comm, parent));
      },
    ],
    MPIX_Comm_agree: [0, (handle, flag) => agree(state, commOf(handle), flag as number)],
  };
}

/** All members that are left get the bits that all have. @throws MpiFailure at all of them, unless all know all ends */
function agree(state: MpiState, comm: Communicator, pointer: number): number {
  // Behind the flag, a bit for each rank: whether this rank has acknowledged that rank's end.
  const own = new Int32Array(1 + Math.ceil(comm.size / 32));
  own[0] = state.word(pointer);
  for (const rank of comm.acknowledged) (own[1 + (rank >>> 5)] as number) |= 1 << (rank & 31);
  const { values, geometry } = decide(comm, "and", own);
  const left = new Set(geometry.endpoints);
  geometry.close();
  state.setWord(pointer, values[0] as number);
  const isKnown = (rank: number): boolean => (((values[1 + (rank >>> 5)] as number) >>> (rank & 31)) & 1) === 1;
  const news = comm.endpoints.findIndex((endpoint, rank) => !left.has(endpoint) && !isKnown(rank));
  if (news >= 0) throw new MpiFailure(ERR.PROC_FAILED, `not all ranks have acknowledged that rank ${news} has ended`);
  return SUCCESS;
}
