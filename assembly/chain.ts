// Self-pacing transfers: chains of descriptors, each of which ships the next one between two engines (P1–P9). The engine at
// the other side injects into a remote-get FIFO (rget FIFO); each side of a transfer has one.
//
//   origin                                              target
//   rget FIFO: [RGET i, REFILL, MOVE i] …               rget FIFO: [FETCH i + 1] …
//      RGET    ships an origin RGET, a FETCH, to   ──►     FETCH   ships the link that it names to the origin's
//      REFILL  tells that origin RGET what is next                 rget FIFO  ──►
//      MOVE    moves fragment i, and counts it there
//      NOTICE  after the last link: tells the origin's core
//
// With depth d, the first d links are shipped at once, and link i causes link i + d to be shipped. An rget FIFO needs at
// most 3 d + 2 slots: link i + d is shipped once RGET i is processed. Then it holds the other two of link i, three of each
// of the d - 1 links between, and three of link i + d. So an engine that ships always finds room, and no engine waits.
//
// An rget FIFO belongs to one transfer from rgetOpen() to rgetClose(). The origin closes its rget FIFO once NOTICE,
// its last descriptor, has been processed. The target closes its rget FIFO once its counter is 0. Then all its FETCHes are
// processed: the last MOVE is in the link that the last FETCH shipped. If one side ends sooner, the other closes its rget
// FIFO with descriptors left in it: see rgetClear().
import { engineCall, hasEnded, taskOf } from "./due";
import { transferPart } from "./engine";
import {
  AWAY_BEGUN,
  AWAY_OVER,
  BLOCK_FIRST_OFFSET,
  BLOCK_NEXT_OFFSET,
  BLOCK_RGET_FIFOS_OFFSET,
  BLOCK_TURN_OFFSET,
  CONTEXT_RGET_FIFOS_OFFSET,
  CONTEXT_TASK_OFFSET,
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
  RGET_FIFO_ALLOWED_OFFSET,
  RGET_FIFO_AWAY_OFFSET,
  RGET_FIFO_BIT_OFFSET,
  RGET_FIFO_BYTES_OFFSET,
  RGET_FIFO_CHAIN_GENERATION_OFFSET,
  RGET_FIFO_CHAIN_INDEX_OFFSET,
  RGET_FIFO_COUNT,
  RGET_FIFO_DEPTH_OFFSET,
  RGET_FIFO_FRAGMENT_OFFSET,
  RGET_FIFO_FROM_GENERATION_OFFSET,
  RGET_FIFO_FROM_INDEX_OFFSET,
  RGET_FIFO_FROM_OFFSET_OFFSET,
  RGET_FIFO_GENERATION_OFFSET,
  RGET_FIFO_HEAD_OFFSET,
  RGET_FIFO_LEFT_OFFSET,
  RGET_FIFO_MOVED_OFFSET,
  RGET_FIFO_OWN_GENERATION_OFFSET,
  RGET_FIFO_OWN_INDEX_OFFSET,
  RGET_FIFO_OWN_OFFSET_OFFSET,
  RGET_FIFO_PASSED_OFFSET,
  RGET_FIFO_PEER_ENDPOINT_OFFSET,
  RGET_FIFO_PEER_FIFO_OFFSET,
  RGET_FIFO_PEER_GENERATION_OFFSET,
  RGET_FIFO_PEER_INDEX_OFFSET,
  RGET_FIFO_PEER_OFFSET_OFFSET,
  RGET_FIFO_RESULT_OFFSET,
  RGET_FIFO_RGETS_OFFSET,
  RGET_FIFO_RING_OFFSET,
  RGET_FIFO_SIZE,
  RGET_FIFO_SLOTS,
  RGET_FIFO_SLOTS_OFFSET,
  RGET_FIFO_STATUS_OFFSET,
  RGET_FIFO_STOP_OFFSET,
  RGET_FIFO_TAIL_OFFSET,
  RGET_FIFO_TO_GENERATION_OFFSET,
  RGET_FIFO_TO_INDEX_OFFSET,
  RGET_FIFO_TO_OFFSET_OFFSET,
  RGET_FIFO_WRONG_OFFSET,
  SLICE_BYTES,
  TRANSFER_BROKEN,
  TRANSFER_DONE,
  TRANSFER_ENDED,
  TRANSFER_LOCAL_CLOSED,
} from "./layout";
import { regionOf, regionPlace } from "./region";
import { addWord, loadWord, ring, setBits, storeWord } from "./sync";

