// The requests behind a program's handles: those that TypeScript has made, by numbers, and those of the short calls, whose handles
// are pointers to requests of the engine.
import * as L from "../../../../assembly/layout.js";
import type { Communicator } from "../../../mpi/communicator.js";
import type { MessageEngine } from "../../../mpi/engine.js";
import { ANY_SOURCE, ERR } from "../constants.js";
import { HandleTable } from "../handle-table.js";
import { NO_MESSAGE, type OpenRequest } from "./open-request.js";

export class RequestTable extends HandleTable<OpenRequest> {
  readonly #engine: MessageEngine;
  /** Communicators by their numbers. Freed ones stay: a request may outlive its communicator. */
  readonly #comms: Communicator[] = [];
  readonly #world: Communicator;
  /** The handle of all sends that were over at once. */
  sentAtOnce = 0;

  constructor(engine: MessageEngine, world: Communicator) {
    super("request", ERR.REQUEST);
    this.#engine = engine;
    this.#world = world;
  }

  /** A communicator that requests may belong to. */
  know(comm: Communicator): void {
    this.#comms[comm.number] = comm;
  }

  override get(handle: number): OpenRequest {
    // A pointer from 2^31 on is negative in the program's calls.
    const pointer = handle >>> 0;
    if (pointer === this.sentAtOnce && pointer !== 0) {
      return { comm: this.#world, isReceive: false, peer: ANY_SOURCE, engine: 0, outcome: NO_MESSAGE };
    }
    return this.#engine.isRequest(pointer) ? this.#of(pointer) : super.get(handle);
  }

  override remove(handle: number): void {
    // Those of the engine end with their results.
    if (handle >>> 0 < L.MPI_CALLS_POINTER_MIN) super.remove(handle);
  }

  #of(pointer: number): OpenRequest {
    const field = (offset: number): number => this.#engine.field(pointer, offset);
    const isReceive = field(L.MPI_REQUEST_KIND_OFFSET) === L.MPI_RECEIVE;
    const comm = this.#comms[field(L.MPI_REQUEST_COMM_OFFSET)] ?? this.#world;
    // The engine itself ends a send whose target has ended.
    const peer = isReceive ? field(L.MPI_REQUEST_SOURCE_OFFSET) : ANY_SOURCE;
    return { comm, isReceive, peer, engine: pointer };
  }
}
