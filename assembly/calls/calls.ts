// The calls of MPI that are short enough to need no JavaScript, under their names in C, with the arguments of include/mpi.h. Each of
// them has a long way in TypeScript (src/c/mpi/), with the same arguments, which also says what is wrong with these.
import {
  MPI_ANY,
  MPI_C_ANY_TAG,
  MPI_C_REQUEST_NULL,
  MPI_C_STATUS_BYTES_OFFSET,
  MPI_C_STATUS_CANCELED_OFFSET,
  MPI_C_STATUS_SHIFT,
  MPI_C_STATUS_SOURCE_OFFSET,
  MPI_C_STATUS_TAG_OFFSET,
  MPI_CALLS_ENGINE_OFFSET,
  MPI_CALLS_POINTER_MIN,
  MPI_CALLS_POLLS_MAX,
  MPI_CALLS_POLLS_OFFSET,
  MPI_CALLS_SENT_AT_ONCE_OFFSET,
  MPI_GROUP_NUMBER_OFFSET,
  MPI_GROUP_RANK_OFFSET,
  MPI_GROUP_SIZE_OFFSET,
  MPI_HEADER_BYTES_OFFSET,
  MPI_HEADER_SOURCE_OFFSET,
  MPI_HEADER_TAG_OFFSET,
  MPI_RECEIVE,
  MPI_REQUEST_BYTES_OFFSET,
  MPI_REQUEST_CANCELED,
  MPI_REQUEST_DONE,
  MPI_REQUEST_ERROR_OFFSET,
  MPI_REQUEST_KIND_OFFSET,
  MPI_REQUEST_SIZE,
  MPI_REQUEST_SOURCE_OFFSET,
  MPI_REQUEST_STATE_OFFSET,
  MPI_REQUEST_TAG_OFFSET,
  MPI_SEND,
  MPI_STORED_HEADER_OFFSET,
} from "../layout";
import { mpiFree, mpiProbe } from "../mpi/match";
import { block, bytesOf, commOf, isOpen, word } from "./block";
import { isSoonOver, LONG, poll, receive, send } from "./carry";
import {
  finish,
  MPI_Get_count as getCountSlowly,
  MPI_Iprobe as iprobeSlowly,
  MPI_Irecv as irecvSlowly,
  MPI_Isend as isendSlowly,
  MPI_Comm_rank as rankSlowly,
  MPI_Recv as recvSlowly,
  rest,
  MPI_Sendrecv as sendrecvSlowly,
  MPI_Send as sendSlowly,
  MPI_Comm_size as sizeSlowly,
  MPI_Test as testSlowly,
  MPI_Waitall as waitallSlowly,
  MPI_Wait as waitSlowly,
} from "./long";

/** Writes a status, but for its error. @param status 0: MPI_STATUS_IGNORE */
function writeStatus(status: usize, source: i32, tag: i32, bytes: u32, isCanceled: u32): void {
  if (status == 0) return;
  store<i32>(status, source, MPI_C_STATUS_SOURCE_OFFSET);
  store<i32>(status, tag, MPI_C_STATUS_TAG_OFFSET);
  store<u32>(status, bytes, MPI_C_STATUS_BYTES_OFFSET);
  store<u32>(status, isCanceled, MPI_C_STATUS_CANCELED_OFFSET);
}

function writeNoMessage(status: usize, isCanceled: u32): void {
  writeStatus(status, MPI_ANY, MPI_C_ANY_TAG, 0, isCanceled);
}

/** Whether a handle is a pointer to a request of the engine. TypeScript's own handles are small numbers. */
function isEngines(handle: usize): bool {
  if (handle < MPI_CALLS_POINTER_MIN || (handle & (MPI_REQUEST_SIZE - 1)) != 0) return false;
  if (handle >= (<usize>memory.size()) << 16) return false;
  const kind = load<u32>(handle, MPI_REQUEST_KIND_OFFSET);
  return kind == MPI_RECEIVE || kind == MPI_SEND;
}

/** Whether a request that is over has no error, so that end() may take its result. */
function isFine(request: usize): bool {
  return load<u32>(request, MPI_REQUEST_ERROR_OFFSET) == 0;
}

