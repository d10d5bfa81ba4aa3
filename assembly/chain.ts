// Self-pacing transfers: chains of descriptors that hand each other on between two engines (P1–P9).
//
//   origin                                              target
//   window: [RGET i, REFILL, MOVE i] …                  window: [FETCH i + 1] …
//      RGET    ships an origin RGET, a FETCH, to   ──►     FETCH   ships the link whose place it names to the origin's
//      REFILL  tells that origin RGET what is next         window  ──►
//      MOVE    moves portion i, and counts it there
//      NOTICE  behind the last: tells the origin's core
//
// With depth d, the first d links are shipped at once, and link i has link i + d shipped. Of a window's slots at most
// 3 d + 2 are in use: link i + d is shipped once RGET i is processed, so there are the other two of link i, three of each of
// the d - 1 between them, and three of link i + d. So whoever ships finds room, and two engines never wait for each other.
//
// A window belongs to one transfer from windowOpen() to windowClose(). The origin closes its own once NOTICE has been
// processed, which is last; the target once its counter is at 0, and then all FETCHes are processed too: the last MOVE is in
// the link that the last of them has shipped. Where one side ends before, the other closes its window with descriptors in it:
// see windowClear().
import { engineCall, hasEnded, taskOf } from "./due";
import { transferPart } from "./engine";
import {
  BLOCK_FIRST_OFFSET,
  BLOCK_NEXT_OFFSET,
  BLOCK_TURN_OFFSET,
  BLOCK_WINDOWS_OFFSET,
  CONTEXT_TASK_OFFSET,
  CONTEXT_WINDOWS_OFFSET,
  DEPTH_MAX,
  DESCRIPTOR_BYTES_OFFSET,
  DESCRIPTOR_FETCH,
  DESCRIPTOR_KIND_OFFSET,
  DESCRIPTOR_LOCAL_GENERATION_OFFSET,
  DESCRIPTOR_LOCAL_INDEX_OFFSET,
  DESCRIPTOR_LOCAL_OFFSET_OFFSET,
  DESCRIPTOR_MOVE,
  DESCRIPTOR_NOTICE,
  DESCRIPTOR_REFILL,
  DESCRIPTOR_REMOTE_GENERATION_OFFSET,
  DESCRIPTOR_REMOTE_INDEX_OFFSET,
  DESCRIPTOR_REMOTE_OFFSET_OFFSET,
  DESCRIPTOR_RGET,
  DESCRIPTOR_SHIFT,
  DESCRIPTOR_SIZE,
  DESCRIPTOR_VALUE_OFFSET,
  LINK_COUNT_MAX,
  LINK_SIZE,
  LINK_SLOTS,
  NONE,
  SLICE_BYTES,
  TRANSFER_BROKEN,
  TRANSFER_DONE,
  TRANSFER_ENDED,
  TRANSFER_LOCAL_CLOSED,
  WINDOW_ALLOWED_OFFSET,
  WINDOW_AWAY_OFFSET,
  WINDOW_BIT_OFFSET,
  WINDOW_BYTES_OFFSET,
  WINDOW_CHAIN_GENERATION_OFFSET,
  WINDOW_CHAIN_INDEX_OFFSET,
  WINDOW_COUNT,
  WINDOW_DEPTH_OFFSET,
  WINDOW_FROM_GENERATION_OFFSET,
  WINDOW_FROM_INDEX_OFFSET,
  WINDOW_FROM_OFFSET_OFFSET,
  WINDOW_GENERATION_OFFSET,
  WINDOW_HEAD_OFFSET,
  WINDOW_LEFT_OFFSET,
  WINDOW_MOVED_OFFSET,
  WINDOW_OWN_GENERATION_OFFSET,
  WINDOW_OWN_INDEX_OFFSET,
  WINDOW_OWN_OFFSET_OFFSET,
  WINDOW_PASSED_OFFSET,
  WINDOW_PEER_ENDPOINT_OFFSET,
  WINDOW_PEER_GENERATION_OFFSET,
  WINDOW_PEER_INDEX_OFFSET,
  WINDOW_PEER_OFFSET_OFFSET,
  WINDOW_PEER_WINDOW_OFFSET,
  WINDOW_PORTION_OFFSET,
  WINDOW_RESULT_OFFSET,
  WINDOW_RGETS_OFFSET,
  WINDOW_RING_OFFSET,
  WINDOW_SIZE,
  WINDOW_SLOTS,
  WINDOW_SLOTS_OFFSET,
  WINDOW_STATUS_OFFSET,
  WINDOW_STOP_OFFSET,
  WINDOW_TAIL_OFFSET,
  WINDOW_TO_GENERATION_OFFSET,
  WINDOW_TO_INDEX_OFFSET,
  WINDOW_TO_OFFSET_OFFSET,
  WINDOW_WRONG_OFFSET,
} from "./layout";
import { regionOf, regionPlace } from "./region";
import { addWord, loadWord, ring, setBits, storeWord } from "./sync";