/** Pointer to a slot of an rget FIFO. */
function slotAt(rgetFifo: usize, position: u32): usize {
  return rgetFifo + RGET_FIFO_SLOTS_OFFSET + ((position & (RGET_FIFO_SLOTS - 1)) << DESCRIPTOR_SHIFT);
}

/**
 * Owner: opens an rget FIFO for one transfer, before it tells the other side of the rget FIFO. It leaves head and tail as
 * they are, because an engine thread may be looking at them. Returns the rget FIFO's generation.
 */
export function rgetOpen(rgetFifo: usize, allowed: u32): u32 {
  const generation = load<u32>(rgetFifo, RGET_FIFO_GENERATION_OFFSET) + 1;
  store<u32>(rgetFifo, 0, RGET_FIFO_MOVED_OFFSET);
  storeWord(rgetFifo + RGET_FIFO_PASSED_OFFSET, 0);
  store<u32>(rgetFifo, TRANSFER_DONE, RGET_FIFO_RESULT_OFFSET);
  storeWord(rgetFifo + RGET_FIFO_ALLOWED_OFFSET, allowed);
  storeWord(rgetFifo + RGET_FIFO_STOP_OFFSET, TRANSFER_DONE);
  storeWord(rgetFifo + RGET_FIFO_LEFT_OFFSET, 0);
  store<u32>(rgetFifo, TRANSFER_DONE, RGET_FIFO_WRONG_OFFSET);
  // SYNC rget-peer (none): pairs with chainWrite() on the other side.
  storeWord(rgetFifo + RGET_FIFO_PEER_FIFO_OFFSET, 0);
  // SYNC rget-fifo (open): pairs with rgetFifoOf().
  storeWord(rgetFifo + RGET_FIFO_GENERATION_OFFSET, generation);
  return generation;
}

/** Owner: ends the transfer of an rget FIFO. A finished transfer leaves the rget FIFO empty; else see rgetClear(). */
export function rgetClose(rgetFifo: usize): void {
  // SYNC rget-fifo (close): pairs with rgetFifoOf() and chainRun(). Once each engine that is at work now has ended its
  // turn, no engine ships to this rget FIFO, counts in it, or processes its slots.
  storeWord(rgetFifo + RGET_FIFO_GENERATION_OFFSET, load<u32>(rgetFifo, RGET_FIFO_GENERATION_OFFSET) + 1);
}

/**
 * Owner: empties a closed rget FIFO that no engine uses any more.
 * @returns 1: only its NOTICE was left, and its result is noted; else 0
 */
export function rgetClear(rgetFifo: usize): u32 {
  const head = load<u32>(rgetFifo, RGET_FIFO_HEAD_OFFSET);
  const descriptor = slotAt(rgetFifo, head);
  // SYNC ship (left): pairs with ship() and chainNotice(), which no thread calls for this rget FIFO any more.
  const isLeft = head != loadWord(rgetFifo + RGET_FIFO_TAIL_OFFSET);
  const isOver = isLeft && load<u32>(descriptor, DESCRIPTOR_KIND_OFFSET) == DESCRIPTOR_NOTICE && !isAwaited(rgetFifo);
  if (isOver) noteEnd(rgetFifo, descriptor);
  storeWord(rgetFifo + RGET_FIFO_TAIL_OFFSET, head);
  return u32(isOver);
}

/** Whether a transfer to another node has begun, and that node has not sent CHAIN_OVER. */
function isAwaited(rgetFifo: usize): bool {
  const away = load<u32>(rgetFifo, RGET_FIFO_AWAY_OFFSET);
  return away != 0 && (away & AWAY_OVER) == 0 && loadWord(rgetFifo + RGET_FIFO_PEER_FIFO_OFFSET) != 0;
}

