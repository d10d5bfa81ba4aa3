// The engine: processes the descriptors of an injection FIFO strictly in order: moves their bytes, sets completion bits. It
// loads each field of a descriptor once, checks it, and then uses that value. It refuses and counts a wrong descriptor, and
// the completion says so. It runs inline, on the origin's thread, or on an engine thread (serve.ts).
import { completionClear, completionSet, slotOf } from "./completion";
import { engineThread } from "./due";
import {
  AWAY_FOUND,
  AWAY_NONE,
  DESCRIPTOR_BYTES_OFFSET,
  DESCRIPTOR_COMPLETION,
  DESCRIPTOR_FENCE,
  DESCRIPTOR_GET,
  DESCRIPTOR_KIND_OFFSET,
  DESCRIPTOR_LOCAL_GENERATION_OFFSET,
  DESCRIPTOR_LOCAL_INDEX_OFFSET,
  DESCRIPTOR_LOCAL_OFFSET_OFFSET,
  DESCRIPTOR_PUT,
  DESCRIPTOR_REMOTE_GENERATION_OFFSET,
  DESCRIPTOR_REMOTE_INDEX_OFFSET,
  DESCRIPTOR_REMOTE_OFFSET_OFFSET,
  DESCRIPTOR_RMW,
  DESCRIPTOR_TEST_OFFSET,
  DESCRIPTOR_VALUE_OFFSET,
  DESCRIPTOR_WORDS,
  INJECTION_AHEAD_OFFSET,
  INJECTION_AWAY_OFFSET,
  INJECTION_FAILED_OFFSET,
  INJECTION_HEAD_OFFSET,
  INJECTION_MOVED_OFFSET,
  INJECTION_OLDEST_OFFSET,
  INJECTION_PENDING_OFFSET,
  INJECTION_REFUSED_OFFSET,
  INJECTION_RESULT_OFFSET,
  INJECTION_SLOTS_OFFSET,
  INJECTION_STAGED_OFFSET,
  INJECTION_TAIL_OFFSET,
  NONE,
  RMW_BEHIND,
  RMW_COMPARE,
  RMW_FETCH,
  RMW_NOTIFY,
  RMW_OPERATION_MASK,
  RMW_SET,
  RMW_WIDE,
  RMW_XOR,
  SHORT_BYTES,
  SLICE_BYTES,
  TRANSFER_AWAY,
  TRANSFER_BROKEN,
  TRANSFER_DONE,
  TRANSFER_ENDED,
  TRANSFER_INVALID,
  TRANSFER_LATER,
  TRANSFER_LOCAL_BOUNDS,
  TRANSFER_LOCAL_CLOSED,
  TRANSFER_REMOTE_BOUNDS,
  TRANSFER_REMOTE_CLOSED,
} from "./layout";
import { isOwnerUp, isRemote, regionOf, regionPlace, ringOwner } from "./region";
import { changeWide, changeWord, loadWord, storeWord } from "./sync";

/**
 * Most bytes that move() copies by a few loads and stores: 0.6 to 0.9 ns. memory.copy is a call of 3.1 to 3.5 ns. From 65 to
 * 256 bytes a loop would save up to 1.9 ns, but cannot copy overlapping ranges. Eight loads at once, up to 128 bytes, cost
 * every put of 8 bytes 1.2 ns (more registers to save). `npm run bench` prints the table.
 */
const SMALL_BYTES: u32 = 64;

