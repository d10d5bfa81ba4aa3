// Requests as the program has them: what is left to do once the engine's request is over, and what a status says.
import * as L from "../../../../assembly/layout.js";
import { PeerEnded } from "../../../mpi/engine.js";
import { ANY_SOURCE, ERR, PROC_NULL, REQUEST_NULL, STATUS, SUCCESS } from "../constants.js";
import { MpiFailure } from "../failure.js";
import type { MpiState } from "../state.js";
import { unpack } from "../types.js";
import { NO_MESSAGE, type OpenRequest, type Outcome } from "./open-request.js";

export const FROM_NOBODY: Outcome = { ...NO_MESSAGE, source: PROC_NULL };

/** Whether a request is over. */
export function isOver(state: MpiState, request: OpenRequest): boolean {
  const run = request.start === undefined ? request : request.current;
  if (run === undefined || run.outcome !== undefined) return true;
  return run.work === undefined ? state.engine.isOver(run.engine) : run.work.isOver();
}

/** Takes the result of a request that is over, and gives back what it has. */
export function take(state: MpiState, request: OpenRequest): Outcome {
  if (request.start !== undefined) {
    const { current } = request;
    request.current = undefined;
    return current === undefined ? NO_MESSAGE : take(state, current);
  }
  if (request.outcome !== undefined) return request.outcome;
  const outcome = outcomeOf(state, request);
  const { engine } = state;
  const { engine: entry, scratch } = request;
  engine.free(entry);
  if (scratch !== undefined) state.freePlace(scratch);
  request.engine = 0;
  request.outcome = outcome;
  return outcome;
}

/** The result of a request that is over. Its data is in its buffer then. What it has stays. */
export function outcomeOf(state: MpiState, request: OpenRequest): Outcome {
  if (request.outcome !== undefined) return request.outcome;
  if (request.work !== undefined) {
    request.outcome = request.work.take();
    return request.outcome;
  }
  const { engine } = state;
  const { engine: entry, scratch, type, buffer } = request;
  let outcome = NO_MESSAGE;
  if (request.isReceive) {
    const field = (offset: number): number => engine.field(entry, offset);
    const isCanceled = engine.state(entry) === L.MPI_REQUEST_CANCELED;
    const capacity = field(L.MPI_REQUEST_CAPACITY_OFFSET) >>> 0;
    const bytes = Math.min(field(L.MPI_REQUEST_BYTES_OFFSET) >>> 0, capacity);
    const error = field(L.MPI_REQUEST_ERROR_OFFSET);
    const source = field(L.MPI_REQUEST_SOURCE_OFFSET);
    const isLost = error === ERR.PROC_FAILED;
    outcome = isCanceled
      ? { ...NO_MESSAGE, isCanceled }
      : { source, tag: field(L.MPI_REQUEST_TAG_OFFSET), bytes, error, isCanceled };
    if (isLost) outcome = { ...outcome, why: `rank ${source} has ended` };
    if (scratch !== undefined && type !== undefined && !isCanceled && !isLost) {
      unpack(state.copyIn, type, scratch.bytes.byteOffset, bytes, buffer ?? 0);
    }
  } else if (entry !== 0) {
    const error = engine.field(entry, L.MPI_REQUEST_ERROR_OFFSET);
    if (error !== SUCCESS) outcome = { ...NO_MESSAGE, error };
  }
  return outcome;
}

/** Waits for a request, and takes its result. @throws MpiFailure MPIX_ERR_PROC_FAILED */
export function finish(state: MpiState, request: OpenRequest): Outcome {
  const run = request.start === undefined ? request : request.current;
  if (run !== undefined && run.outcome === undefined) {
    const { work } = run;
    try {
      if (work === undefined) state.engine.wait(run.engine, run.comm, run.peer);
      else if (!work.isOver()) state.engine.waitUntil(() => work.isOver());
    } catch (error) {
      throw asFailure(error);
    }
  }
  return take(state, request);
}

/** Ends the request of a call that blocks. A receive that has failed is taken back. @throws MpiFailure */
export function finishCall(state: MpiState, request: OpenRequest, status: number): number {
  let outcome: Outcome;
  try {
    outcome = finish(state, request);
  } catch (error) {
    // The buffer is the program's again: no later message may go there.
    if (request.isReceive) state.engine.cancel(request.engine);
    forget(state, request);
    if (!(error instanceof MpiFailure) || error.errorClass !== ERR.PROC_FAILED_PENDING) throw error;
    throw new MpiFailure(ERR.PROC_FAILED, error.message);
  }
  writeStatus(state, status, outcome);
  if (outcome.error !== SUCCESS) throw failureOf(outcome);
  return SUCCESS;
}

/** Lets a send go on without its request. */
export function forget(state: MpiState, request: OpenRequest): number {
  if (isOver(state, request)) take(state, request);
  else state.forgotten.add(request);
  return SUCCESS;
}

/** The error of a request that has failed. */
export function failureOf({ error, bytes, why }: Outcome): MpiFailure {
  if (why !== undefined) return new MpiFailure(error, why);
  return error === ERR.TRUNCATE
    ? new MpiFailure(error, `the message is longer than the buffer of ${bytes} bytes`)
    : new MpiFailure(error, "the rank that had to receive has ended");
}

/** An error of the engine as one of MPI. */
export function asFailure(error: unknown): unknown {
  if (!(error instanceof PeerEnded)) return error;
  if (error.isRevoked) return new MpiFailure(ERR.REVOKED, "the communicator is revoked");
  // The receive goes on: another rank may still send, once the program has acknowledged the end.
  return new MpiFailure(error.rank === ANY_SOURCE ? ERR.PROC_FAILED_PENDING : ERR.PROC_FAILED, error.message);
}

/** Writes a status; a pointer of 0 is MPI_STATUS_IGNORE. */
export function writeStatus(state: MpiState, pointer: number, outcome: Outcome, error?: number): void {
  if (pointer === 0) return;
  const at = pointer >>> 2;
  state.words[at + STATUS.SOURCE] = outcome.source;
  state.words[at + STATUS.TAG] = outcome.tag;
  state.words[at + STATUS.BYTES] = outcome.bytes;
  state.words[at + STATUS.CANCELED] = +outcome.isCanceled;
  if (error !== undefined) state.words[at + STATUS.ERROR] = error;
}

/** The request behind the handle at a pointer; undefined: MPI_REQUEST_NULL. */
export function requestAt(state: MpiState, pointer: number): OpenRequest | undefined {
  const handle = state.word(pointer);
  return handle === REQUEST_NULL ? undefined : state.requests.get(handle);
}

/** The request at a pointer is over: its handle becomes MPI_REQUEST_NULL, unless it is persistent. */
export function dropAt(state: MpiState, pointer: number, request: OpenRequest): void {
  if (request.start !== undefined) return;
  state.requests.remove(state.word(pointer));
  state.setWord(pointer, REQUEST_NULL);
}

/** Whether a request takes part in Waitany and its kin: neither null nor a persistent one that is not started. */
export function isActive(request: OpenRequest | undefined): request is OpenRequest {
  return request !== undefined && (request.start === undefined || request.current !== undefined);
}
