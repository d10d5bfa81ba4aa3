// Requests of the program's own: it says when such a request is over. Source: MPI 5.0, section 13.2.
import { ANY_SOURCE, COMM_WORLD, ERR, STATUS, SUCCESS } from "../constants.js";
import { MpiFailure } from "../failure.js";
import type { OpenRequest, Outcome, RequestWork } from "../requests/open-request.js";
import { take } from "../requests/requests.js";
import type { Call, MpiState } from "../state.js";

const STATUS_BYTES = STATUS.WORDS * 4;

/** Functions of the program, by their places in its table, and the pointer that they get. */
interface Given {
  readonly query: number;
  readonly free: number;
  readonly cancel: number;
  readonly own: number;
}

class ProgramWork implements RequestWork {
  readonly #state: MpiState;
  readonly #given: Given;
  isComplete = false;

  constructor(state: MpiState, given: Given) {
    this.#state = state;
    this.#given = given;
  }

  isOver(): boolean {
    return this.isComplete;
  }

  take(): Outcome {
    const state = this.#state;
    const { query, free, own } = this.#given;
    const at = state.lend(STATUS_BYTES);
    state.bytes.fill(0, at, at + STATUS_BYTES);
    let error = state.functionAt(query)(own, at);
    const field = (word: number): number => state.word(at + 4 * word);
    const outcome = {
      source: field(STATUS.SOURCE),
      tag: field(STATUS.TAG),
      bytes: field(STATUS.BYTES),
      isCanceled: field(STATUS.CANCELED) !== 0,
    };
    state.giveBack(at, STATUS_BYTES);
    const freed = state.functionAt(free)(own);
    if (error === SUCCESS) error = freed;
    return error === SUCCESS
      ? { ...outcome, error }
      : { ...outcome, error, why: "a function of the request has failed" };
  }

  cancel(): void {
    const error = this.#state.functionAt(this.#given.cancel)(this.#given.own, +this.isComplete);
    if (error !== SUCCESS) throw new MpiFailure(error, "the function that cancels the request has failed");
  }
}

export function grequestCalls(state: MpiState): Record<string, readonly [number, Call]> {
  /** Requests that are not complete, by their handles: the program may have freed some. */
  const open = new Map<number, { readonly request: OpenRequest; readonly work: ProgramWork }>();
  return {
    MPI_Grequest_start: [
      -1,
      (query, free, cancel, own, pointer) => {
        const { comm } = state.comms.get(COMM_WORLD);
        const given = { query: query as number, free: free as number, cancel: cancel as number, own: own as number };
        const work = new ProgramWork(state, given);
        const request: OpenRequest = { comm, isReceive: false, peer: ANY_SOURCE, engine: 0, work };
        const opened = state.requests.add(request);
        open.set(opened, { request, work });
        state.setWord(pointer as number, opened);
        return SUCCESS;
      },
    ],
    MPI_Grequest_complete: [
      -1,
      (handle) => {
        const found = open.get(handle as number);
        if (found === undefined)
          throw new MpiFailure(ERR.REQUEST, "the request is none of the program's own, or is complete");
        open.delete(handle as number);
        found.work.isComplete = true;
        if (state.forgotten.delete(found.request)) take(state, found.request);
        return SUCCESS;
      },
    ],
  };
}