/** Moves bytes. The ranges may overlap: the result is as with a copy in between. */
function move(to: usize, from: usize, bytes: u32): void {
  if (bytes > SMALL_BYTES) memory.copy(to, from, bytes);
  else if (bytes >= 32) {
    // All loads precede the stores, since the ranges may overlap. The loads from both ends meet in the middle.
    const a = v128.load(from);
    const b = v128.load(from, 16);
    const y = v128.load(from + bytes - 32);
    const z = v128.load(from + bytes - 16);
    v128.store(to, a);
    v128.store(to, b, 16);
    v128.store(to + bytes - 32, y);
    v128.store(to + bytes - 16, z);
  } else if (bytes >= 16) {
    const a = v128.load(from);
    const z = v128.load(from + bytes - 16);
    v128.store(to, a);
    v128.store(to + bytes - 16, z);
  } else if (bytes >= 8) {
    const a = load<u64>(from);
    const z = load<u64>(from + bytes - 8);
    store<u64>(to, a);
    store<u64>(to + bytes - 8, z);
  } else if (bytes >= 4) {
    const a = load<u32>(from);
    const z = load<u32>(from + bytes - 4);
    store<u32>(to, a);
    store<u32>(to + bytes - 4, z);
  } else if (bytes != 0) {
    const a = load<u8>(from);
    const m = load<u8>(from + (bytes >>> 1));
    const z = load<u8>(from + bytes - 1);
    store<u8>(to, a);
    store<u8>(to + (bytes >>> 1), m);
    store<u8>(to + bytes - 1, z);
  }
}

/**
 * Moves the bytes of a descriptor from byte `moved` on, at most `most`. With `most` 0, it only checks the descriptor.
 * @returns TRANSFER_…
 */
export function transferPart(job: usize, descriptor: usize, isPut: bool, moved: u32, most: u32): u32 {
  const bytes = load<u32>(descriptor, DESCRIPTOR_BYTES_OFFSET);
  const localIndex = load<u32>(descriptor, DESCRIPTOR_LOCAL_INDEX_OFFSET);
  const localGeneration = load<u32>(descriptor, DESCRIPTOR_LOCAL_GENERATION_OFFSET);
  const localOffset = load<u32>(descriptor, DESCRIPTOR_LOCAL_OFFSET_OFFSET);
  const remoteIndex = load<u32>(descriptor, DESCRIPTOR_REMOTE_INDEX_OFFSET);
  const remoteGeneration = load<u32>(descriptor, DESCRIPTOR_REMOTE_GENERATION_OFFSET);
  const remoteOffset = load<u32>(descriptor, DESCRIPTOR_REMOTE_OFFSET_OFFSET);
  const localEntry = regionOf(job, localIndex, localGeneration);
  if (localEntry == 0) return TRANSFER_LOCAL_CLOSED;
  const local = regionPlace(localEntry, localOffset, bytes);
  if (local == 0) return TRANSFER_LOCAL_BOUNDS;
  const remoteEntry = regionOf(job, remoteIndex, remoteGeneration);
  if (remoteEntry == 0) return TRANSFER_REMOTE_CLOSED;
  const remote = regionPlace(remoteEntry, remoteOffset, bytes);
  if (remote == 0) return TRANSFER_REMOTE_BOUNDS;
  // The descriptor changed between two slices: more bytes are moved than it has.
  if (moved > bytes) return TRANSFER_INVALID;
  let part = bytes - moved;
  if (part > most) part = most;
  const to = isPut ? remote : local;
  const from = isPut ? local : remote;
  // If the destination begins within the source, the last slice goes first: the result is as with a copy in between.
  const done = to - from < bytes ? bytes - moved - part : moved;
  move(to + done, from + done, part);
  return TRANSFER_DONE;
}

/**
 * Changes a word of the target's region atomically. With `most` 0, it only checks the descriptor.
 * @returns TRANSFER_…
 */