/** Pointer to a slot of a window. */
function slotAt(window: usize, position: u32): usize {
  return window + WINDOW_SLOTS_OFFSET + ((position & (WINDOW_SLOTS - 1)) << DESCRIPTOR_SHIFT);
}

/**
 * Owner: readies a window for one transfer, before its place is told to the other side. Its slots go on where they are: its
 * engine may be looking at them, on a thread of its own. Returns its generation.
 */
export function windowOpen(window: usize, allowed: u32): u32 {
  const generation = load<u32>(window, WINDOW_GENERATION_OFFSET) + 1;
  store<u32>(window, 0, WINDOW_MOVED_OFFSET);
  storeWord(window + WINDOW_PASSED_OFFSET, 0);
  store<u32>(window, TRANSFER_DONE, WINDOW_RESULT_OFFSET);
  storeWord(window + WINDOW_ALLOWED_OFFSET, allowed);
  storeWord(window + WINDOW_STOP_OFFSET, TRANSFER_DONE);
  storeWord(window + WINDOW_LEFT_OFFSET, 0);
  store<u32>(window, TRANSFER_DONE, WINDOW_WRONG_OFFSET);
  // SYNC window-peer (whose): pairs with chainWrite(), of the other side.
  storeWord(window + WINDOW_PEER_WINDOW_OFFSET, 0);
  // SYNC window (open): pairs with windowOf().
  storeWord(window + WINDOW_GENERATION_OFFSET, generation);
  return generation;
}

/** Owner: ends the transfer of a window. A transfer that is over has left nothing in it; else see windowClear(). */
export function windowClose(window: usize): void {
  // SYNC window (close): pairs with windowOf() and chainRun(). Once each engine that is at work now has ended its turn, no
  // engine ships to this window, counts in it, or processes its slots.
  storeWord(window + WINDOW_GENERATION_OFFSET, load<u32>(window, WINDOW_GENERATION_OFFSET) + 1);
}

/**
 * Owner: empties a window that is closed, and at which no engine is any more.
 * @returns 1: all that was left is its NOTICE, and what that tells is noted; else 0
 */
export function windowClear(window: usize): u32 {
  const head = load<u32>(window, WINDOW_HEAD_OFFSET);
  const descriptor = slotAt(window, head);
  // SYNC ship (left): pairs with ship() and chainNotice(), which nobody calls for it any more.
  const isLeft = head != loadWord(window + WINDOW_TAIL_OFFSET);
  const isOver = isLeft && load<u32>(descriptor, DESCRIPTOR_KIND_OFFSET) == DESCRIPTOR_NOTICE;
  if (isOver) noteEnd(window, descriptor);
  storeWord(window + WINDOW_TAIL_OFFSET, head);
  return u32(isOver);
}

/** Notes what a NOTICE tells, unless a portion was refused before. */
function noteEnd(window: usize, descriptor: usize): void {
  const result = load<u32>(descriptor, DESCRIPTOR_BYTES_OFFSET);
  if (load<u32>(window, WINDOW_RESULT_OFFSET) == TRANSFER_DONE) store<u32>(window, result, WINDOW_RESULT_OFFSET);
}

/** Whether a window may lie at an offset of a block: what is elsewhere is anything. */
function isPlace(offset: u32): bool {
  return offset >= BLOCK_WINDOWS_OFFSET && (offset - BLOCK_WINDOWS_OFFSET) % WINDOW_SIZE == 0;
}

