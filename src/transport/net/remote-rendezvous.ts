// Self-pacing transfers between nodes. The agent sends the descriptors themselves. Rget FIFOs and links stay unchanged, each in
// the memory of its side. Where the engine of a shared memory injects into the other rget FIFO, the agent sends the descriptors
// there.
//
//   origin                                               target
//   rget FIFO: [RGET i, REFILL, MOVE i] …                rget FIFO: [FETCH i + 1] …
//                ◄══ BEGIN: its rget FIFO, origin RGETs ══   once its core has written the chain
//      RGET      ══ SHIP: an origin RGET, a FETCH ═════►  FETCH
//                ◄══ SHIP: the link that it names ══════     its link
//      MOVE      ══ MOVE: bytes of fragment i ═════════►  the destination; its counter
//      NOTICE    ◄══ OVER: the counter is at 0 ═════════
//
// The origin asks for a link behind the bytes of the fragment before the last one. So with depth d, at most d + 1 fragments
// are on their way. A target whose node does not advance fetches no link, and its origin has nothing to send. NOTICE waits
// for OVER, because `onRemote` says that all bytes are there.
//
// A frame may be wrong. So the agent writes only into an open rget FIFO of the right peer, and into its destination.

import * as L from "../../../assembly/layout.js";
import { type Endpoint, taskOf } from "../../core/endpoint.js";
import { type SharedAtomics, sharedAtomics } from "../../kernel/atomics.js";
import type { Kernel, Memory } from "../../kernel/kernel.js";
import { contextBlock, type MemoryMap, taskSlot } from "../../memory/map.js";
import { type SlotTable, taskAt } from "../../node/address.js";
import { copyInto } from "../../support/copy.js";
import { isVerb } from "./encoding.js";
import type { Frame, SendFrame } from "./frames.js";
import type { NetParts } from "./net-parts.js";
import { type Resolved, remoteResult, resolveRegion } from "./regions.js";

type ChainFrame = Extract<Frame, { readonly chain: number }>;

/** Words that name an rget FIFO: region of its block, the region's generation, offset in it, the rget FIFO's generation. */
const PLACE_WORDS = 4;
/** Words of a frame after the words of the rget FIFO. */
const MOVE_WORDS = 5;
const BEGIN_WORDS_MAX = PLACE_WORDS + L.DEPTH_MAX * L.DESCRIPTOR_WORDS;

/** Descriptors of an rget FIFO, MOVEs aside, that are processed in one turn, as in the kernels. */
const TURN_SLOTS = 4 * L.RGET_FIFO_SLOTS;

/** Results of #find(): the words name no rget FIFO of this context for the peer, or one that has closed. */
const NOWHERE = -1;
const CLOSED = 0;

/** Bytes that were read, or why there are none: TRANSFER_…. */
interface Read {
  readonly result: number;
  readonly data: Uint8Array | undefined;
}

export class RemoteRendezvous {
  readonly #kernel: Kernel;
  readonly #memory: Memory;
  readonly #map: MemoryMap;
  readonly #addresses: SlotTable;
  readonly #send: SendFrame;
  readonly #atomics: SharedAtomics;
  /** Number of the rget FIFO with which the next turn of a context begins. */
  #turn = 0;
  /** Bytes that may still be moved in this turn. */
  #allowance = 0;

  constructor({ kernel, memory, map, addresses }: NetParts, send: SendFrame) {
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
    return resolveRegion(this.#kernel, this.#map, index, generation, offset, bytes);
  }

  /** AWAY_…; 0: an rget FIFO's other side is in this node. */
  #awayOf(rgetFifo: number): number {
    // SYNC rget-away (look): pairs with open() of TransferTable and with chainWrite() of the kernels.
    return this.#kernel.loadWord(rgetFifo + L.RGET_FIFO_AWAY_OFFSET);
  }

