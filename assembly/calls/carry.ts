// Messages between tasks of one memory: what src/mpi/engine.ts does for all of them, without JavaScript. A message that can't go
// so goes the long way, and nothing has happened yet.
import { laneAbort, laneCommit, laneReserve, recordSize, takeLinesAhead } from "../lane";
import {
  ADVANCE_EVENTS_MASK,
  CONTEXT_EVENTS_OFFSET,
  EVENT_SHIFT,
  JOB_ENDPOINTS_OFFSET,
  KIND_MESSAGE,
  LANE_RECORD_MAX_OFFSET,
  MPI_ANSWER,
  MPI_ANY,
  MPI_ARRIVED_STORED,
  MPI_C_ANY_TAG,
  MPI_CALLS_ARENA_BYTES_OFFSET,
  MPI_CALLS_ARENA_OFFSET,
  MPI_CALLS_CONTEXT_OFFSET,
  MPI_CALLS_CONTEXTS_OFFSET,
  MPI_CALLS_EAGER_MAX_OFFSET,
  MPI_CALLS_ENGINE_OFFSET,
  MPI_CALLS_FIRST_OFFSET,
  MPI_CALLS_GENERATION_OFFSET,
  MPI_CALLS_JOB_OFFSET,
  MPI_CALLS_LANES_OFFSET,
  MPI_CALLS_LOCALS_OFFSET,
  MPI_CALLS_LOOKS_OFFSET,
  MPI_CALLS_META,
  MPI_CALLS_OPEN_OFFSET,
  MPI_CALLS_REGION_INDEX_OFFSET,
  MPI_CALLS_WON_OFFSET,
  MPI_EAGER,
  MPI_GROUP_NUMBER_OFFSET,
  MPI_GROUP_PEERS_OFFSET,
  MPI_GROUP_RANK_OFFSET,
  MPI_GROUP_SIZE_OFFSET,
  MPI_HEADER_BYTES_OFFSET,
  MPI_HEADER_COMM_OFFSET,
  MPI_HEADER_KIND_SHIFT,
  MPI_HEADER_SIZE,
  MPI_HEADER_SOURCE_OFFSET,
  MPI_HEADER_TAG_OFFSET,
  MPI_NO_MEMORY,
  MPI_NO_REQUEST,
  MPI_REQUEST_ANSWER_OFFSET,
  MPI_REQUEST_BUFFER_OFFSET,
  MPI_REQUEST_BYTES_OFFSET,
  MPI_REQUEST_CAPACITY_OFFSET,
  MPI_REQUEST_DONE,
  MPI_REQUEST_GENERATION_OFFSET,
  MPI_REQUEST_INDEX_OFFSET,
  MPI_REQUEST_MATCHED,
  MPI_REQUEST_OFFSET_OFFSET,
  MPI_REQUEST_ORIGIN_OFFSET,
  MPI_REQUEST_STATE_OFFSET,
  MPI_RTS,
  MPI_RTS_GENERATION_OFFSET,
  MPI_RTS_INDEX_OFFSET,
  MPI_RTS_OFFSET_OFFSET,
  MPI_RTS_REQUEST_OFFSET,
  MPI_RTS_SIZE,
  RECORD_KIND_MASK,
  RECORD_KIND_SHIFT,
  RECORD_LENGTH_MASK,
} from "../layout";
import { copyPayload } from "../mpi/copy";
import { mpiArrive, mpiFree, mpiPost, mpiSent } from "../mpi/match";
import { advance, release } from "../reception";
import { placeOf } from "../region";
import { pause } from "../sync";
import { block, bytesOf, commOf, isOpen, word } from "./block";
import { endRound, pull as pullSlowly } from "./long";

/** Divisions between two looks. */
const LOOK_PAUSE: u32 = 4;

/** Of send() and receive(): the call goes the long way. Nothing has happened. */
export const LONG: usize = 1;

/** The lane to a target, with room for a body of `bytes`: pointer to the lane, or 0. */
function laneTo(ordinal: u32, bytes: u32): usize {
  if (ordinal >= word(MPI_CALLS_LOCALS_OFFSET)) return 0;
  const lane = load<usize>(word(MPI_CALLS_LANES_OFFSET) + (ordinal << 2));
  return lane == 0 || recordSize(bytes) > load<u32>(lane, LANE_RECORD_MAX_OFFSET) ? 0 : lane;
}

function writeHeader(at: usize, comm: usize, tag: i32, kind: u32, bytes: u32): void {
  const number = load<u32>(comm, MPI_GROUP_NUMBER_OFFSET);
  store<u32>(at, number | (kind << MPI_HEADER_KIND_SHIFT), MPI_HEADER_COMM_OFFSET);
  store<u32>(at, load<u32>(comm, MPI_GROUP_RANK_OFFSET), MPI_HEADER_SOURCE_OFFSET);
  store<i32>(at, tag, MPI_HEADER_TAG_OFFSET);
  store<u32>(at, bytes, MPI_HEADER_BYTES_OFFSET);
}