function change(job: usize, descriptor: usize, most: u32): u32 {
  const operation = load<u32>(descriptor, DESCRIPTOR_BYTES_OFFSET);
  const localIndex = load<u32>(descriptor, DESCRIPTOR_LOCAL_INDEX_OFFSET);
  const localGeneration = load<u32>(descriptor, DESCRIPTOR_LOCAL_GENERATION_OFFSET);
  const localOffset = load<u32>(descriptor, DESCRIPTOR_LOCAL_OFFSET_OFFSET);
  const remoteIndex = load<u32>(descriptor, DESCRIPTOR_REMOTE_INDEX_OFFSET);
  const remoteGeneration = load<u32>(descriptor, DESCRIPTOR_REMOTE_GENERATION_OFFSET);
  const remoteOffset = load<u32>(descriptor, DESCRIPTOR_REMOTE_OFFSET_OFFSET);
  const bytes: u32 = (operation & RMW_WIDE) != 0 ? 8 : 4;
  const what = operation & RMW_OPERATION_MASK;
  const known = RMW_OPERATION_MASK | RMW_FETCH | RMW_COMPARE | RMW_WIDE | RMW_NOTIFY | RMW_BEHIND;
  if (what < RMW_SET || what > RMW_XOR || (operation & ~known) != 0) return TRANSFER_INVALID;
  const fetches = (operation & RMW_FETCH) != 0;
  let local: usize = 0;
  if (fetches) {
    const localEntry = regionOf(job, localIndex, localGeneration);
    if (localEntry == 0) return TRANSFER_LOCAL_CLOSED;
    local = regionPlace(localEntry, localOffset, bytes);
    if (local == 0) return TRANSFER_LOCAL_BOUNDS;
  }
  const remoteEntry = regionOf(job, remoteIndex, remoteGeneration);
  if (remoteEntry == 0) return TRANSFER_REMOTE_CLOSED;
  const remote = regionPlace(remoteEntry, remoteOffset, bytes);
  if (remote == 0) return TRANSFER_REMOTE_BOUNDS;
  if (((remote | local) & (bytes - 1)) != 0) return TRANSFER_INVALID;
  if (most == 0) return TRANSFER_DONE;
  const compares = (operation & RMW_COMPARE) != 0;
  if (bytes == 4) {
    const value = load<u32>(descriptor, DESCRIPTOR_VALUE_OFFSET);
    const old = changeWord(remote, what, value, load<u32>(descriptor, DESCRIPTOR_TEST_OFFSET), compares);
    if (fetches) store<u32>(local, old);
  } else {
    const value = load<u64>(descriptor, DESCRIPTOR_VALUE_OFFSET);
    const old = changeWide(remote, what, value, load<u64>(descriptor, DESCRIPTOR_TEST_OFFSET), compares);
    if (fetches) store<u64>(local, old);
  }
  // SYNC park (word): after the change, at which the owner looks once more before it sleeps.
  if ((operation & RMW_NOTIFY) != 0) ringOwner(job, remoteIndex);
  return TRANSFER_DONE;
}

/** Executes a descriptor of a kind, or the next `most` bytes of it. Returns TRANSFER_…. */
function execute(job: usize, descriptor: usize, kind: u32, moved: u32, most: u32): u32 {
  let result = TRANSFER_INVALID;
  if (kind == DESCRIPTOR_RMW) result = change(job, descriptor, most);
  else if (kind == DESCRIPTOR_PUT || kind == DESCRIPTOR_GET) {
    result = transferPart(job, descriptor, kind == DESCRIPTOR_PUT, moved, most);
  }
  return result == TRANSFER_REMOTE_CLOSED ? elsewhere(job, descriptor, kind) : result;
}

/** The result where the target's region is in no table here: TRANSFER_AWAY if its task is of another node. */
function elsewhere(job: usize, descriptor: usize, kind: u32): u32 {
  if (!isRemote(job, load<u32>(descriptor, DESCRIPTOR_REMOTE_INDEX_OFFSET))) return TRANSFER_REMOTE_CLOSED;
  const bytes: u32 = (load<u32>(descriptor, DESCRIPTOR_BYTES_OFFSET) & RMW_WIDE) != 0 ? 8 : 4;
  const isAligned = (load<u32>(descriptor, DESCRIPTOR_REMOTE_OFFSET_OFFSET) & (bytes - 1)) == 0;
  return kind != DESCRIPTOR_RMW || isAligned ? TRANSFER_AWAY : TRANSFER_INVALID;
}