/** Pointer to a window of somebody else, or 0 if it is not open, or not that one any more. */
function windowOf(job: usize, index: u32, generation: u32, offset: u32, own: u32): usize {
  const entry = regionOf(job, index, generation);
  if (entry == 0 || (own & 1) == 0 || !isPlace(offset)) return 0;
  const window = regionPlace(entry, offset, WINDOW_SIZE);
  if (window == 0) return 0;
  // SYNC window (look): pairs with windowOpen() and windowClose().
  return loadWord(window + WINDOW_GENERATION_OFFSET) == own ? window : 0;
}

/** The other window of a transfer, or 0. Not that of a task that has ended: its memory may soon be anybody's. */
function peerOf(job: usize, window: usize): usize {
  if (hasEnded(taskOf(job, load<u32>(window, WINDOW_PEER_ENDPOINT_OFFSET)))) return 0;
  return windowOf(
    job,
    load<u32>(window, WINDOW_PEER_INDEX_OFFSET),
    load<u32>(window, WINDOW_PEER_GENERATION_OFFSET),
    load<u32>(window, WINDOW_PEER_OFFSET_OFFSET),
    loadWord(window + WINDOW_PEER_WINDOW_OFFSET),
  );
}

/** Injects descriptors into the window of an endpoint, by a remote get whose payload they are (P3, P4, P5). */
function ship(job: usize, window: usize, endpoint: u32, from: usize, slots: u32): void {
  const tail = load<u32>(window, WINDOW_TAIL_OFFSET);
  for (let i: u32 = 0; i < slots; i++) {
    memory.copy(slotAt(window, tail + i), from + (i << DESCRIPTOR_SHIFT), DESCRIPTOR_SIZE);
  }
  // SYNC ship (ship): makes the descriptors visible; pairs with chainRun().
  storeWord(window + WINDOW_TAIL_OFFSET, tail + slots);
  engineCall(job, endpoint);
}

/** Sets a window's bit in the status register of its block, and wakes its owner. */
function tell(window: usize, task: usize): void {
  // SYNC window-over (tell): makes all that was moved and noted visible; pairs with the owner's look at the register.
  setBits(load<usize>(window, WINDOW_STATUS_OFFSET), load<u32>(window, WINDOW_BIT_OFFSET));
  ring(task);
}

/** Slots of link i of n, at this depth. */
function slotsOfLink(i: u32, n: u32, depth: u32): u32 {
  return 1 + u32(i + depth < n) + u32(i + 2 * depth < n) + u32(i + 1 == n);
}

/** Writes into a descriptor which link it stands for: its place, and how many slots it has. */
function nameLink(window: usize, descriptor: usize, i: u32, n: u32, depth: u32): void {
  store<u32>(descriptor, slotsOfLink(i, n, depth), DESCRIPTOR_BYTES_OFFSET);
  store<u32>(descriptor, load<u32>(window, WINDOW_CHAIN_INDEX_OFFSET), DESCRIPTOR_REMOTE_INDEX_OFFSET);
  store<u32>(descriptor, load<u32>(window, WINDOW_CHAIN_GENERATION_OFFSET), DESCRIPTOR_REMOTE_GENERATION_OFFSET);
  store<u32>(descriptor, i * LINK_SIZE, DESCRIPTOR_REMOTE_OFFSET_OFFSET);
}

/** Writes a FETCH of link i. */
function writeFetch(window: usize, descriptor: usize, i: u32, n: u32, depth: u32): void {
  store<u32>(descriptor, DESCRIPTOR_FETCH, DESCRIPTOR_KIND_OFFSET);
  nameLink(window, descriptor, i, n, depth);
}

/**
 * Target core: writes all links of a chain, as the window says, and the first origin RGETs (P2); has the first links
 * shipped by its own engine (P3). One call for any number of portions (P11).
 * @returns how many links; 0: nothing is done: there is no such chain, or not the origin's window, or no region for the links
 */