/** Writes the result of a request that is over without an error, and gives the request back. */
function end(request: usize, status: usize): void {
  if (load<u32>(request, MPI_REQUEST_KIND_OFFSET) == MPI_SEND) writeNoMessage(status, 0);
  else if (load<u32>(request, MPI_REQUEST_STATE_OFFSET) == MPI_REQUEST_CANCELED) writeNoMessage(status, 1);
  else {
    const source = load<i32>(request, MPI_REQUEST_SOURCE_OFFSET);
    const tag = load<i32>(request, MPI_REQUEST_TAG_OFFSET);
    writeStatus(status, source, tag, load<u32>(request, MPI_REQUEST_BYTES_OFFSET), 0);
  }
  if (request != word(MPI_CALLS_SENT_AT_ONCE_OFFSET)) mpiFree(word(MPI_CALLS_ENGINE_OFFSET), request);
}

/** Waits for a request, and ends it. @returns the error code of the call */
function wait(request: usize, status: usize, comm: u32, isReceive: u32): i32 {
  if (!isSoonOver(request) || !isFine(request)) return finish(request, status, comm, isReceive);
  end(request, status);
  return 0;
}

export function MPI_Send(buffer: usize, count: i32, type: u32, to: i32, tag: i32, comm: u32): i32 {
  const request = send(buffer, count, type, to, tag, comm);
  if (request == 0) return 0;
  if (request == LONG) return sendSlowly(buffer, count, type, to, tag, comm);
  return wait(request, 0, comm, 0);
}

export function MPI_Recv(buffer: usize, count: i32, type: u32, from: i32, tag: i32, comm: u32, status: usize): i32 {
  const request = receive(buffer, count, type, from, tag, comm);
  if (request == LONG) return recvSlowly(buffer, count, type, from, tag, comm, status);
  return wait(request, status, comm, 1);
}

export function MPI_Isend(buffer: usize, count: i32, type: u32, to: i32, tag: i32, comm: u32, handle: usize): i32 {
  const request = send(buffer, count, type, to, tag, comm);
  if (request == LONG) return isendSlowly(buffer, count, type, to, tag, comm, handle);
  store<usize>(handle, request == 0 ? word(MPI_CALLS_SENT_AT_ONCE_OFFSET) : request);
  return 0;
}

export function MPI_Irecv(buffer: usize, count: i32, type: u32, from: i32, tag: i32, comm: u32, handle: usize): i32 {
  const request = receive(buffer, count, type, from, tag, comm);
  if (request == LONG) return irecvSlowly(buffer, count, type, from, tag, comm, handle);
  store<usize>(handle, request);
  return 0;
}

export function MPI_Sendrecv(
  buffer: usize,
  count: i32,
  type: u32,
  to: i32,
  tag: i32,
  into: usize,
  intoCount: i32,
  intoType: u32,
  from: i32,
  fromTag: i32,
  comm: u32,
  status: usize,
): i32 {
  const received = receive(into, intoCount, intoType, from, fromTag, comm);
  if (received == LONG) {
    return sendrecvSlowly(buffer, count, type, to, tag, into, intoCount, intoType, from, fromTag, comm, status);
  }
  const sent = send(buffer, count, type, to, tag, comm);
  // The receive is posted: only the send can still go the long way.
  let error = sent == LONG ? sendSlowly(buffer, count, type, to, tag, comm) : 0;
  if (sent > LONG) error = wait(sent, 0, comm, 0);
  const receiveError = wait(received, status, comm, 1);
  return error != 0 ? error : receiveError;
}

export function MPI_Wait(pointer: usize, status: usize): i32 {
  const request = load<usize>(pointer);
  if (!isOpen() || !isEngines(request) || !isSoonOver(request) || !isFine(request)) return waitSlowly(pointer, status);
  end(request, status);
  store<u32>(pointer, MPI_C_REQUEST_NULL);
  return 0;
}

export function MPI_Waitall(count: i32, requests: usize, statuses: usize): i32 {
  if (!isOpen()) return waitallSlowly(count, requests, statuses);
  for (let i = 0; i < count; i++) {
    const request = load<usize>(requests + (i << 2));
    if (request == MPI_C_REQUEST_NULL) continue;
    if (!isEngines(request) || !isSoonOver(request) || !isFine(request)) {
      return waitallSlowly(count, requests, statuses);
    }
  }
  for (let i = 0; i < count; i++) {
    const request = load<usize>(requests + (i << 2));
    const status = statuses == 0 ? 0 : statuses + (i << MPI_C_STATUS_SHIFT);
    if (request == MPI_C_REQUEST_NULL) writeNoMessage(status, 0);
    else end(request, status);
    store<u32>(requests + (i << 2), MPI_C_REQUEST_NULL);
  }
  return 0;
}

