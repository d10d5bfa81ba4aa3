// The matching engine of MPI: which message a receive gets. Source: MPI 5.0, sections 3.2 to 3.8.
// Invariants: both queues of a communicator are in the order of arrival. No message in `stored` fits a request in `posted`.
// The engine's owner alone calls these functions. They change nothing if they return MPI_NO_MEMORY. Its numbers of communicators
// are below those of mpiInit(); pointers lie at multiples of 4. Of what other tasks say, mpiArrive() believes no number.
import {
  MPI_ANSWER,
  MPI_ANY,
  MPI_ARRIVED_STORED,
  MPI_COMM_POSTED_FIRST_OFFSET,
  MPI_COMM_SHIFT,
  MPI_COMM_STORED_FIRST_OFFSET,
  MPI_EAGER,
  MPI_EAGER_BYTES_MAX,
  MPI_ENGINE_COMM_COUNT_OFFSET,
  MPI_ENGINE_END_OFFSET,
  MPI_ENGINE_NEXT_OFFSET,
  MPI_ENGINE_POSTED_OFFSET,
  MPI_ENGINE_SENT_FIRST_OFFSET,
  MPI_ENGINE_SIZE,
  MPI_ENGINE_STORED_BYTES_OFFSET,
  MPI_ENGINE_STORED_OFFSET,
  MPI_HEADER_BYTES_OFFSET,
  MPI_HEADER_COMM_MASK,
  MPI_HEADER_COMM_OFFSET,
  MPI_HEADER_KIND_SHIFT,
  MPI_HEADER_SIZE,
  MPI_HEADER_SOURCE_OFFSET,
  MPI_HEADER_TAG_OFFSET,
  MPI_NO_MEMORY,
  MPI_NO_REQUEST,
  MPI_RECEIVE,
  MPI_REQUEST_ANSWER_OFFSET,
  MPI_REQUEST_BUFFER_OFFSET,
  MPI_REQUEST_BYTES_OFFSET,
  MPI_REQUEST_CANCELED,
  MPI_REQUEST_CAPACITY_OFFSET,
  MPI_REQUEST_COMM_OFFSET,
  MPI_REQUEST_DONE,
  MPI_REQUEST_ERROR_OFFSET,
  MPI_REQUEST_FREE,
  MPI_REQUEST_GENERATION_OFFSET,
  MPI_REQUEST_INDEX_OFFSET,
  MPI_REQUEST_KIND_OFFSET,
  MPI_REQUEST_MATCHED,
  MPI_REQUEST_NEXT_OFFSET,
  MPI_REQUEST_OFFSET_OFFSET,
  MPI_REQUEST_ORIGIN_OFFSET,
  MPI_REQUEST_POSTED,
  MPI_REQUEST_SENT,
  MPI_REQUEST_SIZE,
  MPI_REQUEST_SOURCE_OFFSET,
  MPI_REQUEST_STATE_OFFSET,
  MPI_REQUEST_TAG_OFFSET,
  MPI_RTS,
  MPI_RTS_GENERATION_OFFSET,
  MPI_RTS_INDEX_OFFSET,
  MPI_RTS_OFFSET_OFFSET,
  MPI_RTS_REQUEST_OFFSET,
  MPI_RTS_SIZE,
  MPI_SEND,
  MPI_STORED_HEADER_OFFSET,
  MPI_STORED_NEXT_OFFSET,
  MPI_STORED_ORIGIN_OFFSET,
  MPI_STORED_PAYLOAD_OFFSET,
  MPI_TRUNCATED,
} from "../layout";
import { divideRest, giveBlock, takeBlock } from "./blocks";
import { copyPayload } from "./copy";

/**
 * Writes an empty engine.
 * @param bytes of the engine's memory; its block and its table, which takes a multiple of 64 bytes, are a part of that
 * @param comms communicators that it may have: numbers 0 … comms - 1
 */
export function mpiInit(engine: usize, bytes: u32, comms: u32): void {
  const used = MPI_ENGINE_SIZE + (((comms << MPI_COMM_SHIFT) + MPI_REQUEST_SIZE - 1) & ~(MPI_REQUEST_SIZE - 1));
  memory.fill(engine, 0, used);
  store<u32>(engine, comms, MPI_ENGINE_COMM_COUNT_OFFSET);
  store<usize>(engine, engine + used, MPI_ENGINE_NEXT_OFFSET);
  store<usize>(engine, engine + bytes, MPI_ENGINE_END_OFFSET);
}

