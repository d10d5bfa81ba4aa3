// The MPI_CALLS block of this instance: one program has one instance. What it says of handles.
import {
  MPI_CALLS_COMMS_OFFSET,
  MPI_CALLS_FIRST_OWN,
  MPI_CALLS_GUARD,
  MPI_CALLS_GUARD_OFFSET,
  MPI_CALLS_HANDLES,
  MPI_CALLS_NULL_GUARD_OFFSET,
  MPI_CALLS_OPEN_OFFSET,
  MPI_CALLS_PREDEFINED,
  MPI_CALLS_TYPES_OFFSET,
  MPI_GROUP_SHIFT,
  MPI_GROUP_SIZE_OFFSET,
} from "../layout";

/** Pointer to the block. */
export let block: usize = 0;

/** Sets the block of this instance, before its first call. */
export function bindCalls(pointer: usize): void {
  block = pointer;
}

/** A word of the block. */
export function word(offset: usize): u32 {
  return load<u32>(block + offset);
}

/** Whether calls may go the short way. The long way tells of a stack that has run over, and of a write through NULL. */
export function isOpen(): bool {
  return (
    word(MPI_CALLS_OPEN_OFFSET) != 0 &&
    isWhole(word(MPI_CALLS_GUARD_OFFSET)) &&
    isWhole(word(MPI_CALLS_NULL_GUARD_OFFSET))
  );
}

/** Whether the program has left two words of a guard as they were. */
function isWhole(guard: usize): bool {
  return load<u64>(guard) == (((<u64>MPI_CALLS_GUARD) << 32) | <u64>MPI_CALLS_GUARD);
}

/** Place of a handle in the tables; MPI_CALLS_HANDLES or more: it has none. */
function placeOfHandle(handle: u32): u32 {
  if (handle < MPI_CALLS_PREDEFINED) return handle;
  return handle < MPI_CALLS_FIRST_OWN ? MPI_CALLS_HANDLES : handle - MPI_CALLS_FIRST_OWN + MPI_CALLS_PREDEFINED;
}

/** Pointer to the entry of a communicator; 0: calls with it go the long way. */
export function commOf(handle: u32): usize {
  const place = placeOfHandle(handle);
  if (place >= MPI_CALLS_HANDLES) return 0;
  const comm = word(MPI_CALLS_COMMS_OFFSET) + (place << MPI_GROUP_SHIFT);
  return load<u32>(comm, MPI_GROUP_SIZE_OFFSET) == 0 ? 0 : comm;
}

/** Bytes of `count` elements of a type; -1: calls with them go the long way. */
export function bytesOf(type: u32, count: i32): i32 {
  const place = placeOfHandle(type);
  if (place >= MPI_CALLS_HANDLES || count < 0) return -1;
  const element = load<u32>(word(MPI_CALLS_TYPES_OFFSET) + (place << 2));
  const bytes = <u64>element * <u64>count;
  return element == 0 || bytes > 0x7fffffff ? -1 : <i32>bytes;
}