/** A test or probe has found nothing: so many in a row, and the task rests for a moment, since others may need the core. */
function foundNothing(): void {
  const polls = word(MPI_CALLS_POLLS_OFFSET) + 1;
  store<u32>(block, polls < MPI_CALLS_POLLS_MAX ? polls : 0, MPI_CALLS_POLLS_OFFSET);
  if (polls >= MPI_CALLS_POLLS_MAX) rest();
}

export function MPI_Test(pointer: usize, flag: usize, status: usize): i32 {
  const request = load<usize>(pointer);
  if (!isOpen() || !isEngines(request)) return testSlowly(pointer, flag, status);
  if (load<u32>(request, MPI_REQUEST_STATE_OFFSET) < MPI_REQUEST_DONE && !poll()) {
    foundNothing();
    // The long way also sees that the rank has ended.
    if (word(MPI_CALLS_POLLS_OFFSET) == 0) return testSlowly(pointer, flag, status);
  }
  if (load<u32>(request, MPI_REQUEST_STATE_OFFSET) < MPI_REQUEST_DONE) {
    store<u32>(flag, 0);
    return 0;
  }
  if (!isFine(request)) return testSlowly(pointer, flag, status);
  end(request, status);
  store<u32>(block, 0, MPI_CALLS_POLLS_OFFSET);
  store<u32>(flag, 1);
  store<u32>(pointer, MPI_C_REQUEST_NULL);
  return 0;
}

export function MPI_Iprobe(from: i32, tag: i32, handle: u32, flag: usize, status: usize): i32 {
  const comm = commOf(handle);
  if (!isOpen() || comm == 0) return iprobeSlowly(from, tag, handle, flag, status);
  const isRank = from == MPI_ANY || <u32>from < load<u32>(comm, MPI_GROUP_SIZE_OFFSET);
  if (!isRank || (tag < 0 && tag != MPI_C_ANY_TAG)) return iprobeSlowly(from, tag, handle, flag, status);
  const engine = word(MPI_CALLS_ENGINE_OFFSET);
  const number = load<u32>(comm, MPI_GROUP_NUMBER_OFFSET);
  const wanted = tag == MPI_C_ANY_TAG ? MPI_ANY : tag;
  const hasCome = poll();
  const stored = mpiProbe(engine, number, from, wanted);
  store<u32>(flag, u32(stored != 0));
  if (stored == 0) {
    if (!hasCome) foundNothing();
    return 0;
  }
  store<u32>(block, 0, MPI_CALLS_POLLS_OFFSET);
  const header = stored + MPI_STORED_HEADER_OFFSET;
  const source = load<i32>(header, MPI_HEADER_SOURCE_OFFSET);
  writeStatus(status, source, load<i32>(header, MPI_HEADER_TAG_OFFSET), load<u32>(header, MPI_HEADER_BYTES_OFFSET), 0);
  return 0;
}

export function MPI_Comm_rank(handle: u32, rank: usize): i32 {
  const comm = commOf(handle);
  if (!isOpen() || comm == 0) return rankSlowly(handle, rank);
  store<u32>(rank, load<u32>(comm, MPI_GROUP_RANK_OFFSET));
  return 0;
}

export function MPI_Comm_size(handle: u32, size: usize): i32 {
  const comm = commOf(handle);
  if (!isOpen() || comm == 0) return sizeSlowly(handle, size);
  store<u32>(size, load<u32>(comm, MPI_GROUP_SIZE_OFFSET));
  return 0;
}

export function MPI_Get_count(status: usize, type: u32, count: usize): i32 {
  const element = bytesOf(type, 1);
  const bytes = load<u32>(status, MPI_C_STATUS_BYTES_OFFSET);
  if (!isOpen() || element < 0 || bytes % element != 0) return getCountSlowly(status, type, count);
  store<u32>(count, bytes / element);
  return 0;
}