/** Gives an engine more memory. What is left of its last one becomes free blocks. */
export function mpiExtend(engine: usize, from: usize, bytes: u32): void {
  divideRest(engine);
  store<usize>(engine, from, MPI_ENGINE_NEXT_OFFSET);
  store<usize>(engine, from + bytes, MPI_ENGINE_END_OFFSET);
}

/** Pointer to the entry of a communicator. A message may come before its receiver has made the communicator. */
function commOf(engine: usize, number: u32): usize {
  return engine + MPI_ENGINE_SIZE + (number << MPI_COMM_SHIFT);
}

/** Whether what a receive asks for is what a message has. */
function fits(wantedSource: i32, wantedTag: i32, source: i32, tag: i32): bool {
  return (wantedSource == MPI_ANY || wantedSource == source) && (wantedTag == MPI_ANY || wantedTag == tag);
}

/**
 * Looks for the first stored message that fits.
 * @param first pointer to the word that points to the first entry @returns pointer to the word that points to it, or 0
 */
function findStored(first: usize, source: i32, tag: i32): usize {
  let place = first;
  while (true) {
    const stored = load<usize>(place);
    if (stored == 0) return 0;
    const header = stored + MPI_STORED_HEADER_OFFSET;
    if (fits(source, tag, load<i32>(header, MPI_HEADER_SOURCE_OFFSET), load<i32>(header, MPI_HEADER_TAG_OFFSET))) {
      return place;
    }
    place = stored + MPI_STORED_NEXT_OFFSET;
  }
}

/** Looks for an entry of a queue. @returns pointer to the word that points to it, or 0 */
function findEntry(queue: usize, entry: usize): usize {
  let place = queue;
  while (true) {
    const found = load<usize>(place);
    if (found == 0) return 0;
    if (found == entry) return place;
    place = found;
  }
}

/** Takes the entry to which `place` points out of its queue. @param queue pointer to the words first and last */
function unlink(queue: usize, place: usize): usize {
  const entry = load<usize>(place);
  const next = load<usize>(entry);
  store<usize>(place, next);
  // The last one is gone: the entry before is the last, or none is. `place` is the first word of an entry, or the queue's.
  if (next == 0) store<usize>(queue, place, 4);
  return entry;
}

/** Appends an entry, whose first word is its `next`. */
function append(queue: usize, entry: usize): void {
  store<usize>(entry, 0);
  if (load<usize>(queue) == 0) store<usize>(queue, entry);
  else store<usize>(load<usize>(queue, 4), entry);
  store<usize>(queue, entry, 4);
}

/** MPI_EAGER, MPI_RTS, MPI_ANSWER; what other tasks say may be another number. */
function kindOf(header: usize): u32 {
  return load<u32>(header, MPI_HEADER_COMM_OFFSET) >>> MPI_HEADER_KIND_SHIFT;
}

/** Number of a message's communicator. */
function numberOf(header: usize): u32 {
  return load<u32>(header, MPI_HEADER_COMM_OFFSET) & MPI_HEADER_COMM_MASK;
}