/** Executes a descriptor at once, wherever it lies. With `most` 0, it only checks it. Returns TRANSFER_…. */
export function perform(job: usize, descriptor: usize, most: u32): u32 {
  const result = execute(job, descriptor, load<u32>(descriptor, DESCRIPTOR_KIND_OFFSET), 0, most);
  // A descriptor for another node can only be checked on this side.
  return most == 0 && result == TRANSFER_AWAY ? TRANSFER_DONE : result;
}

/** Whether `taken` slots are free. */
function hasRoom(fifo: usize, taken: u32): bool {
  const tail = load<u32>(fifo, INJECTION_TAIL_OFFSET);
  const slots = load<u32>(fifo, INJECTION_SLOTS_OFFSET);
  if (tail - load<u32>(fifo, INJECTION_OLDEST_OFFSET) + taken <= slots) return true;
  // The engine frees slots without a callback by passing them, but none after a completion that is not yet taken.
  if (load<u32>(fifo, INJECTION_PENDING_OFFSET) != 0) return false;
  // SYNC processed (look): pairs with engineRun().
  const head = loadWord(fifo + INJECTION_HEAD_OFFSET);
  store<u32>(fifo, head, INJECTION_OLDEST_OFFSET);
  return tail - head + taken <= slots;
}

/**
 * Owner: injects the staged descriptor, and that many completion descriptors in the next slots (C3). A fence is its own
 * completion (F3). This call processes none of them.
 * @returns the descriptor's slot; NONE: there is no room
 */
export function inject(fifo: usize, completions: u32): u32 {
  if (!hasRoom(fifo, 1 + completions)) return NONE;
  const tail = load<u32>(fifo, INJECTION_TAIL_OFFSET);
  const mask = load<u32>(fifo, INJECTION_SLOTS_OFFSET) - 1;
  const descriptor = slotOf(fifo, tail & mask);
  const staged = fifo + INJECTION_STAGED_OFFSET;
  // Word by word, as they were written: a wider load would have to wait until the stores are in the cache.
  for (let at: usize = 0; at < DESCRIPTOR_WORDS << 2; at += 4) store<u32>(descriptor + at, load<u32>(staged + at));
  const isFence = u32(load<u32>(staged, DESCRIPTOR_KIND_OFFSET) == DESCRIPTOR_FENCE);
  for (let i: u32 = 1; i <= completions; i++) {
    const completion = slotOf(fifo, (tail + i) & mask);
    store<u32>(completion, DESCRIPTOR_COMPLETION, DESCRIPTOR_KIND_OFFSET);
    store<u32>(completion, TRANSFER_DONE, DESCRIPTOR_BYTES_OFFSET);
  }
  store<u32>(fifo, load<u32>(fifo, INJECTION_PENDING_OFFSET) + isFence + completions, INJECTION_PENDING_OFFSET);
  // SYNC inject (inject): pairs with engineRun().
  storeWord(fifo + INJECTION_TAIL_OFFSET, tail + 1 + completions);
  return tail & mask;
}

/** Owner: whether the engine has processed all of a FIFO. */
function isProcessed(fifo: usize, isInline: bool): bool {
  const tail = load<u32>(fifo, INJECTION_TAIL_OFFSET);
  // A taken completion is processed, even if the engine thread has set its bit and not yet stored the new head.
  if (load<u32>(fifo, INJECTION_OLDEST_OFFSET) == tail) return true;
  // SYNC processed (idle): pairs with engineRun() on another thread, which uses no processed descriptor any more.
  const head = isInline ? load<u32>(fifo, INJECTION_HEAD_OFFSET) : loadWord(fifo + INJECTION_HEAD_OFFSET);
  return head == tail;
}

/**
 * Owner: executes the staged descriptor in place, if it is short and no other comes first. No earlier descriptor may be
 * unprocessed (C2) or have its callback pending: then its own callbacks need no bit, and the caller counts them (C7).
 * An RMW without a callback waits for no other: RMWs are unordered. A fence has a callback; it is done here if none failed.
 * @returns TRANSFER_…; TRANSFER_LATER: the descriptor is right, and the caller has to inject it
 */