/** Ordinal of a rank; the largest number if it goes the long way. */
function ordinalOf(comm: usize, rank: u32): u32 {
  return load<u32>(load<usize>(comm, MPI_GROUP_PEERS_OFFSET) + (rank << 2));
}

function endpointAt(ordinal: u32): u32 {
  return load<u32>(load<usize>(word(MPI_CALLS_JOB_OFFSET), JOB_ENDPOINTS_OFFSET) + (ordinal << 2));
}

/** Whether bytes lie in the program's region. */
export function isInArena(buffer: usize, bytes: u32): bool {
  const size = word(MPI_CALLS_ARENA_BYTES_OFFSET);
  return bytes <= size && <u32>(buffer - word(MPI_CALLS_ARENA_OFFSET)) <= size - bytes;
}

/** Sends. @returns 0: the send is over; LONG; else pointer to its request */
export function send(buffer: usize, count: i32, type: u32, to: u32, tag: i32, handle: u32): usize {
  if (!isOpen()) return LONG;
  const comm = commOf(handle);
  const bytes = bytesOf(type, count);
  if (comm == 0 || bytes < 0 || tag < 0 || to >= load<u32>(comm, MPI_GROUP_SIZE_OFFSET)) return LONG;
  if (buffer == 0 && bytes != 0) return LONG;
  const isEager = <u32>bytes <= word(MPI_CALLS_EAGER_MAX_OFFSET);
  const follows: u32 = isEager ? bytes : MPI_RTS_SIZE;
  const ordinal = ordinalOf(comm, to);
  const lane = laneTo(ordinal, MPI_HEADER_SIZE + follows);
  if (lane == 0 || !(isEager || isInArena(buffer, bytes))) return LONG;
  let request: usize = 0;
  if (!isEager) {
    request = mpiSent(word(MPI_CALLS_ENGINE_OFFSET), endpointAt(ordinal));
    if (request == MPI_NO_MEMORY) return LONG;
  }
  const body = laneReserve(lane, MPI_HEADER_SIZE + follows);
  if (body == 0) {
    if (request != 0) mpiFree(word(MPI_CALLS_ENGINE_OFFSET), request);
    return LONG;
  }
  writeHeader(body, comm, tag, isEager ? MPI_EAGER : MPI_RTS, bytes);
  const place = body + MPI_HEADER_SIZE;
  if (isEager) copyPayload(place, buffer, bytes);
  else {
    store<u32>(place, word(MPI_CALLS_REGION_INDEX_OFFSET), MPI_RTS_INDEX_OFFSET);
    store<u32>(place, word(MPI_CALLS_GENERATION_OFFSET), MPI_RTS_GENERATION_OFFSET);
    store<u32>(place, <u32>(buffer - word(MPI_CALLS_ARENA_OFFSET)), MPI_RTS_OFFSET_OFFSET);
    store<usize>(place, request, MPI_RTS_REQUEST_OFFSET);
  }
  laneCommit(lane, KIND_MESSAGE, MPI_HEADER_SIZE + follows, MPI_CALLS_META);
  if (follows <= 64) takeLinesAhead(lane, recordSize(MPI_HEADER_SIZE + follows));
  return request;
}

/** Posts a receive. @returns LONG, or pointer to its request */
export function receive(buffer: usize, count: i32, type: u32, from: i32, tag: i32, handle: u32): usize {
  if (!isOpen()) return LONG;
  const comm = commOf(handle);
  const bytes = bytesOf(type, count);
  if (comm == 0 || bytes < 0 || (bytes != 0 && !isInArena(buffer, bytes))) return LONG;
  if (from != MPI_ANY && <u32>from >= load<u32>(comm, MPI_GROUP_SIZE_OFFSET)) return LONG;
  if (tag < 0 && tag != MPI_C_ANY_TAG) return LONG;
  const number = load<u32>(comm, MPI_GROUP_NUMBER_OFFSET);
  const wanted = tag == MPI_C_ANY_TAG ? MPI_ANY : tag;
  const request = mpiPost(word(MPI_CALLS_ENGINE_OFFSET), number, from, wanted, buffer, bytes);
  if (request == MPI_NO_MEMORY) return LONG;
  if (load<u32>(request, MPI_REQUEST_STATE_OFFSET) == MPI_REQUEST_MATCHED) pull(request);
  return request;
}

/** Gets the payload of a matched request, in one copy, and answers. */
function pull(request: usize): void {
  if (!pullHere(request)) pullSlowly(request);
}