/** Notes a NOTICE's result, unless a fragment was refused before. */
function noteEnd(rgetFifo: usize, descriptor: usize): void {
  const result = load<u32>(descriptor, DESCRIPTOR_BYTES_OFFSET);
  if (load<u32>(rgetFifo, RGET_FIFO_RESULT_OFFSET) == TRANSFER_DONE)
    store<u32>(rgetFifo, result, RGET_FIFO_RESULT_OFFSET);
}

/** Whether an rget FIFO begins at an offset of a block: other offsets hold other data. */
function isPlace(offset: u32): bool {
  return offset >= BLOCK_RGET_FIFOS_OFFSET && (offset - BLOCK_RGET_FIFOS_OFFSET) % RGET_FIFO_SIZE == 0;
}

/** Pointer to another context's rget FIFO; 0: it is not open, or it belongs to another transfer by now. */
function rgetFifoOf(job: usize, index: u32, generation: u32, offset: u32, own: u32): usize {
  const entry = regionOf(job, index, generation);
  if (entry == 0 || (own & 1) == 0 || !isPlace(offset)) return 0;
  const rgetFifo = regionPlace(entry, offset, RGET_FIFO_SIZE);
  if (rgetFifo == 0) return 0;
  // SYNC rget-fifo (look): pairs with rgetOpen() and rgetClose().
  return loadWord(rgetFifo + RGET_FIFO_GENERATION_OFFSET) == own ? rgetFifo : 0;
}

/** The other rget FIFO of a transfer, or 0. Also 0 if its task has ended, because its memory may be reused soon. */
function peerOf(job: usize, rgetFifo: usize): usize {
  if (hasEnded(taskOf(job, load<u32>(rgetFifo, RGET_FIFO_PEER_ENDPOINT_OFFSET)))) return 0;
  return rgetFifoOf(
    job,
    load<u32>(rgetFifo, RGET_FIFO_PEER_INDEX_OFFSET),
    load<u32>(rgetFifo, RGET_FIFO_PEER_GENERATION_OFFSET),
    load<u32>(rgetFifo, RGET_FIFO_PEER_OFFSET_OFFSET),
    loadWord(rgetFifo + RGET_FIFO_PEER_FIFO_OFFSET),
  );
}

/** Injects descriptors into the rget FIFO of an endpoint: they are the payload of a remote get (P3, P4, P5). */
function ship(job: usize, rgetFifo: usize, endpoint: u32, from: usize, slots: u32): void {
  const tail = load<u32>(rgetFifo, RGET_FIFO_TAIL_OFFSET);
  for (let i: u32 = 0; i < slots; i++) {
    memory.copy(slotAt(rgetFifo, tail + i), from + (i << DESCRIPTOR_SHIFT), DESCRIPTOR_SIZE);
  }
  // SYNC ship (ship): makes the descriptors visible; pairs with chainRun().
  storeWord(rgetFifo + RGET_FIFO_TAIL_OFFSET, tail + slots);
  engineCall(job, endpoint);
}

/** Sets an rget FIFO's bit in the status register of its block, and wakes its owner. */
function tell(rgetFifo: usize, task: usize): void {
  // SYNC transfer-over (tell): makes all moved bytes and noted results visible; pairs with the owner's look at the register.
  setBits(load<usize>(rgetFifo, RGET_FIFO_STATUS_OFFSET), load<u32>(rgetFifo, RGET_FIFO_BIT_OFFSET));
  ring(task);
}

/** Number of slots of link i of n, at a depth. */
function slotsOfLink(i: u32, n: u32, depth: u32): u32 {
  return 1 + u32(i + depth < n) + u32(i + 2 * depth < n) + u32(i + 1 == n);
}

