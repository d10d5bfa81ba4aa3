// Barriers and reductions of a few bytes: those that have gone the long way before, with the same arguments but for the buffers.
import {
  MEETING_LENT_OFFSET,
  MEETING_NEXT_OFFSET,
  MEETING_RANK_OFFSET,
  MEETING_SIZE_OFFSET,
  MPI_C_IN_PLACE,
  MPI_CALLS_KNOWN_OFFSET,
  MPI_CALLS_PARTIAL_BYTES,
  MPI_CALLS_PARTIALS_OFFSET,
  MPI_GROUP_PEERS_OFFSET,
  MPI_KNOWN_BYTES_OFFSET,
  MPI_KNOWN_COUNT,
  MPI_KNOWN_COUNT_OFFSET,
  MPI_KNOWN_ELEMENT_OFFSET,
  MPI_KNOWN_OP_OFFSET,
  MPI_KNOWN_OPERATION_OFFSET,
  MPI_KNOWN_SHIFT,
  MPI_KNOWN_SIGNATURE_OFFSET,
  MPI_KNOWN_SIZE_OFFSET,
  MPI_KNOWN_TYPE_OFFSET,
} from "../layout";
import { copyPayload } from "../mpi/copy";
import { commOf, isOpen, word } from "./block";
import { isInArena, poll } from "./carry";
import { MPI_Allreduce as allreduceSlowly, MPI_Barrier as barrierSlowly, reduce } from "./long";
import { bytesOfMember, end, meet } from "./meet";

/** Operations of a communicator from one look for messages to the next: the last rank to arrive waits for none. */
const LOOK_EVERY: u32 = 32;

/** Pointer to the MEETING block of a communicator; 0: its operations go the long way. */
function meetingOf(handle: u32): usize {
  if (!isOpen()) return 0;
  const comm = commOf(handle);
  if (comm == 0) return 0;
  const meeting = load<usize>(load<usize>(comm, MPI_GROUP_PEERS_OFFSET) - 4);
  if (meeting == 0) return 0;
  // What comes may close the short ways, or be about this communicator.
  if ((load<u32>(meeting, MEETING_NEXT_OFFSET) & (LOOK_EVERY - 1)) == 0 && poll() && !isOpen()) return 0;
  return load<u32>(meeting, MEETING_LENT_OFFSET) == 0 ? 0 : meeting;
}

/** Pointer to the MPI_KNOWN entry of an operation; 0: there is none. */
function known(size: u32, type: u32, op: u32, count: i32): usize {
  let entry: usize = word(MPI_CALLS_KNOWN_OFFSET);
  for (const last = entry + (MPI_KNOWN_COUNT << MPI_KNOWN_SHIFT); entry < last; entry += 1 << MPI_KNOWN_SHIFT) {
    if (
      load<u32>(entry, MPI_KNOWN_SIZE_OFFSET) == size &&
      load<u32>(entry, MPI_KNOWN_TYPE_OFFSET) == type &&
      load<u32>(entry, MPI_KNOWN_OP_OFFSET) == op &&
      load<i32>(entry, MPI_KNOWN_COUNT_OFFSET) == count
    ) {
      return entry;
    }
  }
  return 0;
}

export function MPI_Barrier(handle: u32): i32 {
  const meeting = meetingOf(handle);
  const entry = meeting == 0 ? 0 : known(load<u32>(meeting, MEETING_SIZE_OFFSET), 0, 0, 0);
  if (entry == 0 || !meet(meeting, load<u32>(entry, MPI_KNOWN_SIGNATURE_OFFSET), 0, 0)) return barrierSlowly(handle);
  end(meeting);
  return 0;
}

export function MPI_Allreduce(from: usize, to: usize, count: i32, type: u32, op: u32, handle: u32): i32 {
  const meeting = meetingOf(handle);
  const entry = meeting == 0 ? 0 : known(load<u32>(meeting, MEETING_SIZE_OFFSET), type, op, count);
  if (entry == 0) return allreduceSlowly(from, to, count, type, op, handle);
  const bytes = load<u32>(entry, MPI_KNOWN_BYTES_OFFSET);
  const data = from == MPI_C_IN_PLACE ? to : from;
  if (
    !isOperand(data, bytes) ||
    !isOperand(to, bytes) ||
    (data != to && data < to + bytes && to < data + bytes) ||
    !meet(meeting, load<u32>(entry, MPI_KNOWN_SIGNATURE_OFFSET), data, bytes)
  ) {
    return allreduceSlowly(from, to, count, type, op, handle);
  }
  combineAll(meeting, entry, data, to, count);
  end(meeting);
  return 0;
}

/** Whether a buffer is one of the program's, at a whole word. */
function isOperand(buffer: usize, bytes: u32): bool {
  return (buffer & 3) == 0 && isInArena(buffer, bytes);
}

// What a reduction is of. Each thread has its own instance of the module, and so of these.
let meeting: usize = 0;
let entry: usize = 0;
let ownRank: u32 = 0;
let ownData: usize = 0;
let elements: u32 = 0;
/** Members that are folded in pairs, so that a power of two is left: see src/collective/algorithms/order.ts. */
let pairs: u32 = 0;

/** Combines the bytes of all members, in the order that reduceOperands() of src/collective/ has. @param data this member's bytes */
function combineAll(inMeeting: usize, known: usize, data: usize, to: usize, count: u32): void {
  const size = load<u32>(inMeeting, MEETING_SIZE_OFFSET);
  if (size == 1) {
    if (data != to) copyPayload(to, data, load<u32>(known, MPI_KNOWN_BYTES_OFFSET));
    return;
  }
  meeting = inMeeting;
  entry = known;
  ownRank = load<u32>(inMeeting, MEETING_RANK_OFFSET);
  ownData = data;
  elements = count;
  if (size == 2) {
    combine(to, bytesAt(0), bytesAt(1));
    return;
  }
  const power: u32 = 1 << (31 - clz(size));
  pairs = size - power;
  const partials: usize = word(MPI_CALLS_PARTIALS_OFFSET);
  const below = partials + 2 * MPI_CALLS_PARTIAL_BYTES;
  const left = combined(0, power >> 1, partials, below);
  const right = combined(power >> 1, power >> 1, partials + MPI_CALLS_PARTIAL_BYTES, below);
  combine(to, left, right);
}

/** Pointer to a member's bytes. A slot that is read again comes from the other core again, even the own slot. */
function bytesAt(rank: u32): usize {
  return rank == ownRank ? ownData : bytesOfMember(meeting, rank);
}

function combine(out: usize, left: usize, right: usize): void {
  reduce(
    load<u32>(entry, MPI_KNOWN_OPERATION_OFFSET),
    load<u32>(entry, MPI_KNOWN_ELEMENT_OFFSET),
    out,
    left,
    right,
    elements,
  );
}

/**
 * Combines the operands from `first` on, after the fold.
 * @param partials pointer to the partial results of the levels below @returns pointer to an operand, or `to`
 */
function combined(first: u32, count: u32, to: usize, partials: usize): usize {
  if (count == 1) {
    if (first >= pairs) return bytesAt(first + pairs);
    combine(to, bytesAt(2 * first), bytesAt(2 * first + 1));
    return to;
  }
  const half = count >> 1;
  const below = partials + MPI_CALLS_PARTIAL_BYTES;
  const left = combined(first, half, to, below);
  combine(to, left, combined(first + half, half, partials, below));
  return to;
}
