// A request as the program has it.
import type { Communicator } from "../../../mpi/communicator.js";
import type { Request } from "../../../mpi/engine.js";
import { ANY_SOURCE, ANY_TAG, SUCCESS } from "../constants.js";
import type { ScratchPlace } from "../scratch.js";
import type { Datatype } from "../types.js";

/** How a request has ended. */
export interface Outcome {
  readonly source: number;
  readonly tag: number;
  readonly bytes: number;
  readonly error: number;
  readonly isCanceled: boolean;
  /** What has failed, where the error class does not say it. */
  readonly why?: string;
}

/** What a request stands for that is no message: a collective operation, for one. */
export interface RequestWork {
  isOver(): boolean;
  /** How it has ended. Called once it is over. */
  take(): Outcome;
  /** For MPI_Cancel(). */
  cancel?(): void;
}

/** Of what has no message: sends, and receives from MPI_PROC_NULL. */
export const NO_MESSAGE: Outcome = { source: ANY_SOURCE, tag: ANY_TAG, bytes: 0, error: SUCCESS, isCanceled: false };

/** A request of the program. */
export interface OpenRequest {
  readonly comm: Communicator;
  readonly isReceive: boolean;
  /** The rank that has to do something for it, or MPI_ANY_SOURCE. */
  readonly peer: number;
  /** 0: it is over. */
  engine: Request;
  /** Of a request that is none of the engine. */
  readonly work?: RequestWork;
  /** Packed data of a type with gaps, and where the data goes. */
  readonly scratch?: ScratchPlace | undefined;
  readonly type?: Datatype | undefined;
  readonly buffer?: number;
  /** Begins a persistent request anew. undefined: the request exists once. */
  readonly start?: (() => OpenRequest) | undefined;
  /** Of a persistent one: its current run. */
  current?: OpenRequest | undefined;
  /** How it ended, if that is known before it is asked for. */
  outcome?: Outcome;
}