/** Writes into a descriptor the link that it names: where it lies, and how many slots it has. */
function nameLink(rgetFifo: usize, descriptor: usize, i: u32, n: u32, depth: u32): void {
  store<u32>(descriptor, slotsOfLink(i, n, depth), DESCRIPTOR_BYTES_OFFSET);
  store<u32>(descriptor, load<u32>(rgetFifo, RGET_FIFO_CHAIN_INDEX_OFFSET), DESCRIPTOR_REMOTE_INDEX_OFFSET);
  store<u32>(descriptor, load<u32>(rgetFifo, RGET_FIFO_CHAIN_GENERATION_OFFSET), DESCRIPTOR_REMOTE_GENERATION_OFFSET);
  store<u32>(descriptor, i * LINK_SIZE, DESCRIPTOR_REMOTE_OFFSET_OFFSET);
}

/** Writes a FETCH of link i. */
function writeFetch(rgetFifo: usize, descriptor: usize, i: u32, n: u32, depth: u32): void {
  store<u32>(descriptor, DESCRIPTOR_FETCH, DESCRIPTOR_KIND_OFFSET);
  nameLink(rgetFifo, descriptor, i, n, depth);
}

/**
 * Target core: writes all links of a chain, as the rget FIFO says, and the first origin RGETs (P2). Its own engine then
 * ships the first links (P3). One call for any number of fragments (P11). If the origin is in another node, its RGETs stay
 * in this rget FIFO, and the agent sends them there.
 * @returns how many links; 0: it wrote none: the chain is invalid, the origin's rget FIFO closed, or the links have no
 * region
 */
export function chainWrite(job: usize, rgetFifo: usize): u32 {
  const bytes = load<u32>(rgetFifo, RGET_FIFO_BYTES_OFFSET);
  const fragment = load<u32>(rgetFifo, RGET_FIFO_FRAGMENT_OFFSET);
  const around = load<u32>(rgetFifo, RGET_FIFO_RING_OFFSET);
  const depth = load<u32>(rgetFifo, RGET_FIFO_DEPTH_OFFSET);
  const fromOffset = load<u32>(rgetFifo, RGET_FIFO_FROM_OFFSET_OFFSET);
  const toOffset = load<u32>(rgetFifo, RGET_FIFO_TO_OFFSET_OFFSET);
  if (bytes == 0 || fragment == 0 || depth == 0 || depth > DEPTH_MAX) return 0;
  const n = (bytes - 1) / fragment + 1;
  if (n > LINK_COUNT_MAX) return 0;
  const chainIndex = load<u32>(rgetFifo, RGET_FIFO_CHAIN_INDEX_OFFSET);
  const entry = regionOf(job, chainIndex, load<u32>(rgetFifo, RGET_FIFO_CHAIN_GENERATION_OFFSET));
  const chain = entry == 0 ? 0 : regionPlace(entry, 0, n * LINK_SIZE);
  const away = load<u32>(rgetFifo, RGET_FIFO_AWAY_OFFSET);
  const peer = away == 0 ? peerOf(job, rgetFifo) : rgetFifo;
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
      nameLink(rgetFifo, descriptor, i + 2 * depth, n, depth);
      descriptor += DESCRIPTOR_SIZE;
    }
    const at = i * fragment;
    store<u32>(descriptor, DESCRIPTOR_MOVE, DESCRIPTOR_KIND_OFFSET);
    store<u32>(descriptor, i + 1 == n ? bytes - at : fragment, DESCRIPTOR_BYTES_OFFSET);
    store<u32>(descriptor, load<u32>(rgetFifo, RGET_FIFO_FROM_INDEX_OFFSET), DESCRIPTOR_LOCAL_INDEX_OFFSET);
    store<u32>(descriptor, load<u32>(rgetFifo, RGET_FIFO_FROM_GENERATION_OFFSET), DESCRIPTOR_LOCAL_GENERATION_OFFSET);
    const place = around == 0 ? at : (i % around) * fragment;
    store<u32>(descriptor, fromOffset + place, DESCRIPTOR_LOCAL_OFFSET_OFFSET);
    store<u32>(descriptor, load<u32>(rgetFifo, RGET_FIFO_TO_INDEX_OFFSET), DESCRIPTOR_REMOTE_INDEX_OFFSET);
    store<u32>(descriptor, load<u32>(rgetFifo, RGET_FIFO_TO_GENERATION_OFFSET), DESCRIPTOR_REMOTE_GENERATION_OFFSET);
    store<u32>(descriptor, toOffset + at, DESCRIPTOR_REMOTE_OFFSET_OFFSET);
    if (i + 1 == n) {
      descriptor += DESCRIPTOR_SIZE;
      store<u32>(descriptor, DESCRIPTOR_NOTICE, DESCRIPTOR_KIND_OFFSET);
      store<u32>(descriptor, TRANSFER_DONE, DESCRIPTOR_BYTES_OFFSET);
    }
  }
  storeWord(rgetFifo + RGET_FIFO_LEFT_OFFSET, bytes);
  if (away == 0) {
    // By direct put: the other rget FIFO, and the links that its origin RGETs fetch first. The first ship() orders them.
    store<u32>(peer, load<u32>(rgetFifo, RGET_FIFO_OWN_INDEX_OFFSET), RGET_FIFO_PEER_INDEX_OFFSET);
    store<u32>(peer, load<u32>(rgetFifo, RGET_FIFO_OWN_GENERATION_OFFSET), RGET_FIFO_PEER_GENERATION_OFFSET);
    store<u32>(peer, load<u32>(rgetFifo, RGET_FIFO_OWN_OFFSET_OFFSET), RGET_FIFO_PEER_OFFSET_OFFSET);
    // SYNC rget-peer (begin): pairs with chainBreak(). From here on, a peer that breaks the chain off tells this side.
    storeWord(peer + RGET_FIFO_PEER_FIFO_OFFSET, load<u32>(rgetFifo, RGET_FIFO_GENERATION_OFFSET));
  }
  for (let i: u32 = 0; i < depth && i + depth < n; i++) {
    writeFetch(rgetFifo, peer + RGET_FIFO_RGETS_OFFSET + (i << DESCRIPTOR_SHIFT), i + depth, n, depth);
  }
  // SYNC rget-away (begun): makes the origin RGETs visible; pairs with the agent, which sends them. Before the first FETCH.
  if (away != 0) storeWord(rgetFifo + RGET_FIFO_AWAY_OFFSET, away | AWAY_BEGUN);
  const tail = load<u32>(rgetFifo, RGET_FIFO_TAIL_OFFSET);
  const first = depth < n ? depth : n;
  for (let i: u32 = 0; i < first; i++) writeFetch(rgetFifo, slotAt(rgetFifo, tail + i), i, n, depth);
  // SYNC ship (begin): pairs with chainRun().
  storeWord(rgetFifo + RGET_FIFO_TAIL_OFFSET, tail + first);
  return n;
}