export function submit(job: usize, fifo: usize, hasCallback: bool): u32 {
  const staged = fifo + INJECTION_STAGED_OFFSET;
  const kind = load<u32>(staged, DESCRIPTOR_KIND_OFFSET);
  const isInline = engineThread(job) == 0;
  // If its callback has to wait for another, isProcessed() is not asked: the engine thread would wait for the line of head.
  const isFirst = (!hasCallback || load<u32>(fifo, INJECTION_PENDING_OFFSET) == 0) && isProcessed(fifo, isInline);
  if (kind == DESCRIPTOR_RMW) {
    const isNow = isFirst || !hasCallback;
    return submitted(execute(job, staged, kind, 0, isNow ? SLICE_BYTES : 0), isNow);
  }
  if (kind == DESCRIPTOR_FENCE) {
    return isFirst && load<u32>(fifo, INJECTION_FAILED_OFFSET) == TRANSFER_DONE ? TRANSFER_DONE : TRANSFER_LATER;
  }
  const isNow = isFirst && load<u32>(staged, DESCRIPTOR_BYTES_OFFSET) <= (isInline ? SLICE_BYTES : SHORT_BYTES);
  return submitted(execute(job, staged, kind, 0, isNow ? SLICE_BYTES : 0), isNow);
}

/** The result of submit() for a descriptor that was executed, or only checked. */
function submitted(result: u32, isDone: bool): u32 {
  if (result == TRANSFER_AWAY) return TRANSFER_LATER;
  return result == TRANSFER_DONE && !isDone ? TRANSFER_LATER : result;
}

/**
 * Owner: moves bytes between a local pointer and an open region at once, without a descriptor. The caller ensures that no
 * unprocessed descriptor precedes it (C2), that it owns the local bytes, and that they are at most SHORT_BYTES.
 * @returns 1; 0: no byte is moved, and submit() gives the reason
 */
export function moveNow(
  job: usize,
  index: u32,
  generation: u32,
  offset: u32,
  local: usize,
  bytes: u32,
  isPut: bool,
): u32 {
  const entry = regionOf(job, index, generation);
  if (entry == 0) return 0;
  const remote = regionPlace(entry, offset, bytes);
  if (remote == 0) return 0;
  if (isPut) move(remote, local, bytes);
  else move(local, remote, bytes);
  return 1;
}

/**
 * Owner: changes a 32-bit word of an open region at once, without a descriptor and without a test.
 * @param local pointer to the word that gets the old value; 0: none
 * @returns as moveNow()
 */
export function changeNow(
  job: usize,
  index: u32,
  generation: u32,
  offset: u32,
  operation: u32,
  value: u32,
  local: usize,
): u32 {
  const entry = regionOf(job, index, generation);
  if (entry == 0) return 0;
  const remote = regionPlace(entry, offset, 4);
  if (remote == 0 || (remote & 3) != 0) return 0;
  const old = changeWord(remote, operation & RMW_OPERATION_MASK, value, 0, false);
  if (local != 0) store<u32>(local, old);
  return 1;
}

/** Notes the result of a transfer, for its completions and for the next fence. */
function note(fifo: usize, result: u32): void {
  store<u32>(fifo, 0, INJECTION_MOVED_OFFSET);
  store<u32>(fifo, result, INJECTION_RESULT_OFFSET);
  if (result == TRANSFER_DONE) return;
  store<u32>(fifo, load<u32>(fifo, INJECTION_REFUSED_OFFSET) + 1, INJECTION_REFUSED_OFFSET);
  if (load<u32>(fifo, INJECTION_FAILED_OFFSET) == TRANSFER_DONE) store<u32>(fifo, result, INJECTION_FAILED_OFFSET);
}