  /** Rget FIFOs of a context that are open, and whose other side is in another node. */
  #rgetFifosOf(ordinal: number): number[] {
    const rgetFifos: number[] = [];
    for (let block = this.#firstBlock(ordinal); block !== 0; block = this.#get(block, L.BLOCK_NEXT_OFFSET)) {
      for (let number = 0; number < L.RGET_FIFO_COUNT; number++) {
        const rgetFifo = block + L.BLOCK_RGET_FIFOS_OFFSET + number * L.RGET_FIFO_SIZE;
        if (this.#isOpen(rgetFifo) && this.#awayOf(rgetFifo) !== 0) rgetFifos.push(rgetFifo);
      }
    }
    return rgetFifos;
  }

  #isOpen(rgetFifo: number): boolean {
    // SYNC rget-fifo (engine): pairs with rgetOpen() and rgetClose() of the kernels.
    return (this.#kernel.loadWord(rgetFifo + L.RGET_FIFO_GENERATION_OFFSET) & 1) === 1;
  }

  #firstBlock(ordinal: number): number {
    const slot = taskSlot(this.#map, taskAt(this.#map, ordinal));
    // SYNC task-state (look): another task may use the blocks of an ended task by now.
    if (this.#kernel.loadWord(slot + L.TASK_STATE_OFFSET) >= L.TASK_CLOSED) return 0;
    // SYNC rget-list (blocks): pairs with the store of the owner, which adds blocks and removes none.
    return this.#kernel.loadWord(contextBlock(this.#map, ordinal) + L.CONTEXT_RGET_FIFOS_OFFSET) >>> 0;
  }

  /** The block of a context that contains a pointer; 0: there is no such block. */
  #blockOf(ordinal: number, pointer: number): number {
    let block = this.#firstBlock(ordinal);
    while (block !== 0 && (pointer < block || pointer >= block + L.BLOCK_SIZE)) {
      block = this.#get(block, L.BLOCK_NEXT_OFFSET);
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

  /** Sends a frame to an rget FIFO's other side. */
  #tell(rgetFifo: number, from: number, chain: number, words: ArrayLike<number>, data?: Uint8Array): void {
    const all = new Int32Array(PLACE_WORDS + words.length);
    all.set(this.#take(rgetFifo, L.RGET_FIFO_PEER_INDEX_OFFSET, PLACE_WORDS));
    all.set(words, PLACE_WORDS);
    const to = this.#addresses.endpointAt(this.#get(rgetFifo, L.RGET_FIFO_PEER_ENDPOINT_OFFSET));
    if (to !== L.NONE) this.#send(this.#addresses.endpointAt(from), to, { chain, words: all, data });
  }

  /** Target: tells the origin's node of a chain that the core has written, and of one that it has canceled. */
  #tellOfCore(rgetFifo: number, from: number): void {
    const away = this.#awayOf(rgetFifo);
    if ((away & L.AWAY_BEGUN) === 0) return;
    if ((away & L.AWAY_SHIPPED) === 0) {
      const depth = this.#get(rgetFifo, L.RGET_FIFO_DEPTH_OFFSET);
      const words = [...this.#take(rgetFifo, L.RGET_FIFO_OWN_INDEX_OFFSET, PLACE_WORDS - 1)];
      words.push(this.#get(rgetFifo, L.RGET_FIFO_GENERATION_OFFSET));
      const links = Math.ceil(
        this.#get(rgetFifo, L.RGET_FIFO_BYTES_OFFSET) / this.#get(rgetFifo, L.RGET_FIFO_FRAGMENT_OFFSET),
      );
      for (let rget = 0; rget < depth && rget + depth < links; rget++) {
        words.push(
          ...this.#take(rgetFifo, L.RGET_FIFO_RGETS_OFFSET + (rget << L.DESCRIPTOR_SHIFT), L.DESCRIPTOR_WORDS),
        );
      }
      this.#tell(rgetFifo, from, L.CHAIN_BEGIN, words);
      this.#set(rgetFifo, L.RGET_FIFO_AWAY_OFFSET, away | L.AWAY_SHIPPED);
    }
    const isStopped = this.#kernel.loadWord(rgetFifo + L.RGET_FIFO_STOP_OFFSET) !== L.TRANSFER_DONE; // SYNC stop (look)
    if (!isStopped || (away & L.AWAY_TOLD) !== 0) return;
    this.#tell(rgetFifo, from, L.CHAIN_STOP, []);
    this.#set(rgetFifo, L.RGET_FIFO_AWAY_OFFSET, this.#awayOf(rgetFifo) | L.AWAY_TOLD);
  }

  // ── Engine ────────────────────────────────────────────────────────────────────────────────────────────────────

  #slotAt(rgetFifo: number, position: number): number {
    return rgetFifo + L.RGET_FIFO_SLOTS_OFFSET + ((position & (L.RGET_FIFO_SLOTS - 1)) << L.DESCRIPTOR_SHIFT);
  }

  /** Whether a context's rget FIFOs have something that can be processed. */
  hasWork(ordinal: number): boolean {
    return this.#rgetFifosOf(ordinal).some((rgetFifo) => {
      const head = this.#get(rgetFifo, L.RGET_FIFO_HEAD_OFFSET);
      return head !== this.#tailOf(rgetFifo) && !this.#isHeld(rgetFifo, this.#slotAt(rgetFifo, head));
    });
  }