/**
 * Target core: ships a NOTICE without a chain (P8): no byte is to be moved, or all were moved in another way.
 * @param index region of the origin's block, with its `generation`; the rget FIFO is at `offset`
 * @param own generation of the origin's rget FIFO
 * @param origin ordinal of the endpoint that owns the rget FIFO
 * @returns 1; 0: the rget FIFO is closed
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
  const rgetFifo = rgetFifoOf(job, index, generation, offset, own);
  if (rgetFifo == 0) return 0;
  const tail = load<u32>(rgetFifo, RGET_FIFO_TAIL_OFFSET);
  const descriptor = slotAt(rgetFifo, tail);
  store<u32>(descriptor, DESCRIPTOR_NOTICE, DESCRIPTOR_KIND_OFFSET);
  store<u32>(descriptor, result, DESCRIPTOR_BYTES_OFFSET);
  // SYNC ship (notice): pairs with chainRun().
  storeWord(rgetFifo + RGET_FIFO_TAIL_OFFSET, tail + 1);
  engineCall(job, origin);
  return 1;
}

/** Whether the engine cannot go on in an rget FIFO: its next fragment is not staged, and its core has not given it up. */
function isHeld(rgetFifo: usize, descriptor: usize): bool {
  if (load<u32>(descriptor, DESCRIPTOR_KIND_OFFSET) != DESCRIPTOR_MOVE) return false;
  // SYNC staged (look): pairs with the store of the origin's core, which stages.
  if (load<u32>(rgetFifo, RGET_FIFO_PASSED_OFFSET) < loadWord(rgetFifo + RGET_FIFO_ALLOWED_OFFSET)) return false;
  // SYNC stop (held): pairs with the store of a core that gives the transfer up.
  return loadWord(rgetFifo + RGET_FIFO_STOP_OFFSET) == TRANSFER_DONE;
}

