// A collective operation with checked arguments, run by its geometry, or begun.
import { type CollectiveType, type Geometry, SUCCESS as OK, type Result, SHUTDOWN } from "../../../index.js";
import type { Communicator } from "../../../mpi/communicator.js";
import { ANY_SOURCE, ERR, SUCCESS } from "../constants.js";
import { MpiFailure } from "../failure.js";
import { NO_MESSAGE, type OpenRequest, type Outcome, type RequestWork } from "../requests/open-request.js";
import type { Call, MpiState } from "../state.js";
import { formsOf } from "./forms.js";

/** What a collective operation is called with, as its geometry takes it. */
export interface PreparedCollective {
  readonly comm: Communicator;
  readonly type: CollectiveType;
  readonly parameters: object;
  /** Copies what has come into the program's buffers, and gives places back. */
  readonly end?: (hasCome: boolean) => void;
}

/** An operation: its last argument is the communicator. */
export interface CollectiveRow {
  /** "Bcast" */
  readonly name: string;
  /** How many arguments the blocking form has. */
  readonly arity: number;
  prepare(...given: number[]): PreparedCollective;
  /** The blocking call of the geometry: a function for each row, so that V8 finds the method without a lookup. */
  run(geometry: Geometry, parameters: object): Result;
}

/** Runs an operation. @throws MpiFailure unless it succeeds */
function run(name: string, row: CollectiveRow, { comm, parameters, end }: PreparedCollective): number {
  comm.settle();
  let result: Result | undefined;
  comm.isBusy = true;
  try {
    result = row.run(comm.geometry, parameters);
  } finally {
    comm.isBusy = false;
    end?.(result === OK);
  }
  if (result === OK) return SUCCESS;
  const error = comm.failure(name);
  const hasEnded = (error as { code?: string }).code === "PAMIR_SHUTDOWN";
  throw new MpiFailure(hasEnded ? ERR.PROC_FAILED : ERR.OTHER, error.message);
}

/** Begins an operation. @returns its request, which is over once the results are in the program's buffers */
function begin(name: string, { comm, type, parameters, end }: PreparedCollective): OpenRequest {
  let outcome: Outcome | undefined;
  const work: RequestWork = {
    isOver: () => outcome !== undefined || comm.isRevoked,
    take: () => outcome ?? { ...NO_MESSAGE, error: ERR.REVOKED, why: "the communicator is revoked" },
  };
  const onDone = (_cookie: unknown, result: Result): void => {
    end?.(result === OK);
    outcome = result === OK ? NO_MESSAGE : failed(name, result);
  };
  comm.begin(type, { ...parameters, onDone });
  return { comm, isReceive: false, peer: ANY_SOURCE, engine: 0, work };
}

function failed(name: string, result: Result): Outcome {
  return result === SHUTDOWN
    ? { ...NO_MESSAGE, error: ERR.PROC_FAILED, why: `${name}: a member of the communicator has ended` }
    : { ...NO_MESSAGE, error: ERR.OTHER, why: `${name} has failed at a member of the communicator` };
}

/** The calls of an operation over its geometry. */
export function callsOf(state: MpiState, row: CollectiveRow): Record<string, readonly [number, Call]> {
  const { arity, prepare } = row;
  const name = `MPI_${row.name}`;
  return formsOf(state, {
    name: row.name,
    arity,
    run: (...given) => {
      const result = run(name, row, prepare(...given));
      state.short?.learn(row.name, given);
      return result;
    },
    begin: (call, given) => begin(call, prepare(...given)),
  });
}
