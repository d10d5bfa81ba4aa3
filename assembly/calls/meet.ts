// A short collective operation of members that share a memory: what SharedMembers.meet() of src/collective/ does, without JavaScript.
// The members' blocks are the same, so a rank's way is its own affair. A member that the others keep waiting goes the long way, which
// goes on from there.
import {
  MEETING_BLOCK_OFFSET,
  MEETING_LATEST_OFFSET,
  MEETING_LEAST_OFFSET,
  MEETING_LENT_OFFSET,
  MEETING_MEMBER_SHIFT,
  MEETING_MEMBERS_OFFSET,
  MEETING_NEXT_OFFSET,
  MEETING_RANK_OFFSET,
  MEETING_SEEN_OFFSET,
  MEETING_SIZE_OFFSET,
  MEETING_TASK_OFFSET,
  MEMBER_ARRIVED_OFFSET,
  MEMBER_BEFORE_OFFSET,
  MEMBER_COMPLETED_OFFSET,
  MEMBER_COPY_DISTANCE,
  MEMBER_DATA_OFFSET,
  MEMBER_FAILED_OFFSET,
  MEMBER_INLINE_OFFSET,
  MEMBER_RESULT_OFFSET,
  MEMBER_SIGNATURE_OFFSET,
  MEMBER_SLOT_SIZE,
  MEMBER_SLOTS,
  MEMBER_SLOTS_OFFSET,
  MPI_CALLS_LOOKS_OFFSET,
  MPI_CALLS_OPEN_OFFSET,
  MPI_CALLS_WON_OFFSET,
} from "../layout";
import { copyPayload } from "../mpi/copy";
import { seqDelta } from "../seq";
import { loadWord, pause, ring, storeWord } from "../sync";
import { block, word } from "./block";
import { poll } from "./carry";

/** Looks at a member before the first look for messages: some 80 ns. */
const QUICK_LOOKS: u32 = 16;
/** Divisions between two looks. */
const LOOK_PAUSE: u32 = 1;

/** Pointer to the pointers that a MEETING block has of a member. */
function memberOf(meeting: usize, rank: u32): usize {
  return meeting + MEETING_MEMBERS_OFFSET + (rank << MEETING_MEMBER_SHIFT);
}

/** Pointer to the last operation that a member has completed. */
function seenOf(meeting: usize, rank: u32): usize {
  return meeting + MEETING_SEEN_OFFSET + (rank << 2);
}

/** Offset of an operation's slot in a block. */
function placeOf(number: u32): u32 {
  return MEMBER_SLOTS_OFFSET + (number & (MEMBER_SLOTS - 1)) * MEMBER_SLOT_SIZE;
}

/** Pointer to a member's slot of an operation. */
function slotOf(meeting: usize, rank: u32, number: u32): usize {
  return load<usize>(memberOf(meeting, rank), MEETING_BLOCK_OFFSET) + placeOf(number);
}

/** Pointer to the bytes of a member that has arrived for the next operation. */
export function bytesOfMember(meeting: usize, rank: u32): usize {
  return slotOf(meeting, rank, load<u32>(meeting, MEETING_NEXT_OFFSET)) + MEMBER_INLINE_OFFSET;
}

/** Slots that are free from an operation's on; negative: its own is not free. */
function roomAt(meeting: usize, number: u32): i32 {
  const slots = <i32>MEMBER_SLOTS;
  const room = slots - seqDelta(number, load<u32>(meeting, MEETING_LEAST_OFFSET));
  if (room >= 0) return room;
  // Each number is less than eight operations old, or it is looked up.
  let least = number - 1;
  for (let rank: u32 = 0, size = load<u32>(meeting, MEETING_SIZE_OFFSET); rank < size; rank++) {
    let seen = load<u32>(seenOf(meeting, rank));
    if (seqDelta(number, seen) > slots) {
      // SYNC member-completed (look)
      const completed = loadWord(load<usize>(memberOf(meeting, rank), MEETING_BLOCK_OFFSET) + MEMBER_COMPLETED_OFFSET);
      if (seqDelta(completed, seen) > 0) seen = completed;
      store<u32>(seenOf(meeting, rank), seen);
    }
    if (seqDelta(seen, least) < 0) least = seen;
  }
  store<u32>(meeting, least, MEETING_LEAST_OFFSET);
  return slots - seqDelta(number, least);
}

