// Waits and tests of requests, one or several at a time. Source: MPI 5.0, sections 3.7 and 3.9.
import { PeerEnded } from "../../../mpi/engine.js";
import { ERR, PROC_NULL, REQUEST_NULL, STATUS, SUCCESS, UNDEFINED } from "../constants.js";
import { MpiFailure } from "../failure.js";
import type { Messages } from "../messages.js";
import type { Call, MpiState } from "../state.js";
import { NO_MESSAGE, type OpenRequest } from "./open-request.js";
import {
  asFailure,
  dropAt,
  failureOf,
  finish,
  isActive,
  isOver,
  outcomeOf,
  requestAt,
  take,
  writeStatus,
} from "./requests.js";

const STATUS_BYTES = STATUS.WORDS * 4;
const WORD = 4;

export function completionCalls(state: MpiState, messages: Messages): Record<string, readonly [number, Call]> {
  const place = (pointer: number, index: number): number => pointer + index * WORD;
  const statusAt = (pointer: number, index: number): number => (pointer === 0 ? 0 : pointer + index * STATUS_BYTES);
  const requestsAt = (count: number, pointer: number): (OpenRequest | undefined)[] =>
    Array.from({ length: count }, (_, index) => requestAt(state, place(pointer, index)));

  /** The request at a pointer is over: takes its result. @returns its error */
  const end = (request: OpenRequest, pointer: number, status: number): number => {
    const outcome = take(state, request);
    dropAt(state, pointer, request);
    writeStatus(state, status, outcome);
    if (outcome.error !== SUCCESS) throw failureOf(outcome);
    return SUCCESS;
  };
  /** The first request that is over, or whose rank has ended; -1: none. */
  const firstOver = (requests: readonly (OpenRequest | undefined)[]): number =>
    requests.findIndex((request) => isActive(request) && (isOver(state, request) || hasFailed(state, request)));
  const none = (index: number, status: number): number => {
    state.setWord(index, UNDEFINED);
    writeStatus(state, status, NO_MESSAGE);
    return SUCCESS;
  };
  const endAt = (
    requests: readonly (OpenRequest | undefined)[],
    at: number,
    pointer: number,
    status: number,
  ): number => {
    const request = requests[at] as OpenRequest;
    if (!isOver(state, request)) throw failed(request);
    return end(request, place(pointer, at), status);
  };
  /** Ends all of those that are over. @returns how many; their numbers stand at `indices` */
  const endSome = (
    requests: readonly (OpenRequest | undefined)[],
    pointer: number,
    indices: number,
    statuses: number,
  ): number => {
    let ended = 0;
    requests.forEach((request, index) => {
      if (!isActive(request) || !isOver(state, request)) return;
      state.setWord(place(indices, ended), index);
      end(request, place(pointer, index), statusAt(statuses, ended));
      ended++;
    });
    return ended;
  };
  const all = (requests: readonly (OpenRequest | undefined)[], pointer: number, statuses: number): number => {
    let hasError = false;
    requests.forEach((request, index) => {
      const status = statusAt(statuses, index);
      let outcome = NO_MESSAGE;
      let { error } = outcome;
      if (isActive(request)) {
        try {
          outcome = finish(state, request);
          error = outcome.error;
        } catch (failure) {
          if (!(failure instanceof MpiFailure)) throw failure;
          error = failure.errorClass;
        }
        dropAt(state, place(pointer, index), request);
      }
      if (error !== SUCCESS) hasError = true;
      writeStatus(state, status, outcome, error);
    });
    if (hasError) throw new MpiFailure(ERR.IN_STATUS, "a request has failed: its status says how");
    return SUCCESS;
  };

  return {
    MPI_Wait: [
      -1,
      (pointer, status) => {
        const request = requestAt(state, pointer as number);
        if (request === undefined) {
          writeStatus(state, status as number, NO_MESSAGE);
          return SUCCESS;
        }
        const outcome = finish(state, request);
        dropAt(state, pointer as number, request);
        writeStatus(state, status as number, outcome);
        if (outcome.error !== SUCCESS) throw failureOf(outcome);
        return SUCCESS;
      },
    ],
    MPI_Waitall: [
      -1,
      (count, pointer, statuses) =>
        all(requestsAt(count as number, pointer as number), pointer as number, statuses as number),
    ],
    MPI_Waitany: [
      -1,
      (count, pointer, index, status) => {
        const requests = requestsAt(count as number, pointer as number);
        if (!requests.some(isActive)) return none(index as number, status as number);
        let at = firstOver(requests);
        if (at < 0) {
          state.engine.waitUntil(() => {
            at = firstOver(requests);
            return at >= 0;
          });
        }
        state.setWord(index as number, at);
        return endAt(requests, at, pointer as number, status as number);
      },
    ],
    MPI_Waitsome: [
      -1,
      (count, pointer, outcount, indices, statuses) => {
        const requests = requestsAt(count as number, pointer as number);
        if (!requests.some(isActive)) {
          state.setWord(outcount as number, UNDEFINED);
          return SUCCESS;
        }
        if (firstOver(requests) < 0) state.engine.waitUntil(() => firstOver(requests) >= 0);
        const at = firstOver(requests);
        const first = requests[at] as OpenRequest;
        if (!isOver(state, first)) throw failed(first);
        state.setWord(outcount as number, endSome(requests, pointer as number, indices as number, statuses as number));
        return SUCCESS;
      },
    ],
    MPI_Test: [
      -1,
      (pointer, flag, status) => {
        const request = requestAt(state, pointer as number);
        state.setWord(flag as number, 1);
        if (request === undefined) {
          writeStatus(state, status as number, NO_MESSAGE);
          return SUCCESS;
        }
        if (!isOver(state, request)) messages.poll();
        if (isOver(state, request)) {
          messages.found();
          return end(request, pointer as number, status as number);
        }
        if (hasFailed(state, request)) throw failed(request);
        state.setWord(flag as number, 0);
        return SUCCESS;
      },
    ],
    MPI_Testall: [
      -1,
      (count, pointer, flag, statuses) => {
        const requests = requestsAt(count as number, pointer as number);
        const areOver = (): boolean =>
          requests.every((request) => !isActive(request) || isOver(state, request) || hasFailed(state, request));
        if (!areOver()) messages.poll();
        const over = areOver();
        state.setWord(flag as number, +over);
        if (!over) return SUCCESS;
        messages.found();
        return all(requests, pointer as number, statuses as number);
      },
    ],
    MPI_Testany: [
      -1,
      (count, pointer, index, flag, status) => {
        const requests = requestsAt(count as number, pointer as number);
        state.setWord(flag as number, 1);
        if (!requests.some(isActive)) return none(index as number, status as number);
        if (firstOver(requests) < 0) messages.poll();
        const at = firstOver(requests);
        state.setWord(index as number, at < 0 ? UNDEFINED : at);
        if (at < 0) state.setWord(flag as number, 0);
        if (at < 0) return SUCCESS;
        messages.found();
        return endAt(requests, at, pointer as number, status as number);
      },
    ],
    MPI_Testsome: [
      -1,
      (count, pointer, outcount, indices, statuses) => {
        const requests = requestsAt(count as number, pointer as number);
        if (!requests.some(isActive)) {
          state.setWord(outcount as number, UNDEFINED);
          return SUCCESS;
        }
        if (firstOver(requests) < 0) messages.poll();
        const ended = endSome(requests, pointer as number, indices as number, statuses as number);
        if (ended > 0) messages.found();
        state.setWord(outcount as number, ended);
        return SUCCESS;
      },
    ],
    MPI_Request_free: [
      -1,
      (pointer) => {
        const request = requestAt(state, pointer as number);
        if (request === undefined) throw new MpiFailure(ERR.REQUEST, "MPI_REQUEST_NULL can't be freed");
        state.requests.remove(state.word(pointer as number));
        state.setWord(pointer as number, REQUEST_NULL);
        const run = request.start === undefined ? request : request.current;
        if (run !== undefined && isOver(state, run)) take(state, run);
        else if (run !== undefined) state.forgotten.add(run);
        return SUCCESS;
      },
    ],
    MPI_Request_get_status: [
      -1,
      (handle, flag, status) => {
        const request = handle === REQUEST_NULL ? undefined : state.requests.get(handle as number);
        if (request !== undefined && !isOver(state, request)) messages.poll();
        const over = request === undefined || isOver(state, request);
        state.setWord(flag as number, +over);
        if (!over) return SUCCESS;
        const run = request?.start === undefined ? request : request.current;
        writeStatus(state, status as number, run === undefined ? NO_MESSAGE : outcomeOf(state, run));
        return SUCCESS;
      },
    ],
    MPI_Start: [
      -1,
      (pointer) => {
        start(state, requestAt(state, pointer as number));
        return SUCCESS;
      },
    ],
    MPI_Startall: [
      -1,
      (count, pointer) => {
        for (const request of requestsAt(count as number, pointer as number)) start(state, request);
        return SUCCESS;
      },
    ],
    MPI_Cancel: [
      -1,
      (pointer) => {
        const request = requestAt(state, pointer as number);
        if (request === undefined) throw new MpiFailure(ERR.REQUEST, "MPI_REQUEST_NULL can't be canceled");
        const run = request.start === undefined ? request : request.current;
        run?.work?.cancel?.();
        // A send that has begun completes: the standard has taken its cancellation back.
        if (run?.isReceive && run.work === undefined && run.peer !== PROC_NULL && !isOver(state, run))
          state.engine.cancel(run.engine);
        return SUCCESS;
      },
    ],
    MPI_Test_cancelled: [
      -1,
      (status, flag) => {
        state.setWord(flag as number, state.word((status as number) + STATUS.CANCELED * WORD));
        return SUCCESS;
      },
    ],
  };
}

function start(state: MpiState, request: OpenRequest | undefined): void {
  if (request?.start === undefined) throw new MpiFailure(ERR.REQUEST, "the request is not persistent");
  if (request.current !== undefined && !isOver(state, request)) {
    throw new MpiFailure(ERR.REQUEST, "the persistent request is active already");
  }
  request.current = request.start();
}

/** Whether a request waits for a rank that has ended. */
function hasFailed(state: MpiState, request: OpenRequest): boolean {
  const run = request.start === undefined ? request : request.current;
  if (run === undefined || run.outcome !== undefined || run.work !== undefined) return false;
  return run.peer !== PROC_NULL && state.engine.isHopeless(run.comm, run.peer, run.engine);
}

function failed({ peer, comm }: OpenRequest): unknown {
  return asFailure(new PeerEnded(peer, comm.isRevoked));
}