/** @returns whether it could: its origin is in this memory, and its lane has room for the answer */
function pullHere(request: usize): bool {
  const origin = load<u32>(request, MPI_REQUEST_ORIGIN_OFFSET);
  const contexts = word(MPI_CALLS_CONTEXTS_OFFSET);
  // A task of a node before this one gives a large number.
  const slot: u32 = (origin & 0xffffff) - word(MPI_CALLS_FIRST_OFFSET);
  if (slot >= word(MPI_CALLS_LOCALS_OFFSET) || origin >>> 24 >= contexts) return false;
  const lane = laneTo(slot * contexts + (origin >>> 24), MPI_HEADER_SIZE);
  if (lane == 0) return false;
  const bytes = min<u32>(load<u32>(request, MPI_REQUEST_BYTES_OFFSET), load<u32>(request, MPI_REQUEST_CAPACITY_OFFSET));
  const buffer = load<usize>(request, MPI_REQUEST_BUFFER_OFFSET);
  if (!isInArena(buffer, bytes)) return false;
  const body = laneReserve(lane, MPI_HEADER_SIZE);
  if (body == 0) return false;
  const from = placeOf(
    word(MPI_CALLS_JOB_OFFSET),
    load<u32>(request, MPI_REQUEST_INDEX_OFFSET),
    load<u32>(request, MPI_REQUEST_GENERATION_OFFSET),
    load<u32>(request, MPI_REQUEST_OFFSET_OFFSET),
    bytes,
  );
  if (from == 0) {
    laneAbort(lane);
    return false;
  }
  memory.copy(buffer, from, bytes);
  memory.fill(body, 0, MPI_HEADER_SIZE);
  store<u32>(body, MPI_ANSWER << MPI_HEADER_KIND_SHIFT, MPI_HEADER_COMM_OFFSET);
  store<u32>(body, load<u32>(request, MPI_REQUEST_ANSWER_OFFSET), MPI_HEADER_BYTES_OFFSET);
  laneCommit(lane, KIND_MESSAGE, MPI_HEADER_SIZE, MPI_CALLS_META);
  store<u32>(request, MPI_REQUEST_DONE, MPI_REQUEST_STATE_OFFSET);
  return true;
}

/** One round. @returns whether anything came */
export function poll(): bool {
  const context = word(MPI_CALLS_CONTEXT_OFFSET);
  const found = advance(context, 1);
  if (found == 0) return false;
  const count = found & ADVANCE_EVENTS_MASK;
  for (let place: u32 = 0; place < count; place++) {
    if (arrive(context + CONTEXT_EVENTS_OFFSET + (place << EVENT_SHIFT))) continue;
    endRound(place, found);
    return true;
  }
  if (found > ADVANCE_EVENTS_MASK) endRound(count, found);
  else release(context);
  return true;
}

/** Handles an event. @returns false: TypeScript has to; nothing has happened */
function arrive(event: usize): bool {
  const commit = load<u32>(event, 0);
  if (load<u32>(event, 4) != MPI_CALLS_META || ((commit >>> RECORD_KIND_SHIFT) & RECORD_KIND_MASK) != KIND_MESSAGE)
    return false;
  const header = load<usize>(event, 8);
  const ordinal = load<u32>(event, 12);
  if (ordinal >= word(MPI_CALLS_LOCALS_OFFSET)) return false;
  const kind = load<u32>(header, MPI_HEADER_COMM_OFFSET) >>> MPI_HEADER_KIND_SHIFT;
  let follows = load<u32>(header, MPI_HEADER_BYTES_OFFSET);
  if (kind != MPI_EAGER) follows = kind == MPI_RTS ? MPI_RTS_SIZE : 0;
  if ((commit & RECORD_LENGTH_MASK) != MPI_HEADER_SIZE + follows) return false;
  const engine = word(MPI_CALLS_ENGINE_OFFSET);
  const request = mpiArrive(engine, header, header + MPI_HEADER_SIZE, endpointAt(ordinal));
  if (request == MPI_ARRIVED_STORED) return true;
  if (request == MPI_NO_MEMORY || request == MPI_NO_REQUEST) return false;
  if (load<u32>(request, MPI_REQUEST_STATE_OFFSET) == MPI_REQUEST_MATCHED) pull(request);
  return true;
}

/** Looks for messages until a request is over. @returns whether it is; false: TypeScript has to wait */
export function isSoonOver(request: usize): bool {
  if (load<u32>(request, MPI_REQUEST_STATE_OFFSET) >= MPI_REQUEST_DONE) return true;
  for (let looks = word(MPI_CALLS_LOOKS_OFFSET); looks != 0; looks--) {
    if (!poll()) {
      pause(LOOK_PAUSE);
      continue;
    }
    if (load<u32>(request, MPI_REQUEST_STATE_OFFSET) >= MPI_REQUEST_DONE) {
      store<u32>(block, word(MPI_CALLS_WON_OFFSET) + 1, MPI_CALLS_WON_OFFSET);
      return true;
    }
    // What came may have begun something that TypeScript advances.
    if (word(MPI_CALLS_OPEN_OFFSET) == 0) return false;
  }
  return false;
}