export function chainWrite(job: usize, window: usize): u32 {
  const bytes = load<u32>(window, WINDOW_BYTES_OFFSET);
  const portion = load<u32>(window, WINDOW_PORTION_OFFSET);
  const around = load<u32>(window, WINDOW_RING_OFFSET);
  const depth = load<u32>(window, WINDOW_DEPTH_OFFSET);
  const fromOffset = load<u32>(window, WINDOW_FROM_OFFSET_OFFSET);
  const toOffset = load<u32>(window, WINDOW_TO_OFFSET_OFFSET);
  if (bytes == 0 || portion == 0 || depth == 0 || depth > DEPTH_MAX) return 0;
  const n = (bytes - 1) / portion + 1;
  if (n > LINK_COUNT_MAX) return 0;
  const chainIndex = load<u32>(window, WINDOW_CHAIN_INDEX_OFFSET);
  const entry = regionOf(job, chainIndex, load<u32>(window, WINDOW_CHAIN_GENERATION_OFFSET));
  const chain = entry == 0 ? 0 : regionPlace(entry, 0, n * LINK_SIZE);
  const peer = peerOf(job, window);
  if (chain == 0 || peer == 0) return 0;
  for (let i: u32 = 0; i < n; i++) {
    let descriptor = chain + i * LINK_SIZE;
    if (i + depth < n) {
      store<u32>(descriptor, DESCRIPTOR_RGET, DESCRIPTOR_KIND_OFFSET);
      store<u32>(descriptor, i % depth, DESCRIPTOR_VALUE_OFFSET);
      descriptor += DESCRIPTOR_SIZE;
    }
    if (i + 2 * depth < n) {
      store<u32>(descriptor, DESCRIPTOR_REFILL, DESCRIPTOR_KIND_OFFSET);
      store<u32>(descriptor, i % depth, DESCRIPTOR_VALUE_OFFSET);
      nameLink(window, descriptor, i + 2 * depth, n, depth);
      descriptor += DESCRIPTOR_SIZE;
    }
    const at = i * portion;
    store<u32>(descriptor, DESCRIPTOR_MOVE, DESCRIPTOR_KIND_OFFSET);
    store<u32>(descriptor, i + 1 == n ? bytes - at : portion, DESCRIPTOR_BYTES_OFFSET);
    store<u32>(descriptor, load<u32>(window, WINDOW_FROM_INDEX_OFFSET), DESCRIPTOR_LOCAL_INDEX_OFFSET);
    store<u32>(descriptor, load<u32>(window, WINDOW_FROM_GENERATION_OFFSET), DESCRIPTOR_LOCAL_GENERATION_OFFSET);
    const place = around == 0 ? at : (i % around) * portion;
    store<u32>(descriptor, fromOffset + place, DESCRIPTOR_LOCAL_OFFSET_OFFSET);
    store<u32>(descriptor, load<u32>(window, WINDOW_TO_INDEX_OFFSET), DESCRIPTOR_REMOTE_INDEX_OFFSET);
    store<u32>(descriptor, load<u32>(window, WINDOW_TO_GENERATION_OFFSET), DESCRIPTOR_REMOTE_GENERATION_OFFSET);
    store<u32>(descriptor, toOffset + at, DESCRIPTOR_REMOTE_OFFSET_OFFSET);
    if (i + 1 == n) {
      descriptor += DESCRIPTOR_SIZE;
      store<u32>(descriptor, DESCRIPTOR_NOTICE, DESCRIPTOR_KIND_OFFSET);
      store<u32>(descriptor, TRANSFER_DONE, DESCRIPTOR_BYTES_OFFSET);
    }
  }
  storeWord(window + WINDOW_LEFT_OFFSET, bytes);
  // By direct put: the other window, and the links that its origin RGETs fetch first. Ordered by the first ship().
  store<u32>(peer, load<u32>(window, WINDOW_OWN_INDEX_OFFSET), WINDOW_PEER_INDEX_OFFSET);
  store<u32>(peer, load<u32>(window, WINDOW_OWN_GENERATION_OFFSET), WINDOW_PEER_GENERATION_OFFSET);
  store<u32>(peer, load<u32>(window, WINDOW_OWN_OFFSET_OFFSET), WINDOW_PEER_OFFSET_OFFSET);
  // SYNC window-peer (whose): pairs with chainBreak(): from here on, who breaks it off tells this side of it.
  storeWord(peer + WINDOW_PEER_WINDOW_OFFSET, load<u32>(window, WINDOW_GENERATION_OFFSET));
  for (let i: u32 = 0; i < depth && i + depth < n; i++) {
    writeFetch(window, peer + WINDOW_RGETS_OFFSET + (i << DESCRIPTOR_SHIFT), i + depth, n, depth);
  }
  const tail = load<u32>(window, WINDOW_TAIL_OFFSET);
  const first = depth < n ? depth : n;
  for (let i: u32 = 0; i < first; i++) writeFetch(window, slotAt(window, tail + i), i, n, depth);
  // SYNC ship (begin): pairs with chainRun().
  storeWord(window + WINDOW_TAIL_OFFSET, tail + first);
  return n;
}