/**
 * Processed completions whose bits are not set yet: a word of the mask, and its bits. A run sets them word by word at its
 * end, because each word is in a cache line that the owner polls. 64 KiB puts through an engine thread went from 0.77 to
 * 0.88 of a copy's rate, together with the polls that Rma saves.
 */
let doneWord: u32 = 0;
let doneBits: u32 = 0;

/** Sets the bits of the processed completions. */
function tellDone(fifo: usize): void {
  if (doneBits != 0) completionSet(fifo, doneWord, doneBits);
  doneBits = 0;
}

/** Whether a kind is that of a completion descriptor or a fence. */
function isCompletion(kind: u32): bool {
  return kind == DESCRIPTOR_COMPLETION || kind == DESCRIPTOR_FENCE;
}

/** Processes the completion descriptor or the fence in a slot. */
function complete(fifo: usize, descriptor: usize, kind: u32, slot: u32): void {
  const isFence = kind == DESCRIPTOR_FENCE;
  const result = isFence ? load<u32>(fifo, INJECTION_FAILED_OFFSET) : load<u32>(fifo, INJECTION_RESULT_OFFSET);
  if (isFence) store<u32>(fifo, TRANSFER_DONE, INJECTION_FAILED_OFFSET);
  // Mostly the result is there already; without a store the cache line stays where it is.
  if (load<u32>(descriptor, DESCRIPTOR_BYTES_OFFSET) != result) store<u32>(descriptor, result, DESCRIPTOR_BYTES_OFFSET);
  if (slot >>> 5 != doneWord) tellDone(fifo);
  doneWord = slot >>> 5;
  doneBits |= 1 << (slot & 31);
}

/** The result of the preceding transfer if a descriptor depends on it (RMW_BEHIND); else TRANSFER_DONE. */
function precedingResult(fifo: usize, descriptor: usize, kind: u32): u32 {
  if (kind != DESCRIPTOR_RMW || (load<u32>(descriptor, DESCRIPTOR_BYTES_OFFSET) & RMW_BEHIND) == 0)
    return TRANSFER_DONE;
  return load<u32>(fifo, INJECTION_RESULT_OFFSET);
}

/**
 * Executes a descriptor's transfer, or a slice of it: `part` of the bytes that are `left`. If its target has ended, it
 * moves none.
 * @returns bytes moved; NONE: it moved a slice, and the transfer goes on; or it goes to another node
 */
function proceed(job: usize, fifo: usize, descriptor: usize, kind: u32, left: u32, part: u32): u32 {
  const isUp = isOwnerUp(job, load<u32>(descriptor, DESCRIPTOR_REMOTE_INDEX_OFFSET));
  const before = load<u32>(fifo, INJECTION_MOVED_OFFSET);
  let result = precedingResult(fifo, descriptor, kind);
  if (result == TRANSFER_DONE) result = isUp ? execute(job, descriptor, kind, before, part) : TRANSFER_ENDED;
  if (result == TRANSFER_DONE && part < left) {
    store<u32>(fifo, before + part, INJECTION_MOVED_OFFSET);
    return NONE;
  }
  if (result == TRANSFER_AWAY) {
    store<u32>(fifo, AWAY_FOUND, INJECTION_AWAY_OFFSET);
    return NONE;
  }
  note(fifo, result);
  return result == TRANSFER_DONE ? part : 0;
}

/**
 * Processes descriptors in order, while they move at most `most` bytes in all. `most` is at most SLICE_BYTES; with
 * SLICE_BYTES, a longer transfer moves a slice. An RMW counts as 8 bytes, a refused descriptor as none.
 * @returns how many slots are left to process
 */
export function engineRun(job: usize, fifo: usize, most: u32): u32 {
  // SYNC inject (look): pairs with inject().
  return engineRunTo(job, fifo, loadWord(fifo + INJECTION_TAIL_OFFSET), most);
}