/** Bytes of the next slice of a fragment. */
function sliceOf(rgetFifo: usize, descriptor: usize): u32 {
  const left = load<u32>(descriptor, DESCRIPTOR_BYTES_OFFSET) - load<u32>(rgetFifo, RGET_FIFO_MOVED_OFFSET);
  return left > SLICE_BYTES ? SLICE_BYTES : left;
}

/** Moves a slice of a fragment: `part` bytes. Returns whether it was the last slice. `context` owns the rget FIFO. */
function moveSlice(job: usize, rgetFifo: usize, descriptor: usize, part: u32, context: usize): bool {
  const bytes = load<u32>(descriptor, DESCRIPTOR_BYTES_OFFSET);
  const moved = load<u32>(rgetFifo, RGET_FIFO_MOVED_OFFSET);
  const peer = peerOf(job, rgetFifo);
  // SYNC stop (look): pairs with the store of a core that gives the transfer up, on either side.
  let result = loadWord(rgetFifo + RGET_FIFO_STOP_OFFSET);
  if (result == TRANSFER_DONE) result = peer == 0 ? TRANSFER_ENDED : loadWord(peer + RGET_FIFO_STOP_OFFSET);
  if (result == TRANSFER_DONE) result = transferPart(job, descriptor, true, moved, part);
  // SYNC rget-list (closed): pairs with the owner's store, which precedes the closing of its staged regions. A closed
  // region is then the end of the transfer, not a mistake.
  if (result == TRANSFER_LOCAL_CLOSED && loadWord(context + CONTEXT_RGET_FIFOS_OFFSET) == 0) result = TRANSFER_ENDED;
  if (result == TRANSFER_DONE && bytes - moved > part) {
    store<u32>(rgetFifo, moved + part, RGET_FIFO_MOVED_OFFSET);
    return false;
  }
  store<u32>(rgetFifo, 0, RGET_FIFO_MOVED_OFFSET);
  // SYNC passed (passed): pairs with the origin's core, which may wait to stage the next fragment in this one's place.
  storeWord(rgetFifo + RGET_FIFO_PASSED_OFFSET, load<u32>(rgetFifo, RGET_FIFO_PASSED_OFFSET) + 1);
  if (loadWord(rgetFifo + RGET_FIFO_ALLOWED_OFFSET) != NONE) ring(load<usize>(context, CONTEXT_TASK_OFFSET));
  if (result != TRANSFER_DONE && load<u32>(rgetFifo, RGET_FIFO_RESULT_OFFSET) == TRANSFER_DONE) {
    store<u32>(rgetFifo, result, RGET_FIFO_RESULT_OFFSET);
  }
  if (peer == 0) return true;
  if (result != TRANSFER_DONE && load<u32>(peer, RGET_FIFO_WRONG_OFFSET) == TRANSFER_DONE) {
    store<u32>(peer, result, RGET_FIFO_WRONG_OFFSET);
  }
  // SYNC bytes-left (count): makes the fragment visible; pairs with chainBreak().
  if (addWord(peer + RGET_FIFO_LEFT_OFFSET, -bytes) == bytes) {
    tell(peer, taskOf(job, load<u32>(rgetFifo, RGET_FIFO_PEER_ENDPOINT_OFFSET)));
  }
  return true;
}