/**
 * Target core: ships the last descriptor of a chain alone (P8), where no link is: nothing is moved, or all was in another way.
 * @param own generation of the origin's window, whose place the first three name
 * @param origin ordinal of the endpoint that owns it
 * @returns 1; 0: that window is not there any more
 */
export function chainNotice(
  job: usize,
  index: u32,
  generation: u32,
  offset: u32,
  own: u32,
  origin: u32,
  result: u32,
): u32 {
  const window = windowOf(job, index, generation, offset, own);
  if (window == 0) return 0;
  const tail = load<u32>(window, WINDOW_TAIL_OFFSET);
  const descriptor = slotAt(window, tail);
  store<u32>(descriptor, DESCRIPTOR_NOTICE, DESCRIPTOR_KIND_OFFSET);
  store<u32>(descriptor, result, DESCRIPTOR_BYTES_OFFSET);
  // SYNC ship (notice): pairs with chainRun().
  storeWord(window + WINDOW_TAIL_OFFSET, tail + 1);
  engineCall(job, origin);
  return 1;
}

/** Whether the engine can't go on in a window: its next portion is not staged yet, and its core has not given it up. */
function isHeld(window: usize, descriptor: usize): bool {
  if (load<u32>(descriptor, DESCRIPTOR_KIND_OFFSET) != DESCRIPTOR_MOVE) return false;
  // SYNC staged (look): pairs with the store of the core that stages.
  if (load<u32>(window, WINDOW_PASSED_OFFSET) < loadWord(window + WINDOW_ALLOWED_OFFSET)) return false;
  // SYNC stop (held): pairs with the store of the core that gives the transfer up.
  return loadWord(window + WINDOW_STOP_OFFSET) == TRANSFER_DONE;
}

/** Bytes of the next slice of a portion. */
function sliceOf(window: usize, descriptor: usize): u32 {
  const left = load<u32>(descriptor, DESCRIPTOR_BYTES_OFFSET) - load<u32>(window, WINDOW_MOVED_OFFSET);
  return left > SLICE_BYTES ? SLICE_BYTES : left;
}

/** Moves a slice of a portion, of `part` bytes; returns whether that was the last of it. `context` is its owner. */
function moveSlice(job: usize, window: usize, descriptor: usize, part: u32, context: usize): bool {
  const bytes = load<u32>(descriptor, DESCRIPTOR_BYTES_OFFSET);
  const moved = load<u32>(window, WINDOW_MOVED_OFFSET);
  const peer = peerOf(job, window);
  // SYNC stop (look): pairs with the store of the core that gives the transfer up, on either side.
  let result = loadWord(window + WINDOW_STOP_OFFSET);
  if (result == TRANSFER_DONE) result = peer == 0 ? TRANSFER_ENDED : loadWord(peer + WINDOW_STOP_OFFSET);
  if (result == TRANSFER_DONE) result = transferPart(job, descriptor, true, moved, part);
  // SYNC window-list (closed): pairs with the owner's store, which precedes the closing of its staged regions. A closed
  // region is then the end of the transfer, not a mistake.
  if (result == TRANSFER_LOCAL_CLOSED && loadWord(context + CONTEXT_WINDOWS_OFFSET) == 0) result = TRANSFER_ENDED;
  if (result == TRANSFER_DONE && bytes - moved > part) {
    store<u32>(window, moved + part, WINDOW_MOVED_OFFSET);
    return false;
  }
  store<u32>(window, 0, WINDOW_MOVED_OFFSET);
  // SYNC passed (passed): pairs with the core that stages the next portion in this one's place; it may wait for that.
  storeWord(window + WINDOW_PASSED_OFFSET, load<u32>(window, WINDOW_PASSED_OFFSET) + 1);
  if (loadWord(window + WINDOW_ALLOWED_OFFSET) != NONE) ring(load<usize>(context, CONTEXT_TASK_OFFSET));
  if (result != TRANSFER_DONE && load<u32>(window, WINDOW_RESULT_OFFSET) == TRANSFER_DONE) {
    store<u32>(window, result, WINDOW_RESULT_OFFSET);
  }
  if (peer == 0) return true;
  if (result != TRANSFER_DONE && load<u32>(peer, WINDOW_WRONG_OFFSET) == TRANSFER_DONE) {
    store<u32>(peer, result, WINDOW_WRONG_OFFSET);
  }
  // SYNC bytes-left (count): makes the portion visible; pairs with chainBreak().
  if (addWord(peer + WINDOW_LEFT_OFFSET, -bytes) == bytes) {
    tell(peer, taskOf(job, load<u32>(window, WINDOW_PEER_ENDPOINT_OFFSET)));
  }
  return true;
}

