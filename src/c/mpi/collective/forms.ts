// The three forms of a collective operation: blocking, nonblocking, persistent.
import { ANY_SOURCE, SUCCESS } from "../constants.js";
import type { OpenRequest } from "../requests/open-request.js";
import type { Call, MpiState } from "../state.js";

/** An operation: its last argument is the communicator. */
export interface CollectiveForms {
  /** "Bcast" */
  readonly name: string;
  /** How many arguments the blocking form has. */
  readonly arity: number;
  readonly run: Call;
  /** Begins the operation. @param call "MPI_Ibcast", for errors */
  begin(call: string, given: readonly number[]): OpenRequest;
}

/** The calls of an operation: MPI_Bcast, MPI_Ibcast and MPI_Bcast_init. */
export function formsOf(
  state: MpiState,
  { name, arity, run, begin }: CollectiveForms,
): Record<string, readonly [number, Call]> {
  const comm = arity - 1;
  const nonblocking = `MPI_I${name[0]?.toLowerCase()}${name.slice(1)}`;
  const persistent = `MPI_${name}_init`;
  const opened = (request: OpenRequest, pointer: number): number => {
    state.setWord(pointer, state.requests.add(request));
    return SUCCESS;
  };
  return {
    [`MPI_${name}`]: [comm, run],
    [nonblocking]: [comm, (...given) => opened(begin(nonblocking, given), given[arity] as number)],
    // Behind the communicator stands an info, of which nothing is used.
    [persistent]: [
      comm,
      (...given) => {
        const { comm: members } = state.comms.get(given[comm] as number);
        const start = (): OpenRequest => begin(persistent, given);
        const request = { comm: members, isReceive: false, peer: ANY_SOURCE, engine: 0, start };
        return opened(request, given[arity + 1] as number);
      },
    ],
  };
}