/** Whether all members have arrived, for this operation or another one. */
function haveArrived(meeting: usize, number: u32): bool {
  for (let rank: u32 = 0, size = load<u32>(meeting, MEETING_SIZE_OFFSET); rank < size; rank++) {
    const slot = slotOf(meeting, rank, number);
    // SYNC member-arrived (look)
    if (loadWord(slot + MEMBER_ARRIVED_OFFSET) != number) return false;
  }
  return true;
}

function ringOthers(meeting: usize): void {
  const own = load<u32>(meeting, MEETING_RANK_OFFSET);
  for (let rank: u32 = 0, size = load<u32>(meeting, MEETING_SIZE_OFFSET); rank < size; rank++) {
    if (rank != own) ring(load<usize>(memberOf(meeting, rank), MEETING_TASK_OFFSET));
  }
}

/** Waits for a member. Messages that come meanwhile are taken. @returns whether it has arrived; false: TypeScript has to wait */
function hasCome(meeting: usize, slot: usize, number: u32): bool {
  const arrived = slot + MEMBER_ARRIVED_OFFSET;
  // SYNC member-arrived (look)
  for (let looks = QUICK_LOOKS; looks != 0; looks--) if (loadWord(arrived) == number) return true;
  for (let looks = word(MPI_CALLS_LOOKS_OFFSET); looks != 0; looks--) {
    if (!poll()) pause(LOOK_PAUSE);
    // What came may have begun something that TypeScript advances, or may be about this operation.
    else if (word(MPI_CALLS_OPEN_OFFSET) == 0 || load<u32>(meeting, MEETING_LENT_OFFSET) == 0) return false;
    // SYNC member-arrived (look)
    if (loadWord(arrived) != number) continue;
    store<u32>(block, word(MPI_CALLS_WON_OFFSET) + 1, MPI_CALLS_WON_OFFSET);
    return true;
  }
  return false;
}

/**
 * Arrives for the next operation, with up to MEMBER_INLINE_BYTES at `data`, and waits for the others.
 * @returns whether all have arrived for the same operation: then end() ends it; false: the long way begins it, or goes on
 */
export function meet(meeting: usize, signature: u32, data: usize, bytes: u32): bool {
  const number = load<u32>(meeting, MEETING_NEXT_OFFSET);
  const rank = load<u32>(meeting, MEETING_RANK_OFFSET);
  const size = load<u32>(meeting, MEETING_SIZE_OFFSET);
  const room = roomAt(meeting, number);
  if (room < 0) return false;
  const slot = slotOf(meeting, rank, number);
  copyPayload(slot + MEMBER_INLINE_OFFSET, data, bytes);
  store<u32>(slot, 0, MEMBER_RESULT_OFFSET);
  store<u32>(slot, signature, MEMBER_SIGNATURE_OFFSET);
  store<u32>(slot, 0, MEMBER_DATA_OFFSET);
  store<u32>(slot, number - 1, MEMBER_BEFORE_OFFSET);
  store<u32>(slot, 0, MEMBER_FAILED_OFFSET);
  // SYNC member-arrived (publish): pairs with the looks of this file and of SharedMembers at other members.
  storeWord(slot + MEMBER_ARRIVED_OFFSET, number);
  store<u32>(meeting, number, MEETING_LATEST_OFFSET);
  // As SharedMembers.#claim().
  if (room > 0) store<u32>(slotOf(meeting, rank, number + 1), 0, MEMBER_RESULT_OFFSET);
  if (size <= 2 || haveArrived(meeting, number)) ringOthers(meeting);
  for (let other: u32 = 0; other < size; other++) {
    if (other == rank) continue;
    const its = slotOf(meeting, other, number);
    const isSame =
      hasCome(meeting, its, number) &&
      load<u32>(its, MEMBER_SIGNATURE_OFFSET) == signature &&
      load<u32>(its, MEMBER_RESULT_OFFSET) == 0;
    if (!isSame) {
      // The long way reads it there: see FlatReduceSteps.arrived().
      copyPayload(slot + MEMBER_INLINE_OFFSET + MEMBER_COPY_DISTANCE, slot + MEMBER_INLINE_OFFSET, bytes);
      return false;
    }
    store<u32>(seenOf(meeting, other), load<u32>(its, MEMBER_BEFORE_OFFSET));
  }
  return true;
}

/** Ends the operation of meet(): this member reads the others' slots no more. */
export function end(meeting: usize): void {
  const number = load<u32>(meeting, MEETING_NEXT_OFFSET);
  store<u32>(seenOf(meeting, load<u32>(meeting, MEETING_RANK_OFFSET)), number);
  store<u32>(meeting, number + 1, MEETING_NEXT_OFFSET);
}