/** As engineRun(), up to a tail that the caller has loaded. 0 too if the next descriptor goes to another node. */
export function engineRunTo(job: usize, fifo: usize, tail: u32, most: u32): u32 {
  const before = load<u32>(fifo, INJECTION_HEAD_OFFSET);
  if (before == tail || load<u32>(fifo, INJECTION_AWAY_OFFSET) != AWAY_NONE) return 0;
  const mask = load<u32>(fifo, INJECTION_SLOTS_OFFSET) - 1;
  let head = before;
  let moved: u32 = 0;
  doneBits = 0; // left over from a run that trapped
  for (; head != tail; head++) {
    const descriptor = slotOf(fifo, head & mask);
    const kind = load<u32>(descriptor, DESCRIPTOR_KIND_OFFSET);
    if (isCompletion(kind)) {
      complete(fifo, descriptor, kind, head & mask);
      continue;
    }
    const bytes: u32 = kind == DESCRIPTOR_RMW ? 8 : load<u32>(descriptor, DESCRIPTOR_BYTES_OFFSET);
    const left = bytes - load<u32>(fifo, INJECTION_MOVED_OFFSET);
    const part = left > SLICE_BYTES ? SLICE_BYTES : left;
    if (part > most - moved) break;
    const done = proceed(job, fifo, descriptor, kind, left, part);
    if (done == NONE) break;
    moved += done;
  }
  tellDone(fifo);
  // SYNC processed (done): pairs with hasRoom().
  if (head != before) storeWord(fifo + INJECTION_HEAD_OFFSET, head);
  store<u32>(fifo, tail - head, INJECTION_AHEAD_OFFSET);
  return load<u32>(fifo, INJECTION_AWAY_OFFSET) == AWAY_NONE ? tail - head : 0;
}

/**
 * Agent: ends the descriptor at the head of a FIFO, which it has carried to another node. The engine then goes on.
 * @param result TRANSFER_…
 */
export function engineCarried(fifo: usize, result: u32): void {
  note(fifo, result);
  store<u32>(fifo, AWAY_NONE, INJECTION_AWAY_OFFSET);
  // It counted the descriptor that is gone now: the next run looks at the tail.
  store<u32>(fifo, 0, INJECTION_AHEAD_OFFSET);
  // SYNC processed (carried): pairs with hasRoom().
  storeWord(fifo + INJECTION_HEAD_OFFSET, load<u32>(fifo, INJECTION_HEAD_OFFSET) + 1);
}

/**
 * Owner, once the engine thread has ended: ends the unprocessed descriptors; their completions and fences report
 * TRANSFER_BROKEN. That thread may have processed more than its head says: completions that the owner has taken stay taken.
 */
export function engineGiveUp(job: usize, fifo: usize): void {
  const mask = load<u32>(fifo, INJECTION_SLOTS_OFFSET) - 1;
  const tail = load<u32>(fifo, INJECTION_TAIL_OFFSET);
  const oldest = load<u32>(fifo, INJECTION_OLDEST_OFFSET);
  let head = load<u32>(fifo, INJECTION_HEAD_OFFSET);
  if (i32(oldest - head) > 0) head = oldest;
  store<u32>(fifo, AWAY_NONE, INJECTION_AWAY_OFFSET);
  for (; head != tail; head++) {
    completionClear(fifo, head & mask);
    const descriptor = slotOf(fifo, head & mask);
    const kind = load<u32>(descriptor, DESCRIPTOR_KIND_OFFSET);
    if (isCompletion(kind)) complete(fifo, descriptor, kind, head & mask);
    else {
      // The agent has ended with the engine thread, and so have all tasks of other nodes.
      const isUp = isOwnerUp(job, load<u32>(descriptor, DESCRIPTOR_REMOTE_INDEX_OFFSET));
      note(fifo, isUp ? TRANSFER_BROKEN : TRANSFER_ENDED);
    }
  }
  tellDone(fifo);
  storeWord(fifo + INJECTION_HEAD_OFFSET, head);
}