/** Processes a descriptor of an rget FIFO, other than a MOVE. `context` owns the rget FIFO. */
function processOne(job: usize, rgetFifo: usize, descriptor: usize, context: usize): void {
  const kind = load<u32>(descriptor, DESCRIPTOR_KIND_OFFSET);
  if (kind == DESCRIPTOR_NOTICE) {
    noteEnd(rgetFifo, descriptor);
    tell(rgetFifo, load<usize>(context, CONTEXT_TASK_OFFSET));
    return;
  }
  if (kind == DESCRIPTOR_FETCH) {
    const slots = load<u32>(descriptor, DESCRIPTOR_BYTES_OFFSET);
    const index = load<u32>(descriptor, DESCRIPTOR_REMOTE_INDEX_OFFSET);
    const entry = regionOf(job, index, load<u32>(descriptor, DESCRIPTOR_REMOTE_GENERATION_OFFSET));
    if (entry == 0 || slots > LINK_SLOTS) return;
    const link = regionPlace(entry, load<u32>(descriptor, DESCRIPTOR_REMOTE_OFFSET_OFFSET), slots << DESCRIPTOR_SHIFT);
    if (link == 0 || (link & 3) != 0) return;
    const peer = peerOf(job, rgetFifo);
    if (peer != 0) ship(job, peer, load<u32>(rgetFifo, RGET_FIFO_PEER_ENDPOINT_OFFSET), link, slots);
    return;
  }
  const number = load<u32>(descriptor, DESCRIPTOR_VALUE_OFFSET);
  if (number >= DEPTH_MAX) return;
  const rget = rgetFifo + RGET_FIFO_RGETS_OFFSET + (number << DESCRIPTOR_SHIFT);
  if (kind == DESCRIPTOR_RGET) {
    const peer = peerOf(job, rgetFifo);
    if (peer != 0) ship(job, peer, load<u32>(rgetFifo, RGET_FIFO_PEER_ENDPOINT_OFFSET), rget, 1);
  } else if (kind == DESCRIPTOR_REFILL) {
    memory.copy(rget + DESCRIPTOR_BYTES_OFFSET, descriptor + DESCRIPTOR_BYTES_OFFSET, DESCRIPTOR_VALUE_OFFSET - 4);
  }
}

/** Pointer to an rget FIFO of a block. */
function rgetFifoAt(block: usize, number: u32): usize {
  return block + BLOCK_RGET_FIFOS_OFFSET + number * RGET_FIFO_SIZE;
}

/** Whether an rget FIFO belongs to a transfer within this memory. The engine leaves the descriptors in other rget FIFOs. */
function isOpen(rgetFifo: usize): bool {
  // SYNC rget-fifo (engine): pairs with rgetOpen() and rgetClose().
  if ((loadWord(rgetFifo + RGET_FIFO_GENERATION_OFFSET) & 1) == 0) return false;
  // SYNC rget-away (look): pairs with the owner, which may be opening the rget FIFO for another transfer.
  return loadWord(rgetFifo + RGET_FIFO_AWAY_OFFSET) == 0;
}

/** State of chainRun(): bytes that it may still move, and how many rget FIFOs have descriptors left. */
let allowance: u32 = 0;
let remaining: u32 = 0;

/**
 * Most descriptors of an rget FIFO, MOVEs aside, that one turn processes. The other side, on another core, may ship as fast
 * as this engine processes; without a limit the owner would not return from its advance().
 */
const TURN_SLOTS: u32 = 4 * RGET_FIFO_SLOTS;

/**
 * Processes the descriptors in an rget FIFO, in order, up to the limits of this turn. Returns whether it has moved bytes.
 */
function rgetFifoRun(job: usize, rgetFifo: usize, context: usize): bool {
  let hasMoved = false;
  let head = load<u32>(rgetFifo, RGET_FIFO_HEAD_OFFSET);
  let others = TURN_SLOTS;
  // SYNC ship (look): pairs with ship() and chainWrite(). Loaded each time: a processed descriptor may have caused a ship().
  while (head != loadWord(rgetFifo + RGET_FIFO_TAIL_OFFSET)) {
    const descriptor = slotAt(rgetFifo, head);
    if (load<u32>(descriptor, DESCRIPTOR_KIND_OFFSET) != DESCRIPTOR_MOVE) {
      if (others == 0) {
        remaining++;
        break;
      }
      others--;
      head++;
      // Stored first: the core that the descriptor notifies may close this rget FIFO and open it for another transfer.
      store<u32>(rgetFifo, head, RGET_FIFO_HEAD_OFFSET);
      processOne(job, rgetFifo, descriptor, context);
      continue;
    }
    if (isHeld(rgetFifo, descriptor)) break;
    const part = sliceOf(rgetFifo, descriptor);
    if (part > allowance) {
      remaining++;
      break;
    }
    allowance -= part;
    hasMoved = true;
    if (!moveSlice(job, rgetFifo, descriptor, part, context)) continue;
    head++;
    store<u32>(rgetFifo, head, RGET_FIFO_HEAD_OFFSET);
  }
  return hasMoved;
}