  /** Whether a context has rget FIFOs whose other side is an endpoint of another node. */
  isBusy(ordinal: number, peer: number): boolean {
    return this.#rgetFifosOf(ordinal).some(
      (rgetFifo) => this.#get(rgetFifo, L.RGET_FIFO_PEER_ENDPOINT_OFFSET) === peer,
    );
  }

  /** As `chainRun` of the kernels, for the rget FIFOs whose other side is in another node. */
  run(ordinal: number, most: number): number {
    const rgetFifos = this.#rgetFifosOf(ordinal);
    if (rgetFifos.length === 0) return 0;
    this.#allowance = most;
    let remaining = 0;
    const first = this.#turn++ % rgetFifos.length;
    for (let i = 0; i < rgetFifos.length; i++) {
      const rgetFifo = rgetFifos[(first + i) % rgetFifos.length] as number;
      // Read first: the other side hears of a chain before the FETCHes after it send its links.
      const tail = this.#tailOf(rgetFifo);
      this.#tellOfCore(rgetFifo, ordinal);
      if (this.#runRgetFifo(rgetFifo, ordinal, tail)) remaining++;
    }
    return remaining;
  }

  #tailOf(rgetFifo: number): number {
    // SYNC ship (look): pairs with chainWrite() and chainNotice() of the kernels.
    return this.#kernel.loadWord(rgetFifo + L.RGET_FIFO_TAIL_OFFSET) >>> 0;
  }

  /** Processes descriptors of an rget FIFO, up to the limits of a turn. Returns whether it could process more. */
  #runRgetFifo(rgetFifo: number, ordinal: number, tail: number): boolean {
    let others = TURN_SLOTS;
    let head = this.#get(rgetFifo, L.RGET_FIFO_HEAD_OFFSET);
    while (head !== tail) {
      const descriptor = this.#slotAt(rgetFifo, head);
      if (this.#isHeld(rgetFifo, descriptor)) break;
      if (this.#get(descriptor, L.DESCRIPTOR_KIND_OFFSET) === L.DESCRIPTOR_MOVE) {
        const left = this.#get(descriptor, L.DESCRIPTOR_BYTES_OFFSET) - this.#get(rgetFifo, L.RGET_FIFO_MOVED_OFFSET);
        const part = Math.min(left, L.SLICE_BYTES);
        if (part > this.#allowance) return true;
        this.#allowance -= part;
        if (!this.#move(rgetFifo, ordinal, descriptor, part)) continue;
      } else {
        if (others-- === 0) return true;
        this.#process(rgetFifo, ordinal, descriptor);
      }
      head = (head + 1) >>> 0;
      this.#set(rgetFifo, L.RGET_FIFO_HEAD_OFFSET, head);
    }
    return false;
  }

  /** Whether a descriptor has to wait: the NOTICE until the other side has sent OVER, a fragment until it is staged. */
  #isHeld(rgetFifo: number, descriptor: number): boolean {
    const kind = this.#get(descriptor, L.DESCRIPTOR_KIND_OFFSET);
    if (kind === L.DESCRIPTOR_MOVE) {
      // SYNC staged (look): pairs with the store of the origin's core, which stages.
      const allowed = this.#kernel.loadWord(rgetFifo + L.RGET_FIFO_ALLOWED_OFFSET) >>> 0;
      return this.#get(rgetFifo, L.RGET_FIFO_PASSED_OFFSET) >= allowed && this.#stopOf(rgetFifo) === L.TRANSFER_DONE;
    }
    if (kind !== L.DESCRIPTOR_NOTICE) return false;
    const hasBegun = this.#get(rgetFifo, L.RGET_FIFO_PEER_FIFO_OFFSET) !== 0;
    return hasBegun && (this.#awayOf(rgetFifo) & L.AWAY_OVER) === 0;
  }

  /** Sends a slice of a fragment, or the reason why there is none. Returns whether the fragment is over. */
  #move(rgetFifo: number, ordinal: number, descriptor: number, part: number): boolean {
    const bytes = this.#get(descriptor, L.DESCRIPTOR_BYTES_OFFSET);
    const moved = this.#get(rgetFifo, L.RGET_FIFO_MOVED_OFFSET);
    const index = this.#get(descriptor, L.DESCRIPTOR_LOCAL_INDEX_OFFSET);
    const generation = this.#get(descriptor, L.DESCRIPTOR_LOCAL_GENERATION_OFFSET);
    const from = this.#get(descriptor, L.DESCRIPTOR_LOCAL_OFFSET_OFFSET) + moved;
    const { result, data } = this.#read(rgetFifo, index, generation, from, part);
    const isLast = result !== L.TRANSFER_DONE || moved + part === bytes;
    const to = this.#take(descriptor, L.DESCRIPTOR_REMOTE_INDEX_OFFSET, 2);
    const offset = this.#get(descriptor, L.DESCRIPTOR_REMOTE_OFFSET_OFFSET) + moved;
    if (this.#get(rgetFifo, L.RGET_FIFO_PEER_FIFO_OFFSET) !== 0) {
      this.#tell(rgetFifo, ordinal, L.CHAIN_MOVE, [...to, offset, result, isLast ? bytes : 0], data);
    }
    this.#note(rgetFifo, L.RGET_FIFO_RESULT_OFFSET, result);
    this.#set(rgetFifo, L.RGET_FIFO_MOVED_OFFSET, isLast ? 0 : moved + part);
    if (!isLast) return false;
    // SYNC passed (passed): pairs with the origin's core, which may wait to stage the next fragment in place of this fragment.
    this.#kernel.storeWord(rgetFifo + L.RGET_FIFO_PASSED_OFFSET, this.#get(rgetFifo, L.RGET_FIFO_PASSED_OFFSET) + 1);
    if (this.#kernel.loadWord(rgetFifo + L.RGET_FIFO_ALLOWED_OFFSET) >>> 0 !== L.NONE) this.#ringOwner(ordinal);
    return true;
  }

  /** The bytes of a payload, not copied, or the result if there are none. */
  #read(rgetFifo: number, index: number, generation: number, offset: number, bytes: number): Read {
    const stop = this.#stopOf(rgetFifo);
    if (stop !== L.TRANSFER_DONE) return { result: stop, data: undefined };
    const { result, pointer } = this.#resolve(index, generation, offset, bytes);
    const data = result === L.TRANSFER_DONE ? this.#memory.bytes.subarray(pointer, pointer + bytes) : undefined;
    return { result, data };
  }

  /** TRANSFER_DONE, or why nothing more is moved through an rget FIFO. */
  #stopOf(rgetFifo: number): number {
    const stop = this.#kernel.loadWord(rgetFifo + L.RGET_FIFO_STOP_OFFSET); // SYNC stop (look)
    if (stop !== L.TRANSFER_DONE) return stop;
    return (this.#awayOf(rgetFifo) & L.AWAY_STOPPED) === 0 ? L.TRANSFER_DONE : L.TRANSFER_CANCELED;
  }

  /** Stores the result of a transfer, unless there is a failure already. */
  #note(rgetFifo: number, offset: number, result: number): void {
    if (this.#get(rgetFifo, offset) === L.TRANSFER_DONE) this.#set(rgetFifo, offset, result);
  }

  /** Sets an rget FIFO's bit in the status register of its block, and wakes its owner. */
  #signal(rgetFifo: number, ordinal: number): void {
    // SYNC transfer-over (tell): pairs with the owner's look at the register.
    this.#atomics.setBits(this.#get(rgetFifo, L.RGET_FIFO_STATUS_OFFSET), this.#get(rgetFifo, L.RGET_FIFO_BIT_OFFSET));
    this.#ringOwner(ordinal);
  }

  #ringOwner(ordinal: number): void {
    this.#kernel.ring(this.#get(contextBlock(this.#map, ordinal), L.CONTEXT_TASK_OFFSET));
  }

  /** Processes a descriptor that is no MOVE. */
  #process(rgetFifo: number, ordinal: number, descriptor: number): void {
    const kind = this.#get(descriptor, L.DESCRIPTOR_KIND_OFFSET);
    if (kind === L.DESCRIPTOR_NOTICE) {
      this.#note(rgetFifo, L.RGET_FIFO_RESULT_OFFSET, this.#get(descriptor, L.DESCRIPTOR_BYTES_OFFSET));
      this.#signal(rgetFifo, ordinal);
    } else if (kind === L.DESCRIPTOR_FETCH) {
      const slots = this.#get(descriptor, L.DESCRIPTOR_BYTES_OFFSET);
      const index = this.#get(descriptor, L.DESCRIPTOR_REMOTE_INDEX_OFFSET);
      const generation = this.#get(descriptor, L.DESCRIPTOR_REMOTE_GENERATION_OFFSET);
      // The origin sent this descriptor: it may name only the links of this transfer.
      const isOwn =
        index === this.#get(rgetFifo, L.RGET_FIFO_CHAIN_INDEX_OFFSET) &&
        generation === this.#get(rgetFifo, L.RGET_FIFO_CHAIN_GENERATION_OFFSET);
      if (slots > L.LINK_SLOTS || !isOwn) return;
      const offset = this.#get(descriptor, L.DESCRIPTOR_REMOTE_OFFSET_OFFSET);
      const { result, pointer } = this.#resolve(index, generation, offset, slots << L.DESCRIPTOR_SHIFT);
      if (result === L.TRANSFER_DONE && pointer % (1 << L.DESCRIPTOR_SHIFT) === 0)
        this.#ship(rgetFifo, ordinal, pointer, slots);
    } else {
      const number = this.#get(descriptor, L.DESCRIPTOR_VALUE_OFFSET);
      if (number >= L.DEPTH_MAX) return;
      const rget = rgetFifo + L.RGET_FIFO_RGETS_OFFSET + (number << L.DESCRIPTOR_SHIFT);
      if (kind === L.DESCRIPTOR_RGET) this.#ship(rgetFifo, ordinal, rget, 1);
      else if (kind === L.DESCRIPTOR_REFILL) {
        const words = (L.DESCRIPTOR_VALUE_OFFSET - L.DESCRIPTOR_BYTES_OFFSET) >>> 2;
        this.#put(rget, L.DESCRIPTOR_BYTES_OFFSET, this.#take(descriptor, L.DESCRIPTOR_BYTES_OFFSET, words));
      }
    }
  }

  #ship(rgetFifo: number, ordinal: number, pointer: number, slots: number): void {
    if (this.#get(rgetFifo, L.RGET_FIFO_PEER_FIFO_OFFSET) === 0) return;
    const words: number[] = [];
    for (let slot = 0; slot < slots; slot++) {
      const descriptor = this.#take(pointer, slot << L.DESCRIPTOR_SHIFT, L.DESCRIPTOR_WORDS);
      // The other side says from where to take the descriptor. Some of these places were never written.
      if (!isVerb(descriptor[L.DESCRIPTOR_KIND_OFFSET >>> 2] as number)) return;
      words.push(...descriptor);
    }
    this.#tell(rgetFifo, ordinal, L.CHAIN_SHIP, words);
  }

  // ── What comes ────────────────────────────────────────────────────────────────────────────────────────────────

  /**
   * Takes a frame for a context of this node, by the context's ordinal. False: the frame is wrong. A frame that comes too late
   * is not wrong.
   */
  onFrame(from: Endpoint, to: number, { chain, words, data }: ChainFrame): boolean {
    if (words.length < PLACE_WORDS || (data !== undefined && chain !== L.CHAIN_MOVE)) return false;
    const rgetFifo = this.#find(from, to, words);
    if (rgetFifo === CLOSED || rgetFifo === NOWHERE) return rgetFifo === CLOSED;
    const said = words.subarray(PLACE_WORDS);
    if (chain === L.CHAIN_SHIP) return this.#shipped(rgetFifo, said);
    const isTarget = this.#get(rgetFifo, L.RGET_FIFO_DEPTH_OFFSET) !== 0;
    if (chain === L.CHAIN_MOVE) return isTarget && this.#moved(rgetFifo, to, said, data);
    if (isTarget) return false;
    const hasBegun = this.#get(rgetFifo, L.RGET_FIFO_PEER_FIFO_OFFSET) !== 0;
    if (chain === L.CHAIN_BEGIN) return !hasBegun && this.#begun(rgetFifo, said);
    const away = this.#awayOf(rgetFifo);
    if (chain === L.CHAIN_STOP && hasBegun && said.length === 0) {
      this.#set(rgetFifo, L.RGET_FIFO_AWAY_OFFSET, away | L.AWAY_STOPPED);
      return true;
    }
    if (chain !== L.CHAIN_OVER || !hasBegun || said.length !== 1) return false;
    this.#note(rgetFifo, L.RGET_FIFO_RESULT_OFFSET, said[0] as number);
    this.#set(rgetFifo, L.RGET_FIFO_AWAY_OFFSET, away | L.AWAY_OVER);
    return true;
  }

  /** The rget FIFO of a context, for a peer, that the words name; CLOSED; or NOWHERE. */
  #find(from: Endpoint, to: number, words: Int32Array): number {
    const [index = 0, generation = 0, offset = 0, own = 0] = words;
    const first = offset >>> 0;
    if (
      (own & 1) === 0 ||
      first < L.BLOCK_RGET_FIFOS_OFFSET ||
      (first - L.BLOCK_RGET_FIFOS_OFFSET) % L.RGET_FIFO_SIZE !== 0
    ) {
      return NOWHERE;
    }
    const place = this.#resolve(index >>> 0, generation >>> 0, first, L.RGET_FIFO_SIZE);
    if (place.result !== L.TRANSFER_DONE) return CLOSED;
    const rgetFifo = place.pointer;
    if (this.#blockOf(to, rgetFifo) + first !== rgetFifo) return NOWHERE;
    // SYNC rget-fifo (look): pairs with rgetOpen() and rgetClose().
    if (this.#kernel.loadWord(rgetFifo + L.RGET_FIFO_GENERATION_OFFSET) >>> 0 !== own >>> 0) return CLOSED;
    const peer = this.#addresses.endpointAt(this.#get(rgetFifo, L.RGET_FIFO_PEER_ENDPOINT_OFFSET));
    const isPeer = peer !== L.NONE && taskOf(peer) === taskOf(from);
    return isPeer && this.#awayOf(rgetFifo) !== 0 ? rgetFifo : NOWHERE;
  }

  #begun(rgetFifo: number, words: Int32Array): boolean {
    const rgets = words.subarray(PLACE_WORDS);
    if (words.length < PLACE_WORDS || words.length > BEGIN_WORDS_MAX || rgets.length % L.DESCRIPTOR_WORDS !== 0)
      return false;
    if (((words[PLACE_WORDS - 1] as number) & 1) === 0) return false;
    this.#put(rgetFifo, L.RGET_FIFO_PEER_INDEX_OFFSET, words.subarray(0, PLACE_WORDS));
    for (let at = 0, rget = 0; at < rgets.length; at += L.DESCRIPTOR_WORDS, rget++) {
      this.#put(
        rgetFifo,
        L.RGET_FIFO_RGETS_OFFSET + (rget << L.DESCRIPTOR_SHIFT),
        rgets.subarray(at, at + L.DESCRIPTOR_WORDS),
      );
    }
    return true;
  }

  #shipped(rgetFifo: number, words: Int32Array): boolean {
    const tail = this.#get(rgetFifo, L.RGET_FIFO_TAIL_OFFSET);
    const used = (tail - this.#get(rgetFifo, L.RGET_FIFO_HEAD_OFFSET)) >>> 0;
    const count = words.length / L.DESCRIPTOR_WORDS;
    if (count === 0 || !Number.isInteger(count) || used + count > L.RGET_FIFO_SLOTS) return false;
    for (let slot = 0; slot < count; slot++) {
      const at = slot * L.DESCRIPTOR_WORDS;
      this.#put(this.#slotAt(rgetFifo, tail + slot), 0, words.subarray(at, at + L.DESCRIPTOR_WORDS));
    }
    this.#set(rgetFifo, L.RGET_FIFO_TAIL_OFFSET, tail + count);
    return true;
  }

  /** Bytes of a fragment, or why there are none. */
  #moved(rgetFifo: number, ordinal: number, words: Int32Array, data: Uint8Array | undefined): boolean {
    const [index = 0, generation = 0, offset = 0, said = 0, over = 0] = words;
    const [left, count] = [this.#get(rgetFifo, L.RGET_FIFO_LEFT_OFFSET), over >>> 0];
    const isDone = said === L.TRANSFER_DONE;
    if (words.length !== MOVE_WORDS || count > left || isDone !== (data !== undefined)) return false;
    const isThere =
      index === (this.#get(rgetFifo, L.RGET_FIFO_TO_INDEX_OFFSET) | 0) &&
      generation === (this.#get(rgetFifo, L.RGET_FIFO_TO_GENERATION_OFFSET) | 0);
    const at = (offset >>> 0) - this.#get(rgetFifo, L.RGET_FIFO_TO_OFFSET_OFFSET);
    if (!isThere || at < 0 || at + (data?.length ?? 0) > this.#get(rgetFifo, L.RGET_FIFO_BYTES_OFFSET)) return false;
    const stop = data === undefined ? said : this.#stopOf(rgetFifo);
    const result = stop === L.TRANSFER_DONE && data !== undefined ? this.#write(rgetFifo, at, data) : stop;
    this.#note(rgetFifo, L.RGET_FIFO_WRONG_OFFSET, result);
    this.#set(rgetFifo, L.RGET_FIFO_LEFT_OFFSET, left - count);
    if (count === 0 || left > count) return true;
    this.#signal(rgetFifo, ordinal);
    this.#tell(rgetFifo, ordinal, L.CHAIN_OVER, [this.#get(rgetFifo, L.RGET_FIFO_WRONG_OFFSET)]);
    return true;
  }

  /** Writes bytes into an rget FIFO's destination: TRANSFER_…. */
  #write(rgetFifo: number, at: number, data: Uint8Array): number {
    const index = this.#get(rgetFifo, L.RGET_FIFO_TO_INDEX_OFFSET);
    const generation = this.#get(rgetFifo, L.RGET_FIFO_TO_GENERATION_OFFSET);
    const offset = this.#get(rgetFifo, L.RGET_FIFO_TO_OFFSET_OFFSET) + at;
    const { result, pointer } = this.#resolve(index, generation, offset, data.length);
    if (result === L.TRANSFER_DONE) copyInto(this.#memory.bytes, pointer, data);
    return remoteResult(result);
  }
}
