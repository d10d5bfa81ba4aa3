// Twin of assembly/chain.ts: same functions, same order; see the comments there.
import * as L from "../../../assembly/layout.js";
import type { SharedAtomics } from "../atomics.js";
import type { Memory } from "../kernel.js";
import type { Due } from "./due.js";
import type { Engine } from "./engine.js";
import type { Region } from "./region.js";

const DESCRIPTOR_WORDS = L.DESCRIPTOR_SIZE >>> 2;

export type Chain = ReturnType<typeof twinChain>;

/** As in assembly/chain.ts. */
const TURN_SLOTS = 4 * L.RGET_FIFO_SLOTS;

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

  function slotAt(rgetFifo: number, position: number): number {
    return rgetFifo + L.RGET_FIFO_SLOTS_OFFSET + ((position & (L.RGET_FIFO_SLOTS - 1)) << L.DESCRIPTOR_SHIFT);
  }

  function rgetOpen(rgetFifo: number, allowed: number): number {
    const generation = (get(rgetFifo, L.RGET_FIFO_GENERATION_OFFSET) + 1) | 0;
    set(rgetFifo, L.RGET_FIFO_MOVED_OFFSET, 0);
    storeWord(rgetFifo + L.RGET_FIFO_PASSED_OFFSET, 0);
    set(rgetFifo, L.RGET_FIFO_RESULT_OFFSET, L.TRANSFER_DONE);
    storeWord(rgetFifo + L.RGET_FIFO_ALLOWED_OFFSET, allowed);
    storeWord(rgetFifo + L.RGET_FIFO_STOP_OFFSET, L.TRANSFER_DONE);
    storeWord(rgetFifo + L.RGET_FIFO_LEFT_OFFSET, 0);
    set(rgetFifo, L.RGET_FIFO_WRONG_OFFSET, L.TRANSFER_DONE);
    // SYNC rget-peer (none)
    storeWord(rgetFifo + L.RGET_FIFO_PEER_FIFO_OFFSET, 0);
    // SYNC rget-fifo (open)
    storeWord(rgetFifo + L.RGET_FIFO_GENERATION_OFFSET, generation);
    return generation >>> 0;
  }

  function rgetClose(rgetFifo: number): void {
    // SYNC rget-fifo (close)
    storeWord(rgetFifo + L.RGET_FIFO_GENERATION_OFFSET, get(rgetFifo, L.RGET_FIFO_GENERATION_OFFSET) + 1);
  }

  function rgetClear(rgetFifo: number): number {
    const head = get(rgetFifo, L.RGET_FIFO_HEAD_OFFSET);
    const descriptor = slotAt(rgetFifo, head);
    // SYNC ship (left)
    const isLeft = head !== loadWord(rgetFifo + L.RGET_FIFO_TAIL_OFFSET);
    const isOver = isLeft && get(descriptor, L.DESCRIPTOR_KIND_OFFSET) === L.DESCRIPTOR_NOTICE && !isAwaited(rgetFifo);
    if (isOver) noteEnd(rgetFifo, descriptor);
    storeWord(rgetFifo + L.RGET_FIFO_TAIL_OFFSET, head);
    return Number(isOver);
  }

  function isAwaited(rgetFifo: number): boolean {
    const away = get(rgetFifo, L.RGET_FIFO_AWAY_OFFSET);
    return away !== 0 && (away & L.AWAY_OVER) === 0 && loadWord(rgetFifo + L.RGET_FIFO_PEER_FIFO_OFFSET) !== 0;
  }

  function noteEnd(rgetFifo: number, descriptor: number): void {
    const result = get(descriptor, L.DESCRIPTOR_BYTES_OFFSET);
    if (get(rgetFifo, L.RGET_FIFO_RESULT_OFFSET) === L.TRANSFER_DONE) set(rgetFifo, L.RGET_FIFO_RESULT_OFFSET, result);
  }

  function isPlace(offset: number): boolean {
    return offset >= L.BLOCK_RGET_FIFOS_OFFSET && (offset - L.BLOCK_RGET_FIFOS_OFFSET) % L.RGET_FIFO_SIZE === 0;
  }

  function rgetFifoOf(job: number, index: number, generation: number, offset: number, own: number): number {
    const entry = regionOf(job, index >>> 0, generation);
    if (entry === 0 || (own & 1) === 0 || !isPlace(offset >>> 0)) return 0;
    const rgetFifo = regionPlace(entry, offset >>> 0, L.RGET_FIFO_SIZE);
    if (rgetFifo === 0) return 0;
    // SYNC rget-fifo (look)
    return loadWord(rgetFifo + L.RGET_FIFO_GENERATION_OFFSET) === (own | 0) ? rgetFifo : 0;
  }

  function peerOf(job: number, rgetFifo: number): number {
    if (hasEnded(taskOf(job, get(rgetFifo, L.RGET_FIFO_PEER_ENDPOINT_OFFSET)))) return 0;
    const index = get(rgetFifo, L.RGET_FIFO_PEER_INDEX_OFFSET);
    const generation = get(rgetFifo, L.RGET_FIFO_PEER_GENERATION_OFFSET);
    const offset = get(rgetFifo, L.RGET_FIFO_PEER_OFFSET_OFFSET);
    return rgetFifoOf(job, index, generation, offset, loadWord(rgetFifo + L.RGET_FIFO_PEER_FIFO_OFFSET));
  }

  function ship(job: number, rgetFifo: number, endpoint: number, from: number, slots: number): void {
    const tail = get(rgetFifo, L.RGET_FIFO_TAIL_OFFSET);
    for (let i = 0; i < slots; i++) {
      const to = slotAt(rgetFifo, tail + i) >>> 2;
      const at = (from >>> 2) + i * DESCRIPTOR_WORDS;
      for (let word = 0; word < DESCRIPTOR_WORDS; word++) words[to + word] = words[at + word];
    }
    // SYNC ship (ship)
    storeWord(rgetFifo + L.RGET_FIFO_TAIL_OFFSET, (tail + slots) | 0);
    engineCall(job, endpoint);
  }

  function tell(rgetFifo: number, task: number): void {
    // SYNC transfer-over (tell)
    setBits(get(rgetFifo, L.RGET_FIFO_STATUS_OFFSET) >>> 0, get(rgetFifo, L.RGET_FIFO_BIT_OFFSET));
    ring(task);
  }

  function slotsOfLink(i: number, n: number, depth: number): number {
    return 1 + Number(i + depth < n) + Number(i + 2 * depth < n) + Number(i + 1 === n);
  }

  function nameLink(rgetFifo: number, descriptor: number, i: number, n: number, depth: number): void {
    set(descriptor, L.DESCRIPTOR_BYTES_OFFSET, slotsOfLink(i, n, depth));
    set(descriptor, L.DESCRIPTOR_REMOTE_INDEX_OFFSET, get(rgetFifo, L.RGET_FIFO_CHAIN_INDEX_OFFSET));
    set(descriptor, L.DESCRIPTOR_REMOTE_GENERATION_OFFSET, get(rgetFifo, L.RGET_FIFO_CHAIN_GENERATION_OFFSET));
    set(descriptor, L.DESCRIPTOR_REMOTE_OFFSET_OFFSET, i * L.LINK_SIZE);
  }

  function writeFetch(rgetFifo: number, descriptor: number, i: number, n: number, depth: number): void {
    set(descriptor, L.DESCRIPTOR_KIND_OFFSET, L.DESCRIPTOR_FETCH);
    nameLink(rgetFifo, descriptor, i, n, depth);
  }

  function chainWrite(job: number, rgetFifo: number): number {
    const bytes = get(rgetFifo, L.RGET_FIFO_BYTES_OFFSET) >>> 0;
    const fragment = get(rgetFifo, L.RGET_FIFO_FRAGMENT_OFFSET) >>> 0;
    const around = get(rgetFifo, L.RGET_FIFO_RING_OFFSET) >>> 0;
    const depth = get(rgetFifo, L.RGET_FIFO_DEPTH_OFFSET);
    const fromOffset = get(rgetFifo, L.RGET_FIFO_FROM_OFFSET_OFFSET);
    const toOffset = get(rgetFifo, L.RGET_FIFO_TO_OFFSET_OFFSET);
    if (bytes === 0 || fragment === 0 || depth <= 0 || depth > L.DEPTH_MAX) return 0;
    const n = Math.floor((bytes - 1) / fragment) + 1;
    if (n > L.LINK_COUNT_MAX) return 0;
    const chainIndex = get(rgetFifo, L.RGET_FIFO_CHAIN_INDEX_OFFSET);
    const entry = regionOf(job, chainIndex >>> 0, get(rgetFifo, L.RGET_FIFO_CHAIN_GENERATION_OFFSET));
    const chain = entry === 0 ? 0 : regionPlace(entry, 0, n * L.LINK_SIZE);
    const away = get(rgetFifo, L.RGET_FIFO_AWAY_OFFSET);
    const peer = away === 0 ? peerOf(job, rgetFifo) : rgetFifo;
    if (chain === 0 || peer === 0) return 0;
    for (let i = 0; i < n; i++) {
      let descriptor = chain + i * L.LINK_SIZE;
      if (i + depth < n) {
        set(descriptor, L.DESCRIPTOR_KIND_OFFSET, L.DESCRIPTOR_RGET);
        set(descriptor, L.DESCRIPTOR_VALUE_OFFSET, i % depth);
        descriptor += L.DESCRIPTOR_SIZE;
      }
      if (i + 2 * depth < n) {
        set(descriptor, L.DESCRIPTOR_KIND_OFFSET, L.DESCRIPTOR_REFILL);
        set(descriptor, L.DESCRIPTOR_VALUE_OFFSET, i % depth);
        nameLink(rgetFifo, descriptor, i + 2 * depth, n, depth);
        descriptor += L.DESCRIPTOR_SIZE;
      }
      const at = i * fragment;
      const place = around === 0 ? at : (i % around) * fragment;
      set(descriptor, L.DESCRIPTOR_KIND_OFFSET, L.DESCRIPTOR_MOVE);
      set(descriptor, L.DESCRIPTOR_BYTES_OFFSET, i + 1 === n ? bytes - at : fragment);
      set(descriptor, L.DESCRIPTOR_LOCAL_INDEX_OFFSET, get(rgetFifo, L.RGET_FIFO_FROM_INDEX_OFFSET));
      set(descriptor, L.DESCRIPTOR_LOCAL_GENERATION_OFFSET, get(rgetFifo, L.RGET_FIFO_FROM_GENERATION_OFFSET));
      set(descriptor, L.DESCRIPTOR_LOCAL_OFFSET_OFFSET, fromOffset + place);
      set(descriptor, L.DESCRIPTOR_REMOTE_INDEX_OFFSET, get(rgetFifo, L.RGET_FIFO_TO_INDEX_OFFSET));
      set(descriptor, L.DESCRIPTOR_REMOTE_GENERATION_OFFSET, get(rgetFifo, L.RGET_FIFO_TO_GENERATION_OFFSET));
      set(descriptor, L.DESCRIPTOR_REMOTE_OFFSET_OFFSET, toOffset + at);
      if (i + 1 === n) {
        descriptor += L.DESCRIPTOR_SIZE;
        set(descriptor, L.DESCRIPTOR_KIND_OFFSET, L.DESCRIPTOR_NOTICE);
        set(descriptor, L.DESCRIPTOR_BYTES_OFFSET, L.TRANSFER_DONE);
      }
    }
    storeWord(rgetFifo + L.RGET_FIFO_LEFT_OFFSET, bytes);
    if (away === 0) {
      set(peer, L.RGET_FIFO_PEER_INDEX_OFFSET, get(rgetFifo, L.RGET_FIFO_OWN_INDEX_OFFSET));
      set(peer, L.RGET_FIFO_PEER_GENERATION_OFFSET, get(rgetFifo, L.RGET_FIFO_OWN_GENERATION_OFFSET));
      set(peer, L.RGET_FIFO_PEER_OFFSET_OFFSET, get(rgetFifo, L.RGET_FIFO_OWN_OFFSET_OFFSET));
      // SYNC rget-peer (begin)
      storeWord(peer + L.RGET_FIFO_PEER_FIFO_OFFSET, get(rgetFifo, L.RGET_FIFO_GENERATION_OFFSET));
    }
    for (let i = 0; i < depth && i + depth < n; i++) {
      writeFetch(rgetFifo, peer + L.RGET_FIFO_RGETS_OFFSET + (i << L.DESCRIPTOR_SHIFT), i + depth, n, depth);
    }
    // SYNC rget-away (begun)
    if (away !== 0) storeWord(rgetFifo + L.RGET_FIFO_AWAY_OFFSET, away | L.AWAY_BEGUN);
    const tail = get(rgetFifo, L.RGET_FIFO_TAIL_OFFSET);
    const first = Math.min(depth, n);
    for (let i = 0; i < first; i++) writeFetch(rgetFifo, slotAt(rgetFifo, tail + i), i, n, depth);
    // SYNC ship (begin)
    storeWord(rgetFifo + L.RGET_FIFO_TAIL_OFFSET, (tail + first) | 0);
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
    const rgetFifo = rgetFifoOf(job, index, generation, offset, own);
    if (rgetFifo === 0) return 0;
    const tail = get(rgetFifo, L.RGET_FIFO_TAIL_OFFSET);
    const descriptor = slotAt(rgetFifo, tail);
    set(descriptor, L.DESCRIPTOR_KIND_OFFSET, L.DESCRIPTOR_NOTICE);
    set(descriptor, L.DESCRIPTOR_BYTES_OFFSET, result);
    // SYNC ship (notice)
    storeWord(rgetFifo + L.RGET_FIFO_TAIL_OFFSET, (tail + 1) | 0);
    engineCall(job, origin);
    return 1;
  }

  function isHeld(rgetFifo: number, descriptor: number): boolean {
    if (get(descriptor, L.DESCRIPTOR_KIND_OFFSET) !== L.DESCRIPTOR_MOVE) return false;
    // SYNC staged (look)
    if (get(rgetFifo, L.RGET_FIFO_PASSED_OFFSET) >>> 0 < loadWord(rgetFifo + L.RGET_FIFO_ALLOWED_OFFSET) >>> 0)
      return false;
    // SYNC stop (held)
    return loadWord(rgetFifo + L.RGET_FIFO_STOP_OFFSET) === L.TRANSFER_DONE;
  }

  function sliceOf(rgetFifo: number, descriptor: number): number {
    const left = (get(descriptor, L.DESCRIPTOR_BYTES_OFFSET) - get(rgetFifo, L.RGET_FIFO_MOVED_OFFSET)) >>> 0;
    return Math.min(left, L.SLICE_BYTES);
  }

  function moveSlice(job: number, rgetFifo: number, descriptor: number, part: number, context: number): boolean {
    const bytes = get(descriptor, L.DESCRIPTOR_BYTES_OFFSET) >>> 0;
    const moved = get(rgetFifo, L.RGET_FIFO_MOVED_OFFSET) >>> 0;
    const peer = peerOf(job, rgetFifo);
    // SYNC stop (look)
    let result = loadWord(rgetFifo + L.RGET_FIFO_STOP_OFFSET);
    if (result === L.TRANSFER_DONE) result = peer === 0 ? L.TRANSFER_ENDED : loadWord(peer + L.RGET_FIFO_STOP_OFFSET);
    if (result === L.TRANSFER_DONE) result = engine.transferPart(job, descriptor, true, moved, part);
    // SYNC rget-list (closed)
    if (result === L.TRANSFER_LOCAL_CLOSED && loadWord(context + L.CONTEXT_RGET_FIFOS_OFFSET) === 0)
      result = L.TRANSFER_ENDED;
    if (result === L.TRANSFER_DONE && (bytes - moved) >>> 0 > part) {
      set(rgetFifo, L.RGET_FIFO_MOVED_OFFSET, moved + part);
      return false;
    }
    set(rgetFifo, L.RGET_FIFO_MOVED_OFFSET, 0);
    // SYNC passed (passed)
    storeWord(rgetFifo + L.RGET_FIFO_PASSED_OFFSET, (get(rgetFifo, L.RGET_FIFO_PASSED_OFFSET) + 1) | 0);
    if (loadWord(rgetFifo + L.RGET_FIFO_ALLOWED_OFFSET) >>> 0 !== L.NONE)
      ring(get(context, L.CONTEXT_TASK_OFFSET) >>> 0);
    if (result !== L.TRANSFER_DONE && get(rgetFifo, L.RGET_FIFO_RESULT_OFFSET) === L.TRANSFER_DONE) {
      set(rgetFifo, L.RGET_FIFO_RESULT_OFFSET, result);
    }
    if (peer === 0) return true;
    if (result !== L.TRANSFER_DONE && get(peer, L.RGET_FIFO_WRONG_OFFSET) === L.TRANSFER_DONE) {
      set(peer, L.RGET_FIFO_WRONG_OFFSET, result);
    }
    // SYNC bytes-left (count)
    if (addWord(peer + L.RGET_FIFO_LEFT_OFFSET, -bytes) >>> 0 === bytes) {
      tell(peer, taskOf(job, get(rgetFifo, L.RGET_FIFO_PEER_ENDPOINT_OFFSET)));
    }
    return true;
  }

  function processOne(job: number, rgetFifo: number, descriptor: number, context: number): void {
    const kind = get(descriptor, L.DESCRIPTOR_KIND_OFFSET);
    if (kind === L.DESCRIPTOR_NOTICE) {
      noteEnd(rgetFifo, descriptor);
      tell(rgetFifo, get(context, L.CONTEXT_TASK_OFFSET) >>> 0);
      return;
    }
    const peer = peerOf(job, rgetFifo);
    const endpoint = get(rgetFifo, L.RGET_FIFO_PEER_ENDPOINT_OFFSET);
    if (kind === L.DESCRIPTOR_FETCH) {
      const slots = get(descriptor, L.DESCRIPTOR_BYTES_OFFSET) >>> 0;
      const index = get(descriptor, L.DESCRIPTOR_REMOTE_INDEX_OFFSET) >>> 0;
      const entry = regionOf(job, index, get(descriptor, L.DESCRIPTOR_REMOTE_GENERATION_OFFSET));
      if (entry === 0 || slots > L.LINK_SLOTS) return;
      const offset = get(descriptor, L.DESCRIPTOR_REMOTE_OFFSET_OFFSET) >>> 0;
      const link = regionPlace(entry, offset, slots << L.DESCRIPTOR_SHIFT);
      if (link !== 0 && (link & 3) === 0 && peer !== 0) ship(job, peer, endpoint, link, slots);
      return;
    }
    const number = get(descriptor, L.DESCRIPTOR_VALUE_OFFSET) >>> 0;
    if (number >= L.DEPTH_MAX) return;
    const rget = rgetFifo + L.RGET_FIFO_RGETS_OFFSET + (number << L.DESCRIPTOR_SHIFT);
    if (kind === L.DESCRIPTOR_RGET && peer !== 0) ship(job, peer, endpoint, rget, 1);
    else if (kind === L.DESCRIPTOR_REFILL) {
      for (let at = L.DESCRIPTOR_BYTES_OFFSET; at < L.DESCRIPTOR_VALUE_OFFSET; at += 4)
        set(rget, at, get(descriptor, at));
    }
  }

  function rgetFifoAt(block: number, number: number): number {
    return block + L.BLOCK_RGET_FIFOS_OFFSET + number * L.RGET_FIFO_SIZE;
  }

  function isOpen(rgetFifo: number): boolean {
    // SYNC rget-fifo (engine)
    if ((loadWord(rgetFifo + L.RGET_FIFO_GENERATION_OFFSET) & 1) === 0) return false;
    // SYNC rget-away (look)
    return loadWord(rgetFifo + L.RGET_FIFO_AWAY_OFFSET) === 0;
  }

  let allowance = 0;
  let remaining = 0;

  function rgetFifoRun(job: number, rgetFifo: number, context: number): boolean {
    let hasMoved = false;
    let head = get(rgetFifo, L.RGET_FIFO_HEAD_OFFSET);
    let others = TURN_SLOTS;
    // SYNC ship (look)
    while (head !== loadWord(rgetFifo + L.RGET_FIFO_TAIL_OFFSET)) {
      const descriptor = slotAt(rgetFifo, head);
      if (get(descriptor, L.DESCRIPTOR_KIND_OFFSET) !== L.DESCRIPTOR_MOVE) {
        if (others-- === 0) {
          remaining++;
          break;
        }
        head = (head + 1) | 0;
        set(rgetFifo, L.RGET_FIFO_HEAD_OFFSET, head);
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
      head = (head + 1) | 0;
      set(rgetFifo, L.RGET_FIFO_HEAD_OFFSET, head);
    }
    return hasMoved;
  }

  function chainRun(job: number, context: number, most: number): number {
    // SYNC rget-list (blocks)
    const list = loadWord(context + L.CONTEXT_RGET_FIFOS_OFFSET) >>> 0;
    if (list === 0) return 0;
    allowance = most >>> 0;
    remaining = 0;
    const firstBlock = get(list, L.BLOCK_FIRST_OFFSET) >>> 0 || list;
    const first = get(list, L.BLOCK_TURN_OFFSET) >>> 0;
    let [block, number, isPassed] = [firstBlock, first, false];
    do {
      const rgetFifo = rgetFifoAt(block, number);
      const left = remaining;
      const hasMoved = isOpen(rgetFifo) && rgetFifoRun(job, rgetFifo, context);
      if (!isPassed && !hasMoved && remaining !== left) {
        isPassed = true;
        set(list, L.BLOCK_FIRST_OFFSET, block);
        set(list, L.BLOCK_TURN_OFFSET, number);
      }
      number = (number + 1) % L.RGET_FIFO_COUNT;
      if (number === 0) block = loadWord(block + L.BLOCK_NEXT_OFFSET) >>> 0 || list;
    } while (block !== firstBlock || number !== first);
    return remaining;
  }

  function chainLeft(context: number): number {
    for (let block = loadWord(context + L.CONTEXT_RGET_FIFOS_OFFSET) >>> 0; block !== 0; ) {
      for (let number = 0; number < L.RGET_FIFO_COUNT; number++) {
        const rgetFifo = rgetFifoAt(block, number);
        if (!isOpen(rgetFifo)) continue;
        const head = get(rgetFifo, L.RGET_FIFO_HEAD_OFFSET);
        if (head !== loadWord(rgetFifo + L.RGET_FIFO_TAIL_OFFSET) && !isHeld(rgetFifo, slotAt(rgetFifo, head)))
          return 1;
      }
      block = loadWord(block + L.BLOCK_NEXT_OFFSET) >>> 0;
    }
    return 0;
  }

  function chainBreak(job: number, rgetFifo: number): number {
    // SYNC rget-peer (begun)
    if (loadWord(rgetFifo + L.RGET_FIFO_PEER_FIFO_OFFSET) === 0) return 0;
    const peer = peerOf(job, rgetFifo);
    // SYNC bytes-left (broken)
    if (peer === 0 || loadWord(peer + L.RGET_FIFO_LEFT_OFFSET) === 0) return 1;
    set(peer, L.RGET_FIFO_WRONG_OFFSET, L.TRANSFER_BROKEN);
    storeWord(peer + L.RGET_FIFO_LEFT_OFFSET, 0);
    tell(peer, taskOf(job, get(rgetFifo, L.RGET_FIFO_PEER_ENDPOINT_OFFSET)));
    return 1;
  }

  return {
    rgetOpen,
    rgetClose,
    rgetClear,
    chainWrite,
    chainNotice,
    chainRun,
    chainLeft,
    chainBreak,
  };
}
