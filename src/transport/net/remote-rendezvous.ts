// Self-pacing transfers between nodes. What crosses are the descriptors themselves: windows and links stay as they are, each
// in the memory of its side, and where the engine of shared memory injects into the other window, the agent sends the
// descriptors there.
//
//   origin                                               target
//   window: [RGET i, REFILL, MOVE i] …                   window: [FETCH i + 1] …
//                ◄══ BEGIN: its window, origin RGETs ══   once its core has written the chain
//      RGET      ══ SHIP: an origin RGET, a FETCH ═════►  FETCH
//                ◄══ SHIP: the link that it names ══════     its link
//      MOVE      ══ MOVE: bytes of fragment i ═════════►  the destination; its counter
//      NOTICE    ◄══ OVER: the counter is at 0 ═════════
//
// A link is asked for behind the bytes of the fragment before the last one, so with depth d no more than d + 1 fragments are
// on their way: a target whose node does not advance fetches no link, and its origin has nothing to send. NOTICE waits for
// OVER, since `onRemote` says that all is there.
//
// What comes may be wrong: nothing is written but into an open window of the right peer, and the destination of that.

import {
  AWAY_BEGUN,
  AWAY_OVER,
  AWAY_SHIPPED,
  AWAY_STOPPED,
  AWAY_TOLD,
  BLOCK_NEXT_OFFSET,
  BLOCK_SIZE,
  BLOCK_WINDOWS_OFFSET,
  CHAIN_BEGIN,
  CHAIN_MOVE,
  CHAIN_OVER,
  CHAIN_SHIP,
  CHAIN_STOP,
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
  DESCRIPTOR_VALUE_OFFSET,
  DESCRIPTOR_WORDS,
  LINK_SLOTS,
  NONE,
  SLICE_BYTES,
  TASK_CLOSED,
  TASK_STATE_OFFSET,
  TRANSFER_CANCELED,
  TRANSFER_DONE,
  WINDOW_ALLOWED_OFFSET,
  WINDOW_AWAY_OFFSET,
  WINDOW_BIT_OFFSET,
  WINDOW_BYTES_OFFSET,
  WINDOW_CHAIN_GENERATION_OFFSET,
  WINDOW_CHAIN_INDEX_OFFSET,
  WINDOW_COUNT,
  WINDOW_DEPTH_OFFSET,
  WINDOW_GENERATION_OFFSET,
  WINDOW_HEAD_OFFSET,
  WINDOW_LEFT_OFFSET,
  WINDOW_MOVED_OFFSET,
  WINDOW_OWN_INDEX_OFFSET,
  WINDOW_PASSED_OFFSET,
  WINDOW_PEER_ENDPOINT_OFFSET,
  WINDOW_PEER_INDEX_OFFSET,
  WINDOW_PEER_WINDOW_OFFSET,
  WINDOW_PORTION_OFFSET,
  WINDOW_RESULT_OFFSET,
  WINDOW_RGETS_OFFSET,
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
import { type Endpoint, taskOf } from "../../core/endpoint.js";
import { type SharedAtomics, sharedAtomics } from "../../kernel/atomics.js";
import type { Kernel, Memory } from "../../kernel/kernel.js";
import { contextBlock, type MemoryMap, taskSlot } from "../../memory/map.js";
import { type Addresses, taskAt } from "../../node/address.js";
import type { Frame, SendFrame } from "./frames.js";
import { type Resolved, remoteResult, resolveRegion } from "./regions.js";

type ChainFrame = Extract<Frame, { readonly chain: number }>;

/** Words that name a window: region of its block, that one's generation, offset, its own generation. */
const PLACE_WORDS = 4;
/** Words of a frame behind that. */
const MOVE_WORDS = 5;
const BEGIN_WORDS_MAX = PLACE_WORDS + DEPTH_MAX * DESCRIPTOR_WORDS;

/** Descriptors of a window, MOVEs aside, that are processed in one turn, as in the kernels. */
const TURN_SLOTS = 4 * WINDOW_SLOTS;

/** What #find() says of a place that is no window of this task's, or none that is open any more. */
const NOWHERE = -1;
const CLOSED = 0;

/** Bytes that were to be read, or why not: TRANSFER_…. */
interface Read {
  readonly result: number;
  readonly data: Uint8Array | undefined;
}

export class RemoteRendezvous {
  readonly #kernel: Kernel;
  readonly #memory: Memory;
  readonly #map: MemoryMap;
  readonly #addresses: Addresses;
  readonly #send: SendFrame;
  readonly #atomics: SharedAtomics;
  /** Which window of a context is the first in its next turn. */
  #turn = 0;
  /** Bytes that may still be moved in this one. */
  #allowance = 0;

  constructor(kernel: Kernel, memory: Memory, map: MemoryMap, addresses: Addresses, send: SendFrame) {
    this.#kernel = kernel;
    this.#memory = memory;
    this.#atomics = sharedAtomics(memory);
    this.#map = map;
    this.#addresses = addresses;
    this.#send = send;
  }

  #get(pointer: number, offset: number): number {
    return (this.#memory.words[(pointer + offset) >>> 2] as number) >>> 0;
  }

  #set(pointer: number, offset: number, value: number): void {
    this.#memory.words[(pointer + offset) >>> 2] = value;
  }

  #resolve(index: number, generation: number, offset: number, bytes: number): Resolved {
    return resolveRegion(this.#kernel, this.#memory, this.#map, index, generation, offset, bytes);
  }

  /** Whether a window's other side is in another node. */
  #isAway(window: number): boolean {
    return this.#get(window, WINDOW_AWAY_OFFSET) !== 0;
  }

  /** Windows of a context that are open, and whose other side is in another node. */
  #windowsOf(ordinal: number): number[] {
    const windows: number[] = [];
    for (let block = this.#firstBlock(ordinal); block !== 0; block = this.#get(block, BLOCK_NEXT_OFFSET)) {
      for (let number = 0; number < WINDOW_COUNT; number++) {
        const window = block + BLOCK_WINDOWS_OFFSET + number * WINDOW_SIZE;
        if (this.#isAway(window) && this.#isOpen(window)) windows.push(window);
      }
    }
    return windows;
  }

  #isOpen(window: number): boolean {
    // SYNC window (engine): pairs with windowOpen() and windowClose() of the kernels.
    return (this.#kernel.loadWord(window + WINDOW_GENERATION_OFFSET) & 1) === 1;
  }

  #firstBlock(ordinal: number): number {
    const slot = taskSlot(this.#map, taskAt(this.#map, ordinal));
    // SYNC task-state (look): the blocks of an ended task may be another's by now.
    if (this.#kernel.loadWord(slot + TASK_STATE_OFFSET) >= TASK_CLOSED) return 0;
    // SYNC window-list (blocks): pairs with the store of the owner, which adds blocks and removes none.
    return this.#kernel.loadWord(contextBlock(this.#map, ordinal) + CONTEXT_WINDOWS_OFFSET) >>> 0;
  }

  /** The block of a context in which a pointer is; 0: none. */
  #blockOf(ordinal: number, pointer: number): number {
    let block = this.#firstBlock(ordinal);
    while (block !== 0 && (pointer < block || pointer >= block + BLOCK_SIZE)) {
      block = this.#get(block, BLOCK_NEXT_OFFSET);
    }
    return block;
  }

  #take(pointer: number, offset: number, count: number): Int32Array {
    const at = (pointer + offset) >>> 2;
    return this.#memory.words.slice(at, at + count);
  }

  #put(pointer: number, offset: number, words: ArrayLike<number>): void {
    this.#memory.words.set(words, (pointer + offset) >>> 2);
  }

  /** Sends a frame to a window's other side. */
  #tell(window: number, from: number, chain: number, words: ArrayLike<number>, data?: Uint8Array): void {
    const all = new Int32Array(PLACE_WORDS + words.length);
    all.set(this.#take(window, WINDOW_PEER_INDEX_OFFSET, PLACE_WORDS));
    all.set(words, PLACE_WORDS);
    const to = this.#addresses.endpointAt(this.#get(window, WINDOW_PEER_ENDPOINT_OFFSET));
    if (to !== NONE) this.#send(this.#addresses.endpointAt(from), to, { chain, words: all, data });
  }

  /** Target: tells the origin's node of a chain that the core has written, and of one that it has given up. */
  #tellOfCore(window: number, from: number): void {
    const away = this.#get(window, WINDOW_AWAY_OFFSET);
    const depth = this.#get(window, WINDOW_DEPTH_OFFSET);
    if (depth === 0) return;
    if ((away & AWAY_BEGUN) !== 0 && (away & AWAY_SHIPPED) === 0) {
      const words = [...this.#take(window, WINDOW_OWN_INDEX_OFFSET, PLACE_WORDS - 1)];
      words.push(this.#get(window, WINDOW_GENERATION_OFFSET));
      const links = Math.ceil(this.#get(window, WINDOW_BYTES_OFFSET) / this.#get(window, WINDOW_PORTION_OFFSET));
      for (let rget = 0; rget < depth && rget + depth < links; rget++) {
        words.push(...this.#take(window, WINDOW_RGETS_OFFSET + (rget << DESCRIPTOR_SHIFT), DESCRIPTOR_WORDS));
      }
      this.#tell(window, from, CHAIN_BEGIN, words);
      this.#set(window, WINDOW_AWAY_OFFSET, away | AWAY_SHIPPED);
    }
    const isStopped = this.#kernel.loadWord(window + WINDOW_STOP_OFFSET) !== TRANSFER_DONE; // SYNC stop (look)
    if (!isStopped || (away & (AWAY_TOLD | AWAY_BEGUN)) !== AWAY_BEGUN) return;
    this.#tell(window, from, CHAIN_STOP, []);
    this.#set(window, WINDOW_AWAY_OFFSET, this.#get(window, WINDOW_AWAY_OFFSET) | AWAY_TOLD);
  }

  // ── Engine ────────────────────────────────────────────────────────────────────────────────────────────────────

  #slotAt(window: number, position: number): number {
    return window + WINDOW_SLOTS_OFFSET + ((position & (WINDOW_SLOTS - 1)) << DESCRIPTOR_SHIFT);
  }

  /** Whether a context's windows have something that can be processed. */
  hasWork(ordinal: number): boolean {
    return this.#windowsOf(ordinal).some((window) => {
      const head = this.#get(window, WINDOW_HEAD_OFFSET);
      return head !== this.#get(window, WINDOW_TAIL_OFFSET) && !this.#isHeld(window, this.#slotAt(window, head));
    });
  }

  /** Whether a context has windows whose other side is an endpoint of another node. */
  isBusy(ordinal: number, peer: number): boolean {
    return this.#windowsOf(ordinal).some((window) => this.#get(window, WINDOW_PEER_ENDPOINT_OFFSET) === peer);
  }

  /** As `chainRun` of the kernels, for the windows whose other side is in another node. */
  run(ordinal: number, most: number): number {
    const windows = this.#windowsOf(ordinal);
    if (windows.length === 0) return 0;
    this.#allowance = most;
    let remaining = 0;
    const first = this.#turn++ % windows.length;
    for (let i = 0; i < windows.length; i++) {
      const window = windows[(first + i) % windows.length] as number;
      this.#tellOfCore(window, ordinal);
      if (this.#runWindow(window, ordinal)) remaining++;
    }
    return remaining;
  }

  /** Processes what is in a window, as far as it may; whether something is left that could be. */
  #runWindow(window: number, ordinal: number): boolean {
    let others = TURN_SLOTS;
    let head = this.#get(window, WINDOW_HEAD_OFFSET);
    // SYNC ship (look): pairs with chainWrite() and chainNotice() of the kernels.
    const tail = this.#kernel.loadWord(window + WINDOW_TAIL_OFFSET) >>> 0;
    while (head !== tail) {
      const descriptor = this.#slotAt(window, head);
      if (this.#isHeld(window, descriptor)) break;
      if (this.#get(descriptor, DESCRIPTOR_KIND_OFFSET) === DESCRIPTOR_MOVE) {
        const left = this.#get(descriptor, DESCRIPTOR_BYTES_OFFSET) - this.#get(window, WINDOW_MOVED_OFFSET);
        const part = Math.min(left, SLICE_BYTES);
        if (part > this.#allowance) return true;
        this.#allowance -= part;
        if (!this.#move(window, ordinal, descriptor, part)) continue;
      } else {
        if (others-- === 0) return true;
        this.#process(window, ordinal, descriptor);
      }
      head = (head + 1) >>> 0;
      this.#set(window, WINDOW_HEAD_OFFSET, head);
    }
    return false;
  }

  /**
   * Whether a descriptor has to wait: the last one until the other side has said that all is there, a fragment until it is
   * staged.
   */
  #isHeld(window: number, descriptor: number): boolean {
    const kind = this.#get(descriptor, DESCRIPTOR_KIND_OFFSET);
    if (kind === DESCRIPTOR_MOVE) {
      // SYNC staged (look): pairs with the store of the origin's core, which stages.
      const allowed = this.#kernel.loadWord(window + WINDOW_ALLOWED_OFFSET) >>> 0;
      return this.#get(window, WINDOW_PASSED_OFFSET) >= allowed && this.#stopOf(window) === TRANSFER_DONE;
    }
    if (kind !== DESCRIPTOR_NOTICE) return false;
    const hasBegun = this.#get(window, WINDOW_PEER_WINDOW_OFFSET) !== 0;
    return hasBegun && (this.#get(window, WINDOW_AWAY_OFFSET) & AWAY_OVER) === 0;
  }

  /** Sends a slice of a portion, or says why not; whether the portion is over. */
  #move(window: number, ordinal: number, descriptor: number, part: number): boolean {
    const bytes = this.#get(descriptor, DESCRIPTOR_BYTES_OFFSET);
    const moved = this.#get(window, WINDOW_MOVED_OFFSET);
    const index = this.#get(descriptor, DESCRIPTOR_LOCAL_INDEX_OFFSET);
    const generation = this.#get(descriptor, DESCRIPTOR_LOCAL_GENERATION_OFFSET);
    const from = this.#get(descriptor, DESCRIPTOR_LOCAL_OFFSET_OFFSET) + moved;
    const { result, data } = this.#read(window, index, generation, from, part);
    const isLast = result !== TRANSFER_DONE || moved + part === bytes;
    const to = this.#take(descriptor, DESCRIPTOR_REMOTE_INDEX_OFFSET, 2);
    const offset = this.#get(descriptor, DESCRIPTOR_REMOTE_OFFSET_OFFSET) + moved;
    if (this.#get(window, WINDOW_PEER_WINDOW_OFFSET) !== 0) {
      this.#tell(window, ordinal, CHAIN_MOVE, [...to, offset, result, isLast ? bytes : 0], data);
    }
    this.#note(window, WINDOW_RESULT_OFFSET, result);
    this.#set(window, WINDOW_MOVED_OFFSET, isLast ? 0 : moved + part);
    if (!isLast) return false;
    // SYNC passed (passed): pairs with the origin's core, which may wait to stage the next fragment in this one's place.
    this.#kernel.storeWord(window + WINDOW_PASSED_OFFSET, this.#get(window, WINDOW_PASSED_OFFSET) + 1);
    if (this.#kernel.loadWord(window + WINDOW_ALLOWED_OFFSET) >>> 0 !== NONE) this.#ringOwner(ordinal);
    return true;
  }

  /** Bytes of a payload, or why there are none. */
  #read(window: number, index: number, generation: number, offset: number, bytes: number): Read {
    const stop = this.#stopOf(window);
    if (stop !== TRANSFER_DONE) return { result: stop, data: undefined };
    const { result, pointer } = this.#resolve(index, generation, offset, bytes);
    const data = result === TRANSFER_DONE ? this.#memory.bytes.slice(pointer, pointer + bytes) : undefined;
    return { result, data };
  }

  /** TRANSFER_DONE, or why nothing more is moved through a window. */
  #stopOf(window: number): number {
    const stop = this.#kernel.loadWord(window + WINDOW_STOP_OFFSET); // SYNC stop (look)
    if (stop !== TRANSFER_DONE) return stop;
    return (this.#get(window, WINDOW_AWAY_OFFSET) & AWAY_STOPPED) === 0 ? TRANSFER_DONE : TRANSFER_CANCELED;
  }

  /** Notes what came of a transfer, if nothing has yet. */
  #note(window: number, offset: number, result: number): void {
    if (this.#get(window, offset) === TRANSFER_DONE) this.#set(window, offset, result);
  }

  /** Sets a window's bit in the status register of its block, and wakes its owner. */
  #signal(window: number, ordinal: number): void {
    // SYNC window-over (tell): pairs with the owner's look at the register.
    this.#atomics.setBits(this.#get(window, WINDOW_STATUS_OFFSET), this.#get(window, WINDOW_BIT_OFFSET));
    this.#ringOwner(ordinal);
  }

  #ringOwner(ordinal: number): void {
    this.#kernel.ring(this.#get(contextBlock(this.#map, ordinal), CONTEXT_TASK_OFFSET));
  }

  /** Processes a descriptor that is no MOVE. */
  #process(window: number, ordinal: number, descriptor: number): void {
    const kind = this.#get(descriptor, DESCRIPTOR_KIND_OFFSET);
    if (kind === DESCRIPTOR_NOTICE) {
      this.#note(window, WINDOW_RESULT_OFFSET, this.#get(descriptor, DESCRIPTOR_BYTES_OFFSET));
      this.#signal(window, ordinal);
    } else if (kind === DESCRIPTOR_FETCH) {
      const slots = this.#get(descriptor, DESCRIPTOR_BYTES_OFFSET);
      const index = this.#get(descriptor, DESCRIPTOR_REMOTE_INDEX_OFFSET);
      const generation = this.#get(descriptor, DESCRIPTOR_REMOTE_GENERATION_OFFSET);
      // The origin sends this descriptor: it may name the links of this transfer, and nothing else.
      const isOwn =
        index === this.#get(window, WINDOW_CHAIN_INDEX_OFFSET) &&
        generation === this.#get(window, WINDOW_CHAIN_GENERATION_OFFSET);
      if (slots > LINK_SLOTS || !isOwn) return;
      const offset = this.#get(descriptor, DESCRIPTOR_REMOTE_OFFSET_OFFSET);
      const { result, pointer } = this.#resolve(index, generation, offset, slots << DESCRIPTOR_SHIFT);
      if (result === TRANSFER_DONE && (pointer & 3) === 0) this.#ship(window, ordinal, pointer, slots);
    } else {
      const number = this.#get(descriptor, DESCRIPTOR_VALUE_OFFSET);
      if (number >= DEPTH_MAX) return;
      const rget = window + WINDOW_RGETS_OFFSET + (number << DESCRIPTOR_SHIFT);
      if (kind === DESCRIPTOR_RGET) this.#ship(window, ordinal, rget, 1);
      else if (kind === DESCRIPTOR_REFILL) {
        const words = (DESCRIPTOR_VALUE_OFFSET - DESCRIPTOR_BYTES_OFFSET) >>> 2;
        this.#put(rget, DESCRIPTOR_BYTES_OFFSET, this.#take(descriptor, DESCRIPTOR_BYTES_OFFSET, words));
      }
    }
  }

  #ship(window: number, ordinal: number, pointer: number, slots: number): void {
    if (this.#get(window, WINDOW_PEER_WINDOW_OFFSET) === 0) return;
    const words: number[] = [];
    for (let slot = 0; slot < slots; slot++) {
      words.push(...this.#take(pointer, slot << DESCRIPTOR_SHIFT, DESCRIPTOR_WORDS));
    }
    this.#tell(window, ordinal, CHAIN_SHIP, words);
  }

  // ── What comes ────────────────────────────────────────────────────────────────────────────────────────────────

  /** A frame has come for a context of this node, by its ordinal. False: it can't be right. What comes too late is. */
  onFrame(from: Endpoint, to: number, { chain, words, data }: ChainFrame): boolean {
    if (words.length < PLACE_WORDS || (data !== undefined && chain !== CHAIN_MOVE)) return false;
    const window = this.#find(from, to, words);
    if (window === CLOSED || window === NOWHERE) return window === CLOSED;
    const said = words.subarray(PLACE_WORDS);
    if (chain === CHAIN_SHIP) return this.#shipped(window, said);
    const isTarget = this.#get(window, WINDOW_DEPTH_OFFSET) !== 0;
    if (chain === CHAIN_MOVE) return isTarget && this.#moved(window, to, said, data);
    if (isTarget) return false;
    const hasBegun = this.#get(window, WINDOW_PEER_WINDOW_OFFSET) !== 0;
    if (chain === CHAIN_BEGIN) return !hasBegun && this.#begun(window, said);
    const away = this.#get(window, WINDOW_AWAY_OFFSET);
    if (chain === CHAIN_STOP && hasBegun && said.length === 0) {
      this.#set(window, WINDOW_AWAY_OFFSET, away | AWAY_STOPPED);
      return true;
    }
    if (chain !== CHAIN_OVER || !hasBegun || said.length !== 1) return false;
    this.#note(window, WINDOW_RESULT_OFFSET, said[0] as number);
    this.#set(window, WINDOW_AWAY_OFFSET, away | AWAY_OVER);
    return true;
  }

  /** The window that words name, of a context and for a peer; CLOSED, NOWHERE. */
  #find(from: Endpoint, to: number, words: Int32Array): number {
    const [index = 0, generation = 0, offset = 0, own = 0] = words;
    const first = offset >>> 0;
    if ((own & 1) === 0 || first < BLOCK_WINDOWS_OFFSET || (first - BLOCK_WINDOWS_OFFSET) % WINDOW_SIZE !== 0) {
      return NOWHERE;
    }
    const place = this.#resolve(index >>> 0, generation >>> 0, first, WINDOW_SIZE);
    if (place.result !== TRANSFER_DONE) return CLOSED;
    const window = place.pointer;
    if (this.#blockOf(to, window) + first !== window) return NOWHERE;
    // SYNC window (look): pairs with windowOpen() and windowClose().
    if (this.#kernel.loadWord(window + WINDOW_GENERATION_OFFSET) >>> 0 !== own >>> 0) return CLOSED;
    const peer = this.#addresses.endpointAt(this.#get(window, WINDOW_PEER_ENDPOINT_OFFSET));
    const isPeer = peer !== NONE && taskOf(peer) === taskOf(from);
    return isPeer && this.#isAway(window) ? window : NOWHERE;
  }

  #begun(window: number, words: Int32Array): boolean {
    const rgets = words.subarray(PLACE_WORDS);
    if (words.length < PLACE_WORDS || words.length > BEGIN_WORDS_MAX || rgets.length % DESCRIPTOR_WORDS !== 0)
      return false;
    if (((words[PLACE_WORDS - 1] as number) & 1) === 0) return false;
    this.#put(window, WINDOW_PEER_INDEX_OFFSET, words.subarray(0, PLACE_WORDS));
    for (let at = 0, rget = 0; at < rgets.length; at += DESCRIPTOR_WORDS, rget++) {
      this.#put(window, WINDOW_RGETS_OFFSET + (rget << DESCRIPTOR_SHIFT), rgets.subarray(at, at + DESCRIPTOR_WORDS));
    }
    return true;
  }

  #shipped(window: number, words: Int32Array): boolean {
    const tail = this.#get(window, WINDOW_TAIL_OFFSET);
    const used = (tail - this.#get(window, WINDOW_HEAD_OFFSET)) >>> 0;
    const count = words.length / DESCRIPTOR_WORDS;
    if (count === 0 || !Number.isInteger(count) || used + count > WINDOW_SLOTS) return false;
    for (let slot = 0; slot < count; slot++) {
      const at = slot * DESCRIPTOR_WORDS;
      this.#put(this.#slotAt(window, tail + slot), 0, words.subarray(at, at + DESCRIPTOR_WORDS));
    }
    this.#set(window, WINDOW_TAIL_OFFSET, tail + count);
    return true;
  }

  /** Bytes of a portion, or why there are none. */
  #moved(window: number, ordinal: number, words: Int32Array, data: Uint8Array | undefined): boolean {
    const [index = 0, generation = 0, offset = 0, said = 0, over = 0] = words;
    const [left, count] = [this.#get(window, WINDOW_LEFT_OFFSET), over >>> 0];
    const isDone = said === TRANSFER_DONE;
    if (words.length !== MOVE_WORDS || count > left || isDone !== (data !== undefined)) return false;
    const isThere =
      index === (this.#get(window, WINDOW_TO_INDEX_OFFSET) | 0) &&
      generation === (this.#get(window, WINDOW_TO_GENERATION_OFFSET) | 0);
    const at = (offset >>> 0) - this.#get(window, WINDOW_TO_OFFSET_OFFSET);
    if (!isThere || at < 0 || at + (data?.length ?? 0) > this.#get(window, WINDOW_BYTES_OFFSET)) return false;
    const stop = data === undefined ? said : this.#stopOf(window);
    const result = stop === TRANSFER_DONE && data !== undefined ? this.#write(window, at, data) : stop;
    this.#note(window, WINDOW_WRONG_OFFSET, result);
    this.#set(window, WINDOW_LEFT_OFFSET, left - count);
    if (count === 0 || left > count) return true;
    this.#signal(window, ordinal);
    this.#tell(window, ordinal, CHAIN_OVER, [this.#get(window, WINDOW_WRONG_OFFSET)]);
    return true;
  }

  /** Writes bytes into a window's destination: TRANSFER_…. */
  #write(window: number, at: number, data: Uint8Array): number {
    const index = this.#get(window, WINDOW_TO_INDEX_OFFSET);
    const generation = this.#get(window, WINDOW_TO_GENERATION_OFFSET);
    const offset = this.#get(window, WINDOW_TO_OFFSET_OFFSET) + at;
    const { result, pointer } = this.#resolve(index, generation, offset, data.length);
    if (result === TRANSFER_DONE) this.#memory.bytes.set(data, pointer);
    return remoteResult(result);
  }
}