/** Gives a request the message with this header. */
function deliver(request: usize, header: usize, payload: usize, origin: u32): void {
  const bytes = load<u32>(header, MPI_HEADER_BYTES_OFFSET);
  const capacity = load<u32>(request, MPI_REQUEST_CAPACITY_OFFSET);
  const isWhole = bytes <= capacity;
  store<u32>(request, load<u32>(header, MPI_HEADER_SOURCE_OFFSET), MPI_REQUEST_SOURCE_OFFSET);
  store<u32>(request, load<u32>(header, MPI_HEADER_TAG_OFFSET), MPI_REQUEST_TAG_OFFSET);
  store<u32>(request, bytes, MPI_REQUEST_BYTES_OFFSET);
  store<u32>(request, isWhole ? 0 : MPI_TRUNCATED, MPI_REQUEST_ERROR_OFFSET);
  store<u32>(request, origin, MPI_REQUEST_ORIGIN_OFFSET);
  if (kindOf(header) == MPI_EAGER) {
    copyPayload(load<usize>(request, MPI_REQUEST_BUFFER_OFFSET), payload, isWhole ? bytes : capacity);
    store<u32>(request, MPI_REQUEST_DONE, MPI_REQUEST_STATE_OFFSET);
    return;
  }
  store<u32>(request, load<u32>(payload, MPI_RTS_REQUEST_OFFSET), MPI_REQUEST_ANSWER_OFFSET);
  store<u32>(request, load<u32>(payload, MPI_RTS_INDEX_OFFSET), MPI_REQUEST_INDEX_OFFSET);
  store<u32>(request, load<u32>(payload, MPI_RTS_GENERATION_OFFSET), MPI_REQUEST_GENERATION_OFFSET);
  store<u32>(request, load<u32>(payload, MPI_RTS_OFFSET_OFFSET), MPI_REQUEST_OFFSET_OFFSET);
  store<u32>(request, MPI_REQUEST_MATCHED, MPI_REQUEST_STATE_OFFSET);
}

/** Bytes that a stored message has behind its header. */
function followingBytes(header: usize): u32 {
  const kind = kindOf(header);
  return kind == MPI_RTS ? MPI_RTS_SIZE : load<u32>(header, MPI_HEADER_BYTES_OFFSET);
}

/** Gives a stored message, which is in no queue any more, to a request, and its block back. */
function deliverStored(engine: usize, stored: usize, request: usize): void {
  const header = stored + MPI_STORED_HEADER_OFFSET;
  const bytes = followingBytes(header);
  deliver(request, header, stored + MPI_STORED_PAYLOAD_OFFSET, load<u32>(stored, MPI_STORED_ORIGIN_OFFSET));
  store<u32>(engine, load<u32>(engine, MPI_ENGINE_STORED_OFFSET) - 1, MPI_ENGINE_STORED_OFFSET);
  store<u32>(engine, load<u32>(engine, MPI_ENGINE_STORED_BYTES_OFFSET) - bytes, MPI_ENGINE_STORED_BYTES_OFFSET);
  giveBlock(engine, stored, MPI_STORED_PAYLOAD_OFFSET + bytes);
}

/** Makes a request of a receive, which has no state yet. @returns pointer to it, or 0 */
function makeReceive(engine: usize, buffer: usize, capacity: u32): usize {
  const request = takeBlock(engine, MPI_REQUEST_SIZE);
  if (request == 0) return 0;
  store<usize>(request, buffer, MPI_REQUEST_BUFFER_OFFSET);
  store<u32>(request, capacity, MPI_REQUEST_CAPACITY_OFFSET);
  store<u32>(request, 0, MPI_REQUEST_ERROR_OFFSET);
  store<u32>(request, MPI_RECEIVE, MPI_REQUEST_KIND_OFFSET);
  return request;
}

/**
 * Posts a receive, which gets the first stored message that fits, if there is one.
 * @param source a rank, or MPI_ANY @param tag a tag, or MPI_ANY @param buffer pointer to `capacity` bytes
 * @returns pointer to its request, in state POSTED, MATCHED or DONE; MPI_NO_MEMORY
 */
export function mpiPost(engine: usize, number: u32, source: i32, tag: i32, buffer: usize, capacity: u32): usize {
  const request = makeReceive(engine, buffer, capacity);
  if (request == 0) return MPI_NO_MEMORY;
  const comm = commOf(engine, number);
  store<u32>(request, number, MPI_REQUEST_COMM_OFFSET);
  const place = findStored(comm + MPI_COMM_STORED_FIRST_OFFSET, source, tag);
  if (place != 0) {
    deliverStored(engine, unlink(comm + MPI_COMM_STORED_FIRST_OFFSET, place), request);
    return request;
  }
  store<u32>(request, MPI_REQUEST_POSTED, MPI_REQUEST_STATE_OFFSET);
  store<i32>(request, source, MPI_REQUEST_SOURCE_OFFSET);
  store<i32>(request, tag, MPI_REQUEST_TAG_OFFSET);
  append(comm + MPI_COMM_POSTED_FIRST_OFFSET, request);
  store<u32>(engine, load<u32>(engine, MPI_ENGINE_POSTED_OFFSET) + 1, MPI_ENGINE_POSTED_OFFSET);
  return request;
}