/** Processes a descriptor of a window that is no MOVE; `context` is its owner. */
function processOne(job: usize, window: usize, descriptor: usize, context: usize): void {
  const kind = load<u32>(descriptor, DESCRIPTOR_KIND_OFFSET);
  if (kind == DESCRIPTOR_NOTICE) {
    noteEnd(window, descriptor);
    tell(window, load<usize>(context, CONTEXT_TASK_OFFSET));
    return;
  }
  if (kind == DESCRIPTOR_FETCH) {
    const slots = load<u32>(descriptor, DESCRIPTOR_BYTES_OFFSET);
    const index = load<u32>(descriptor, DESCRIPTOR_REMOTE_INDEX_OFFSET);
    const entry = regionOf(job, index, load<u32>(descriptor, DESCRIPTOR_REMOTE_GENERATION_OFFSET));
    if (entry == 0 || slots > LINK_SLOTS) return;
    const link = regionPlace(entry, load<u32>(descriptor, DESCRIPTOR_REMOTE_OFFSET_OFFSET), slots << DESCRIPTOR_SHIFT);
    if (link == 0 || (link & 3) != 0) return;
    const peer = peerOf(job, window);
    if (peer != 0) ship(job, peer, load<u32>(window, WINDOW_PEER_ENDPOINT_OFFSET), link, slots);
    return;
  }
  const number = load<u32>(descriptor, DESCRIPTOR_VALUE_OFFSET);
  if (number >= DEPTH_MAX) return;
  const rget = window + WINDOW_RGETS_OFFSET + (number << DESCRIPTOR_SHIFT);
  if (kind == DESCRIPTOR_RGET) {
    const peer = peerOf(job, window);
    if (peer != 0) ship(job, peer, load<u32>(window, WINDOW_PEER_ENDPOINT_OFFSET), rget, 1);
  } else if (kind == DESCRIPTOR_REFILL) {
    memory.copy(rget + DESCRIPTOR_BYTES_OFFSET, descriptor + DESCRIPTOR_BYTES_OFFSET, DESCRIPTOR_VALUE_OFFSET - 4);
  }
}

/** Pointer to a window of a block. */
function windowAt(block: usize, number: u32): usize {
  return block + BLOCK_WINDOWS_OFFSET + number * WINDOW_SIZE;
}

/** Whether a window belongs to a transfer of this memory: what is left in others is nobody's. */
function isOpen(window: usize): bool {
  // SYNC window (engine): pairs with windowOpen() and windowClose().
  return (loadWord(window + WINDOW_GENERATION_OFFSET) & 1) != 0 && load<u32>(window, WINDOW_AWAY_OFFSET) == 0;
}

/** Of chainRun(): bytes that it may still move, and how many windows have something left. */
let allowance: u32 = 0;
let remaining: u32 = 0;

/**
 * Descriptors of a window, MOVEs aside, that are processed in one turn: the other side, on another core, may ship as fast as
 * this one looks, and its owner would not come back from its advance().
 */
const TURN_SLOTS: u32 = 4 * WINDOW_SLOTS;

