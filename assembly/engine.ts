// The engine: takes the descriptors of an injection FIFO strictly in order, moves what they say, sets completion bits.
// A descriptor is copied, then checked, then only the copy is used; one that is not right is refused, counted, and its
// completion says so. It runs inline, on the thread of the origin, or on an engine thread (serve.ts).
import { completionClear, completionSet, maskBytes, slotOf } from "./completion";
import { engineThread } from "./due";
import {
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
  INJECTION_FAILED_OFFSET,
  INJECTION_FIRST_OFFSET,
  INJECTION_HEAD_OFFSET,
  INJECTION_MASK_OFFSET,
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
import { isOwnerUp, regionOf, regionPlace, ringOwner } from "./region";
import { changeWide, changeWord, loadWord, storeWord } from "./sync";

/**
 * Up to so many bytes are moved by a few loads and stores: 0.6 to 0.9 ns, while memory.copy is a call of 3.1 to 3.5. From
 * 65 to 256 a loop would be faster by up to 1.9 ns, but not where ranges overlap; eight loads at once, up to 128, make
 * every put of 8 bytes slower by 1.2 (more registers to save). The table is in `npm run bench`.
 */
const SMALL_BYTES: u32 = 64;

/** Moves bytes; where the ranges overlap, as if there were a copy in between. */
function move(to: usize, from: usize, bytes: u32): void {
  if (bytes > SMALL_BYTES) memory.copy(to, from, bytes);
  else if (bytes >= 32) {
    // Loaded before anything is stored, since the ranges may overlap. From both ends: they meet in the middle.
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
 * Moves what a descriptor says from byte `moved` on, at most `most` bytes of it; with 0, it only looks whether it is right.
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
  const remoteEntry = regionOf(job, remoteIndex, remoteGeneration);
  if (remoteEntry == 0) return TRANSFER_REMOTE_CLOSED;
  const local = regionPlace(localEntry, localOffset, bytes);
  if (local == 0) return TRANSFER_LOCAL_BOUNDS;
  const remote = regionPlace(remoteEntry, remoteOffset, bytes);
  if (remote == 0) return TRANSFER_REMOTE_BOUNDS;
  // Between two slices the descriptor became another one: what is moved already is no part of it.
  if (moved > bytes) return TRANSFER_INVALID;
  let part = bytes - moved;
  if (part > most) part = most;
  const to = isPut ? remote : local;
  const from = isPut ? local : remote;
  // Where bytes go up into the range that they come from, the last slice goes first: as if there were a copy in between.
  const done = to - from < bytes ? bytes - moved - part : moved;
  move(to + done, from + done, part);
  return TRANSFER_DONE;
}

/**
 * Changes a word of the target's region atomically; with `most` 0, it only looks whether that is right.
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

/** Does what a descriptor of some kind says, or the next `most` bytes of it: TRANSFER_…. */
function execute(job: usize, descriptor: usize, kind: u32, moved: u32, most: u32): u32 {
  if (kind == DESCRIPTOR_RMW) return change(job, descriptor, most);
  if (kind != DESCRIPTOR_PUT && kind != DESCRIPTOR_GET) return TRANSFER_INVALID;
  return transferPart(job, descriptor, kind == DESCRIPTOR_PUT, moved, most);
}

/** Writes an injection FIFO into zeroed memory; once, before any task. */
export function injectionInit(fifo: usize, slots: u32): void {
  store<u32>(fifo, slots, INJECTION_SLOTS_OFFSET);
  store<usize>(fifo, fifo + INJECTION_MASK_OFFSET + maskBytes(slots), INJECTION_FIRST_OFFSET);
}

/** Does what a descriptor says at once, wherever it lies: TRANSFER_…. With `most` 0, it only looks whether it is right. */
export function perform(job: usize, descriptor: usize, most: u32): u32 {
  return execute(job, descriptor, load<u32>(descriptor, DESCRIPTOR_KIND_OFFSET), 0, most);
}

/** Whether so many slots are free. */
function hasRoom(fifo: usize, taken: u32): bool {
  const tail = load<u32>(fifo, INJECTION_TAIL_OFFSET);
  const slots = load<u32>(fifo, INJECTION_SLOTS_OFFSET);
  if (tail - load<u32>(fifo, INJECTION_OLDEST_OFFSET) + taken <= slots) return true;
  // Slots without a callback are free once the engine has passed them; none behind a bit that is not yet taken.
  if (load<u32>(fifo, INJECTION_PENDING_OFFSET) != 0) return false;
  // SYNC processed (look): pairs with engineRun().
  const head = loadWord(fifo + INJECTION_HEAD_OFFSET);
  store<u32>(fifo, head, INJECTION_OLDEST_OFFSET);
  return tail - head + taken <= slots;
}

/**
 * Owner: injects the staged descriptor, with so many completion descriptors in the very next slots (C3); a fence is a
 * completion by itself (F3). Nothing is processed yet.
 * @returns its slot; NONE: there is no room
 */
export function inject(fifo: usize, completions: u32): u32 {
  if (!hasRoom(fifo, 1 + completions)) return NONE;
  const tail = load<u32>(fifo, INJECTION_TAIL_OFFSET);
  const mask = load<u32>(fifo, INJECTION_SLOTS_OFFSET) - 1;
  const descriptor = slotOf(fifo, tail & mask);
  const staged = fifo + INJECTION_STAGED_OFFSET;
  // Word by word, as they were written: a wider load would have to wait until they are in the cache.
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
  // What is taken is processed, also where the engine thread has told of it and not yet said how far it is.
  if (load<u32>(fifo, INJECTION_OLDEST_OFFSET) == tail) return true;
  // SYNC processed (idle): pairs with engineRun(), on another thread; what is processed, that thread has done with.
  const head = isInline ? load<u32>(fifo, INJECTION_HEAD_OFFSET) : loadWord(fifo + INJECTION_HEAD_OFFSET);
  return head == tail;
}

/**
 * Owner: does the staged descriptor where it stands, if it is short and nothing is before it: neither unprocessed (C2)
 * nor with a callback to come, so that its own callbacks need no bit (C7: they are counted, by the caller).
 * An RMW without a callback waits for nothing: RMWs are unordered. A fence has one, and is done if nothing went wrong.
 * @returns TRANSFER_…; TRANSFER_LATER: it is right, and is to be injected
 */
export function submit(job: usize, fifo: usize, hasCallback: bool): u32 {
  const staged = fifo + INJECTION_STAGED_OFFSET;
  const kind = load<u32>(staged, DESCRIPTOR_KIND_OFFSET);
  const isInline = engineThread(job) == 0;
  // Not even looked at where its callback has to wait for another: that would have the engine thread wait for its line.
  const isFirst = (!hasCallback || load<u32>(fifo, INJECTION_PENDING_OFFSET) == 0) && isProcessed(fifo, isInline);
  if (kind == DESCRIPTOR_RMW) {
    const isNow = isFirst || !hasCallback;
    return submitted(change(job, staged, isNow ? SLICE_BYTES : 0), isNow);
  }
  if (kind == DESCRIPTOR_FENCE) {
    return isFirst && load<u32>(fifo, INJECTION_FAILED_OFFSET) == TRANSFER_DONE ? TRANSFER_DONE : TRANSFER_LATER;
  }
  const isNow = isFirst && load<u32>(staged, DESCRIPTOR_BYTES_OFFSET) <= (isInline ? SLICE_BYTES : SHORT_BYTES);
  return submitted(execute(job, staged, kind, 0, isNow ? SLICE_BYTES : 0), isNow);
}

/** What submit() gives for a result, of what was done or only looked at. */
function submitted(result: u32, isDone: bool): u32 {
  return result == TRANSFER_DONE && !isDone ? TRANSFER_LATER : result;
}

/**
 * Owner: moves bytes between a local pointer and an open region at once, without a descriptor. The caller sees to it that
 * nothing is before it (C2), that the local bytes are its own, and that they are no more than SHORT_BYTES.
 * @returns 1; 0: nothing is done, and submit() says what is not right
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

/** Notes what came of a transfer, for its completions and for the next fence. */
function note(fifo: usize, result: u32): void {
  store<u32>(fifo, 0, INJECTION_MOVED_OFFSET);
  store<u32>(fifo, result, INJECTION_RESULT_OFFSET);
  if (result == TRANSFER_DONE) return;
  store<u32>(fifo, load<u32>(fifo, INJECTION_REFUSED_OFFSET) + 1, INJECTION_REFUSED_OFFSET);
  if (load<u32>(fifo, INJECTION_FAILED_OFFSET) == TRANSFER_DONE) store<u32>(fifo, result, INJECTION_FAILED_OFFSET);
}

/**
 * Completions that are processed and not told of yet: a word of the mask, and its bits. Told together, word by word, at the
 * end of a run: each is a line of the cache that the owner polls (64 KiB puts through an engine thread: 0.77 → 0.88 of a copy, with what Rma spares of looks).
 */
let doneWord: u32 = 0;
let doneBits: u32 = 0;

/** Tells of the completions that are processed. */
function tellDone(fifo: usize): void {
  if (doneBits != 0) completionSet(fifo, doneWord, doneBits);
  doneBits = 0;
}

/** Whether a kind is that of a completion descriptor or a fence. */
function isCompletion(kind: u32): bool {
  return kind == DESCRIPTOR_COMPLETION || kind == DESCRIPTOR_FENCE;
}

/** Processes a completion descriptor or a fence, in a slot. */
function complete(fifo: usize, descriptor: usize, kind: u32, slot: u32): void {
  const isFence = kind == DESCRIPTOR_FENCE;
  const result = isFence ? load<u32>(fifo, INJECTION_FAILED_OFFSET) : load<u32>(fifo, INJECTION_RESULT_OFFSET);
  if (isFence) store<u32>(fifo, TRANSFER_DONE, INJECTION_FAILED_OFFSET);
  // Mostly it stands there: then the line stays where it is, too.
  if (load<u32>(descriptor, DESCRIPTOR_BYTES_OFFSET) != result) store<u32>(descriptor, result, DESCRIPTOR_BYTES_OFFSET);
  if (slot >>> 5 != doneWord) tellDone(fifo);
  doneWord = slot >>> 5;
  doneBits |= 1 << (slot & 31);
}

/** TRANSFER_… of the transfer before a descriptor, if it is to be done only behind one that was done; else TRANSFER_DONE. */
function isCutOff(fifo: usize, descriptor: usize, kind: u32): u32 {
  if (kind != DESCRIPTOR_RMW || (load<u32>(descriptor, DESCRIPTOR_BYTES_OFFSET) & RMW_BEHIND) == 0)
    return TRANSFER_DONE;
  return load<u32>(fifo, INJECTION_RESULT_OFFSET);
}

/**
 * Does the transfer of a descriptor, or a slice of it: `part` bytes of those that are `left`. Where its target has ended,
 * nothing of it is done.
 * @returns bytes that it has moved; NONE: a slice, and it is not over
 */
function proceed(job: usize, fifo: usize, descriptor: usize, kind: u32, left: u32, part: u32): u32 {
  const isUp = isOwnerUp(job, load<u32>(descriptor, DESCRIPTOR_REMOTE_INDEX_OFFSET));
  const before = load<u32>(fifo, INJECTION_MOVED_OFFSET);
  let result = isCutOff(fifo, descriptor, kind);
  if (result == TRANSFER_DONE) result = isUp ? execute(job, descriptor, kind, before, part) : TRANSFER_ENDED;
  if (result == TRANSFER_DONE && part < left) {
    store<u32>(fifo, before + part, INJECTION_MOVED_OFFSET);
    return NONE;
  }
  note(fifo, result);
  return result == TRANSFER_DONE ? part : 0;
}

/**
 * Processes descriptors in order, as long as they move no more than `most` bytes in all: SLICE_BYTES at the most, and then
 * a slice of what is longer; a word is 8. What is refused moves none.
 * @returns how many slots are left to process
 */
export function engineRun(job: usize, fifo: usize, most: u32): u32 {
  // SYNC inject (look): pairs with inject().
  return engineRunTo(job, fifo, loadWord(fifo + INJECTION_TAIL_OFFSET), most);
}

/** The same, up to a tail that was looked at sooner. */
export function engineRunTo(job: usize, fifo: usize, tail: u32, most: u32): u32 {
  const before = load<u32>(fifo, INJECTION_HEAD_OFFSET);
  if (before == tail) return 0;
  const mask = load<u32>(fifo, INJECTION_SLOTS_OFFSET) - 1;
  let head = before;
  let moved: u32 = 0;
  doneBits = 0; // a run that was broken off is no part of this one
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
  return tail - head;
}

/**
 * Owner, once the engine thread has ended: what that has not processed is not done any more, and its completions and fences
 * say so. It may have processed more than it could say: what the owner has taken of that is left as it is.
 */
export function engineGiveUp(fifo: usize): void {
  const mask = load<u32>(fifo, INJECTION_SLOTS_OFFSET) - 1;
  const tail = load<u32>(fifo, INJECTION_TAIL_OFFSET);
  const oldest = load<u32>(fifo, INJECTION_OLDEST_OFFSET);
  let head = load<u32>(fifo, INJECTION_HEAD_OFFSET);
  if (i32(oldest - head) > 0) head = oldest;
  for (; head != tail; head++) {
    completionClear(fifo, head & mask);
    const descriptor = slotOf(fifo, head & mask);
    const kind = load<u32>(descriptor, DESCRIPTOR_KIND_OFFSET);
    if (isCompletion(kind)) complete(fifo, descriptor, kind, head & mask);
    else note(fifo, TRANSFER_BROKEN);
  }
  tellDone(fifo);
  storeWord(fifo + INJECTION_HEAD_OFFSET, head);
}