/**
 * Makes a request in state SENT, which an answer completes.
 * @param target the endpoint that has to answer
 * @returns pointer to it: its number; or MPI_NO_MEMORY
 */
export function mpiSent(engine: usize, target: u32): usize {
  const request = takeBlock(engine, MPI_REQUEST_SIZE);
  if (request == 0) return MPI_NO_MEMORY;
  memory.fill(request, 0, MPI_REQUEST_SIZE);
  store<u32>(request, MPI_REQUEST_SENT, MPI_REQUEST_STATE_OFFSET);
  store<u32>(request, target, MPI_REQUEST_ORIGIN_OFFSET);
  store<u32>(request, MPI_SEND, MPI_REQUEST_KIND_OFFSET);
  append(engine + MPI_ENGINE_SENT_FIRST_OFFSET, request);
  return request;
}

/** Takes a request out of its queue. @returns whether it was in one: its state is POSTED or SENT */
function takeOut(engine: usize, request: usize): bool {
  const state = load<u32>(request, MPI_REQUEST_STATE_OFFSET);
  let queue = engine + MPI_ENGINE_SENT_FIRST_OFFSET;
  if (state == MPI_REQUEST_POSTED) {
    queue = commOf(engine, load<u32>(request, MPI_REQUEST_COMM_OFFSET)) + MPI_COMM_POSTED_FIRST_OFFSET;
    store<u32>(engine, load<u32>(engine, MPI_ENGINE_POSTED_OFFSET) - 1, MPI_ENGINE_POSTED_OFFSET);
  } else if (state != MPI_REQUEST_SENT) return false;
  unlink(queue, findEntry(queue, request));
  return true;
}

/** Gives a request back. One that waits is taken out of its queue: no message or answer is for it any more. */
export function mpiFree(engine: usize, request: usize): void {
  takeOut(engine, request);
  store<u32>(request, MPI_REQUEST_FREE, MPI_REQUEST_STATE_OFFSET);
  store<u32>(request, 0, MPI_REQUEST_KIND_OFFSET);
  giveBlock(engine, request, MPI_REQUEST_SIZE);
}

/** Pointer to the posted request that a message gets, out of its queue; 0: none fits. */
function takePosted(engine: usize, comm: usize, source: i32, tag: i32): usize {
  let place = comm + MPI_COMM_POSTED_FIRST_OFFSET;
  while (true) {
    const request = load<usize>(place);
    if (request == 0) return 0;
    if (fits(load<i32>(request, MPI_REQUEST_SOURCE_OFFSET), load<i32>(request, MPI_REQUEST_TAG_OFFSET), source, tag)) {
      store<u32>(engine, load<u32>(engine, MPI_ENGINE_POSTED_OFFSET) - 1, MPI_ENGINE_POSTED_OFFSET);
      return unlink(comm + MPI_COMM_POSTED_FIRST_OFFSET, place);
    }
    place = request + MPI_REQUEST_NEXT_OFFSET;
  }
}

/**
 * A message has come. The first posted receive that fits gets it; else it is stored.
 * @param header pointer to its header @param payload pointer to what follows; the caller has seen that it is as long as the
 *   header says @param origin the endpoint that sent it
 * @returns pointer to the request, in state MATCHED or DONE; MPI_ARRIVED_STORED, MPI_NO_MEMORY, MPI_NO_REQUEST
 */