/** Processes what is in a window, in order, as long as it may. Returns whether it has moved anything. */
function windowRun(job: usize, window: usize, context: usize): bool {
  let hasMoved = false;
  let head = load<u32>(window, WINDOW_HEAD_OFFSET);
  let others = TURN_SLOTS;
  // SYNC ship (look): pairs with ship() and chainWrite(). Anew each time: what was processed may have had more shipped.
  while (head != loadWord(window + WINDOW_TAIL_OFFSET)) {
    const descriptor = slotAt(window, head);
    if (load<u32>(descriptor, DESCRIPTOR_KIND_OFFSET) != DESCRIPTOR_MOVE) {
      if (others == 0) {
        remaining++;
        break;
      }
      others--;
      head++;
      // Whoever is told by it may close this window, and open it again: it is not touched after that.
      store<u32>(window, head, WINDOW_HEAD_OFFSET);
      processOne(job, window, descriptor, context);
      continue;
    }
    if (isHeld(window, descriptor)) break;
    const part = sliceOf(window, descriptor);
    if (part > allowance) {
      remaining++;
      break;
    }
    allowance -= part;
    hasMoved = true;
    if (!moveSlice(job, window, descriptor, part, context)) continue;
    head++;
    store<u32>(window, head, WINDOW_HEAD_OFFSET);
  }
  return hasMoved;
}

/**
 * Engine: processes what is in the windows of a context, in order in each, as long as it moves no more than `most` bytes in
 * all: SLICE_BYTES at the most, and then a slice of a portion that is longer. The first window that could move nothing, for
 * want of room, is the first of all the next time: so each has its turn, whatever others move.
 * @returns how many windows have something left that can be processed at once
 */
export function chainRun(job: usize, context: usize, most: u32): u32 {
  // SYNC window-list (blocks): pairs with the store of the owner, who adds blocks and takes none away.
  const list = <usize>loadWord(context + CONTEXT_WINDOWS_OFFSET);
  if (list == 0) return 0;
  allowance = most;
  remaining = 0;
  const begin = load<usize>(list, BLOCK_FIRST_OFFSET);
  const firstBlock = begin == 0 ? list : begin;
  const first = load<u32>(list, BLOCK_TURN_OFFSET);
  let block = firstBlock;
  let number = first;
  let isPassed = false;
  do {
    const window = windowAt(block, number);
    const left = remaining;
    const hasMoved = isOpen(window) && windowRun(job, window, context);
    if (!isPassed && !hasMoved && remaining != left) {
      isPassed = true;
      store<usize>(list, block, BLOCK_FIRST_OFFSET);
      store<u32>(list, number, BLOCK_TURN_OFFSET);
    }
    number = (number + 1) % WINDOW_COUNT;
    if (number == 0) {
      const next = <usize>loadWord(block + BLOCK_NEXT_OFFSET);
      block = next == 0 ? list : next;
    }
  } while (block != firstBlock || number != first);
  return remaining;
}

/** Whether the engine would find something to process in the windows of a context. */
export function chainLeft(context: usize): bool {
  for (let block = <usize>loadWord(context + CONTEXT_WINDOWS_OFFSET); block != 0; ) {
    for (let number: u32 = 0; number < WINDOW_COUNT; number++) {
      const window = windowAt(block, number);
      if (!isOpen(window)) continue;
      const head = load<u32>(window, WINDOW_HEAD_OFFSET);
      if (head != loadWord(window + WINDOW_TAIL_OFFSET) && !isHeld(window, slotAt(window, head))) return true;
    }
    block = <usize>loadWord(block + BLOCK_NEXT_OFFSET);
  }
  return false;
}

/**
 * Origin core, once the engine thread has ended: tells the target, if that has begun the chain, that nothing more of it comes.
 * @returns 1; 0: it has not begun
 */
export function chainBreak(job: usize, window: usize): u32 {
  // SYNC window-peer (begun): pairs with chainWrite().
  if (loadWord(window + WINDOW_PEER_WINDOW_OFFSET) == 0) return 0;
  const peer = peerOf(job, window);
  // SYNC bytes-left (broken): pairs with moveSlice(). If all bytes are counted, the peer knows it or finds out by itself, and
  // its window may be reused at any moment. If not, only this side can still end the transfer.
  if (peer == 0 || loadWord(peer + WINDOW_LEFT_OFFSET) == 0) return 1;
  store<u32>(peer, TRANSFER_BROKEN, WINDOW_WRONG_OFFSET);
  storeWord(peer + WINDOW_LEFT_OFFSET, 0);
  tell(peer, taskOf(job, load<u32>(window, WINDOW_PEER_ENDPOINT_OFFSET)));
  return 1;
}
