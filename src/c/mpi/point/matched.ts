// Matched probes: a message that was found is received by its handle alone. Source: MPI 5.0, section 3.8.2.
import { ANY, type Request } from "../../../mpi/engine.js";
import {
  ANY_SOURCE,
  ANY_TAG,
  COMM_SELF,
  ERR,
  MESSAGE_NO_PROC,
  MESSAGE_NULL,
  PROC_NULL,
  SUCCESS,
} from "../constants.js";
import { MpiFailure } from "../failure.js";
import { HandleTable } from "../handle-table.js";
import type { Messages } from "../messages.js";
import type { OpenRequest } from "../requests/open-request.js";
import { FROM_NOBODY, failureOf, finish, writeStatus } from "../requests/requests.js";
import type { Call, CommObject, MpiState } from "../state.js";

/** A message that no other receive gets. */
interface Matched {
  /** Pointer to the stored message. */
  readonly stored: number;
  readonly comm: CommObject["comm"];
}

export function matchedCalls(state: MpiState, messages: Messages): Record<string, readonly [number, Call]> {
  const { engine } = state;
  const table = new HandleTable<Matched>("message", ERR.REQUEST);
  /** Takes a message, and describes it. @returns whether there is one */
  const take = (peer: number, tag: number, comm: CommObject["comm"], pointer: number, status: number): boolean => {
    const stored = engine.take(comm, peer, tag === ANY_TAG ? ANY : tag);
    if (stored === 0) return false;
    messages.describe(stored, status);
    state.setWord(pointer, table.add({ stored, comm }));
    return true;
  };
  const fromNobody = (pointer: number, status: number): number => {
    state.setWord(pointer, MESSAGE_NO_PROC);
    writeStatus(state, status, FROM_NOBODY);
    return SUCCESS;
  };
  const commOf = (handle: number, peer: number): CommObject["comm"] => {
    const { comm } = state.comms.get(handle);
    if (peer !== ANY_SOURCE && peer !== PROC_NULL && !(peer >= 0 && peer < comm.size))
      throw new MpiFailure(ERR.RANK, `rank ${peer} is none of 0 to ${comm.size - 1}`);
    return comm;
  };
  /** Begins to receive the message at a pointer, whose handle is gone. */
  const receive = (buffer: number, count: number, typeHandle: number, pointer: number): OpenRequest => {
    const handle = state.word(pointer);
    if (count < 0) throw new MpiFailure(ERR.COUNT, `the count is ${count}, not a number from 0`);
    const type = state.types.committed(typeHandle);
    if (handle === MESSAGE_NO_PROC) {
      state.setWord(pointer, MESSAGE_NULL);
      const { comm } = state.comms.get(COMM_SELF);
      return { comm, isReceive: true, peer: PROC_NULL, engine: 0, outcome: FROM_NOBODY };
    }
    const { stored, comm } = table.get(handle);
    const bytes = count * type.bytes;
    const scratch = state.isDirect(type) ? undefined : state.place(bytes);
    const request: Request = engine.receiveTaken(stored, scratch?.bytes.byteOffset ?? buffer, bytes);
    table.remove(handle);
    state.setWord(pointer, MESSAGE_NULL);
    return { comm, isReceive: true, peer: ANY_SOURCE, engine: request, scratch, type, buffer };
  };
  return {
    MPI_Mprobe: [
      2,
      (peer, tag, handle, pointer, status) => {
        const comm = commOf(handle as number, peer as number);
        if (peer === PROC_NULL) return fromNobody(pointer as number, status as number);
        const isThere = (): boolean => take(peer as number, tag as number, comm, pointer as number, status as number);
        let found = isThere();
        if (!found) {
          engine.waitUntil(() => {
            found = isThere();
            return found || ((peer as number) >= 0 && engine.hasEnded(comm, peer as number));
          });
        }
        if (!found) throw new MpiFailure(ERR.PROC_FAILED, `rank ${peer} has ended`);
        return SUCCESS;
      },
    ],
    MPI_Improbe: [
      2,
      (peer, tag, handle, flag, pointer, status) => {
        const comm = commOf(handle as number, peer as number);
        state.setWord(flag as number, 1);
        if (peer === PROC_NULL) return fromNobody(pointer as number, status as number);
        messages.poll();
        const found = take(peer as number, tag as number, comm, pointer as number, status as number);
        state.setWord(flag as number, +found);
        if (found) messages.found();
        else if ((peer as number) >= 0 && engine.hasEnded(comm, peer as number))
          throw new MpiFailure(ERR.PROC_FAILED, `rank ${peer} has ended`);
        return SUCCESS;
      },
    ],
    MPI_Mrecv: [
      -1,
      (buffer, count, type, pointer, status) => {
        const request = receive((buffer as number) >>> 0, count as number, type as number, pointer as number);
        const outcome = finish(state, request);
        writeStatus(state, status as number, outcome);
        if (outcome.error !== SUCCESS) throw failureOf(outcome);
        return SUCCESS;
      },
    ],
    MPI_Imrecv: [
      -1,
      (buffer, count, type, pointer, out) => {
        const request = receive((buffer as number) >>> 0, count as number, type as number, pointer as number);
        state.setWord(out as number, state.requests.add(request));
        return SUCCESS;
      },
    ],
  };
}
