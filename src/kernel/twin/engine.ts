// Twin of assembly/engine.ts: same functions, same order; see the comments there.
import * as L from "../../../assembly/layout.js";
import type { SharedAtomics } from "../atomics.js";
import type { Memory } from "../kernel.js";
import type { Completion } from "./completion.js";
import type { Due } from "./due.js";
import type { Region } from "./region.js";

/** Most bytes for a loop over words: copyWithin() costs 16 ns for any size (192 B: as fast). */
const WORDS_MAX = 128;
/** Most bytes for a loop over bytes (16 B: 15 ns). */
const BYTES_MAX = 15;

/** The 64-bit number of two words. */
function wideOf(low: number, high: number): bigint {
  return (BigInt(high >>> 0) << 32n) | BigInt(low >>> 0);
}

export type Engine = ReturnType<typeof twinEngine>;

export function twinEngine(
  { words, bytes }: Memory,
  sync: SharedAtomics,
  { engineThread }: Due,
  regions: Region,
  completion: Completion,
) {
  const { changeWide, changeWord, loadWord, storeWord } = sync;
  const { isRemote, isOwnerUp, regionOf, regionPlace, ringOwner } = regions;
  const { completionClear, completionSet, slotOf } = completion;

  function move(to: number, from: number, length: number): void {
    if (length <= WORDS_MAX && ((to | from | length) & 3) === 0) {
      const toWord = to >>> 2;
      const fromWord = from >>> 2;
      const count = length >>> 2;
      if (to <= from) for (let i = 0; i < count; i++) words[toWord + i] = words[fromWord + i];
      else for (let i = count - 1; i >= 0; i--) words[toWord + i] = words[fromWord + i];
    } else if (length <= BYTES_MAX) {
      if (to <= from) for (let i = 0; i < length; i++) bytes[to + i] = bytes[from + i];
      else for (let i = length - 1; i >= 0; i--) bytes[to + i] = bytes[from + i];
    } else bytes.copyWithin(to, from, from + length);
  }

  function transferPart(job: number, descriptor: number, isPut: boolean, moved: number, most: number): number {
    const own = descriptor >>> 2;
    const length = words[own + (L.DESCRIPTOR_BYTES_OFFSET >>> 2)] >>> 0;
    const localIndex = words[own + (L.DESCRIPTOR_LOCAL_INDEX_OFFSET >>> 2)] >>> 0;
    const localGeneration = words[own + (L.DESCRIPTOR_LOCAL_GENERATION_OFFSET >>> 2)];
    const localOffset = words[own + (L.DESCRIPTOR_LOCAL_OFFSET_OFFSET >>> 2)] >>> 0;
    const remoteIndex = words[own + (L.DESCRIPTOR_REMOTE_INDEX_OFFSET >>> 2)] >>> 0;
    const remoteGeneration = words[own + (L.DESCRIPTOR_REMOTE_GENERATION_OFFSET >>> 2)];
    const remoteOffset = words[own + (L.DESCRIPTOR_REMOTE_OFFSET_OFFSET >>> 2)] >>> 0;
    const localEntry = regionOf(job, localIndex, localGeneration);
    if (localEntry === 0) return L.TRANSFER_LOCAL_CLOSED;
    const local = regionPlace(localEntry, localOffset, length);
    if (local === 0) return L.TRANSFER_LOCAL_BOUNDS;
    const remoteEntry = regionOf(job, remoteIndex, remoteGeneration);
    if (remoteEntry === 0) return L.TRANSFER_REMOTE_CLOSED;
    const remote = regionPlace(remoteEntry, remoteOffset, length);
    if (remote === 0) return L.TRANSFER_REMOTE_BOUNDS;
    if (moved > length) return L.TRANSFER_INVALID;
    const part = Math.min(length - moved, most);
    const to = isPut ? remote : local;
    const from = isPut ? local : remote;
    const done = (to - from) >>> 0 < length ? length - moved - part : moved;
    move(to + done, from + done, part);
    return L.TRANSFER_DONE;
  }

  function change(job: number, descriptor: number, most: number): number {
    const own = descriptor >>> 2;
    const operation = words[own + (L.DESCRIPTOR_BYTES_OFFSET >>> 2)];
    const localIndex = words[own + (L.DESCRIPTOR_LOCAL_INDEX_OFFSET >>> 2)] >>> 0;
    const localGeneration = words[own + (L.DESCRIPTOR_LOCAL_GENERATION_OFFSET >>> 2)];
    const localOffset = words[own + (L.DESCRIPTOR_LOCAL_OFFSET_OFFSET >>> 2)] >>> 0;
    const remoteIndex = words[own + (L.DESCRIPTOR_REMOTE_INDEX_OFFSET >>> 2)] >>> 0;
    const remoteGeneration = words[own + (L.DESCRIPTOR_REMOTE_GENERATION_OFFSET >>> 2)];
    const remoteOffset = words[own + (L.DESCRIPTOR_REMOTE_OFFSET_OFFSET >>> 2)] >>> 0;
    const length = (operation & L.RMW_WIDE) !== 0 ? 8 : 4;
    const what = operation & L.RMW_OPERATION_MASK;
    const known = L.RMW_OPERATION_MASK | L.RMW_FETCH | L.RMW_COMPARE | L.RMW_WIDE | L.RMW_NOTIFY | L.RMW_BEHIND;
    if (what < L.RMW_SET || what > L.RMW_XOR || (operation & ~known) !== 0) return L.TRANSFER_INVALID;
    const fetches = (operation & L.RMW_FETCH) !== 0;
    let local = 0;
    if (fetches) {
      const localEntry = regionOf(job, localIndex, localGeneration);
      if (localEntry === 0) return L.TRANSFER_LOCAL_CLOSED;
      local = regionPlace(localEntry, localOffset, length);
      if (local === 0) return L.TRANSFER_LOCAL_BOUNDS;
    }
    const remoteEntry = regionOf(job, remoteIndex, remoteGeneration);
    if (remoteEntry === 0) return L.TRANSFER_REMOTE_CLOSED;
    const remote = regionPlace(remoteEntry, remoteOffset, length);
    if (remote === 0) return L.TRANSFER_REMOTE_BOUNDS;
    if (((remote | local) & (length - 1)) !== 0) return L.TRANSFER_INVALID;
    if (most === 0) return L.TRANSFER_DONE;
    const compares = (operation & L.RMW_COMPARE) !== 0;
    const value = words[own + (L.DESCRIPTOR_VALUE_OFFSET >>> 2)];
    const test = words[own + (L.DESCRIPTOR_TEST_OFFSET >>> 2)];
    if (length === 4) {
      const old = changeWord(remote, what, value, test, compares);
      if (fetches) words[local >>> 2] = old;
    } else {
      const wideValue = wideOf(value, words[own + (L.DESCRIPTOR_VALUE_OFFSET >>> 2) + 1]);
      const wideTest = wideOf(test, words[own + (L.DESCRIPTOR_TEST_OFFSET >>> 2) + 1]);
      const old = changeWide(remote, what, wideValue, wideTest, compares);
      if (fetches) {
        words[local >>> 2] = Number(old & 0xffffffffn);
        words[(local + 4) >>> 2] = Number(old >> 32n);
      }
    }
    // SYNC park (word)
    if ((operation & L.RMW_NOTIFY) !== 0) ringOwner(job, remoteIndex);
    return L.TRANSFER_DONE;
  }

  function execute(job: number, descriptor: number, kind: number, moved: number, most: number): number {
    let result = L.TRANSFER_INVALID;
    if (kind === L.DESCRIPTOR_RMW) result = change(job, descriptor, most);
    else if (kind === L.DESCRIPTOR_PUT || kind === L.DESCRIPTOR_GET) {
      result = transferPart(job, descriptor, kind === L.DESCRIPTOR_PUT, moved, most);
    }
    return result === L.TRANSFER_REMOTE_CLOSED ? elsewhere(job, descriptor, kind) : result;
  }

  function elsewhere(job: number, descriptor: number, kind: number): number {
    const own = descriptor >>> 2;
    if (!isRemote(job, words[own + (L.DESCRIPTOR_REMOTE_INDEX_OFFSET >>> 2)])) return L.TRANSFER_REMOTE_CLOSED;
    const bytes = (words[own + (L.DESCRIPTOR_BYTES_OFFSET >>> 2)] & L.RMW_WIDE) !== 0 ? 8 : 4;
    const isAligned = (words[own + (L.DESCRIPTOR_REMOTE_OFFSET_OFFSET >>> 2)] & (bytes - 1)) === 0;
    return kind !== L.DESCRIPTOR_RMW || isAligned ? L.TRANSFER_AWAY : L.TRANSFER_INVALID;
  }

  function perform(job: number, descriptor: number, most: number): number {
    const result = execute(job, descriptor, words[(descriptor + L.DESCRIPTOR_KIND_OFFSET) >>> 2], 0, most >>> 0);
    return most === 0 && result === L.TRANSFER_AWAY ? L.TRANSFER_DONE : result;
  }

  function hasRoom(fifo: number, taken: number): boolean {
    const tail = words[(fifo + L.INJECTION_TAIL_OFFSET) >>> 2];
    const slots = words[(fifo + L.INJECTION_SLOTS_OFFSET) >>> 2];
    if (((tail - words[(fifo + L.INJECTION_OLDEST_OFFSET) >>> 2]) >>> 0) + taken <= slots) return true;
    if (words[(fifo + L.INJECTION_PENDING_OFFSET) >>> 2] !== 0) return false;
    // SYNC processed (look)
    const head = loadWord(fifo + L.INJECTION_HEAD_OFFSET);
    words[(fifo + L.INJECTION_OLDEST_OFFSET) >>> 2] = head;
    return ((tail - head) >>> 0) + taken <= slots;
  }

  function inject(fifo: number, completions: number): number {
    if (!hasRoom(fifo, 1 + completions)) return L.NONE;
    const tail = words[(fifo + L.INJECTION_TAIL_OFFSET) >>> 2];
    const mask = words[(fifo + L.INJECTION_SLOTS_OFFSET) >>> 2] - 1;
    const descriptor = slotOf(fifo, tail & mask) >>> 2;
    const staged = (fifo + L.INJECTION_STAGED_OFFSET) >>> 2;
    for (let i = 0; i < L.DESCRIPTOR_WORDS; i++) words[descriptor + i] = words[staged + i];
    const isFence = Number(words[staged + (L.DESCRIPTOR_KIND_OFFSET >>> 2)] === L.DESCRIPTOR_FENCE);
    for (let i = 1; i <= completions; i++) {
      const place = slotOf(fifo, (tail + i) & mask);
      words[(place + L.DESCRIPTOR_KIND_OFFSET) >>> 2] = L.DESCRIPTOR_COMPLETION;
      words[(place + L.DESCRIPTOR_BYTES_OFFSET) >>> 2] = L.TRANSFER_DONE;
    }
    words[(fifo + L.INJECTION_PENDING_OFFSET) >>> 2] += isFence + completions;
    // SYNC inject (inject)
    storeWord(fifo + L.INJECTION_TAIL_OFFSET, tail + 1 + completions);
    return tail & mask;
  }

  function isProcessed(fifo: number, isInline: boolean): boolean {
    const tail = words[(fifo + L.INJECTION_TAIL_OFFSET) >>> 2];
    if (words[(fifo + L.INJECTION_OLDEST_OFFSET) >>> 2] === tail) return true;
    // SYNC processed (idle)
    const head = isInline ? words[(fifo + L.INJECTION_HEAD_OFFSET) >>> 2] : loadWord(fifo + L.INJECTION_HEAD_OFFSET);
    return head === tail;
  }

  function submit(job: number, fifo: number, hasCallback: boolean): number {
    const staged = fifo + L.INJECTION_STAGED_OFFSET;
    const kind = words[(staged + L.DESCRIPTOR_KIND_OFFSET) >>> 2];
    const isInline = engineThread(job) === 0;
    const mayBeFirst = !hasCallback || words[(fifo + L.INJECTION_PENDING_OFFSET) >>> 2] === 0;
    const isFirst = mayBeFirst && isProcessed(fifo, isInline);
    if (kind === L.DESCRIPTOR_RMW) {
      const isNow = isFirst || !hasCallback;
      return submitted(execute(job, staged, kind, 0, isNow ? L.SLICE_BYTES : 0), isNow);
    }
    if (kind === L.DESCRIPTOR_FENCE) {
      const isRight = isFirst && words[(fifo + L.INJECTION_FAILED_OFFSET) >>> 2] === L.TRANSFER_DONE;
      return isRight ? L.TRANSFER_DONE : L.TRANSFER_LATER;
    }
    const longest = isInline ? L.SLICE_BYTES : L.SHORT_BYTES;
    const isNow = isFirst && words[(staged + L.DESCRIPTOR_BYTES_OFFSET) >>> 2] >>> 0 <= longest;
    return submitted(execute(job, staged, kind, 0, isNow ? L.SLICE_BYTES : 0), isNow);
  }

  function submitted(result: number, isDone: boolean): number {
    if (result === L.TRANSFER_AWAY) return L.TRANSFER_LATER;
    return result === L.TRANSFER_DONE && !isDone ? L.TRANSFER_LATER : result;
  }

  function moveNow(
    job: number,
    index: number,
    generation: number,
    offset: number,
    local: number,
    length: number,
    isPut: boolean,
  ): number {
    const entry = regionOf(job, index, generation);
    const remote = entry === 0 ? 0 : regionPlace(entry, offset, length);
    if (remote === 0) return 0;
    if (isPut) move(remote, local, length);
    else move(local, remote, length);
    return 1;
  }

  function changeNow(
    job: number,
    index: number,
    generation: number,
    offset: number,
    operation: number,
    value: number,
    local: number,
  ): number {
    const entry = regionOf(job, index, generation);
    const remote = entry === 0 ? 0 : regionPlace(entry, offset, 4);
    if (remote === 0 || (remote & 3) !== 0) return 0;
    const old = changeWord(remote, operation & L.RMW_OPERATION_MASK, value, 0, false);
    if (local !== 0) words[local >>> 2] = old;
    return 1;
  }

  function note(fifo: number, result: number): void {
    words[(fifo + L.INJECTION_MOVED_OFFSET) >>> 2] = 0;
    words[(fifo + L.INJECTION_RESULT_OFFSET) >>> 2] = result;
    if (result === L.TRANSFER_DONE) return;
    words[(fifo + L.INJECTION_REFUSED_OFFSET) >>> 2]++;
    const failed = (fifo + L.INJECTION_FAILED_OFFSET) >>> 2;
    if (words[failed] === L.TRANSFER_DONE) words[failed] = result;
  }

  let doneWord = 0;
  let doneBits = 0;

  function tellDone(fifo: number): void {
    if (doneBits !== 0) completionSet(fifo, doneWord, doneBits);
    doneBits = 0;
  }

  function isCompletion(kind: number): boolean {
    return kind === L.DESCRIPTOR_COMPLETION || kind === L.DESCRIPTOR_FENCE;
  }

  function complete(fifo: number, descriptor: number, kind: number, slot: number): void {
    const isFence = kind === L.DESCRIPTOR_FENCE;
    const result = words[(fifo + (isFence ? L.INJECTION_FAILED_OFFSET : L.INJECTION_RESULT_OFFSET)) >>> 2];
    if (isFence) words[(fifo + L.INJECTION_FAILED_OFFSET) >>> 2] = L.TRANSFER_DONE;
    const told = (descriptor + L.DESCRIPTOR_BYTES_OFFSET) >>> 2;
    if (words[told] !== result) words[told] = result;
    if (slot >>> 5 !== doneWord) tellDone(fifo);
    doneWord = slot >>> 5;
    doneBits |= 1 << (slot & 31);
  }

  function precedingResult(fifo: number, descriptor: number, kind: number): number {
    if (kind !== L.DESCRIPTOR_RMW) return L.TRANSFER_DONE;
    const isBehind = (words[(descriptor + L.DESCRIPTOR_BYTES_OFFSET) >>> 2] & L.RMW_BEHIND) !== 0;
    return isBehind ? words[(fifo + L.INJECTION_RESULT_OFFSET) >>> 2] : L.TRANSFER_DONE;
  }

  function proceed(job: number, fifo: number, descriptor: number, kind: number, left: number, part: number): number {
    const isUp = isOwnerUp(job, words[(descriptor + L.DESCRIPTOR_REMOTE_INDEX_OFFSET) >>> 2]);
    const before = words[(fifo + L.INJECTION_MOVED_OFFSET) >>> 2] >>> 0;
    let result = precedingResult(fifo, descriptor, kind);
    if (result === L.TRANSFER_DONE) result = isUp ? execute(job, descriptor, kind, before, part) : L.TRANSFER_ENDED;
    if (result === L.TRANSFER_DONE && part < left) {
      words[(fifo + L.INJECTION_MOVED_OFFSET) >>> 2] = before + part;
      return L.NONE;
    }
    if (result === L.TRANSFER_AWAY) {
      words[(fifo + L.INJECTION_AWAY_OFFSET) >>> 2] = L.AWAY_FOUND;
      return L.NONE;
    }
    note(fifo, result);
    return result === L.TRANSFER_DONE ? part : 0;
  }

  function engineRun(job: number, fifo: number, most: number): number {
    // SYNC inject (look)
    return engineRunTo(job, fifo, loadWord(fifo + L.INJECTION_TAIL_OFFSET), most);
  }

  function engineRunTo(job: number, fifo: number, tail: number, most: number): number {
    const before = words[(fifo + L.INJECTION_HEAD_OFFSET) >>> 2];
    if (before === tail || words[(fifo + L.INJECTION_AWAY_OFFSET) >>> 2] !== L.AWAY_NONE) return 0;
    const mask = words[(fifo + L.INJECTION_SLOTS_OFFSET) >>> 2] - 1;
    let head = before;
    let rest = most >>> 0;
    doneBits = 0; // a run that was broken off is no part of this one
    for (; head !== tail; head = (head + 1) | 0) {
      const descriptor = slotOf(fifo, head & mask);
      const kind = words[(descriptor + L.DESCRIPTOR_KIND_OFFSET) >>> 2];
      if (isCompletion(kind)) {
        complete(fifo, descriptor, kind, head & mask);
        continue;
      }
      const bytes = kind === L.DESCRIPTOR_RMW ? 8 : words[(descriptor + L.DESCRIPTOR_BYTES_OFFSET) >>> 2];
      const left = (bytes - words[(fifo + L.INJECTION_MOVED_OFFSET) >>> 2]) >>> 0;
      const part = Math.min(left, L.SLICE_BYTES);
      if (part > rest) break;
      const moved = proceed(job, fifo, descriptor, kind, left, part);
      if (moved === L.NONE) break;
      rest -= moved;
    }
    tellDone(fifo);
    // SYNC processed (done)
    if (head !== before) storeWord(fifo + L.INJECTION_HEAD_OFFSET, head);
    words[(fifo + L.INJECTION_AHEAD_OFFSET) >>> 2] = tail - head;
    return words[(fifo + L.INJECTION_AWAY_OFFSET) >>> 2] === L.AWAY_NONE ? (tail - head) >>> 0 : 0;
  }

  function engineCarried(fifo: number, result: number): void {
    note(fifo, result);
    words[(fifo + L.INJECTION_AWAY_OFFSET) >>> 2] = L.AWAY_NONE;
    words[(fifo + L.INJECTION_AHEAD_OFFSET) >>> 2] = 0;
    // SYNC processed (carried)
    storeWord(fifo + L.INJECTION_HEAD_OFFSET, (words[(fifo + L.INJECTION_HEAD_OFFSET) >>> 2] + 1) | 0);
  }

  function engineGiveUp(job: number, fifo: number): void {
    const mask = words[(fifo + L.INJECTION_SLOTS_OFFSET) >>> 2] - 1;
    const tail = words[(fifo + L.INJECTION_TAIL_OFFSET) >>> 2];
    const oldest = words[(fifo + L.INJECTION_OLDEST_OFFSET) >>> 2];
    let head = words[(fifo + L.INJECTION_HEAD_OFFSET) >>> 2];
    if (((oldest - head) | 0) > 0) head = oldest;
    words[(fifo + L.INJECTION_AWAY_OFFSET) >>> 2] = L.AWAY_NONE;
    for (; head !== tail; head = (head + 1) | 0) {
      completionClear(fifo, head & mask);
      const descriptor = slotOf(fifo, head & mask);
      const kind = words[(descriptor + L.DESCRIPTOR_KIND_OFFSET) >>> 2];
      if (isCompletion(kind)) complete(fifo, descriptor, kind, head & mask);
      else {
        const isUp = isOwnerUp(job, words[(descriptor + L.DESCRIPTOR_REMOTE_INDEX_OFFSET) >>> 2]);
        note(fifo, isUp ? L.TRANSFER_BROKEN : L.TRANSFER_ENDED);
      }
    }
    tellDone(fifo);
    storeWord(fifo + L.INJECTION_HEAD_OFFSET, head);
  }

  return {
    transferPart,
    perform,
    inject,
    submit,
    moveNow,
    changeNow,
    engineRun,
    engineRunTo,
    engineCarried,
    engineGiveUp,
  };
}