export function mpiArrive(engine: usize, header: usize, payload: usize, origin: u32): usize {
  const kind = kindOf(header);
  if (kind == MPI_ANSWER) return answered(engine, header);
  const number = numberOf(header);
  const bytes = followingBytes(header);
  if (kind > MPI_RTS || bytes > MPI_EAGER_BYTES_MAX || number >= load<u32>(engine, MPI_ENGINE_COMM_COUNT_OFFSET)) {
    return MPI_NO_REQUEST;
  }
  const comm = commOf(engine, number);
  const source = load<i32>(header, MPI_HEADER_SOURCE_OFFSET);
  const request = takePosted(engine, comm, source, load<i32>(header, MPI_HEADER_TAG_OFFSET));
  if (request != 0) {
    deliver(request, header, payload, origin);
    return request;
  }
  const stored = takeBlock(engine, MPI_STORED_PAYLOAD_OFFSET + bytes);
  if (stored == 0) return MPI_NO_MEMORY;
  store<u32>(stored, origin, MPI_STORED_ORIGIN_OFFSET);
  memory.copy(stored + MPI_STORED_HEADER_OFFSET, header, MPI_HEADER_SIZE);
  memory.copy(stored + MPI_STORED_PAYLOAD_OFFSET, payload, bytes);
  append(comm + MPI_COMM_STORED_FIRST_OFFSET, stored);
  store<u32>(engine, load<u32>(engine, MPI_ENGINE_STORED_OFFSET) + 1, MPI_ENGINE_STORED_OFFSET);
  store<u32>(engine, load<u32>(engine, MPI_ENGINE_STORED_BYTES_OFFSET) + bytes, MPI_ENGINE_STORED_BYTES_OFFSET);
  return MPI_ARRIVED_STORED;
}

/** Completes the request that an answer names. What an answer says is read as a pointer only if it is one of a sent request. */
function answered(engine: usize, header: usize): usize {
  const place = findEntry(engine + MPI_ENGINE_SENT_FIRST_OFFSET, load<usize>(header, MPI_HEADER_BYTES_OFFSET));
  if (place == 0) return MPI_NO_REQUEST;
  const request = unlink(engine + MPI_ENGINE_SENT_FIRST_OFFSET, place);
  store<u32>(request, MPI_REQUEST_DONE, MPI_REQUEST_STATE_OFFSET);
  return request;
}

/** Pointer to the first stored message that a receive would get now; 0: there is none. It stays in its queue. */
export function mpiProbe(engine: usize, number: u32, source: i32, tag: i32): usize {
  const place = findStored(commOf(engine, number) + MPI_COMM_STORED_FIRST_OFFSET, source, tag);
  return place == 0 ? 0 : load<usize>(place);
}

/** As mpiProbe(), but takes the message out of its queue: no receive gets it before mpiMatched() is called with it. */
export function mpiTake(engine: usize, number: u32, source: i32, tag: i32): usize {
  const queue = commOf(engine, number) + MPI_COMM_STORED_FIRST_OFFSET;
  const place = findStored(queue, source, tag);
  return place == 0 ? 0 : unlink(queue, place);
}

/**
 * Receives a message of mpiTake(), whose block is given back.
 * @param buffer pointer to `capacity` bytes
 * @returns pointer to its request, in state MATCHED or DONE; MPI_NO_MEMORY
 */
export function mpiMatched(engine: usize, stored: usize, buffer: usize, capacity: u32): usize {
  const request = makeReceive(engine, buffer, capacity);
  if (request == 0) return MPI_NO_MEMORY;
  store<u32>(request, numberOf(stored + MPI_STORED_HEADER_OFFSET), MPI_REQUEST_COMM_OFFSET);
  deliverStored(engine, stored, request);
  return request;
}

/** Takes back a receive. @returns 1: it is CANCELED; 0: it has a message, and completes */
export function mpiCancel(engine: usize, request: usize): u32 {
  if (load<u32>(request, MPI_REQUEST_STATE_OFFSET) != MPI_REQUEST_POSTED) return 0;
  takeOut(engine, request);
  store<u32>(request, MPI_REQUEST_CANCELED, MPI_REQUEST_STATE_OFFSET);
  return 1;
}

/**
 * Ends a receive without a message, or a send without an answer: the task that it waits for has ended.
 * @param error not 0: the request's error
 * @returns 1: the request is DONE, with that error; 0: it waits for nothing, and is as before
 */
export function mpiFail(engine: usize, request: usize, error: u32): u32 {
  if (!takeOut(engine, request)) return 0;
  store<u32>(request, error, MPI_REQUEST_ERROR_OFFSET);
  store<u32>(request, MPI_REQUEST_DONE, MPI_REQUEST_STATE_OFFSET);
  return 1;
}