/**
 * Engine: processes the rget FIFOs of a context, each in order, while they move at most `most` bytes in all. `most` is at
 * most SLICE_BYTES; with SLICE_BYTES, a longer fragment moves a slice. The next turn begins with the first rget FIFO that
 * had no allowance left, so that every rget FIFO has its turn.
 * @returns how many rget FIFOs have descriptors left that the engine can process at once
 */
export function chainRun(job: usize, context: usize, most: u32): u32 {
  // SYNC rget-list (blocks): pairs with the store of the owner, which adds blocks and removes none.
  const list = <usize>loadWord(context + CONTEXT_RGET_FIFOS_OFFSET);
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
    const rgetFifo = rgetFifoAt(block, number);
    const left = remaining;
    const hasMoved = isOpen(rgetFifo) && rgetFifoRun(job, rgetFifo, context);
    if (!isPassed && !hasMoved && remaining != left) {
      isPassed = true;
      store<usize>(list, block, BLOCK_FIRST_OFFSET);
      store<u32>(list, number, BLOCK_TURN_OFFSET);
    }
    number = (number + 1) % RGET_FIFO_COUNT;
    if (number == 0) {
      const next = <usize>loadWord(block + BLOCK_NEXT_OFFSET);
      block = next == 0 ? list : next;
    }
  } while (block != firstBlock || number != first);
  return remaining;
}

/** Whether the engine can process a descriptor in some rget FIFO of a context. */
export function chainLeft(context: usize): bool {
  for (let block = <usize>loadWord(context + CONTEXT_RGET_FIFOS_OFFSET); block != 0; ) {
    for (let number: u32 = 0; number < RGET_FIFO_COUNT; number++) {
      const rgetFifo = rgetFifoAt(block, number);
      if (!isOpen(rgetFifo)) continue;
      const head = load<u32>(rgetFifo, RGET_FIFO_HEAD_OFFSET);
      if (head != loadWord(rgetFifo + RGET_FIFO_TAIL_OFFSET) && !isHeld(rgetFifo, slotAt(rgetFifo, head))) return true;
    }
    block = <usize>loadWord(block + BLOCK_NEXT_OFFSET);
  }
  return false;
}

/**
 * Origin core, once the engine thread has ended: tells the target that the chain is broken off, if the target has begun it.
 * @returns 1; 0: the target has not begun it
 */
export function chainBreak(job: usize, rgetFifo: usize): u32 {
  // SYNC rget-peer (begun): pairs with chainWrite().
  if (loadWord(rgetFifo + RGET_FIFO_PEER_FIFO_OFFSET) == 0) return 0;
  const peer = peerOf(job, rgetFifo);
  // SYNC bytes-left (broken): pairs with moveSlice(). If all bytes are counted, the peer knows or finds out itself, and its
  // rget FIFO may be reused at any moment. If not, only this side can still end the transfer.
  if (peer == 0 || loadWord(peer + RGET_FIFO_LEFT_OFFSET) == 0) return 1;
  store<u32>(peer, TRANSFER_BROKEN, RGET_FIFO_WRONG_OFFSET);
  storeWord(peer + RGET_FIFO_LEFT_OFFSET, 0);
  tell(peer, taskOf(job, load<u32>(rgetFifo, RGET_FIFO_PEER_ENDPOINT_OFFSET)));
  return 1;
}
