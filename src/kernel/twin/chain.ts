// Twin of assembly/chain.ts: same functions, same order; see the comments there.
import {
  AWAY_BEGUN,
  AWAY_OVER,
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
} from "../../../assembly/layout.js";
import type { SharedAtomics } from "../atomics.js";
import type { Memory } from "../kernel.js";
import type { Due } from "./due.js";
import type { Engine } from "./engine.js";
import type { Region } from "./region.js";

const DESCRIPTOR_WORDS = DESCRIPTOR_SIZE >>> 2;

export type Chain = ReturnType<typeof twinChain>;

/** As in assembly/chain.ts. */
const TURN_SLOTS = 4 * WINDOW_SLOTS;

export function twinChain(
  { words }: Memory,
  sync: SharedAtomics,
  due: Due,
  { regionOf, regionPlace }: Region,
  engine: Engine,
) {
  const { engineCall, hasEnded, taskOf } = due;
  const { addWord, loadWord, ring, setBits, storeWord } = sync;

  function get(pointer: number, offset: number): number {
    return words[(pointer + offset) >>> 2] as number;
  }

  function set(pointer: number, offset: number, value: number): void {
    words[(pointer + offset) >>> 2] = value;
  }

  function slotAt(window: number, position: number): number {
    return window + WINDOW_SLOTS_OFFSET + ((position & (WINDOW_SLOTS - 1)) << DESCRIPTOR_SHIFT);
  }

  function windowOpen(window: number, allowed: number): number {
    const generation = (get(window, WINDOW_GENERATION_OFFSET) + 1) | 0;
    set(window, WINDOW_MOVED_OFFSET, 0);
    storeWord(window + WINDOW_PASSED_OFFSET, 0);
    set(window, WINDOW_RESULT_OFFSET, TRANSFER_DONE);
    storeWord(window + WINDOW_ALLOWED_OFFSET, allowed);
    storeWord(window + WINDOW_STOP_OFFSET, TRANSFER_DONE);
    storeWord(window + WINDOW_LEFT_OFFSET, 0);
    set(window, WINDOW_WRONG_OFFSET, TRANSFER_DONE);
    // SYNC window-peer (none)
    storeWord(window + WINDOW_PEER_WINDOW_OFFSET, 0);
    // SYNC window (open)
    storeWord(window + WINDOW_GENERATION_OFFSET, generation);
    return generation >>> 0;
  }

  function windowClose(window: number): void {
    // SYNC window (close)
    storeWord(window + WINDOW_GENERATION_OFFSET, get(window, WINDOW_GENERATION_OFFSET) + 1);
  }

  function windowClear(window: number): number {
    const head = get(window, WINDOW_HEAD_OFFSET);
    const descriptor = slotAt(window, head);
    // SYNC ship (left)
    const isLeft = head !== loadWord(window + WINDOW_TAIL_OFFSET);
    const isOver = isLeft && get(descriptor, DESCRIPTOR_KIND_OFFSET) === DESCRIPTOR_NOTICE && !isAwaited(window);
    if (isOver) noteEnd(window, descriptor);
    storeWord(window + WINDOW_TAIL_OFFSET, head);
    return Number(isOver);
  }

  function isAwaited(window: number): boolean {
    const away = get(window, WINDOW_AWAY_OFFSET);
    return away !== 0 && (away & AWAY_OVER) === 0 && loadWord(window + WINDOW_PEER_WINDOW_OFFSET) !== 0;
  }

  function noteEnd(window: number, descriptor: number): void {
    const result = get(descriptor, DESCRIPTOR_BYTES_OFFSET);
    if (get(window, WINDOW_RESULT_OFFSET) === TRANSFER_DONE) set(window, WINDOW_RESULT_OFFSET, result);
  }

  function isPlace(offset: number): boolean {
    return offset >= BLOCK_WINDOWS_OFFSET && (offset - BLOCK_WINDOWS_OFFSET) % WINDOW_SIZE === 0;
  }

  function windowOf(job: number, index: number, generation: number, offset: number, own: number): number {
    const entry = regionOf(job, index >>> 0, generation);
    if (entry === 0 || (own & 1) === 0 || !isPlace(offset >>> 0)) return 0;
    const window = regionPlace(entry, offset >>> 0, WINDOW_SIZE);
    if (window === 0) return 0;
    // SYNC window (look)
    return loadWord(window + WINDOW_GENERATION_OFFSET) === (own | 0) ? window : 0;
  }

  function peerOf(job: number, window: number): number {
    if (hasEnded(taskOf(job, get(window, WINDOW_PEER_ENDPOINT_OFFSET)))) return 0;
    const index = get(window, WINDOW_PEER_INDEX_OFFSET);
    const generation = get(window, WINDOW_PEER_GENERATION_OFFSET);
    const offset = get(window, WINDOW_PEER_OFFSET_OFFSET);
    return windowOf(job, index, generation, offset, loadWord(window + WINDOW_PEER_WINDOW_OFFSET));
  }

  function ship(job: number, window: number, endpoint: number, from: number, slots: number): void {
    const tail = get(window, WINDOW_TAIL_OFFSET);
    for (let i = 0; i < slots; i++) {
      const to = slotAt(window, tail + i) >>> 2;
      const at = (from >>> 2) + i * DESCRIPTOR_WORDS;
      for (let word = 0; word < DESCRIPTOR_WORDS; word++) words[to + word] = words[at + word];
    }
    // SYNC ship (ship)
    storeWord(window + WINDOW_TAIL_OFFSET, (tail + slots) | 0);
    engineCall(job, endpoint);
  }

  function tell(window: number, task: number): void {
    // SYNC window-over (tell)
    setBits(get(window, WINDOW_STATUS_OFFSET) >>> 0, get(window, WINDOW_BIT_OFFSET));
    ring(task);
  }

  function slotsOfLink(i: number, n: number, depth: number): number {
    return 1 + Number(i + depth < n) + Number(i + 2 * depth < n) + Number(i + 1 === n);
  }

  function nameLink(window: number, descriptor: number, i: number, n: number, depth: number): void {
    set(descriptor, DESCRIPTOR_BYTES_OFFSET, slotsOfLink(i, n, depth));
    set(descriptor, DESCRIPTOR_REMOTE_INDEX_OFFSET, get(window, WINDOW_CHAIN_INDEX_OFFSET));
    set(descriptor, DESCRIPTOR_REMOTE_GENERATION_OFFSET, get(window, WINDOW_CHAIN_GENERATION_OFFSET));
    set(descriptor, DESCRIPTOR_REMOTE_OFFSET_OFFSET, i * LINK_SIZE);
  }

  function writeFetch(window: number, descriptor: number, i: number, n: number, depth: number): void {
    set(descriptor, DESCRIPTOR_KIND_OFFSET, DESCRIPTOR_FETCH);
    nameLink(window, descriptor, i, n, depth);
  }

  function chainWrite(job: number, window: number): number {
    const bytes = get(window, WINDOW_BYTES_OFFSET) >>> 0;
    const portion = get(window, WINDOW_PORTION_OFFSET) >>> 0;
    const around = get(window, WINDOW_RING_OFFSET) >>> 0;
    const depth = get(window, WINDOW_DEPTH_OFFSET);
    const fromOffset = get(window, WINDOW_FROM_OFFSET_OFFSET);
    const toOffset = get(window, WINDOW_TO_OFFSET_OFFSET);
    if (bytes === 0 || portion === 0 || depth <= 0 || depth > DEPTH_MAX) return 0;
    const n = Math.floor((bytes - 1) / portion) + 1;
    if (n > LINK_COUNT_MAX) return 0;
    const chainIndex = get(window, WINDOW_CHAIN_INDEX_OFFSET);
    const entry = regionOf(job, chainIndex >>> 0, get(window, WINDOW_CHAIN_GENERATION_OFFSET));
    const chain = entry === 0 ? 0 : regionPlace(entry, 0, n * LINK_SIZE);
    const away = get(window, WINDOW_AWAY_OFFSET);
    const peer = away === 0 ? peerOf(job, window) : window;
    if (chain === 0 || peer === 0) return 0;
    for (let i = 0; i < n; i++) {
      let descriptor = chain + i * LINK_SIZE;
      if (i + depth < n) {
        set(descriptor, DESCRIPTOR_KIND_OFFSET, DESCRIPTOR_RGET);
        set(descriptor, DESCRIPTOR_VALUE_OFFSET, i % depth);
        descriptor += DESCRIPTOR_SIZE;
      }
      if (i + 2 * depth < n) {
        set(descriptor, DESCRIPTOR_KIND_OFFSET, DESCRIPTOR_REFILL);
        set(descriptor, DESCRIPTOR_VALUE_OFFSET, i % depth);
        nameLink(window, descriptor, i + 2 * depth, n, depth);
        descriptor += DESCRIPTOR_SIZE;
      }
      const at = i * portion;
      const place = around === 0 ? at : (i % around) * portion;
      set(descriptor, DESCRIPTOR_KIND_OFFSET, DESCRIPTOR_MOVE);
      set(descriptor, DESCRIPTOR_BYTES_OFFSET, i + 1 === n ? bytes - at : portion);
      set(descriptor, DESCRIPTOR_LOCAL_INDEX_OFFSET, get(window, WINDOW_FROM_INDEX_OFFSET));
      set(descriptor, DESCRIPTOR_LOCAL_GENERATION_OFFSET, get(window, WINDOW_FROM_GENERATION_OFFSET));
      set(descriptor, DESCRIPTOR_LOCAL_OFFSET_OFFSET, fromOffset + place);
      set(descriptor, DESCRIPTOR_REMOTE_INDEX_OFFSET, get(window, WINDOW_TO_INDEX_OFFSET));
      set(descriptor, DESCRIPTOR_REMOTE_GENERATION_OFFSET, get(window, WINDOW_TO_GENERATION_OFFSET));
      set(descriptor, DESCRIPTOR_REMOTE_OFFSET_OFFSET, toOffset + at);
      if (i + 1 === n) {
        descriptor += DESCRIPTOR_SIZE;
        set(descriptor, DESCRIPTOR_KIND_OFFSET, DESCRIPTOR_NOTICE);
        set(descriptor, DESCRIPTOR_BYTES_OFFSET, TRANSFER_DONE);
      }
    }
    storeWord(window + WINDOW_LEFT_OFFSET, bytes);
    if (away === 0) {
      set(peer, WINDOW_PEER_INDEX_OFFSET, get(window, WINDOW_OWN_INDEX_OFFSET));
      set(peer, WINDOW_PEER_GENERATION_OFFSET, get(window, WINDOW_OWN_GENERATION_OFFSET));
      set(peer, WINDOW_PEER_OFFSET_OFFSET, get(window, WINDOW_OWN_OFFSET_OFFSET));
      // SYNC window-peer (begin)
      storeWord(peer + WINDOW_PEER_WINDOW_OFFSET, get(window, WINDOW_GENERATION_OFFSET));
    } else set(window, WINDOW_AWAY_OFFSET, away | AWAY_BEGUN);
    for (let i = 0; i < depth && i + depth < n; i++) {
      writeFetch(window, peer + WINDOW_RGETS_OFFSET + (i << DESCRIPTOR_SHIFT), i + depth, n, depth);
    }
    const tail = get(window, WINDOW_TAIL_OFFSET);
    const first = Math.min(depth, n);
    for (let i = 0; i < first; i++) writeFetch(window, slotAt(window, tail + i), i, n, depth);
    // SYNC ship (begin)
    storeWord(window + WINDOW_TAIL_OFFSET, (tail + first) | 0);
    return n;
  }

  function chainNotice(
    job: number,
    index: number,
    generation: number,
    offset: number,
    own: number,
    origin: number,
    result: number,
  ): number {
    const window = windowOf(job, index, generation, offset, own);
    if (window === 0) return 0;
    const tail = get(window, WINDOW_TAIL_OFFSET);
    const descriptor = slotAt(window, tail);
    set(descriptor, DESCRIPTOR_KIND_OFFSET, DESCRIPTOR_NOTICE);
    set(descriptor, DESCRIPTOR_BYTES_OFFSET, result);
    // SYNC ship (notice)
    storeWord(window + WINDOW_TAIL_OFFSET, (tail + 1) | 0);
    engineCall(job, origin);
    return 1;
  }

  function isHeld(window: number, descriptor: number): boolean {
    if (get(descriptor, DESCRIPTOR_KIND_OFFSET) !== DESCRIPTOR_MOVE) return false;
    // SYNC staged (look)
    if (get(window, WINDOW_PASSED_OFFSET) >>> 0 < loadWord(window + WINDOW_ALLOWED_OFFSET) >>> 0) return false;
    // SYNC stop (held)
    return loadWord(window + WINDOW_STOP_OFFSET) === TRANSFER_DONE;
  }

  function sliceOf(window: number, descriptor: number): number {
    const left = (get(descriptor, DESCRIPTOR_BYTES_OFFSET) - get(window, WINDOW_MOVED_OFFSET)) >>> 0;
    return Math.min(left, SLICE_BYTES);
  }

  function moveSlice(job: number, window: number, descriptor: number, part: number, context: number): boolean {
    const bytes = get(descriptor, DESCRIPTOR_BYTES_OFFSET) >>> 0;
    const moved = get(window, WINDOW_MOVED_OFFSET) >>> 0;
    const peer = peerOf(job, window);
    // SYNC stop (look)
    let result = loadWord(window + WINDOW_STOP_OFFSET);
    if (result === TRANSFER_DONE) result = peer === 0 ? TRANSFER_ENDED : loadWord(peer + WINDOW_STOP_OFFSET);
    if (result === TRANSFER_DONE) result = engine.transferPart(job, descriptor, true, moved, part);
    // SYNC window-list (closed)
    if (result === TRANSFER_LOCAL_CLOSED && loadWord(context + CONTEXT_WINDOWS_OFFSET) === 0) result = TRANSFER_ENDED;
    if (result === TRANSFER_DONE && (bytes - moved) >>> 0 > part) {
      set(window, WINDOW_MOVED_OFFSET, moved + part);
      return false;
    }
    set(window, WINDOW_MOVED_OFFSET, 0);
    // SYNC passed (passed)
    storeWord(window + WINDOW_PASSED_OFFSET, (get(window, WINDOW_PASSED_OFFSET) + 1) | 0);
    if (loadWord(window + WINDOW_ALLOWED_OFFSET) >>> 0 !== NONE) ring(get(context, CONTEXT_TASK_OFFSET) >>> 0);
    if (result !== TRANSFER_DONE && get(window, WINDOW_RESULT_OFFSET) === TRANSFER_DONE) {
      set(window, WINDOW_RESULT_OFFSET, result);
    }
    if (peer === 0) return true;
    if (result !== TRANSFER_DONE && get(peer, WINDOW_WRONG_OFFSET) === TRANSFER_DONE) {
      set(peer, WINDOW_WRONG_OFFSET, result);
    }
    // SYNC bytes-left (count)
    if (addWord(peer + WINDOW_LEFT_OFFSET, -bytes) >>> 0 === bytes) {
      tell(peer, taskOf(job, get(window, WINDOW_PEER_ENDPOINT_OFFSET)));
    }
    return true;
  }

  function processOne(job: number, window: number, descriptor: number, context: number): void {
    const kind = get(descriptor, DESCRIPTOR_KIND_OFFSET);
    if (kind === DESCRIPTOR_NOTICE) {
      noteEnd(window, descriptor);
      tell(window, get(context, CONTEXT_TASK_OFFSET) >>> 0);
      return;
    }
    const peer = peerOf(job, window);
    const endpoint = get(window, WINDOW_PEER_ENDPOINT_OFFSET);
    if (kind === DESCRIPTOR_FETCH) {
      const slots = get(descriptor, DESCRIPTOR_BYTES_OFFSET) >>> 0;
      const index = get(descriptor, DESCRIPTOR_REMOTE_INDEX_OFFSET) >>> 0;
      const entry = regionOf(job, index, get(descriptor, DESCRIPTOR_REMOTE_GENERATION_OFFSET));
      if (entry === 0 || slots > LINK_SLOTS) return;
      const offset = get(descriptor, DESCRIPTOR_REMOTE_OFFSET_OFFSET) >>> 0;
      const link = regionPlace(entry, offset, slots << DESCRIPTOR_SHIFT);
      if (link !== 0 && (link & 3) === 0 && peer !== 0) ship(job, peer, endpoint, link, slots);
      return;
    }
    const number = get(descriptor, DESCRIPTOR_VALUE_OFFSET) >>> 0;
    if (number >= DEPTH_MAX) return;
    const rget = window + WINDOW_RGETS_OFFSET + (number << DESCRIPTOR_SHIFT);
    if (kind === DESCRIPTOR_RGET && peer !== 0) ship(job, peer, endpoint, rget, 1);
    else if (kind === DESCRIPTOR_REFILL) {
      for (let at = DESCRIPTOR_BYTES_OFFSET; at < DESCRIPTOR_VALUE_OFFSET; at += 4) set(rget, at, get(descriptor, at));
    }
  }

  function windowAt(block: number, number: number): number {
    return block + BLOCK_WINDOWS_OFFSET + number * WINDOW_SIZE;
  }

  function isOpen(window: number): boolean {
    // SYNC window (engine)
    return (loadWord(window + WINDOW_GENERATION_OFFSET) & 1) !== 0 && get(window, WINDOW_AWAY_OFFSET) === 0;
  }

  let allowance = 0;
  let remaining = 0;

  function windowRun(job: number, window: number, context: number): boolean {
    let hasMoved = false;
    let head = get(window, WINDOW_HEAD_OFFSET);
    let others = TURN_SLOTS;
    // SYNC ship (look)
    while (head !== loadWord(window + WINDOW_TAIL_OFFSET)) {
      const descriptor = slotAt(window, head);
      if (get(descriptor, DESCRIPTOR_KIND_OFFSET) !== DESCRIPTOR_MOVE) {
        if (others-- === 0) {
          remaining++;
          break;
        }
        head = (head + 1) | 0;
        set(window, WINDOW_HEAD_OFFSET, head);
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
      head = (head + 1) | 0;
      set(window, WINDOW_HEAD_OFFSET, head);
    }
    return hasMoved;
  }

  function chainRun(job: number, context: number, most: number): number {
    // SYNC window-list (blocks)
    const list = loadWord(context + CONTEXT_WINDOWS_OFFSET) >>> 0;
    if (list === 0) return 0;
    allowance = most >>> 0;
    remaining = 0;
    const firstBlock = get(list, BLOCK_FIRST_OFFSET) >>> 0 || list;
    const first = get(list, BLOCK_TURN_OFFSET) >>> 0;
    let [block, number, isPassed] = [firstBlock, first, false];
    do {
      const window = windowAt(block, number);
      const left = remaining;
      const hasMoved = isOpen(window) && windowRun(job, window, context);
      if (!isPassed && !hasMoved && remaining !== left) {
        isPassed = true;
        set(list, BLOCK_FIRST_OFFSET, block);
        set(list, BLOCK_TURN_OFFSET, number);
      }
      number = (number + 1) % WINDOW_COUNT;
      if (number === 0) block = loadWord(block + BLOCK_NEXT_OFFSET) >>> 0 || list;
    } while (block !== firstBlock || number !== first);
    return remaining;
  }

  function chainLeft(context: number): number {
    for (let block = loadWord(context + CONTEXT_WINDOWS_OFFSET) >>> 0; block !== 0; ) {
      for (let number = 0; number < WINDOW_COUNT; number++) {
        const window = windowAt(block, number);
        if (!isOpen(window)) continue;
        const head = get(window, WINDOW_HEAD_OFFSET);
        if (head !== loadWord(window + WINDOW_TAIL_OFFSET) && !isHeld(window, slotAt(window, head))) return 1;
      }
      block = loadWord(block + BLOCK_NEXT_OFFSET) >>> 0;
    }
    return 0;
  }

  function chainBreak(job: number, window: number): number {
    // SYNC window-peer (begun)
    if (loadWord(window + WINDOW_PEER_WINDOW_OFFSET) === 0) return 0;
    const peer = peerOf(job, window);
    // SYNC bytes-left (broken)
    if (peer === 0 || loadWord(peer + WINDOW_LEFT_OFFSET) === 0) return 1;
    set(peer, WINDOW_WRONG_OFFSET, TRANSFER_BROKEN);
    storeWord(peer + WINDOW_LEFT_OFFSET, 0);
    tell(peer, taskOf(job, get(window, WINDOW_PEER_ENDPOINT_OFFSET)));
    return 1;
  }

  return {
    windowOpen,
    windowClose,
    windowClear,
    chainWrite,
    chainNotice,
    chainRun,
    chainLeft,
    chainBreak,
  };
}
